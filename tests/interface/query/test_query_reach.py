"""What a query reaches: the corpus and nothing else, unless files are allowed; it changes nothing. How a
query ends when somebody stops it or reads no further."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import open_published
from paraforge.interface.query.database import open_database
from tests.interface.query.test_query import ask
from tests.project import digests, ends_politely, environment

# Hours of work for the database; Python has nothing to do meanwhile.
LONG = (
    "SELECT count(*) FROM range(100000) a, range(1000000) b, corpus WHERE hash(a.range, b.range) % 7 = line"
)


@pytest.fixture(autouse=True)
def secret(corpus: Path) -> None:
    """What is not to be read is there: an attempt does not fail for want of it."""
    (corpus.parent / "secret.txt").write_text("root:secret\n")


ATTEMPTS = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('{corpus}/../secret.txt')",
    "SELECT * FROM read_text('{corpus}/_manifest.json')",
    "SELECT * FROM read_parquet('{shard}/../../secret.txt')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM 'https://example.com/a.parquet'",
    "SELECT * FROM 's3://bucket/a.parquet'",
    "SELECT * FROM secret",
    "SELECT getenv('HOME')",
    "COPY (SELECT 1) TO '{outside}'",
    "COPY corpus TO '{outside}' (FORMAT parquet)",
    "COPY (SELECT 1) TO '{shard}' (FORMAT parquet)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{shard}' (FORMAT parquet)",
    "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{shard}' (FORMAT parquet)",
    "/* */ EXPLAIN ANALYZE COPY (SELECT 1) TO '{shard}' (FORMAT parquet)",
    "SELECT 1; COPY (SELECT 1) TO '{outside}'",
    "WITH a AS (COPY (SELECT 1) TO '{outside}') SELECT * FROM a",
    "EXPORT DATABASE '{outside}'",
    "IMPORT DATABASE '/etc'",
    "ATTACH '{outside}'",
    "ATTACH '{outside}' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/evil.duckdb_extension'",
    "FORCE INSTALL httpfs FROM 'https://example.com'",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "SET temp_directory = '/etc'",
    "SET memory_limit = '100GB'",
    "PRAGMA enable_profiling",
    "PRAGMA temp_directory = '/etc'",
    "CREATE TABLE t AS SELECT * FROM read_csv('/etc/passwd')",
    "CREATE SECRET s (TYPE s3)",
    "CREATE OR REPLACE VIEW corpus AS SELECT 1",
    "DROP VIEW corpus",
    "CALL enable_logging(storage = 'file')",
    "PREPARE p AS COPY (SELECT 1) TO '{outside}'",
    "EXECUTE p",
    "USE memory",
    "BEGIN",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_but_the_corpus_can_be_reached(corpus: Path, tmp_path: Path, attempt: str) -> None:
    secret = pa.table({"a": [1]})  # a variable that a statement must not find
    outside = tmp_path / "outside"
    before = digests(corpus)
    sql = attempt.format(corpus=corpus, shard=corpus / "shard-00000.parquet", outside=outside)
    with pytest.raises(InputError) as caught:
        ask(corpus, sql)
    assert caught.value.exit_code == 2
    assert "root:" not in str(caught.value)
    assert digests(corpus) == before
    assert not outside.exists()
    assert secret.num_rows == 1


@pytest.mark.parametrize("attempt", [attempt for attempt in ATTEMPTS if "COPY" not in attempt])
def test_the_database_itself_refuses(corpus: Path, tmp_path: Path, attempt: str) -> None:
    """Without the look at the kind of statement: what runs then has changed nothing but memory."""
    import duckdb

    before = digests(corpus)
    outside = tmp_path / "outside"
    sql = attempt.format(corpus=corpus, shard=corpus / "shard-00000.parquet", outside=outside)
    with open_database([open_published(corpus)]) as connection:
        try:
            rows = connection.execute(sql).fetchall()
        except duckdb.Error:
            rows = []
        assert "root:" not in str(rows)
        settings = connection.execute(
            "SELECT current_setting('enable_external_access'), current_setting('lock_configuration')"
        ).fetchall()
        assert settings == [(False, True)]
    assert digests(corpus) == before
    assert not outside.exists()


def test_files_are_open_to_who_asks(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("word\nold\n", encoding="utf-8")
    sql = f"SELECT count(*) AS n FROM corpus, '{tmp_path}/words.csv' WHERE contains(reference, word)"
    with pytest.raises(InputError, match="--allow-files"):
        ask(corpus, sql)
    assert json.loads(ask(corpus, sql, "--allow-files", "-f", "json"))[0]["n"] > 0
    ask(corpus, f"COPY (SELECT 1 AS a) TO '{tmp_path}/a.csv'", "--allow-files")
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"


def test_kinds_of_queries_that_are_allowed(corpus: Path) -> None:
    for sql in (
        "FROM corpus SELECT count(*)",
        "WITH a AS (SELECT 1 AS x) SELECT x FROM a",
        "DESCRIBE corpus",
        "SHOW TABLES",
        "SUMMARIZE corpus",
        "EXPLAIN SELECT count(*) FROM corpus",
        "EXPLAIN ANALYZE SELECT count(*) FROM corpus",
        "PIVOT corpus ON rank USING count(*) GROUP BY source",
        "VALUES (1)",
    ):
        assert ask(corpus, sql), sql


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
def test_ctrl_c_ends_a_query(corpus: Path, form: str) -> None:
    """In a process of its own, as a signal that a library swallows would otherwise hang the tests."""
    code = "import sys; sys.argv[0] = 'paraforge'; from paraforge.interface.cli import main; main()"
    command = [sys.executable, "-c", code, "query", str(corpus), LONG]
    with subprocess.Popen([*command, "-f", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert ends_politely(process)
        timer = threading.Timer(0.7, process.send_signal, (signal.SIGINT,))
        timer.start()
        try:
            _, error = process.communicate(timeout=120)
        finally:
            process.kill()
            timer.cancel()
    assert process.returncode == 130, error.decode()


@pytest.mark.parametrize("form", ["table", "csv", "tsv", "json", "jsonl"])
def test_a_closed_pipe_is_quiet(corpus: Path, form: str) -> None:
    """What ``| head -1`` does: the reader goes away in the middle of the output."""
    sql = "SELECT a.reference FROM corpus a, corpus b LIMIT 20000"
    with subprocess.Popen(
        ["paraforge", "query", str(corpus), sql, "-f", form, "--count", "20000"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read().decode()
        assert (process.wait(), error) == (0, "")
