"""``paraforge configure``: choices and hand edits persist, and changes are shown."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from paraforge.base.errors import ConfigurationError, ParaforgeError
from paraforge.interface.configuration import load_parameters
from paraforge.interface.configuration.choices import reconfigure
from paraforge.interface.configuration.composition import compose
from paraforge.interface.project import diagnosis
from paraforge.stages.common import parameters_of
from tests.here import run_command
from tests.project import ROOT, copy_code, run

MY = """ingest:
  kind: bitext
  sources:
  - name: mine
    format: tsv
    path: mine.tsv
    columns: {reference: 0, source_text: 1}
publish:
  license: other
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a bitext of its own, configured as the sample."""
    copy_code(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "configs" / "corpus" / "my.yaml").write_text(MY)
    (tmp_path / "mine.tsv").write_text("A dog runs.\tPes běží.\n" * 3)
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configure(*arguments: str) -> str:
    return str(run_command("configure", *arguments).output)


def written() -> dict[str, Any]:
    content = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_windows_line_ends_keep_choices(project: Path, end: str) -> None:
    configure("corpus=my", "translation=fake")
    text = Path("params.yaml").read_text(encoding="utf-8")
    Path("params.yaml").write_text(f"\ufeff{text}", encoding="utf-8", newline=end)
    said = configure()
    assert "corpus=my translation=fake" in said and "kept as edited" not in said
    assert Path("params.yaml").read_text(encoding="utf-8") == text


def edit(old: str, new: str) -> None:
    text = Path("params.yaml").read_text(encoding="utf-8")
    assert old in text
    Path("params.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")


def test_choices_persist_until_changed(project: Path) -> None:
    configure("corpus=my", "translation=fake", "translate.beam=4")
    told = configure("select=wieting2021")
    assert written()["ingest"]["sources"][0]["name"] == "mine"
    assert written()["translate"] == {"engine": "fake", "beam": 4}
    assert "  select.filters.trigram_overlap.maximum: 0.9 -> 0.7" in told and "ingest" not in told
    assert configure().count("nothing changes") == 1
    told = configure("translate.beam=5", "select.required=[paraphrase_score, overlap_3]")
    assert "translate.beam: 4 -> 5" in told and "no longer chosen" not in told
    assert "select.required: [paraphrase_score] -> [paraphrase_score, overlap_3]" in told
    # In whatever steps, the file is what all choices at once give.
    chosen = ["corpus=my", "translation=fake", "select=wieting2021", "translate.beam=5"]
    chosen.append("select.required=[paraphrase_score, overlap_3]")
    assert written() == compose(Path("configs"), chosen)
    again = reconfigure(Path("configs"), ["corpus=my"], Path("params.yaml"))
    assert (again.choices, again.forgotten) == ([*chosen[1:], "corpus=my"], [])
    told = configure("--reset")
    assert "publish.license: other -> mit" in told
    assert Path("params.yaml").read_bytes() == (ROOT / "params.yaml").read_bytes()


def test_group_replaces_its_values(project: Path) -> None:
    (project / "models" / "mine").mkdir()
    (project / "models" / "mine" / "model.bin").touch()
    configure("translation=ready", "nmt.model=models/mine", "translate.beam=4")
    told = configure("translation=sample")
    assert "no longer chosen: nmt.model=models/mine" in told
    assert written()["nmt"]["model"] == "train"
    assert written()["translate"]["beam"] == 4
    Path("configs/select/mine.yaml").write_text("defaults: [quality]\n")
    configure("paraphraser=small", "paraphraser.training.seed=3")
    told = configure("paraphraser=null", "select=mine")
    assert re.findall("no longer chosen: (.*)", told) == ["paraphraser.training.seed=3"]
    assert (written()["paraphraser"], written()["translate"]["beam"]) == ({}, 4)


def test_nested_value_keeps_siblings(project: Path) -> None:
    source = '{"name": "own", "format": "sample", "pairs": 900}'
    configure(f"ingest.sources=[{source}]", "translate={beam: 3}", "select.filters.length=null")
    told = configure("ingest.sources.0.pairs=700", "translate.nbest=2", "select.length.maximum=9")
    assert written()["ingest"]["sources"] == [{"name": "own", "format": "sample", "pairs": 700}]
    assert written()["translate"] == {"engine": "ctranslate2", "beam": 3, "nbest": 2}
    assert written()["select"]["filters"]["length"] == {"kind": "length", "minimum": 1, "maximum": 9}
    assert re.findall("no longer chosen: (.*)", told) == ["select.filters.length=null"]
    assert "no longer chosen: translate.nbest=2" in configure("translate={beam: 4}")


def test_hand_edits_are_kept_and_named(project: Path) -> None:
    edit("pairs: 20000", "pairs: 2000")
    edit("      maximum: 0.9", "      maximum: 0.8")
    told = configure("translate.beam=4")
    assert "kept as edited: ingest.sources.0.pairs: 20000 -> 2000" in told
    assert "kept as edited: select.filters.trigram_overlap.maximum: 0.9 -> 0.8" in told
    assert written()["ingest"]["sources"][0]["pairs"] == 2000
    # Also by the call after the next one, and until the section's own group is chosen.
    configure("translate.nbest=2")
    assert written()["ingest"]["sources"][0]["pairs"] == 2000
    edit("      maximum: 0.8", "      maximum: 0.7")
    told = configure("select=sample")
    assert "kept as edited" not in told and "no longer chosen" not in told
    assert "trigram_overlap.maximum: 0.7 -> 0.9" in told
    configure("corpus=sample")
    assert written()["ingest"]["sources"][0]["pairs"] == 20_000
    assert written()["translate"] == {"engine": "ctranslate2", "beam": 4, "nbest": 2}


def test_hand_edit_becomes_choice(project: Path) -> None:
    """Any edit becomes a choice, with each key recorded once."""
    configure("translate.beam=4")
    name = "a\n#b 'x' \"y\" \\' $HOME, [q] {r}: é"
    for entries in (3, 4):
        content = written() | {"report": {"entries": entries}}
        content["publish"]["name"] = name
        content["ingest"]["sources"][1:] = [{"name": "more", "format": "sample"}]
        header = [line for line in Path("params.yaml").read_text().splitlines() if line.startswith("#")]
        Path("params.yaml").write_text("\n".join(header) + "\n" + yaml.safe_dump(content))
        assert f"report.entries: {'default' if entries == 3 else 3} -> {entries}" in configure()
        found = reconfigure(Path("configs"), [], Path("params.yaml"))
        own = [choice for choice in found.choices if "name" not in choice]
        assert own == ["translate.beam=4", f"report.entries={entries}"]
        assert written() == content and found.edited == found.changes == []
    configure("publish.name=two\n#+ lines")
    assert written()["publish"]["name"] == "two\n#+ lines" and "nothing changes" in configure()
    edit("  entries: 4", "")
    edit("report:", "report: {}")
    assert "kept as edited: report.entries: 4 -> default" in configure()
    assert written()["report"] == {}


@pytest.mark.parametrize("name", ["my.news", "my=news", '""'])
def test_hand_edits_with_unusual_keys(name: str, project: Path) -> None:
    """A dot in a name does not split the key, and a date is a text."""
    edit("  licenses:", f"  licenses:\n    {name}: 2026-01-02")
    configure()
    assert written()["publish"]["licenses"] == {name.strip('"'): "2026-01-02", "sample": "MIT"}
    edit("report: {}", "report: {entries: .inf}")
    with pytest.raises(ConfigurationError, match=r"report\.entries: inf: should be a finite number"):
        configure()


def test_changed_group_is_not_a_hand_edit(project: Path) -> None:
    configure("corpus=my")
    file = project / "configs" / "corpus" / "my.yaml"
    file.write_text(MY.replace("license: other", "license: cc-by-4.0"))
    edit("report: {}", "report: {entries: 3}")
    told = configure()
    assert "publish.license: other -> cc-by-4.0" in told
    assert "kept as edited: report.entries: default -> 3" in told


def test_later_changed_group_is_named(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = project / "configs" / "corpus" / "my.yaml"
    words = "the choices changed after params.yaml was composed (publish): run 'paraforge configure'"
    configure("corpus=my")
    edit("report: {}", "report: {entries: 3}")  # an edit by hand is none of the groups'
    file.write_text("# a comment changes nothing\n" + MY)
    parameters_of("ingest")
    assert "changed after" not in caplog.text
    file.write_text(MY.replace("license: other", "license: cc-by-4.0"))
    parameters_of("ingest")
    assert words in caplog.text
    assert words in [one.detail for one in diagnosis.project()]
    configure()
    assert words not in [one.detail for one in diagnosis.project()]


def test_foreign_params_file_keeps_differences(project: Path) -> None:
    content = compose(Path("configs"), ["corpus=my", "translate.beam=4"])
    Path("params.yaml").write_text(yaml.safe_dump(content))
    configure("select=wieting2021")
    assert written() == compose(Path("configs"), ["corpus=my", "translate.beam=4", "select=wieting2021"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus=mi"], r"corpus=mi: there is no such choice; did you mean 'my'\?"),
        (["corpsu=my"], r"no group or section 'corpsu'; did you mean 'corpus'\?"),
        (["translate.bem=4"], r"translate\.bem: there is no such parameter; did you mean 'beam'\?"),
        (["translate.beam_sise=4"], r"translate\.beam_sise: .*did you mean 'beam'\?"),  # not 'batch_size'
        (["ingest.sources.0.lisence=x"], r"sources\.0\.lisence: .*did you mean 'license'\?"),
        (["translat.beam=4"], r"no group or section 'translat'; did you mean 'translate'\?"),
        (["nmt.training.warmup=4"], r"nmt\.training\.warmup: .*did you mean 'warmup_updates'\?"),
        (["embeddings.encoder={}"], r"embeddings\.encoder: there is no such parameter here$"),
        (["select=none"], r"there is no such choice.*Choices of select: .*; null for none"),
        # The file of a choice also sets this section, but is not to blame.
        (["translate.nbest=99"], r"^translate: nbest is 99, but the beam"),
        (["select.order=[x]"], r"^select: order names x, but the filters are"),
        (["publish.name=a\r"], r"name=a\\r' contains a control character.*Write it as in YAML"),
        (["publish.name= "], r"publish\.name: ' ': should be a text that is not blank"),
        (["x"], "neither GROUP=CHOICE nor KEY=VALUE"),
        (["nmt.model=/nowhere"], r"nmt\.model: /nowhere: no such file"),
        (["nmt.model=mine.tsv"], r"nmt\.model: mine\.tsv: not a model that can be imported"),
        (["nmt.model=models/mine"], r"nmt\.model: models/mine: no such file"),
        (["paragram.vectors=missing.txt"], r"paragram\.vectors: missing\.txt: no such file"),
        (["paragram.vectors=$NOT_SET/v.txt"], r"paragram\.vectors: .*NOT_SET is not set"),
        # An empty path would be the whole project.
        (["embeddings.development=['']"], r"embeddings\.development\.0: '': .* at least 1 character"),
        (["score.sentence_transformer=/dev/zero"], r"score\.sentence_transformer: /dev/zero: not a regular"),
    ],
)
def test_configure_command_line_mistakes(
    arguments: list[str], message: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    before = Path("params.yaml").read_bytes()
    with pytest.raises(ParaforgeError, match=message) as caught:
        configure(*arguments)
    assert caught.value.exit_code == 2
    assert Path("params.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mine.tsv", "gone.tsv", r"ingest: source 'mine': gone\.tsv: no such file"),
        ("source_text: 1", "source_text: 7", r"source 'mine': .*mine\.tsv:1: no column 7 for source_text"),
        ("mine.tsv", "pipe", r"pipe: not a regular file"),
        ("mine.tsv", "/dev/zero", r"/dev/zero: not a regular file"),
        ("mine.tsv", "empty.tsv", r"empty\.tsv: "),
        ("kind: bitext", "kind: [", r"my\.yaml:\d+: not YAML"),
        ("  - name", "\t- name", r"my\.yaml:4: not YAML"),
        ("    format", "    columns: 1\n    format", r"my\.yaml:8: not YAML: .*duplicate key"),
        ("columns", "colums", r"my\.yaml:7: ingest\.sources\.0\.colums: .*did you mean 'columns'\?"),
        ("  license", "  lisense", r"my\.yaml:9: publish\.lisense: .*did you mean 'license'\?"),
        ("license: other", "license: 7", r"my\.yaml:9: publish\.license: 7: should be a valid string"),
        ("publish:", "publihs:", r"publihs: there is no such parameter; did you mean 'publish'\?"),
        (MY, "- a\n", r"my\.yaml: no sections"),
    ],
)
def test_configure_own_bitext_mistakes(old: str, new: str, message: str, project: Path) -> None:
    os.mkfifo("pipe")
    Path("empty.tsv").touch()
    (project / "configs" / "corpus" / "my.yaml").write_text(MY.replace(old, new))
    with pytest.raises(ParaforgeError, match=message) as caught:
        configure("corpus=my")
    assert caught.value.exit_code == 2
    if "\n- a" not in new:
        # One line a problem.
        problems = caught.value.problems if isinstance(caught.value, ConfigurationError) else [caught.value]
        assert all("\n" not in str(problem) for problem in problems)


def test_only_reset_replaces_broken_file(project: Path) -> None:
    configure("--no-files", "nmt.model=/elsewhere/model")  # a file of another machine
    assert written()["nmt"]["model"] == "/elsewhere/model"
    Path("params.yaml").write_text("ingest: [\n")
    with pytest.raises(ParaforgeError, match=r"params\.yaml:2: not YAML"):
        configure("corpus=my")
    configure("--reset", "corpus=my")
    assert written()["ingest"]["sources"][0]["name"] == "mine"


def test_configure_prints_only_its_lines(project: Path) -> None:
    assert run("paraforge", "configure", "corpus=my", cwd=project).stderr == ""


def test_own_bitext_suggests_selection(project: Path) -> None:
    hint = "For your own bitext use select=quality"
    assert hint not in configure()
    assert hint in configure("corpus=my")
    assert hint not in configure("select=quality")
    assert hint not in configure()


LIST = """  filters:
  - {kind: flag, column: runaway}
  - {kind: bounds, score: overlap_3, maximum: 0.8, name: near}
  - {kind: length, maximum: 30}
