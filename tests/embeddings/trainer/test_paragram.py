"""The paragram stage: same bytes for any resources, and provided vectors and models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.files import sha256_directory
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.base.word_vectors.vectors import VECTORS_NAME, WordVectors, shards_trained_on
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.word_scorer import DESCRIPTION, VECTORS, WordScorer
from paraforge.embeddings.encoders.encoder import build_encoder
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.trainer.initial import random_table
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.paragram import build_paragram, settle_unknown
from paraforge.embeddings.trainer.parameters import ParagramParameters
from tests.base.text.test_pair_blocks import write_corpus

SYNONYMS = [("big", "large"), ("car", "automobile"), ("fast", "quick"), ("begin", "start"), ("end", "finish")]
FILLERS = [f"thing{number}" for number in range(40)]


def make_corpus(directory: Path, rows: int = 600) -> Path:
    generator = np.random.default_rng(4)
    content: list[dict[str, str | None]] = []
    for _ in range(rows):
        first, second = SYNONYMS[generator.integers(len(SYNONYMS))]
        words = list(generator.choice(FILLERS, size=3))
        place = int(generator.integers(4))
        sides = (" ".join([*words[:place], word, *words[place:]]) for word in (first, second))
        content.append(dict(zip(("reference", "translation"), sides, strict=True)))
    content.append({"reference": "refused", "translation": None, "rejected": "too_long"})
    return write_corpus(directory, content, rows_per_shard=250)


def parameters(**values: Any) -> ParagramParameters:
    training = {"epochs": 4, "batch_size": 20, "learning_rate": 0.005, **values.pop("training", {})}
    return ParagramParameters(dimension=20, training=training, **values)


def built(tmp_path: Path, settings: ParagramParameters, corpus: str = "none", to: str = "output") -> Any:
    """The report of a stage whose corpus and output are in ``tmp_path``."""
    resources = Resources(work=tmp_path / "work")
    return build_paragram(settings, tmp_path / corpus, tmp_path / to, resources)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_paragram_does_not_depend_on_resources(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus")
    contents = []
    for threads in (1, 2):
        resources = Resources(threads=threads, work=tmp_path / f"work{threads}")
        output = tmp_path / f"models{threads}"
        report = build_paragram(parameters(), corpus, output, resources)
        contents.append(files(output))
    assert contents[0] == contents[1]
    assert report.trained
    assert (report.pairs, report.skipped) == (600, 0)
    assert report.loss[-1] < report.loss[0]
    vectors = WordVectors.open(output, verify=True)
    assert vectors.unknown == UNKNOWN
    assert (report.words, report.dimension) == (len(vectors), 20)
    assert np.isfinite(vectors.vectors).all()
    assert shards_trained_on(output) == ShardDirectory(corpus).digest
    # The corpus has no unknown word, whose vector was drawn and never trained.
    drawn = random_table(len(vectors), 20, 0.01, parameters().training.seed)[0].numpy()
    assert not np.allclose(vectors.vectors[vectors.unknown_row], drawn)
    left = {path.name for path in (tmp_path / "work2").glob("paragram/*/*")}
    assert left == {"lock", "model", "report.json"}

    table = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    rows = vectors.known_rows([word for pair in SYNONYMS for word in pair])
    cosines = table[rows] @ table[rows].T
    synonyms = [cosines[2 * k, 2 * k + 1] for k in range(len(SYNONYMS))]
    others = cosines[::2, ::2][~np.eye(len(SYNONYMS), dtype=bool)]
    assert min(synonyms) > np.mean(others) + 0.3

    again = build_paragram(parameters(), corpus, output, resources)  # taken from the work directory
    assert files(output) == contents[0]
    assert again.loss == report.loss


def test_provided_vectors_are_used_unchanged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    vectors = WordVectors(["a", "b"], np.eye(2, 3, dtype=np.float32))
    vectors.write_text(tmp_path / "vectors.txt")
    report = built(tmp_path, ParagramParameters(vectors=str(tmp_path / "vectors.txt")))
    assert (report.trained, report.words, report.unknown) == (False, 2, None)
    assert f"has no vector {UNKNOWN}" in caplog.text
    assert report.fingerprint == vectors.fingerprint
    assert np.array_equal(WordVectors.open(tmp_path / "output", verify=True).vectors, vectors.vectors)
    settings = ParagramParameters(vectors=str(tmp_path / "output"))
    expected = files(tmp_path / "output")
    (tmp_path / "output" / ".cache").mkdir()
    built(tmp_path, settings, to="copy")
    assert files(tmp_path / "copy") == expected
    table = tmp_path / "output" / VECTORS_NAME
    content = table.read_bytes()
    table.unlink()  # the copy may be a link to it
    table.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="The directory is damaged"):
        built(tmp_path, settings, to="copy")


@pytest.mark.parametrize(
    ("reference", "warned"),
    [("The government will not change the law, the chairman said in the capital.", False),
     ("Der Vorsitzende sagte gestern, dass die Regierung das Gesetz nicht ändert.", True)],
)  # fmt: skip
def test_built_in_scorer_is_copied_with_language(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reference: str, warned: bool
) -> None:
    rows: list[dict[str, str | None]] = [{"reference": reference, "translation": "a"}] * 30
    write_corpus(tmp_path / "corpus", rows, rows_per_shard=50)
    report, output = built(tmp_path, ParagramParameters(built_in="general"), "corpus"), tmp_path / "output"
    assert files(output) == {name: (general.DIRECTORY / name).read_bytes() for name in (DESCRIPTION, VECTORS)}
    assert not (output / VECTORS).samefile(general.DIRECTORY / VECTORS)
    assert not (tmp_path / "work").exists() and not report.trained and report.model == "general"
    assert report.fingerprint == WordScorer.open(output).fingerprint
    assert ("The built-in scorer knows" in caplog.text) is warned


def test_provided_model_is_copied(tmp_path: Path) -> None:
    words = Vocabulary([UNKNOWN, "a", "b"])
    encoder = build_encoder(AverageParameters(dimension=4), lambda part, number: torch.ones(3, 4), seed=0)
    SentenceModel(encoder, AverageParameters(dimension=4), {"word": words}).save(tmp_path / "model")
    settings = ParagramParameters(model=str(tmp_path / "model"))
    expected = files(tmp_path / "model")
    (tmp_path / "model" / ".cache").mkdir()
    report = built(tmp_path, settings)
    assert (report.trained, report.model, report.words, report.dimension) == (False, "average", 3, 4)
    assert files(tmp_path / "output") == expected
    assert SentenceModel.open(tmp_path / "output").dimension == 4
    (tmp_path / "model" / "word.vocabulary.json").write_text("{")
    with pytest.raises(InputError, match=r"word\.vocabulary\.json"):
        built(tmp_path, settings)
    assert report.fingerprint == sha256_directory(tmp_path / "output")  # as it was


@pytest.mark.parametrize(
    ("text", "message"),
    [("a 1 2\nb 1\n", "vectors.txt:2"), ("a 1 2\nb 1 nan\n", "vectors.txt:2"), ("", "empty")],
)
def test_invalid_vectors_leave_no_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "vectors.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        built(tmp_path, ParagramParameters(vectors=str(tmp_path / "vectors.txt")))
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    ("path", "message"),
    [("$NO_SUCH_VARIABLE_AT_ALL/x", "NO_SUCH_VARIABLE_AT_ALL is not set"), ("none.tsv", "no such file")],
)
def test_missing_paragram_files_are_early_errors(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(tmp_path, parameters(corpus_pairs=False, pair_files=[{"path": path}]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"corpus_pairs": False}, "pairs to train on"),
        ({"vectors": "a", "model": "b"}, "not both"),
        ({"training": {"lambda_words": 1}}, "needs given vectors"),
        ({"training": {"patience": 1}}, "needs development sets"),
        ({"training": {"batch_size": 1}}, "no negatives"),
        ({"pair_files": [{"path": "a", "columns": [1, 1]}]}, "two different numbers"),
    ],
)
def test_contradictory_paragram_parameters(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParagramParameters(**values)


def test_unknown_vector_of_rare_words() -> None:
    vocabulary = Vocabulary([UNKNOWN, *(f"w{number}" for number in range(20))])
    vectors = np.arange(42, dtype=np.float32).reshape(21, 2)
    counts = np.array([0, *range(40, 20, -1)])
    settle_unknown(vocabulary, vectors, counts)
    assert np.array_equal(vectors[0], vectors[19:].mean(axis=0))
    settle_unknown(Vocabulary([UNKNOWN, "a", "b", "c"]), few := vectors[:4].copy(), np.array([0, 9, 1, 9]))
    assert np.array_equal(few[0], few[2])
    vectors[0] = 7
    before = vectors.copy()
    counts[0] = 3
    settle_unknown(vocabulary, vectors, counts)
    assert np.array_equal(vectors, before)
