"""The lexical table against a slow model, and lines out of step."""

import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.shards.resources import Resources
from paraforge.base.text.tokens import tokenize_column
from paraforge.corpus.scoring import corpus_counts, lexical_learning
from paraforge.corpus.scoring.corpus_counts import CorpusCounts, count_corpus
from paraforge.corpus.scoring.lexical_learning import ROUNDS, drawn_rows, learn, learn_corpus
from paraforge.corpus.scoring.lexical_table import CHANCE, LexicalTable, foreign_units, units_of
from paraforge.corpus.scoring.out_of_step import Blocks, Stretch, warn_of
from paraforge.corpus.scoring.verdict import area
from tests.corpus.scoring.test_score import counted
from tests.corpus.selection.corpora import write_shards

Row = tuple[str | None, str | None]


def bitext(count: int, seed: int = 1) -> list[Row]:
    """Sentences of 400 words, the first ones frequent, translated word by word with one word left out."""
    dice = random.Random(seed)
    weights = [1 / (rank + 5) for rank in range(400)]
    found: list[Row] = []
    for _ in range(count):
        words = dice.choices(range(400), weights, k=dice.randint(3, 12))
        left_out = dice.randrange(len(words))
        foreign = " ".join(f"{chr(97 + word % 26)}{chr(97 + word // 26)}ž" for word in words)
        own = [f"{chr(97 + word // 26)}q{chr(97 + word % 26)}" for word in words]
        found.append((foreign, " ".join(own[:left_out] + own[left_out + 1 :])))
    return found


def table(rows: list[Row]) -> pa.Table:
    foreign, references = zip(*rows, strict=True)
    return pa.table(
        {"source_text": pa.array(foreign, pa.string()), "reference": pa.array(references, pa.string())}
    )


def scores(lexical: LexicalTable, rows: list[Row]) -> np.ndarray:
    texts = table(rows)
    return lexical.similarities(
        foreign_units(texts["source_text"]), units_of(tokenize_column(texts["reference"]))
    )


def shifted(rows: list[Row]) -> list[Row]:
    return [(first[0], second[1]) for first, second in zip(rows, rows[1:] + rows[:1], strict=True)]


def nearness(i: int, rows: int, j: int, columns: int) -> float:
    return 0.9 ** (1 + int(32 * abs((i + 0.5) / rows - (j + 0.5) / columns)))


def learn_slowly(
    rows: list[list[list[str]]],
) -> tuple[dict[tuple[str, str], list[float]], list[Counter[str]]]:
    """Probabilities of the pairs of words both ways, and the counts of each side."""
    counts = [Counter(word for row in rows for word in row[side]) for side in (0, 1)]
    met = Counter((f, e) for one, two in rows for f in {*one} for e in {*two})
    known = {pair for pair in met if met[pair] > 1 and min(counts[k][pair[k]] for k in (0, 1)) > 1}
    chance = [{word: count / c.total() for word, count in c.items()} for c in counts]
    links = {pair: [1e-3, 1e-3] for pair in known}
    for _ in range(ROUNDS):
        expected: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for both in rows:
            for side in (0, 1):
                for j, word in enumerate(both[1 - side]):
                    if counts[1 - side][word] < 2:
                        continue
                    near = [
                        nearness(i, len(both[side]), j, len(both[1 - side])) for i in range(len(both[side]))
                    ]
                    pairs = [(other, word) if side == 0 else (word, other) for other in both[side]]
                    given = [
                        w * links[p][side] if p in known else 0 for w, p in zip(near, pairs, strict=True)
                    ]
                    all_given = sum(given) + CHANCE / (1 - CHANCE) * sum(near) * chance[1 - side][word]
                    for pair, one in zip(pairs, given, strict=True):
                        expected[pair][side] += one / all_given
        totals: list[dict[str, float]] = [defaultdict(float), defaultdict(float)]
        for pair in known:
            for side in (0, 1):
                totals[side][pair[side]] += expected[pair][side]
        links = {
            pair: [max(0, expected[pair][side] - 1) / max(1, totals[side][pair[side]]) for side in (0, 1)]
            for pair in known
        }
    return links, counts


