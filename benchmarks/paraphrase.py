"""How good paraphrases are, and whether they are what was asked for, beside a copy of the source.

python -m benchmarks.paraphrase models/paraphraser --text captions --sentences 200
python -m benchmarks.paraphrase models/paraphraser --text corpus --pairs work/paraphraser/pairs-KEY
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.hardware import hardware
from benchmarks.results import append
from benchmarks.scorers import compare
from experiments.pairs import data_directory
from paraforge.errors import InputError
from paraforge.loading import open_model
from paraforge.paraphrasing.paraphraser import Paraphraser
from paraforge.parsing.brackets import template_of
from paraforge.parsing.parser import open_parser
from paraforge.shards.store import ShardDirectory
from paraforge.text.tokens import tokenize

# iBLEU (Sun and Zhou 2012): 0.8 BLEU - 0.2 self-BLEU.
ALPHA = 0.8
_TAGS = re.compile("^(⟦[^⟧]*⟧)+ ")
Texts = tuple[list[str], list[list[str]]]


def captions(directory: Path) -> Texts:
    """The first caption of each image of test_2016, and the other four."""
    rows = _tsv(directory / "captions" / "test_2016.en5.tsv.gz")
    return [row[0] for row in rows], [row[1:] for row in rows]


def news(directory: Path) -> Texts:
    """Reference A of newstest2021, and reference B."""
    rows = _tsv(directory / "mt_outputs" / "newstest2021.cs-en.tsv.gz")[1:]
    return [row[1] for row in rows], [[row[2]] for row in rows]


def held_out(shards: Path) -> Texts:
    """The pairs that a training held out, without their tags."""
    rows = [
        row
        for table in ShardDirectory(shards).tables(["source_text", "reference", "held_out"])
        for row in table.filter(table["held_out"]).to_pylist()
    ]
    return [_TAGS.sub("", row["source_text"]) for row in rows], [[row["reference"]] for row in rows]


def _tsv(path: Path) -> list[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def distinct(texts: Sequence[str], order: int) -> float:
    """Share of n-grams of tokens, over all texts, that are different ones (Li et al. 2016), 0 to 1."""
    grams = [
        tuple(tokens[start : start + order])
        for tokens in map(tokenize, texts)
        for start in range(len(tokens) - order + 1)
    ]
    return len(set(grams)) / max(1, len(grams))


def judge(
    sources: Sequence[str], references: Sequence[Sequence[str]], outputs: Sequence[str]
) -> dict[str, float]:
    """BLEU and chrF against the references, BLEU against the source, iBLEU, similarity to the source by the
    built-in scorer (0 to 1), and the share of distinct words and bigrams."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    streams = [list(column) for column in zip(*references, strict=True)]
    bleu = BLEU().corpus_score(list(outputs), streams).score
    own = BLEU().corpus_score(list(outputs), [list(sources)]).score
    scores = compare(open_model("general").model, list(sources), list(outputs))
    return {
        "bleu": bleu,
        "chrf": CHRF().corpus_score(list(outputs), streams).score,
        "self_bleu": own,
        "ibleu": ALPHA * bleu - (1 - ALPHA) * own,
        "similarity": float(np.nanmean(scores)),
        "distinct_1": distinct(outputs, 1),
        "distinct_2": distinct(outputs, 2),
    }


def overlaps(sources: Sequence[str], outputs: Sequence[str]) -> np.ndarray[Any, Any]:
    """Unigram overlap of each pair, as the column ``overlap_1`` has it."""
    from collections import Counter

    found = []
    for pair in zip(sources, outputs, strict=True):
        first, second = (Counter(tokenize(text)) for text in pair)
        found.append((first & second).total() / max(1, min(first.total(), second.total())))
    return np.array(found)


def lengths(sources: Sequence[str], outputs: Sequence[str]) -> np.ndarray[Any, Any]:
    """Tokens of each output to those of its source."""
    counts = [[max(1, len(tokenize(text))) for text in texts] for texts in (outputs, sources)]
    return np.array(counts[0]) / np.array(counts[1])


