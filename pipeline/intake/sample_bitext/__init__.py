"""The embedded sample bitext: 20,000 Czech-English sentence pairs written for this project.

``data/`` has one file per domain. The grammar that generated them is in the history of the project. Every
fifth pair also has a sentence in an invented language, derived from the Czech one by a rule, as a second
pivot.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.files import write_whole

PAIRS = 20_000
# The code of constructed languages; one pair in this many has a sentence in it.
INVENTED = "art"
_INVENTED_SHARE = 5
# Shares of the generated pairs.
_DOMAIN_SHARE = {"everyday": 0.32, "captions": 0.25, "news": 0.2, "software": 0.23}
SOURCES = (*(f"sample-{domain}" for domain in _DOMAIN_SHARE), "sample-handwritten")
_HANDWRITTEN_AT_MOST = 5  # one pair in five


@dataclass(frozen=True)
class SamplePair:
    """A sentence pair of the sample: source name, Czech sentence and English reference."""

    source: str
    cs: str
    reference: str


def _rows(name: str) -> list[list[str]]:
    text = (
        resources.files("paraforge.intake.sample_bitext").joinpath("data", f"{name}.tsv").read_text("utf-8")
    )
    return [line.split("\t") for line in text.split("\n")[:-1]]


def _check_size(pairs: int) -> None:
    if not 1 <= pairs <= PAIRS:
        raise InputError(f"the sample has 1 to {PAIRS:,} pairs, not {pairs:,}")


def _sizes(pairs: int, written: int) -> dict[str, int]:
    """Return the number of pairs of each source; they add up to ``pairs``."""
    left = pairs - written
    sizes = {f"sample-{domain}": int(left * share) for domain, share in _DOMAIN_SHARE.items()}
    sizes["sample-everyday"] += left - sum(sizes.values())
    return sizes | {"sample-handwritten": written}


def generate(pairs: int = PAIRS) -> Iterator[SamplePair]:
    """Yield the first ``pairs`` of the sample: the four domains one after the other, then the hand-written
    ones, all of them unless that would be more than a fifth. Raises InputError: ``pairs`` is more than there
    are."""
    _check_size(pairs)
    written = min(len(_rows("sample-handwritten")), pairs // _HANDWRITTEN_AT_MOST)
    for source, size in _sizes(pairs, written).items():
        for cs, reference in islice(_rows(source), size):
            yield SamplePair(source, cs, reference)


def _write(path: Path, rows: Iterable[tuple[str, str]]) -> Path:
    content = "".join(f"{cs}\t{reference}\n" for cs, reference in rows).encode("utf-8")
    if path.is_file() and path.read_bytes() == content:
        return path  # an unchanged file keeps its time, so that later stages do not rerun
    write_whole(path, content)
    return path


def write_sample(directory: Path, pairs: int = PAIRS, language: str = "cs") -> list[Path]:
    """Write the training part: `<source>.tsv` (Czech, tab, English; UTF-8, newline) for each of `SOURCES`.

    The invented language has one file, `sample-art.tsv`, with a fifth of the pairs. Files are written
    atomically, and a second call changes nothing. Raises InputError: ``pairs`` is more than there are.
    """
    _check_size(pairs)
    by_source: dict[str, list[tuple[str, str]]]
    if language == INVENTED:
        name = f"sample-{INVENTED}"
        by_source = {name: [(row[0], row[1]) for row in _rows(name)[: pairs // _INVENTED_SHARE]]}
    else:
        by_source = {source: [] for source in SOURCES}
        for pair in generate(pairs):
            by_source[pair.source].append((pair.cs, pair.reference))
    directory.mkdir(parents=True, exist_ok=True)
    return [_write(directory / f"{source}.tsv", rows) for source, rows in by_source.items()]