def slow_score(
    both: list[list[str]], links: dict[tuple[str, str], list[float]], counts: list[Counter[str]]
) -> float:
    gained = information = 0.0
    for side in (0, 1):
        for j, word in enumerate(both[1 - side]):
            near = [nearness(i, len(both[side]), j, len(both[1 - side])) for i in range(len(both[side]))]
            pairs = [(other, word) if side == 0 else (word, other) for other in both[side]]
            given = [1 if p[0] == p[1] else links.get(p, [0, 0])[side] for p in pairs]
            share = sum(w * g for w, g in zip(near, given, strict=True)) / sum(near)
            count = counts[1 - side][word]
            chance = (count if count > 1 else 1) / counts[1 - side].total()
            gained += math.log(CHANCE + (1 - CHANCE) * share / chance)
            information -= math.log(chance)
    return gained / information


def test_learning_and_scores_match_a_slow_model() -> None:
    rows = [
        ("a1 b2", "b2 c3"),
        ("alone alone", "once once"),
        *bitext(120),
        ("žluť xyz", "yellow"),
        *[("pes", "dog")] * 3,
    ]
    split = [[(side or "").split() for side in row] for row in rows]
    split[-4] = [["žluť", "xyz"], ["yell"]]
    links, counts = learn_slowly(split)
    lexical = learn(table(rows))
    units = (lexical.foreign.units.to_pylist(), lexical.reference.units.to_pylist())
    found = {
        (units[0][f], units[1][e]): pair for (f, e), pair in zip(lexical.links, lexical.shares, strict=True)
    }
    assert found.keys() == {pair for pair, both in links.items() if max(both) >= 1e-3}
    assert len(found) > 50
    for pair, both in found.items():
        assert both == pytest.approx(links[pair], abs=1e-6)
    expected = [slow_score(both, links, counts) for both in split]
    assert scores(lexical, rows) == pytest.approx(expected, abs=2e-4)


def test_mismatched_rows_score_low_even_if_learned_from() -> None:
    rows = bitext(3000)
    wrong = shifted(rows[:900])
    lexical = learn(table([*wrong, *rows[900:]]))
    new = bitext(500, seed=2)
    assert area(scores(lexical, rows[900:]), scores(lexical, wrong)) > 0.97
    assert area(scores(lexical, new), scores(lexical, shifted(new))) > 0.97


def test_nothing_is_learned_from_shuffled_text() -> None:
    dice = random.Random(3)
    rows = bitext(3000)
    references = [row[1] for row in rows]
    dice.shuffle(references)
    wrong = [(row[0], reference) for row, reference in zip(rows, references, strict=True)]
    lexical = learn(table(wrong))
    assert area(scores(lexical, wrong), scores(lexical, shifted(wrong))) < 0.8


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("Nejkrásnější DŮM, 2024!", ["nejk", "dům", "2024"]),
        ("1 234,5 x", ["1", "234", "5", "x"]),
        ("我们 12人ラーメン", ["我", "们", "12", "人", "ラ", "ー", "メ", "ン"]),
        ("-- ?", []),
        (None, []),
    ],
)
def test_units(text: str | None, units: list[str]) -> None:
    assert foreign_units(pa.array([text, "x"], pa.string())).rows() == [units, ["x"]]


def test_rows_without_words_have_no_score_and_equal_numbers_match() -> None:
    lexical = learn(table(bitext(50)))
    found = scores(lexical, [(None, "x"), ("x", "."), ("2024", "2024"), ("2024", "2025"), ("to", "to")])
    assert np.isnan(found).tolist() == [True, True, False, False, False]
    assert found[2] > 0.9 > 0 > found[3] == found[4]
    nothing = LexicalTable.of_table(learn(drawn_rows([])).table())
    assert np.isfinite(scores(nothing, [("a", "b")])).all()
    of_one_word = [("ano!", "yes!"), ("ano ano", "yes"), ("ano", "yes yes")]
    assert np.isnan(scores(learn(table(of_one_word)), of_one_word)).all()


