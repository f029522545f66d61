"""Controls of a paraphraser: buckets, templates, and tags."""

from pathlib import Path
from typing import cast
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import write_json
from paraforge.base.shards.resources import available_cores
from paraforge.products.paraphrasing import paraphraser
from paraforge.products.paraphrasing.paraphraser import (
    Controls,
    add_tags,
    plain,
    remove_tags,
)
from paraforge.products.paraphrasing.stage import bucket_edges, learned_templates

CONTROLS = Controls(
    {"similarity": [0.5, 0.8], "overlap": [0.2, 0.4], "length": [1.0]},
    {"(S (NP) (VP) (.))": 900, "(S (VP) (.))": 300, "(FRAG (NP) (.))": 20},
    "link-grammar",
)


@given(st.lists(st.floats(-2, 2, width=32) | st.just(float("nan"))))
def test_buckets_of_distinct_values_have_equal_size(values: list[float]) -> None:
    array = np.array(values, np.float64)
    controls = Controls({"overlap": bucket_edges(array)})
    found = controls.buckets("overlap", array)
    assert ((found == -1) == np.isnan(array)).all()
    finite = np.unique(array[np.isfinite(array)])
    counts = np.bincount(found[found >= 0], minlength=1)
    assert len(counts) <= 3
    # no bucket that can be asked for is empty, and a larger value is in no lower one
    assert not len(finite) or len(counts) == len(controls.edges["overlap"]) + 1
    assert not len(finite) or counts.all()
    order = np.argsort(array[found >= 0], kind="stable")
    assert (np.diff(found[found >= 0][order]) >= 0).all()
    if len(finite) == np.isfinite(array).sum() >= 6:
        assert counts.max() - counts.min() <= 1


def test_names_and_values_of_buckets() -> None:
    for bucket, texts in enumerate(("low -1 0 0.1 -0.25 1e-05", "medium 0.5", "high 1 0.81 1.0")):
        assert {CONTROLS.bucket("similarity", text) for text in texts.split()} == {bucket}
    # of two buckets there is no middle one
    assert CONTROLS.names("length") == ("low", "high")
    assert CONTROLS.bucket("length", "high") == 1
    with pytest.raises(ConfigurationError, match=r"use low, high, or a value from 0\.0$"):
        CONTROLS.bucket("length", "medium")
    with pytest.raises(ConfigurationError, match="overlap: this model was trained without this control"):
        Controls().bucket("overlap", "low")


