"""The shortlist that training learns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.stats import chi2_contingency

from paraforge.translation.training import shortlist
from paraforge.translation.training.binarization import PartWriter

_EOS, _FIRST = 2, 4


def write_parts(
    directory: Path, pairs: list[tuple[list[int], list[int]]], pieces: list[list[str]]
) -> list[str]:
    for language, names in zip(("cs", "en"), pieces, strict=True):
        lines = "".join(f"{name} 1\n" for name in names)
        (directory / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
    writer = PartWriter(directory, ("cs", "en"))
    numbers = [
        [[_FIRST + number for number in side] + [_EOS] for side in sides]
        for sides in zip(*pairs, strict=True)
    ]
    writer.write(pa.table([pa.array(side, pa.list_(pa.int32())) for side in numbers], ["source", "target"]))
    writer.close()
    return writer.parts


def test_shortlist_orders_by_log_likelihood_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "LIKELY", 4)
    monkeypatch.setattr(shortlist, "_BLOCK", 3)  # of seven pieces: several blocks, the last one smaller
    dice = np.random.default_rng(1)
    source, target = (dice.random((60, types)) < 0.3 for types in (7, 9))
    target[:, 2] |= source[:, 1]
    found = shortlist.likely_pieces(*(sparse.csr_array(side.astype(np.float32)) for side in (source, target)))
    for piece, likely in enumerate(found):
        ratios = {}
        for other in range(9):
            table = [
                [np.sum((source[:, piece] == a) & (target[:, other] == b)) for b in (1, 0)] for a in (1, 0)
            ]
            more = table[0][0] * 60 > source[:, piece].sum() * target[:, other].sum()
            if more:
                ratios[other] = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
        assert list(likely) == sorted(ratios, key=lambda other: -ratios[other])[:4]
    assert piece == 6


def test_shortlist_file_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "FEWEST_TYPES", 4)
    monkeypatch.setattr(shortlist, "FREQUENT", 2)
    pieces = [["▁pes", "▁kočka", "▁Praha", "nikdy"], ["▁dog", "▁cat", "▁a", "▁Praha"]]
    pairs = [([0, 0], [0, 2]), ([1], [1, 1, 1, 2]), ([0], [0, 2]), ([1], [1])]
    parts = write_parts(tmp_path, pairs, pieces)
    assert shortlist.write_shortlist(tmp_path, parts, ("cs", "en"), tmp_path)
    lines = (tmp_path / "vmap.txt").read_text(encoding="utf-8").splitlines()
    # A name becomes itself although no pair has it, and a piece without anything has no line.
    assert lines == ["\t▁a ▁dog", "▁pes\t▁dog ▁a", "▁kočka\t▁cat", "▁Praha\t▁Praha"]


def test_small_vocabulary_has_no_shortlist(tmp_path: Path) -> None:
    sources = [f"s{number}" for number in range(shortlist.FEWEST_TYPES)]
    parts = write_parts(tmp_path, [([0], [0])], [sources, ["b"]])  # that of the target decides
    assert not shortlist.write_shortlist(tmp_path, parts, ("cs", "en"), tmp_path)
    assert not (tmp_path / "vmap.txt").exists()


def test_shortlist_samples_large_bitexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "FEWEST_TYPES", 1)
    monkeypatch.setattr(shortlist, "MOST_PAIRS", 3)
    pieces = [[f"s{number}" for number in range(7)], [f"t{number}" for number in range(7)]]
    parts = write_parts(tmp_path, [([number], [number]) for number in range(7)], pieces)
    shortlist.write_shortlist(tmp_path, parts, ("cs", "en"), tmp_path)
    lines = (tmp_path / "vmap.txt").read_text(encoding="utf-8").splitlines()
    assert lines[1:] == ["s0\tt0", "s3\tt3", "s6\tt6"]
