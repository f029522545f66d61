"""The example of the documentation trains on what was mined, and hubs and trainers read what they expect."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from examples.fine_tune import fine_tune
from paraforge.products.loading import open_model
from tests.products.triplets.corpora import mine, read

WORDS = ["[UNK]", "the", "a", "dog", "cat", "man", "sees", "looks", "at", "house", "home", "old", "ancient"]


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    package = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return package


def static_model(directory: Path) -> Path:
    """A tiny StaticEmbedding, made here."""
    package = pytest.importorskip("sentence_transformers")
    tokenizers = pytest.importorskip("tokenizers")
    from sentence_transformers.models import StaticEmbedding

    units = {word: number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(units, unk_token=WORDS[0]))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    weights = np.random.default_rng(1).normal(size=(len(WORDS), 8)).astype(np.float32)
    module = StaticEmbedding(tokenizer, embedding_weights=weights)
    package.SentenceTransformer(modules=[module], device="cpu").save(str(directory))
    return directory


@pytest.mark.full
def test_fine_tuning(corpus: Path, tmp_path: Path, datasets: Any) -> None:
    """Mined by the model itself, which then finds the positives nearer than before."""
    pytest.importorskip("accelerate")
    pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    model = static_model(tmp_path / "tiny")
    report = mine(corpus, tmp_path / "triplets", encoder=str(model), negatives=2)
    assert report.triplets > 150
    fine_tune(
        str(model), tmp_path / "triplets", tmp_path / "tuned", epochs=3, learning_rate=0.05, batch_size=16
    )
    triplets = read(tmp_path / "triplets")
    gains = []
    for place in (model, tmp_path / "tuned"):
        encoder: Any = open_model(str(place)).model
        positive, *negative = (
            encoder.similarity(triplets["anchor"], triplets[name])
            for name in ("positive", "negative_1", "negative_2")
        )
        gains.append(float(np.mean(positive - np.mean(negative, axis=0))))
    assert gains[1] > gains[0] + 0.05


def test_datasets_reads_directory_and_files(corpus: Path, tmp_path: Path, datasets: Any) -> None:
    mine(corpus, tmp_path / "out", negatives=2)
    files = datasets.load_dataset("parquet", data_files=f"{tmp_path}/out/triplets-*.parquet", split="train")
    whole = datasets.load_dataset(str(tmp_path / "out"), split="train")
    lineage = datasets.load_dataset(str(tmp_path / "out"), "lineage", split="train")
    clusters = datasets.load_dataset(str(tmp_path / "out"), "clusters", split="train")
    assert files.column_names == whole.column_names == ["anchor", "positive", "negative_1", "negative_2"]
    assert files.num_rows == whole.num_rows == lineage.num_rows == read(tmp_path / "out").num_rows
    assert clusters.num_rows == read(tmp_path / "out", "_clusters").num_rows
    assert {feature.dtype for feature in whole.features.values()} == {"string"}
    types = {name: feature.dtype for name, feature in lineage.features.items()}
    assert types == {field.name: str(field.type).replace("float", "float32") for field in
                     pq.read_schema(next((tmp_path / "out").glob("_lineage-*")))}  # fmt: skip


@pytest.mark.parametrize("content", ["corpus", "rejected"])
def test_the_card_of_a_corpus_names_types(tmp_path: Path, datasets: Any, content: str) -> None:
    """The features of the card are those of the files; without them, datasets would infer the same."""
    import yaml

    from tests.corpus.selection.published import publish_pairs

    publish_pairs(tmp_path, rows=400)
    directory = tmp_path / content
    text = (directory / "_README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(text.split("---\n")[1])
    for found in (front, yaml.safe_load((directory / ".huggingface.yaml").read_text(encoding="utf-8"))):
        (information,) = found["dataset_info"]
        told = datasets.Features._from_yaml_list(information["features"])
        split = found["configs"][0]["data_files"][0]["split"]
        inferred = datasets.load_dataset("parquet", data_files=f"{directory}/shard-*.parquet", split="train")
        assert told == inferred.features
    assert datasets.load_dataset(str(directory), split=split).features == told
    assert front["license"] and front["size_categories"] and front["configs"]
