"""The pair store, and the evaluation sets that training excludes."""

import hashlib
import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.text.pair_blocks import PairBlock
from paraforge.base.text.tokens import TokenColumn, tokenize
from paraforge.base.text.units import Units
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.corpus.publication.datasets import open_published, published_tables
from paraforge.embeddings.learning import id_sequences
from paraforge.embeddings.trainer import pair_store
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.pair_store import PairStore, build_pair_store
from paraforge.embeddings.trainer.parameters import PairFileParameters, VocabularyParameters
from tests.base.text.test_units import slices
from tests.corpus.selection.published import publish_pairs
from tests.embeddings.trainer.equations import id_lists
from tests.embeddings.trainer.training import block, sentence_pairs, write_pairs, write_sts

EVERYTHING = VocabularyParameters(minimum_count=1)
TEXT = st.text(st.sampled_from("abc "), max_size=8)
ROLES = ("development", "test_sets", "foreign")


def texts(store: PairStore, unit: str = "word") -> list[list[str]]:
    units = store.vocabularies[unit].units
    return [[units[k] for k in ids] for ids in id_lists(store.select(np.arange(len(store)))[unit])]


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12), st.integers(1, 5))
def test_pair_store_returns_pairs(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], size: int
) -> None:
    directory = tmp_path_factory.mktemp("store")
    blocks = [block(pairs[first : first + size]) for first in range(0, len(pairs), size)]
    kept = [(left, right) for left, right in pairs if left.strip() and right.strip()]
    if not kept:
        with pytest.raises(InputError, match="no pair to train on"):
            build_pair_store(directory, blocks, [Units(), Units("trigram")], EVERYTHING)
        return
    store = build_pair_store(directory, blocks, [Units(), Units("trigram")], EVERYTHING, with_sentences=True)
    assert (len(store), store.skipped) == (len(kept), len(pairs) - len(kept))
    sides = [left for left, _ in kept] + [right for _, right in kept]
    assert store.sentences(np.arange(len(store))) == sides
    assert texts(store, "word") == [tokenize(side) for side in sides]
    assert texts(store, "trigram") == [slices(tokenize(side)) for side in sides]
    counted = store.counts("word")
    assert counted.sum() == sum(len(tokenize(side)) for side in sides)


