"""Benchmark programs on small data."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import distinct_pairs, engines, shortlist, speed
from benchmarks.distinct_pairs import DistinctPairs
from benchmarks.paraphrase import judge, measured
from benchmarks.results import append, read
from benchmarks.speed import TASK, judged, last_rate

NUMBERS = {"scores": [-1.0], "seconds": 1, "cpu_seconds": 1, "tokens": 2, "memory": 1}


def test_failed_engine_is_reported_and_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    monkeypatch.setattr(shortlist, "with_shortlist", lambda *_: 1.0)
    monkeypatch.setattr(shortlist, "read_bitext", lambda *_: (["A dog."], ["Pes."]))
    broken = {"fairseq"}

    def answer(_: str, task: Any) -> dict[str, Any]:
        cell = task["cell"]
        is_copy = Path(task["model"]).is_relative_to(shortlist.tempfile.gettempdir())
        if cell["engine"] in broken and not is_copy:
            return {"failed": "not installed"}
        return {**NUMBERS, "texts": ["A dog."]}

    monkeypatch.setattr(shortlist, "answer_of", answer)
    for one in ("fairseq", "ctranslate2"):
        broken.add(one)
        shortlist.main(Path("model"), [Path("b")], [Path("t.tsv.gz")], 1, 12, 2)
    lines = read(tmp_path / "shortlist.jsonl")
    assert [line.figures.get("as_without_percent") for line in lines] == [None, 100, None]
    assert "fairseq, float32: not installed" in capsys.readouterr().out


def test_comparison_needs_same_beam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    monkeypatch.setattr(engines, "read_bitext", lambda *_: (["A dog."], ["Pes."]))

    def answer(_: str, task: Any) -> dict[str, Any]:
        return {**NUMBERS, "texts": [f"Beam {task['cell']['beam']}."]}

    monkeypatch.setattr(engines, "answer_of", answer)
    engines.main(Path("model"), [Path("b")], 1, [1, 12], ["fairseq", "ctranslate2"], 2, "cpu")
    lines = read(tmp_path / "engines.jsonl")
    assert len(lines) == 6 and all(line.figures["as_fairseq_percent"] == 100 for line in lines)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARAFORGE_RESULTS", str(tmp_path))
    return tmp_path / f"{TASK}.jsonl"


def record(rate: float, name: str = "score", rows: int = 10) -> None:
    append(TASK, name, {"rows_per_second": rate}, command="make bench", rows=rows)


def test_latest_run_of_same_work_counts(results: Path) -> None:
    for rate in (5, 7):
        record(rate)
    record(8, rows=20)
    record(9, name="select")
    found = last_rate("score", {"rows": 10})
    assert found is not None and found[0] == 7


def test_translations_have_quality_and_rate() -> None:
    text = "The cat sat on the mat."
    figures = judged([text] * 4, 2.0, [text] * 4)
    assert figures["rows_per_second"] == 2
    assert figures["bleu"] == pytest.approx(100)


def test_missing_corpus_error_names_command(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="make corpus"):
        speed.main(tmp_path)


DICE = random.Random(3)
WORDS = [f"word{number}" for number in range(3000)]
SENTENCES = [DICE.choices(WORDS, range(3000, 0, -1), k=DICE.randint(5, 20)) for _ in range(400)]
# The other side has half of the words.
PAIRS = [
    (" ".join(words), " ".join([*words[::2], *DICE.choices(WORDS, k=len(words) // 2 + 3)]))
    for words in SENTENCES
]


@pytest.fixture(scope="module")
def made() -> DistinctPairs:
    return DistinctPairs([*PAIRS, ("too short", "too short, too"), PAIRS[0]])


def test_distinct_pairs_start_with_real_ones(made: DistinctPairs, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(made.pairs) == sorted(PAIRS)
    first = made.texts(np.arange(400))
    assert list(zip(*(side.to_pylist() for side in first), strict=True)) == made.pairs
    monkeypatch.setattr(distinct_pairs, "BLOCK", 70)
    for side in range(2):
        whole = made.texts(np.arange(1000))[side].to_pylist()
        blocks = made.blocks(1000)
        assert [text for block in blocks for text in block[side].to_pylist()] == whole


SOURCES = ["the dog runs in the park", "a cat sleeps on the mat"]
REFERENCES = [["a dog is running in a park", "a dog runs"], ["the cat is asleep", "a cat lies on a mat"]]


def test_copying_is_recognized() -> None:
    copied = judge(SOURCES, REFERENCES, SOURCES)
    assert copied["self_bleu"] == pytest.approx(100)
    assert copied["similarity"] == pytest.approx(1, abs=0.01)
    assert copied["overlap"] == copied["length"] == 1
    assert copied["ibleu"] == pytest.approx(0.8 * (copied["bleu"] or 0) - 20)


THREE = ["the dog runs in the park", "a cat sleeps on the mat", "one two"]
# Three of a dog, dog and runs are shared; of the other nothing.


def test_measured() -> None:
    found = measured(THREE, ["a dog runs", "one", ""])
    np.testing.assert_allclose(found["overlap"], [2 / 3, 0, np.nan], rtol=1e-6)
    np.testing.assert_allclose(found["length"], [3 / 6, 1 / 6, np.nan])
    assert 0 <= found["similarity"][1] < found["similarity"][0] < 1
    assert np.isnan(found["similarity"][2])
    assert measured(THREE, THREE)["similarity"] == pytest.approx([1, 1, 1], abs=0.01)
    assert {name: len(values) for name, values in measured([], []).items()} == dict.fromkeys(found, 0)
