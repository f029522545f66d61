"""Languages of both sides, with and without the optional package."""

import sys
from copy import copy

import pyarrow as pa
import pytest

from paraforge.base.errors import ConfigurationError, MissingPackageError
from paraforge.base.text.language_identification import load_language_model
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers import language
from paraforge.intake.bitext import languages

PAIRS = [
    ("The committee will meet again on Thursday.", "The committee meets again on Thursday."),
    ("She has never been to the mountains before.", "Ještě nikdy nebyla na horách."),
    ("Der Ausschuss tritt am Donnerstag wieder zusammen.", "The committee meets again on Thursday."),
    ("42", "..."),
    ("", "The committee meets again on Thursday."),
]


def pairs() -> Pairs:
    return Pairs.of(pa.array([r for r, _ in PAIRS]), pa.array([t for _, t in PAIRS]))


@pytest.mark.parametrize(("candidates", "third"), [(None, {"de"}), (["en", "cs"], {"en", "cs"})])
def test_languages(candidates: list[str] | None, third: set[str]) -> None:
    pytest.importorskip("py3langid")
    assert language.fingerprint().startswith("py3langid ")
    columns = language.LanguageIdentification(candidates)(pairs())
    found = columns["reference_language"]
    assert found.type == pa.string() and found.to_pylist()[:2] == ["en", "en"]
    assert found[2].as_py() in third and found.to_pylist()[3:] == [None, None]
    assert columns["translation_language"].to_pylist() == ["en", "cs", "en", None, "en"]


def test_unknown_candidates() -> None:
    pytest.importorskip("py3langid")
    with pytest.raises(ConfigurationError, match=r"does not know xx, yy; use some of .*\bcs, "):
        language.LanguageIdentification(["en", "xx", "yy"])


def test_column_model_matches_package() -> None:
    pytest.importorskip("py3langid")
    identifier = copy(languages.identifier())
    texts = [text for pair in PAIRS for text in pair]
    texts += ["ŽLUŤOUČKÝ KŮŇ ÚPĚL ĎÁBELSKÉ ÓDY", "ĎA\u0301BEL", "Да, то је тачно.", "\U0001f600"]
    texts += [" ", "", "do " * 400, "NO SMOKING", "Ärger", "NO ĎÁBEL", "no é", "NO \u00e9", "½ ²"]
    texts += [f"{first} {second}" for first in texts for second in texts]
    for codes in (None, ["cs", "en", "sr"]):
        identifier.set_languages(codes)
        model = load_language_model(identifier)
        assert model is not None
        column = pa.array(["x", *texts])[1:]  # a column that does not begin its buffers
        found = [model.labels[number] for number in model.classify(column)]
        assert found == [identifier.classify(text)[0] for text in texts]


def test_other_weight_precision_uses_package() -> None:
    pytest.importorskip("py3langid")
    identifier = copy(languages.identifier())
    assert load_language_model(identifier) is not None
    identifier.nb_ptc = identifier.nb_ptc.astype("float32") + 1e-4
    assert load_language_model(identifier) is None


def test_changed_model_layout_falls_back_to_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("py3langid")
    monkeypatch.setattr("paraforge.base.text.language_identification.LanguageModel", lambda it: it.no_such)
    monkeypatch.setattr(language, "_load", language._load.__wrapped__)  # what is loaded is kept
    columns = language.LanguageIdentification()(pairs())
    assert columns["translation_language"].to_pylist() == ["en", "cs", "en", None, "en"]


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "py3langid":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[language\]'"):
        language.LanguageIdentification()
