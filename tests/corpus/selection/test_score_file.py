"""``paraforge score FILE``: tables in and out, the verdict, and errors."""

import csv
import gzip
import io
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import ConfigurationError, InputError, ParaforgeError
from paraforge.base.shards.store import ShardDirectory
from paraforge.base.word_vectors.vectors import WordVectors
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.score import build_scorers, score_table
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.corpus.selection import score_file
from tests.corpus.scoring.test_score import NO_SOURCE, SCORES, counted
from tests.here import run_command

VECTORS = WordVectors(["the", "cat", "dog"], np.eye(3, dtype=np.float32))
PAIRS = [("the cat", "the cat"), ("the cat", "the dog"), ('a "quoted\u2028 cat', "the\u0085 cat"), ("x", "")]


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    VECTORS.write_text(tmp_path / "vectors.txt")
    return tmp_path / "vectors.txt"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_file, "BATCH_ROWS", 3)


def run(*arguments: object) -> str:
    """Run the command; what it says."""
    return " ".join(run_command("score", *arguments).output.split())


TEXTS = ["reference", "translation"]


def tsv(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{reference}\t{translation}\n" for reference, translation in pairs)


def expected(pairs: list[tuple[str, str]]) -> pa.Table:
    table = pa.table({"reference": [r for r, _ in pairs], "translation": [t for _, t in pairs]})
    return score_table(table, build_scorers(VECTORS, counts=counted(table), lexical=NO_SOURCE))


def as_csv(rows: list[tuple[str, str]], separator: str = ",") -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", delimiter=separator).writerows(rows)
    return text.getvalue()


OTHER = "id\tmt\ten\n7\tthe dog\tthe cat\n"


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("name", "content", "options", "pairs"),
    [
        ("pairs.tsv", tsv(PAIRS), (), PAIRS),
        ("pairs.tsv.gz", tsv(PAIRS), (), PAIRS),
        ("pairs.CSV.gz", as_csv([("en", "a, mt"), *PAIRS]), ("--translation", "a, mt"), PAIRS),
        ("pairs.csv", as_csv(PAIRS, ";"), (), PAIRS),
        ("pairs.tsv", OTHER, ("--reference", "en", "--translation", "mt"), PAIRS[1:2]),
        ("pairs.tsv", OTHER, ("--reference", "2", "--translation", "1"), PAIRS[1:2]),
    ],
    ids=["tsv", "tsv.gz", "csv.gz", "semicolons", "names", "numbers"],
)
def test_text(
    tmp_path: Path, vectors: Path, name: str, content: str, options: tuple[str, ...],
    pairs: list[tuple[str, str]],
) -> None:  # fmt: skip
    data, header = content.encode(), ["--header"] * bool(options)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    run(tmp_path / name, tmp_path / "scored.parquet", "--vectors", vectors, *header, *options)
    table = pq.read_table(tmp_path / "scored.parquet")
    assert table.column_names == ["line", *TEXTS, *SCORES]
    first = 1 + len(header)
    assert table["line"].to_pylist() == list(range(first, first + len(pairs)))
    assert list(zip(*(table[text].to_pylist() for text in TEXTS), strict=True)) == pairs
    assert table.select(SCORES).equals(expected(pairs))
    scores = dict(zip(pairs, table["paraphrase_score"].to_pylist(), strict=True))
    assert scores[PAIRS[1]] == 0.5 and scores.get(PAIRS[0], 1) == 1


