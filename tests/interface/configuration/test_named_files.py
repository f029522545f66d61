"""Files of users in parameters: each has a link, and an unreadable one is named."""

import os
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from paraforge.base.text.paths import UserFile
from paraforge.interface.configuration import Parameters, check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.inputs import (
    LINKED,
    check_files,
    link_inputs,
    named_files,
    unreadable_files,
)
from tests.project import ROOT


def links(directory: Path) -> dict[str, Path]:
    return {path.name: path.readlink() for path in sorted(directory.iterdir())}


# Text of any kind that is no file of the user's: what it is instead.
NO_FILES = {
    "a name": [
        "ingest.sources.name", "translate.server.model", "translate.imported.name", "select.order",
        "select.filters.name", "embeddings.names", "embeddings.models.training.loss",
        "paragram.training.loss",
    ],
    "columns": [
        "ingest.sources.columns", "select.required", "select.deciles", "select.filters.score",
        "select.filters.column", "select.filters.files.columns", "paraphraser.test_files.columns",
    ],
    "languages": [
        "nmt.source_language", "nmt.target_language", "translate.server.source_language",
        "translate.server.target_language", "score.languages", "select.filters.languages",
        "publish.languages", "lexicon.language", "paraphraser.language",
    ],
    "patterns and templates": [
        "translate.fake.fail_pattern", "translate.server.system", "translate.server.user",
        "triplets.same_lines",
    ],
    "titles and tags": ["publish.name", "report.title", "publish.tags"],
    "licenses": ["publish.license", "publish.licenses", "ingest.sources.license"],
    "an address, devices or a size": ["resources.scheduler", "resources.devices", "resources.memory_limit"],
    "directories that are written": [
        "resources.translation_memory", "resources.work", "resources.worker_cache",
    ],
}  # fmt: skip


