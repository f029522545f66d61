"""Summarizes a stage's metrics in one line: output, input, losses, seconds."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from paraforge.base.logs import counted
from paraforge.corpus.publication.verdict_words import area_text
from paraforge.translation.memory.distinct import NOT_CHOSEN

Content = Mapping[str, Any]


def result_line(stage: str, content: Content) -> str:
    """Return one line that summarizes all metrics of a stage of dvc.yaml; it ends with the seconds."""
    parts = list(_PARTS[stage](content))
    seconds = content.get("seconds")
    return "; ".join([*parts, *([] if seconds is None else [f"{seconds:,.1f} s"])])


def _share(number: int, total: int, words: str) -> Iterator[str]:
    if number:
        yield f"{100 * number / total:.1f}% {words}"


def _ingest(content: Content) -> Iterator[str]:
    yield f"{content['kept']:,} of {content['rows']:,} pairs kept"
    if content["rejected"]:
        reason, number = max(content["rejected"].items(), key=lambda item: item[1])
        yield from _share(number, content["rows"], reason.replace("_", " "))


def _nmt(content: Content) -> Iterator[str]:
    yield "no model" if content["origin"] == "none" else f"a model, {content['origin'].replace('_', ' ')}"
    if content["bleu"] is not None:
        yield f"BLEU {content['bleu']:.1f}"


def _paraphraser(content: Content) -> Iterator[str]:
    yield from _nmt(content)
    if content["pairs"]:
        yield f"{content['pairs']['used']:,} of {content['pairs']['pairs']:,} pairs in both directions"


def _translate(content: Content) -> Iterator[str]:
    yield f"{content['translated']:,} of {content['rows']:,} rows translated"
    left = sum(number for reason, number in content["failed"].items() if reason.endswith(NOT_CHOSEN))
    yield from _share(left, content["rows"], "left for later")
    yield from _share(sum(content["failed"].values()) - left, content["rows"], "failed")
    if content.get("sentences_from_memory"):
        yield f"{content['sentences_from_memory']:,} of {content['sentences']:,} sentences from memory"
    if content["sentences_per_second"]:
        yield f"{content['sentences_per_second']:,.0f} sentences per second"


def _paragram(content: Content) -> Iterator[str]:
    if content["model"] == "general":
        yield "the built-in English scorer"
        return
    if content["model"]:
        yield f"a trained model ({content['model']}) of {content['dimension']} dimensions, as given"
        return
    how = f"trained on {content['pairs']:,} pairs" if content["trained"] else "as given"
    yield f"{content['words']:,} word vectors of {content['dimension']} numbers, {how}"


def _score(content: Content) -> Iterator[str]:
    yield f"{content['scored']:,} of {content['rows']:,} pairs scored"
    if content["mean_paraphrase_score"] is not None:
        score, overlap = content["mean_paraphrase_score"], 100 * content["mean_overlap_3"]
        yield f"mean paraphrase score {score:.2f}, trigram overlap {overlap:.1f}%"
    separation = (content.get("verdicts", {}).get("paraphrase_score") or {}).get("separation")
    if separation:
        yield f"separates right from mismatched pairs with {area_text(separation)}"


def _lexicon(content: Content) -> Iterator[str]:
    yield f"{content['entries']:,} entries for {content['words_with_paraphrases']:,} words"
    yield f"counted in {content['pairs']:,} of {content['rows']:,} pairs"


def _embeddings(content: Content) -> Iterator[str]:
    yield f"trained on {content['pairs']:,} pairs"
    if content.get("best_score") is not None:
        yield f"development {content['best_score']:.1f}"


def _triplets(content: Content) -> Iterator[str]:
    yield f"{content['triplets']:,} triplets" if content["encoder"] != "none" else "no triplets"
    if content["rows"]:
        yield f"{counted(content['rows'], 'pair')} in {counted(content['clusters'], 'cluster')}"


def _statistics(content: Content) -> Iterator[str]:
    yield f"{counted(content['pairs'], 'pair')} described"


# Stages select and publish make their lines themselves.
_PARTS: Final[Mapping[str, Callable[[Content], Iterator[str]]]] = {
    "ingest": _ingest,
    "nmt": _nmt,
    "translate": _translate,
    "paragram": _paragram,
    "score": _score,
    "lexicon": _lexicon,
    "embeddings": _embeddings,
    "paraphraser": _paraphraser,
    "triplets": _triplets,
    "statistics": _statistics,
}
