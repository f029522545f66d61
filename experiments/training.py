"""A cell that trains an encoder on pairs of the pool and judges it on STS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from benchmarks.results import sts_figures
from experiments.pairs import sts_files
from experiments.pool import Pool
from experiments.tables import Cell, Pairs
from paraforge.embeddings.encoders.build import build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters, VectorParameters, units_of
from paraforge.embeddings.initial import frequency_weights, random_table
from paraforge.embeddings.model import SentenceModel
from paraforge.embeddings.objective import encoder_trainer
from paraforge.embeddings.pair_store import PairStore
from paraforge.embeddings.parameters import TrainingParameters
from paraforge.evaluation.sets.finding import read_sets
from paraforge.evaluation.similarity.sts import evaluate_sts

_ENCODER: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)


def train(cell: Cell, directory: Path, pool: Pool, start: Path | None, threads: int) -> dict[str, Any]:
    """Train, save the model in `directory`, and give the figures; killed, it resumes.

    No set that is reported chooses anything: the parameters are those after the last epoch.

    Args:
        start: directory of a cell whose parameters this one starts from.
    """
    row = cell.row
    encoder = _ENCODER.validate_python(row.encoder)
    pairs = Pairs.model_validate(row.pairs)
    store = pool.choose(units_of(encoder), pairs.sources, pairs.limit, pairs.decile)
    parameters = TrainingParameters.model_validate({**row.training, "seed": cell.seed})
    model = _untrained(encoder, store, cell.seed)
    if start is not None:
        model.encoder.load_state_dict(SentenceModel.open(start / "model").encoder.state_dict())
    checkpoints = directory / "checkpoints"
    trainer = encoder_trainer(
        model.encoder, store, parameters, checkpoints=checkpoints, threads=threads, description=row.name
    )
    trainer.run()
    model.save(directory / "model", {"experiment": f"{cell.table}: {row.name}, seed {cell.seed}"})
    years = {group.name: group.pearson for group in evaluate_sts(model, read_sets(sts_files())).groups}
    return {**sts_figures(years), "pairs": len(store), "pairs_seen": trainer.record.seen}


def _untrained(parameters: EncoderParameters, store: PairStore, seed: int) -> SentenceModel:
    def table(part: VectorParameters, number: int) -> Any:
        rows = random_table(
            len(store.vocabularies[part.unit]), part.dimension, part.initial_scale, 100 * seed + number
        )
        if part.initial_frequency is not None:
            rows.numpy()[:] *= frequency_weights(store.counts(part.unit), part.initial_frequency)[:, None]
        return rows

    return SentenceModel(build_encoder(parameters, table, seed), parameters, store.vocabularies)
