"""What starts workers elsewhere, as it is printed."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.yaml_text import read_yaml_text, yaml_text
from paraforge.interface.cli import app, workers
from tests.project import ROOT

ADDRESS = "tcp://10.0.0.1:8786"
WORKER = f"worker {ADDRESS} --no-dashboard --local-directory /tmp"


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["workers", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def put_programs(directory: Path, dask: str) -> None:
    """An ssh that reaches only this host, and not one that is called away; and a dask."""
    ssh = '[ "$1" != away ] || { echo "away: no route"; exit 255; }; shift; exec sh -c "$1"'
    for name, text in (("ssh", ssh), ("dask", dask)):
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)


def ssh(*arguments: str) -> str:
    return printed("ssh", *arguments, "--scheduler", ADDRESS)


def test_slurm() -> None:
    script = printed("slurm", "--gpus", "16", "--scheduler", ADDRESS, "--dask", "/opt/my env/dask")
    assert script.splitlines() == [
        "#!/bin/sh",
        "#SBATCH --job-name=paraforge-workers",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=8",
        "#SBATCH --gpus-per-task=1",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --time=24:00:00",
        "#SBATCH --requeue",
        f"srun --cpus-per-task=2 '/opt/my env/dask' {WORKER} --nthreads 2 --resources GPU=2",
    ]
    subprocess.run(["sh", "-n"], input=script.encode(), check=True)
    with_processors = printed("slurm", "--gpus", "0", "--scheduler", ADDRESS)
    assert "#SBATCH --exclusive" in with_processors and "GPU" not in with_processors


def test_ssh_starts_what_lives_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed commands are run, by programs that note what they were given."""
    put_programs(tmp_path, dask='echo "$CUDA_VISIBLE_DEVICES $@"; exec sleep 9')
    monkeypatch.setattr(workers, "_STARTING_SECONDS", 0.2)
    lines = ssh("node1", "node2", "--gpus", "4").splitlines()
    assert [line.split()[:2] for line in lines] == [["ssh", name] for name in ("node1",) * 2 + ("node2",) * 2]
    for line in lines[:2]:
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", f"{line}\nwait"], cwd=tmp_path, env=environment, check=True)
    for number in (0, 1):
        log = tmp_path / f"paraforge-worker-{number}.log"
        _wait_for(log)
        assert log.read_text() == f"{number} {WORKER} --nthreads 2 --resources GPU=2\n"


def test_ssh_names_the_hosts_that_do_not_start_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not reached, and one whose worker ends at once; the others start."""
    put_programs(
        tmp_path, dask='[ "$CUDA_VISIBLE_DEVICES" = 0 ] || { echo no device; exit 1; }; exec sleep 9'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(workers, "_STARTING_SECONDS", 1)
    with pytest.raises(IncompleteError) as found:
        ssh("away", "here", "--gpus", "4", "--submit")
    first, *rest = str(found.value).splitlines()
    assert first == "3 of 4 workers were not started:"
    assert rest == ["  - ssh away: away: no route"] * 2 + ["  - ssh here: no device"]


def _wait_for(log: Path) -> None:
    for _ in range(100):
        if log.is_file() and log.read_text():
            return
        subprocess.run(["sleep", "0.1"], check=True)


def test_kubernetes() -> None:
    manifest = read_yaml_text(printed("kubernetes", "registry/image:1", "--gpus", "8"))
    assert (manifest["apiVersion"], manifest["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    workers = manifest["spec"]["worker"]
    assert workers["replicas"] == 8
    container = workers["spec"]["containers"][0]
    assert (
        container["resources"]["limits"] == {"nvidia.com/gpu": 1} and container["image"] == "registry/image:1"
    )
    assert container["args"][-2:] == ["--resources", "GPU=2"]
    # The service leads to the ports that the scheduler names.
    scheduler = manifest["spec"]["scheduler"]
    named = {port["name"]: port["containerPort"] for port in scheduler["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"]: port["port"] for port in scheduler["service"]["ports"]} == named


def test_the_project_says_where_the_scheduler_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its certificates."""
    content = read_yaml_text((ROOT / "params.yaml").read_text())
    names = {"ca": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
    content["resources"] = {"scheduler": "tls://host:8786", "tls": names}
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(yaml_text(content))
    script = printed("slurm")
    assert "dask worker tls://host:8786 --no-dashboard" in script
    ca, cert, key = (tmp_path / name for name in names.values())
    assert f"--tls-ca-file {ca} --tls-cert {cert} --tls-key {key}" in script
    # A home directory is this one, not a directory called '~' on a host.
    content["resources"]["tls"]["key"] = "~/key.pem"
    Path("params.yaml").write_text(yaml_text(content))
    assert f"--tls-key {Path.home() / 'key.pem'}" in printed("ssh", "node")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slurm"], "no scheduler is named.*Say --scheduler"),
        (["slurm", "--scheduler", "tcp://host"], "cannot be used: missing port number"),
        (["slurm", "--scheduler", "tls://host:8786"], "no certificates are named.*resources.tls"),
        (["slurm", "--gpus", "9", "--scheduler", ADDRESS], "9 GPUs on nodes of 8 leave a node in part"),
        (["ssh", "a", "b", "--gpus", "3", "--scheduler", ADDRESS], "cannot be shared out to 2 hosts"),
    ],
)
def test_what_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        printed(*arguments)
