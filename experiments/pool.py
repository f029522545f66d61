"""One store of all training pairs that the experiments choose from, each pair with its source and decile."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from experiments.pairs import FILES, data_directory, paraphrases
from paraforge.bitext.pair_blocks import PairBlock
from paraforge.embeddings.pair_store import PairStore, build_pair_store
from paraforge.embeddings.parameters import VocabularyParameters
from paraforge.evaluation.leakage import LeakageFilter
from paraforge.files import read_json, write_json
from paraforge.shards.store import ShardView
from paraforge.text.units import make_units

UNITS = ("word", "trigram", "bare_word", "bare_trigram")
"""Sources of PARAFORGE_DATA, see `experiments.pairs`."""
_COLUMNS = ["source", "reference", "translation"]
_DECILE = "paraphrase_score_decile"


class Pool:
    """All pairs as ids. A pair's source is `names[codes[k]]`; its decile is 1 to 10, 0 where it has none.

    Pairs with a sentence of an STS set are left out; what the filter found is in `leakage`.
    """

    def __init__(self, directory: Path, corpora: list[Path]) -> None:
        """Open the pool in `directory`, made the first time.

        corpora: row-aligned shard directories with source, reference, translation, and perhaps deciles; all
            pairs with a translation are taken, also those that selection refused.
        """
        self._origin = [str(path) for path in corpora]
        index = directory / "pool.json"
        if not index.is_file() or read_json(index)["corpora"] != self._origin:
            self._build(directory, corpora)
        content = read_json(index)
        self.names: list[str] = content["names"]
        self.leakage: list[str] = content["leakage"]
        self.codes: npt.NDArray[np.int16] = np.load(directory / "codes.npy")
        self.deciles: npt.NDArray[np.int8] = np.load(directory / "deciles.npy")
        self.store = PairStore(directory / "pairs")

    def _build(self, directory: Path, corpora: list[Path]) -> None:
        leakage = LeakageFilter.of_files([data_directory() / "sts"])
        names: list[str] = []
        codes: list[npt.NDArray[np.int16]] = []
        deciles: list[npt.NDArray[np.int8]] = []

        def blocks() -> Iterator[PairBlock]:
            for name, decile, block in _labelled(corpora):
                if name not in names:
                    names.append(name)
                for kept in leakage([_with_letters(block)]):
                    codes.append(np.full(len(kept), names.index(name), dtype=np.int16))
                    deciles.append(np.full(len(kept), decile, dtype=np.int8))
                    yield kept

        units = [make_units(name) for name in UNITS]
        limits = {name: VocabularyParameters(maximum_size=60_000) for name in UNITS}
        store = build_pair_store(directory / "pairs", blocks(), units, limits)
        if store.skipped:
            raise SystemExit(f"{store.skipped} pairs without a token: their labels would be wrong")
        np.save(directory / "codes.npy", np.concatenate(codes))
        np.save(directory / "deciles.npy", np.concatenate(deciles))
        write_json(
            directory / "pool.json",
            {"corpora": self._origin, "names": names, "leakage": leakage.report.lines()},
        )

    def choose(
        self,
        units: Collection[str],
        sources: list[str] | None = None,
        limit: int | None = None,
        decile: int | None = None,
        seed: int = 1,
    ) -> PairStore:
        """Some of the pairs, cut into these units.

        sources: names, or the first part of names before a `/`; None: all.
        limit: number of them, drawn at random. decile: of the corpus' pairs alone.
        """
        keep = np.ones(len(self.codes), dtype=bool)
        if sources is not None:
            wanted = [
                n for n, name in enumerate(self.names) if name in sources or name.split("/")[0] in sources
            ]
            keep &= np.isin(self.codes, wanted)
        if decile is not None:
            keep &= self.deciles == decile
        chosen = np.flatnonzero(keep)
        if limit is not None and len(chosen) > limit:
            chosen = np.sort(np.random.default_rng(seed).permutation(chosen)[:limit])
        return self.store.of_units(units).subset(chosen)

    def counts(self) -> dict[str, int]:
        """Pairs of each source."""
        return dict(zip(self.names, np.bincount(self.codes, minlength=len(self.names)).tolist(), strict=True))


def _labelled(corpora: list[Path]) -> Iterator[tuple[str, int, PairBlock]]:
    """Blocks of one source and decile each."""
    for source in FILES:
        if not (data_directory() / FILES[source]).is_file():
            print(f"no pairs of {source}: {FILES[source]} is missing", file=sys.stderr)
            continue
        for block in paraphrases(source):
            yield source, 0, replace(block, source=source)
    if not corpora:
        return
    view = ShardView(*corpora)
    optional = [name for name in ("failed", _DECILE) if name in view.column_names]
    for table in view.tables([*_COLUMNS, *optional]):
        table = table.filter(pc.is_valid(table.column("translation")))
        if "failed" in optional:
            table = table.filter(pc.is_null(table.column("failed")))
        tenths = np.zeros(len(table), dtype=np.int64)
        if _DECILE in optional:
            tenths = pc.fill_null(table.column(_DECILE), 0).to_numpy().astype(np.int64)
        for source in sorted(pc.unique(table.column("source")).to_pylist()):
            of_source = pc.equal(table.column("source"), source).to_numpy()
            for tenth in np.unique(tenths[of_source]).tolist():
                part = table.filter(pa.array(of_source & (tenths == tenth)))
                left, right = (part.column(name).cast(pa.string()).combine_chunks() for name in _COLUMNS[1:])
                yield f"corpus/{source}", tenth, PairBlock(left, right, f"corpus/{source}")


def _with_letters(block: PairBlock) -> PairBlock:
    """The pairs with a letter or digit on both sides: they have a token, so none is skipped later on."""
    keep = pc.and_(*(pc.match_substring_regex(side, r"[\pL\pN]") for side in (block.left, block.right)))
    return block.filter(keep)
