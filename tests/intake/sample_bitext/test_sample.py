"""The sample bitext in every size."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.intake.sample_bitext import INVENTED, PAIRS, SOURCES, write_sample
from tests.sample import SamplePair, generate

# Of the files that the grammar drew, which the sample was until 0.1.0.
SHA256 = {
    600: "667c1710aa49049af03087969bdc087e16a4329ad6fc68889a97f6f4ac2110bf",
    3000: "59320a983cecc1e6a56e031c93fc2933ef5263a67eec2334d23111e17edd08b5",
    20000: "a54f2aed0bae1c820aef1c3c6aff488af6f3e4b1da281b1db12ef6a5d50dea62",
}


def invented(czech: str) -> str:
    """A Czech sentence in the invented language: words backwards, without accents, each letter the next one
    of its kind."""
    plain = "".join(c for c in unicodedata.normalize("NFD", czech.lower()) if not unicodedata.combining(c))
    for letters in ("aeiouy", "bcdfghjklmnpqrstvwxz"):
        plain = "".join(f"{letters}{letters[0]}"[letters.find(c) + 1] if c in letters else c for c in plain)
    words = reversed(re.findall(r"[^\W_]+", plain))
    return f"{' '.join(words)}{czech[-1]}".capitalize()


@pytest.fixture(scope="module")
def corpus() -> list[SamplePair]:
    return list(generate())


@pytest.mark.parametrize("pairs", SHA256)
def test_sample_pairs_are_reproducible(tmp_path: Path, pairs: int) -> None:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in write_sample(tmp_path, pairs)))
    assert digest.hexdigest() == SHA256[pairs]


@pytest.mark.parametrize("pairs", [1, 7, 100, 1501])
def test_any_size_is_exact(pairs: int, corpus: list[SamplePair]) -> None:
    found = list(generate(pairs))
    assert len(found) == pairs
    for source in SOURCES:
        whole = [pair for pair in corpus if pair.source == source]
        part = [pair for pair in found if pair.source == source]
        assert part == whole[: len(part)]


@pytest.mark.parametrize("pairs", [0, -1, PAIRS + 1])
def test_unavailable_sample_size_is_error(pairs: int) -> None:
    with pytest.raises(InputError, match="1 to 20,000 pairs"):
        list(generate(pairs))


def test_written_files(tmp_path: Path) -> None:
    paths = write_sample(tmp_path, pairs=900)
    assert [path.name for path in paths] == [f"{source}.tsv" for source in SOURCES]
    lines = [line for path in paths for line in path.read_bytes().decode("utf-8").split("\n")[:-1]]
    assert lines == [f"{pair.cs}\t{pair.reference}" for pair in generate(900)]
    paths[0].write_text("damaged", encoding="utf-8")
    write_sample(tmp_path, pairs=900)
    assert paths[0].read_bytes().startswith(lines[0].encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)


@pytest.mark.parametrize("pairs", [100, 1503, PAIRS])
def test_every_fifth_pair_is_in_invented_language(tmp_path: Path, pairs: int) -> None:
    (path,) = write_sample(tmp_path, pairs, INVENTED)
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == pairs // 5 == len(set(lines))
    by_source: dict[str, list[SamplePair]] = defaultdict(list)
    for pair in generate():
        by_source[pair.source].append(pair)
    fifths = {f"{invented(one.cs)}\t{one.reference}" for own in by_source.values() for one in own[::5]}
    assert fifths.issuperset(lines)
    shared = {pair.reference for pair in generate(pairs)}
    assert sum(line.split("\t")[1] in shared for line in lines) > 0.8 * len(lines)
