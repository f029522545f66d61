"""Training from pairs to a model's directory, and from an existing model."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
import torch
from pydantic import ValidationError

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.resources import Resources
from paraforge.base.shards.store import write_index, write_shard
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.base.word_vectors.vectors import UNKNOWN_WORD, WordVectors
from paraforge.corpus.publication.datasets import Dataset, open_published, published_tables
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.inference.export import model_card
from paraforge.embeddings.trainer import train_model as module
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.initial import table_from_vectors
from paraforge.embeddings.trainer.model import SentenceModel
from paraforge.embeddings.trainer.parameters import EmbeddingsParameters, ModelParameters, PairFileParameters
from paraforge.embeddings.trainer.train_model import EmbeddingsReport, train_model, train_named_model
from paraforge.interface.cli.embeddings import report_lines
from tests.corpus.selection.published import publish_pairs
from tests.embeddings.trainer.training import sentence_pairs, write_pairs, write_sts
from tests.project import digests

SETTINGS = {"training": {"epochs": 3, "batch_size": 20, "mega_batch": 2}}


def model_parameters(encoder: dict[str, Any] | None = None, **values: Any) -> ModelParameters:
    chosen = encoder or {"kind": "average", "dimension": 8}
    return ModelParameters.model_validate({"encoder": chosen, **SETTINGS, **values})


def data_of(path: Path, **values: Any) -> TrainingData:
    return TrainingData([PairFileParameters(path=str(path))], **values)


def train(tmp_path: Path, parameters: ModelParameters, data: TrainingData) -> EmbeddingsReport:
    return train_model(parameters, data, tmp_path / "model", Resources(threads=1, work=tmp_path / "work"))


def test_model_is_trained_evaluated_and_saved(tmp_path: Path) -> None:
    pairs = sentence_pairs()
    sets = write_sts(tmp_path / "2020.held-out.tsv", pairs[100:])
    data = data_of(write_pairs(tmp_path / "pairs.tsv", pairs), development=[str(sets)], test_sets=[str(sets)])
    report = train(tmp_path, model_parameters(), data)
    assert report.pairs == 100
    assert (report.leakage["leaked"], report.leakage["dropped"]) == (20, 20)
    assert report.best_score == max(entry["score"] for entry in report.history)
    assert report.years["2020"]["pearson"] == pytest.approx(report.best_score)
    assert report.signature.startswith("pairs:100|data:")
    model = SentenceModel.open(tmp_path / "model")
    assert (model.about["signature"], model.unknown_words) == (report.signature, "own")
    assert model.encode("left1 left2").shape == (8,)
    assert model.encode(["left1", "left2 right3"]).shape == (2, 8)
    left = {path.name for path in (tmp_path / "work").glob("embeddings/*/*")}
    assert left == {"lock", "model", "report.json"}
    # The same training again is taken from the work directory, and has the same bytes where it is not.
    before = digests(tmp_path / "model")
    assert train(tmp_path, model_parameters(), data) == report
    shutil.rmtree(tmp_path / "work")
    train(tmp_path, model_parameters(), data)
    assert digests(tmp_path / "model") == before


def test_tables_have_separate_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WordVectors(["a"], np.ones((1, 8), np.float32)).write_text(tmp_path / "vectors.txt")
    seeds: list[int] = []
    monkeypatch.setattr(module, "starting_table", lambda part, store, seed: seeds.append(seed))
    monkeypatch.setattr(module, "table_from_vectors", lambda words, given, seed, name: seeds.append(seed))
    for vectors in (None, str(tmp_path / "vectors.txt")):
        parameters = model_parameters(vectors=vectors, training={"seed": 5})
        make = module._tables(parameters, Mock(vocabularies={"word": None}))
        for number in (0, 1):
            make(AverageParameters(dimension=8), number)
    assert seeds == [5, 6, 5, 6]


def test_development_and_test_pairs_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Order, case and punctuation do not matter. Nothing is said about a set without such pairs."""
    pairs = sentence_pairs()
    judges = {"2012.half": pairs[5:15], "2012.all": pairs[:10], "2013.other": pairs[20:30]}
    paths = []
    for name, some in judges.items():
        path = tmp_path / f"{name}.tsv"
        path.write_text("".join(f"{k % 5}\t{one.upper()}!\t{two}\n" for k, (two, one) in enumerate(some)))
        paths.append(str(path))
    development = str(write_sts(tmp_path / "development.tsv", pairs[:10]))
    data = data_of(write_pairs(tmp_path / "pairs.tsv", pairs), development=[development], test_sets=paths)
    report = train(tmp_path, model_parameters(), data)
    shared = {name: score.get("development_pairs", 0) for name, score in report.sets.items()}
    assert shared == {"2012.half": 5, "2012.all": 10, "2013.other": 0}
    assert (report.years["2012"]["development_pairs"], report.years["2012"]["pairs"]) == (15, 20)
    warned = [message for message in caplog.messages if "choose the epoch" in message]
    told = ["2012.half: 5 of its 10", "2012.all: 10 of its 10"]
    assert [line.partition(" pairs")[0] for line in warned] == told
    assert "15 of its 20 pairs are also in the development sets" in "\n".join(report_lines(report))
    about = SentenceModel.open(tmp_path / "model").about
    card = model_card("m", model_parameters().encoder, 8, {}, about, "")
    assert "5 of the 10 pairs of 2012.half chose the epoch." in card


