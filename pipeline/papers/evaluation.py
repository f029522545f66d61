"""Opens the models of published experiments and evaluates them, also on transfer tasks; and baselines without
training: TF-IDF cosines of words or character trigrams, Jaccard, chrF, BLEU, METEOR."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, InputError, require
from paraforge.base.markdown import text_table
from paraforge.embeddings.evaluation.comparing import Model, OpenedModel
from paraforge.embeddings.evaluation.evaluate import Evaluation, OpenModel, evaluate, figure, round_floats
from paraforge.papers.transfer.evaluate import TransferScore, evaluate_transfer
from paraforge.papers.transfer.tasks import FOLDS, TASKS, find_tasks
from paraforge.papers.unrolling.parameters import is_decoder_model
from paraforge.products import loading

if TYPE_CHECKING:
    from paraforge.papers.transfer.fine_tuning import Variant


_LEAST_SENTENCES: Final = 2
_NO_WORD: Final = "\ufffd\ufffd\ufffd"
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")


def words_and_marks(text: str) -> list[str]:
    """Split a lower-cased text into words (runs of letters and digits) and single punctuation marks."""
    return _WORD_OR_MARK.findall(text.lower())


class TfIdf:
    """Cosine of two sentences' vectors with the elements `(1 + ln tf) * (1 + ln((1 + N) / (1 + N_t)))`.

    N is the number of fitted sentences, and N_t the number of those with the term: a word, or a trigram of a
    word between two spaces. Terms in only one sentence are ignored.
    """

    def __init__(self, texts: Sequence[str], terms: Literal["words", "trigrams"] = "words") -> None:
        """Fit inverse document frequencies. Raises MissingPackageError if scikit-learn is not installed."""
        package = require("sklearn.feature_extraction.text", "evaluation")
        cut: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (3, 3)}
        if terms == "words":
            cut = {"analyzer": words_and_marks}
        self._vectorizer = package.TfidfVectorizer(sublinear_tf=True, min_df=_LEAST_SENTENCES, **cut)
        try:
            self._vectorizer.fit(texts)
        except ValueError:  # no term is in two sentences: add two that share a term with no other sentence
            self._vectorizer.fit([*texts, _NO_WORD, _NO_WORD])

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return scores from 0 to 1; 0 if a sentence has no fitted term."""
        left, right = self._vectorizer.transform(first), self._vectorizer.transform(second)
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()


def jaccard(first: str, second: str) -> float:
    """Return the share of the sentences' distinct words that is in both, 0 to 1; 0 without words."""
    first_words, second_words = set(words_and_marks(first)), set(words_and_marks(second))
    return len(first_words & second_words) / max(1, len(first_words | second_words))


def chrf(reference: str, translation: str) -> float:
    """Return chrF of sacreBLEU (character n-grams of 1 to 6, beta 2), 0 to 1."""
    from sacrebleu import sentence_chrf

    return float(sentence_chrf(translation, [reference]).score) / 100


def bleu(reference: str, translation: str) -> float:
    """Return sacreBLEU's sentence BLEU, up to 4-grams, with exponential smoothing, 0 to 1."""
    from sacrebleu import sentence_bleu

    return float(sentence_bleu(translation.lower(), [reference.lower()]).score) / 100


def meteor(reference: str, translation: str) -> float:
    """Return NLTK's METEOR with exact matches and Porter stems, without WordNet, 0 to 1."""
    package = require("nltk.translate.meteor_score", "experiments")
    sides = [words_and_marks(text) for text in (reference, translation)]
    return float(package.single_meteor_score(*sides, wordnet=_NoSynonyms())) if all(sides) else 0.0


class _NoSynonyms:
    def synsets(self, word: str) -> list[object]:
        return []


