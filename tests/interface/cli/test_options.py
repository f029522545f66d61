"""Options of commands reach the functions that do the work."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import ANY, Mock

import pytest

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources, available_cores
from paraforge.corpus.scoring import general
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.corpus.selection.filters.bounds import BoundsParameters
from paraforge.products.lexicon.parameters import LexiconParameters
from paraforge.products.loading import load_fixed
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from tests.here import run_command

CORES = available_cores()
ALL_SCORES = {"identify_language": True, "languages": ["en", "cs"], "cross_encoder": "c"}


class Called(Exception):
    """The function was called: nothing more is to be done."""


def bound(score: str, **limits: Any) -> BoundsParameters:
    """A filter of the command score."""
    return BoundsParameters.model_validate({"kind": "bounds", "score": score, **limits})


def call(*given: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return given, named


# The function that does the work, the arguments, and what it is called with.
CASES: dict[str, tuple[str, str, Any]] = {
    "evaluate": (
        "embeddings.evaluation.evaluate:evaluate",
        "evaluate m --sts a --sts b --similarity c --by-length --baseline d --device cpu",
        call(
            "m",
            ANY,
            sts=[Path("a"), Path("b")],
            word_lists=[Path("c")],
            lengths=True,
            beside=["d"],
        ),
    ),
    "evaluate alone": (
        "embeddings.evaluation.evaluate:evaluate",
        "evaluate m",
        call("m", ANY, sts=[], word_lists=[], lengths=False, beside=[]),
    ),
    "embed": (
        "embeddings.inference.embed:embed_file",
        "embed m - a.npy --workers 3 --device cpu",
        call(Path("m"), Path("-"), Path("a.npy"), load_fixed, 3, "cpu"),
    ),
    "embed alone": (
        "embeddings.inference.embed:embed_file",
        "embed m texts a.npy",
        call(Path("m"), Path("texts"), Path("a.npy"), load_fixed, CORES, ANY),
    ),
    "export": (
        "embeddings.inference.export:export_model",
        "export m out --format word2vec",
        call(Path("m"), Path("out"), "word2vec"),
    ),
    "triplets": (
        "products.triplets.mining:mine_triplets",
        "triplets in out --encoder m --set negatives=5 --workers 3 --device cpu --work w",
        call(
            TripletsParameters(encoder="m", negatives=5),
            Path("in"),
            Path("out"),
            Resources(workers=3, devices=["cpu"], work=Path("w")),
        ),
    ),
    "triplets alone": (
        "products.triplets.mining:mine_triplets",
        "triplets in out",
        call(TripletsParameters(encoder="general"), Path("in"), Path("out"), Resources()),
    ),
    "lexicon extract": (
        "products.lexicon.extraction:extract_lexicon",
        "lexicon extract in out --aligned b --aligned c --set minimum_pairs=3 --workers 3 --work w",
        call(
            [Path("in"), Path("b"), Path("c")],
            Path("out"),
            LexiconParameters(minimum_pairs=3),
            Resources(workers=3, work=Path("w")),
        ),
    ),
    "model import": (
        "translation.models.importing:import_model",
        "model import a out --from de --to en",
        call("a", Path("out"), source_language="de", target_language="en"),
    ),
    "memory import": (
        "translation.memory.memory:import_file",
        "memory import a b --name n --memory .",
        call(Path("a"), Path(), "n"),
    ),
    "translate": (
        "translation.engines:open_translator",
        "translate texts out --model m --engine torch --beam 7 --nbest 3 --compute-type int8 --device cpu "
        "--threads 3 --set batch_tokens=9 --set length_penalty=0.5 --set x=1",
        call(
            "torch",
            Path("m"),
            DecodingOptions(beam=7, nbest=3, compute_type="int8", length_penalty=0.5),
            Placement("cpu", 3, 9),
            {"x": 1},
        ),
    ),
    "translate alone": (
        "translation.engines:open_translator",
        "translate texts out --nbest 12 --beam 12",
        call("ctranslate2", None, DecodingOptions(beam=12, nbest=12), Placement("auto", CORES, 0), {}),
    ),
    "paraphrase": (
        "products.paraphrasing.paraphraser:Paraphraser",
        "paraphrase texts out --model m --device cpu --threads 3",
        call(Path("m"), "cpu", 3),
    ),
    "score": (
        "corpus.selection.score_file:score_file",
        "score pairs.tsv out.parquet --vectors . --header --reference r --translation 3 --languages en,cs "
        "--cross-encoder c --minimum 0.5 --maximum contradiction=0.8 --wrong-pairs cross_encoder=0.01 "
        "--device cpu --workers 3",
        call(
            Path("pairs.tsv"),
            Path("out.parquet"),
            ScoreParameters.model_validate(ALL_SCORES),
            Path(),
            {"reference": "r", "translation": 3},
            True,
            Resources(workers=3, devices=["cpu"]),
            load_fixed,
            [
                bound("paraphrase_score", minimum=0.5),
                bound("contradiction", maximum=0.8, missing="accept"),
                bound("cross_encoder", minimum={"wrong_pairs": 0.01}),
            ],
        ),
    ),
    "score alone": (
        "corpus.selection.score_file:score_file",
        "score pairs.tsv out.parquet --languages all",
        call(
            Path("pairs.tsv"),
            Path("out.parquet"),
            ScoreParameters(identify_language=True),
            general.DIRECTORY,
            {"reference": 0, "translation": 1},
            False,
            Resources(devices=["cpu"]),
            load_fixed,
            [],
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_options_reach_function(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("texts", "pairs.tsv"):
        (tmp_path / file).write_text("a\tb\n")
    target, arguments, (given, named) = CASES[name]
    module, _, function = target.partition(":")
    work: Callable[..., Any] = Mock(side_effect=Called)
    monkeypatch.setattr(import_module(f"paraforge.{module}"), function, work)
    with pytest.raises(Called):
        run_command(*arguments.split())
    assert work.call_args == (given, named)


def test_memory_option_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="not a directory"):
        run_command("memory", "import", "a", "--name", "n", "--memory", tmp_path / "file")
