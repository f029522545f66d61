"""The signature: one field per choice."""

from typing import Any

import pytest

from paraforge.corpus.publication.signature import signature
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.versions import __version__

STEPS: dict[str, dict[str, Any]] = {
    "translate": {
        "parameters": {"engine": "ctranslate2", "beam": 12, "nbest": 1},
        "fingerprints": {"model": "3fa9c1d2" + "0" * 56},
    },
    "score": {"fingerprints": {"vectors": "91ab77e0" + "f" * 56, "language": "abc"}},
}


def parameters(*filters: dict[str, Any]) -> SelectParameters:
    return SelectParameters.model_validate({"filters": filters})


def test_signature_of_a_typical_corpus() -> None:
    select = parameters(
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.4, "maximum": 1},
        {"kind": "length", "minimum": 1, "maximum": 30},
    )
    assert signature(["tatoeba"], STEPS, select) == (
        "src:tatoeba|mt:3fa9c1d2|beam:12|nbest:1|tok:moses-lc|score:paragram:91ab77e0|sim:0.4-1|len:1-30"
        f"|v:{__version__}"
    )


def test_the_signature_names_the_forward_translation() -> None:
    def signed(model: str = "ab" * 32, **options: Any) -> str:
        forward = {
            "parameters": {"engine": "ctranslate2", "beam": 4, "hypotheses": "of a corpus", **options},
            "fingerprints": {"model": model},
        }
        return signature(
            ["a"], {**STEPS, "translate": {**STEPS["translate"], "forward": forward}}, parameters()
        )

    found = signed()
    assert found.startswith("src:a|mt:3fa9c1d2|fwd:abababab:beam4:")
    assert signed(hypotheses="of another") == found
    changes = [signed("cd" * 32), signed(beam=5), signed(length_penalty=0.5), signed(engine="torch")]
    assert len({found, *changes}) == 5
    assert "fwd" not in signature(["a"], STEPS, parameters())


FORWARD = {"parameters": {"beam": 4}, "fingerprints": {"model": "ab" * 32}}


def made(engine: str, model: str) -> dict[str, Any]:
    parameters = {"engine": engine, "beam": 12, "nbest": 3}
    return {"translate": {"parameters": parameters, "fingerprints": {"model": model}}}


@pytest.mark.parametrize(
    ("steps", "field"),
    [
        ({"score": {"fingerprints": {"scorer": "91ab77e0" + "f" * 56}}}, "score:general:91ab77e0"),
        ({"score": {"fingerprints": {"vectors": "91ab77e0" + "f" * 56}}}, "score:paragram:91ab77e0"),
        ({"score": {"fingerprints": {"model": "91ab77e0" + "f" * 56}}}, "score:model:91ab77e0"),
        ({}, "score:none"),
        (made("fake", "ab" * 32), "mt:fake:abababab|beam:12|nbest:3"),
        (made("imported", "ab" * 32), "mt:imported:abababab|nbest:3"),
        (made("none", "none"), "mt:given|tok:moses-lc"),
        ({"translate": {"sentences": 9, "sentences_from_memory": 5}}, "mem:5/9"),
        ({"translate": {"chosen": {"maximum_sentences": 7}}}, "first:7"),
        ({"translate": {"forward": {"chosen": {"maximum_sentences": 7}, **FORWARD}}}, "first:7"),
        ({"translate": {"parameters": {"translation_line": 1}}}, "pairs:all"),
    ],
)
def test_the_signature_names_engines_and_scorers(steps: dict[str, Any], field: str) -> None:
    assert f"|{field}|" in signature(["a"], steps, parameters())


BOUNDS: dict[str, Any] = {"kind": "bounds", "score": "contradiction", "maximum": 0.5}
LANGUAGES: dict[str, Any] = {"kind": "language", "languages": ["en"]}


@pytest.mark.parametrize(
    ("select", "field"),
    [
        ({"filters": [BOUNDS]}, "tok:moses-lc|score:none|contradiction:-0.5"),
        ({"filters": [{**BOUNDS, "missing": "accept"}]}, "contradiction:-0.5:accept"),
        ({"filters": [LANGUAGES]}, "lang:en"),
        ({"filters": [{**LANGUAGES, "missing": "refuse"}]}, "lang:en:refuse"),
        ({"required": []}, "need:none"),
        ({"required": ["paraphrase_score", "contradiction"]}, "need:sim+contradiction"),
    ],
)
def test_the_signature_names_the_handling_of_missing_scores(select: dict[str, Any], field: str) -> None:
    assert f"|{field}|" in signature(["a"], {}, SelectParameters.model_validate(select))


def test_source_names_are_escaped_in_the_signature() -> None:
    line = signature(["b|c:d", "a b+c"], {}, parameters())
    assert line.split("|")[0] == "src:a-b-c+b-c-d"
    assert signature(list("dcba"), {}, parameters()).startswith("src:a+b+c+d|")
    many = signature([f"s{n}" for n in range(5)], {}, parameters())
    assert many.startswith("src:5-sources:")
    assert many == signature([f"s{n}" for n in reversed(range(5))], {}, parameters())
