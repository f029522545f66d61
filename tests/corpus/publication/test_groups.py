"""Groups of pairs, and splits without common sentences, against slow oracles."""

import itertools
import logging
import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.base.errors import InputError
from paraforge.base.shards.lineage import Smallest
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.datasets import open_published, published_tables
from paraforge.corpus.publication.groups import draw_splits
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.corpus.publication.verification import verify
from paraforge.corpus.scoring.wrong_pairs import find_wrong_pairs
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import PairFileParameters
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs

SPLITS = {"validation": 60, "test": 90}
SIDES = ("reference", "translation")
SCORES = ("paraphrase_score", "right_paraphrase_score")


def related_pairs(rows: int = 1_500, seed: int = 3) -> pa.Table:
    """Random pairs, many of which share a side except for case or punctuation."""
    random = np.random.default_rng(seed)
    pairs = random_pairs(rows, seed)
    for name in SIDES:
        numbers = random.integers(0, 4 * rows, rows)
        forms = random.choice(["the {} was there", "The {}  was there!", "THE {} WAS THERE"], rows)
        texts = [
            text and form.format(f"thing{number}")
            for text, form, number in zip(pairs[name].to_pylist(), forms, numbers, strict=True)
        ]
        pairs = with_columns(pairs, **{name: texts})
    return pairs


def rows_of(directory: Path) -> list[dict[str, Any]]:
    dataset = open_published(directory)
    return [row for table in published_tables(dataset, dataset.schema.names) for row in table.to_pylist()]


