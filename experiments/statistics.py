"""Statistics of a source of pairs: ParaNMT-50M's Table 1, and the score bands of its Table 3.

python -m experiments.statistics captions figures.json --parses 1000
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from experiments.pairs import FILES, data_directory, paraphrases
from experiments.pool import corpus_pairs, scores_of
from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.base.parsing.brackets import top_two_levels
from paraforge.base.parsing.parser import open_parser
from paraforge.base.text.idf import background_of_frequencies
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.corpus.statistics.counts import BANDS, Moments, band_of
from paraforge.corpus.statistics.samples import SampledSource, describe_sample

SHOWN = ("length", "length_sd", "idf", "idf_sd", "paraphrase_score", "paraphrase_score_sd",
         "vocabulary_entropy", "parse_entropy")  # fmt: skip


def main(
    source: str,
    output: Path,
    sample: Annotated[int, typer.Option(help="pairs that are looked at, drawn at random")] = 100_000,
    parses: Annotated[int, typer.Option(help="of them parsed by link-grammar")] = 0,
    corpus: Annotated[
        list[Path] | None, typer.Option(help="shard directories with a source corpus/NAME")
    ] = None,
) -> None:
    """Write the figures of one source as {"figures": {...}}; left sides are the references."""
    pairs = _sample(source, sample, corpus or [])
    background = background_of_frequencies(data_directory() / "wordfreq" / "enwiki_vocab_min200.txt.gz", None)
    tokens, scores = scores_of(pairs)
    lines = np.arange(len(pairs))
    trees = {}
    if parses:
        found = open_parser("link-grammar").parse(pairs.left[:parses].to_pylist())
        trees = {(source, line): top_two_levels(tree) for line, tree in enumerate(found) if tree is not None}
    known = scores["paraphrase_score"].astype(np.float64)
    described = describe_sample(SampledSource(tokens, lines, known), background, source, trees, None)
    figures: dict[str, Any] = {
        name: round(described[name], 2) for name in SHOWN if described[name] is not None
    }
    bands = band_of(np.nan_to_num(known, nan=-1.0))
    for number in range(len(BANDS)):
        overlaps = Moments.of(scores["overlap_3"][bands == number].astype(np.float64))
        figures[f"band_{number + 1}_percent"] = round(100 * float((bands == number).mean()), 1)
        if overlaps.mean is not None and overlaps.deviation is not None:
            figures[f"band_{number + 1}_overlap"] = round(overlaps.mean, 2)
            figures[f"band_{number + 1}_overlap_sd"] = round(overlaps.deviation, 2)
    write_json(output, {"figures": {**figures, "pairs": len(pairs), "parsed": len(trees)}})


def _sample(source: str, size: int, corpora: list[Path]) -> PairBlock:
    if source in FILES:
        blocks = list(paraphrases(source))
    else:
        blocks = [block for block, _ in corpus_pairs(corpora) if block.source in (source, f"corpus/{source}")]
    if not blocks:
        raise InputError(f"no pairs of {source}", remedy="Name the corpus that has them with --corpus.")
    left, right = (
        pa.concat_arrays([pa.array(getattr(block, side), pa.string()) for block in blocks])
        for side in ("left", "right")
    )
    chosen = pa.array(np.random.default_rng(1).permutation(len(left))[:size])
    return PairBlock(left.take(chosen), right.take(chosen), source)


if __name__ == "__main__":
    typer.run(main)