def texts(
    annotation: Any, key: str = "", marked: bool = False, above: Any = ()
) -> Iterator[tuple[str, bool]]:
    """Every field of text or paths below a type, and whether it is marked as a file of the user's."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        if issubclass(annotation, BaseModel):
            for name, field in annotation.model_fields.items() if annotation not in above else ():
                inner = f"{key}.{name}".removeprefix(".")
                is_marked = any(isinstance(one, UserFile) for one in field.metadata)
                yield from texts(field.annotation, inner, is_marked, (*above, annotation))
        elif issubclass(annotation, str | Path):
            yield key, marked
    elif typing.get_origin(annotation) is typing.Annotated:
        kind, *metadata = typing.get_args(annotation)
        yield from texts(kind, key, marked or any(isinstance(one, UserFile) for one in metadata), above)
    elif typing.get_origin(annotation) is not typing.Literal:
        arguments = typing.get_args(annotation)
        for argument in arguments[1:] if typing.get_origin(annotation) is dict else arguments:
            yield from texts(argument, key, marked, above)


def test_text_parameters_are_classified_as_files() -> None:
    found = set(texts(Parameters))
    ingest = {key.removeprefix("nmt.bitext.sources") for key, _ in found if key.startswith("nmt.bitext.")}
    assert ingest <= {key.removeprefix("ingest.sources") for key, _ in found}
    assert {key.removeprefix("pivots.") for key, _ in found} <= {key for key, _ in found}
    unmarked = {key for key, marked in found if not marked and not key.startswith(("nmt.bitext.", "pivots."))}
    units = {key for key in unmarked if key.startswith("embeddings.models.encoder.")}
    assert unmarked - units == {key for keys in NO_FILES.values() for key in keys}


COLUMNS = {"source_text": 0, "reference": 1}
ALONE = {"format": "moses", "paths": {"reference": "%"}}
SOURCES = [
    {"name": "a", "format": "moses", "paths": {"source_text": "%", "reference": "%"}, "drop_rows": "%"},
    {"name": "b", "format": "tsv", "path": "%", "columns": COLUMNS},
    {"name": "c", "format": "tsv", "path": ["%", "%"], "columns": COLUMNS},
]
# Every parameter that names a file, with one.
NAMED = {
    "ingest": {"sources": SOURCES},
    "nmt": {"model": "./%", "bitext": {"sources": SOURCES}},
    "pivots": {
        "de": {
            "ingest": {"sources": [{**one, "name": f"{one['name']}-de"} for one in SOURCES]},
            "nmt": {"model": "./%", "bitext": {"sources": SOURCES}},
        }
    },
    "paragram": {"vectors": "%", "pair_files": [{"path": "%"}]},
    "score": {"sentence_transformer": "%", "cross_encoder": "%"},
    "select": {
        "filters": [
            {"kind": "decontamination", "files": [{"path": "%"}]},
            {"kind": "near_repeats", "model": "%"},
        ]
    },
    "lexicon": {"word_lists": ["%"], "reference_lexicons": ["%"]},
    "embeddings": {
        "models": {
            "word": {
                **dict.fromkeys(("vectors", "sentencepiece_model", "teacher"), "%"),
                "training": {"loss": "distil"},
            }
        },
        "pair_files": [{"path": "%"}],
        "development": ["%"],
        "test_sets": ["%"],
    },
    "statistics": {"background": {"path": "%"}, "parser": "%"},
    "paraphraser": {"model": "./%", "templates": {"parser": "%"}, "test_files": [{"path": "%"}]},
    "triplets": {"encoder": "%"},
}
# Not beside what NAMED has: of one field, or of one source, there are two kinds.
OTHERS = [
    {"nmt": {"bitext": "%"}, "pivots": {"de": {"ingest": {"sources": SOURCES[:1]}, "nmt": {"bitext": "%"}}}},
    {"paragram": {"model": "%"}, "embeddings": {"models": {"word": {"start": "%"}}}},
    {
        "ingest": {"kind": "references", "sources": [{"name": "d", **ALONE}]},
        "nmt": {"model": "./%", "forward": "./%"},
        "pivots": {
            "de": {
                "ingest": {"kind": "references", "sources": [{"name": "d-de", **ALONE}]},
                "nmt": {"model": "./%", "forward": "./%"},
            }
        },
    },
]


def named_somewhere(value: Any, names: Iterator[int]) -> Any:
    """The value with a name of its own for each %."""
    if isinstance(value, dict):
        return {key: named_somewhere(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [named_somewhere(one, names) for one in value]
    return value.replace("%", f"file-{next(names)}") if isinstance(value, str) else value


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Parameters]:
    """Parameters that together name a file by every field that can."""
    monkeypatch.chdir(tmp_path)
    content = compose(ROOT / "configs", ["translation=sample"])
    found = []
    for changes in (NAMED, *OTHERS):
        changed = named_somewhere(changes, iter(range(100)))
        sections = {name: {**section, **changed.get(name, {})} for name, section in content.items()}
        found.append(check_parameters(sections, "here"))
    return found


def test_named_files_have_link_and_dependency(watched: list[Parameters], tmp_path: Path) -> None:
    keys = set()
    for number, parameters in enumerate(watched):
        for stage in LINKED:
            named = list(named_files(parameters, stage))
            inner = r"\.(\d+|word|de|decontamination|near_repeat|command|source_text|reference)(?=\.|$)"
            keys |= {re.sub(inner, "", one.key) for one in named}
            paths = {Path(one.text) for one in named if one.text not in ("train", "none")}
            for path in paths:
                path.touch()
            root = tmp_path / str(number)
            link_inputs(parameters, [stage], root)
            found = set(links(root / stage).values())
            assert {(root / stage / target).resolve() for target in found} == {
                path.resolve() for path in paths
            }
            # Those of a project that is moved or copied name its own files.
            assert not any(target.is_absolute() for target in found)
            for path in paths:
                path.unlink()
    assert keys == {key for key, marked in texts(Parameters) if marked}

    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    watching = [name for name, stage in stages.items() if f"inputs/{name}" in stage.get("deps", [])]
    assert sorted(watching) == sorted(LINKED)
    # DVC stops where a dependency does not exist, also in a fresh clone.
    assert all((ROOT / "inputs" / name / ".gitignore").is_file() for name in watching)


def test_unreadable_named_file_is_a_problem(watched: list[Parameters]) -> None:
    os.mkfifo("pipe")
    for parameters in watched:
        named = [file for stage in LINKED for file in named_files(parameters, stage)]
        named = [one for one in named if one.text not in ("train", "none")]
        problems = unreadable_files(parameters)
        assert [problem.partition(":")[0] for problem in problems] == [one.key for one in named]
        for one in named:
            Path(one.text).touch()
        assert unreadable_files(parameters) == []
        for target in ("pipe", "/dev/zero"):
            for one in named:
                Path(one.text).unlink()
                Path(one.text).symlink_to(target)
            assert len(unreadable_files(parameters)) == len(named)
        for one in named:
            Path(one.text).unlink()


def test_missing_source_file_is_one_problem(tmp_path: Path) -> None:
    content = compose(ROOT / "configs", ["translation=fake"])
    content["ingest"]["sources"] = [
        {"name": "b", "format": "tsv", "path": str(tmp_path / "gone.tsv"), "columns": COLUMNS}
    ]
    content["paragram"]["vectors"] = str(tmp_path / "gone.txt")
    found = check_files(check_parameters(content, "here"))
    assert [problem.partition(": ")[0] for problem in found] == ["ingest", "paragram.vectors"]


def test_model_is_path_word_or_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "there").mkdir(parents=True)
    (tmp_path / "models" / "there" / "model.bin").touch()
    content = compose(ROOT / "configs", [])

    def problems(model: str) -> list[str]:
        content["nmt"]["model"] = model
        return unreadable_files(check_parameters(content, "here"))

    for model in ("train", "none", "Helsinki-NLP/opus-mt-cs-en", "models/there"):
        assert problems(model) == []
    for model in ("/nowhere", "nowhere.zip", "./models/mine", "models/mine"):
        assert len(problems(model)) == 1
    content["nmt"]["model"] = "Helsinki-NLP/opus-mt-cs-en"
    parameters = check_parameters(content, "here")
    assert check_files(parameters) == []
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "'huggingface_hub'" in str(check_files(parameters))
    (tmp_path / "alone.en").write_text("A dog runs.\n" * 20)
    source = {"name": "d", **ALONE, "paths": {"reference": "alone.en"}}
    content["ingest"] = {"kind": "references", "sources": [source]}
    content["nmt"] |= {"model": "Helsinki-NLP/opus-mt-cs-en", "forward": "Helsinki-NLP/opus-mt-en-cs"}
    found = check_files(check_parameters(content, "here"))
    assert [one.partition(": ")[0] for one in found] == ["nmt.model", "nmt.forward"]


def test_files_beside_checkpoint_are_dependencies(tmp_path: Path) -> None:
    read = ["checkpoint_best.pt", "dict.cs.txt", "dict.en.txt", "sentencepiece.model"]
    for name in [*read, "checkpoint_last.pt", "training.log"]:
        (tmp_path / name).touch()
    (tmp_path / "dict.old.txt").mkdir()
    overrides = [f"nmt.model={tmp_path / read[0]}"]
    parameters = check_parameters(compose(ROOT / "configs", overrides), "here")
    link_inputs(parameters, ["nmt"], tmp_path / "inputs")
    assert [path.name for path in links(tmp_path / "inputs" / "nmt").values()] == read


@pytest.mark.parametrize("name", ["x" * 250 + ".txt", "x" * 248 + ".txt", "ž" * 125 + ".tsv"])
def test_longest_file_name_has_link(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    content = compose(ROOT / "configs", ["translation=fake"])
    content["paragram"]["vectors"] = str(tmp_path / name)
    link_inputs(check_parameters(content, "here"), ["paragram"], tmp_path / "inputs")
    assert list(links(tmp_path / "inputs" / "paragram").values()) == [tmp_path / name]


def test_links_match_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a b.cs", "a b.en", "1.tsv", "2.tsv", "drop.tsv", "held.txt", "vectors.txt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("SOME_PLACE", str(tmp_path))
    monkeypatch.delenv("NOT_SET", raising=False)
    content = compose(ROOT / "configs", ["translation=fake"])
    sides = {"source_text": "$SOME_PLACE/a b.cs", "reference": "$SOME_PLACE/a b.en"}
    tables = ["$SOME_PLACE/?.tsv", "$SOME_PLACE/gone.tsv"]
    content["ingest"]["sources"] = [
        {"name": "a", "format": "moses", "paths": sides, "drop_rows": "$SOME_PLACE/drop.tsv"},
        {"name": "b", "format": "tsv", "path": tables, "columns": COLUMNS},
        {"name": "c", "format": "tsv", "path": "$NOT_SET/x.tsv", "columns": COLUMNS},
        {"name": "d", "format": "sample"},
    ]
    (tmp_path / "teacher").mkdir()
    for name in ("_shards.json", "shard-00000.parquet"):
        (tmp_path / "teacher" / name).touch()
    content["nmt"]["bitext"] = str(tmp_path / "teacher")
    (tmp_path / "sts" / ".cache").mkdir(parents=True)
    for name in ("a.tsv", ".hidden.tsv", ".cache/b.tsv"):
        (tmp_path / "sts" / name).touch()
    content["embeddings"]["development"] = [str(tmp_path / "sts")]
    # A model that is not trained reads nothing.
    content["embeddings"]["models"]["other"] = {"vectors": str(tmp_path / "drop.tsv")}
    content["paragram"]["vectors"] = "$SOME_PLACE/vectors.txt"
    held = [{"path": "$SOME_PLACE/held.txt"}, {"path": "gone.txt"}]
    content["select"]["filters"] = [{"kind": "decontamination", "files": held}]
    root = tmp_path / "inputs"
    (root / "score").mkdir(parents=True)
    (root / "score" / ".gitignore").write_text("*")
    link_inputs(check_parameters(content, "here"), root=root)
    assert [path.name for path in (root / "score").iterdir()] == [".gitignore"]  # which is no link
    names = ("drop.tsv", "a b.cs", "a b.en", "1.tsv", "2.tsv")
    assert links(root / "ingest") == {f"{n:03d}-{name}": tmp_path / name for n, name in enumerate(names)}
    assert links(root / "nmt") == {"000-_shards.json": tmp_path / "teacher" / "_shards.json"}
    assert links(root / "paragram") == {"000-vectors.txt": tmp_path / "vectors.txt"}
    assert links(root / "select") == {"000-held.txt": tmp_path / "held.txt"}
    assert links(root / "embeddings") == {"000-a.tsv": tmp_path / "sts" / "a.tsv"}
    # A file of the same name elsewhere, and one that is gone.
    (tmp_path / "other").mkdir()
    (tmp_path / "vectors.txt").rename(tmp_path / "other" / "vectors.txt")
    content["paragram"]["vectors"] = "$SOME_PLACE/other/vectors.txt"
    (tmp_path / "held.txt").unlink()
    content["ingest"]["sources"] = content["ingest"]["sources"][1:]
    link_inputs(check_parameters(content, "here"), ["ingest", "select", "paragram"], root)
    assert links(root / "ingest") == {"000-1.tsv": tmp_path / "1.tsv", "001-2.tsv": tmp_path / "2.tsv"}
    assert links(root / "select") == {}
    assert links(root / "paragram") == {"000-vectors.txt": tmp_path / "other" / "vectors.txt"}
