"""Reads the answers of a language model: translations, or the reason why an answer is not one."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from paraforge.base.errors import one_line
from paraforge.base.text.normalisation import CONTROLS
from paraforge.translation.decoding.batching import Untranslatable
from paraforge.translation.decoding.translator import Hypothesis, is_runaway

# The prompt's template can already have the opening tag, so that an answer only has the closing one.
_THOUGHT = re.compile(r"\A(.*</think>|\s*<think>.*)", re.DOTALL)
_QUOTES = ('""', "''", "“”", "„“", "«»", "``")
# Phrases of assistants that rarely occur in human translations.
_REFUSAL = re.compile(
    r"\bas an? (AI|artificial intelligence|(large )?language model)\b"
    r"|\bI( am|['’]m) (sorry|unable|not able)\b.{0,40}\b(translat(e|ion)|assist with (that|this|your))\b"
    r"|\bI (can(['’]|no)?t|cannot|am unable to|(do|wo)n['’]t|will not) (translate|assist with (that|this))\b",
    re.IGNORECASE | re.DOTALL,
)


def read_answer(choice: dict[str, Any], sentence: str) -> tuple[Hypothesis, str | None]:
    """Read one answer: its hypothesis, or why it is not a translation."""
    message = choice["message"]
    given = message.get("content")
    if isinstance(given, list):  # content in parts
        given = "".join(str(part.get("text") or "") for part in given if isinstance(part, dict))
    # JSON can contain lone surrogates, UTF-8 cannot.
    given = str(given or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    spoken = _THOUGHT.sub("", given)
    text = re.sub(CONTROLS, lambda one: "\n" if one[0] == "\n" else "", spoken).strip()
    for marks in _QUOTES:
        first, last = marks[0], marks[1]
        inner = text[1:-1]
        around = len(text) > 2 and text[0] == first and text[-1] == last and first not in inner
        if around and last not in inner and not sentence.lstrip().startswith(first):
            text = inner.strip()
    ended = choice.get("finish_reason") != "length"
    fault = None
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        fault, text = "refusal", text or str(message.get("refusal") or "content filter")
    elif _REFUSAL.search(text) and not _REFUSAL.search(sentence):
        fault = "refusal"
    elif len(text.split("\n")) > len(sentence.strip().split("\n")):
        fault = "several lines"
    logs: list[Any] = [
        one.get("logprob")
        for one in (choice.get("logprobs") or {}).get("content") or []
        if isinstance(one, dict)
    ]
    # With reasoning in the answer, the mean log-probability would not describe the translation.
    known = logs and spoken == given and all(isinstance(one, int | float) for one in logs)
    score = math.fsum(map(float, logs)) / len(logs) if known else math.nan
    words = text.split()
    return (
        Hypothesis(
            one_line(text),
            score if math.isfinite(score) else math.nan,
            len(logs) or len(words) + ended,
            not ended,
            runaway=is_runaway(text, words, ended),
        ),
        fault,
    )


def best_answers(answers: Sequence[tuple[Hypothesis, str | None]]) -> tuple[Hypothesis, ...]:
    """Return the distinct answers to a sentence, the best first, by score, or by frequency if one has no
    score. Raises Untranslatable if none is a translation, with the first answer's fault and text."""
    usable = [one for one, fault in answers if fault is None]
    usable = [one for one in usable if one.text] or usable
    if not usable:
        raise Untranslatable(str(answers[0][1]), answers[0][0].text[:120])
    count = Counter(one.text for one in usable)
    scored = not any(math.isnan(one.score) for one in usable)
    best: dict[str, Hypothesis] = {}
    for one in usable:
        if one.text not in best or one.score > best[one.text].score:
            best[one.text] = one
    return tuple(sorted(best.values(), key=lambda one: -one.score if scored else -count[one.text]))
