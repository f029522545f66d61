"""Runs a cell that trains an encoder on pairs of the pool and evaluates it on STS."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.results import sts_figures
from experiments.pairs import sts_sets
from experiments.pool import Pool
from experiments.tables import Cell, Pairs, Row
from paraforge.base.text.vocabulary import WORD_UNITS
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.embeddings.encoders.encoder import Encoder, build_encoder
from paraforge.embeddings.encoders.parameters import EncoderParameters, VectorParameters, units_of
from paraforge.embeddings.evaluation.sts import by_length, compare, score
from paraforge.embeddings.trainer.initial import starting_table, table_from_vectors, weighted_table
from paraforge.embeddings.trainer.mega_batches import encode, sentence_identity
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.negatives import ForbiddenCandidates, choose_negatives
from paraforge.embeddings.trainer.objective import encoder_trainer
from paraforge.embeddings.trainer.pair_store import PairStore
from paraforge.embeddings.trainer.parameters import TrainingParameters

_ENCODER: TypeAdapter[EncoderParameters] = TypeAdapter(EncoderParameters)


def parameters_of(row: Row) -> tuple[EncoderParameters, TrainingParameters]:
    """Return the parameters of a trained row, with defaults for those that it does not set."""
    return _ENCODER.validate_python(row.encoder), TrainingParameters.model_validate(row.training)


def train(cell: Cell, directory: Path, pool: Pool, start: Path | None, threads: int) -> dict[str, Any]:
    """Train, save the model in `directory`, and return the figures. A killed training resumes.

    No set that is reported chooses anything: the parameters are those after the last epoch.

    Args:
        start: directory of a cell whose parameters this one starts from: all of them where the encoder is the
            same, else the vectors of the units that both read; or of one that made a file of word vectors.
    """
    row = cell.row
    encoder, parameters = parameters_of(row)
    parameters = parameters.model_copy(update={"seed": cell.seed})
    pairs = Pairs.model_validate(row.pairs)
    store, held_out = pool.choose(units_of(encoder), pairs, cell.seed if pairs.each_seed else 1)
    given = None if start is None or (start / "model").is_dir() else WordVectors.from_text(start / "model")
    begun = None if start is None or given is not None else SentenceModel.open(start / "model")
    model = _untrained(encoder, store, cell.seed, begun, given)
    if begun is not None and begun.parameters == encoder:
        model.encoder.load_state_dict(begun.encoder.state_dict())
    checkpoints = directory / "checkpoints"
    trainer = encoder_trainer(
        model.encoder, store, parameters, checkpoints=checkpoints, threads=threads, description=row.name
    )
    trainer.run()
    model.save(directory / "model", {"experiment": f"{cell.table}: {row.name}, seed {cell.seed}"})
    compared = compare(model, sts_sets())
    figures: dict[str, Any] = sts_figures({group.name: group.pearson for group in score(compared).groups})
    figures |= {f"length_{one.length.split()[-1]}": _rounded(one.pearson) for one in by_length(compared)}
    figures |= _in_domain(model.encoder, store, held_out)
    shutil.rmtree(checkpoints)  # not before: killed until here, the training is not repeated
    return {**figures, "pairs": len(store), "pairs_seen": trainer.record.seen}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _in_domain(encoder: Encoder, store: PairStore, held_out: PairStore) -> dict[str, float]:
    """Evaluate an encoder on held-out pairs of its own domain, if there are any.

    held_out_found: % of the held-out pairs whose right side is nearer to the left one than all others are.
    difference, held_out_difference: mean of 2 cos(s, s') - cos(s, t) - cos(s', t') over as many training
        pairs and over held-out ones, with MAX's negatives among them (W16 section 5).
    """
    size = min(len(store), len(held_out))
    if size < 2:
        return {}
    found = {}
    for name, pairs in (("difference", store), ("held_out_difference", held_out)):
        some = np.random.default_rng(1).permutation(len(pairs))[:size]
        bags = pairs.select(some)
        vectors = normalize(encode(encoder, bags), dim=1)
        allowed = ForbiddenCandidates(size, sentence_identity(bags[min(bags)]))
        negatives = choose_negatives(vectors, size, forbidden=allowed)
        own = (vectors[:size] * vectors[size:]).sum(1)
        other = (vectors * vectors[negatives]).sum(1)
        found[name] = round(float((2 * own - other[:size] - other[size:]).mean()), 4)
        if pairs is held_out:
            nearest = (vectors[:size] @ vectors[size:].T).argmax(1)
            right = (nearest == torch.arange(size)).double().mean()
            found["held_out_found"] = round(100 * float(right), 1)
    return found


def _untrained(
    parameters: EncoderParameters,
    store: PairStore,
    seed: int,
    begun: SentenceModel | None = None,
    given: WordVectors | None = None,
) -> SentenceModel:
    """Return a random start, except for the vectors of units that a model of the same pool has trained, or of
    given words. These get the random start's scale and its weights by frequency."""
    trained: dict[str, Tensor] = {}
    if begun is not None:
        tables = begun.encoder.tables()
        trained = {unit: tables[name].detach() for name, unit in begun.encoder.table_units().items()}

    def table(part: VectorParameters, number: int) -> Tensor:
        if part.unit in trained:
            return trained[part.unit].clone()
        if given is not None and part.unit in WORD_UNITS:
            rows = table_from_vectors(store.vocabularies[part.unit], given, 100 * seed + number)
            return weighted_table(rows, part, store.counts(part.unit))
        return starting_table(part, store, 100 * seed + number)

    return SentenceModel(build_encoder(parameters, table, seed), parameters, store.vocabularies)
