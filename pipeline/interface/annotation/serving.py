"""The evaluation behind the pages: drawn or continued."""

from __future__ import annotations

from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.interface.annotation.draw import (
    PAIRS_PER_BAND,
    SEED,
    draw_pairs,
    open_for_annotation,
    origin_of,
)
from paraforge.interface.annotation.store import AnnotationStore, create_store


def open_evaluation(
    corpus: Path | None, database: Path, per_band: int | None, seed: int | None, with_rejected: bool | None
) -> tuple[AnnotationStore, bool]:
    """The evaluation in ``database``, drawn from ``corpus`` where there is none yet.

    corpus: directory of a published corpus; None to continue with a database.
    per_band, seed, with_rejected: of the draw; None for the default, or for what the database has.

    Returns the store, and whether it is new. Raises InputError: the database was drawn otherwise than asked
    for, or there is neither.
    """
    if not database.exists():
        if corpus is None:
            raise InputError("no such database", database, remedy="Name a corpus to draw pairs from.")
        datasets = open_for_annotation(corpus, with_rejected is not False)
        draw = draw_pairs(datasets, corpus, per_band or PAIRS_PER_BAND, SEED if seed is None else seed)
        return create_store(database, draw), True
    store = AnnotationStore(database)
    other = "Continue without this option, or name another --database to start again."
    if corpus is not None:
        asked = bool(len(store.draw.origin.manifests) > 1) if with_rejected is None else with_rejected
        found = origin_of(open_for_annotation(corpus, asked), corpus).manifests
        if found != store.draw.origin.manifests:
            raise InputError(
                f"drawn from another corpus than {corpus} is now ({store.draw.origin.signature})",
                database,
                remedy="Name another --database to start a new evaluation, or continue this one: "
                f"paraforge annotate serve --database {database}",
            )
    if per_band is not None and per_band != store.draw.per_band:
        raise InputError(f"drawn with --count {store.draw.per_band}", database, remedy=other)
    if seed is not None and seed != store.draw.seed:
        raise InputError(f"drawn with --seed {store.draw.seed}", database, remedy=other)
    return store, False
