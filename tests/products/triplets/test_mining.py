"""Triplets against slow mining, and as trainers read them."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from examples.fine_tune import fine_tune
from paraforge.base.errors import ConfigurationError, IncompleteError, InputError
from paraforge.base.files import hash_json, read_json, write_whole
from paraforge.base.shards.resources import Resources
from paraforge.corpus.publication.card import read_card
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.products.loading import open_model
from paraforge.products.triplets import mining, pieces, search
from paraforge.products.triplets.mining import mine_triplets
from paraforge.products.triplets.parameters import TripletsParameters
from tests.corpus.selection.corpora import with_columns
from tests.here import few_files, run_command
from tests.products.triplets.corpora import mine, oracle, pairs, publish, read
from tests.project import digests


@pytest.fixture(params=["together", "in parts"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in parts":
        monkeypatch.setattr(search, "ROWS_PER_JOB", 7)
        monkeypatch.setattr(search, "_ANCHORS", 3)


@pytest.mark.parametrize(("negatives", "margin"), [(1, 0.05), (4, 0.0), (4, 0.5)])
@pytest.mark.usefixtures("sizes")
def test_negatives_are_most_similar_allowed_sentences(
    corpus: Path, tmp_path: Path, negatives: int, margin: float
) -> None:
    report = mine(corpus, tmp_path / "out", negatives=negatives, margin=margin)
    right = oracle(corpus)
    lineage = {row["row"]: row for row in read(tmp_path / "out", "_lineage").to_pylist()}
    numbers = [""] if negatives == 1 else [f"_{n}" for n in range(1, negatives + 1)]
    for number, row in enumerate(right.rows):
        allowed = right.allowed(number, margin)
        others = {right.clusters[other] for other in allowed}
        usable = (row["translation"] or "").strip() and len(others) >= negatives
        if not usable or number not in lineage:
            continue
        found = lineage[number]
        assert found["cluster"] == right.clusters[number]
        chosen = [found[f"negative_row{n}"] for n in numbers]
        cosines = [found[f"negative_cosine{n}"] for n in numbers]
        assert set(chosen) <= set(allowed)
        assert len({right.clusters[other] for other in chosen}) == negatives
        limit = float(found["positive_cosine"])
        assert all(cosine < limit - margin * abs(limit) for cosine in cosines)
        best: dict[int, float] = {}
        for other in allowed:
            cluster = right.clusters[other]
            best[cluster] = max(best.get(cluster, -2), float(right.cosines[number, other]))
        assert cosines == pytest.approx(sorted(best.values(), reverse=True)[:negatives], abs=1e-5)
    assert report.triplets == len(lineage) > 200
    every = [row[f"negative_cosine{n}"] for row in lineage.values() for n in numbers]
    positives = [row["positive_cosine"] for row in lineage.values()]
    means = (np.mean(positives), np.mean(every))
    assert (report.positive_cosine, report.negative_cosine) == pytest.approx(means, abs=1e-4)


def test_rows_are_triplets_or_left_out(corpus: Path, tmp_path: Path) -> None:
    report = mine(corpus, tmp_path / "out", negatives=3)
    right = oracle(corpus)
    assert report.rows == len(right.rows) == report.triplets + sum(report.left_out.values())
    expected: Counter[str] = Counter()
    of_rows = read(tmp_path / "out", "_clusters").to_pylist()
    for number, row in enumerate(right.rows):
        others = {right.clusters[other] for other in right.allowed(number, 0.05)}
        blank = not (row["translation"] or "").strip()
        same = not blank and right.rows[number]["reference"].upper() == row["translation"]
        reason = "blank" if blank else "same" if same else None if len(others) >= 3 else "margin"
        assert of_rows[number]["left_out"] == reason
        assert of_rows[number]["cluster"] == right.clusters[number]
        assert (of_rows[number]["source"], of_rows[number]["line"]) == (row["source"], row["line"])
        expected[reason or "triplet"] += 1
    assert report.triplets == expected.pop("triplet")
    assert Counter(report.left_out) == expected
    sizes = Counter(right.clusters)
    assert (report.clusters, report.largest_cluster) == (len(sizes), max(sizes.values()))
    # Texts are those of the lineage.
    rows, names = right.rows, [f"negative_{number}" for number in (1, 2, 3)]
    triplets, lineage = read(tmp_path / "out"), read(tmp_path / "out", "_lineage")
    assert triplets.column_names == ["anchor", "positive", *names]
    for one, origin in zip(triplets.to_pylist(), lineage.to_pylist(), strict=True):
        own = rows[origin["row"]]
        assert (one["anchor"], one["positive"]) == (own["reference"], own["translation"])
        assert (origin["source"], origin["line"]) == (own["source"], own["line"])
        for number, name in enumerate(names, 1):
            assert one[name] == rows[origin[f"negative_row_{number}"]]["translation"]


def test_card_describes_mining(corpus: Path, tmp_path: Path) -> None:
    report = mine(corpus, tmp_path / "out", negatives=3, margin=0.25)
    _, front, text = (tmp_path / "out" / "_README.md").read_text(encoding="utf-8").split("---\n", 2)
    metadata, given = (yaml.safe_load(one) for one in (front, read_card(corpus)[0]))
    assert [metadata[name] for name in ("license", "language")] == [given["license"], given["language"]]
    content = read_json(tmp_path / "out" / "_triplets.json")
    assert {one["description"] for one in metadata["configs"]} == {hash_json(content)[:16]}
    assert metadata["pretty_name"] == f"{given['pretty_name']}: triplets"
    assert f"\n{report.triplets} triplets: a sentence, its paraphrase, and 3 of other clusters" in text
    assert "with a cosine below 0.75 times that" in text and "by `general`" in text
    assert read_manifest(corpus).signature in text and f"left out: {report.rows}." in text
    headings = ["Use", "Counts", "Columns", "Columns of lineage", "Columns of clusters"]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == headings
    counts = {"triplets": report.triplets, "clusters of paraphrases": report.clusters}
    counts |= {"pairs of the largest cluster": report.largest_cluster}
    for name, number in [*counts.items(), *((f"left out: {k}", n) for k, n in report.left_out.items())]:
        assert f"| {name} | {number} |" in text


def test_vectors_have_length_1_or_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_BLOCK", 2)
    vectors = {"a": [3, 4], "b": [0, 0], "c": [np.inf, 0]}
    texts = pa.chunked_array([[*vectors]])
    found = search.unit_vectors(lambda block: [vectors[text] for text in block.to_pylist()], texts)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0, 0]], atol=1e-3)


def test_blank_text_is_never_a_negative(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors_of = search.unit_vectors

    def some_vectors(encode: Any, texts: pa.ChunkedArray) -> npt.NDArray[np.float16]:
        return vectors_of(encode, pa.chunked_array([[text.strip() or "a dog" for text in texts.to_pylist()]]))

    monkeypatch.setattr(search, "unit_vectors", some_vectors)
    mine(corpus, tmp_path / "out", negatives=3)
    triplets = read(tmp_path / "out")
    assert all(text.strip() for name in triplets.column_names for text in triplets[name].to_pylist())


def test_captions_of_same_image_are_not_negatives(corpus: Path, tmp_path: Path) -> None:
    mine(corpus, tmp_path / "apart")
    mine(corpus, tmp_path / "joined", same_lines=["captions.*"])
    before, after = (
        read(tmp_path / name, "_clusters")["cluster"].to_pylist() for name in ("apart", "joined")
    )
    assert read(tmp_path / "apart").column_names == ["anchor", "positive", "negative"]
    assert before == oracle(corpus).clusters
    assert after == oracle(corpus, ("captions.1", "captions.2")).clusters != before


def test_triplet_bytes_are_reproducible(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are many cells, and torch has one thread or two."""
    import torch

    with_cells(monkeypatch, 20, 40)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        mine(corpus, tmp_path / str(threads))
    assert digests(tmp_path / "1") == digests(tmp_path / "2")