def test_rows_longer_than_the_alignment_window_are_scored() -> None:
    lexical = learn(table(bitext(50)))
    words = " ".join(map(str, range(1000, 1400)))
    same, other = scores(lexical, [(words, words), (words, words[::-1])])
    assert same > 0.1 > 0 > other


def test_drawn_rows_do_not_depend_on_shard_boundaries() -> None:
    rows = bitext(500)
    texts = table(rows).append_column("rank", pa.array([k % 2 if k % 4 else None for k in range(500)]))
    texts = texts.append_column("rejected", pa.array(["blank" if k % 5 == 0 else None for k in range(500)]))
    whole = drawn_rows([texts], 40)
    for size in (7, 100):
        cut = drawn_rows((texts.slice(first, size) for first in range(0, 500, size)), 40)
        assert cut.equals(whole)
    assert whole.num_rows == 40 and whole["key"].to_pylist() == sorted(whole["key"].to_pylist())
    usable = {rows[k][0] for k in range(500) if k % 2 == 0 and k % 5}
    assert set(whole["source_text"].to_pylist()) <= usable
    assert set(drawn_rows([texts])["source_text"].to_pylist()) == usable


def test_learning_uses_rows_whose_sides_have_1_to_400_characters() -> None:
    sides = ["a" * 400, "b" * 401, "", None, "c"]
    rows: list[Row] = [(side, other) for side in sides for other in sides]
    drawn = drawn_rows([table(rows)]).select(["source_text", "reference"])
    assert {*zip(*drawn.to_pydict().values(), strict=True)} == {
        (side, other) for side in sides[::4] for other in sides[::4]
    }


def test_learning_stops_at_the_maximum_number_of_word_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(bitext(300))
    few = learn(rows.slice(0, 100))
    cells = foreign_units(rows["source_text"]).lengths * units_of(tokenize_column(rows["reference"])).lengths
    monkeypatch.setattr(lexical_learning, "MOST_CELLS", int(cells[:100].sum()))
    assert learn(rows).links.tolist() == few.links.tolist()


def learn_table(texts: pa.Table) -> LexicalTable:
    return learn(drawn_rows([texts]))


@pytest.mark.parametrize(
    ("module", "function", "learn_once", "of_table", "kind"),
    [
        (lexical_learning, "learn", learn_corpus, learn_table, LexicalTable),
        (corpus_counts, "count_shard", count_corpus, counted, CorpusCounts),
    ],
)
def test_learning_runs_once_and_does_not_depend_on_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    module: Any, function: str, learn_once: Any, of_table: Any, kind: Any,
) -> None:  # fmt: skip
    def write(name: str, texts: pa.Table) -> Path:
        texts = texts.append_column("translation", pa.array(["x"] * len(texts)))
        return write_shards(texts, tmp_path / name, 30)

    texts = table(bitext(200))
    corpus, resources = write("corpus", texts), Resources(work=tmp_path / "work", workers=1)
    path, key = learn_once(corpus, resources)
    others = Resources(work=tmp_path / "others", workers=3, in_process_rows=0)
    again, same = learn_once(corpus, others)
    assert (again.read_bytes(), same) == (path.read_bytes(), key)
    expected = of_table(texts.append_column("translation", pa.array(["x"] * 200)))
    assert kind.open(path).table().equals(expected.table())
    with monkeypatch.context() as patch:
        patch.setattr(module, function, None)
        assert learn_once(corpus, resources) == (path, key)
    path.write_bytes(path.read_bytes()[:-20])  # half a file is not believed
    assert learn_once(corpus, resources) == (path, key)
    assert path.read_bytes() == again.read_bytes()
    assert learn_once(write("longer", table(bitext(201))), resources)[1] != key
    monkeypatch.setattr(module, "SCORE", 99)
    assert learn_once(corpus, resources)[0] != path


