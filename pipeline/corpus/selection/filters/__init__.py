"""Filters of a corpus: parameters, verdict, explanation, and part of the signature.

A filter is a subclass of :class:`FilterParameters` with its own ``kind``. To add one, add it to a module of
this package, or register another package's module in the entry point group ``paraforge.filters``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field

from paraforge.base.errors import InputError, did_you_mean
from paraforge.base.plugins import found_classes
from paraforge.base.section import Section
from paraforge.corpus.columns import COLUMNS

if TYPE_CHECKING:
    from paraforge.corpus.selection.select import Selection

Mask = npt.NDArray[np.bool_]
MissingPolicy = Literal["refuse", "accept"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$", max_length=60)]
SCORES = [
    name
    for name, column in COLUMNS.items()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
]
_DECILE = "_decile"
_SHORT_NAMES = {
    "paraphrase_score": "sim",
    "overlap_1": "uni",
    "overlap_2": "bi",
    "overlap_3": "tri",
    "translation_score": "logp",
}


@dataclass(frozen=True)
class Filter:
    """A filter that is ready to judge the pairs of one corpus.

    name: the reason of the pairs that it rejects. columns: the columns that it reads.
    judge: function from the rows of a shard that earlier filters accepted, and the shard's number, to one
        number for each row: 0 accepts it, k > 0 rejects it for ``reasons[k - 1]``.
    fingerprint: hash of the files or the model that it was made from, or None.
    others: reasons besides the name, for which it can reject a pair.
    """

    name: str
    columns: tuple[str, ...]
    judge: Callable[[pa.Table, int], npt.NDArray[Any]]
    fingerprint: str | None = None
    others: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for which it can reject a pair; the first is its name."""
        return (self.name, *self.others)


def value_filter(
    name: str,
    columns: tuple[str, ...],
    accepts: Callable[[pa.ChunkedArray], Mask],
    missing: MissingPolicy = "refuse",
) -> Filter:
    """Build a filter that rejects a pair for its value in one of ``columns``, or because it is missing.

    accepts: function from a column to which values are accepted; its result for missing values is ignored.
    missing: what to do with a pair without a value; if it is rejected, that takes precedence.
    """
    absent = tuple(map(missing_reason, columns)) if missing == "refuse" else ()

    def judge(rows: pa.Table, shard: int) -> npt.NDArray[np.uint8]:
        verdicts = np.zeros(rows.num_rows, np.uint8)
        for place, name in enumerate(columns):
            column = rows.column(name)
            gap = column.is_null(nan_is_null=True).to_numpy()
            verdicts[(verdicts == 0) & ~gap & ~accepts(column)] = 1
            if absent:
                verdicts[(verdicts < 2) & gap] = 2 + place
        return verdicts

    return Filter(name, columns, judge, others=absent)


class FilterParameters(Section):
    """A filter's entry in params.yaml."""

    name: Name | None = Field(
        None, description="reason given to the pairs it rejects; by default the filter's kind"
    )

    needs_all_pairs: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    usual_name: ClassVar[str] = ""

    @property
    def reason(self) -> str:
        """The filter's name, given or default."""
        return self.name or self.default_name()

    def default_name(self) -> str:
        """Return the default name: ``usual_name``, or the kind."""
        return self.usual_name or str(getattr(self, "kind"))  # noqa: B009 - subclasses declare it

    def columns(self) -> tuple[str, ...]:
        """Return the columns of the corpus that it needs: ``needs``, unless its parameters name them."""
        return self.needs

    def tenths_of(self) -> tuple[str, ...]:
        """Return the scores whose decile it reads."""
        return ()

    def threshold(self, cuts: Mapping[str, Sequence[float]]) -> tuple[str, float] | None:
        """Return the score and minimum below which it rejects pairs, once the minimum is a number; None
        without one.

        cuts: for each score with deciles, the nine values at which deciles 2 to 10 begin.
        """
        return None

    @abstractmethod
    def refusal(self) -> str:
        """Describe in a few words why it rejects a pair."""

    @abstractmethod
    def signature(self, fingerprint: str | None = None) -> tuple[str, str]:
        """Return key and value in the corpus' signature; ``fingerprint`` is the filter's, if it has one."""

    @abstractmethod
    def prepare(self, pairs: Selection) -> Filter:
        """Build the filter. Raises InputError if one of its files cannot be read.

        pairs: the pairs that earlier filters accept, for one that must see all before it judges any.
        """


def filter_kinds() -> list[type[FilterParameters]]:
    """Return the parameters of every kind of filter, including those of other packages."""
    return [kind for kind in found_classes(__name__, FilterParameters) if "kind" in kind.model_fields]


def check_score(name: str) -> str:
    """Return the name of a numeric column. Raises ValueError if it is not one."""
    if name in SCORES:
        return name
    if name in COLUMNS:
        raise ValueError(f"this is a {COLUMNS[name].type} column, not a number")
    suggested = did_you_mean(name, SCORES)
    raise ValueError(f"no such column{suggested or ': scores are ' + ', '.join(SCORES)}")


Score = Annotated[str, AfterValidator(check_score), Field(description="any numeric column")]


def decile_column(score: str) -> str:
    """Return the name of the column with a pair's decile by ``score``."""
    return f"{score}{_DECILE}"


def missing_reason(column: str) -> str:
    """Return the reason for rejecting a pair without a value in ``column``, e.g. ``no_paraphrase_score``;
    also for deciles."""
    return f"no_{column.removesuffix(_DECILE)}"


def short_name(score: str) -> str:
    """Return the name of a score in the signature, e.g. ``sim``."""
    return _SHORT_NAMES.get(score, score)


def numbers(column: pa.ChunkedArray) -> tuple[npt.NDArray[Any], Mask]:
    """Return a numeric column as n numbers, and which are missing (null or NaN, given as 0)."""
    missing = (
        column.is_null(nan_is_null=True).to_numpy()
        if column.null_count or pa.types.is_floating(column.type)
        else np.zeros(len(column), bool)
    )
    if column.null_count:
        column = pc.fill_null(column, 0)
    values = column.to_numpy()
    if missing.any():
        values = np.where(missing, values.dtype.type(0), values)
    return values, missing


def apply_filters(
    filters: Sequence[Filter], rows: pa.Table, alive: Mask, shard: int, first_code: int
) -> npt.NDArray[np.uint16]:
    """Let filters judge the rows that are alive; each filter sees only those that earlier ones accepted.

    filters: the filters in order. rows: n rows with the columns that the filters read.
    alive: n flags; rows that are not alive are not judged. shard: number of the shard.
    first_code: code of the first filter's first reason.

    Returns n codes: 0 if the row is accepted or was not alive, otherwise the code of the reason. Codes number
    the filters' reasons in order. Raises InputError if a filter, such as another package's, rejects for a
    reason that it does not have.
    """
    codes = np.zeros(rows.num_rows, np.uint16)
    standing = alive.copy()
    code = first_code
    for rule in filters:
        judged = rows.select(list(dict.fromkeys(rule.columns)))
        everything = bool(standing.all())
        verdicts = rule.judge(judged if everything else judged.filter(pa.array(standing)), shard)
        places = np.flatnonzero(standing)
        refused = verdicts > 0
        if (highest := verdicts.max(initial=0)) > len(rule.reasons):  # it would be the next filter's
            raise InputError(f"the filter '{rule.name}' rejects for reason {highest} of {len(rule.reasons)}")
        codes[places[refused]] = code + verdicts[refused].astype(np.uint16) - 1
        standing[places[refused]] = False
        code += len(rule.reasons)
    return codes
