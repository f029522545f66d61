"""From a model's answer to a hypothesis, or to the reason why it is no translation."""

import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paraforge.base.errors import one_line
from paraforge.base.text.normalisation import CONTROLS
from paraforge.translation.decoding.batching import Untranslatable
from paraforge.translation.decoding.translator import Hypothesis, is_runaway

_WORD = re.compile(r"\w+")
# A copy of this many words is no name, number or title.
_LEAST_COPIED = 5
_COPIED_SHARE = 0.9
_QUOTED = 120
_THOUGHT = re.compile(r"\s*<think>.*?(</think>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_PAIRS = (
    *(tuple(pair) for pair in ('""', "''", "“”", "„“", "„”", "‘’", "«»", "»«", "``", "「」")),
    *(("**", "**"), ("__", "__")),
)
_QUOTES = "\"'“”„‘’«»「」`"
_MARKUP = re.compile(r"```|^#{1,6} |\*\*\S|</?(b|i|p|br|em|strong|div|span)>", re.MULTILINE)
# Turns of phrase of assistants, which human translations hardly ever have: tests/translation/decoding/remote
# counts them.
_REFUSAL = re.compile(
    r"""
    \b as \s an? \s (AI | artificial \s intelligence | (large \s)? language \s model) \b
    | \b I (\sam | ['’]m) \s (sorry | unable | not \s able) \b .{0,40}
      \b (translat(e|ion) | assist \s with \s (that|this|your) | your \s request) \b
    | \b I \s (can(['’]|no)?t | am \s unable \s to | (do|will) \s not | (do|wo)n['’]t)
      \s (translate | provide \s (a|the|an?y) \s translation | assist \s with \s (that|this)
        | fulfil+ \s (that|this|your) | comply \s with \s (that|this|your) | process \s (this|your)) \b
    | \b (please \s provide | you \s ((have|did) (\s not | n['’]t) \s)? provided?) \s (me \s with \s)?
      (the | a | any) \s (text | sentence | message) \b
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_EXPLANATION = re.compile(
    r"""
    \A (sure | certainly | of \s course | absolutely | okay | ok) [,!.:] [^.?]{0,20} \b (here | translat)
    | \A (here ((['’]|\s i)s | \s are) | this \s is) \s (the | a | your | my | an) \s ([\w-]+ \s){0,3}
      translations? \b [^.]{0,40} :
    | \A (the \s)? ([\w-]+ \s){0,2} translat (ion | ed)
      (\s (text | sentence | of | into | in | to | from | is | would \s be) \b [^:.]{0,60})? : \s? \S
    | \b translates? \s (literally \s)? (in)?to \s (English \s)? (as \s)? [:"“]
    | \A (in \s English \s)? (this | it | that) \s (sentence \s)? (means | translates) \s? [:"“]
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What translators add has a bracket or a colon that is not in the sentence.
_ASIDE = re.compile(
    r"[(\[]\s*(translator['’]?s )?(note|lit\.|literal|alternatively|or alternatively|or, more)\b",
    re.IGNORECASE,
)
_NOTE = re.compile(r"(?<![(\[])\b(note|explanation|alternative translations?): ", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """One answer to a sentence.

    text: on one line, without what was put around it.
    score: mean natural log-probability of its tokens as the server gave them; NaN where it did not.
    tokens: how many the server counted, else words. truncated: it ended at the length limit.
    fault: why it is no translation; None if nothing speaks against it.
    """

    text: str
    score: float
    tokens: int
    truncated: bool = False
    fault: str | None = None


def read_answer(choice: dict[str, Any], sentence: str, in_english: bool) -> Answer:
    """Read one choice of a server's answer.

    Thoughts before the answer, and quotation marks or markup around all of it that the sentence does not
    have, are removed.

    choice: as the server gave it. in_english: whether a translation has to be in Latin script.
    """
    message = choice.get("message") or {}
    given = _content(message)
    ended = choice.get("finish_reason") != "length"
    spoken = _THOUGHT.sub("", given, count=1) if given.lstrip().startswith("<think>") else given
    text = _unwrapped(spoken.strip(), sentence)
    logs = _token_logs(choice)
    # With thoughts in it, the mean would not be that of the translation.
    score = math.fsum(logs) / len(logs) if logs and spoken == given else math.nan
    fault = None
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        fault, text = "refusal", text or one_line(_storable(str(message.get("refusal") or "content filter")))
    elif text:
        fault = fault_of(text, sentence, in_english)
    tokens = len(logs) or len(_WORD.findall(text)) + ended
    return Answer(one_line(text), score if math.isfinite(score) else math.nan, tokens, not ended, fault)


def fault_of(text: str, sentence: str, in_english: bool = True) -> str | None:
    """Why an answer is no translation of the sentence: a short name; None if nothing speaks against it."""
    if _REFUSAL.search(text) and not _REFUSAL.search(sentence):
        return "refusal"
    if _explains(text, sentence):
        return "explanation"
    if len(_lines(text)) > max(1, len(_lines(sentence))):
        return "several lines"
    if _MARKUP.search(text) and not _MARKUP.search(sentence):
        return "markup"
    if _is_copy(text, sentence) or (in_english and not _is_latin(text)):
        return "source language"
    return None


def best_of(answers: Sequence[Answer], nbest: int) -> tuple[Hypothesis, ...]:
    """The best of the answers to a sentence, each text once.

    By falling score where all have one, else by how often they were given. An answer that is no translation,
    or empty, is left out if another is one.

    Raises Untranslatable: none is a translation; with the first one's fault, and its text for the log.
    """
    usable = [answer for answer in answers if answer.fault is None]
    usable = [answer for answer in usable if answer.text] or usable
    if not usable:
        first = answers[0]
        raise Untranslatable(str(first.fault), textwrap.shorten(first.text, _QUOTED, placeholder=" …"))
    groups: dict[str, list[Answer]] = {}
    for answer in usable:
        groups.setdefault(answer.text, []).append(answer)
    best = [max(group, key=_known_score) for group in groups.values()]
    if any(math.isnan(answer.score) for answer in best):
        best.sort(key=lambda answer: -len(groups[answer.text]))
    else:
        best.sort(key=lambda answer: -answer.score)
    return tuple(map(_hypothesis, best[:nbest]))


def _known_score(answer: Answer) -> float:
    return -math.inf if math.isnan(answer.score) else answer.score


def _hypothesis(answer: Answer) -> Hypothesis:
    words = answer.text.split()
    runaway = is_runaway(answer.text, words, not answer.truncated)
    return Hypothesis(answer.text, answer.score, answer.tokens, answer.truncated, runaway=runaway)


def _content(message: dict[str, Any]) -> str:
    """Text of a message, which may come in parts."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return _storable(content) if isinstance(content, str) else ""


def _storable(text: str) -> str:
    """Without control characters, and without halves of characters, which JSON can spell and UTF-8 cannot."""
    return re.sub(CONTROLS, "", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _token_logs(choice: dict[str, Any]) -> list[float]:
    """Natural log-probabilities of an answer's tokens; none if any is missing."""
    content = (
        (choice.get("logprobs") or {}).get("content") if isinstance(choice.get("logprobs"), dict) else None
    )
    logs: list[Any] = [one.get("logprob") if isinstance(one, dict) else None for one in content or []]
    return [float(one) for one in logs] if all(isinstance(one, int | float) for one in logs) else []


def _unwrapped(text: str, sentence: str) -> str:
    """Without a code fence, quotation marks or emphasis around the whole that the sentence does not have."""
    fence = _FENCE.fullmatch(text)
    if fence is not None and "```" not in sentence:
        text = fence[1].strip()
    changed = True
    while changed:
        changed = False
        for first, last in _PAIRS:
            inner = text[len(first) : len(text) - len(last)]
            around = text.startswith(first) and text.endswith(last) and inner.strip()
            own = tuple(_QUOTES) if first in _QUOTES else (first,)
            if around and first not in inner and last not in inner and not sentence.strip().startswith(own):
                text, changed = inner.strip(), True
    return text


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _explains(text: str, sentence: str) -> bool:
    aside = _ASIDE.search(text) and not re.search(r"[(\[]", sentence)
    note = _NOTE.search(text) and ":" not in sentence
    return bool(aside or note or (_EXPLANATION.search(text) and not _EXPLANATION.search(sentence)))


def _is_copy(text: str, sentence: str) -> bool:
    """Whether nearly all words are the sentence's."""
    words, source = (_WORD.findall(one.casefold()) for one in (text, sentence))
    known = set(source)
    copied = sum(word in known for word in words)
    letters = sum(word.isalpha() for word in words)
    return letters >= _LEAST_COPIED and copied >= _COPIED_SHARE * len(words)


def _is_latin(text: str) -> bool:
    """Whether at least half of the letters are Latin ones, or there is none."""
    letters = [letter for letter in text if letter.isalpha()]
    latin = sum(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    return 2 * latin >= len(letters)