def rows(source: str, similarity: Any, first: int = 1) -> pa.Table:
    count = len(similarity)
    return pa.table(
        {
            "source": pa.array([source] * count, pa.string()),
            "line": np.arange(first, first + count),
            "source_similarity": pa.array(similarity, pa.float32(), from_pandas=True),
        }
    )


def test_a_missing_line_shifts_a_stretch_out_of_step() -> None:
    pairs = bitext(6_000)
    foreign, reference = map(list, zip(*pairs, strict=True))
    foreign[2_000:4_000] = [*foreign[2_001:4_000], foreign[2_000]]
    text = pa.table({"source_text": foreign, "reference": reference})
    lexical = learn(drawn_rows([text]))
    units = foreign_units(text["source_text"]), units_of(tokenize_column(text["reference"]))
    blocks = Blocks()
    blocks.add(rows("news", lexical.similarities(*units)))
    (found,) = blocks.out_of_step()["news"]
    assert (found.first, found.last) == (2_001, 4_000)
    assert found.similarity < 0 < 0.1 < found.usual


def test_out_of_step_stretches_are_whole_blocks_with_mean_similarities() -> None:
    similarity = np.full(4_000, 0.4)
    similarity[1_000:2_000], similarity[2_500:3_000] = -0.1, -0.2
    similarity[::7] = np.nan
    blocks = Blocks()
    for first in range(0, 4_000, 130):  # however it is cut
        blocks.add(rows("a", similarity[first : first + 130], first + 1))
    blocks.add(rows("b", np.full(2_000, 0.3)))
    blocks.add(rows("c", np.concatenate([np.full(2_500, 0.4), np.full(100, -0.5)])))  # just enough
    blocks.add(rows("d", np.concatenate([np.full(2_500, 0.1), np.full(500, -0.1)])))
    blocks.add(rows("e", np.concatenate([np.full(1_000, 0.4), np.full(1_500, -0.1)])))  # most of it
    assert blocks.out_of_step() == {
        "a": [Stretch(1_001, 2_000, -0.1, 0.4), Stretch(2_501, 3_000, -0.2, 0.4)],
        "c": [Stretch(2_501, 3_000, -0.5, 0.4)],
        "d": [Stretch(2_501, 3_000, -0.1, 0.1)],
        "e": [Stretch(1_001, 2_500, -0.1, 0.4)],
    }


@pytest.mark.parametrize(
    ("similarity", "why"),
    [
        (np.full(3_000, -0.1), "all is shifted, or no word is known: another check finds that"),
        (np.concatenate([np.full(2_500, 0.4), np.full(99, -0.5)]), "99 lines are too few"),
        (np.concatenate([np.full(2_500, 0.4), np.full(500, 0.0)]), "zero is not below zero"),
        (np.full(3_000, np.nan), "no foreign side"),
        (np.zeros(0), "nothing"),
    ],
)
def test_stretches_that_are_not_out_of_step(similarity: Any, why: str) -> None:
    blocks = Blocks()
    blocks.add(rows("a", similarity))
    assert blocks.out_of_step() == {}, why


def test_the_warning_names_source_and_lines(caplog: pytest.LogCaptureFixture) -> None:
    few, many = ([Stretch(1_001, 2_000, -0.1, 0.4)] * count for count in (5, 6))
    warn_of({"news": many, "web": few, "": [Stretch(501, 1_000, -0.2, 0.3)]})
    assert "source news is out of step in lines 1,001 to 2,000" in caplog.text
    assert caplog.text.count(" more:") == caplog.text.count("and 1 more:") == 1
    assert "from line 501 on" in caplog.text and "the file is out of step" in caplog.text