def by_split(directory: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    start, rows = 0, rows_of(directory)
    for name, number in read_manifest(directory).splits.items():
        found[name] = rows[start : start + number]
        start += number
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published corpus without splits. Tests only read it."""
    root = tmp_path_factory.mktemp("whole")
    publish_pairs(root, table=related_pairs())
    return root / "corpus"


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same pairs with splits. Tests only read them."""
    root = tmp_path_factory.mktemp("split")
    report = publish_pairs(root, table=related_pairs(), splits=SPLITS, rows_per_file=40)
    assert "60 for validation, 90 for test" in report.result().replace(";", ",")
    return root / "corpus"


def plain(text: str) -> str:
    return " ".join("".join(c for c in text.lower() if c.isalnum() or c == " ").split())


def joined(keys: list[list[str]]) -> list[int]:
    """Return for each row the first row that it is connected with through keys; slow."""
    roots = list(range(len(keys)))
    holders = defaultdict(list)
    for row, some in enumerate(keys):
        for key in some:
            holders[key].append(row)
    changed = True
    while changed:
        changed = False
        for rows in holders.values():
            lowest = min(roots[row] for row in rows)
            for row in rows:
                changed |= roots[row] != lowest
                roots[row] = lowest
    return roots


@pytest.mark.parametrize("limit", [0.6, 1.0, None])
def test_groups_are_the_connected_components_of_pairs(limit: float | None, tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=related_pairs(), group_score=limit)
    assert verify(tmp_path / "corpus").problems == []
    rows = rows_of(tmp_path / "corpus")
    if limit is None:
        assert not any("group" in row for row in rows)
        return
    keys = [
        [plain(row["reference"])] + [plain(row["translation"])] * (row["paraphrase_score"] >= limit)
        for row in rows
    ]
    expected = joined(keys)
    assert [row["group"] for row in rows] == expected
    assert 0.3 * len(rows) < len(set(expected)) < 0.95 * len(rows)
    assert not any("group" in row for row in rows_of(tmp_path / "rejected"))


def test_grouping_reports_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Grouping a large corpus takes minutes."""
    monkeypatch.setattr("paraforge.base.progress.SECONDS_BETWEEN_LINES", 0.0)
    publish_pairs(tmp_path, table=related_pairs(300), splits={"test": 10})
    shown = [line.split("%")[0].split(": ") for line in capsys.readouterr().err.splitlines()]
    done = {line[1]: line[2].strip() for line in shown if line[0] == "publish" and len(line) == 3}
    assert done == {"groups": "100", "clusters": "100"}


def test_no_two_splits_share_a_sentence(whole: Path, split: Path) -> None:
    found = by_split(split)
    assert {name: len(rows) for name, rows in found.items() if name != "train"} == SPLITS
    files = [file.rows for file in read_manifest(split).files if file.split == "test"]
    assert files == [40, 40, 10]
    sentences = {
        name: {plain(row[side]) for row in rows for side in (*SIDES, "source_text")}
        for name, rows in found.items()
    }
    assert not sentences["train"] & sentences["test"]
    assert not sentences["train"] & sentences["validation"]
    assert not sentences["validation"] & sentences["test"]
    groups = Counter(group for rows in found.values() for group in {row["group"] for row in rows})
    assert set(groups.values()) == {1}
    held_out = pa.concat_tables(ShardDirectory(split.parent / "held_out").tables()).to_pylist()
    assert Counter(tuple(row[side] for side in SIDES) for row in held_out) == Counter(
        tuple(row[side] for side in SIDES) for name in SPLITS for row in found[name]
    )
    # Pairs that are connected are held out, too.
    assert max(Counter(row["group"] for row in found["test"]).values()) > 1
    assert verify(split).problems == verify(split.parent / "rejected").problems == []
    # And every pair is in one split.
    identity = [
        sorted((row["source"], row["line"], row["group"]) for row in rows_of(corpus))
        for corpus in (whole, split)
    ]
    assert identity[0] == identity[1]
    assert read_manifest(split).counts.kept == len(identity[0])


MOVED = {"kind": "bounds", "score": "paraphrase_score", "minimum": 0.22, "maximum": 1.0}


@pytest.mark.parametrize(
    ("options", "fewest", "most"),
    [
        ({"seed": 2}, 0, 44),
        # A threshold that is moved a little must not draw every test pair anew.
        ({"filters": {"filters": [{"kind": "length", "maximum": 10}, MOVED]}}, 76, 90),
    ],
)
def test_splits_depend_on_the_seed_and_hardly_on_thresholds(
    split: Path, tmp_path: Path, options: dict[str, Any], fewest: int, most: int
) -> None:
    publish_pairs(tmp_path, table=related_pairs(), splits=SPLITS, **options)
    tests = [
        {row["source_text"] for row in by_split(corpus)["test"]} for corpus in (split, tmp_path / "corpus")
    ]
    assert fewest <= len(tests[0] & tests[1]) <= most


@pytest.mark.parametrize("column", ["source_text", "original", "translation_source_text"])
def test_no_two_splits_share_a_foreign_sentence_or_an_original(tmp_path: Path, column: str) -> None:
    texts = pa.array([f"věta {number % 300}" for number in range(900)])
    pairs = random_pairs(900, seed=3)
    pairs = with_columns(pairs, source_text=[f"{number}" for number in range(900)])
    pairs = pairs.drop_columns([column] if column in pairs.column_names else [])
    publish_pairs(tmp_path, table=pairs.append_column(COLUMNS[column], texts), splits=SPLITS)
    found = by_split(tmp_path / "corpus")
    assert sum(map(len, found.values())) > len({row[column] for rows in found.values() for row in rows})
    for first, second in itertools.combinations(found.values(), 2):
        assert not {row[column] for row in first} & {row[column] for row in second}


def test_mismatched_pairs_have_no_held_out_text(tmp_path: Path) -> None:
    pairs = related_pairs()
    lineage = {name: pairs[name] for name in ("source", "line", "rank") if name in pairs.column_names}
    scores = {name: pa.array([0.5] * len(pairs), pa.float32()) for name in SCORES}
    given = {"weight": pa.array([1.0] * len(pairs)), "rule": ["negation"] * len(pairs)}
    own = pa.table({**lineage, **{n: pairs[n] for n in SIDES}, **given, **scores})
    publish_pairs(tmp_path, table=pairs, splits=SPLITS, filters={"filters": []}, wrong=own)
    wrong = find_wrong_pairs([tmp_path / "corpus"])
    assert wrong is not None
    shown = {
        tuple(row[name] for name in lineage) for row in wrong.to_pylist() if row["reference"] is not None
    }
    found = by_split(tmp_path / "corpus")
    assert shown == {tuple(row[name] for name in lineage) for row in found["train"]}


def test_the_datasets_library_loads_the_splits(split: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    directory = Path(shutil.copytree(split, tmp_path / "corpus"))
    loaded = datasets.load_dataset(str(directory), split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded["source_text"][:] == [row["source_text"] for row in by_split(directory)["test"]]
    (directory / "_README.md").rename(directory / "README.md")  # as on the Hub
    loaded = datasets.load_dataset(str(directory), cache_dir=str(tmp_path / "cache"))
    assert {name: len(rows) for name, rows in loaded.items()} == read_manifest(directory).splits
    assert verify(directory).problems == []
    card = (directory / "README.md").read_text(encoding="utf-8")
    assert "validation has 60, test has 90" in card
    for name in ("train", "validation", "test"):
        assert f'\n{name} = load_dataset("PATH", split="{name}")\n' in card


def test_training_drops_pairs_with_held_out_sentences(whole: Path, split: Path, tmp_path: Path) -> None:
    first, second = split, whole
    held = {plain(row[side]) for rows in [*by_split(first).values()][1:] for row in rows for side in SIDES}
    rows = rows_of(second)
    clean = [row for row in rows if not held & {plain(row[side]) for side in SIDES}]
    assert len(clean) == len(rows) - sum(SPLITS.values())
    lines = ["\t".join(row[side] for side in SIDES) + "\n" for row in rows]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    file = PairFileParameters(path=str(tmp_path / "pairs.tsv"))
    for data in (TrainingData(corpora=[first, second]), TrainingData([file], corpora=[first])):
        leakage = data.leakage_filter()
        read: Counter[tuple[str, str]] = Counter()
        for block in leakage(data.blocks()):
            read.update(zip(block.left.to_pylist(), block.right.to_pylist(), strict=True))
        assert read == Counter(2 * [(row["reference"], row["translation"]) for row in clean])
        assert set(leakage.report.by_set) == {f"{first} (validation)", f"{first} (test)"}
        assert data.fingerprint() != TrainingData(data.pair_files, [second, *data.corpora[1:]]).fingerprint()


def test_a_corpus_without_a_train_split_has_no_training_pairs(split: Path) -> None:
    corpus = open_published(split)
    assert corpus.manifest is not None
    held = [file for file in corpus.manifest.files if file.split != "train"]
    names = {file.path for file in held}
    only = replace(
        corpus,
        files=[path for path in corpus.files if path.name in names],
        manifest=replace(corpus.manifest, files=held),
    )
    assert set(only.splits) == set(SPLITS) and only.training.rows == len(only.training.files) == 0


@pytest.mark.parametrize("more", [0, 1_000])
def test_splits_as_large_as_the_corpus_are_an_error(whole: Path, tmp_path: Path, more: int) -> None:
    kept = open_published(whole).rows
    told = f"asks for test {kept + more:,}, but only {kept:,} pairs were kept"
    with pytest.raises(InputError, match=told) as error:
        publish_pairs(tmp_path, table=related_pairs(), splits={"test": kept + more})
    assert "smaller" in str(error.value.remedy)
    assert not (tmp_path / "corpus").exists()


def test_a_split_that_cannot_be_filled_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs = with_columns(random_pairs(600, seed=1), reference=["one sentence"] * 600)
    with caplog.at_level(logging.WARNING):
        publish_pairs(tmp_path, table=pairs, splits={"test": 20})
    assert "split test has 0 of 20 pairs" in caplog.text
    assert set(read_manifest(tmp_path / "corpus").splits) == {"train"}
    assert verify(tmp_path / "corpus").problems == []


@pytest.mark.parametrize("name", ["train", "shard", "all", "rejected", "Test", "../test", "a-b", "", "_a"])
def test_invalid_split_names_are_rejected(name: str) -> None:
    with pytest.raises(ValidationError, match="a split's name has"):
        PublishParameters(splits={name: 10})


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=60),
    wanted=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
@example(sizes=[1, 2] * 20_000, wanted=[200, 300], seed=5)
@example(sizes=[2] * 9_000 + [1], wanted=[61], seed=0)  # the only one that fits at last has a large key
def test_splits_are_drawn_by_cluster_in_key_order(sizes: list[int], wanted: list[int], seed: int) -> None:
    """The oracle is a slow loop over all clusters: the first split with enough room takes the cluster."""
    random = np.random.default_rng(seed)
    members = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    firsts = np.unique(members, return_index=True)[1]
    keys = random.integers(0, 2**64 - 1, len(members), np.uint64, endpoint=True)
    names = {f"s{number}": rows for number, rows in enumerate(wanted)}
    rows = np.zeros(len(keys), np.int64)
    rows[firsts] = sizes
    drawn = draw_splits(rows, lambda: np.array_split(keys, 3), names)
    left, expected = list(wanted), {}
    for cluster in np.argsort(keys[firsts]).tolist():
        room = [min(rows, max(1, most // 20)) for rows, most in zip(left, wanted, strict=True)]
        fitting = [number for number, rows in enumerate(room) if sizes[cluster] <= rows]
        if fitting:
            expected[int(firsts[cluster])] = fitting[0] + 1
            left[fitting[0]] -= sizes[cluster]
    assert [one.tolist() for one in drawn] == [sorted(expected), [expected[one] for one in sorted(expected)]]


def test_the_last_cluster_of_a_pass_is_drawn_once() -> None:
    """The first pass covers 1,120 clusters: 20 fill the first split, and the last one starts the second
    split.
    """
    sizes = np.array([2, 0] * 1_119 + [1] * 30)
    _, splits = draw_splits(sizes, lambda: [np.arange(len(sizes), dtype=np.uint64)], {"a": 40, "b": 20})
    assert np.bincount(splits).tolist() == [0, 20, 20]


def test_memory_stays_bounded_if_no_cluster_fills_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two translations of each reference, all clusters have even sizes, but the split has an odd one."""
    sizes = np.tile([2, 0], 10_000)
    keys = np.random.default_rng(1).integers(0, 2**64 - 1, len(sizes), np.uint64, endpoint=True)
    in_memory: list[int] = []
    monkeypatch.setattr(
        f"{draw_splits.__module__}.Smallest", lambda size: in_memory.append(size) or Smallest(size)
    )
    drawn, _ = draw_splits(sizes, lambda: np.array_split(keys, 3), {"test": 101})
    assert len(drawn) == 50 and max(in_memory) == 1_202
