"""Evaluation of lexicons: correlations and reference lexicons."""

import gzip
import json
from pathlib import Path

import pytest

from experiments.programs import app
from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.embeddings.evaluation.word_lists import correlate
from paraforge.papers.lexicon_evaluation import (
    ReferenceLexicon,
    evaluate_lexicon,
    lexicon_scores,
    read_lists,
    read_reference_lexicon,
    shared_correlations,
)
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.lookup import Lexicon
from paraforge.products.lexicon.parameters import LexiconParameters
from tests.here import run_command
from tests.products.lexicon.corpora import write_corpus, zipf_corpus


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Lexicon:
    """A lexicon of random words."""
    tmp_path = tmp_path_factory.mktemp("lexicon")
    extract_lexicon(
        [write_corpus(tmp_path / "corpus", zipf_corpus(300, words=40))],
        tmp_path / "lexicon",
        LexiconParameters(minimum_pairs=4),
        Resources(workers=1, work=tmp_path / "work"),
    )
    return Lexicon(tmp_path / "lexicon")


@pytest.mark.parametrize("minimum_pairs", [1, 6])
def test_lexicon_scores_come_from_entries(lexicon: Lexicon, minimum_pairs: int) -> None:
    pairs = [(f"w{u}", f"w{v}") for u in range(0, 40, 3) for v in range(1, 40, 5)]
    scores = lexicon_scores(lexicon, pairs, minimum_pairs)
    entries = lexicon.entries({word for pair in pairs for word in pair}).to_pylist()
    wanted = {pair for u, v in pairs for pair in ((u, v), (v, u))}
    assert any(e["pairs"] == 6 for e in entries)
    enough = [e for e in entries if e["pairs"] >= minimum_pairs]
    expected = {(e["word"], e["paraphrase"]): e["adjusted_pmi"] for e in enough}
    assert scores["adjusted_pmi"] == {pair: value for pair, value in expected.items() if pair in wanted}


@pytest.mark.parametrize("name", ["cross_pmi", "adjusted_pmi"])
def test_scores_of_shared_pairs_are_correlated(lexicon: Lexicon, name: str) -> None:
    """The reference has the lexicon's own scores, for pairs in one order, the other, or both."""
    entries = lexicon.entries([f"w{number}" for number in range(40)]).to_pylist()
    own = {(e["word"], e["paraphrase"]): e[name] for e in entries if e["word"] < e["paraphrase"]}
    scores: dict[tuple[str, str], float] = {("w0", "absent"): 9.0}
    for number, ((first, second), score) in enumerate(own.items()):
        if number % 3 != 1:
            scores[first, second] = score - 7 * (number % 3 == 2)
        if number % 3 != 0:
            scores[second, first] = score + 7 * (number % 3 == 2)
    assert len(own) > 10
    assert shared_correlations(lexicon, ReferenceLexicon("list", scores, True))[name] == 100
    reverse = ReferenceLexicon("list", {pair: -score for pair, score in scores.items()}, True)
    assert shared_correlations(lexicon, reverse)[name] == -100


