"""``paraforge workers``: what starts workers of a Dask scheduler on SLURM, by ssh, or on Kubernetes."""

import shlex
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer

from paraforge.base.errors import IncompleteError, InputError
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import checked, group

app = group(
    "Start the workers of a Dask scheduler ('dask scheduler'), one per GPU.\n\n"
    "Without --submit, what would be run is printed. Workers need this environment, but not the project."
)

_GPUS = typer.Option(1, "--gpus", min=0, help="GPUs in all, a worker each; 0: one worker on all cores")
_SCHEDULER = typer.Option(
    None, "--scheduler", help="its address; by default resources.scheduler of params.yaml"
)
_DASK = typer.Option("dask", "--dask", help="the command 'dask' of the environment there")
_SUBMIT = typer.Option(False, "--submit", help="run it")
_TEMPORARY = "/tmp"  # noqa: S108 - there Dask makes a directory of its own
# A worker that has the wrong command, certificate or option ends sooner.
_STARTING_SECONDS = 5
# Two tasks at a time, so that the GPU never waits for text.
_AT_ONCE = "2"
_ON_GPU = ("--nthreads", _AT_ONCE, "--resources", f"GPU={_AT_ONCE}")


@app.command("slurm")
def slurm_command(
    gpus: int = _GPUS,
    per_node: int = typer.Option(8, "--per-node", min=1, help="GPUs of a node"),
    hours: int = typer.Option(24, "--hours", min=1, help="limit of the job"),
    scheduler: str | None = _SCHEDULER,
    dask: str = _DASK,
    submit: bool = _SUBMIT,
) -> None:
    """Print a script for sbatch, or submit it.

    \b
    Example:
      paraforge workers slurm --gpus 16 --scheduler tcp://10.0.0.1:8786 > workers.sh
    """
    script = slurm_script(gpus, per_node, hours, [dask, *worker(_resources(scheduler), gpus)])
    if submit:
        _run(["sbatch"], script)
    else:
        typer.echo(script, nl=False)


@app.command("ssh")
def ssh_command(
    hosts: list[str] = typer.Argument(metavar="HOST...", help="as ssh knows them"),
    gpus: int = _GPUS,
    scheduler: str | None = _SCHEDULER,
    dask: str = _DASK,
    submit: bool = _SUBMIT,
) -> None:
    """Print the commands that start workers by ssh, or run them. GPUs are shared out evenly.

    \b
    Example:
      paraforge workers ssh node1 node2 --gpus 8 --scheduler tcp://10.0.0.1:8786
    """
    lines = list(ssh_commands(hosts, gpus, [dask, *worker(_resources(scheduler), gpus)]))
    if submit:
        _run_all(lines)
    else:
        typer.echo("\n".join(map(shlex.join, lines)))


@app.command("kubernetes")
def kubernetes_command(
    image: str = typer.Argument(metavar="IMAGE", help="container image with this environment"),
    gpus: int = _GPUS,
    submit: bool = _SUBMIT,
) -> None:
    """Print a manifest of a scheduler and its workers, or apply it. It needs the operator of dask-kubernetes.

    \b
    Example:
      paraforge workers kubernetes registry.example/paraforge:1 --gpus 8 | kubectl apply -f -
    """
    manifest = kubernetes_manifest(image, gpus)
    if submit:
        _run(["kubectl", "apply", "-f", "-"], manifest)
    else:
        typer.echo(manifest, nl=False)


def worker(resources: Resources, gpus: int) -> list[str]:
    """Arguments of ``dask`` for a worker; certificates are where they are here. Raises InputError: no
    scheduler is named, none that Dask can use, or no certificates of an encrypted one."""
    from paraforge.base.shards.cluster import certificates, check_address

    if resources.scheduler is None:
        raise InputError("no scheduler is named", remedy="Say --scheduler tcp://HOST:8786.")
    check_address(resources.scheduler)
    names = {"ca": "ca-file", "cert": "cert", "key": "key"}
    return [
        *("worker", resources.scheduler, "--no-dashboard", "--local-directory", _TEMPORARY),
        *(_ON_GPU if gpus else ()),
        *(
            part
            for name, path in certificates(resources).items()
            for part in (f"--tls-{names[name]}", str(path))
        ),
    ]