def test_score_file_repairs_and_counts_texts(
    tmp_path: Path, vectors: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [("the c\u00adat", "the dog &amp; cat"), ("the &lt;cat", "the &quot;dog")]
    (tmp_path / "pairs.tsv").write_text(tsv(pairs), encoding="utf-8")
    run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--vectors", vectors)
    found = pq.read_table(tmp_path / "scored.parquet").select(TEXTS).to_pydict()
    assert [*zip(*found.values(), strict=True)] == [("the cat", "the dog & cat"), ("the <cat", 'the "dog')]
    assert "pairs.tsv: 3 texts had entities, which were repaired" in caplog.text
    assert "pairs.tsv: 1 text had invisible characters, which were repaired" in caplog.text


NUMBERED = "".join(f"{n}\t{one}\t{other}\n" for n, (one, other) in enumerate(PAIRS))


@pytest.mark.parametrize(
    ("content", "options", "warnings"),
    [
        ("reference\ttranslation\n" + tsv(PAIRS), (), ["the first row looks like a header. Use --header"]),
        ("reference\ttranslation\n" + tsv(PAIRS), ("--header",), []),
        (NUMBERED, (), ["column 0 has numbers or keys. Use other columns with --reference and --tra"]),
        (NUMBERED, ("--reference", "1", "--translation", "2"), []),
    ],
)
def test_suspicious_text_columns_are_named(
    tmp_path: Path, vectors: Path, caplog: pytest.LogCaptureFixture,
    content: str, options: tuple[str, ...], warnings: list[str],
) -> None:  # fmt: skip
    (tmp_path / "pairs.tsv").write_text(content, encoding="utf-8")
    run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--vectors", vectors, *options)
    assert len(caplog.messages) == len(warnings)
    assert all(warning in caplog.text for warning in warnings)


def test_shard_lines_are_counted_from_1(tmp_path: Path) -> None:
    table = pa.table({"reference": ["a", "b"], "translation": ["c", "d"]})
    score_file._write_pairs(iter([table, table]), tmp_path / "pairs", tmp_path / "pairs.parquet")
    written = pa.concat_tables(ShardDirectory(tmp_path / "pairs").tables())
    assert written["line"].to_pylist() == [1, 2, 3, 4] and written["source"].to_pylist() == [""] * 4


def test_score_file_writes_text(tmp_path: Path, vectors: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(PAIRS), encoding="utf-8")
    output = tmp_path / "new" / "scored.csv.gz"
    for option in ((), ("--force",)):
        run(tmp_path / "pairs.tsv", output, "--vectors", vectors, *option)
    assert list(output.parent.iterdir()) == [output]
    text = gzip.decompress(output.read_bytes()).decode("utf-8")
    rows = list(csv.DictReader(text.split("\n")))
    assert [tuple(row[name] for name in TEXTS) for row in rows] == PAIRS
    assert [float(row["paraphrase_score"] or "nan") for row in rows[:2]] == [1, 0.5]
    assert list(rows[0]) == ["line", *TEXTS, *SCORES]


@pytest.mark.parametrize("name", ["scored", "scored.txt", "scored.parquet.gz"])
def test_output_without_known_suffix_is_error(name: str, tmp_path: Path, vectors: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(PAIRS), encoding="utf-8")
    with pytest.raises(InputError, match="cannot infer the format"):
        run(tmp_path / "pairs.tsv", tmp_path / name, "--vectors", vectors)


@pytest.mark.usefixtures("small_batches")
def test_score_file_keeps_parquet_columns(tmp_path: Path, vectors: Path) -> None:
    table = pa.table(
        {
            "en": [r for r, _ in PAIRS],
            "overlap_1": ["an old column"] * len(PAIRS),
            "mt": pa.array([t for _, t in PAIRS[:3]] + [None], pa.large_string()),
            "weight": [0.5] * len(PAIRS),
            "note": pa.array(["of a layout that Arrow cannot filter"] * len(PAIRS), pa.string_view()),
        }
    )
    table = table.set_column(0, "en", table["en"].cast(pa.string_view()))
    pq.write_table(table, tmp_path / "pairs.parquet")
    options = ("--vectors", vectors, "--reference", "en", "--translation", "mt")
    run(tmp_path / "pairs.parquet", tmp_path / "scored.parquet", *options)
    scored = pq.read_table(tmp_path / "scored.parquet")
    assert scored.column_names == ["reference", "translation", "weight", "note", *SCORES]
    assert scored["weight"].equals(table["weight"]) and scored["note"].equals(table["note"])
    assert scored.select(SCORES).slice(0, 3).equals(expected(PAIRS[:3]))
    assert scored["overlap_1"].to_pylist()[3] is None
    nested = pa.table({"pair": [{"en": reference, "mt": translation} for reference, translation in PAIRS]})
    pq.write_table(nested, tmp_path / "pairs.parquet")
    options = ("--vectors", vectors, "--reference", "pair.en", "--translation", "pair.mt")
    run(tmp_path / "pairs.parquet", tmp_path / "nested.parquet", *options)
    assert pq.read_table(tmp_path / "nested.parquet").select(SCORES).equals(expected(PAIRS))


WRONG = {
    "missing": (None, "no such file"),
    "empty": (b"", "empty"),
    "one column": (b"the cat\n", "no column 1.*the first line has 1, counted from 0"),
    "ragged": (b"a\tb\nc\n", "pairs.tsv:2: 1 column, but the first line has 2"),
    "invalid UTF-8": (b"a\tb\nc\xff\td\n", "pairs.tsv:2: not UTF-8"),
    "truncated gz": (gzip.compress(b"a\tb\n" * 1000)[:-20], "damaged or truncated"),
    "damaged Parquet": (b"PAR1" + b"x" * 100, "not a complete Parquet file"),
    "JSON": (b'{"reference": "a", "translation": "b"}\n', "pairs.jsonl: JSON is not read here.* Parquet"),
    "very long line": (b"a\tb\na\t" + b"b" * (3 << 20) + b"\n", "pairs.tsv:2: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_score_file_wrong_input(tmp_path: Path, vectors: Path, case: str) -> None:
    content, message = WRONG[case]
    path = tmp_path / ("pairs.jsonl" if case == "JSON" else "pairs.tsv")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        run(path, tmp_path / "scored.parquet", "--vectors", vectors)
    assert not (tmp_path / "scored.parquet").exists()
    assert not list(tmp_path.glob(".scored*"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (("--reference", "en"), ConfigurationError, "--reference en"),
        (("--reference", "-1"), ConfigurationError, "--reference -1"),
        (("--header",), InputError, "no pairs"),
        (("--header", "--reference", "en"), InputError, "no column 'en'"),
        (("--vectors", "nothing.txt"), InputError, "no such file or directory of word vectors"),
        (("--sentence-transformer", "nothing"), InputError, r"modules\.json"),
        (("--minimum", "0.4", "--wrong-pairs", "0.01"), ConfigurationError, "two bounds"),
        (("--minimum", "nan"), ConfigurationError, "--minimum nan"),
        (("--minimum", "x"), ConfigurationError, "--minimum x: .*number"),
        (("--minimum", "overlap_3=7"), ConfigurationError, "outside the scale of overlap_3"),
        (("--maximum", "0.8"), ConfigurationError, "use SCORE=NUMBER"),
        (("--wrong-pairs", "1"), ConfigurationError, "--wrong-pairs 1"),
        (("--wrong-pairs", "-0.1"), ConfigurationError, "--wrong-pairs -0.1"),
        (("--wrong-pairs", "nan"), ConfigurationError, "--wrong-pairs nan"),
        (("--wrong-pairs", "0.01"), ConfigurationError, "--wrong-pairs.*no two rows differ"),
        (("--wrong-pairs", "digits=0.4"), ConfigurationError, "digits=0.4: no such column"),
        (("--minimum", "cosine=0.4"), ConfigurationError, "--sentence-transformer"),
        (("--languages", "en"), ConfigurationError, "languages: .*at least 2"),
        (("--minimum", "translation_score=-1"), InputError, r"pairs\.tsv: a bound uses translation_score"),
        (("--maximum", "rank=0"), InputError, "a bound uses rank"),
    ],
)
def test_wrong_options(
    tmp_path: Path, vectors: Path, options: tuple[str, ...], error: type[ParaforgeError], message: str
) -> None:
    (tmp_path / "pairs.tsv").write_text("the cat\tthe dog\n")
    with pytest.raises(error, match=message):
        run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--vectors", vectors, *options)
    assert not (tmp_path / "scored.parquet").exists()


def test_null_score_passes_maximum_but_no_minimum(tmp_path: Path, vectors: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(PAIRS), encoding="utf-8")
    for option, reason in (("--maximum", None), ("--minimum", "no_paraphrase_score")):
        output = tmp_path / f"{reason}.parquet"
        run(tmp_path / "pairs.tsv", output, "--vectors", vectors, option, "paraphrase_score=0.5")
        rows = pq.read_table(output).to_pylist()
        assert {row["rejected"] for row in rows if row["paraphrase_score"] is None} == {reason}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"translation": [1]}, (), "is int64, not text"),
        ({"translation": ["b"], "rejected": [False]}, (), "'rejected' is bool, not text"),
        ({"translation": ["b"]}, ("--translation", "mt"),
         "no column 'mt' for translation; it has reference, translation"),
        ({"en": ["b"], "translation": ["c"]}, ("--reference", "en"),
         "more than one column would be reference"),
        ({"translation": ["c"]}, ("--reference", "translation"),
         "more than one column would be reference and translation"),
    ],
)  # fmt: skip
def test_parquet_without_text_columns(
    tmp_path: Path, vectors: Path, columns: dict[str, Any], options: tuple[str, ...], message: str
) -> None:
    pq.write_table(pa.table({"reference": ["a"], **columns}), tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match=message):
        run(tmp_path / "pairs.parquet", tmp_path / "o.parquet", "--vectors", vectors, *options)