def test_missing_directory_or_device_is_early_error(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "pairs.tsv", sentence_pairs())
    given = (model_parameters(), data_of(path), path / "model", Resources(threads=1, work=tmp_path / "work"))
    with pytest.raises(InputError, match=r"pairs\.tsv/model: cannot be written"):
        train_model(*given)
    with pytest.raises(ConfigurationError, match="cuda:99"):
        train_model(*given, device="cuda:99")
    assert not (tmp_path / "work").exists()


def test_non_corpus_directory_is_error(tmp_path: Path) -> None:
    (tmp_path / "somewhere").mkdir()
    with pytest.raises(InputError, match="somewhere: neither a published corpus nor shards"):
        train(tmp_path, model_parameters(), TrainingData(corpora=[tmp_path / "somewhere"]))


@pytest.mark.parametrize("drop", [True, False])
def test_held_out_splits_are_reported(tmp_path: Path, drop: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The training file has pairs of a corpus with held-out splits, and no set of sentences is given."""
    publish_pairs(tmp_path, splits={"validation": 20, "test": 40})
    splits = open_published(tmp_path / "corpus").splits
    rows = {name: pairs_of(split) for name, split in splits.items()}
    path = write_pairs(tmp_path / "pairs.tsv", [pair for pairs in rows.values() for pair in pairs])
    data = data_of(path, reserved=[tmp_path / "corpus"], drop_leaked=drop)
    assert data.fingerprint() != data_of(path, drop_leaked=drop).fingerprint()
    caplog.set_level(logging.INFO)
    report = train(tmp_path, model_parameters(), data)
    held = {sentence for name in ("validation", "test") for pair in rows[name] for sentence in pair}
    leaked = sum(not held.isdisjoint(pair) for pairs in rows.values() for pair in pairs)
    assert report.leakage["leaked"] == leaked >= len(rows["validation"]) + len(rows["test"]) > 0
    assert report.leakage["dropped"] == (leaked if drop else 0)
    names = {f"{tmp_path / 'corpus'} ({name})" for name in ("validation", "test")}
    assert set(report.leakage["by_set"]) == names
    assert report.pairs + report.skipped + report.leakage["dropped"] == sum(map(len, rows.values()))
    assert f"leaked:{leaked}:" in report.signature
    assert any(f"{leaked:,} of" in message and "a held-out split" in message for message in caplog.messages)


def pairs_of(split: Dataset) -> list[tuple[str, str]]:
    sides = ["reference", "translation"]
    return [tuple(row.values()) for table in published_tables(split, sides) for row in table.to_pylist()]


def test_concatenation_starts_from_provided_vectors(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("left1 1 0 0 0\nright1 0 1 0 0\n")
    word = {"kind": "average", "dimension": 4}
    trigram = {"kind": "average", "unit": "trigram", "dimension": 6, "initial_frequency": 0.01}
    encoder = {"kind": "concatenation", "parts": [word, trigram] * 2}
    still = {"training": {**SETTINGS["training"], "learning_rate": 1e-30}}
    parameters = model_parameters(encoder, vectors=str(vectors), unknown_words="shared", **still)
    train(tmp_path, parameters, data_of(write_pairs(tmp_path / "pairs.tsv", sentence_pairs())))
    model = SentenceModel.open(tmp_path / "model")
    assert (model.dimension, model.unknown_words) == (20, "shared")
    tables = [model.encoder.get_parameter(f"parts.{part}.table") for part in range(4)]
    assert not torch.equal(tables[0], tables[2]) and not torch.equal(tables[1], tables[3])
    assert model.encode("left1")[:4].tolist() == pytest.approx([1, 0, 0, 0], abs=1e-20)
    # A frequent trigram starts shorter than a rare one.
    units = model.vocabularies["trigram"].units
    assert tables[1][units.index("eft")].norm() < tables[1][units.index("11 ")].norm()
    unequal = {"kind": "addition", "parts": [word, {**trigram, "dimension": 9}]}
    for parameters, message in (
        (model_parameters({"kind": "lstm", "dimension": 5}, vectors=str(vectors)), "initial vectors have 4"),
        (model_parameters(unequal, vectors=str(vectors)), r"dimensions \[4, 9\] cannot be added"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            train(tmp_path, parameters, data_of(tmp_path / "pairs that nothing reads"))


def test_words_without_vector_start_unknown_or_random() -> None:
    vocabulary = Vocabulary([UNKNOWN, "cat", "dog", *map(str, range(1000))])
    numbers = np.array([[3, -3], [1, 2]], np.float32)
    table = table_from_vectors(vocabulary, WordVectors(["dog", UNKNOWN_WORD], numbers), 1)
    assert table[:4].tolist() == [[1, 2], [1, 2], [3, -3], [1, 2]]
    table = table_from_vectors(vocabulary, WordVectors(["dog"], numbers[:1]), 1)
    assert table[2].tolist() == [3, -3] and float(table.std()) == pytest.approx(3, rel=0.1)
    for word, problem in (("bird", "none of"), ("dog", "only zeros for")):
        with pytest.raises(InputError, match=f"f.txt: the initial vectors have {problem} the words to train"):
            table_from_vectors(vocabulary, WordVectors([word], np.zeros((1, 2), np.float32)), 1, "f.txt")


def test_corpora_with_empty_shards_and_empty_sides(tmp_path: Path) -> None:
    schema = pa.schema([("reference", pa.string()), ("translation", pa.string())])
    pairs = [*sentence_pairs(30), ("", "left1"), ("left2", None), ("left3", "  ")]
    tables = [pa.table([*sides], schema=schema) for sides in (([], []), zip(*pairs, strict=True), ([], []))]
    directory = tmp_path / "shards"
    directory.mkdir()
    records = [write_shard(table, directory / f"shard-{n:05d}.parquet") for n, table in enumerate(tables)]
    write_index(directory, records, {})
    report = train(tmp_path, model_parameters(), TrainingData(corpora=[directory]))
    assert (report.pairs, report.skipped, report.leakage) == (30, 2, None)
    write_index(directory, [records[0]], {})
    with pytest.raises(InputError, match=r"no pair to train on: the corpus is empty.*change section select"):
        train(tmp_path, model_parameters(), TrainingData(corpora=[directory]))


def test_invalid_input_is_error_before_training(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", sentence_pairs())
    with pytest.raises(InputError, match="no such file"):
        train(tmp_path, model_parameters(), data_of(tmp_path / "missing.tsv"))
    with pytest.raises(InputError, match=r"missing\.txt"):
        train(tmp_path, model_parameters(vectors=str(tmp_path / "missing.txt")), data_of(pairs))
    with pytest.raises(InputError, match="no such directory of shards"):
        train(tmp_path, model_parameters(), TrainingData(corpora=[tmp_path / "missing"]))
    bad = tmp_path / "bad.txt"
    bad.write_text("left1 1 nan\nleft2 1 2\n")
    encoder = {"kind": "average", "dimension": 2}
    with pytest.raises(InputError, match=r"NaN|nan|finite"):
        train(tmp_path, model_parameters(encoder, vectors=str(bad)), data_of(pairs))
    impatient = model_parameters(training={"patience": 1})
    with pytest.raises(ConfigurationError, match="patience: needs development sets"):
        train(tmp_path, impatient, data_of(pairs))
    same = tmp_path / "same.tsv"
    same.write_text("3\ta\tb\n3\tc\td\n\te\tf\n")
    with pytest.raises(InputError, match="set same has no two different scores"):
        train(tmp_path, model_parameters(), data_of(pairs, development=[str(same)]))
    assert not (tmp_path / "model").exists()


def test_model_of_embeddings_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", [("a b", "c d")] * 30 + sentence_pairs(90))
    training = {"epochs": 3, "batch_size": 2, "mega_batch": 1}
    model = {"encoder": {"dimension": 4, "kind": "average"}, "training": training}
    files = [{"path": str(pairs)}]
    section = EmbeddingsParameters.model_validate(
        {"names": ["mine"], "models": {"mine": model}, "corpus_pairs": False, "pair_files": files}
    )
    resources = Resources(threads=1, work=tmp_path / "work")
    arguments = (tmp_path / "corpus", tmp_path / "model", resources, tmp_path / "curve.csv")
    report = train_named_model("mine", section, *arguments)
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[0] == "pairs_seen,epoch,loss,development_pearson"
    assert [line.split(",")[:2] for line in lines[1:]] == [["120", "1"], ["240", "2"], ["360", "3"]]
    assert float(lines[-1].split(",")[2]) == pytest.approx(report.history[-1]["loss"], abs=1e-6)
    assert f"{report.passed_over} of 360 pairs seen were skipped" in caplog.text
    with pytest.raises(InputError, match="there is no model 'other'"):
        train_named_model("other", section, *arguments)
    given: list[TrainingData] = []
    monkeypatch.setattr(
        "paraforge.embeddings.trainer.train_model.train_model",
        lambda _, data, *rest, **options: given.append(data) or report,
    )
    changed = section.model_copy(update={"development": ["a"], "test_sets": ["b"], "drop_leaked": False})
    for corpus_pairs in (True, False):
        train_named_model("mine", changed.model_copy(update={"corpus_pairs": corpus_pairs}), *arguments)
    expected = TrainingData(section.pair_files, [arguments[0]], ["a"], ["b"], drop_leaked=False, reserved=[])
    assert given == [expected, replace(expected, corpora=[], reserved=[arguments[0]])]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["weights", "lstm"])
def test_fixed_vectors_train_only_composition(tmp_path: Path, kind: str) -> None:
    data = data_of(write_pairs(tmp_path / "pairs.tsv", sentence_pairs()))
    parameters = []
    for name, rate in (("start", 1e-30), ("trained", 0.05)):
        training = {"epochs": 3, "batch_size": 10, "mega_batch": 2, "learning_rate": rate}
        chosen = model_parameters({"kind": kind, "dimension": 6, "fixed": True}, training=training)
        report = train(tmp_path / name, chosen, data)
        model = SentenceModel.open(tmp_path / name / "model")
        parameters.append(dict(model.encoder.named_parameters()))
    before, after = parameters
    assert torch.equal(before["table"], after["table"])
    assert any(not torch.equal(before[name], after[name]) for name in before if name != "table")
    assert report.history[-1]["loss"] < report.history[0]["loss"]
    assert model.encode(["left1 left2"]).any()


@pytest.mark.full
@pytest.mark.parametrize(("tail", "warned"), [(0, False), (40, True)])
def test_collapsed_model_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, tail: int, warned: bool
) -> None:
    """The last state only sees the long common ending, and a loss of twice the margin does not show it."""
    words = [f"word{number}" for number in range(30)]
    ends = " and so on" * tail
    pairs = [(f"{a} {b}{ends}", f"{b} {a}{ends}") for a in words[:15] for b in words[15:]]
    parameters = model_parameters({"kind": "lstm_last", "dimension": 8, "output_dimension": 8})
    report = train(tmp_path, parameters, data_of(write_pairs(tmp_path / "pairs.tsv", pairs)))
    assert ("every sentence gets nearly the same vector" in caplog.text) == warned == (report.alike > 0.95)


# Further than this no element moves in two epochs.
STILL = {"epochs": 2, "batch_size": 20, "loss": "softmax", "learning_rate": 1e-9}
ENCODERS: list[dict[str, Any]] = [
    {"kind": "average", "dimension": 8},
    {"kind": "lstm", "dimension": 6, "output_dimension": 4},
    {"kind": "average", "unit": "sentencepiece", "dimension": 5},
    {"kind": "addition", "parts": [{"kind": "average"}, {"kind": "average", "unit": "trigram"}]},
]


def pieces_of(prefix: Path, pairs: list[tuple[str, str]]) -> Path:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text for pair in pairs for text in pair),
        model_prefix=str(prefix),
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return prefix.with_suffix(".model")


def begun(tmp_path: Path, encoder: dict[str, Any], **values: Any) -> Path:
    """A model of the first pairs."""
    path = write_pairs(tmp_path / "first.tsv", sentence_pairs()[:60])
    train(tmp_path / "first", model_parameters(encoder, **values), data_of(path))
    return tmp_path / "first" / "model"


def table_of(directory: Path) -> torch.Tensor:
    return SentenceModel.open(directory).encoder.tables()["table"].detach()


def further(start: Path, training: dict[str, Any] = STILL, **values: Any) -> ModelParameters:
    return ModelParameters.model_validate({"start": str(start), "training": training, **values})


@pytest.mark.parametrize("encoder", ENCODERS)
def test_start_model_provides_encoder_and_vocabulary(tmp_path: Path, encoder: dict[str, Any]) -> None:
    """Training continues on other pairs, whose new words stay unknown."""
    pairs = sentence_pairs()
    given: dict[str, Any] = {"unknown_words": "shared"}
    if encoder.get("unit") == "sentencepiece":
        given["sentencepiece_model"] = str(pieces_of(tmp_path / "pieces", pairs))
    first = begun(tmp_path, encoder, **given)
    before = digests(first)
    other = write_pairs(tmp_path / "other.tsv", [*pairs[60:], ("entirely new words", "words quite new here")])
    report = train(tmp_path, further(first), data_of(other))
    old, new = SentenceModel.open(first), SentenceModel.open(tmp_path / "model")
    assert report.pairs == len(pairs) - 60 + 1
    assert new.parameters == old.parameters
    assert new.unknown_words == "shared"
    assert {unit: one.units for unit, one in new.vocabularies.items()} == {
        unit: one.units for unit, one in old.vocabularies.items()
    }
    texts = [*pairs[3], *pairs[70], "entirely new words"]
    np.testing.assert_allclose(new.encode(texts), old.encode(texts), atol=1e-6)
    assert digests(first) == before
    # It is trained: with another rate the parameters are others.
    train(tmp_path / "moved", further(first, {**STILL, "learning_rate": 0.1}), data_of(other))
    moved = SentenceModel.open(tmp_path / "moved" / "model").encode(texts)
    assert not np.allclose(moved, old.encode(texts), atol=0.01)


def test_penalty_pulls_to_start_model(tmp_path: Path) -> None:
    first = begun(tmp_path, ENCODERS[0])
    path = write_pairs(tmp_path / "other.tsv", sentence_pairs()[60:])
    settings = {**STILL, "learning_rate": 0.01, "epochs": 20}
    moved = []
    for name, penalty in (("free", 0.0), ("held", 10.0)):
        train(tmp_path / name, further(first, {**settings, "lambda_words": penalty}), data_of(path))
        moved.append((table_of(first) - table_of(tmp_path / name / "model")).norm().item())
    assert moved[1] < 0.5 * moved[0]


def test_mismatched_start_model_is_early_error(tmp_path: Path) -> None:
    first = begun(tmp_path, ENCODERS[0])
    data = data_of(write_pairs(tmp_path / "other.tsv", sentence_pairs()[60:]))
    for encoder in ({"kind": "lstm"}, {"kind": "average"}):  # the default one is asked for, too
        with pytest.raises(InputError, match=r"a different encoder.* Leave out 'encoder'"):
            train(tmp_path, further(first, encoder=encoder), data)
    train(tmp_path, further(first, encoder=ENCODERS[0]), data)
    given = {"vectors": "words.txt", "sentencepiece_model": "pieces.model", "unknown_words": "shared"}
    for name, value in {**given, "vocabulary": {"minimum_count": 1}}.items():
        with pytest.raises(ValidationError, match=f"leave out {name}, because"):
            further(first, **{name: value})
    for wrong in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputError, match="not a directory of a trained model"):
            train(tmp_path, further(wrong), data)