"""


def test_no_params_file_in_subdirectory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    (project / "data").mkdir()
    monkeypatch.chdir(project / "data")
    with pytest.raises(ParaforgeError, match="the project is in a directory above"):
        configure("select=quality")
    assert not Path("params.yaml").exists()


@pytest.mark.parametrize("value", [
    "select.trigram_overlap.maximum=0.7", "select.filters.length=null", "select.deciles=[]",
    "publish.splits={test: 9}", "publish.splits.test=9", "paraphraser=small", "translate.beam=3",
])  # fmt: skip
def test_reset_value_leaves_no_trace(value: str, project: Path) -> None:
    configure("select=quality")
    before = written()
    configure(value)
    assert written() != before
    configure(f"~{value.partition('=')[0]}")
    assert written() == before
    assert "~" not in Path("params.yaml").read_text(encoding="utf-8")


def test_threshold_is_set_by_filter_name(project: Path) -> None:
    said = configure("select.trigram_overlap.maximum=0.7")
    assert "  select.filters.trigram_overlap.maximum: 0.9 -> 0.7" in said
    assert configure("select.filters.trigram_overlap.maximum=0.7").count("nothing changes") == 1
    configure("select.filters.trigram_overlap=null")
    assert written()["select"]["filters"]["trigram_overlap"] is None
    # A filter is set as a whole, any other section is changed in part.
    configure("select.filters.length={kind: length, maximum: 20}", "translate={beam: 3}")
    assert written()["select"]["filters"]["length"] == {"kind": "length", "maximum": 20}
    assert written()["translate"] == {"engine": "ctranslate2", "beam": 3}
    for _ in range(2):
        configure("~publish.license")
        assert "license" not in written()["publish"]
    configure("statistics.background.references=9")
    assert "statistics.background: {references: 9} -> default" in configure("~statistics.background")
    with pytest.raises(ParaforgeError, match=r"~select\.lenth: there is nothing to remove"):
        configure("~select.lenth")
    with pytest.raises(ParaforgeError, match=r"nothing to remove; did you mean 'select.filters.length'\?"):
        configure("~select.filters.lenght")
    for key in ("select.filters.lenght", "select.lenght"):
        with pytest.raises(ParaforgeError, match=r"no filter to remove; did you mean 'length'\?"):
            configure(f"{key}=null")
    assert "nothing changes" not in configure("select.length.minimum=null")
    with pytest.raises(ParaforgeError, match=r"no filter 'trigram_overlp': .*runaway.*needs its kind"):
        configure("select.trigram_overlp.maximum=0.7")
    with pytest.raises(ParaforgeError, match=r"no filter 'lenght': .*; did you mean 'length'\?"):
        configure("select.lenght.maximum=7")
    with pytest.raises(ParaforgeError, match=r"length\.maxmum: .*did you mean 'maximum'\?"):
        configure("select.length.maxmum=7")
    # A group says which filters there are: no value of another group's filter stays behind.
    configure("select=paranmt", "select.sample.size=7")
    assert "no longer chosen: select.filters.sample.size=7" in configure("select=quality")


def test_list_of_filters_is_accepted(project: Path) -> None:
    section = yaml.safe_load(LIST)
    before = written()
    Path("params.yaml").write_text(yaml.safe_dump({**before, "select": section}))
    asked = load_parameters().select
    configure("translate.beam=4")
    found = load_parameters().select
    # The same filters in the same order: what was selected by the list is not selected anew.
    assert found.filters == asked.filters and [rule.reason for rule in found.filters][1] == "near"
    assert found.model_dump_json(include={"filters"}) == asked.model_dump_json(include={"filters"})
    assert [rule.reason for rule in load_parameters().select.filters] == ["runaway", "near", "length"]
    # Also in a group's file.
    (project / "configs" / "select" / "mine.yaml").write_text(f"select:\n{LIST}")
    configure("--reset", "select=mine")
    assert list(written()["select"]["filters"]) == ["runaway", "near", "length"]
    # The filters of such a group are overridden by name, too, also when they are named in the same call.
    configure("select.length.maximum=20")
    assert written()["select"]["filters"]["length"] == {"kind": "length", "maximum": 20}
    configure("--reset", "select=mine", "select.near.maximum=0.7", "select.filters.runaway=null")
    filters = written()["select"]["filters"]
    assert filters["runaway"] is None and filters["near"]["maximum"] == 0.7


def test_filter_order_does_not_depend_on_file_order(project: Path) -> None:
    content = written()
    names = [rule.reason for rule in load_parameters().select.filters]
    assert names == content["select"]["order"] == list(content["select"]["filters"])
    Path("params.yaml").write_text(yaml.safe_dump(content, sort_keys=True))
    assert [rule.reason for rule in load_parameters().select.filters] == names
    content["select"]["order"] = ["length", "runaway"]
    Path("params.yaml").write_text(yaml.safe_dump(content))
    order = [rule.reason for rule in load_parameters().select.filters]
    assert order == ["length", "runaway", "output_truncated", "paraphrase_score", "trigram_overlap"]
    content["select"]["order"] = ["lenght"]
    Path("params.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ParaforgeError, match="order names lenght, but the filters are"):
        load_parameters()


def test_changed_values_are_shown_completely(project: Path) -> None:
    configure("publish.name=" + "corpus " * 25 + "one")
    told = configure("publish.name=" + "corpus " * 25 + "two")
    assert re.search(r"publish\.name: corpus [^>]*one -> corpus [^>]*two$", told, re.M)


def test_json_schema_covers_sections_and_mistakes(project: Path) -> None:
    schema = json.loads(configure("--schema"))
    assert set(schema["properties"]) >= set(written())
    beam = schema["$defs"]["TranslateParameters"]["properties"]["beam"]
    assert (beam["type"], beam["default"], beam["minimum"]) == ("integer", 12, 1)
    assert beam["description"]
    edit("# Composed", "# yaml-language-server: $schema=params.schema.json\n# Composed")
    for told in ("translate.beam: default -> 5", "nothing changes"):
        assert told in configure("translate.beam=5")
        first, second, _ = Path("params.yaml").read_text(encoding="utf-8").split("\n", 2)
        assert first == "# yaml-language-server: $schema=params.schema.json" and "# Composed" in second
