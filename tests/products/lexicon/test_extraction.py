"""Extraction of a lexicon, against the definitions."""

import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError, MissingPackageError
from paraforge.base.files import sha256_file
from paraforge.base.shards.resources import Resources
from paraforge.base.text.tokens import tokenize_columns
from paraforge.corpus.publication.datasets import open_lexicon
from paraforge.corpus.publication.lexicon_layout import SCHEMA
from paraforge.embeddings.evaluation.word_lists import SimilarityList
from paraforge.papers.lexicon_evaluation import Lists, ReferenceLexicon, evaluate_lexicon, shared_correlations
from paraforge.products.lexicon import extraction as module
from paraforge.products.lexicon.extraction import LexiconReport, extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.pair_sources import classify
from paraforge.products.lexicon.parameters import LexiconParameters
from tests.base.shards.steps import write_table
from tests.products.lexicon.corpora import write_corpus, zipf_corpus
from tests.products.lexicon.oracle import Oracle

COUNTS = (
    "pairs", "cross_count", "reference_count", "translation_count", "word_count", "paraphrase_count",
)  # fmt: skip


def extract(path: Path, *inputs: Path, output: str = "lexicon", **values: Any) -> LexiconReport:
    parameters = LexiconParameters(**{"minimum_pairs": 1, **values})
    return extract_lexicon(inputs, path / output, parameters, Resources(workers=1, work=path / "work"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``corpus`` and its ``lexicon``; they are only read."""
    root = tmp_path_factory.mktemp("whole")
    extract(root, write_corpus(root / "corpus", zipf_corpus(300)))
    return root


def entries(path: Path, output: str = "lexicon") -> pa.Table:
    return pa.concat_tables(pq.read_table(file) for file in Lexicon(path / output).files)


def test_entries_match_definitions(tmp_path: Path) -> None:
    corpus = zipf_corpus(500, words=60)
    report = extract(tmp_path, write_corpus(tmp_path / "corpus", corpus), minimum_pairs=3)
    oracle = Oracle(corpus)
    table = entries(tmp_path)
    assert table.schema.equals(SCHEMA)
    assert table.num_rows == report.entries == sum(count >= 3 for count in oracle.pairs.values())
    entries_of = Counter(table["word"].to_pylist())
    assert report.words_with_paraphrases == len(entries_of)
    for row in pq.read_table(tmp_path / "lexicon" / "words.parquet").to_pylist():
        word = row["word"]
        counts = (row["reference_count"], row["translation_count"], row["entries"])
        assert counts == (oracle.single_side[0][word], oracle.single_side[1][word], entries_of[word])
    for row in table.to_pylist():
        u, v = row["word"], row["paraphrase"]
        counts = (oracle.pairs[u, v], oracle.cross[u, v], *(side[u, v] for side in oracle.within))
        assert tuple(row[name] for name in COUNTS) == (*counts, oracle.single[u], oracle.single[v])
        assert row["cross_pmi"] == pytest.approx(oracle.cross_pmi(u, v), abs=1e-5)
        ordinary = oracle.ordinary_pmi(u, v)
        if ordinary is not None:
            assert row["ordinary_pmi"] == pytest.approx(ordinary, abs=1e-5)
        assert row["adjusted_pmi"] == pytest.approx(row["cross_pmi"] - row["ordinary_pmi"], abs=1e-5)


def test_entries_are_sorted_and_symmetric(whole: Path) -> None:
    rows = entries(whole).to_pylist()
    assert [(row["word"], row["rank"]) for row in rows] == sorted((row["word"], row["rank"]) for row in rows)
    for before, after in itertools.pairwise(rows):
        if before["word"] == after["word"]:
            assert after["rank"] == before["rank"] + 1
            first, second = (
                (-row["adjusted_pmi"], -row["cross_pmi"], row["paraphrase"]) for row in (before, after)
            )
            assert first < second
        else:
            assert after["rank"] == 1
    scores = {(row["word"], row["paraphrase"]): (row["cross_pmi"], row["adjusted_pmi"]) for row in rows}
    assert len(scores) == len(rows)
    assert all(scores[v, u] == score for (u, v), score in scores.items())


def test_small_files_hold_same_lexicon(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_FILE", 50)
    monkeypatch.setattr(module, "ROWS_PER_GROUP", 30)
    extract(tmp_path, whole / "corpus", output="many")
    assert entries(whole).equals(entries(tmp_path, "many"))
    found: dict[str, int] = {}
    expected: dict[str, int] = {}
    before = 0
    for number, file in enumerate(Lexicon(tmp_path / "many").files):
        found |= dict.fromkeys(pq.read_table(file)["word"].to_pylist(), number)
    for word, rows in Counter(entries(whole)["word"].to_pylist()).items():
        expected[word] = before // 50  # a word is in the file that its first entry belongs to
        before += rows
    assert found == expected


def test_lexicon_bytes_do_not_depend_on_shards(whole: Path, tmp_path: Path) -> None:
    extract(tmp_path, write_corpus(tmp_path / "corpus", zipf_corpus(300), 17))
    digests = [[sha256_file(file) for file in Lexicon(root / "lexicon").files] for root in (whole, tmp_path)]
    assert digests[0] == digests[1]


def test_hong_kong(tmp_path: Path) -> None:
    """In the paper's example, cross-sentence PMI is high, but the words are not paraphrases."""
    corpus = [("hong kong is big", "hong kong is large")] * 20 + [("it is big", "it is large")] * 40
    extract(tmp_path, write_corpus(tmp_path / "corpus", corpus))
    scores = {(row["word"], row["paraphrase"]): row for row in entries(tmp_path).to_pylist()}
    assert scores["hong", "kong"]["cross_pmi"] > scores["big", "large"]["cross_pmi"]
    assert scores["hong", "kong"]["adjusted_pmi"] < scores["big", "large"]["adjusted_pmi"]


def _shards(path: Path, columns: dict[str, Any]) -> Path:
    return write_table(path, pa.table(columns), step="test")


def test_uncounted_pairs_are_reported_by_reason(tmp_path: Path) -> None:
    long = " ".join(["w"] * 31)
    translated = _shards(
        tmp_path / "translated",
        {
            "reference": ["a", "a", "a", "a", "a", long, "a", "A .", "a"],
            "translation": ["b", "b", None, "b", "b", "b", "b " * 30, "b !", long],
            "rejected": pa.array(["duplicate", *[None] * 8], pa.string()),
            "failed": pa.array([None, None, "crash", *[None] * 6], pa.string()),
            "rank": pa.array([0, 1, 0, 0, 0, 0, 0, 0, 0], pa.int8()),
        },
    )
    scored = _shards(
        tmp_path / "scored",
        {
            "paraphrase_score": pa.array([0.9, 0.9, None, None, 0.34, 0.9, 0.35, 0.9, 0.9], pa.float32()),
            "reference_tokens": pa.array([1, 1, 1, 1, 1, 31, 1, 2, 1], pa.int32()),
            "translation_tokens": pa.array([1, 1, None, 1, 1, 1, 1, 2, 31], pa.int32()),
        },
    )
    report = extract(tmp_path, translated, scored)
    assert report.dropped == {"rejected": 1, "failed": 1, "rank": 1, "no_score": 1, "score": 1, "tokens": 2}
    assert report.pairs == 2
    assert report.rows == report.pairs + sum(report.dropped.values())
    manifest = Lexicon(tmp_path / "lexicon").manifest
    assert [manifest[name] for name in ("rows", "pairs", "dropped")] == [9, 2, report.dropped]
    # tokens: lower-cased, punctuation apart
    assert {row["paraphrase"] for row in entries(tmp_path).to_pylist() if row["word"] == "a"} == {"b", "!"}


def test_single_file_with_several_row_groups(whole: Path, tmp_path: Path) -> None:
    table = pa.concat_tables(pq.read_table(file) for file in sorted((whole / "corpus").glob("*.parquet")))
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=40)
    extract(tmp_path, tmp_path / "one.parquet")
    assert entries(tmp_path).equals(entries(whole))


def test_extraction_does_not_read_text(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\t0.5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"not a corpus, and not a Parquet file.*Convert text to Parquet"):
        extract(tmp_path, path)


def test_missing_inputs_or_columns_of_lexicon(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        extract(tmp_path, tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="no such file or directory"):
        extract(tmp_path, tmp_path / "loop")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a published corpus"):
        extract(tmp_path, tmp_path / "empty")
    with pytest.raises(InputError, match="no column translation"):
        extract(tmp_path, _shards(tmp_path / "half", {"reference": ["a"]}))
    bare = _shards(tmp_path / "bare", {"reference": ["a"], "translation": ["b"]})
    with pytest.raises(InputError, match="no paraphrase scores"):
        extract(tmp_path, bare)
    with pytest.raises(InputError, match="empty: only shard directories can be aligned"):
        extract(tmp_path, bare, tmp_path / "empty")
    with pytest.raises(InputError, match="pass at least one input"):
        extract(tmp_path)


LAYOUTS = [pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]


@pytest.mark.parametrize("kind", LAYOUTS, ids=str)
def test_arrow_string_layouts_give_same_lexicon(tmp_path: Path, kind: pa.DataType) -> None:
    references, translations = zip(*zipf_corpus(60), strict=True)
    texts = {"reference": list(references), "translation": list(translations)}
    plain = pa.table({**texts, "paraphrase_score": [0.9] * 60})
    pq.write_table(plain.slice(0, 50), tmp_path / "plain.parquet")
    fates = {"rejected": [None] * 50 + ["x"] * 10}
    other = {name: _as(pa.array(values, pa.string()), kind) for name, values in {**texts, **fates}.items()}
    pq.write_table(pa.table({**other, "paraphrase_score": [0.9] * 60}), tmp_path / "other.parquet")
    extract(tmp_path, tmp_path / "plain.parquet", output="plain")
    report = extract(tmp_path, tmp_path / "other.parquet", output="other")
    assert (report.rows, report.dropped["rejected"]) == (60, 10)
    assert entries(tmp_path, "other").equals(entries(tmp_path, "plain"))


def _as(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return (
        texts.cast(kind.value_type).dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
    )


@pytest.mark.parametrize(
    ("column", "values", "wanted"),
    [
        ("reference", [[b"\xff"]], "text"),
        ("translation", [1], "text"),
        ("paraphrase_score", ["0.5"], "numbers"),
        ("rank", ["first"], "numbers"),
        ("rejected", [False], "text"),
    ],
)
def test_wrong_column_types_are_named(tmp_path: Path, column: str, values: list[Any], wanted: str) -> None:
    columns: dict[str, Any] = {"reference": ["a"], "translation": ["b"], "paraphrase_score": [0.5]}
    pq.write_table(pa.table({**columns, column: values}), tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match=rf"column '{column}' is .*, not {wanted}"):
        extract(tmp_path, tmp_path / "pairs.parquet")


@pytest.mark.parametrize(
    ("rows", "why"),
    [(0, "the corpus is empty, so"), (3, "none of 3 pairs can be used for a lexicon: tokens 3$")],
)
def test_no_pairs_give_empty_lexicon_if_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rows: int, why: str
) -> None:
    corpus = write_corpus(tmp_path / "corpus", [("w " * 31, "w")] * rows, 2)
    work = tmp_path / "work" / "lexicon"
    (work / "of other parameters").mkdir(parents=True)
    with pytest.raises(InputError, match=why):
        extract(tmp_path, corpus)
    assert not (work / "of other parameters").exists()
    resources = Resources(workers=1, work=tmp_path / "work")
    report = extract_lexicon([corpus], tmp_path / "lexicon", LexiconParameters(), resources, allow_empty=True)
    assert (report.rows, report.pairs, report.words, report.entries) == (rows, 0, 0, 0)
    assert sum(report.dropped.values()) == rows
    assert caplog.text.count("the lexicon is empty") == 1
    assert not [path for path in work.iterdir() if path.is_dir()]
    # Whoever reads it finds nothing in it, and nothing wrong with it.
    lexicon = Lexicon(tmp_path / "lexicon")
    assert lexicon.lookup(["w"])["w"].num_rows == 0
    assert lexicon.count_of("w") == 0
    assert open_lexicon(tmp_path / "lexicon").rows == 0
    judgments = SimilarityList("list", [("w", "v"), ("w", "x")], [1.0, 2.0])
    found = evaluate_lexicon(tmp_path / "lexicon", Lists([judgments], []))
    assert (found["list"]["found"], found["list"]["adjusted_pmi"]) == (0, None)
    shared = shared_correlations(lexicon, ReferenceLexicon("reference", {("w", "v"): 1.0}, True))
    assert shared == {"cross_pmi": None, "adjusted_pmi": None}


def test_too_few_pairs_give_empty_lexicon(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = write_corpus(tmp_path / "corpus", [("a", "b")])
    assert extract(tmp_path, corpus, output="enough", minimum_pairs=1).entries == 2
    assert not caplog.text
    assert extract(tmp_path, corpus, minimum_pairs=10).entries == 0
    assert "the lexicon is empty" in caplog.text
    assert Lexicon(tmp_path / "lexicon").lookup(["a"])["a"].num_rows == 0


def test_lemmas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("simplemma")
    sides = tokenize_columns(pa.array(["the dogs laughed .", ""]), pa.array(["a dog laughs .", "better"]))
    assert classify(sides, "words", "en") == sides
    references, translations = classify(sides, "lemmas", "en")
    assert references.rows() == [["the", "dog", "laugh", "."], []]
    assert translations.rows()[0] == ["a", "dog", "laugh", "."]
    assert references.vocabulary is translations.vocabulary
    with pytest.raises(InputError, match=r"lexicon.language.*'xx'"):
        classify(sides, "lemmas", "xx")
    corpus = [("the dogs", "a hound"), ("a dog", "the hounds")] * 2
    extract(tmp_path, write_corpus(tmp_path / "corpus", corpus), minimum_pairs=4, classes="lemmas")
    found = Lexicon(tmp_path / "lexicon").lookup(["Dogs", "dog"])
    assert found["Dogs"].equals(found["dog"])
    assert "hound" in found["dog"]["paraphrase"].to_pylist()
    monkeypatch.setitem(sys.modules, "simplemma", None)
    with pytest.raises(MissingPackageError, match=r"\[classes\]'"):
        classify(sides, "lemmas", "en")
