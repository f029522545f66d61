"""The recipe of the built-in scorer on a tiny WordNet and a tiny model."""

from pathlib import Path

import numpy as np
import torch

from paraforge.base.text.units import parts_of_words
from paraforge.base.text.vocabulary import UNKNOWN, Vocabulary
from paraforge.corpus.scoring.word_scorer import WordScorer
from paraforge.embeddings.encoders.averages import Average
from paraforge.embeddings.encoders.parameters import AverageParameters
from paraforge.embeddings.trainer.model import SentenceModel
from scripts.train_scorer import TRAINED_ON, wordnet_pairs, write_pairs, write_scorer

CAT = '00000001 05 n 03 cat 0 true_cat 0 moggy(p) 1 000 | a small animal; "the cat sat"\n'
LICENSE = "  1 This software and database is being provided to you\n"


def test_wordnet_pairs_of_synonyms_and_definitions(tmp_path: Path) -> None:
    for part in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text(LICENSE + (CAT if part == "noun" else ""), encoding="utf-8")
    synonyms, definitions = wordnet_pairs(tmp_path)
    assert sorted(synonyms) == [("cat", "moggy"), ("cat", "true cat"), ("true cat", "moggy")]
    assert definitions == [("cat, true cat, moggy", "a small animal")]


def test_equal_and_repeated_pairs_are_excluded(tmp_path: Path) -> None:
    pairs = [("a", "b"), ("a ", "b"), ("c", "c"), ("", "d"), ("e\tf", "g"), ("b", "a")]
    assert write_pairs(tmp_path / "pairs.tsv", pairs) == 2
    assert (tmp_path / "pairs.tsv").read_text(encoding="utf-8") == "a\tb\nb\ta\n"


def test_model_converts_to_scorer_reproducibly(tmp_path: Path) -> None:
    words = ["cat", "dog", "sat"]
    units = [UNKNOWN, *parts_of_words(words).vocabulary]
    table = torch.randn(len(units), 16, generator=torch.Generator().manual_seed(1))
    parameters = AverageParameters(unit="word_trigram", dimension=16)
    model = SentenceModel(
        Average(torch.nn.Parameter(table), "word_trigram"),
        parameters,
        {"word_trigram": Vocabulary(units)},
        about={"signature": "pairs:3"},
    )
    contents = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_scorer(model, dict.fromkeys(TRAINED_ON, 3), tmp_path / name)
        contents.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert contents[0] == contents[1]
    scorer = WordScorer.open(tmp_path / "first")
    assert [part["pairs"] for part in scorer.about["trained_on"]] == [3] * 5
    # The mean of a text's units under the model points where the sum of its words' vectors does.
    for text in (["cat"], ["dog", "sat"]):
        summed, mean = scorer.vectors.of_words(text).sum(axis=0), model.encode(" ".join(text))
        cosine = summed @ mean / np.linalg.norm(summed) / np.linalg.norm(mean)
        assert cosine > 0.999