def test_table_13(lexicon: Lexicon, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("w0\tw1\t3\nw2\tw3\t1\nw4\tnowhere\t2\n", encoding="utf-8")
    (tmp_path / "ppdb.txt").write_text("w0\tw1\n", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ppdb.txt").write_text("w0\tw1\nw2\tw3\n", encoding="utf-8")
    lists = read_lists([tmp_path / "list.txt"], [tmp_path / "ppdb.txt", tmp_path / "other" / "ppdb.txt"])
    row = evaluate_lexicon(lexicon.path, lists)["list"]
    assert row["pairs"] == 3
    assert row["found"] == 2
    assert -100 <= row["adjusted_pmi"] <= 100
    # 1 0 0 against 3 1 2: ranks 3 1.5 1.5 against 3 1 2
    assert row["ppdb.txt"] == {"found": 1, "spearman": 86.6} and row["ppdb.txt (2)"]["found"] == 2
    assert evaluate_lexicon(lexicon.path, lists, minimum_pairs=10_000)["list"]["found"] == 0


def test_command_flattens_figures(lexicon: Lexicon, tmp_path: Path) -> None:
    (tmp_path / "SimLex-999.txt").write_text("w0\tw1\t3\nw2\tw3\t1\nw4\tnowhere\t2\n", encoding="utf-8")
    entries = lexicon.entries(["w0", "w1", "w2"]).to_pylist()
    text = "".join(f"{e['word']}\t{e['paraphrase']}\t{e['cross_pmi']}\n" for e in entries)
    (tmp_path / "ppdb-2.0.txt").write_text(text, encoding="utf-8")
    (tmp_path / "ppdb-1.0.txt").write_text("w0\tw1\n", encoding="utf-8")

    def figures_with(*ppdb: str) -> dict[str, float | None]:
        given = [part for name in ppdb for part in ("--ppdb", tmp_path / name)]
        words = ("-w", tmp_path / "SimLex-999.txt", *given, "-o", tmp_path / "figures.json")
        run_command("lexicon-evaluate", lexicon.path, *words, app=app)
        return dict(json.loads((tmp_path / "figures.json").read_text())["figures"])

    figures = figures_with("ppdb-2.0.txt")
    row = evaluate_lexicon(lexicon.path, read_lists([tmp_path / "SimLex-999.txt"]))["SimLex-999"]
    assert figures["simlex_found"] == 2 and figures["adjusted_pmi_simlex"] == row["adjusted_pmi"]
    assert figures["cross_pmi_ppdb"] == 100 and "ppdb_simlex" in figures
    both = figures_with("ppdb-2.0.txt", "ppdb-1.0.txt")  # neither hides the other
    assert both["ppdb_2_0_txt_simlex"] == figures["ppdb_simlex"] != both["ppdb_1_0_txt_simlex"]


@pytest.mark.full
def test_ppdb_membership_is_a_baseline(data_directory: Path) -> None:
    """A list of PPDB XXXL pairs without scores gives 52.4 on SimLex-999."""
    ppdb = next((data_directory / "ppdb").glob("ppdb-1.0-xxxl-lexical*"))
    lists = read_lists([data_directory / "wordsim" / "SimLex-999.txt"], [ppdb])
    result = correlate(lists.judgments[0], read_reference_lexicon(ppdb).scores)
    assert result.spearman == pytest.approx(52.4, abs=0.05)
    assert result.pairs == 999


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


PPDB = """\
[NN] ||| dog ||| hound ||| PPDB2.0Score=4.5 PPDB1.0Score=3.1 -logp(LHS|e1)=0.1 ||| 0-0 ||| Equivalence
[NN] ||| Dog ||| Puppy ||| PPDB2.0Score=5.0 PPDB1.0Score=3.1 ||| 0-0 ||| ForwardEntailment
[VB] ||| dog ||| hound ||| PPDB2.0Score=1.0 PPDB1.0Score=9.9 ||| 0-0 ||| Equivalence
[NN] ||| dog ||| hunting dog ||| PPDB2.0Score=6.0 ||| 0-0 ||| Equivalence
[NN] ||| hunting dog ||| dog ||| PPDB1.0Score=6.0 ||| 0-0 ||| Equivalence
"""


def test_ppdb(tmp_path: Path) -> None:
    """Of several parts of speech the first counts. Phrases are skipped."""
    path = tmp_path / "ppdb-2.0-s-lexical.gz"
    path.write_bytes(gzip.compress(PPDB.encode()))
    found = read_reference_lexicon(path)
    assert found.scored
    assert found.scores == {("dog", "hound"): 4.5, ("dog", "puppy"): 5.0}


@pytest.mark.parametrize("separator", ["\t", " "])
def test_pair_lists_are_read_in_both_orders(tmp_path: Path, separator: str) -> None:
    pairs = (("Dog", "hound"), ("dog", "dog"), ("puppy", "dog"))
    text = "".join(f"{separator.join(pair)}\n" for pair in pairs)
    found = read_reference_lexicon(write(tmp_path / "pairs.txt", text))
    assert not found.scored
    assert found.scores == {("dog", "hound"): 1.0, ("puppy", "dog"): 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[NN] ||| dog ||| hound\n", "ppdb:1: expected a PPDB entry"),
        (PPDB + "[NN] ||| dog ||| cat ||| PPDB2.0Score=high |||\n", "ppdb:6: PPDB2.0Score is 'high'"),
        ("dog hound 1.0 more\n", "ppdb:1: expected two words"),
        ("dog\thound\tmuch\n", "ppdb:1: the score 'much' is not a number"),
        ("dog\tdog\n", "the file has no pairs of words"),
    ],
)
def test_malformed_reference_lexicons(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_reference_lexicon(write(tmp_path / "ppdb", text))