def test_cells_find_nearly_all_neighbors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = publish(tmp_path, rows=1000, per_file=500)
    whole = mine(corpus, tmp_path / "whole")
    with_cells(monkeypatch, 40, 200)
    find, sampled = search.find_centroids, list[tuple[int, int]]()
    monkeypatch.setattr(
        search, "find_centroids", lambda *given: (sampled.append((len(given[0]), given[1])), find(*given))[1]
    )
    cells = mine(corpus, tmp_path / "cells")
    ((sample, number),) = sampled
    assert sample > 32 * number == 32 * 25
    assert cells.triplets >= 0.95 * whole.triplets
    # A fifth of the corpus: far from what a random negative has.
    assert cells.negative_cosine > whole.negative_cosine - 0.1
    right = oracle(corpus)
    for row in read(tmp_path / "cells", "_lineage").to_pylist():
        expected = [right.cosines[row["row"], row[other]] for other in ("row", "negative_row")]
        assert [row["positive_cosine"], row["negative_cosine"]] == pytest.approx(expected, abs=1e-4)
        assert right.clusters[row["row"]] != right.clusters[row["negative_row"]]
    everything = read(tmp_path / "whole", "_clusters")
    assert read(tmp_path / "cells", "_clusters")["cluster"].equals(everything["cluster"])


