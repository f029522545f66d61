"""Wrong translations made from right ones, by which scores are judged.

What a score is worth shows on translations that are known to be wrong: those of other sentences of similar
length, and the same ones damaged as failing models damage them.
"""

import random
from collections.abc import Callable, Sequence
from typing import Final

from paraforge.base.errors import InputError
from paraforge.corpus.scoring.wrong_pairs import rows_of_similar_length

_REPLACED: Final = 0.6
_PIECE: Final = 4
_REPEATS: Final = (4, 12)
_GIBBERISH: Final = 0.3
_PIECES: Final = (2, 3)
_PIECE_LETTERS: Final = (2, 5)


def other_sentence(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """The translation of another sentence of similar length; see
    :func:`~paraforge.corpus.scoring.wrong_pairs.rows_of_similar_length`. Raises
    InputError: a row that no other one differs from."""
    rows = rows_of_similar_length(references, translations, seed)
    if (rows < 0).any():
        raise InputError("a pair that no other pair differs from in both texts: give more pairs")
    return [translations[row] for row in rows]


def replaced_words(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """60 % of the words, at least one, replaced by words drawn from the other rows' translations. Raises
    InputError: only one row has words."""
    rng = random.Random(seed)
    rows = [text.split() for text in translations]
    pool = [word for row in rows for word in row]
    spoilt, first = [], 0
    for row in rows:
        words, others = list(row), len(pool) - len(row)
        if not others:
            raise InputError("there are no other translations to take words from: give more pairs")
        for place in rng.sample(range(len(row)), min(len(row), max(1, round(_REPLACED * len(row))))):
            drawn = rng.randrange(others)
            words[place] = pool[drawn if drawn < first else drawn + len(row)]
        first += len(row)
        spoilt.append(" ".join(words))
    return spoilt


def stutter(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """The first half of the words, then the last four characters of the last of them 4 to 12 times more."""
    rng = random.Random(seed)
    spoilt = []
    for text in translations:
        words = text.split()
        kept = " ".join(words[: max(1, len(words) // 2)])
        spoilt.append(kept + kept.split(" ")[-1][-_PIECE:] * rng.randint(*_REPEATS))
    return spoilt


def half_of_words(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """Half of the words, drawn at random, in their order; a single word stays as it is."""
    rng = random.Random(seed)
    spoilt = []
    for text in translations:
        words = text.split()
        kept = rng.sample(range(len(words)), min(len(words), max(1, len(words) // 2)))
        spoilt.append(" ".join(words[place] for place in sorted(kept)))
    return spoilt


def missing_half(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """The first or the last half of the words, at least one."""
    rng = random.Random(seed)
    spoilt = []
    for text in translations:
        words = text.split()
        half = max(1, len(words) // 2)
        spoilt.append(" ".join(words[:half] if rng.random() < 0.5 else words[-half:]))
    return spoilt


def another_added(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """The translation, and behind it that of another sentence of similar length."""
    others = other_sentence(references, translations, seed)
    return [f"{text} {other}" for text, other in zip(translations, others, strict=True)]


def gibberish(references: Sequence[str], translations: Sequence[str], seed: int = 1) -> list[str]:
    """30 % of the words, at least one, replaced by pieces of other words joined: `corimentment`."""
    rng = random.Random(seed)
    rows = [text.split() for text in translations]
    words = [word.lower() for row in rows for word in row]
    pool = [word for word in words if len(word) >= _PIECE and word.isalpha()] or words

    def piece() -> str:
        word = rng.choice(pool)
        begin = rng.randrange(max(1, len(word) - 1))
        return word[begin : begin + rng.randint(*_PIECE_LETTERS)]

    spoilt = []
    for row in rows:
        spelt = list(row)
        for place in rng.sample(range(len(row)), min(len(row), max(1, round(_GIBBERISH * len(row))))):
            spelt[place] = "".join(piece() for _ in range(rng.randint(*_PIECES)))
        spoilt.append(" ".join(spelt))
    return spoilt


SPOILINGS: Final[dict[str, Callable[[Sequence[str], Sequence[str], int], list[str]]]] = {
    "other_sentence": other_sentence,
    "replaced_words": replaced_words,
    "stutter": stutter,
    "half_of_words": half_of_words,
    "missing_half": missing_half,
    "another_added": another_added,
    "gibberish": gibberish,
}
"""Each takes references, their translations and a seed, and gives a wrong translation for each row."""
