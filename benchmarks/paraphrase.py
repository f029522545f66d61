"""Measures how good paraphrases are, and whether they are as requested, next to a copy of the source.

python -m benchmarks.paraphrase models/paraphraser --text captions --sentences 500
python -m benchmarks.paraphrase models/paraphraser --back-translation models/nmt
python -m benchmarks.paraphrase models/paraphraser --text corpus --pairs work/paraphraser/pairs-KEY
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from benchmarks.command_line import start
from benchmarks.hardware import data_directory, hardware
from benchmarks.results import append
from paraforge.base.errors import InputError
from paraforge.base.parsing.brackets import template_of
from paraforge.base.parsing.parser import open_parser
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.pairs import Pairs
from paraforge.corpus.scoring.scorers.models import ParaphraseScore
from paraforge.corpus.scoring.scorers.words import Overlap
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.embeddings.evaluation.comparing import Comparable
from paraforge.products.loading import open_model
from paraforge.products.paraphrasing.paraphraser import RANGES, Paraphraser, remove_tags
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator

# iBLEU (Sun and Zhou 2012): 0.8 BLEU - 0.2 self-BLEU.
ALPHA = 0.8
PARSER = "link-grammar"


@dataclass(frozen=True)
class Texts:
    """Sources, the same number of references for each, and foreign texts or none."""

    sources: list[str]
    references: list[list[str]]
    foreign: list[str] = field(default_factory=list)

    def first(self, count: int) -> Texts:
        """Return the first ``count`` texts."""
        return Texts(self.sources[:count], self.references[:count], self.foreign[:count])


def compare(model: Comparable, references: Sequence[str], translations: Sequence[str]) -> np.ndarray:
    """Return the score of each pair."""
    return np.asarray(model.similarity(references, translations), np.float64)


def captions(directory: Path) -> Texts:
    """Return the captions of test_2016 that were translated into Czech, each with the image's other four."""
    pairs = _tsv(directory / "bitext" / "multi30k.test_2016_flickr.en-cs.tsv.gz")
    rows = _tsv(directory / "captions" / "test_2016.en5.tsv.gz")
    others = []
    for (source, _), row in zip(pairs, rows, strict=True):
        left = list(row)
        left.remove(source)
        others.append(left)
    return Texts([row[0] for row in pairs], others, [row[1] for row in pairs])


def held_out(shards: Path) -> Texts:
    """Return the pairs that a training held out, without tags."""
    rows = [
        row
        for table in ShardDirectory(shards).tables(["source_text", "reference", "held_out"])
        for row in table.filter(table["held_out"]).to_pylist()
    ]
    return Texts([remove_tags(row["source_text"]) for row in rows], [[row["reference"]] for row in rows])


