"""What a benchmark of translation measures: a way of translating, the sentences, and what comes out."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """One way of translating the sentences.

    Attributes:
        engine: ``torch``, ``ctranslate2`` and ``fairseq`` are ours as the pipeline uses them, ``stage`` is
            the whole stage translate; ``bare ctranslate2``, ``fairseq-generate`` and ``transformers`` are
            what their documentation has, ``bare ctranslate2, by sentences`` with 64 in a batch.
        compute_type, beam, batch_tokens: see
        :class:`~paraforge.translation.decoding.translator.DecodingOptions`.
        policy: ``sorted`` by length within thousands, or ``as it comes``.
        shortlist: vocabulary map of a lexicon, for CTranslate2.
    """

    engine: str
    compute_type: str
    beam: int
    batch_tokens: int
    policy: str = "sorted"
    shortlist: bool = False


@dataclass(frozen=True)
class Task:
    """A cell with what it is measured on."""

    cell: Cell
    model: str
    sources: tuple[str, ...]
    threads: int


@dataclass(frozen=True)
class Outcome:
    """Texts, scores (natural log, mean per token) and target tokens of the best hypotheses.

    Seconds are given where the clock outside would count what is no translation; which hypotheses were cut at
    the cap is known of our engines.
    """

    texts: list[str]
    scores: list[float]
    tokens: list[int]
    seconds: float | None = None
    capped: list[bool] = field(default_factory=list)
