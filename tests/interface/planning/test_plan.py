"""Plans of the whole: from a corpus to hours and cost, kept, and compared with what was."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.interface.cli import main
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.planning.forecast import TASK_SECONDS, Facts, forecast
from paraforge.interface.planning.plan import Plan, ingested_corpus, make_plan, model_path
from paraforge.interface.planning.progress import Progress, compare_plan, plan_path
from paraforge.interface.planning.table import plan_json, plan_text
from paraforge.translation.stage.translate import translate
from paraforge.translation.training.stage import training_key
from tests.here import run_command, run_stage
from tests.project import ROOT, make_project, read_parameters, write_parameters
from tests.translation.stage.test_population import write_corpus

SENTENCES = [f"věta číslo {number} " + "slovo " * (number % 17) for number in range(900)]


@pytest.fixture
def parameters(tmp_path: Path) -> Parameters:
    content = yaml.safe_load(compose(ROOT / "configs", ["translation=fake"]))
    content["translate"] |= {"sentences_per_task": 100, "fake": {"sentences_per_second": 400.0}}
    content["resources"] |= {"workers": 1, "work": str(tmp_path / "work")}
    return check_parameters(content, where="test")


def test_a_plan_is_kept_and_the_stage_says_how_right_it_was(
    parameters: Parameters, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = write_corpus(tmp_path / "in", SENTENCES, rows=300)
    plan = make_plan(
        parameters, corpus, tmp_path / "none", devices=[1, 4], price=2.0, seconds=4, precision=0.2
    )
    assert plan.facts.sentences == 900
    assert 1 / plan.facts.seconds <= 400  # the engine is never faster than it was told
    assert plan.forecast.tasks == 9
    one, four = plan.forecast.walls
    assert one.low <= one.hours <= one.high
    assert four.cost is not None and one.cost is not None and four.cost >= one.cost
    assert json.loads(plan_path(tmp_path / "work").read_text(encoding="utf-8"))["facts"]["sentences"] == 900
    with caplog.at_level("INFO"):
        report = translate(
            parameters.translate, tmp_path / "in", tmp_path / "none", tmp_path / "out", parameters.resources
        )
        compared = compare_plan(tmp_path / "work", report.run)
    assert compared is not None
    assert compared.planned > 2  # 900 sentences at 400 a second
    assert "of translation, measured" in caplog.text
    # Nothing is left to compare when everything was there already, or when the plan was for something else.
    again = translate(
        parameters.translate, tmp_path / "in", tmp_path / "none", tmp_path / "out", parameters.resources
    )
    assert again.run is None
    assert compare_plan(tmp_path / "work", again.run) is None
    other = parameters.translate.model_copy(update={"beam": 3})
    found = translate(other, tmp_path / "in", tmp_path / "none", tmp_path / "out", parameters.resources)
    assert found.run is not None
    assert compare_plan(tmp_path / "work", found.run) is None


def test_of_a_run_that_was_begun_the_plan_says_what_is_left(parameters: Parameters, tmp_path: Path) -> None:
    # Every sentence twice: a row of the second half is finished with its sentence.
    corpus = write_corpus(tmp_path / "in", SENTENCES * 2, rows=300)

    def planned() -> Plan:
        return make_plan(
            parameters, corpus, tmp_path / "none", devices=[1], price=2.0, seconds=1, precision=0.9
        )

    assert planned().progress is None
    none = tmp_path / "none"
    translate(parameters.translate, tmp_path / "in", none, tmp_path / "out", parameters.resources)
    with pytest.raises(InputError, match="the translation memory has every sentence"):
        planned()
    # Another corpus, of which two thirds are known.
    (tmp_path / "in").rename(tmp_path / "before")
    texts = SENTENCES[300:] + [f"{text} znovu" for text in SENTENCES[:300]]
    corpus = write_corpus(tmp_path / "in", texts * 2, rows=300)
    found = planned()
    assert found.progress == Progress(900, 600, 1800, 1200)
    assert found.left is not None
    # 300 of 900 sentences are left, and of no other size: the rate of the sample is the same for both.
    expected = 300 * found.facts.seconds + 3 * TASK_SECONDS + found.facts.load_seconds
    assert found.left.device_hours * 3600 == pytest.approx(expected)
    assert found.left.tasks == 3
    text = plan_text(found, 2.0)
    assert "known          600 of 900 sentences, 1,200 of 1,800 rows, in the translation memory" in text
    assert "left           300 sentences, 600 rows" in text
    assert "cost left" in text
    assert plan_json(found)["left"]["tasks"] == 3
    # Another beam is another translation: nothing of it is there.
    other = parameters.model_copy(update={"translate": parameters.translate.model_copy(update={"beam": 3})})
    again = make_plan(other, corpus, none, devices=[1], seconds=1, precision=0.9)
    assert again.progress is None and "left" not in plan_text(again, None)


def test_arithmetic_of_a_forecast() -> None:
    facts = Facts(
        1200, 1000, 50.0, 0.01, 0.009, 0.012, load_seconds=1.0, sentences_per_task=100, row_seconds=0.0
    )
    found = forecast(facts, [1, 2, 16], price=3.6)
    # Ten tasks of 1 s and 0.06 s; 5 s until a worker is ready.
    assert [wall.hours * 3600 for wall in found.walls] == pytest.approx([15.6, 10.3, 6.06])
    assert found.walls[1].cost == pytest.approx(10.3 * 2 * 3.6 / 3600)
    assert found.device_hours * 3600 == pytest.approx(10 + 0.6 + 1)
    assert found.tasks == 10
    assert found.disk["total"] == sum(amount for name, amount in found.disk.items() if name != "total")


def test_a_plan_of_a_tiny_corpus_says_why_one_device_is_quicker(
    parameters: Parameters, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "in", SENTENCES[:3])
    tiny = make_plan(parameters, corpus, tmp_path / "none", devices=[1, 2], rate=1e4)
    text, words = plan_text(tiny, None), "1 is enough: starting more processes takes longer than they save"
    assert words in text
    assert "under 1 s" in text and " 0 s" not in text
    assert "tasks          1 of 3 sentences, " in text
    assert tiny.forecast.task_seconds == pytest.approx(TASK_SECONDS + 3e-4)
    many = make_plan(parameters, corpus, tmp_path / "none", devices=[1, 2], rate=1e4, sentences=10_000_000)
    assert words not in plan_text(many, None)


def test_an_interval_may_begin_at_nothing() -> None:
    """Of two blocks that differ much; each wall keeps what starting and the tasks take."""
    facts = Facts(
        1200, 1000, 50.0, 0.01, 0.0, 0.03, load_seconds=1.0, sentences_per_task=100, row_seconds=0.0
    )
    for wall in forecast(facts, [1, 4], price=None).walls:
        assert 0 < wall.low < wall.hours < wall.high


def test_a_given_rate_needs_no_model_and_any_number_of_sentences(
    parameters: Parameters, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "in", SENTENCES[:50])
    plan = make_plan(
        parameters, corpus, tmp_path / "none", devices=[1], rate=7000.0, sentences=51_400_000, price=3.0
    )
    assert plan.measurement is None
    tasks = 514_000
    expected = 51.4e6 / 7000 + tasks * TASK_SECONDS + plan.facts.load_seconds
    assert plan.forecast.device_hours * 3600 == pytest.approx(expected)
    # A hundred sentences are nothing for such a device: a task should take 6 s, of which 0.06 are lost.
    assert plan.best_task == 42_000


def test_without_a_model(parameters: Parameters, tmp_path: Path) -> None:
    trained = parameters.model_copy(
        update={"translate": parameters.translate.model_copy(update={"engine": "ctranslate2"})}
    )
    with pytest.raises(InputError, match="there is no model yet to measure with"):
        model_path(trained, write_corpus(tmp_path / "in", SENTENCES[:5]), tmp_path / "none")


@pytest.mark.parametrize("before", [False, True])
def test_a_plan_that_ends_with_an_error_leaves_nothing(
    before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path, "translation=none", pairs=100)
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "work" / "plan" / "translate.json"
    if before:
        kept.parent.mkdir(parents=True)
        kept.write_text("{}")
    parameters = read_parameters(tmp_path)
    parameters["translate"]["engine"] = "ctranslate2"
    write_parameters(tmp_path, parameters)
    with pytest.raises(InputError, match="there is no model yet to measure with"):
        run_command("plan")
    # What was ingested on the way is kept, for 'dvc repro'.
    assert (tmp_path / "work" / "ingest").is_dir()
    assert sorted((tmp_path / "work").glob("plan/*")) == ([kept] if before else [])
    assert (tmp_path / "work" / "plan").exists() == before


def test_the_plan_is_for_what_the_parameters_say_now(
    parameters: Parameters, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def corpus_of(name: str, pairs: int) -> Parameters:
        source = tmp_path / f"{name}.tsv"
        text = "".join(f"sentence {name} {number}\tvěta {name} {number}\n" for number in range(pairs))
        source.write_text(text, encoding="utf-8")
        section = {
            "sources": [
                {
                    "name": name,
                    "format": "tsv",
                    "path": str(source),
                    "columns": {"reference": 0, "source_text": 1},
                }
            ]
        }
        return parameters.model_copy(update={"ingest": IngestParameters.model_validate(section)})

    old, new = corpus_of("old", 50), corpus_of("new", 70)
    published = tmp_path / "data" / "ingested"
    ingest(old.ingest, published, old.resources)
    assert ingested_corpus(old, published).total_rows == 50
    assert not caplog.text
    assert ingested_corpus(new, published).total_rows == 70
    assert "was made with other parameters or sources" in caplog.text
    (tmp_path / "new.tsv").unlink()
    with pytest.raises((ConfigurationError, InputError), match=r"new\.tsv"):
        ingested_corpus(new, published)


def test_of_several_pivots_each_is_planned_and_their_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project(tmp_path / "project", "pivots=sample", pairs=300))
    found = json.loads(run_command("plan", "--rate", 5, "--price", 2, "--json").output)
    each = found["pivots"]
    assert list(each) == ["cs", "art"] and each["art"]["facts"]["rows"] == 4000
    for key in ("rows", "sentences"):
        assert found["facts"][key] == sum(one["facts"][key] for one in each.values())
    for place, wall in enumerate(found["forecast"]["walls"]):
        for key in ("hours", "low", "high", "cost"):
            parts = [one["forecast"]["walls"][place][key] for one in each.values()]
            assert wall[key] == pytest.approx(sum(parts)) and min(parts) > 0
    assert found["progress"] is None
    printed = run_command("plan", "--seconds", 1).output
    assert "# cs\n" in printed and "# cs + art, one after the other" in printed
    assert "pivots" not in json.loads(run_command("plan", "--rate", 5, "--sentences", 9, "--json").output)
    assert all(run_stage(name) for name in ("ingest", "nmt", "translate"))
    left = json.loads(run_command("plan", "--seconds", 1, "--json").output)["progress"]
    assert found["facts"]["sentences"] == left["sentences"] >= left["sentences_known"] > left["sentences"] / 2


def test_a_model_that_was_trained_otherwise_is_named(
    parameters: Parameters, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = write_corpus(tmp_path / "in", SENTENCES[:5])
    engine = parameters.translate.model_copy(update={"engine": "ctranslate2"})
    nmt = parameters.nmt.model_copy(update={"model": "train"})
    chosen = parameters.model_copy(update={"translate": engine, "nmt": nmt})
    built = tmp_path / "nmt"
    built.mkdir()
    key = training_key(nmt, corpus)
    for signature, warned in ((f"key:{key[:8]}|pairs:5", False), ("key:01234567|pairs:5", True)):
        description = {"trained_on": {"signature": signature}}
        (built / "model.json").write_text(json.dumps(description), encoding="utf-8")
        assert model_path(chosen, corpus, built) == built
        assert ("was not trained with these parameters" in caplog.text) is warned


def test_the_command(
    parameters: Parameters,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_corpus(tmp_path / "in", SENTENCES, rows=300)
    (tmp_path / "params.yaml").write_text(
        yaml.safe_dump(parameters.model_dump(mode="json")), encoding="utf-8"
    )
    common = [
        "paraforge", "plan", "--params", str(tmp_path / "params.yaml"), "--ingested", str(tmp_path / "in"),
        "--seconds", "1", "--precision", "0.5",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", [*common, "--price", "2.5", "--devices", "2,1"])
    main_to_its_end()
    text = capsys.readouterr().out
    assert "900 distinct sentences" in text
    assert "cost at 2.5 an hour" in text
    assert "sentences_per_task: " in text
    monkeypatch.setattr(sys, "argv", [*common, "--json", "--rate", "100"])
    main_to_its_end()
    found = json.loads(capsys.readouterr().out)
    assert found["facts"]["seconds"] == 0.01
    assert [wall["devices"] for wall in found["forecast"]["walls"]] == [1, 2, 4, 8]
    for devices in ("1,two", "0", "1,99999999999999"):
        monkeypatch.setattr(sys, "argv", [*common, "--devices", devices])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2


def main_to_its_end() -> None:
    """Run the command line; a typer application exits even when all is well."""
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
