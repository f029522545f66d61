"""BLEU and chrF of a converted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.store import read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.training import validation
from paraforge.translation.training.parameters import NmtParameters
from paraforge.translation.training.validation import Scores, evaluate, score_hypotheses
from tests.translation.models.tiny import bitext, write_ctranslate2, write_tiny_fairseq


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("validation")
    fairseq = write_tiny_fairseq(folder / "fairseq", updates=60)
    write_ctranslate2(fairseq, folder / "converted")
    for language in ("cs", "en"):
        (folder / f"dict.{language}.txt").write_bytes((fairseq / f"dict.{language}.txt").read_bytes())
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes((fairseq / "sentencepiece.model").read_bytes())
    pairs = bitext(30, seed=3)
    table = pa.table({"source_text": [cs for cs, _ in pairs], "reference": [en for _, en in pairs]})
    pq.write_table(table, folder / "held_out.parquet")
    return folder


def test_scores_are_sacrebleus() -> None:
    # The unigrams to 4-grams of an identical corpus all match.
    scores = score_hypotheses(["a dog runs in the park"], ["a dog runs in the park"])
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)
    assert scores.bleu_signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert scores.chrf_signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    # Precisions 5/6, 3/5, 1/4 and, smoothed, 1/6: (5/6 * 3/5 * 1/4 * 1/6) ** (1/4) = 0.37992.
    assert score_hypotheses(["a dog runs in the park"], ["a dog runs at the park"]).bleu == pytest.approx(
        100 * (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** 0.25
    )


@pytest.mark.parametrize(("hypotheses", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_what_cannot_be_scored(hypotheses: list[str], references: list[str]) -> None:
    with pytest.raises(InputError, match="cannot be scored"):
        score_hypotheses(hypotheses, references)


def score(directory: Path, beam: int = 3, threads: int = 1, **changes: Any) -> Scores:
    parameters = NmtParameters.model_validate({"maximum_tokens": 30, **changes})
    return evaluate(
        directory / "fairseq" / "checkpoint.pt", directory, parameters, beam=beam, threads=threads
    )


def test_evaluation(directory: Path) -> None:
    scores = score(directory)
    assert 0 < scores.bleu <= 100
    assert scores == score(directory, threads=2)


def test_fairseq_gives_the_scores_of_ctranslate2(directory: Path) -> None:
    """What CTranslate2 does not run is decoded by fairseq; of what both run, both find the same."""
    assert score(directory, architecture={"kind": "lstm"}, beam=1) == score(directory, beam=1)


def test_hypotheses_are_bounded_by_the_sources(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def translate(*arguments: object, maximum_tokens: int, **options: object) -> list[list[str]]:
        seen.append(maximum_tokens)
        return [["a"]] * 30

    monkeypatch.setattr(validation, "translate_pieces", translate)
    sources = read_parquet(directory / "held_out.parquet")["source_text"].to_pylist()
    longest = max(map(len, load_processor(directory / "source.spm").encode(sources)))
    for maximum in (1000, 5):
        score(directory, beam=1, maximum_tokens=maximum)
    assert seen == [2 * longest + 10, 5]