def test_block_size_changes_no_byte_of_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does splitting blocks further, which bounds memory."""
    monkeypatch.setattr(pair_store, "_BLOCK_ROWS", 6)
    cut, sides = Units.cut, list[int]()
    monkeypatch.setattr(Units, "cut", lambda self, texts: sides.append(len(texts)) or cut(self, texts))
    pairs = [(f"a b{number % 3} c", f"d{number} e") for number in range(20)]
    contents = []
    for size in (1, 7, 20):
        blocks = [block(pairs[first : first + size]) for first in range(0, 20, size)]
        store = build_pair_store(tmp_path / str(size), blocks, [Units()], VocabularyParameters())
        files = sorted(path for path in store.directory.iterdir())
        contents.append([(path.name, path.read_bytes()) for path in files])
    assert contents[0] == contents[1] == contents[2] and max(sides) == 12


def test_rare_words_are_unknown_and_vocabulary_limited(tmp_path: Path) -> None:
    pairs = [("a b once", "a c"), ("a b", "c twice"), ("b", "a twice")]
    store = build_pair_store(tmp_path / "1", [block(pairs)], [Units()], VocabularyParameters())
    assert store.vocabularies["word"].units == [UNKNOWN, "a", "b", "c", "twice"]
    assert texts(store)[0] == ["a", "b", UNKNOWN]
    capped = VocabularyParameters(minimum_count=1, maximum_size=2)
    store = build_pair_store(tmp_path / "2", [block(pairs)], [Units()], capped)
    assert store.vocabularies["word"].units == [UNKNOWN, "a", "b"]
    assert store.counts("word").tolist() == [5, 4, 3]


def test_subset_is_a_view(tmp_path: Path) -> None:
    store = build_pair_store(tmp_path, [block([("a", "b"), ("c", "d"), ("e", "f")])], [Units()], EVERYTHING)
    subset = store.subset(np.array([2, 1]))
    assert (len(subset), len(store)) == (2, 3)
    assert texts(subset) == [["e"], ["c"], ["f"], ["d"]]
    assert texts(subset.subset(np.array([0]))) == [["e"], ["f"]]


def test_store_view_of_some_units(tmp_path: Path) -> None:
    units = [Units(), Units("bare_word"), Units("trigram")]
    store = build_pair_store(tmp_path, [block([("a dog .", "a cat"), ("b", "c !")])], units, EVERYTHING)
    view = store.of_units({"bare_word"}).subset(np.array([1]))
    assert list(view.vocabularies) == ["bare_word"]
    assert list(view.select(np.array([0]))) == ["bare_word"]
    assert texts(view, "bare_word") == [["b"], ["c"]]
    assert list(store.select(np.array([0]))) == ["word", "bare_word", "trigram"]


def test_damaged_pair_store_is_error(tmp_path: Path) -> None:
    def build() -> Path:
        return build_pair_store(tmp_path, [block([("a b", "c")])], [Units()], EVERYTHING).directory

    with pytest.raises(InputError, match="no such file"):
        PairStore(tmp_path / "none")
    ids = build() / "word.ids"
    ids.write_bytes(ids.read_bytes()[:-1])
    with pytest.raises(InputError, match="5 bytes, its index says 6"):
        PairStore(tmp_path)
    index = build() / "pairs.json"
    described = json.loads(index.read_text())
    index.write_text(json.dumps({**described, "format": 1}))
    with pytest.raises(InputError, match="format 1, not 2"):
        PairStore(tmp_path)


def test_unfinished_pair_store_does_not_open(tmp_path: Path) -> None:
    build_pair_store(tmp_path, [block([("a", "b")])], [Units()], EVERYTHING)

    def fails() -> PairBlock:
        raise InputError("the file is damaged")

    with pytest.raises(InputError, match="damaged"):
        build_pair_store(tmp_path, (fails() for _ in range(1)), [Units()], EVERYTHING)
    with pytest.raises(InputError, match="no such file"):
        PairStore(tmp_path)


def test_index_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []
    monkeypatch.setattr(
        pair_store, "sync_tree", lambda place: synced.append(sorted(path.name for path in place.iterdir()))
    )
    build_pair_store(tmp_path, [block([("a", "b")])], [Units()], EVERYTHING)
    assert synced == [sorted({path.name for path in tmp_path.iterdir()} - {"pairs.json"})]


def test_pairs_keep_their_source(tmp_path: Path) -> None:
    pairs = [("a b", "c"), ("", "d"), ("e", "f g")]
    blocks = [replace(block(pairs), source=name) for name in ("x", "y", "x")]
    store = build_pair_store(tmp_path, blocks, [Units()], EVERYTHING)
    assert store.sources.tolist() == [0, 0, 1, 1, 0, 0]
    assert store.subset(np.array([4, 2])).sources.tolist() == [0, 1]
    (tmp_path / "sources").write_bytes(b"")
    with pytest.raises(InputError, match="its index says 24"):
        PairStore(tmp_path)


def test_ids_use_smallest_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are written and counted in several parts."""
    monkeypatch.setattr(id_sequences, "_CHUNK_IDS", 10_000)
    for size, kind in ((1 << 16, "uint16"), ((1 << 16) + 1, "int32")):
        units, ids = [UNKNOWN, *map(str, range(1, size))], np.arange(size, dtype=np.int32)[::-1]
        writer = id_sequences.IdSequencesWriter(tmp_path, "word")
        writer.append(TokenColumn(ids, np.array([0, size - 1, size]), units))
        described = writer.finish(Vocabulary(units), np.arange(size))
        digest = hashlib.sha256((tmp_path / "word.ids").read_bytes()).hexdigest()
        assert [described[name] for name in ("dtype", "sha256")] == [kind, digest]
        store = id_sequences.IdSequences(tmp_path, "word", 2, described)
        assert np.array_equal(store.select(np.array([0, 1])).ids.numpy(), ids)
        assert (store.counts() == 1).all()