@pytest.mark.parametrize(("name", "values"), {"similarity": "-1.0 to 1.0", "overlap": "0.0 to 1.0"}.items())
@given(
    st.floats().filter(lambda value: not -1 <= value <= 1).map(str)
    | st.integers().filter(lambda number: not -1 <= number <= 1).map(str)
    | st.text(alphabet="lowmediugh \n\t-", max_size=5).filter(lambda text: text not in ("low", "high"))
    | st.sampled_from(["1e", "1e400", "-1.5", "7.0", "1,5", "nan"])
)
def test_impossible_controls_are_error(name: str, values: str, asked: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        CONTROLS.bucket(name, asked)
    expected = f"{name} {asked!r}: use low, medium, high, or a value from {values}"
    assert str(error.value) == expected
    assert "\n" not in str(error.value)


def test_templates() -> None:
    assert CONTROLS.known_template(" (ROOT (S (NP I)(VP (VBP am)) (. .)))") == "(S (NP) (VP) (.))"
    with pytest.raises(ConfigurationError) as error:
        CONTROLS.known_template("(S (VP) (PP) (.))")
    assert str(error.value) == (
        "the model has not learned the template (S (VP) (PP) (.)). "
        "Nearest: (S (VP) (.)), (S (NP) (VP) (.)), (FRAG (NP) (.))"
    )
    for broken in ("(S (NP)", "S NP VP", "", "(S))", "(" * 300):
        with pytest.raises(ConfigurationError, match="does not parse") as error:
            CONTROLS.known_template(broken)
        assert "\n" not in str(error.value)
    with pytest.raises(ConfigurationError, match="trained without templates"):
        Controls().known_template("(S (NP))")
    counts = {"d": 5, "b": 9, "c": 2, "a": 5}
    assert list(learned_templates(counts, 5, 10).items()) == [("b", 9), ("a", 5), ("d", 5)]
    assert list(learned_templates(counts, 1, 2)) == ["b", "a"]


def test_control_tags_are_reserved_symbols() -> None:
    symbols = CONTROLS.symbols()
    assert len(symbols) == len(set(symbols)) == 3 + 3 + 2 + 5
    prefix = CONTROLS.prefix({"length": 1, "similarity": 0}, "(S (NP) (VP) (.))")
    assert prefix == "⟦similarity1⟧⟦length2⟧⟦(S⟧⟦NP⟧⟦VP⟧⟦.⟧"
    for symbol in symbols:
        prefix = prefix.replace(symbol, "")
        assert plain(f"a {symbol} b") == f"a [{symbol[1:-1]}] b"
    assert prefix == ""
    assert CONTROLS.prefix({}) == ""


@given(st.text())
def test_control_tags_are_removed(text: str) -> None:
    for prefix in ("", "⟦overlap1⟧", "⟦overlap1⟧⟦(S⟧⟦NP⟧"):
        assert remove_tags(add_tags(prefix, text)) == plain(text)


def test_reading(tmp_path: Path) -> None:
    write_json(tmp_path / "controls.json", CONTROLS.as_json())
    assert Controls.read(tmp_path) == CONTROLS
    (tmp_path / "controls.json").write_text('{"format": 1, "edges": 3}', encoding="utf-8")
    with pytest.raises(InputError, match=r"controls.json: damaged"):
        Controls.read(tmp_path)
    write_json(tmp_path / "controls.json", {"format": 2})
    with pytest.raises(InputError, match=r"written in format 2, but this version reads 1.* Upgrade"):
        Controls.read(tmp_path)
    (tmp_path / "controls.json").unlink()
    with pytest.raises(InputError, match=r"not a paraphraser: there is no controls.json"):
        Controls.read(tmp_path)
    with pytest.raises(InputError, match="no such model"):
        Controls.read(tmp_path / "absent")


def test_engine_is_opened_per_control_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / "controls.json", CONTROLS.as_json())
    opened = Mock(
        side_effect=lambda *_: Mock(
            translate=lambda sources: [Mock(hypotheses=[Mock(text=source)]) for source in sources]
        )
    )
    monkeypatch.setattr(paraphraser, "open_model", lambda _: Mock(folders=["ctranslate2"]))
    monkeypatch.setattr(paraphraser, "open_translator", opened)
    model = paraphraser.Paraphraser(tmp_path)
    for wishes in ({"nbest": 4, "beam": 2}, {"nbest": 4, "beam": 2}, {"nbest": 5}):
        model.translator(paraphraser.Wishes.model_validate(wishes))
    options = [call.args[2] for call in opened.call_args_list]
    assert [(option.beam, option.nbest) for option in options] == [(4, 4), (8, 5)]
    assert {option.maximum_target_tokens for option in options} == {256}
    assert {call.args[3].threads for call in opened.call_args_list} == {available_cores()}
    # A blank line asks nothing, and nobody's text is a tag.
    found = model.paraphrase(["a", "", "b ⟦overlap1⟧"], overlap=0.0, length="high", template="(S (VP) (.))")
    tags = "⟦overlap1⟧⟦length2⟧⟦(S⟧⟦VP⟧⟦.⟧"
    assert found == [[f"{tags} a"], [""], [f"{tags} b [overlap1]"]]
    for texts in ("the dog", ["the dog", None]):
        with pytest.raises(TypeError, match="a list of strings"):
            model.paraphrase(cast("list[str]", texts))
    for wrong in ({"nbest": 0}, {"nbest": 65}, {"beam": 0}, {"beam": 129}):
        with pytest.raises(ConfigurationError, match=r"(nbest|beam): Input should be \w+ than"):
            model.paraphrase(["a"], **wrong)
