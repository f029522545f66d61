"""Quantisation loss of any model on any bitext: the check of a run, by hand."""

from __future__ import annotations

import tempfile
from pathlib import Path

from paraforge.bitext.ingest import ingest
from paraforge.bitext.parameters import IngestParameters
from paraforge.decoding.translator import DecodingOptions
from paraforge.errors import InputError
from paraforge.shards.resources import Resources
from paraforge.shards.store import ShardDirectory
from paraforge.translation.calibration.check import is_quantised, sampled_loss
from paraforge.translation.calibration.loss import QuantisationLoss
from paraforge.translation.sentences import choose_engine, plan_workplace


def loss_on_bitext(
    model: Path,
    bitext: Path,
    options: DecodingOptions,
    *,
    columns: tuple[int, int] = (0, 1),
    sentences: int = 1000,
    device: str = "auto",
    threads: int = 0,
) -> QuantisationLoss:
    """Translate a sample of a bitext in float32 and in another compute type, and compare.

    Args:
        model: directory of a model.
        bitext: directory of ingested shards, or a TSV, compressed or not.
        options: with the compute type.
        columns: of a TSV, counted from 0: the reference and the foreign side.
        sentences: of the sample.
        device, threads: where.

    Raises:
        InputError: the compute type is not a quantised one, or there is nothing to translate.
    """
    with tempfile.TemporaryDirectory() as temporary:
        resources = Resources(work=Path(temporary), devices=[device], threads=threads, workers=1)
        choice = choose_engine("ctranslate2", model, options, {}, resources)
        if not is_quantised(choice):
            raise InputError(
                f"{choice.options.compute_type} does not round weights to integers, nothing is lost",
                remedy="Say int8, int16, int8_float32, ...",
            )
        if bitext.is_dir():
            corpus = ShardDirectory(bitext)
        else:
            corpus = _ingested(bitext, columns, Path(temporary) / "ingested", resources)
        workplace = plan_workplace(choice.engine, resources, sentences)
        loss = sampled_loss(choice, corpus, sentences, workplace, resources)
    if loss is None:
        raise InputError("no sentence to translate: every row is refused, or has its translation", bitext)
    return loss


def _ingested(bitext: Path, columns: tuple[int, int], output: Path, resources: Resources) -> ShardDirectory:
    source = {
        "name": "bitext",
        "format": "tsv",
        "path": str(bitext),
        "columns": {"reference": columns[0], "cs": columns[1]},
    }
    ingest(IngestParameters.model_validate({"sources": [source]}), output, resources)
    return ShardDirectory(output)