def in_directory(directory: Path, name: str = "test.tsv") -> Path:
    directory.mkdir(exist_ok=True)
    return directory / name


@pytest.mark.parametrize(
    ("roles", "names"),
    [(ROLES[:2], ["test.tsv"] * 2), (ROLES[1:], ["a.tsv", "b.tsv"]), (ROLES[::2], ["a.tsv"] * 2)],
)
def test_evaluation_sets_of_any_role_are_excluded(
    tmp_path: Path, roles: tuple[str, str], names: tuple[str, str]
) -> None:
    pairs = sentence_pairs(60)
    given = [
        str(write_sts(in_directory(tmp_path / role, name), pairs[10 * k : 10 * k + 10]))
        for k, (role, name) in enumerate(zip(roles, names, strict=True))
    ]
    files = [PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", pairs)))]
    data = TrainingData(files, **dict(zip(roles, ([path] for path in given), strict=True)))
    leakage = data.leakage_filter()
    kept = sum(len(block) for block in leakage(data.blocks()))
    assert kept == 40
    assert sorted(leakage.report.by_set.values()) == [10, 10]


def test_set_with_several_roles_counts_once(tmp_path: Path) -> None:
    pairs = sentence_pairs(30)
    sets = [str(write_sts(in_directory(tmp_path / name, f"{name}.tsv"), pairs[:5])) for name in ("a", "b")]
    files = [PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", pairs)))]
    data = TrainingData(files, development=sets[:1], test_sets=sets[:1], foreign=sets[1:])
    leakage = data.leakage_filter()
    assert sum(len(block) for block in leakage(data.blocks())) == 25
    assert leakage.report.by_set == {"a (development, test, foreign)": 5}


def test_roles_change_fingerprint(tmp_path: Path) -> None:
    """So do other names or scores of sets with the same sentences."""
    pairs = sentence_pairs(8)
    first = write_sts(in_directory(tmp_path / "a"), pairs[:4])
    renamed = write_sts(in_directory(tmp_path / "b", "2015.other.tsv"), pairs[:4])
    scored = in_directory(tmp_path / "c")
    scored.write_text(first.read_text().replace("5\t", "4\t"))
    files = [PairFileParameters(path=str(write_pairs(tmp_path / "pairs.tsv", pairs)))]
    sets: list[list[str]] = [[], *([str(path)] for path in (first, renamed, scored))]
    found = {
        TrainingData(files, **{role: chosen}, drop_leaked=drop).fingerprint()
        for role, chosen, drop in product(ROLES, sets, (True, False))
    }
    assert len(found) == 2 * (3 * 3 + 1)
    limited = TrainingData([files[0].model_copy(update={"limit": 3})])
    assert [sum(map(len, one.blocks())) for one in (TrainingData(files), limited)] == [8, 3]


def test_files_with_same_name_are_two_sources(tmp_path: Path) -> None:
    paths = [write_pairs(in_directory(tmp_path / name, "ppdb.tsv"), sentence_pairs(3)) for name in "ab"]
    data = TrainingData([PairFileParameters(path=str(path)) for path in paths])
    assert len({block.source for block in data.blocks()}) == 2


def test_corpus_pairs_come_from_training_split(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=300, splits={"test": 60})
    columns = ["source", "reference", "translation"]
    training = open_published(tmp_path / "corpus").training
    rows = [row for table in published_tables(training, columns) for row in table.to_pylist()]
    found = [
        (block.source, *row)
        for block in TrainingData(corpora=[tmp_path / "corpus"]).blocks()
        for row in zip(block.left.to_pylist(), block.right.to_pylist(), strict=True)
    ]
    assert sorted(found, key=str) == sorted((tuple(row[name] for name in columns) for row in rows), key=str)
    assert len(found) == training.rows > 0