def slurm_script(gpus: int, per_node: int, hours: int, command: Sequence[str]) -> str:
    """A script for ``sbatch``: a task for each GPU, or one for a node of its own."""
    nodes = -(-gpus // per_node) if gpus else 1
    if gpus % nodes:
        raise InputError(
            f"{gpus} GPUs on nodes of {per_node} leave a node in part", remedy="Say another --gpus."
        )
    each = gpus // nodes
    # Said twice: not every version of srun takes it from sbatch, and a task has one core by default.
    cores = [f"--cpus-per-task={_AT_ONCE}"] if gpus else []
    shape = (
        [f"--ntasks-per-node={each}", "--gpus-per-task=1"] if gpus else ["--ntasks-per-node=1", "--exclusive"]
    )
    options = ["--job-name=paraforge-workers", f"--nodes={nodes}", *shape, *cores, f"--time={hours}:00:00"]
    lines = [f"#SBATCH {option}" for option in (*options, "--requeue")]
    return "\n".join(["#!/bin/sh", *lines, shlex.join(["srun", *cores, *command]), ""])


def ssh_commands(hosts: Sequence[str], gpus: int, command: Sequence[str]) -> Iterator[list[str]]:
    """Command lines of ``ssh``: for each GPU of each host a worker that lives on when ssh ends. It fails,
    and prints the end of the log, if its worker has ended after a few seconds. Raises InputError: the GPUs
    cannot be shared out."""
    if gpus % len(hosts):
        raise InputError(
            f"{gpus} GPUs cannot be shared out to {len(hosts)} hosts", remedy="Say another --gpus."
        )
    for host in hosts:
        for number in range(max(1, gpus // len(hosts))):
            device = [f"CUDA_VISIBLE_DEVICES={number}"] if gpus else []
            log = f"paraforge-worker-{number}.log"
            remote = shlex.join(["nohup", "env", *device, *command])
            check = f"sleep {_STARTING_SECONDS}; kill -0 $! 2> /dev/null || {{ tail {log}; exit 1; }}"
            yield ["ssh", host, f"{remote} > {log} 2>&1 < /dev/null & {check}"]


def kubernetes_manifest(image: str, gpus: int) -> str:
    """A ``DaskCluster`` of the operator of dask-kubernetes, as YAML."""
    from paraforge.base.yaml_text import yaml_text

    limits = {"resources": {"limits": {"nvidia.com/gpu": 1}}} if gpus else {}
    ports = {"tcp-comm": 8786, "http-dashboard": 8787}
    scheduler = {
        "name": "scheduler",
        "image": image,
        "args": ["dask", "scheduler"],
        "ports": [{"name": name, "containerPort": port} for name, port in ports.items()],
        **{
            f"{kind}Probe": {"httpGet": {"port": "http-dashboard", "path": "/health"}}
            for kind in ("readiness", "liveness")
        },
    }
    one = {
        "name": "worker",
        "image": image,
        "args": ["dask", "worker", "--name", "$(DASK_WORKER_NAME)", *(_ON_GPU if gpus else ())],
        **limits,
    }
    service = {
        "type": "ClusterIP",
        "selector": {"dask.org/cluster-name": "paraforge", "dask.org/component": "scheduler"},
        "ports": [{"name": name, "port": port, "targetPort": name} for name, port in ports.items()],
    }
    return yaml_text(
        {
            "apiVersion": "kubernetes.dask.org/v1",
            "kind": "DaskCluster",
            "metadata": {"name": "paraforge"},
            "spec": {
                "scheduler": {"spec": {"containers": [scheduler]}, "service": service},
                "worker": {"replicas": max(1, gpus), "spec": {"containers": [one]}},
            },
        }
    )


def _resources(scheduler: str | None) -> Resources:
    from paraforge.interface.configuration import load_parameters

    path = Path("params.yaml")
    known = load_parameters(path).resources if path.is_file() else Resources()
    return known if scheduler is None else checked(Resources, {**known.model_dump(), "scheduler": scheduler})


def _run(command: Sequence[str], text: str = "") -> None:
    """Run a program with a text as its input. Raises IncompleteError: it is not there, or failed; with what
    it said."""
    name = shlex.join(command[:2])
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise IncompleteError(f"{name}: {error.strerror}") from error
    said = (done.stderr + done.stdout).strip()
    if done.returncode:
        raise IncompleteError(f"{name}: {said or f'exit status {done.returncode}'}")
    if said:
        typer.echo(said)


def _run_all(commands: Sequence[Sequence[str]]) -> None:
    """Run programs at the same time. Raises IncompleteError: some failed; all others have done their work."""
    with ThreadPoolExecutor(len(commands)) as pool:
        futures = [pool.submit(_run, command) for command in commands]
    if failed := [f"\n  - {error}" for future in futures if (error := future.exception()) is not None]:
        raise IncompleteError(f"{len(failed)} of {len(commands)} workers were not started:{''.join(failed)}")
