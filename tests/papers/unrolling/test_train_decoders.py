"""From files to a model's directory, and the commands around it."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.papers.unrolling.model import DecoderModel
from paraforge.papers.unrolling.parameters import DecodersParameters
from paraforge.papers.unrolling.train_decoders import DecodersReport, train_decoders
from paraforge.papers.unrolling.triples import SentenceFile
from tests.embeddings.trainer.training import write_sts
from tests.papers.unrolling.corpus import random_documents

SMALL: dict[str, Any] = {
    "network": {"word_dimension": 6, "state_dimension": 5},
    "training": {"batch_size": 8, "learning_rate": 0.01},
}


def write_documents(path: Path, documents: int = 20) -> Path:
    path.write_text("\n\n".join("\n".join(document) for document in random_documents(documents)) + "\n")
    return path


def train(directory: Path, path: Path, judges: TrainingData | None = None, **values: Any) -> DecodersReport:
    parameters = DecodersParameters.model_validate({**SMALL, **values})
    resources = Resources(threads=1, work=directory / "work")
    return train_decoders(parameters, SentenceFile(path), directory / "model", resources, judges=judges)


def digests(directory: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}


def test_a_model_is_trained_judged_and_kept(tmp_path: Path) -> None:
    path = write_documents(tmp_path / "book.txt")
    pairs = [(f"w{k} w{k + 1}", f"w{k} w{(3 * k) % 11}") for k in range(10)]
    sets = write_sts(tmp_path / "2020.pairs.tsv", pairs)
    # Two sentences of the documents are in the set, and a document ends at each that is left out.
    judges = TrainingData(development=[str(sets)], test_sets=[str(sets)], drop_leaked=False)
    report = train(tmp_path, path, judges)
    assert report.documents == 20
    assert report.triples == report.seen == report.sentences - 2 * 20
    assert report.years["2020"]["pearson"] == pytest.approx(report.best_score)
    model = DecoderModel.open(tmp_path / "model")
    assert model.dimension == report.dimension == 2 * 3 * 6
    assert model.about["signature"] == report.signature
    assert report.signature.startswith(f"triples:{report.triples}|data:")
    # The same training again is taken from the work directory, and has the same bytes where it is not.
    before = digests(tmp_path / "model")
    assert train(tmp_path, path, judges) == report
    shutil.rmtree(tmp_path / "work")
    train(tmp_path, path, judges)
    assert digests(tmp_path / "model") == before
    assert train(tmp_path, path, judges, maximum_length=5).signature == report.signature
    assert digests(tmp_path / "model") != before


@pytest.mark.parametrize("drop", [True, False])
def test_sentences_of_the_sets_are_not_trained_on(tmp_path: Path, drop: bool) -> None:
    documents = random_documents(20)
    path = write_documents(tmp_path / "book.txt")
    held = [document[len(document) // 2] for document in documents[:3]]
    sets = write_sts(tmp_path / "2020.pairs.tsv", [(text.upper() + "!", "other words") for text in held])
    report = train(tmp_path, path, TrainingData(test_sets=[str(sets)], drop_leaked=drop))
    lines = [sentence for document in documents for sentence in document]
    expected = sum(sentence in held for sentence in lines) if drop else 0
    assert report.held_out == expected
    assert report.sentences + report.skipped + report.held_out == len(lines)


def test_wrong_input_is_an_error_and_no_model(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("One sentence.\n\nAnother one.\n\nTwo. \nSentences.\n")
    with pytest.raises(InputError, match=r"no triples to train on: 4 sentences with words in 3 documents"):
        train(tmp_path, short)
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(InputError, match=r"empty\.txt: the file is empty"):
        train(tmp_path, empty)
    with pytest.raises(InputError, match="no such file"):
        train(tmp_path, tmp_path / "missing.txt")
    assert not (tmp_path / "model").exists()
