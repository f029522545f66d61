"""sacremoses' English tokens of one whitespace-delimited chunk, given what stands around it.

A sentence is a sequence of *chunks*, its maximal runs without white space. `MosesTokenizer(lang="en")` with
`escape=False` and `aggressive_dash_splits=False` is a chain of substitutions over the whole sentence, yet nearly all of
it looks at one chunk alone. Rule by rule (names as in sacremoses 0.2):

* `DEDUPLICATE_SPACE`, `ASCII_JUNK`: every run of white space becomes one space, then control characters vanish. A chunk
  with a control character may become shorter, empty, or leave two spaces behind it. Such a sentence is *irregular*. In a
  regular one, all chunks are parted by exactly one space when the next rule starts.
* `PAD_NOT_ISALNUM` looks at one character. It inserts spaces.
* `replace_multidots` looks at a run of dots, which no space interrupts. It writes a space after the run unless the
  sentence ends there; after the last chunk no later rule can see that space.
* `COMMA_SEPARATE_1` looks at a comma and at the character before it, `COMMA_SEPARATE_2` at the one after it,
  `COMMA_SEPARATE_3` at the end of the sentence. They reach past the chunk only if it starts (ends) with a comma, and see
  there a space, or the sentence's edge. A match of rule 1 consumes the space before its comma, one of rule 2 the space
  after it; no other match of that rule needs that same space, because rule 1 has no use for a space after a comma nor
  rule 2 for one before it.
* `EN_SPECIFIC_1` to `_5` look at an apostrophe and at both its neighbours: the same argument with chunks that start or
  end with an apostrophe. But a match consumes both neighbours: where one chunk ends and the next starts with an
  apostrophe, the second may lack the space that the first consumed. Such a sentence is *irregular* too.
* `handles_nonbreaking_prefixes` looks at a token that ends with a full stop, and at the first character of the next
  token: whether it is lower-case, whether it is a digit, whether there is any. It reaches past the chunk only if the
  chunk ends with a full stop. The first character of the next chunk's first token is the chunk's own, or, where that
  starts with several dots, the letter D of their marker; dots and D are alike neither lower-case nor digits.
* The final `DEDUPLICATE_SPACE` and `strip` move no token border. `TRAILING_DOT_APOSTROPHE` looks at the last two
  characters of the sentence and fires only if the last chunk ends with an apostrophe.
* `restore_multidots` looks at letters, which no space interrupts.

So the tokens of a chunk in a regular sentence are a function of the chunk and its *context*: whether there is a chunk
before it, and whether the next one starts with a lower-case letter, a digit, something else, or is not there. That
function is had from sacremoses itself, given the chunk between two neighbours that have this context. An irregular
sentence is given to sacremoses whole.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final

from sacremoses import MosesTokenizer


class Following(IntEnum):
    """What the next chunk of the sentence starts with."""

    OTHER = 0
    LOWER = 1
    DIGIT = 2
    NOTHING = 3


# A context is one number: what follows, plus FIRST if no chunk stands before.
FIRST: Final = 4
CONTEXTS: Final = 8

_NEIGHBOUR: Final = {
    Following.OTHER: " A",
    Following.LOWER: " a",
    Following.DIGIT: " 1",
    Following.NOTHING: "",
}
_IRREGULAR: Final = re.compile(r"[\s\x00-\x1f]")
_WORD_AND_MARK: Final = re.compile(r"([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)([,?!;:)\"])")
# A longer chunk is a URL or a defect and unlikely to come again.
_LONGEST_CACHED: Final = 40
_CACHE_ENTRIES: Final = 1 << 16


class _FasterMosesTokenizer(MosesTokenizer):  # type: ignore[misc]
    """sacremoses with its three look-ups in long lists made into look-ups in sets: the same answers."""

    def __init__(self) -> None:
        super().__init__(lang="en")
        self._lower = frozenset(self.IsLower)
        self._alpha = frozenset(self.IsAlpha)
        self.NONBREAKING_PREFIXES = frozenset(self.NONBREAKING_PREFIXES)

    def islower(self, text: str) -> bool:
        return self._lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self._alpha.isdisjoint(text)


@lru_cache(maxsize=1)
def _moses() -> _FasterMosesTokenizer:
    return _FasterMosesTokenizer()


def sentence_tokens(text: str) -> list[str]:
    """The tokens of a whole sentence, each lower-cased, by sacremoses itself."""
    return [token.lower() for token in _moses().tokenize(text, escape=False)]


def starts_with(chunk: str) -> Following:
    """What a chunk (not empty) starts with, as `handles_nonbreaking_prefixes` looks at it."""
    first = chunk[0]
    if "a" <= first <= "z":
        return Following.LOWER
    if first <= "\x7f":
        return Following.DIGIT if "0" <= first <= "9" else Following.OTHER
    return Following.LOWER if _moses().islower(first) else Following.OTHER


def is_irregular(chunk: str) -> bool:
    """Whether a sentence with this chunk must be tokenised whole (white space or a control character in it)."""
    return _IRREGULAR.search(chunk) is not None


def is_plain(chunk: str) -> bool:
    """Whether a chunk is one token in every context: ASCII letters, digits and hyphens, and no marker of multi-dots."""
    return chunk.isascii() and (chunk.isalnum() or chunk.replace("-", "").isalnum()) and "MULTI" not in chunk


class ChunkTokenizer:
    """Tokens of a regular sentence's chunks, lower-cased; remembers the chunks it saw lately, in bounded memory."""

    def __init__(self, cache_entries: int = _CACHE_ENTRIES) -> None:
        self._cache_entries = cache_entries
        # Two generations: what is not asked for while the younger one fills up is forgotten.
        self._young: dict[tuple[str, int], tuple[str, ...]] = {}
        self._old: dict[tuple[str, int], tuple[str, ...]] = {}

    def tokens(self, chunk: str, context: int) -> tuple[str, ...]:
        """`chunk`: not empty and not irregular. `context`: a `Following`, plus FIRST where no chunk stands before."""
        if is_plain(chunk):
            return (chunk.lower(),)
        word_and_mark = _WORD_AND_MARK.fullmatch(chunk)
        if word_and_mark is not None and "MULTI" not in chunk:
            # The mark is padded by PAD_NOT_ISALNUM; a last comma by COMMA_SEPARATE_1, _2 or _3, whatever follows it.
            return (word_and_mark[1].lower(), word_and_mark[2])
        key = (chunk, context)
        tokens = self._young.get(key)
        if tokens is None:
            tokens = self._old.get(key)
            if tokens is None:
                tokens = _tokens_in_context(chunk, context)
            if len(chunk) <= _LONGEST_CACHED:
                if len(self._young) >= self._cache_entries:
                    self._old, self._young = self._young, {}
                self._young[key] = tokens
        return tokens


def _tokens_in_context(chunk: str, context: int) -> tuple[str, ...]:
    before = "" if context & FIRST else "A "
    after = _NEIGHBOUR[Following(context & ~FIRST)]
    tokens = sentence_tokens(before + chunk + after)
    return tuple(tokens[bool(before) : len(tokens) - bool(after)])
