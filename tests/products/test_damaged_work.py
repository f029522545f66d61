"""Whatever happens to a file of unfinished work on a lexicon or on triplets, the result is the same."""

import math
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from paraforge.base.errors import Interrupted
from paraforge.base.shards.resources import Resources
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.parameters import LexiconFilters, LexiconParameters
from paraforge.products.triplets import preparation, search
from tests.damage import DAMAGES, apply, flip
from tests.products.triplets.corpora import mine
from tests.project import digests

Make = Callable[[Path], None]
OTHERS = [damage for damage in DAMAGES if damage is not flip]


@pytest.fixture(params=["lexicon", "lexicon of text", "triplets"])
def make(request: pytest.FixtureRequest, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a product in PLACE/out, with work in PLACE/work."""
    if request.param == "triplets":
        monkeypatch.setattr(preparation, "_ROWS_A_CELL", 30)
        monkeypatch.setattr(search, "ANCHORS_PER_JOB", 60)
        return lambda place: mine(corpus, place / "out", candidates=40, negatives=2) and None
    given = corpus
    if request.param == "lexicon of text":
        given = corpus.parent / "pairs.tsv"
        given.write_text("".join(f"a dog {n % 7} runs\tthe hound {n % 7} is running\n" for n in range(90)))
    parameters = LexiconParameters(filters=LexiconFilters(minimum_score=None), minimum_pairs=1)

    def extract(place: Path) -> None:
        resources = Resources(workers=1, work=place / "work", memory_limit="1GB")
        extract_lexicon([given], place / "out", parameters, resources)

    return extract


def files_until(make: Make, place: Path, most: float) -> int:
    """Make it until so many files have been finished, or to its end; how many have."""
    replace: Callable[..., Path] = Path.replace
    finished = 0

    def counted(path: Path, target: Path) -> Path:
        nonlocal finished
        if finished >= most:
            raise Interrupted()
        finished += 1
        return replace(path, target)

    with pytest.MonkeyPatch.context() as patched, suppress(Interrupted):
        patched.setattr(Path, "replace", counted)
        make(place)
    return finished


def kind(path: str) -> str:
    """Files of one kind have one name, but for numbers and keys."""
    return "".join(letter for letter in Path(path).name if not letter.isdigit())


@pytest.mark.full
def test_any_file(make: Make, tmp_path: Path) -> None:
    """A bit of each is flipped, and each has one of the other damages."""
    total = files_until(make, tmp_path / "whole", math.inf)
    wanted = digests(tmp_path / "whole" / "out")
    for files in (total // 2, total - 2):
        begun, place = tmp_path / f"after-{files}", tmp_path / "damaged"
        assert files_until(make, begun, files) == files
        names = {kind(name): name for name in digests(begun / "work") if not name.endswith("lock")}
        assert len(names) > 4
        for number, name in enumerate(names.values()):
            other = OTHERS[(number + files) % len(OTHERS)]
            for damage in (flip,) if name.endswith(".sha256") else (flip, other):
                shutil.copytree(begun, place)
                apply(damage, place / "work" / name)
                make(place)
                assert digests(place / "out") == wanted, (files, name, damage.__name__)
                shutil.rmtree(place)