def test_number_and_centers_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_VECTORS", 7)
    sample = np.random.default_rng(3).normal(size=(40, 3))
    sample /= np.linalg.norm(sample, axis=1, keepdims=True)
    centroids = search.find_centroids(sample.astype(np.float32), 4)
    nearest = search.nearest_cells(sample.astype(np.float32), centroids)
    assert nearest.tolist() == (sample @ centroids.T).argmax(1).tolist()
    sums = np.stack([sample[nearest == cell].sum(0) for cell in range(4)])
    assert centroids == pytest.approx(sums / np.linalg.norm(sums, axis=1, keepdims=True), abs=1e-5)
    alike = np.eye(2, dtype=np.float32).repeat(
        [5, 1], axis=0
    )  # so that a cell is empty, and stays where it is
    assert np.linalg.norm(search.find_centroids(alike, 3), axis=1) == pytest.approx([1] * 3)
    few, none = np.eye(3, dtype=np.float32)[:2], np.zeros((0, 3), np.float32)
    assert sorted(search.find_centroids(few, 4).tolist()) == sorted(few.tolist())
    for one in (search.find_centroids(sample, 1), search.find_centroids(none, 4)):
        assert one.tolist() == [[0, 0, 0]] and search.nearest_cells(none, one).shape == (0,)


def test_last_cell_rows_are_evenly_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 7)
    centroids = np.array([[1, 0], [0, 1], [0.8, 0.6]], np.float32)
    places = search.near_places(1, np.array([0, 10, 14, 20]), centroids)
    assert places.tolist() == [10, 11, 12, 13, 14, 16, 18]
    alike = np.ones((2, 1), np.float32)  # the own cell is first
    assert search.near_places(1, np.array([0, 10, 14]), alike).tolist() == [10, 11, 12, 13, 0, 3, 6]


def test_foreign_and_english_sentences_are_distinct() -> None:
    rows = pa.table({"reference": ["Taxi"], "translation": ["Cab"], "source_text": ["Taxi"]})
    (keys,) = pieces.link_keys(rows, ())
    assert len(np.unique(keys[:3], axis=0)) == 3


def with_cells(monkeypatch: pytest.MonkeyPatch, rows_per_cell: int, candidates: int) -> None:
    """Compare each anchor with few candidates, from small cells, in small jobs."""
    monkeypatch.setattr(search, "ROWS_PER_CELL", rows_per_cell)
    monkeypatch.setattr(search, "CANDIDATES", candidates)
    monkeypatch.setattr(search, "ROWS_PER_JOB", 60)


