"""sacremoses' English tokens of one whitespace-delimited chunk, given its neighbors.

A sentence is a sequence of *chunks*, its maximal runs without white space. `MosesTokenizer(lang="en")` with
`escape=False` and `aggressive_dash_splits=False` is a chain of substitutions over the whole sentence, yet
nearly all of it looks at one chunk alone. Rule by rule (names as in sacremoses 0.2):

* `DEDUPLICATE_SPACE`, `ASCII_JUNK`: every run of white space becomes one space, then control characters
  vanish. A chunk with a control character may become shorter, empty, or leave two spaces behind it: such a
  sentence is *irregular*. In a regular one, all chunks are separated by exactly one space when the next rule
  starts.
* `PAD_NOT_ISALNUM` looks at one character. It inserts spaces.
* `replace_multidots` looks at a run of dots, which no space interrupts. It writes a space after the run, but
  not at the sentence's end; no later rule can tell that space from the end.
* `COMMA_SEPARATE_1` looks at a comma and at the character before it, `COMMA_SEPARATE_2` at the one after it,
  `COMMA_SEPARATE_3` at the end of the sentence. They reach past the chunk only if it starts (ends) with a
  comma, and see there a space or the sentence's edge. A match of rule 1 consumes the space before its comma,
  one of rule 2 the space after it; no other match of the same rule needs that space.
* `EN_SPECIFIC_1` to `_5` look at an apostrophe and at both its neighbors: the same argument with chunks that
  start or end with an apostrophe. But a match consumes both neighbors: where one chunk ends and the next
  starts with an apostrophe, the second may lack the space that the first consumed. Such a sentence is
  *irregular* too.
* `handles_nonbreaking_prefixes` looks at a token that ends with a full stop, and at the next token's first
  character: whether it is lower-case, whether it is a digit, whether there is any. It reaches past the chunk
  only if the chunk ends with a full stop. The first character of the next chunk's first token is that chunk's
  own or, where it starts with several dots, the D of their marker; a dot and D are alike neither lower-case
  nor a digit.
* The final `DEDUPLICATE_SPACE` and `strip` move no border between tokens. `TRAILING_DOT_APOSTROPHE` fires
  only if the last chunk ends with an apostrophe, and looks at that chunk.
* `restore_multidots` looks at letters, which no space interrupts.

So the tokens of a chunk in a regular sentence are a function of the chunk and its *context*: whether there is
a chunk before it (only if it starts with a comma or an apostrophe), and whether the next one starts with a
lower-case letter, a digit, something else (only if it ends with a full stop), or is not there (only if it
ends with a full stop, a comma or an apostrophe). sacremoses itself computes the tokens, from the chunk
between neighbors that make this context. It tokenizes an irregular sentence as a whole.

The parts between which the rules insert spaces are also chunks, and recur far more often: `"Stop,"` has the
tokens of `"`, `Stop`, `,` and `"`. So chunks are cut at the characters of `PAD_NOT_ISALNUM`, at commas next
to a letter, and at an apostrophe at one end if the chunk has no other one. Most remaining parts are words.
"""

import re
from enum import IntEnum
from functools import lru_cache
from itertools import chain
from typing import Any, Final


class Following(IntEnum):
    """What the next chunk of the sentence starts with."""

    OTHER = 0
    LOWER = 1
    DIGIT = 2
    NOTHING = 3


# A context is one number: what follows, plus FIRST for the first chunk.
FIRST: Final = 4
CONTEXTS: Final = 8

_NEIGHBOR: Final = {
    Following.OTHER: " A",
    Following.LOWER: " a",
    Following.DIGIT: " 1",
    Following.NOTHING: "",
}
# A longer chunk is a URL or a defect, and unlikely to recur.
_LONGEST_REMEMBERED: Final = 40
# Commas that COMMA_SEPARATE_1 to _3 separate whatever the chunk's neighbors are.
_COMMA: Final = re.compile(r"(?<!,)((?<=[A-Za-z'.`-]),|,(?=[A-Za-z'.`-])|(?<=.),$)(?!,)")
_QUOTED: Final = re.compile(r"(')([A-Za-z0-9][^']*)|([^']*[A-Za-z0-9.])(')")
# EN_SPECIFIC_4 splits these before the apostrophe.
_PLAIN: Final = re.compile(r"([A-Za-z0-9-]*[A-Za-z])('[A-Za-z][A-Za-z0-9-]*)|([A-Za-z0-9-]+)(\.*)")


