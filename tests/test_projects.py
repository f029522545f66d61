"""``paraforge init``: a project of one's own, its bitext looked at first; nothing of a user's is overwritten,
and one of an earlier version comes up to date without running what did not change."""

import configparser
import csv
import gzip
import importlib.util
import json
import lzma
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from paraforge import versions
from paraforge.base.errors import InputError, MissingPackageError, ParaforgeError
from paraforge.intake.sample_bitext import generate
from paraforge.interface.cli.annotate import DATABASE
from paraforge.interface.cli.project import init
from paraforge.interface.configuration import load_parameters
from paraforge.interface.project import creation, files
from paraforge.interface.project.bitext import look_at, look_at_table
from paraforge.interface.project.files import VERSIONS, check_versions, read_versions
from paraforge.interface.project.upgrade import project_findings, reasons, upgrade
from paraforge.stages.common import parameters_of
from tests.here import run_command
from tests.project import ROOT, digests, run

FORMER = Path(__file__).parent / "former_project"
"""A project as version 0.1.0 made it, run with the fake engine up to the corpus: without its data, and
with most of its configurations left out. `configs/score/default.yaml` and `configs/corpus/my.yaml` are its
user's."""


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project; it is only read or copied."""
    directory = tmp_path_factory.mktemp("projects") / "my"
    run("paraforge", "init", str(directory), cwd=directory.parent)
    return directory


@pytest.fixture
def project(new: Path, tmp_path: Path) -> Path:
    return shutil.copytree(new, tmp_path / "my", symlinks=True)


@pytest.fixture
def former(tmp_path: Path) -> Path:
    return shutil.copytree(FORMER, tmp_path / "former", symlinks=True)


def bitext(directory: Path, czech: str = "a.cs.gz", english: str = "a.en.gz") -> tuple[Path, Path]:
    """200 sentences of the sample in both languages."""
    pairs = list(generate(200))
    for name, texts in ((czech, [one.cs for one in pairs]), (english, [one.reference for one in pairs])):
        data = "".join(f"{text}\n" for text in texts).encode()
        packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(name).suffix, bytes)(data)
        (directory / name).write_bytes(packed)
    return directory / czech, directory / english


def test_a_new_project_is_like_the_clone(new: Path) -> None:
    """Its stages and choices are the clone's, its parameters the sample's; git and DVC take it."""
    clone = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    assert (new / "dvc.yaml").read_text(encoding="utf-8") == clone.replace(
        "pipeline/versions.py", "versions.yaml"
    )
    assert load_parameters(new / "params.yaml") == load_parameters(ROOT / "params.yaml")
    mine = {name: digest for name, digest in digests(new / "configs").items() if name != "corpus/my.yaml"}
    assert mine == {k: v for k, v in digests(ROOT / "configs").items() if k != "corpus/my.yaml"}
    assert (new / ".git").is_dir()
    made = ["work/x", "data/corpus/x", "models/nmt", "inputs/nmt/x", str(DATABASE), f"{DATABASE}-wal"]
    settings = [configparser.ConfigParser(interpolation=None) for _ in range(2)]
    for place, one in zip((ROOT, new), settings, strict=True):
        one.read(place / ".dvc" / "config", encoding="utf-8")
    assert settings[0] == settings[1] and not settings[1].getboolean("hydra", "enabled")
    assert run("git", "check-ignore", *made, cwd=new).stdout.splitlines() == made
    untracked = run(
        "git", "ls-files", "--others", "--exclude-standard", "--cached", cwd=new
    ).stdout.splitlines()
    assert {"params.yaml", "inputs/ingest/.gitignore", "data/.gitignore", ".dvcignore"} <= set(untracked)
    assert "everything" not in run("dvc", "status", cwd=new).stderr
    assert len((new / "README.md").read_text(encoding="utf-8").splitlines()) <= 10
    assert read_versions(new) is not None and reasons(new) == {}


def test_the_place_for_a_bitext_is_one_that_configure_takes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "data" / "raw").mkdir()
    bitext(project / "data" / "raw", "my.cs.gz", "my.en.gz")
    monkeypatch.chdir(project)
    said = run_command("configure", "corpus=my", "translation=small", "select=quality").output
    assert "runs every stage" in said
    # The texts, and of each stage the group files that set its parameters.
    for stage, expected in (
        ("ingest", {"my.cs.gz", "my.en.gz", "my.yaml"}),
        ("nmt", {"small.yaml"}),
        ("select", {"quality.yaml"}),
    ):
        names = (path.name for path in (project / "inputs" / stage).glob("0*"))
        assert {name.split("-", 1)[1] for name in names} == expected


@pytest.mark.parametrize("swapped", [False, True])
def test_a_bitext_is_looked_at(swapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    czech, english = bitext(tmp_path, "news.cs.gz", "news.en.xz")
    given = (english, czech) if swapped else (czech, english)
    said = run_command("init", "my", "--bitext", *given).output
    assert re.search(r"source_text: .*news\.cs\.gz, 200 lines, cs", said)
    parameters = load_parameters(tmp_path / "my" / "params.yaml")
    (source,) = parameters.ingest.sources  # type: ignore[union-attr]
    assert source.paths == {"source_text": str(czech), "reference": str(english)}
    assert parameters.nmt.source_language == "cs"
    monkeypatch.chdir(tmp_path / "my")
    assert "nothing changes" in run_command("configure").output


def test_references_that_are_not_english_have_another_scorer(tmp_path: Path) -> None:
    first, second = bitext(tmp_path, "a.cs", "a.en")
    third = tmp_path / "b.de"
    third.write_text("Der Hund läuft über die Straße.\n" * 200, encoding="utf-8")
    found = look_at(first, third)
    assert found.languages == ("cs", "de") and "paragram=corpus" in found.choices
    assert "paragram=corpus" not in look_at(first, second).choices


def _rows(tmp_path: Path) -> list[tuple[str, str]]:
    czech, english = bitext(tmp_path, "a.cs", "a.en")
    return list(
        zip(*(path.read_text(encoding="utf-8").splitlines() for path in (czech, english)), strict=True)
    )


def _write_tsv(path: Path, rows: list[tuple[str, str]]) -> None:
    lines = [f"{n}\tces\t{czech}\ta/file-{n}.xml\t{english}\n" for n, (czech, english) in enumerate(rows)]
    path.write_bytes(gzip.compress("".join(lines).encode()))


def _write_csv(path: Path, rows: list[tuple[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([("anglicky", "česky"), *(row[::-1] for row in rows)])


def _write_jsonl(path: Path, rows: list[tuple[str, str]]) -> None:
    items = (
        {"id": n, "translation": {"en": english, "cs": czech}} for n, (czech, english) in enumerate(rows)
    )
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")


def _write_parquet(path: Path, rows: list[tuple[str, str]]) -> None:
    sides = {
        "translation": [{"cs": czech, "en": english} for czech, english in rows],
        "kind": ["a"] * len(rows),
    }
    parquet.write_table(pa.table(sides), path)


TABLES: dict[
    str, tuple[Callable[[Path, list[tuple[str, str]]], None], list[int | str], dict[str, object]]
] = {
    "t.tsv.gz": (_write_tsv, [2, 4], {"format": "tsv", "header": False}),
    "t.csv": (_write_csv, ["česky", "anglicky"], {"format": "csv", "header": True, "separator": ";"}),
    "t.jsonl": (_write_jsonl, ["translation.cs", "translation.en"], {"format": "jsonl"}),
    "t.parquet": (_write_parquet, ["translation.cs", "translation.en"], {"format": "parquet"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_columns_of_a_table_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("py3langid")
    write, columns, reading = TABLES[name]
    write(tmp_path / name, _rows(tmp_path))
    said = run_command("init", tmp_path / "my", "--table", tmp_path / name).output
    assert re.search(rf"source_text: column .* of .*{name}, 200 lines, cs", said)
    monkeypatch.chdir(tmp_path / "my")
    parameters = load_parameters(Path("params.yaml"))
    (source,) = parameters.ingest.sources  # type: ignore[union-attr]
    assert {**source.model_dump(), **reading} == source.model_dump()
    assert source.columns == dict(zip(("source_text", "reference"), columns, strict=True))
    assert (parameters.nmt.source_language, parameters.nmt.target_language) == ("cs", "en")
    assert "nothing changes" in run_command("configure").output


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"text", r"a\.pdf: a table is named \.tsv"),
        ("a.tsv", b"one\ttwo\n" * 30, "with text one has to be English and one of another language: none"),
        ("a.tsv", b"", "empty"),
        ("a.csv", b'a,"' + b"x" * 200_000 + b'"\n', "no comma-separated values"),
        ("a.jsonl", b"{}\n[1]\n", "no JSON objects of one kind"),
        ("a.parquet", b"PAR1nothing", "no Parquet file"),
        ("missing.tsv", None, "no such file"),
    ],
)
def test_a_bad_table_is_refused_before_anything_is_written(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        run_command("init", tmp_path / "my", "--table", tmp_path / name)
    assert not (tmp_path / "my").exists()


def test_a_language_without_spaces_is_no_column_of_names(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    path = tmp_path / "a.tsv"
    chinese = [
        f"{start}喜欢{thing}，所以每天都去买一些。"
        for start in "我你他她"
        for thing in ("茶", "书", "米饭", "花", "咖啡", "水果")
    ]
    path.write_text(
        "".join(f"{one}\t{english}\n" for one, (_, english) in zip(chinese, _rows(tmp_path), strict=False)),
        encoding="utf-8",
    )
    found = look_at_table(path)
    assert (found.columns, found.languages, found.lines) == ((0, 1), ("zh", "en"), 24)


def test_two_columns_of_one_language_are_not_guessed(tmp_path: Path) -> None:
    pytest.importorskip("py3langid")
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{czech}\t{english}\t{english}!\n" for czech, english in _rows(tmp_path)))
    with pytest.raises(InputError, match=r"0 in 'cs', 1 in 'en', 2 in 'en'.*my\.yaml"):
        look_at_table(path)


def _shorter(first: Path, second: Path) -> tuple[Path, Path]:
    second.write_text("A dog.\n" * 199)
    return first, second


def _renamed(first: Path, second: Path) -> tuple[Path, Path]:
    spare = first.with_name("x")
    first.rename(spare)
    second.rename(first)
    spare.rename(second)
    return first, second


BAD_BITEXTS: dict[str, tuple[Callable[[Path, Path], tuple[Path, Path]], str]] = {
    "lines": (_shorter, r"a\.en.*19\d|19\d.*lines"),
    "missing": (lambda first, second: (first, second.with_name("gone.en")), r"gone\.en: no such file"),
    "same": (lambda first, second: (first, first), "both sides are the same file"),
    "directory": (lambda first, second: (first, first.parent), "this is a directory"),
    "language": (_renamed, r"its name says 'cs', and its text looks like 'en'"),
}


@pytest.mark.parametrize("name", BAD_BITEXTS)
def test_a_bad_bitext_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    if name == "language" and importlib.util.find_spec("py3langid") is None:
        pytest.skip("py3langid is not installed")
    spoil, message = BAD_BITEXTS[name]
    given = spoil(*bitext(tmp_path, "a.cs", "a.en"))
    with pytest.raises(InputError, match=message):
        run_command("init", tmp_path / "my", "--bitext", *given)
    assert not (tmp_path / "my").exists()


def test_nothing_of_a_users_is_overwritten(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"thesis{number}.tex").touch()
    before = digests(tmp_path)
    with pytest.raises(InputError, match=r"not empty: it has thesis0\.tex, .*thesis4\.tex and 2 more"):
        run_command("init", tmp_path)
    with pytest.raises(InputError, match="this is a file"):
        run_command("init", tmp_path / "thesis0.tex")
    assert digests(tmp_path) == before


def test_without_dvc_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "importlib", type("None", (), {"util": type("", (), {"find_spec": print})}))
    with pytest.raises(MissingPackageError, match=r"\[pipeline\]"):
        run_command("init", tmp_path / "my")
    assert not (tmp_path / "my").exists()


@pytest.mark.parametrize("place", ["in a repository", "no git"])
def test_where_the_repository_is(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place == "no git":
        monkeypatch.setattr(creation.shutil, "which", lambda name: None)
    else:
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    run_command("init", tmp_path / "my", "--sample")
    assert not (tmp_path / "my" / ".git").exists()
    assert ("no_scm" in (tmp_path / "my" / ".dvc" / "config").read_text()) == (place == "no git")
    assert run("dvc", "status", cwd=tmp_path / "my").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["my", "--sample", "--bitext", "a", "b"],
        ["my", "--upgrade", "--sample"],
        ["my", "--sample", "--table", "a"],
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParaforgeError):
        run_command("init", *arguments)
    assert not list(tmp_path.iterdir())
    assert init.__doc__


def test_a_project_of_other_steps_stops(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    check_versions()
    monkeypatch.setattr(versions, "SELECT", versions.SELECT + 1)
    with pytest.raises(InputError, match=r"versions\.yaml: of paraforge .*paraforge init --upgrade"):
        parameters_of("publish")
    assert [one.remedy for one in project_findings(project) if one.state == "broken"] == [
        "paraforge init --upgrade"
    ]
    run_command("init", "--upgrade")
    check_versions()
    assert yaml.safe_load(VERSIONS.read_text(encoding="utf-8"))["SELECT"] == versions.SELECT


@pytest.mark.parametrize("command", [["configure"], ["configure", "score=none"], ["plan", "--rate", "1"]])
@pytest.mark.parametrize("older", ["a step", "a file", "0.1.0"])
def test_commands_refuse_a_project_of_other_steps_and_name_the_one_that_helps(
    older: str, command: list[str], project: Path, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = former if older == "0.1.0" else project
    monkeypatch.chdir(place)
    if older == "a file":
        VERSIONS.write_text("paraforge: 0.1.0\n", encoding="utf-8")
    elif older == "a step":
        monkeypatch.setattr(versions, "INGEST", versions.INGEST + 1)
    before = digests(place)
    with pytest.raises(InputError, match=r"versions\.yaml: .*paraforge init --upgrade"):
        run_command(*command)
    assert digests(place) == before
    assert "paraforge init --upgrade" in [one.remedy for one in project_findings(place)]
    run_command("init", "--upgrade")
    run_command("configure", "--no-files")
    assert all(one.state != "broken" for one in project_findings(place))


@pytest.mark.parametrize("content", ["", "[", "a: 1\n", "paraforge: 1\nwritten: 2\n", "\xff"])
def test_a_damaged_versions_file_is_written_again(content: str, project: Path) -> None:
    (project / VERSIONS).write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"versions\.yaml: .*paraforge init --upgrade"):
        check_versions(project)
    upgrade(project)
    check_versions(project)


def test_an_upgrade_touches_what_the_user_did_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file in turn: as it was written it is brought up to date, changed or deleted it stays."""
    wanted = files.project_files("my")
    names = sorted(wanted, key=lambda name: (name != "dvc.yaml", name))  # without it there is no project
    changed, deleted = names[::3], names[1::3]
    for name in changed:
        with (project / name).open("a", encoding="utf-8") as file:
            file.write("# mine\n")
    for name in deleted:
        (project / name).unlink()
    (project / "configs" / "select" / "mine.yaml").write_text("# @package _global_\n")
    (project / "params.yaml").write_text("mine: 1\n")
    before = digests(project)
    newer = {name: f"{text}# newer\n" for name, text in wanted.items()} | {
        "configs/novel/one.yaml": "# new\n"
    }
    monkeypatch.setattr("paraforge.interface.project.upgrade.project_files", lambda name: newer)
    for repeated in (False, True):
        done = upgrade(project)
        assert sorted(done.kept) == sorted(changed)
        assert sorted(done.updated) == ([] if repeated else names[2::3])
        assert done.new == ([] if repeated else ["configs/novel/one.yaml"])
        after = digests(project)
        differing = {name for name in before | after if before.get(name) != after.get(name)}
        assert differing == {*names[2::3], "configs/novel/one.yaml", str(VERSIONS)} - {
            str(VERSIONS) for _ in [0] if before.get(str(VERSIONS)) == after[str(VERSIONS)]
        }
    assert (project / names[2]).read_text(encoding="utf-8") == newer[names[2]]


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 1, 2, 3, 9, -2, -1])
def test_what_was_killed_midway_continues(
    new: Path, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before any command that it starts or file that it writes: the same command makes the project."""
    steps = 0

    def counted(function: Callable[..., None], last: int) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            nonlocal steps
            if steps == last:
                raise KeyboardInterrupt
            steps += 1
            function(*arguments)

        return call

    real = {name: getattr(creation, name) for name in ("_run", "write_whole", "write_versions")}

    def make(last: int) -> None:
        for name, function in real.items():
            monkeypatch.setattr(creation, name, counted(function, last))
        creation.make_project(tmp_path / "my")

    if step < 0:
        make(1000)
        shutil.rmtree(tmp_path / "my")
        step, steps = steps + step, 0
    with pytest.raises(KeyboardInterrupt):
        make(step)
    steps = 0
    make(1000)

    def made(project: Path) -> dict[str, str]:
        kept = digests(project).items()
        return {name: one for name, one in kept if not name.startswith((".git/", ".dvc/tmp", ".dvc/cache"))}

    assert made(tmp_path / "my") == made(new)
    with pytest.raises(InputError, match="not empty"):
        creation.make_project(tmp_path / "my")