def test_built_in_scorer_is_default(tmp_path: Path) -> None:
    pairs = [("A dog runs.", "The dog is running."), ("It rains.", "A giant corimentmentment.")]
    (tmp_path / "pairs.tsv").write_text(tsv(pairs), encoding="utf-8")
    run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet")
    found = pq.read_table(tmp_path / "scored.parquet")["paraphrase_score"].to_pylist()
    scorer = WordScorer.open(general.DIRECTORY)
    assert found == pytest.approx(scorer.similarity(*zip(*pairs, strict=True)).tolist(), abs=1e-6)
    assert found[0] > 0.6 > 0.2 > found[1]


def own_pairs(count: int, wrong: int = 0, seed: int = 1) -> list[tuple[str, str]]:
    """Sentences of the grammar of the sample, the last ones with translations of others."""
    drawn = random.Random(seed)
    nouns = ["dog", "cat", "horse", "bird", "child", "woman", "farmer", "doctor", "teacher", "singer"]
    verbs = ["sees", "likes", "hears", "finds", "follows"]
    places = ["garden", "kitchen", "street", "forest", "school", "station", "market", "church"]
    references = []
    for _ in range(count):
        first, second = drawn.sample(nouns, 2)
        references.append(f"The {first} {drawn.choice(verbs)} a {second} near the {drawn.choice(places)}.")
    translations = [text.replace("near", "close to").replace("The", "One") for text in references]
    right = count - wrong
    return list(zip(references, translations[:right] + translations[right:][::-1], strict=True))