@lru_cache(maxsize=1)
def _moses() -> Any:
    """Return sacremoses with its lists replaced by sets, for faster look-ups and the same answers."""
    # Imported here because it takes a third of a second, and everything that reads a schema imports this
    # module.
    from sacremoses import MosesTokenizer

    class FasterMosesTokenizer(MosesTokenizer):  # type: ignore[misc]  # it has no types
        NONBREAKING_PREFIXES: frozenset[str]

        def __init__(self) -> None:
            super().__init__(lang="en")
            self._lower = frozenset(self.IsLower)
            self._alpha = frozenset(self.IsAlpha)
            self.nonbreaking = frozenset(self.NONBREAKING_PREFIXES) | frozenset(self.NUMERIC_ONLY_PREFIXES)
            self.NONBREAKING_PREFIXES = frozenset(self.NONBREAKING_PREFIXES)
            self.padded = re.compile(self.PAD_NOT_ISALNUM[0])

        def islower(self, text: str) -> bool:
            return self._lower.issuperset(text)

        def isanyalpha(self, text: str) -> bool:
            return not self._alpha.isdisjoint(text)

    return FasterMosesTokenizer()


def sentence_tokens(text: str) -> list[str]:
    """Return the lower-cased tokens of a whole sentence from sacremoses itself."""
    return [token.lower() for token in _moses().tokenize(text, escape=False)]


def is_lower(character: str) -> bool:
    """Return whether sacremoses treats a character as a lower-case letter."""
    return bool(_moses().islower(character))


def nonbreaking_prefixes() -> frozenset[str]:
    """Return the words whose following full stop may belong to them ("Mr", "No"), with or without a
    condition."""
    prefixes: frozenset[str] = _moses().nonbreaking
    return prefixes


def chunk_tokens(chunk: str, context: int) -> tuple[str, ...]:
    """Return the lower-cased tokens of a regular sentence's chunk (not empty, no white space, no control
    character). The tokens of recent chunks are cached, in bounded memory.

    context: a `Following`, plus FIRST for the first chunk.
    """
    return (_remembered if len(chunk) <= _LONGEST_REMEMBERED else _found)(chunk, context)


def _found(chunk: str, context: int) -> tuple[str, ...]:
    parts = _cut(chunk, context)
    if len(parts) < 2:
        return _tokens_in_context(chunk, context)
    contexts = [int(Following.OTHER)] * (len(parts) - 1) + [context & ~FIRST]
    contexts[0] |= context & FIRST
    return tuple(chain.from_iterable(map(chunk_tokens, parts, contexts)))


_remembered = lru_cache(maxsize=1 << 17)(_found)


def _cut(chunk: str, context: int) -> list[str]:
    """Split a chunk into parts that are chunks themselves, at cuts that touch no letter or digit."""
    parts = [part for part in _moses().padded.split(chunk) if part]
    if len(parts) == 1:
        parts = [part for part in _COMMA.split(chunk) if part]
    quoted = _QUOTED.fullmatch(chunk) if len(parts) == 1 else None
    # The first and last apostrophes of a sentence stay where they are.
    if quoted and not (context & FIRST if quoted[1] else context & ~FIRST == Following.NOTHING):
        parts = [part for part in quoted.groups() if part]
    return parts


def _tokens_in_context(chunk: str, context: int) -> tuple[str, ...]:
    plain = _PLAIN.fullmatch(chunk)
    if plain and "DOTMULTI" not in chunk:
        word, rest, other, stops = plain.groups()
        if word or not stops:
            return (word.lower(), rest.lower()) if word else (other.lower(),)
        if len(stops) > 1:
            return other.lower(), stops
        if other not in nonbreaking_prefixes():
            return (chunk.lower(),) if context == Following.LOWER else (other.lower(), stops)
    before = "" if context & FIRST else "A "
    after = _NEIGHBOR[Following(context & ~FIRST)]
    tokens = sentence_tokens(before + chunk + after)
    return tuple(tokens[bool(before) : len(tokens) - bool(after)])
