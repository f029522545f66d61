"""A source of nothing but unknown pieces is failed, not published as a fluent invention."""

from pathlib import Path

import pytest

from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator

UNKNOWN = ["😀😀", "漢字 漢字", "ѱѯѵ"]


@pytest.mark.parametrize("engine", ["ctranslate2", "fairseq", "torch"])
def test_unknown_sources_fail(engine: str, tiny_fairseq: Path, tiny_ctranslate2: Path) -> None:
    model = tiny_fairseq if engine == "fairseq" else tiny_ctranslate2
    options = DecodingOptions(beam=2, maximum_target_tokens=20)
    translator = open_translator(engine, model, options, Placement("cpu"))
    found = list(translator.translate(["pes spí", *UNKNOWN, "pes 😀"]))
    assert [one.failed for one in found] == [None, *["unknown source"] * 3, None]
    assert not any(one.hypotheses for one in found[1:4])
