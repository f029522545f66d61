"""``paraforge translate`` as users call it."""

import gzip
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paraforge.base.errors import ConfigurationError
from paraforge.interface.cli import main
from paraforge.interface.cli.settings import settings_of
from tests.project import environment

COMMAND = [sys.executable, "-m", "paraforge", "translate"]


def run(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = ["paraforge", "translate", *map(str, arguments)]
    return subprocess.run(command, env=environment(), input=stdin, capture_output=True, timeout=120)


def rows(text: bytes) -> list[list[str]]:
    return [line.split("\t") for line in text.decode().splitlines()]


def test_translate_file_to_compressed_nbest(tmp_path: Path) -> None:
    # Only a line feed ends a line; the last one need not.
    source = tmp_path / "in.cs.gz"
    source.write_bytes(gzip.compress("Pes spí.\r\nKočka\u2028běží.\n\nDům".encode()))
    output = tmp_path / "out" / "out.tsv.gz"
    done = run(source, output, "--engine", "fake", "--nbest", "3")
    assert done.returncode == 0, done.stderr
    found = rows(gzip.decompress(output.read_bytes()))
    assert [row[:2] for row in found] == [
        [str(line), str(rank)] for line in (1, 2) for rank in range(3)
    ] + [["3", "0"]] + [["4", str(rank)] for rank in range(3)]  # fmt: skip
    scores = [float(row[2]) for row in found[:3]]
    assert scores == sorted(scores, reverse=True)
    assert found[6] == ["3", "0", "", ""]  # of a blank line there is no translation, and no score
    assert all(row[3] for row in found if row[0] != "3")
    assert b"4 sentences, 10 hypotheses, 1 empty" in done.stderr
    assert list(output.parent.iterdir()) == [output]


def test_translate_pipe_has_only_rows(tiny_model: Path) -> None:
    done = run("-", "-", "--model", tiny_model, "--beam", "3", stdin="pes spí\nvelký dům\n".encode())
    assert done.returncode == 0, done.stderr
    assert [row[0] for row in rows(done.stdout)] == ["1", "2"]
    assert all(float(row[2]) < 0 for row in rows(done.stdout))


@pytest.mark.full
def test_fairseq_prints_nothing_itself(tiny_model: Path) -> None:
    arguments = ("--model", tiny_model, "--engine", "fairseq", "--threads", "1")
    done = run("-", "-", *arguments, stdin=b"pes\n")
    assert done.returncode == 0, done.stderr
    assert rows(done.stdout)[0][3] == "dog"
    assert len(rows(done.stdout)) == 1


def test_closed_reader_is_not_an_error(tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("pes spí doma\n" * 20_000, encoding="utf-8")
    with subprocess.Popen(
        [*COMMAND, str(many), "-", "--engine", "fake"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == 0
    assert b"Traceback" not in errors and b"Broken pipe" not in errors


@pytest.mark.parametrize(
    ("content", "arguments", "code", "message"),
    [
        pytest.param(None, [], 2, "no such file", id="missing"),
        pytest.param(b"", [], 2, "the file is empty", id="empty"),
        pytest.param(b"pes\nko\xe8ka\n", [], 2, "2: not UTF-8", id="not UTF-8"),
        pytest.param(b"pes\n" + b"a" * 2_000_000, [], 2, "2: a line of more than 1,0", id="overlong"),
        pytest.param(gzip.compress(b"pes\n" * 9999)[:-9], [], 2, "damaged or truncated", id="truncated"),
        pytest.param(b"pes\n", ["--nbest", "6", "--beam", "5"], 2, "--nbest is 6", id="nbest over beam"),
        pytest.param(b"pes\n", ["--engine", "moses"], 2, "there is no engine 'moses'", id="no engine"),
        pytest.param(b"pes\n", ["--engine", "ctranslate2"], 2, "needs a model", id="no model"),
        pytest.param(b"pes\n", ["--engine", "ctranslate2", "--model", "/none"], 2, "/none", id="no folder"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.tsv"
    if content is not None:
        source.write_bytes(content)
    # The last --engine counts.
    given = ["translate", str(source), str(output), "--engine", "fake", *arguments]
    monkeypatch.setattr(sys, "argv", ["paraforge", *given])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("paraforge: ")
    assert message in last
    assert not output.exists()


@pytest.mark.full
def test_sigterm_keeps_translations(tmp_path: Path, tiny_model: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("pes spí velký dům a strom\n" * 200_000, encoding="utf-8")
    output = tmp_path / "out.tsv"
    with subprocess.Popen(
        [*COMMAND, str(many), str(output), "--model", str(tiny_model), "--threads", "1"],
        stderr=subprocess.PIPE,
    ) as process:
        part = tmp_path / "out.tsv.part"
        while process.poll() is None and not part.exists():
            time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
        assert b"interrupted" in process.stderr.read()
    assert not output.exists()
    assert part.exists()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["seed=3", "fail_pattern="], {"seed": 3, "fail_pattern": ""}),
        (["body={n: null}", "url=http://x/?a=b="], {"body": {"n": None}, "url": "http://x/?a=b="}),
    ],
)
def test_engine_settings_are_yaml(given: list[str], found: dict[str, object]) -> None:
    assert settings_of(given) == found


@pytest.mark.parametrize("given", ["seed", "=3", "seed=[", ""])
def test_unknown_engine_setting_is_named(given: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"--set {given}")):
        settings_of([given])
