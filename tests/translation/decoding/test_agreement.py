"""CTranslate2 and fairseq over a trained model and real sentences (more of them: benchmarks/translate.py)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.importing import usable_model


@pytest.mark.slow
def test_engines_agree_on_real_sentences(
    data_directory: Path, small_model_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with gzip.open(data_directory / "bitext" / "multi30k.val.en-cs.tsv.gz", "rt", encoding="utf-8") as file:
        sentences = [line.rstrip("\n").split("\t")[1] for line in file][:100]
    found = {
        engine: [
            result.hypotheses[0]
            for result in open_translator(
                engine, usable_model(small_model_directory, engine), DecodingOptions(), Placement("cpu", 1)
            ).translate(sentences)
        ]
        for engine in ("ctranslate2", "fairseq")
    }
    pairs = list(zip(found["ctranslate2"], found["fairseq"], strict=True))
    same = [(one, other) for one, other in pairs if one.text == other.text]
    assert len(same) >= 99
    for one, other in same:
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.tokens == other.tokens
