"""``export-corpus --groups``: every pair in one group, every sentence once; and parts keep the splits."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.columns import COLUMNS
from paraforge.corpus.publication.datasets import open_published
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.publication.verification import verify
from tests.corpus.publication.test_groups import SPLITS, by_split, related_pairs, rows_of
from tests.corpus.selection.corpora import with_columns
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command
from tests.project import digests


def run(*arguments: object) -> str:
    return str(run_command("export-corpus", *arguments).output)


def refused(*arguments: object) -> str:
    with pytest.raises(InputError) as error:
        run(*arguments)
    return f"{error.value} {error.value.remedy}"


def expected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    members: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        members.setdefault(row["group"], []).append(row)
    found = []
    for group, pairs in sorted(members.items()):
        sentences = dict.fromkeys(row[side] for side in ("reference", "translation") for row in pairs)
        score = float(np.mean([row["paraphrase_score"] for row in pairs]))
        found.append(
            {"group": group, "sentences": list(sentences), "pairs": len(pairs), "paraphrase_score": score}
        )
    return found


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with groups and splits."""
    root = tmp_path_factory.mktemp("related")
    publish_pairs(root, table=related_pairs(), splits=SPLITS)
    return root / "corpus"


@pytest.mark.parametrize("splits", [{}, SPLITS])
def test_a_row_for_each_group(
    splits: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraforge.interface.query.groups.ROWS", 50)
    publish_pairs(tmp_path, table=related_pairs(), splits=splits)
    said = run(tmp_path / "corpus", "--groups", "-o", tmp_path / "groups")
    rows = rows_of(tmp_path / "corpus")
    assert f"{len({row['group'] for row in rows}):,} groups of {len(rows):,} pairs" in said
    for name, members in by_split(tmp_path / "corpus").items():
        stem = "shard" if name == "train" else name
        table = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "groups").glob(f"{stem}-*.parquet"))))
        wanted = expected(members)
        assert max(len(one["sentences"]) for one in wanted) > 2
        for found, one in zip(table.to_pylist(), wanted, strict=True):
            assert found.pop("paraphrase_score") == pytest.approx(one.pop("paraphrase_score"))
            assert found == one


def test_only_groups_are_replaced(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=related_pairs(200))
    corpus, output = tmp_path / "corpus", tmp_path / "groups"
    run(corpus, "--groups", "-o", output)
    assert "already there" in refused(corpus, "--groups", "-o", output)
    run(corpus, "--groups", "-o", output, "--force")
    for other in (tmp_path / "selected", corpus):
        before = digests(other)
        assert "not groups" in refused(corpus, "--groups", "-o", other, "--force")
        assert digests(other) == before
    (output / "notes-2026.parquet").write_bytes(b"")
    assert "notes-2026.parquet was put into it" in refused(corpus, "--groups", "-o", output, "--force")


def test_a_corpus_without_groups(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=related_pairs(200), group_score=None)
    message = refused(tmp_path / "corpus", "--groups", "-o", tmp_path / "g")
    assert "publish.group_score" in message and not (tmp_path / "g").exists()
    message = refused(tmp_path / "corpus", "--groups", "--where", "1", "-o", tmp_path / "g")
    assert "--groups goes with" in message
    assert "not the kept pairs" in refused(tmp_path / "rejected", "--groups", "-o", tmp_path / "g")
    run(tmp_path / "corpus", "--columns", "reference", "-o", tmp_path / "part")
    assert "no column translation" in refused(tmp_path / "part", "--groups", "-o", tmp_path / "g")


def test_an_empty_corpus_has_a_file_without_groups(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=50, filters={"filters": [{"kind": "length", "minimum": 99}]})
    assert "0 groups" in run(tmp_path / "corpus", "--groups", "-o", tmp_path / "groups")
    assert pq.read_table(tmp_path / "groups" / "shard-00000.parquet").schema.names[:2] == [
        "group",
        "sentences",
    ]


def test_a_query_in_the_condition_is_of_all_splits(related: Path, tmp_path: Path) -> None:
    condition = "paraphrase_score = (SELECT max(paraphrase_score) FROM corpus) AND source <> 'random()'"
    run(related, "--where", condition, "-o", tmp_path / "part")
    highest = max(row["paraphrase_score"] for row in rows_of(related))
    assert {row["paraphrase_score"] for row in rows_of(tmp_path / "part")} == {highest}


TEXTS = (
    'He said "no".', '"Quoted," he said', '"', "NA", "null", "None", "nan", "1,5", "007", "true", " ", "a, b",
    "#1", "'", "\\n", "a\tb", "žluťoučký kůň", "=1+1", "2026-11-25", "1e5", "-", "\u2028", "<NA>", "a\\",
)  # fmt: skip


