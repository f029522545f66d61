"""``paraforge score``: TSV or Parquet in, Parquet out; whatever is wrong is said in one line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from paraforge.cli.score import app
from paraforge.errors import ConfigurationError, InputError, ParaforgeError
from paraforge.scoring import general
from paraforge.scoring.score import build_scorers, score_table
from paraforge.scoring.score_file import score_file
from paraforge.scoring.vectors import WordVectors
from paraforge.scoring.word_scorer import WordScorer
from tests.scoring.test_score import SCORES, counted

VECTORS = WordVectors(["the", "cat", "dog"], np.eye(3, dtype=np.float32))
PAIRS = [("the cat", "the cat"), ("the cat", "the dog"), ('a "quoted\u2028 cat', "the\u0085 cat"), ("x", "")]


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    VECTORS.write_text(tmp_path / "vectors.txt")
    return tmp_path / "vectors.txt"


def run(*arguments: object) -> None:
    """Run the command; what it raises is raised here."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


def tsv(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{reference}\t{translation}\n" for reference, translation in pairs)


def expected(pairs: list[tuple[str, str]]) -> pa.Table:
    table = pa.table({"reference": [r for r, _ in pairs], "translation": [t for _, t in pairs]})
    return score_table(table, build_scorers(VECTORS, counts=counted(table)))


@pytest.mark.parametrize("compressed", [False, True])
def test_tsv(tmp_path: Path, vectors: Path, compressed: bool) -> None:
    content = tsv(PAIRS).encode()
    path = tmp_path / ("pairs.tsv.gz" if compressed else "pairs.tsv")
    path.write_bytes(gzip.compress(content) if compressed else content)
    run(path, tmp_path / "scored.parquet", "--vectors", vectors)
    table = pq.read_table(tmp_path / "scored.parquet")
    assert table.column_names == ["line", "reference", "translation", *SCORES]
    assert table["line"].to_pylist() == [1, 2, 3, 4]
    assert list(zip(table["reference"].to_pylist(), table["translation"].to_pylist(), strict=True)) == PAIRS
    assert table.select(SCORES).equals(expected(PAIRS))
    assert table["paraphrase_score"].to_pylist()[:2] == [1, 0.5]


def test_tsv_with_other_columns_and_a_header(tmp_path: Path, vectors: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("id\tmt\ten\n7\tthe dog\tthe cat\n", encoding="utf-8")
    for number, options in enumerate(
        [("--reference", "en", "--translation", "mt"), ("--reference", "2", "--translation", "1")]
    ):
        output = tmp_path / f"{number}.parquet"
        run(path, output, "--vectors", vectors, "--header", *options)
        table = pq.read_table(output)
        assert table["line"].to_pylist() == [2]
        assert table["reference"].to_pylist() == ["the cat"]
        assert table["paraphrase_score"].to_pylist() == [0.5]


def test_parquet_keeps_its_columns(tmp_path: Path, vectors: Path) -> None:
    table = pa.table(
        {
            "en": [r for r, _ in PAIRS],
            "overlap_1": ["an old column"] * len(PAIRS),
            "mt": pa.array([t for _, t in PAIRS[:3]] + [None], pa.large_string()),
            "weight": [0.5] * len(PAIRS),
        }
    )
    pq.write_table(table, tmp_path / "pairs.parquet")
    run(
        tmp_path / "pairs.parquet",
        tmp_path / "scored.parquet",
        "--vectors",
        vectors,
        "--reference",
        "en",
        "--translation",
        "mt",
    )
    scored = pq.read_table(tmp_path / "scored.parquet")
    assert scored.column_names == ["reference", "translation", "weight", *SCORES]
    assert scored["weight"].equals(table["weight"])
    assert scored.select(SCORES).slice(0, 3).equals(expected(PAIRS[:3]))
    assert scored["overlap_1"].to_pylist()[3] is None


@pytest.mark.slow
def test_workers_give_identical_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraforge.scoring.score_file.BATCH_ROWS", 500)
    (tmp_path / "pairs.tsv").write_text(tsv(PAIRS[:2] * 2000), encoding="utf-8")
    VECTORS.save(tmp_path / "vectors")
    for workers in (1, 2):
        rows = score_file(
            tmp_path / "pairs.tsv",
            tmp_path / f"{workers}.parquet",
            {"vectors": tmp_path / "vectors"},
            {"reference": 0, "translation": 1},
            workers=workers,
        )
        assert rows == 8000 // 2
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


WRONG = {
    "missing": (None, "no such file"),
    "empty": (b"", "empty"),
    "one column": (b"the cat\n", "no column 1.*the first line has 1, counted from 0"),
    "ragged": (b"a\tb\nc\n", "pairs.tsv:2: 1 columns"),
    "invalid UTF-8": (b"a\tb\nc\xff\td\n", "pairs.tsv:2: not UTF-8"),
    "truncated gz": (gzip.compress(b"a\tb\n" * 1000)[:-20], "damaged or truncated"),
    "damaged Parquet": (b"PAR1" + b"x" * 100, "not a whole Parquet file"),
    "very long line": (b"a\t" + b"b" * (3 << 20) + b"\n", "pairs.tsv:1: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input(tmp_path: Path, vectors: Path, case: str) -> None:
    content, message = WRONG[case]
    path = tmp_path / "pairs.tsv"
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
    ],
)
def test_wrong_options(
    tmp_path: Path, vectors: Path, options: tuple[str, ...], error: type[ParaforgeError], message: str
) -> None:
    (tmp_path / "pairs.tsv").write_text("the cat\tthe dog\n")
    with pytest.raises(error, match=message):
        run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--vectors", vectors, *options)


def test_parquet_without_the_column(tmp_path: Path, vectors: Path) -> None:
    pq.write_table(pa.table({"reference": ["a"], "translation": [1]}), tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match="is int64, not text"):
        run(tmp_path / "pairs.parquet", tmp_path / "o.parquet", "--vectors", vectors)
    with pytest.raises(InputError, match="no column 'mt' for translation; it has reference, translation"):
        run(tmp_path / "pairs.parquet", tmp_path / "o.parquet", "--vectors", vectors, "--translation", "mt")


def test_parquet_whose_columns_cannot_be_told_apart(tmp_path: Path, vectors: Path) -> None:
    table = pa.table({"en": ["a"], "reference": ["b"], "translation": ["c"]})
    pq.write_table(table, tmp_path / "pairs.parquet")
    arguments = (tmp_path / "pairs.parquet", tmp_path / "o.parquet", "--vectors", vectors)
    with pytest.raises(InputError, match="more than one column would be reference"):
        run(*arguments, "--reference", "en")
    with pytest.raises(InputError, match="more than one column would be reference and translation"):
        run(*arguments, "--reference", "translation")


def test_output_is_not_overwritten_unasked(tmp_path: Path, vectors: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("the cat\tthe dog\n")
    (tmp_path / "o.parquet").write_text("precious")
    with pytest.raises(InputError, match="already there"):
        run(tmp_path / "pairs.tsv", tmp_path / "o.parquet", "--vectors", vectors)
    with pytest.raises(InputError, match="--force does not replace it"):
        run(tmp_path / "pairs.tsv", tmp_path / "o.parquet", "--vectors", vectors, "--force")
    assert (tmp_path / "o.parquet").read_text() == "precious"
    (tmp_path / "o.parquet").unlink()
    run(tmp_path / "pairs.tsv", tmp_path / "o.parquet", "--vectors", vectors)
    run(tmp_path / "pairs.tsv", tmp_path / "o.parquet", "--vectors", vectors, "--force")
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 1


def test_without_vectors_the_built_in_scorer_scores(tmp_path: Path) -> None:
    pairs = [("A dog runs.", "The dog is running."), ("It rains.", "A giant corimentmentment.")]
    (tmp_path / "pairs.tsv").write_text(tsv(pairs), encoding="utf-8")
    run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet")
    found = pq.read_table(tmp_path / "scored.parquet")["paraphrase_score"].to_pylist()
    scorer = WordScorer.open(general.DIRECTORY)
    assert found == pytest.approx(scorer.similarity(*zip(*pairs, strict=True)).tolist(), abs=1e-6)
    assert found[0] > 0.6 > 0.2 > found[1]