def _tsv(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def judge(
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    outputs: Sequence[str],
    transformer: Comparable | None = None,
) -> dict[str, float | None]:
    """Return BLEU and chrF against the references, BLEU against the source, iBLEU, similarity to the source
    by the built-in scorer and by a sentence-transformer (0 to 1), and unigram overlap with it."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    streams = [list(column) for column in zip(*references, strict=True)]
    bleu = BLEU().corpus_score(list(outputs), streams).score
    own = BLEU().corpus_score(list(outputs), [list(sources)]).score
    means = {name: float(np.nanmean(values)) for name, values in measured(sources, outputs).items()}
    cosine = None
    if transformer is not None:
        cosine = float(np.nanmean(compare(transformer, list(sources), list(outputs))))
    return {
        "bleu": bleu,
        "chrf": CHRF().corpus_score(list(outputs), streams).score,
        "self_bleu": own,
        "ibleu": ALPHA * bleu - (1 - ALPHA) * own,
        **means,
        "transformer_similarity": cosine,
    }


def control_error(
    model: Paraphraser,
    asked: Mapping[str, str],
    sources: Sequence[str],
    outputs: Sequence[str],
    scorer: str | None = None,
) -> float | None:
    """Return the share of outputs that are not as requested, 0 to 1; None unless exactly one thing was
    requested.

    scorer: the model whose scores the buckets of similarity are of; by default the built-in one.
    """
    if len(asked) != 1:
        return None
    ((name, value),) = asked.items()
    if name == "template":
        trees = open_parser(PARSER).parse(outputs)
        return 1 - float(np.mean([tree is not None and template_of(tree) == value for tree in trees]))
    if name == "similarity" and scorer is not None:
        found = compare(open_model(scorer).model, list(sources), list(outputs)).astype(np.float64)
    else:
        found = measured(sources, outputs)[name]
    return float(np.mean(model.controls.buckets(name, found) != model.controls.bucket(name, value)))


def ways_of(model: Paraphraser, templates: int, only: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Return what to ask for, by name: nothing, and all controls or those whose names begin with one of
    ``only``."""
    ways: dict[str, dict[str, str]] = {"beam": {}}
    for control in model.controls.edges:
        ways |= {f"{control} {name}": {control: name} for name in model.controls.names(control)}
    if {"overlap", "similarity"} <= model.controls.edges.keys():
        ways["overlap low, similarity high"] = {"overlap": "low", "similarity": "high"}
    ways |= {template: {"template": template} for template in list(model.controls.templates)[:templates]}
    return {way: asked for way, asked in ways.items() if not only or way.startswith(("beam", *only))}


def back_translated(model: Path, foreign: Sequence[str], threads: int) -> list[str]:
    """Translate the foreign texts with a translation model and a beam of 12."""
    translator = open_translator("ctranslate2", model, DecodingOptions(beam=12), Placement("cpu", threads))
    results = translator.translate(foreign)
    return [result.hypotheses[0].text if result.hypotheses else "" for result in results]


def measured(sources: Sequence[str], outputs: Sequence[str]) -> dict[str, np.ndarray]:
    """Return similarity (of the built-in scorer, 0 to 1), unigram overlap (0 to 1) and length (tokens of the
    output / tokens of the source) of each pair; NaN if a side is blank."""
    pairs = Pairs.of(*(pa.array(texts, pa.string()) for texts in (sources, outputs)))
    score = ParaphraseScore(WordScorer.open(DIRECTORY))(pairs)["paraphrase_score"]
    tokens = [side.lengths.astype(np.float64) for side in (pairs.reference_tokens, pairs.translation_tokens)]
    blank = (tokens[0] == 0) | (tokens[1] == 0)
    found = (
        score.to_numpy(zero_copy_only=False),
        Overlap()(pairs)["overlap_1"].to_numpy(),
        tokens[1] / np.maximum(tokens[0], 1),
    )
    return {
        name: np.where(blank, np.nan, values.astype(np.float64))
        for name, values in zip(RANGES, found, strict=True)
    }


def main(
    model: Annotated[Path, typer.Argument(help="of the stage paraphraser")],
    text: Annotated[str, typer.Option(help="captions, or corpus with --pairs")] = "captions",
    pairs: Annotated[Path | None, typer.Option(help="tagged pairs that the model was trained on")] = None,
    sentences: Annotated[int, typer.Option(help="number of first sentences")] = 200,
    scorer: Annotated[str | None, typer.Option(help="of the buckets of similarity, if not built in")] = None,
    transformer: Annotated[str | None, typer.Option(help="sentence-transformer that also judges")] = None,
    back_translation: Annotated[Path | None, typer.Option(help="translation model, judged beside it")] = None,
    name: Annotated[str, typer.Option(help="of the model in the results")] = "transformer",
    templates: Annotated[int, typer.Option(help="that are asked for, the most frequent ones")] = 4,
    only: list[str] = typer.Option([], help="beginning of a way; may be repeated"),
    threads: int = 1,
) -> None:
    """Evaluate the copy, the back-translation, and the beam without and with each control, including how
    often the uncontrolled beam is not as requested."""
    if text not in ("captions", "corpus") or (text == "corpus") != (pairs is not None):
        raise InputError("use --text captions, or --text corpus with --pairs")
    texts = (captions(data_directory()) if pairs is None else held_out(pairs)).first(sentences)
    sources, references = texts.sources, texts.references
    opened = Paraphraser(model, "cpu", threads)
    judging = None if transformer is None else open_model(transformer).model
    print(f"{hardware()}\n{len(sources)} sentences of {text}")

    def record(way: str, figures: Mapping[str, float | None], **more: Any) -> None:
        more = {"model": name, **more}
        label = ", ".join(filter(None, (text, more["model"], way)))
        append("paraphrasing", label, figures, text=text, sentences=len(sources), **more)

    record("copy", judge(sources, references, sources, judging), model="")
    if back_translation is not None and texts.foreign:
        outputs = back_translated(back_translation, texts.foreign, threads)
        record("back-translation", judge(sources, references, outputs, judging), model="")
    plain: list[str] = []
    for way, asked in ways_of(opened, templates, only).items():
        begin = time.perf_counter()
        rows = opened.paraphrase(sources, **asked)
        seconds = time.perf_counter() - begin
        outputs = [row[0] if row else "" for row in rows]
        plain = plain or outputs
        figures = {
            **judge(sources, references, outputs, judging),
            "control_error": control_error(opened, asked, sources, outputs, scorer),
            "uncontrolled_error": control_error(opened, asked, sources, plain, scorer),
            "sentences_per_second": len(sources) / seconds,
        }
        record(way, figures)


if __name__ == "__main__":
    start(main)