@pytest.mark.parametrize("positive", [-0.5, 0.5])
def test_margin_is_below_positive_of_any_sign(positive: float) -> None:
    def unit(cosine: float, sign: float = 1) -> list[float]:
        return [cosine, sign * (1 - cosine**2) ** 0.5]

    def pairs_of(*sides: tuple[list[float], list[float]]) -> search.Pairs:
        first, second = np.array(sides, np.float32).swapaxes(0, 1)
        numbers = np.arange(len(sides))
        return search.Pairs(numbers, numbers, (first, second))

    anchor = pairs_of(([1.0, 0.0], unit(positive)))
    cosines = [-0.9, -0.56, -0.54, -0.5, 0.44, 0.46, 0.5, 0.9]
    # The first has the anchor's cluster; the others' references point away from it.
    # The last one is at -0.5 to both sides of the first anchor.
    between = (unit(-0.5, -1), unit(-0.5, -1))
    away = (([-1.0, 0.0], unit(cosine, -1)) for cosine in cosines)
    candidates = pairs_of(([1.0, 0.0], [1.0, 0.0]), *away, between)
    cosines.append(-0.5)
    found = search.find_negatives(anchor, candidates, TripletsParameters(margin=0.1))
    sides = [[pair.sides[number] for number in (0, 1)] for pair in (anchor, candidates)]
    highest = np.max([side @ other.T for side in sides[0] for other in sides[1]], axis=0)[0]
    allowed = np.flatnonzero(highest < positive - 0.1 * abs(positive))
    best = max(allowed[allowed > 0], key=lambda place: cosines[place - 1], default=-1)
    assert found["negatives"].tolist() == [[best]]


def test_cosine_at_margin_is_excluded() -> None:
    """All cosines are exactly 0, 0.5 or 1. With margin 0 the limit is the positive's own cosine, 0.5."""
    axes, diagonal = np.eye(4, dtype=np.float32), np.full(4, 0.5, np.float32)

    def negatives_of(*candidates: npt.NDArray[np.float32], negatives: int = 2) -> list[int]:
        sides = np.array([[axes[0], diagonal], *([side, side] for side in candidates)], np.float32)
        numbers = np.arange(len(sides))
        anchor, others = (
            search.Pairs(numbers[part], numbers[part], (sides[part, 0], sides[part, 1]))
            for part in (slice(1), slice(1, None))
        )
        parameters = TripletsParameters(margin=0.0, negatives=negatives)
        found: list[int] = search.find_negatives(anchor, others, parameters)["negatives"][0].tolist()
        return found

    apart = np.array([0.0, 0.5, -0.5, 0.0], np.float32)
    assert negatives_of(apart, -apart) == [1, 2]
    assert negatives_of(apart, axes[1]) == [-1, -1]  # 0.5 from the translation: not below the limit
    assert negatives_of(axes[1], apart, negatives=1) == [2]


def test_large_cluster_does_not_hide_other_candidates() -> None:
    def pairs_of(clusters: list[int], *cosines: float) -> search.Pairs:
        side = np.array([[cosine, (1 - cosine**2) ** 0.5] for cosine in cosines], np.float32)
        return search.Pairs(np.arange(len(side)), np.array(clusters), (side, side))

    candidates = pairs_of([1] * 40 + [2, 3], *np.linspace(0.5, 0.4, 40), 0.1, 0.2)
    found = search.find_negatives(pairs_of([0], 1.0), candidates, TripletsParameters(negatives=3))
    assert found["negatives"].tolist() == [[0, 41, 40]]


