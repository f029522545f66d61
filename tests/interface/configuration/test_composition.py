"""Composition of choices: every choice composes, and every mistake is named."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.section import Section
from paraforge.base.yaml_text import read_yaml_text, yaml_text
from paraforge.embeddings.trainer.parameters import TrainingParameters
from paraforge.interface.configuration import PATTERNS, Parameters, check_parameters, load_parameters
from paraforge.interface.configuration.composition import choices, compose, place_of, value_of, value_text
from paraforge.interface.configuration.parameters import STAGE_OUTPUTS
from paraforge.translation.training.parameters import NmtTrainingParameters
from tests.project import ROOT

CONFIGS = ROOT / "configs"
# Every choice in one row, together with choices of the other groups.
ROWS = list(itertools.zip_longest(
    *([f"{group}={name}" for name in names] for group, names in choices(CONFIGS).items())
))  # fmt: skip
# Choices that need a value from the user, with one.
NEEDED = {
    "ready": ["nmt.model=models/opus"],
    "imported": ["translate.imported.name=marian"],
    "server": ["translate.server.model=m"],
}


@pytest.mark.parametrize("row", [*ROWS, ("corpus=paranmt-tsv",)], ids=lambda row: row)
def test_all_choices_compose(row: tuple[str | None, ...]) -> None:
    chosen = [one for one in row if one]
    if "pivots=sample" in chosen:  # pivots are of a bitext
        chosen = [one for one in chosen if one != "corpus=paranmt-tsv"]
    needed = [value for one in chosen for value in NEEDED.get(one.partition("=")[2], [])]
    needed += ["pivots.art.nmt.model=none"] * ("pivots=sample" in chosen)
    check_parameters(compose(CONFIGS, [*chosen, *needed]), "params.yaml")


@pytest.mark.parametrize(
    "choices",
    [
        ["nmt.target_language=de"],
        ["ingest.sources=[{name: a, format: tmx, path: a.tmx, columns: {source_text: cs, reference: de}}]"],
    ],
)  # fmt: skip
def test_built_in_scorer_needs_english(choices: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=r"the built-in scorer is English.*paragram=corpus"):
        compose(CONFIGS, choices)
    for accepted in (
        [*choices, "paragram=corpus"],
        [*choices, "paragram.vectors=v.txt"],
        ["nmt.target_language=eng_Latn"],
    ):
        compose(CONFIGS, accepted)


def test_pivots_exclude_sentence_limit() -> None:
    with pytest.raises(ConfigurationError, match=r"translate\.maximum_sentences: not possible with pivots"):
        compose(CONFIGS, ["pivots=sample", "translate.maximum_sentences=9"])


@pytest.mark.parametrize(
    ("given", "language"), [([], "art"), (["pivots.art.nmt.source_language=art_Latn"], "art_Latn")]
)
def test_pivots_have_own_language_and_work_directory(given: list[str], language: str) -> None:
    content = compose(CONFIGS, ["pivots=sample", "pivots.art.nmt.model=none", *given])
    parameters = check_parameters(content, "here")
    first, (name, place, other) = parameters.by_pivot()
    assert first == ("cs", Path(), parameters)
    assert (name, place, other.nmt.source_language) == ("art", Path("pivots/art"), language)
    assert other.resources.work == parameters.resources.work / "pivot-art"
    assert other.resources.memory_directory() == parameters.resources.memory_directory()


def test_default_matches_repository() -> None:
    assert yaml.safe_load((ROOT / "params.yaml").read_text()) == compose(CONFIGS, [])


def test_all_configuration_problems_at_once() -> None:
    expected = {
        "translate.beam=0": "translate.beam: 0: should be greater than or equal to 1",
        f"translate.nbest={'m' * 99}": f"translate.nbest: '{'m' * 76}...: should be a valid integer",
        "score.colour=red": "score.colour: there is no such parameter",
        "resources.workers=-1": "resources.workers: -1: should be greater than or equal to 0",
        # A file of choices has this key, but not this value.
        "ingest.sources=[]": "ingest.sources: []: list should have at least 1 item",
    }
    with pytest.raises(ConfigurationError) as caught:
        compose(CONFIGS, list(expected))
    message = str(caught.value)
    assert message.startswith("5 problems") and ".yaml" not in message
    assert all(part in message for part in expected.values())


def test_errors_show_no_regular_expression() -> None:
    asked = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(Parameters.model_json_schema())))
    assert set(map(json.loads, asked)) == set(PATTERNS)
    with pytest.raises(ConfigurationError, match=r"sources.0.name: 'a b': should be letters, digits, "):
        compose(CONFIGS, ["ingest.sources=[{name: a b, format: sample}]"])


def test_dvc_finds_default_keys() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].values()
    named = [name for stage in stages for name in stage["params"] if isinstance(name, str)]
    names = {"embeddings.names", *(name.replace("${item.name}", "word") for name in named)}
    sections = Parameters.model_fields
    needed = {name for name, one in sections.items() if one.is_required()}
    needed |= {"ingest.sources", "embeddings.models.word"}
    content = compose(ROOT / "configs", [f"~{name}" for name in sorted(names - needed)])
    for name in names:
        container, last = place_of(content, name, create=False)
        assert last in container, name


def test_stages_do_not_remove_kept_files() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].values()
    named = [one for stage in stages for one in stage["outs"] if str(one) == one]
    outputs = {one.removesuffix("/${item.name}") for one in named}
    unlike = {*STAGE_OUTPUTS} ^ (outputs - {"reports/report.html"})
    assert not unlike, f"of STAGE_OUTPUTS (configuration/parameters.py) and dvc.yaml, only one has {unlike}"
    compose(CONFIGS, ["resources.work=data/work", "resources.translation_memory=models/memory"])
    for key, path in (("work", "data/translated"), ("translation_memory", "./work/../models/nmt/memory")):
        with pytest.raises(ConfigurationError, match=f"resources.{key}: 'dvc repro' removes (data|models)/"):
            compose(CONFIGS, [f"resources.{key}={path}"])


def sections(of: type[Section] = Section) -> Iterator[type[Section]]:
    for section in of.__subclasses__():
        yield section
        yield from sections(section)


def test_booleans_are_not_numbers_and_paths_not_empty() -> None:
    found = set()
    for section in sections():
        for name, schema in section.model_json_schema().get("properties", {}).items():
            kinds = set(re.findall(r'"(?:type|format)": "(\w+)"', json.dumps(schema)))
            wrong = "" if "path" in kinds else True
            free = "boolean" in kinds or {"number", "string"} <= kinds  # a text can be any
            if kinds & {"integer", "number", "path"} and not free:
                found |= kinds
                with pytest.raises(ValidationError) as caught:
                    section.model_validate({name: wrong})
                said = [(*error["loc"], error["msg"]) for error in caught.value.errors()]
                assert [one for one in said if name in one or f"{name}: the path is empty" in one[0]], name
    assert found >= {"integer", "number", "path", "array"}
    for choice in ("publish.splits={a: true}", "nmt.forward=''", "score.languages=[en, cs, en]"):
        with pytest.raises(ConfigurationError, match=choice.partition("=")[0]):
            compose(CONFIGS, [choice])


@pytest.mark.parametrize(
    ("minimum", "problem"),
    [
        ("low", "minimum: 'low': should be a valid number"),
        ({"wrong_pairs": 2}, "minimum.wrong_pairs: 2: should be less than 1"),
        ({"wrong_pair": 0.1}, "minimum.wrong_pair: there is no such parameter; did you mean 'wrong_pairs'?"),
    ],
)
def test_minimum_must_be_number_or_share(minimum: object, problem: str) -> None:
    content = compose(CONFIGS, ["select=quality"])
    content["select"]["filters"]["paraphrase_score"]["minimum"] = minimum
    with pytest.raises(ConfigurationError) as caught:
        check_parameters(content, "params.yaml")
    assert f"select.filters.paraphrase_score.{problem}" in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("corpus=nonsense", r"nonsense.*Choices of corpus: paranmt-tsv"),
        ("ingest.sources=[{name: můj", r"ingest\.sources=\[\{name: můj cannot be read.*Close every bracket"),
        ("select.filters.length={a: ů", "cannot be read.*Close every bracket"),
        ("publish.name='a", "publish.name='a cannot be read.*Close every bracket"),
        ("no_such.key=1", r"no_such\.key=1: there is no group or section 'no_such'\. Groups"),
        ("a b", "'a b' is neither GROUP=CHOICE nor KEY=VALUE"),
        ("ingest.sources.1.name=x", "there is no item 1"),
    ],
)
def test_unreadable_or_unknown_choices(choice: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compose(CONFIGS, [choice])


@pytest.mark.parametrize("value", ["/data/modely č/x", "a,b", "a(b)", "a=b", "it's", "100%", "C:\\x", "x: y",
                                   "$HOME/x", "${HOME}/x"])  # fmt: skip
def test_values_with_any_characters(value: str) -> None:
    assert compose(CONFIGS, [f"publish.name={value}"])["publish"]["name"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("1e-3", 0.001), ("True", True), ("null", None), ("no", "no"), ("", ""), ("'7'", "7"),
        ('"7"', "7"),
        ("[7, no way]", [7, "no way"]), ("{a: [x]}", {"a": ["x"]}), ("a: b", "a: b"), ("#1", "#1"),
    ],
)  # fmt: skip
def test_value_of_choice(text: str, value: object) -> None:
    found = value_of(text)
    assert found == value and type(found) is type(value)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner, max_size=3),
)


@given(PLAIN)
def test_hand_edit_is_recorded_as_read(value: object) -> None:
    """This includes texts that look like numbers, words or YAML."""
    assert value_of(value_text(value)) == value


def test_exponents_are_numbers_in_every_file(tmp_path: Path) -> None:
    """PyYAML reads 1e-3 as a text, but other readers as a number. Quoted texts stay texts everywhere."""
    (tmp_path / "embeddings").mkdir()
    group = tmp_path / "embeddings" / "mine.yaml"
    group.write_text(
        "publish: {name: '1e5', tags: [1e5x, nothing], license: 2026-01-02, languages: [no]}\n"
        "paragram: {training: {margin: 1e-3}}\n"
    )
    content = compose(tmp_path, ["embeddings=mine"])
    assert content["paragram"]["training"]["margin"] == 0.001
    assert content["publish"]["languages"] == ["no"] and content["publish"]["tags"] == ["1e5x", "nothing"]
    assert content["publish"]["license"] == "2026-01-02" and "name: '1e5'\n" in yaml_text(content)
    assert read_yaml_text(yaml_text(content)) == content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defaults: 3\n", r"mine\.yaml: defaults is not a list of choices"),
        ("defaults: [gone]\n", r"mine\.yaml: defaults: there is no choice select=gone"),
        ("select: {filters: [{kind: x}]}\n", r"mine\.yaml: select: filters\.0\.kind: 'x': should be one of"),
        ("select: [1]\n", r"mine\.yaml:1: select: \[1\]: should be a mapping of keys to values"),
        ("select: {order: [x]}\n", r"mine\.yaml:1: select: order names x, but the filters are "),
        ("ingest:\n sources: [{name: a}]\n", r"mine\.yaml:2: ingest\.sources\.0\.format: missing"),
        ("select: {filters: {b: {kind: length}}}\n", r"mine\.yaml:1: select\.filters\.b: set minimum"),
        ("ingest:\n sources: [{format: sample}]\n", r"mine\.yaml:2: ingest\.sources\.0\.name: missing"),
    ],
)
def test_invalid_group_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "select").mkdir()
    (tmp_path / "select" / "mine.yaml").write_text(text)
    with pytest.raises((InputError, ConfigurationError), match=message):
        compose(tmp_path, ["select=mine"])


def test_choices_can_build_on_each_other(tmp_path: Path) -> None:
    (tmp_path / "select").mkdir()
    for name, other in ("ab", "ba"):
        text = f"defaults: [quality, {other}]\npublish: {{name: {name}}}\n"
        (tmp_path / "select" / f"{name}.yaml").write_text(text)
    assert compose(tmp_path, ["select=a"])["publish"]["name"] == "a"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "paraforge configure"),
        (b"ingest:\n  sources: [\n", r"params\.yaml:3: not YAML"),
        (b"", "no sections"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_params_yaml_missing_broken_or_empty(content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "params.yaml").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_parameters(tmp_path / "params.yaml")


@pytest.mark.parametrize(
    ("own", "named", "found"),
    [
        ({"a": None}, {}, {}),
        ({"a": "MIT"}, {}, {"a": "MIT"}),
        ({"a": "MIT"}, {"a": "CC0"}, {"a": "CC0"}),
        ({"a.b": "MIT", "a.c": None}, {"a": "CC0"}, {"a.b": "MIT", "a.c": "CC0"}),
        # One source's own license is nobody else's.
        ({"a": "MIT", "a-b": None, "a.b": "CC0"}, {}, {"a": "MIT", "a-b": "not stated", "a.b": "CC0"}),
    ],
)
def test_configuration_licenses(
    own: dict[str, str | None], named: dict[str, str], found: dict[str, str]
) -> None:
    content = compose(ROOT / "configs", [])
    columns = {"source_text": 1, "reference": 0}
    content["ingest"]["sources"] = [
        {"name": name, "format": "tsv", "path": f"{name}.tsv", "columns": columns, "license": license}
        for name, license in own.items()
    ]
    content["publish"]["licenses"] = named
    parameters = check_parameters(content, "here")
    published = parameters.publish.model_copy(update={"licenses": parameters.licenses})
    assert published.licenses_of(own) == found


@pytest.mark.parametrize(
    ("section", "use"),
    [
        (TrainingParameters, torch.Generator().manual_seed),
        (NmtTrainingParameters, np.random.RandomState),  # as fairseq's trainer does
    ],
)
def test_range_ends_are_valid(section: type[Section], use: Callable[[int], object]) -> None:
    bounds = section.model_json_schema()["properties"]["seed"]
    use(bounds["minimum"])
    use(bounds.get("exclusiveMaximum", 1 << 80) - 1)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        section.model_validate({"seed": -1})
