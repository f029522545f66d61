"""The embedded sample bitext: 20,000 Czech-English sentence pairs written for this project.

``data/`` has one file per domain. The grammar that generated the sentences is in the git history. Every fifth
pair also has a sentence in an invented language, derived from the Czech one by a rule, as a second pivot.
"""

from importlib import resources
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.files import write_whole

PAIRS = 20_000
# ISO 639 code of the invented language; one of this many pairs has a sentence in it.
INVENTED = "art"
_INVENTED_SHARE = 5
# Shares of the generated pairs.
_DOMAIN_SHARE = {"everyday": 0.32, "captions": 0.25, "news": 0.2, "software": 0.23}
SOURCES = (*(f"sample-{domain}" for domain in _DOMAIN_SHARE), "sample-handwritten")
_HANDWRITTEN_AT_MOST = 5  # at most one of this many pairs is hand-written


def _rows(name: str) -> list[list[str]]:
    file = resources.files("paraforge.intake.sample_bitext").joinpath("data", f"{name}.tsv")
    return [line.split("\t") for line in file.read_text("utf-8").split("\n")[:-1]]


def sample_rows(pairs: int) -> dict[str, list[list[str]]]:
    """Return the first rows of each source, ``pairs`` in total: the four domains, then hand-written pairs.

    At most a fifth of the pairs are hand-written. Raises InputError if the sample has fewer pairs.
    """
    if not 1 <= pairs <= PAIRS:
        raise InputError(f"the sample has 1 to {PAIRS:,} pairs, not {pairs:,}")
    handwritten = _rows("sample-handwritten")[: pairs // _HANDWRITTEN_AT_MOST]
    left = pairs - len(handwritten)
    sizes = {f"sample-{domain}": int(left * share) for domain, share in _DOMAIN_SHARE.items()}
    sizes["sample-everyday"] += left - sum(sizes.values())
    parts = {source: _rows(source)[:size] for source, size in sizes.items()}
    return parts | {"sample-handwritten": handwritten}


def write_sample(directory: Path, pairs: int = PAIRS, language: str = "cs") -> list[Path]:
    """Write `<source>.tsv` for each of `SOURCES` (Czech, tab, English; UTF-8, LF), and return the paths.

    The invented language has one file, `sample-art.tsv`, with a fifth of the pairs. Raises InputError if the
    sample has fewer pairs.
    """
    parts = sample_rows(pairs)
    if language == INVENTED:
        name = f"sample-{INVENTED}"
        parts = {name: _rows(name)[: pairs // _INVENTED_SHARE]}
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for source, rows in parts.items():
        path = directory / f"{source}.tsv"
        content = "".join(f"{row[0]}\t{row[1]}\n" for row in rows).encode("utf-8")
        write_whole(path, content)
        paths.append(path)
    return paths