def test_score_file_verdict_uses_mismatched_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(own_pairs(400)), encoding="utf-8")
    said = run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet")
    assert re.search(r"Paraphrase score: AUC (0\.99\d|1\.000)", said)
    assert re.search(
        r"0\.\d+ would let at most 1 in 100 through \(95% confidence\) and keep (more than 99|9\d|100)% of",
        said,
    )
    assert "rejected" not in pq.read_schema(tmp_path / "scored.parquet").names


@pytest.mark.parametrize("option", [("--minimum", "0.8"), ("--wrong-pairs", "0.05")])
def test_rejected_pairs_are_kept_with_reason(tmp_path: Path, option: tuple[str, str]) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(tsv(own_pairs(400, wrong=100)), encoding="utf-8")
    run(path, tmp_path / "all.parquet")
    said = run(path, tmp_path / "marked.parquet", *option)
    everything, marked = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("all", "marked"))
    assert marked.drop_columns("rejected").equals(everything)
    found = re.search(r"paraphrase score below (0\.\d+)", said)
    assert found is not None
    minimum = np.float32(found[1])
    scores = marked["paraphrase_score"].to_numpy()
    expected = [None if score >= minimum else "paraphrase_score" for score in scores]
    assert marked["rejected"].to_pylist() == expected
    assert f"{(scores < minimum).sum()} rejected" in said
    if option[0] == "--wrong-pairs":
        assert sum(reason is not None for reason in expected[300:]) > 80
        assert sum(reason is not None for reason in expected[:300]) < 10


def test_earlier_reasons_are_kept_and_sources_separate(tmp_path: Path) -> None:
    pairs = own_pairs(200) + own_pairs(200, wrong=200)
    table = pa.table(
        {
            "source": pa.array(["good"] * 200 + ["bad"] * 200).dictionary_encode(),
            "reference": [reference for reference, _ in pairs],
            "translation": [translation for _, translation in pairs],
            "rejected": ["duplicate", None] * 200,
            "translation_score": [-1.0] * 398 + [-9.0] * 2,
            "given_score": [0.9] * 397 + [0.1] * 3,
        }
    )
    pq.write_table(table, tmp_path / "pairs.parquet")
    minima = ("translation_score=-2", "given_score=0.5", "0.8")
    options = [part for minimum in minima for part in ("--minimum", minimum)]
    said = run(tmp_path / "pairs.parquet", tmp_path / "o.parquet", *options)
    assert "poorly tells good from mismatched pairs in bad (" in said
    found = pq.read_table(tmp_path / "o.parquet")
    assert found["rejected"].to_pylist()[::2] == ["duplicate"] * 200
    assert found["rejected"].to_pylist()[1:200:2] == [None] * 100
    assert found["rejected"].to_pylist()[-3:] == ["given_score", "duplicate", "translation_score"]
    assert found["source"].to_pylist() == table["source"].to_pylist()


def test_other_language_warns(tmp_path: Path) -> None:
    german = [f"Der Vorsitzende hat Gesetz Nummer {number} gestern nicht erwähnt." for number in range(50)]
    (tmp_path / "pairs.tsv").write_text(tsv([(text, text.upper()) for text in german]), encoding="utf-8")
    said = run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet")
    assert re.search(r"knows \d+% of the references' words; .* For another language, pass --vectors", said)


DOGS = [(f"Dog {number} runs.", "It rains 5 times.") for number in range(300)]


@pytest.mark.parametrize(
    "pairs",
    [
        [("A dog runs.", "One dog runs.")],
        [("It rains.", "It rains.")] * 50,
        DOGS,  # one translation, then one reference
        [(one, other) for other, one in DOGS],
    ],
)
def test_no_verdict_without_mismatched_pairs(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(pairs), encoding="utf-8")
    said = run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--minimum", "-1")
    assert "The scores cannot be checked: no two rows of a source differ on both sides" in said
    assert pq.read_table(tmp_path / "scored.parquet")["rejected"].null_count == len(pairs)