def control_error(
    model: Paraphraser,
    asked: Mapping[str, str],
    sources: Sequence[str],
    outputs: Sequence[str],
    scorer: str | None,
) -> float | None:
    """Share of the outputs that are not what was asked, 0 to 1; None where nothing was, or it is not known.

    scorer: the model whose scores the buckets of similarity are of.
    """
    ((name, value),) = asked.items() or [("", "")]
    if name == "template":
        trees = open_parser("link-grammar").parse(outputs)
        got = [tree is not None and template_of(tree) == value for tree in trees]
        return 1 - float(np.mean(got))
    if name == "similarity" and scorer is not None:
        measured = compare(open_model(scorer).model, list(sources), list(outputs)).astype(np.float64)
    elif name in ("overlap", "length"):
        measured = (overlaps if name == "overlap" else lengths)(sources, outputs)
    else:
        return None
    buckets = model.controls.buckets(name, measured)
    return float(np.mean(buckets != model.controls.bucket(name, value)))


def main(
    model: Annotated[Path, typer.Argument(help="of the stage paraphraser")],
    text: Annotated[str, typer.Option(help="captions, news or corpus (with --pairs)")] = "captions",
    pairs: Annotated[Path | None, typer.Option(help="tagged pairs that the model was trained on")] = None,
    sentences: Annotated[int, typer.Option(help="number of first sentences")] = 200,
    scorer: Annotated[str | None, typer.Option(help="whose scores the buckets of similarity are of")] = None,
    name: Annotated[str, typer.Option(help="of the model in the results")] = "transformer",
    examples: Annotated[int, typer.Option(help="sentences shown with what each way gave")] = 0,
    threads: int = 1,
    seed: int = 1,
) -> None:
    """Judge copy, beam, diverse beam and samples without control, then the beam along each control: also how
    often the beam without control is not what was asked for."""
    if text == "corpus":
        if pairs is None:
            raise InputError("--text corpus needs --pairs")
        sources, references = held_out(pairs)
    else:
        sources, references = {"captions": captions, "news": news}[text](data_directory())
    sources, references = sources[:sentences], references[:sentences]
    opened = Paraphraser(model, "cpu", threads)
    controls = opened.controls
    ways: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
        "beam": ({}, {}),
        "diverse, best of 4": ({}, {"search": "diverse", "nbest": 4}),
        "sampled": ({}, {"search": "sample", "seed": seed}),
    }
    for control in controls.edges:
        for bucket in ("low", "high"):
            ways[f"{control} {bucket}"] = ({control: bucket}, {})
    for template in list(controls.templates)[:3]:
        ways[template] = ({"template": template}, {})
    print(f"{hardware()}\n{len(sources)} sentences of {text}")
    append(
        "paraphrasing",
        f"{text}, copy",
        judge(sources, references, sources),
        text=text,
        sentences=len(sources),
        model="",
    )
    shown: dict[str, list[str]] = {}
    for way, (asked, search) in ways.items():
        begin = time.perf_counter()
        found = opened.paraphrase(sources, **asked, **search)
        seconds = time.perf_counter() - begin
        outputs = [row[0] if row else "" for row in found]
        shown[way] = outputs
        errors = [
            control_error(opened, asked, sources, texts, scorer) if asked else None
            for texts in (outputs, shown["beam"])
        ]
        append(
            "paraphrasing",
            f"{text}, {way}",
            {
                **judge(sources, references, outputs),
                "control_error": errors[0],
                "uncontrolled_error": errors[1],
                "distinct_paraphrases": float(np.mean([len(set(row)) for row in found])),
                "sentences_per_second": len(sources) / seconds,
            },
            seeds=[seed],
            model=name,
            text=text,
            sentences=len(sources),
        )
    for number in range(min(examples, len(sources))):
        print(f"\n{sources[number]}")
        for way, outputs in shown.items():
            print(f"  {way:24} {outputs[number]}")


if __name__ == "__main__":
    typer.run(main)
