"""Triples of adjacent sentences on disk, and the loss against its equation."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraforge.base.errors import InputError
from paraforge.base.text.normalization import SentenceSet
from paraforge.base.text.vocabulary import UNKNOWN
from paraforge.embeddings.learning.batches import Bags
from paraforge.embeddings.trainer.parameters import VocabularyParameters
from paraforge.papers.unrolling.network import negative_log_likelihood
from paraforge.papers.unrolling.triples import (
    END,
    SentenceBlock,
    TripleStore,
    build_triple_store,
    read_sentences,
)
from tests.embeddings.trainer.equations import id_lists
from tests.papers.unrolling.corpus import bags, block, make_store, random_documents

LIMITS = VocabularyParameters(minimum_count=1, maximum_size=1000)


def words_of(store: TripleStore, bags: Bags) -> list[list[str]]:
    return [[store.vocabulary.units[number] for number in ids] for ids in id_lists(bags)]


def triples_of(store: TripleStore) -> list[tuple[list[str], ...]]:
    batch = store.batch(np.arange(len(store)))
    sides = (batch.previous, batch.current, batch.following)
    return list(zip(*(words_of(store, side) for side in sides), strict=True))


def expected(documents: list[list[str]]) -> list[tuple[list[str], ...]]:
    triples: list[tuple[list[str], ...]] = []
    for document in documents:
        cut = [[*sentence.split()[:29], END] for sentence in document if sentence.strip()]
        triples += [(cut[k - 1], cut[k], cut[k + 1]) for k in range(1, len(cut) - 1)]
    return triples


@pytest.mark.parametrize(
    ("documents", "counts"),
    [
        ([["a", "b c", "d", "e f g"], ["h"], ["i", "j"], ["k", "l", "m"]], (10, 4, 0)),
        ([["", "a", " ", "b", "c", ""], ["", ""]], (3, 1, 5)),
        ([[" ".join(["a"] * count + ["b"]) for count in (35, 29, 28)]], (3, 1, 0)),
    ],
    ids=["of one document", "without blank ones", "cut where they are long"],
)
def test_triples_are_adjacent_sentences(
    tmp_path: Path, documents: list[list[str]], counts: tuple[int, int, int]
) -> None:
    store = make_store(tmp_path, documents)
    assert triples_of(store) == expected(documents) != []
    assert (store.sentences, store.documents, store.skipped) == counts


@pytest.mark.parametrize("rows", [1, 3])
def test_triple_store_bytes_do_not_depend_on_blocks(tmp_path: Path, rows: int) -> None:
    documents = [*random_documents(), ["", "one", " ", "two"]]
    whole = block(*documents)
    parts = [
        SentenceBlock(whole.sentences.slice(first, rows), whole.documents[first : first + rows], 1)
        for first in range(0, len(whole.sentences), rows)
    ]
    store = build_triple_store(tmp_path / "parts", parts, LIMITS)
    assert triples_of(store) == expected(documents)
    whole_store = make_store(tmp_path / "whole", documents)
    assert store.centers.tolist() == whole_store.centers.tolist()
    assert (store.skipped, store.held_out) == (whole_store.skipped, len(parts)) and store.skipped > 1
    for name in ("word.ids", "word.starts", "word.vocabulary.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_rare_words_are_unknown(tmp_path: Path) -> None:
    documents = random_documents(seed=3)
    counts = Counter(word for document in documents for sentence in document for word in sentence.split())
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    store = make_store(tmp_path, documents, maximum_size=4)
    assert store.vocabulary.units == [UNKNOWN, *ranked[:4], END]
    seen = {word for triple in triples_of(store) for sentence in triple for word in sentence}
    assert seen == set(store.vocabulary.units)


def test_tokens_are_not_confused_with_end(tmp_path: Path) -> None:
    store = make_store(tmp_path, [[r"\n", "</s>", "UUUNKKK \u2028 \x85 x"]])
    ids = store.batch(np.arange(1))
    end = store.vocabulary.id_of(END)
    for side in (ids.previous, ids.current, ids.following):
        assert side.ids.tolist().count(end) == 1


@pytest.mark.parametrize(
    "documents", [[], [["a"], ["b"], ["c", "d"]], [["", "", ""]]], ids=["nothing", "short", "blank"]
)
def test_no_triples_are_error(tmp_path: Path, documents: list[list[str]]) -> None:
    with pytest.raises(InputError, match=r"no triples to train on: .*none with a neighbor on both sides"):
        make_store(tmp_path, documents)


def test_unfinished_triple_store_is_replaced(tmp_path: Path) -> None:
    make_store(tmp_path / "whole")
    (tmp_path / "cut").mkdir()
    for name in ("word.provisional", "word.ids", "word.starts"):
        (tmp_path / "cut" / name).write_bytes(b"\0" * 10)
    make_store(tmp_path / "cut")
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "cut" / path.name).read_bytes(), path.name


TSV = "Emma\tOne.\nEmma\tTwo.\nDracula\tThree.\nDracula\tFour.\nEmma\tFive.\n"
CHAPTERS = "Emma\t1\tOne.\nEmma\t2\tTwo.\nDracula\t2\tThree.\nDracula\t2\tFour.\nEmma\t1\tFive.\n"
TEXT = "One.\r\nTwo.\r\n\r\n  \nThree.\nFour."


def read(path: Path, **options: Any) -> tuple[list[str], list[int]]:
    blocks = list(read_sentences(path, **options))
    texts = [text for block in blocks for text in block.sentences.to_pylist()]
    return texts, [int(number) for block in blocks for number in block.documents]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def ranks(numbers: list[int]) -> list[int]:
    """Documents numbered from 0 without gaps."""
    return [sorted(set(numbers)).index(number) for number in numbers]


def test_triples_from_tsv_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "books.tsv", TSV)
    texts, documents = read(path)
    assert texts == ["One.", "Two.", "Three.", "Four.", "Five."]
    # A name that comes again later is another document: its sentences are not neighbors.
    assert documents == [0, 0, 1, 1, 2]
    chapters = write(tmp_path / "chapters.tsv", CHAPTERS)
    assert read(chapters) == (texts, [0, 1, 2, 2, 3])
    path.with_suffix(".tsv.gz").write_bytes(gzip.compress(TSV.encode()))
    assert read(path.with_suffix(".tsv.gz")) == (texts, documents)


def test_triples_from_plain_text(tmp_path: Path) -> None:
    path = write(tmp_path / "book.txt", TEXT)
    texts, documents = read(path)
    assert texts == ["One.", "Two.", "Three.", "Four."]
    assert ranks(documents) == [0, 0, 1, 1]
    assert read(write(tmp_path / "blank.txt", "\n\n")) == ([], [])
    # Of plain text a later tab is part of the sentence.
    assert read(write(tmp_path / "tab.txt", "One.\nTwo\tand three.\n"))[0] == ["One.", "Two\tand three."]


def test_held_out_sentence_ends_document(tmp_path: Path) -> None:
    path = write(tmp_path / "book.txt", "One.\nTwo.\nThree.\nFour.\nFive.\n")
    blocks = list(read_sentences(path, SentenceSet({"set": ["three!", ""]})))
    assert [block.held_out for block in blocks] == [1]
    texts = [text for block in blocks for text in block.sentences.to_pylist()]
    assert texts == ["One.", "Two.", "Four.", "Five."]
    assert ranks([int(number) for block in blocks for number in block.documents]) == [0, 0, 1, 1]


@pytest.mark.parametrize("size", [7, 12])
def test_documents_continue_across_blocks(tmp_path: Path, size: int) -> None:
    short = "A\t1.\nB\t2.\nB\t3.\nB\t4.\n"  # two lines in a block
    for name, text in (("books.tsv", TSV), ("chapters.tsv", CHAPTERS), ("short.tsv", short), ("a.txt", TEXT)):
        path = write(tmp_path / name, text)
        assert len(list(read_sentences(path, block_bytes=size))) > 1
        assert read(path, block_bytes=size) == read(path)
    ragged = write(tmp_path / "ragged.tsv", f"{TSV}Emma\n")
    with pytest.raises(InputError, match=r"ragged\.tsv:6: 1 column, but"):
        read(ragged, block_bytes=size)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"a\tb\tc\na\tb\n", r"books:2: 2 columns, but the first line has 3"),
        (b"a\tb\n\na\tb\n", r"books:2: 1 column, but the first line has 2"),
        (b"a\tb\na\t\xff\n", r"books:2: not UTF-8"),
        (b"PK\x03\x04rest", "zip archive"),
    ],
    ids=["empty", "ragged", "blank", "utf8", "zip"],
)
def test_invalid_text_files_are_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "books"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_large_logits_do_not_overflow() -> None:
    generator = torch.Generator().manual_seed(1)
    states, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((4, 3), (7, 3), (7,))
    )
    words = bags([1, 1, 3], [6], [0, 2, 2, 2], [5])
    value = negative_log_likelihood(1e4 * states, weight, bias, words)
    gradients = torch.autograd.grad(value, (states, weight, bias))
    assert all(bool(torch.isfinite(item).all()) for item in (value, *gradients))
