"""What n-best lists, diverse beams and sampling do to the pairs: overlap, paraphrase score, usable pairs.

python -m benchmarks.diversity --model models/nmt --bitext FILE.tsv.gz --vectors models/paragram
"""

import json
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from benchmarks.bitext import read_bitext
from benchmarks.hardware import hardware
from benchmarks.results import append
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.overlap import Overlap
from paraforge.corpus.scoring.scorers.paraphrase_score import ParaphraseScore
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

_BEAM = 12


@dataclass(frozen=True)
class Way:
    """A setting of the search."""

    name: str
    nbest: int
    settings: dict[str, Any]


def ways(count: int) -> list[Way]:
    """The settings that are compared, ``count`` hypotheses of each."""
    found = [Way("best of the beam", 1, {}), Way(f"{count}-best", count, {})]
    for strength in (0.5, 1.0, 2.0):
        settings = {"groups": count, "diversity": strength}
        found.append(Way(f"{count} groups, diversity {strength}", count, settings))
    drawn: list[dict[str, Any]] = [{"top_k": 10, "temperature": 0.7}, {"top_k": 10}, {"top_p": 0.9}, {}]
    for values in drawn:
        name = ", ".join(f"{key} {value}" for key, value in values.items()) or "of everything"
        found.append(Way(f"sampling {name}", count, {"method": "sampling", **values}))
    return found


@dataclass(frozen=True)
class Scored:
    """Pairs of a way, an entry each: sentence, text, trigram overlap, paraphrase score (NaN: none), rank."""

    sentence: npt.NDArray[np.int64]
    text: list[str]
    overlap: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int64]


def scored(references: list[str], hypotheses: list[list[str]], vectors: WordVectors) -> Scored:
    """Score all hypotheses of all sentences against their references."""
    sentence = np.array([n for n, texts in enumerate(hypotheses) for _ in texts])
    text = [one for texts in hypotheses for one in texts]
    pairs = Pairs.of(pa.array([references[n] for n in sentence]), pa.array(text))
    overlap = Overlap()(pairs)["overlap_3"].to_numpy()
    score = ParaphraseScore(vectors)(pairs)["paraphrase_score"].to_numpy(zero_copy_only=False)
    rank = np.array([n for texts in hypotheses for n in range(len(texts))])
    return Scored(sentence, text, overlap.astype(float), score.astype(float), rank)


def likeness(hypotheses: list[list[str]]) -> float:
    """Mean trigram overlap of two hypotheses of a sentence; NaN where each has only one."""
    couples = [couple for texts in hypotheses for couple in combinations(texts, 2)]
    if not couples:
        return float("nan")
    pairs = Pairs.of(pa.array([a for a, _ in couples]), pa.array([b for _, b in couples]))
    return float(np.mean(Overlap()(pairs)["overlap_3"].to_numpy()))


@app.command()
def main(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign"),
    vectors: Path = typer.Option(..., help="word vectors of the paraphrase score: a table's directory"),
    sentences: int = typer.Option(500),
    count: int = typer.Option(4, help="hypotheses of a sentence; divides 12"),
    most_overlap: float = typer.Option(0.5, help="a usable pair has no more trigram overlap"),
    compute_type: str = typer.Option("float32"),
    threads: int = typer.Option(2),
    device: str = typer.Option("cpu"),
    results: Path = typer.Option(None, help="write the hypotheses here, JSON lines"),
) -> None:
    """Print a table of all ways.

    A pair is usable if its paraphrase score is at least the lower quartile of that of the best hypotheses,
    and its trigram overlap with the reference at most ``--most-overlap``.
    """
    import sacrebleu

    references, sources = read_bitext(bitext, sentences)
    table = WordVectors.open(vectors)
    print(
        f"{hardware()}; {len(sources)} sentences of {', '.join(path.name for path in bitext)}; beam {_BEAM}, "
        f"{compute_type}; vectors of {len(table)} words\n"
    )
    floor = float("nan")
    for way in ways(count):
        translator = open_translator(
            "torch",
            model,
            DecodingOptions(beam=_BEAM, nbest=way.nbest, compute_type=compute_type),
            Placement(device, threads),
            way.settings,
        )
        started = time.perf_counter()
        found = list(translator.translate(iter(sources)))
        seconds = time.perf_counter() - started
        # What scoring would call the same text is one pair.
        texts = [list({h.text.lower(): h.text for h in one.hypotheses}.values()) for one in found]
        pairs = scored(references, texts, table)
        if np.isnan(floor):
            floor = float(np.nanquantile(pairs.score, 0.25))
        usable = (pairs.score >= floor) & (pairs.overlap <= most_overlap)
        bleu = sacrebleu.corpus_bleu([one.hypotheses[0].text for one in found], [references]).score
        append(
            "diversity",
            way.name,
            {
                "hypotheses_per_sentence": len(pairs.text) / len(texts),
                "sentences_per_second": len(sources) / seconds,
                "bleu": bleu,
                "overlap": float(pairs.overlap.mean()),
                "overlap_of_each_other": likeness(texts),
                "paraphrase_score": float(np.nanmean(pairs.score)),
                "score_lower_decile": float(np.nanquantile(pairs.score, 0.1)),
                "usable_pairs_per_sentence": float(usable.sum() / len(texts)),
            },
            sentences=len(sources),
            compute_type=compute_type,
        )
        if results is not None:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"way": way.name, "texts": texts}, ensure_ascii=False) + "\n")
    print(f"\na usable pair: paraphrase score at least {floor:.3f}, trigram overlap at most {most_overlap}")


if __name__ == "__main__":
    app()
