"""Imported by a process that others are forked from: what is compiled and the languages' model are loaded."""

import pyarrow as pa

from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.lexical_learning import drawn_rows, learn
from paraforge.corpus.scoring.score import build_scorers, score_table

_TEXTS = [f"A dog {number % 7} runs in the park {number % 5}." for number in range(100)]
_TABLE = pa.table({"source_text": _TEXTS, "reference": _TEXTS, "translation": _TEXTS[3:] + _TEXTS[:3]})
score_table(
    _TABLE, build_scorers(general.DIRECTORY, lexical=learn(drawn_rows([_TABLE])), identify_language=True)
)
