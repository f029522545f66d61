"""The languages of both sides, where the optional package is there, and a clear message where it is not."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from pipeline.errors import ConfigurationError, MissingPackageError
from pipeline.scoring import language
from pipeline.scoring.pairs import Pairs

PAIRS = [
    ("The committee will meet again on Thursday.", "The committee meets again on Thursday."),
    ("She has never been to the mountains before.", "Ještě nikdy nebyla na horách."),
    ("Der Ausschuss tritt am Donnerstag wieder zusammen.", "The committee meets again on Thursday."),
    ("42", "..."),
    ("", "The committee meets again on Thursday."),
]


def pairs() -> Pairs:
    return Pairs.of(pa.array([r for r, _ in PAIRS]), pa.array([t for _, t in PAIRS]))


def test_languages() -> None:
    pytest.importorskip("py3langid")
    columns = language.LanguageIdentification()(pairs())
    assert columns["reference_language"].to_pylist() == ["en", "en", "de", None, None]
    assert columns["translation_language"].to_pylist() == ["en", "cs", "en", None, "en"]
    assert columns["reference_language"].type == pa.string()
    assert language.fingerprint().startswith("py3langid ")


def test_candidates() -> None:
    pytest.importorskip("py3langid")
    columns = language.LanguageIdentification(["en", "cs"])(pairs())
    assert set(columns["reference_language"].to_pylist()) <= {"en", "cs", None}
    assert columns["translation_language"].to_pylist() == ["en", "cs", "en", None, "en"]
    with pytest.raises(ConfigurationError, match=r"xx, yy not known; there are .*\bcs, "):
        language.LanguageIdentification(["en", "xx", "yy"])


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "py3langid":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'paraforge\[language\]'"):
        language.LanguageIdentification()