class PairMetric:
    """Computes the similarity of two sentences with a function of both."""

    def __init__(self, metric: Callable[[str, str], float]) -> None:
        self._metric = metric

    def similarity(self, first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return one number per pair."""
        pairs = zip(first, second, strict=True)
        return np.array([self._metric(left, right) for left, right in pairs], dtype=np.float64)


# By name: what it computes, and a function from all sentences of the evaluated sets to the opened baseline.
BASELINES: Final[dict[str, tuple[str, Callable[[Sequence[str]], TfIdf | PairMetric]]]] = {
    "tfidf": ("cosine of TF-IDF vectors of words", TfIdf),
    "tfidf-trigrams": (
        "cosine of TF-IDF vectors of the character trigrams inside words",
        partial(TfIdf, terms="trigrams"),
    ),
    "jaccard": ("words that both sentences have / words that either has", lambda _: PairMetric(jaccard)),
    "chrf": (
        "chrF of the second sentence with the first one as its reference",
        lambda _: PairMetric(chrf),
    ),
    "bleu": (
        "sentence BLEU of the second sentence with the first one as its reference",
        lambda _: PairMetric(bleu),
    ),
    "meteor": (
        "METEOR without synonyms of the second sentence with the first one as its reference",
        lambda _: PairMetric(meteor),
    ),
}


def open_model(name: str, sentences: Sequence[str] = (), device: str = "cpu") -> OpenedModel:
    """Open a lexical baseline, trained decoders (`DIRECTORY@unrolled:2`), or any other sentence model.

    sentences: the sentences to fit TF-IDF on.
    Raises the errors of `paraforge.products.loading.open_model`, which opens the other models.
    """
    if name in BASELINES:
        kind, fitted = BASELINES[name]
        return OpenedModel(name, kind, fitted(sentences))
    if is_decoder_model(name):
        from paraforge.papers.unrolling.model import DecoderModel

        model = DecoderModel.open(name, chosen_device(device))
        network = model.network.architecture
        kind = (
            f"trained decoders, {network.encoder}-{network.decoder}, read by {model.representation}, "
            f"{model.dimension} dimensions, {model.representation.similarity}"
        )
        return OpenedModel(name, kind, model)
    return loading.open_model(name, device=device)


@dataclass
class PaperEvaluation:
    """The results of `evaluate` and of transfer tasks.

    missing: names of the tasks whose files are missing.
    """

    similarity: Evaluation
    transfer: list[TransferScore] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return all figures x 100, rounded to four decimals; None for undefined ones."""
        content = self.similarity.as_json()
        if self.transfer or self.missing:
            # Settings such as a penalty of 0.00001 must not be rounded.
            tasks = [{**round_floats(asdict(task)), "chosen": task.chosen} for task in self.transfer]
            content["transfer"] = {"tasks": tasks, "missing": self.missing}
        return content

    def lines(self) -> list[str]:
        """Return the results as tables."""
        lines = self.similarity.lines()
        if self.transfer:
            lines += ["", *self._transfer_table()]
        if self.missing:
            lines += ["", f"missing tasks: {', '.join(self.missing)}"]
        return lines

    def _transfer_table(self) -> list[str]:
        """Return one row per task, with a column for each training variant."""
        trainings = list(dict.fromkeys(score.training for score in self.transfer))
        tasks: dict[str, dict[str, TransferScore]] = {}
        for result in self.transfer:
            tasks.setdefault(result.name, {})[result.training] = result
        rows = []
        for name, scores in tasks.items():
            task = next(iter(scores.values()))
            figures = [
                figure(score.pearson if score.accuracy is None else score.accuracy)
                for score in (scores[training] for training in trainings)
            ]
            counts = [f"{count:,}" for count in (task.train, task.test)]
            measure = "Pearson" if task.accuracy is None else "accuracy"
            rows.append([name, *counts, *figures, measure, task.tested_on])
            if any(score.f1 is not None for score in scores.values()):
                figures = [figure(scores[training].f1) for training in trainings]
                rows.append(["", "", "", *figures, "F1", task.tested_on])
        columns = trainings if len(trainings) > 1 else ["score"]
        return text_table(["task", "train", "tested", *columns, "measure", "tested on"], rows)


def evaluate_for_papers(
    name: str,
    open_model: OpenModel,
    *,
    sts: Sequence[Path] = (),
    transfer: Sequence[Path] = (),
    task_names: Sequence[str] = (),
    variants: Sequence[Variant] = (),
    folds: int = FOLDS,
    seed: int = 1,
    **options: Any,
) -> PaperEvaluation:
    """Evaluate a model on similarity (see `evaluate`) and on transfer tasks.

    transfer: directories of transfer tasks; SICK is also looked for in the directories of `sts`.
    task_names: names in `TASKS`; all if empty. folds: number of folds for tasks without a split.
    variants: ways to train copies of the model for the tasks, in addition to the fixed embeddings.
    seed: see `evaluate_transfer`. options: further arguments of `evaluate`.

    Raises the errors of `evaluate`; ConfigurationError if the arguments contradict each other.
    """
    problems = [f"--task {one}: use {', '.join(TASKS)}" for one in task_names if one not in TASKS]
    if not transfer and (task_names or variants):
        problems.append("--task and --fine-tune need --transfer")
    if variants and is_decoder_model(name):
        # Sentence vectors of decoders need the output vectors of the words that the decoders were trained on.
        problems.append(f"--fine-tune: {name} are decoders, which have no encoder to train for a task")
    problems += [f"--transfer {path}: no such directory" for path in transfer if not path.is_dir()]
    if problems:
        raise ConfigurationError(problems)
    if not transfer:
        return PaperEvaluation(evaluate(name, open_model, sts=sts, **options))
    tasks, missing = find_tasks([*transfer, *(path for path in sts if path.is_dir())], task_names)
    if not tasks:
        raise InputError(
            "no transfer task here",
            transfer[0],
            remedy="experiments/README.md lists the file names.",
        )
    opened = open_model(name, ())
    if not isinstance(opened.model, Model):
        raise ConfigurationError([f"--transfer: {name} only compares pairs; give a model that embeds"])
    encoder = None
    if variants:  # torch takes seconds
        from paraforge.papers.transfer.fine_tuning import encoder_of, fine_tune_transfer

        encoder = encoder_of(opened, tasks)
    similarity = Evaluation(opened.name, opened.kind)
    if sts or options.get("word_lists"):

        def open_others(wanted: str, sentences: Sequence[str]) -> OpenedModel:
            return opened if wanted == name else open_model(wanted, sentences)

        similarity = evaluate(name, open_others, sts=sts, **options)
    scores = evaluate_transfer(opened.model, tasks, seed, folds)
    if encoder is not None:
        scores += fine_tune_transfer(encoder, tasks, variants, seed, folds)
    return PaperEvaluation(similarity, scores, missing)
