"""A published corpus for the tests of browsing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from paraforge.interface.browse.server import Browser, open_browser
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs

ROWS = 700
NASTY = "<script>document.title = 'owned'</script> & \"quoted\" <b>bold</b>"
PUBLISHED: dict[str, Any] = {
    "required": ["overlap_1"],
    "filters": [
        {"kind": "flag", "column": "runaway"},
        {"kind": "flag", "column": "digit_mismatch", "name": "same_numbers"},
        {"kind": "length", "minimum": 2, "maximum": 10},
        {"kind": "decile", "score": "overlap_2", "top": 7},
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.2, "name": "near"},
        {"kind": "bounds", "score": "paraphrase_score", "maximum": 0.95, "missing": "accept"},
        {"kind": "bounds", "score": "overlap_3", "maximum": 0.9, "missing": "accept"},
    ],
}
SIMPLE: dict[str, Any] = {
    "filters": [
        {"kind": "length", "maximum": 10},
        {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.2, "maximum": 1.0},
    ]
}


def hostile_pairs(rows: int = ROWS) -> pa.Table:
    """Random pairs; every translation has markup in it, and so has the long name of a source."""
    table = random_pairs(rows, seed=7)
    texts = [text and f"{text} {NASTY}" for text in table["translation"].to_pylist()]
    sources = [name.replace("news", f"news <i>&{60 * 'x'}") for name in table["source"].to_pylist()]
    return with_columns(table, translation=texts, source=sources)


@pytest.fixture(scope="package")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``corpus``, ``rejected`` and what they were published from."""
    directory = tmp_path_factory.mktemp("published")
    publish_pairs(directory, rows=ROWS, filters=PUBLISHED)
    return directory


@contextmanager
def browsing(root: Path, with_rejected: bool = True) -> Iterator[Browser]:
    """A published corpus as the page has it."""
    with open_browser(root / "corpus", with_rejected) as browser:
        yield browser


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a corpus whose text and names are markup."""
    directory = tmp_path_factory.mktemp("hostile")
    publish_pairs(directory, filters=SIMPLE, table=hostile_pairs(), name="A <corpus>")
    return directory


@pytest.fixture(scope="package")
def browser(hostile: Path) -> Iterator[Browser]:
    """That corpus as the page has it."""
    with browsing(hostile) as opened:
        yield opened
