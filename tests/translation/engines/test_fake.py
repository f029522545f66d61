"""The fake engine: deterministic, and faulty on demand; an engine of another package."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.translation.decoding.translator import DecodingOptions, Hypotheses, Placement
from paraforge.translation.engines import open_translator
from tests import plugin
from tests.plugin import COMMAND, install

SENTENCES = [f"Tohle je věta číslo {number}, a má {number % 9} slov." for number in range(200)]


def run(
    sentences: list[str],
    options: DecodingOptions | None = None,
    placement: Placement | None = None,
    **settings: object,
) -> list[Hypotheses]:
    return list(open_translator("fake", None, options, placement, settings).translate(sentences))


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(1, 200))
def test_fake_translation_depends_only_on_sentence(sentences: list[str], batch_tokens: int) -> None:
    together = run(sentences, placement=Placement(batch_tokens=batch_tokens))
    alone = [run([sentence])[0] for sentence in sentences]
    assert repr(together) == repr(alone)  # by repr, because NaN is not equal to itself


def test_fake_engine_keeps_numbers_and_case() -> None:
    (result,) = run(["Pes má 4 nohy a 1 ocas."])
    words = result.hypotheses[0].text.split()
    assert words[2] == "4"
    assert words[0][0].isupper()
    assert result.hypotheses[0].text.endswith(".")
    assert result.hypotheses[0].text.isascii()


def test_fake_nbest_is_ranked_by_score() -> None:
    found = run(SENTENCES, DecodingOptions(beam=12, nbest=12))
    for result, alone in zip(found, run(SENTENCES), strict=True):
        scores = [hypothesis.score for hypothesis in result.hypotheses]
        assert len(scores) == 12 and scores == sorted(scores, reverse=True) and scores[0] < 0
        assert result.hypotheses[0] == alone.hypotheses[0]
        assert len({hypothesis.text for hypothesis in result.hypotheses[6:]}) > 2


def test_fake_engine_fails_on_demand() -> None:
    results = run(SENTENCES, fail_pattern=r"číslo \d*7,")
    failed = [number for number, result in enumerate(results) if result.failed]
    assert failed == [number for number in range(200) if number % 10 == 7]
    assert results[7].failed == r"InjectedFailure: told to fail on 'číslo \\d*7,'"
    with pytest.raises(InputError, match="not a regular expression"):
        run(SENTENCES, fail_pattern="(")


def test_fake_engine_makes_defects_on_demand() -> None:
    best = [result.hypotheses[0] for result in run(SENTENCES, defects=1.0)]
    assert all(
        hypothesis.empty or hypothesis.non_finite or hypothesis.output_truncated for hypothesis in best
    )
    assert 20 < sum(hypothesis.runaway for hypothesis in best) < 80
    clean = [result.hypotheses[0] for result in run(SENTENCES)]
    assert not any(
        hypothesis.empty or hypothesis.non_finite or hypothesis.output_truncated or hypothesis.runaway
        for hypothesis in clean
    )


def test_fake_engine_cuts_and_marks_long_texts() -> None:
    options = DecodingOptions(maximum_source_tokens=10, maximum_target_tokens=5)
    found = run(["slovo " * count for count in (20, 10, 9, 5, 4)], options)  # and the end of the sentence
    assert [result.source_truncated for result in found] == [True, True, False, False, False]
    assert [result.hypotheses[0].output_truncated for result in found] == [True, True, True, True, False]
    assert len(found[0].hypotheses[0].text.split()) == 5


def test_fake_engine_rate_is_configurable(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    run(SENTENCES[:50], sentences_per_second=500)
    assert sum(slept) == pytest.approx(0.1)


def test_other_seed_gives_other_translations() -> None:
    assert run(SENTENCES) == run(SENTENCES, seed=1)
    texts = [{result.hypotheses[0].text for result in run(SENTENCES, seed=seed)} for seed in (1, 2)]
    assert not texts[0] & texts[1]


ENGINE = '''
from pydantic import Field

from paraforge.translation.decoding.translator import (
    Engine, EngineSettings, Hypotheses, make_hypothesis,
)


class Echoing(EngineSettings):
    """What the engine says."""

    times: int = Field(1, ge=1, le=3, description="how often each word is said")


class Echo(Engine):
    SETTINGS = Echoing
    MODEL_FREE = True

    def __init__(self, model, options, placement, settings):
        self.times = settings.times

    def translate(self, sentences):
        for sentence in sentences:
            words = [word for word in sentence.split() for _ in range(self.times)]
            yield Hypotheses((make_hypothesis(" ".join(words), -1.0, words, ended=True),))
'''
RUN = """
import json
from paraforge.interface.cli import main
from paraforge.translation.engines import open_translator
from paraforge.translation.stage.parameters import TranslateParameters

chosen = TranslateParameters.model_validate({"engine": "echoing", "echoing": {"times": 2}})
translator = open_translator(chosen.engine, None, chosen.options(), None, chosen.settings())
print(json.dumps([result.hypotheses[0].text for result in translator.translate(["a b", "c"])]))
from pathlib import Path
from paraforge.base.shards.resources import Resources
from paraforge.translation.stage.sentences import choose_engine

chosen = [choose_engine("echoing", Path(), chosen.options(), {"times": n}, Resources()) for n in (1, 2, 2)]
print(len({json.dumps(one.description()) for one in chosen}))
try:
    TranslateParameters.model_validate({"engine": "echoing", "echoing": {"times": 9}})
except ValueError as error:
    print("times" in str(error))
"""


@pytest.mark.full
def test_engine_of_another_package(tmp_path: Path) -> None:
    install(tmp_path, "engines", "echoing", ENGINE)
    (tmp_path / "in.txt").write_text("pes spí\n")
    texts, remembered, checked = plugin.run(tmp_path, RUN).stdout.splitlines()
    assert json.loads(texts) == ["a a b b", "c c"]
    assert checked == "True"
    assert remembered == "2"  # sets of the memory, one for each of the settings
    arguments = ["translate", "in.txt", "-", "--engine", "echoing", "--set", "times=2"]
    assert plugin.run(tmp_path, COMMAND, *arguments).stdout == "1\t0\t-1.000000\tpes pes spí spí\n"


def test_engines_are_found_by_file_name() -> None:
    from paraforge.translation import engines

    assert list(engines.ENGINES) == sorted(path.stem for path in Path(engines.__path__[0]).glob("[!_]*.py"))
    assert set(engines.engine_settings()) == {"fake", "imported", "server"}
    assert [name for name in engines.ENGINES if engines.is_model_free(name)] == ["fake", "imported", "server"]