def odd_pairs() -> pa.Table:
    """Pairs of texts that a reader of CSV may take for something else."""
    pairs = related_pairs(900)
    odd = {side: pairs[side].to_pylist() for side in ("reference", "translation")}
    for row in range(0, 900, 3):
        for side, step in (("reference", 1), ("translation", 7)):
            odd[side][row] = odd[side][row] and TEXTS[row * step // 3 % len(TEXTS)]
    return with_columns(pairs, **odd)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a corpus of them."""
    root = tmp_path_factory.mktemp("odd")
    publish_pairs(root, table=odd_pairs(), splits=SPLITS)
    return root


@pytest.mark.parametrize("kind", ["corpus", "rejected", "merged", "groups", "parquet", "jsonl", "csv", "tsv"])
def test_datasets_opens_all_that_is_written_with_the_same_values(
    kind: str, odd: Path, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    corpus, output = odd / "corpus", (odd if kind in ("corpus", "rejected") else tmp_path) / kind
    names = read_manifest(corpus).splits
    if kind == "merged":
        publish_pairs(tmp_path / "other", table=with_columns(related_pairs(90, 8), source=["other"] * 90))
        run_command("merge", corpus, tmp_path / "other" / "corpus", "-o", output)
    elif kind == "groups":
        run(corpus, "--groups", "-o", output)
    elif output.parent == tmp_path:
        run(corpus, "--where", "source = 'news' AND paraphrase_score > 0.9", "-f", kind, "-o", output)
        run(corpus, "--where", "source = 'news' AND paraphrase_score > 0.9", "-o", tmp_path / "wanted")
    loaded = datasets.load_dataset(str(output), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == (["rejected"] if kind == "rejected" else list(names))
    same = tmp_path / "wanted" if (tmp_path / "wanted").exists() else output
    for name in loaded:
        stem = "shard" if name in ("train", "rejected") else name
        table = pa.concat_tables(map(pq.read_table, sorted(same.glob(f"{stem}-*.parquet"))))
        assert loaded[name].column_names == table.column_names
        rows = table.to_pylist()
        if kind == "tsv":  # where tabs and line ends are blanks
            blank = {ord(character): " " for character in "\t\u2028"}
            for row in rows:
                row |= {side: row[side].translate(blank) for side in ("reference", "translation")}
        assert loaded[name].to_list() == rows


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv", "tsv"])
@pytest.mark.parametrize("left", ["train", "validation", "test"])
def test_datasets_opens_a_part_of_which_one_split_is_left(
    kind: str, left: str, related: Path, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    row = by_split(related)[left][0]
    where = f"source = '{row['source']}' AND line = {row['line']}"
    run(related, "--where", where, "-f", kind, "-o", tmp_path / "part")
    assert read_manifest(tmp_path / "part").splits == {left: 1}
    assert verify(tmp_path / "part").problems == []
    loaded = datasets.load_dataset(str(tmp_path / "part"), cache_dir=str(tmp_path / "cache"))
    assert {name: rows["reference"][:] for name, rows in loaded.items()} == {left: [row["reference"]]}
    if kind == "parquet":
        assert open_published(tmp_path / "part").training.rows == (left == "train")
        run(tmp_path / "part", "--groups", "-o", tmp_path / "groups")
        loaded = datasets.load_dataset(str(tmp_path / "groups"), cache_dir=str(tmp_path / "cache"))
        assert {name: rows["pairs"][:] for name, rows in loaded.items()} == {left: [1]}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with every column."""
    root = tmp_path_factory.mktemp("small")
    pairs = related_pairs(60)
    for field in COLUMNS.values():
        if field.name not in (*pairs.column_names, "group", "first_row", "repeats"):
            pairs = pairs.append_column(field, pa.nulls(60, field.type))
    publish_pairs(root, table=pairs)
    return root / "corpus"


@pytest.mark.parametrize("name", sorted({*COLUMNS} - {"first_row", "repeats"}))
@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "SELECT {} FROM corpus"),
        ("query", "SELECT count(*) FROM corpus GROUP BY {}"),
        ("sample", "--where", "{} IS NOT NULL AND 1 < 2"),
    ],
)
def test_a_column_is_understood_or_quotation_marks_are_asked_for(
    name: str, arguments: tuple[str, ...], small: Path
) -> None:
    command, *more = (one.replace("{}", name) for one in arguments)
    quoted = [one.replace("{}", f'"{name}"') for one in arguments[1:]]
    run_command(command, small, *quoted)
    try:
        run_command(command, small, *more)
    except InputError as error:
        assert f'the column is "{name}", in quotation marks' in str(error)


def test_other_mistakes_have_other_words(small: Path) -> None:
    for query in ("SELECT nothing FROM corpus GROUP BY 1", "PIVOT corpus ON source USING ,"):
        with pytest.raises(InputError) as error:
            run_command("query", small, query)
        assert "word of SQL" not in str(error.value)
