"""Parsing of many sentences: each is parsed once, also after an interruption."""

from pathlib import Path

import pyarrow as pa
import pytest

from paraforge import versions
from paraforge.base.errors import Interrupted, WorkLockedError
from paraforge.base.parsing import parse
from paraforge.base.parsing.parse import Parses, parse_sentences
from paraforge.base.shards.resources import Resources

SENTENCES = [f"sentence {number}" for number in range(60)]


class CountingParser:
    """Gives a tree to six of seven sentences, and counts calls."""

    fingerprint = "f" * 64

    def __init__(self, stop_after: int = 10**9) -> None:
        self.seen: list[str] = []
        self.stop_after = stop_after

    def parse(self, sentences: list[str]) -> list[str | None]:
        if len(self.seen) >= self.stop_after:
            raise Interrupted()
        self.seen += sentences
        return [_tree(sentence) for sentence in sentences]


def _tree(sentence: str) -> str | None:
    number = int(sentence.split()[1])
    return None if number % 7 == 0 else f"(S (NP word) (VP{number} word))"


def _run(monkeypatch: pytest.MonkeyPatch, root: Path, parser: CountingParser, texts: list[str]) -> Parses:
    monkeypatch.setattr(parse, "open_parser", lambda name: parser)
    monkeypatch.setattr(parse, "SENTENCES_PER_SHARD", 10)
    return parse_sentences(
        [pa.array(texts[:20]), pa.array(texts[20:])], "any", Resources(work=root, workers=2)
    )


def test_each_sentence_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = CountingParser()
    given = [*SENTENCES[:25], *SENTENCES[:40]]
    found = _run(monkeypatch, tmp_path, parser, given)
    assert sorted(parser.seen) == sorted(SENTENCES[:40])
    trees = found.of(pa.array(["other", *given])).to_pylist()
    wanted = [tree and tree.replace(" word", "") for tree in map(_tree, given)]
    assert trees == [None, *wanted]
    assert found.parsed == 40 - 6
    assert parse._skeleton("(S (NP") is None  # brackets that do not match
    # a later run, with some that are new
    parser.seen.clear()
    again = _run(monkeypatch, tmp_path, parser, SENTENCES[30:])
    assert sorted(parser.seen) == sorted(SENTENCES[40:])
    # what only others asked for is not among them
    assert again.of(pa.array(SENTENCES[:30])).null_count == 30
    assert len(again.keys) == 30
    # trees of another version of the step are of no use
    parser.seen.clear()
    monkeypatch.setattr(versions, "PARSES", versions.PARSES + 1)
    _run(monkeypatch, tmp_path, parser, SENTENCES)
    assert sorted(parser.seen) == sorted(SENTENCES)


def test_parsing_resumes_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _run(monkeypatch, tmp_path / "whole", CountingParser(), SENTENCES)
    for stop_after in range(0, 60, 15):
        root = tmp_path / str(stop_after)
        with pytest.raises(Interrupted):
            _run(monkeypatch, root, CountingParser(stop_after), SENTENCES)
        left = CountingParser()
        found = _run(monkeypatch, root, left, SENTENCES)
        assert found.keys.equals(whole.keys)
        assert found.trees.equals(whole.trees)
        assert len(left.seen) <= 60 - stop_after // 10 * 10 + 10


def test_two_runs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run is refused and does not disturb the first."""

    class Second(CountingParser):
        def parse(self, sentences: list[str]) -> list[str | None]:
            with pytest.raises(WorkLockedError, match="in use by process"):
                _run(monkeypatch, tmp_path, CountingParser(), SENTENCES)
            return super().parse(sentences)

    assert _run(monkeypatch, tmp_path, Second(), SENTENCES).parsed == 60 - 9
    assert [path.name for path in (tmp_path / "parses").iterdir()] == [f"parse-{versions.PARSES}-ffffffff"]


def test_no_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _run(monkeypatch, tmp_path, CountingParser(), [])
    assert found.of(pa.array(["sentence 1"])).to_pylist() == [None]
