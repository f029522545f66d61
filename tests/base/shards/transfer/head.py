"""Translates and scores a corpus: ``python -m tests....transfer.head PLACE SCHEDULER RATE``."""

import logging
import sys
from pathlib import Path

from paraforge.base.shards import transfer
from paraforge.base.shards.resources import Resources
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.scoring.score import score
from paraforge.translation.stage.parameters import TranslateParameters
from paraforge.translation.stage.translate import translate
from tests.base.shards.transfer.hosts import PATIENCE_SECONDS
from tests.translation.stage.test_population import write_corpus

SENTENCES = [f"věta {number} " + "slovo " * (number % 11) for number in range(600)]
OUTPUTS = ("translated", "scored")


def corpus_of(place: Path, scheduler: str | None = None, rate: float = 0.0) -> None:
    """Make ``translated`` and ``scored`` of ``in`` in a directory, on the workers of a scheduler or here.

    rate: sentences that a worker translates in a second; 0 is as many as it can.
    """
    values = {"workers": 1, "scheduler": scheduler, "work": place / "work"}
    resources = Resources.model_validate(values)
    if not (place / "in").is_dir():
        write_corpus(place / "in", SENTENCES, rejected={3, 77, 200}, rows=100)
    fake = {"sentences_per_second": rate, "fail_pattern": "9 slovo", "defects": 0.05}
    parameters = {"engine": "fake", "sentences_per_task": 30, "nbest": 2, "fake": fake}
    translated = place / "translated"
    translate(
        TranslateParameters.model_validate(parameters), place / "in", place / "none", translated, resources
    )
    score(ScoreParameters(), translated, general.DIRECTORY, place / "scored", resources)


if __name__ == "__main__":
    transfer.PATIENCE_SECONDS = PATIENCE_SECONDS
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    corpus_of(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
