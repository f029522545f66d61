"""What ``paraforge score`` says of a file: the verdict, its sources, and pairs below a minimum."""

import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.corpus.selection.test_score_file import run, tsv


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


def test_the_verdict_is_that_of_the_wrong_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(own_pairs(400)), encoding="utf-8")
    said = run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet")
    assert re.search(r"Paraphrase score: AUC (0\.99\d|1\.000)", said)
    assert re.search(
        r"0\.\d+ would let at most 1 in 100 through \(95% confidence\) and keep (more than 99|9\d|100)% of",
        said,
    )
    assert "rejected" not in pq.read_schema(tmp_path / "scored.parquet").names


@pytest.mark.parametrize("option", [("--minimum", "0.8"), ("--wrong-pairs", "0.05")])
def test_refused_pairs_have_a_reason_and_stay(tmp_path: Path, option: tuple[str, str]) -> None:
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


def test_earlier_reasons_stay_and_sources_are_judged_apart(tmp_path: Path) -> None:
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


def test_another_language_is_noticed(tmp_path: Path) -> None:
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
def test_no_wrong_pairs_no_verdict(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    (tmp_path / "pairs.tsv").write_text(tsv(pairs), encoding="utf-8")
    said = run(tmp_path / "pairs.tsv", tmp_path / "scored.parquet", "--minimum", "-1")
    assert "The scores cannot be checked: no two rows of a source differ on both sides" in said
    assert pq.read_table(tmp_path / "scored.parquet")["rejected"].null_count == len(pairs)