def test_triplets_of_single_cluster_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = publish(tmp_path, table=with_columns(pairs(40), source_text=["one sentence"] * 40))
    work = tmp_path / "work" / "triplets"
    (work / "of other parameters").mkdir(parents=True)
    with pytest.raises(InputError, match=r"none of 40 pairs gives a triplet: .*cluster"):
        mine(corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists() and not (work / "of other parameters").exists()
    report = mine(corpus, tmp_path / "out", allow_empty=True)
    assert report.triplets == 0 and sum(report.left_out.values()) == 40 and report.clusters == 1
    assert read(tmp_path / "out").num_rows == 0
    assert read(tmp_path / "out", "_clusters").num_rows == 40
    assert not [path for path in work.iterdir() if path.is_dir()]
    monkeypatch.setattr(mining, "_write_files", lambda *_: ([], {"cluster": 39}, [0.0, 0.0]))
    with pytest.raises(IncompleteError, match="40 rows in, 0 triplets"):
        mine(corpus, tmp_path / "out")


def test_triplets_of_empty_corpus(tmp_path: Path) -> None:
    filters = {"filters": [{"kind": "length", "minimum": 50, "maximum": 60}]}
    from tests.corpus.selection.published import publish_pairs

    publish_pairs(tmp_path, table=pairs(40), filters=filters)
    (tmp_path / "work" / "triplets" / "of other parameters").mkdir(parents=True)
    report = mine(tmp_path / "corpus", tmp_path / "out", allow_empty=True)
    assert (report.rows, report.triplets, report.positive_cosine) == (0, 0, None)
    assert not (tmp_path / "work" / "triplets" / "of other parameters").exists()
    with pytest.raises(InputError, match="none of 0 pairs"):
        mine(tmp_path / "corpus", tmp_path / "again")


def test_no_triplets_without_candidates(tmp_path: Path) -> None:
    none = TripletsParameters()
    report = mine_triplets(none, tmp_path / "missing", tmp_path / "out", Resources(work=tmp_path / "work"))
    assert report.encoder == "none" and report.triplets == 0
    assert read_json(tmp_path / "out" / "_triplets.json")["files"] == []


def test_invalid_corpus_or_encoder_of_triplets(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rejected pairs"):
        mine(corpus.parent / "rejected", tmp_path / "out")
    with pytest.raises(InputError, match="no such directory"):
        mine(tmp_path / "missing", tmp_path / "out")
    for name, message in (
        ("missing", "no such encoder"),
        ("x@y", "no such encoder"),
        (str(corpus), "not a model"),
        ("jaccard", "no such encoder"),
    ):
        with pytest.raises(InputError, match=message):
            mine(corpus, tmp_path / "out", encoder=name)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--set", "margin=.nan", "margin: nan: should be a finite number"),
        ("--set", "margin=1", "margin: 1: should be less than 1"),
        ("--encoder", "none", "--encoder none finds no triplets"),
        # although the words of the built-in scorer need none
        ("--device", "gpu", "device gpu: use cpu, cuda"),
    ],
)
def test_invalid_options_of_command(
    corpus: Path, tmp_path: Path, option: str, value: str, message: str
) -> None:
    with pytest.raises((ConfigurationError, InputError)) as error:
        run_command("triplets", corpus, tmp_path / "out", "--work", tmp_path / "work", option, value)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_open_files_are_limited_for_many_pieces(tmp_path: Path) -> None:
    cut = tuple(pieces.Piece(number, tmp_path, (), number, 1) for number in range(90))
    wanted = search.Search(tmp_path, cut, TripletsParameters(), "general", "cpu", 1)
    for piece in cut:
        np.save(pieces.part(tmp_path, "vectors", piece.number), np.ones((1, 2, 3), np.float16))
        np.save(pieces.part(tmp_path, "reasons", piece.number), np.array([search.KEPT], np.uint8))
    with few_files():
        search.sort_by_cell(wanted)
    assert pieces.load(wanted.sorted / "rows.npy").tolist() == list(range(90))


def test_triplet_pieces_are_row_groups(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paraforge.corpus.publication.datasets import open_published

    dataset = open_published(corpus)
    cut = pieces.cut_corpus(dataset)
    assert dataset.manifest is not None
    assert [piece.rows for piece in cut] == [file.rows for file in dataset.manifest.files]
    assert [piece.first for piece in cut] == [0, 100, 200]
    monkeypatch.setattr(pieces, "PIECE_ROWS", 1)
    assert len(pieces.cut_corpus(dataset)) == 3


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
    """The model mines the triplets itself. After training on them, its positives are nearer."""
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


def test_datasets_reads_triplet_directory_and_files(corpus: Path, tmp_path: Path, datasets: Any) -> None:
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


def test_encoder_fingerprint_covers_its_files(tmp_path: Path) -> None:
    """The encoder is a file, the directory of a model, or a scorer of words, whose description is enough."""
    found = set()
    for content in "ab":
        for name in ("vectors.txt", "model/weights", "scorer/scorer.json"):
            write_whole(tmp_path / name, content + name)
            found.add(pieces.fingerprint(str(tmp_path / name.partition("/")[0])))
    assert len(found) == 6
