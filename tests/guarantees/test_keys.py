"""Keys contain everything that decides a result, so that other parameters never reuse it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from paraforge.base.errors import InputError
from paraforge.base.shards.resources import Resources
from paraforge.corpus.scoring import score
from paraforge.corpus.scoring.parameters import ScoreParameters
from paraforge.embeddings.trainer import paragram, train_model
from paraforge.embeddings.trainer.data import TrainingData
from paraforge.embeddings.trainer.parameters import ModelParameters, PairFileParameters, ParagramParameters
from paraforge.intake.bitext import sources
from paraforge.intake.bitext.parameters import Cleaning
from paraforge.papers.unrolling import train_decoders
from paraforge.papers.unrolling.parameters import DecodersParameters
from paraforge.products.lexicon import extraction
from paraforge.products.lexicon.parameters import LexiconParameters
from paraforge.products.paraphrasing import stage as paraphraser_stage
from paraforge.products.paraphrasing.parameters import ParaphraserParameters
from paraforge.products.triplets import mining
from paraforge.products.triplets.parameters import TripletsParameters
from paraforge.translation.decoding.server import Server
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines.fake import Fake
from paraforge.translation.engines.imported import Imported
from paraforge.translation.stage import quantization, sentences
from paraforge.translation.training import stage as nmt
from paraforge.translation.training.parameters import NmtParameters
from tests.base.text.test_pair_blocks import write_corpus

FILE: Any = SimpleNamespace(reading=dict)
NO_DATA: Any = SimpleNamespace(fingerprint=lambda: "data", records=[])
SHORTLIST = DecodingOptions(shortlist=True)


def translated(
    options: Any = SHORTLIST, settings: Any = None, weights: str = "1", engine: str = "torch"
) -> Any:
    return sentences.EngineChoice(engine, options, settings or {}, weights, None).description()


@dataclass(frozen=True)
class Key:
    """A key as a function of parameters. ``free`` are the parameters that do not decide the result."""

    of: Callable[[Any], Any]
    parameters: BaseModel
    free: frozenset[str] = frozenset()


def key(of: Callable[[Any], Any], parameters: BaseModel, *free: str) -> Key:
    return Key(of, parameters, frozenset(free))


_OF_STAGE = ("model", "forward", "bitext")
# A training's own parameters are in the key of the model, not of its pairs.
_OF_TRAINING = ("vocabulary", "architecture", "training", "maximum_tokens", "language", "model")
_OF_VALIDATION = [
    name for name in type(ParaphraserParameters().validation).model_fields if name != "held_out"
]
KEYS = {
    "ingest": key(lambda one: sources.file_key(FILE, one, "bitext", 1, {}), Cleaning(), "duplicates"),
    "nmt": key(lambda one: nmt.training_key(one, NO_DATA), NmtParameters(), *_OF_STAGE),
    "translate": key(translated, SHORTLIST),
    "server": key(Server.result_settings, Server(), "concurrency", "timeout_seconds", "max_retries"),
    "fake": key(Fake.result_settings, Fake(), "sentences_per_second"),
    "imported": key(Imported.result_settings, Imported()),
    "quantized": key(lambda one: quantization._key("1", one), SHORTLIST),
    "paragram": key(lambda one: paragram._key(one, NO_DATA), ParagramParameters(), "built_in", "pair_files"),
    "embeddings": key(lambda one: train_model._key(one, NO_DATA), ModelParameters()),
    "lexicon": key(
        lambda one: extraction._key("data", one, None),
        LexiconParameters(),
        *("pseudo_count", "smooth_all", "word_lists", "reference_lexicons"),
    ),
    "decoders": key(lambda one: train_decoders._key(one, "data"), DecodersParameters()),
    "triplets": key(lambda one: mining._made_of(one, [], "encoder"), TripletsParameters(), "encoder"),
    "paraphraser": key(
        lambda one: paraphraser_stage._key(["data"], one, []),
        ParaphraserParameters(),
        *("test_files", *_OF_TRAINING, *(f"validation.{name}" for name in _OF_VALIDATION)),
    ),
}  # fmt: skip


def changed(value: BaseModel, before: str = "") -> Iterator[tuple[str, Any]]:
    """Return the parameters with one of them changed, and its name."""
    for name in type(value).model_fields:
        part = getattr(value, name)
        inner = (
            changed(part, f"{before}{name}.") if isinstance(part, BaseModel) else [(f"{before}{name}", "x")]
        )
        yield from ((place, value.model_copy(update={name: other})) for place, other in inner)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", KEYS)
def test_parameters_are_in_key(name: str) -> None:
    one = KEYS[name]
    before, missing = one.of(one.parameters), set()
    for place, other in changed(one.parameters):
        try:
            missing |= {place} if one.of(other) == before else set()
        except InputError:  # no such file: its content would be in the key
            pass
    assert {place for place in missing if not one.free & {place, place.partition(".")[0]}} == set()
    assert all(any(place.startswith(free) for place in missing) for free in one.free)


@pytest.mark.parametrize(
    ("module", "constant", "of"),
    [
        (quantization, "TRANSLATE", KEYS["quantized"]),
        (sentences, "TRANSLATE", KEYS["translate"]),
        (paragram, "PARAGRAM", KEYS["paragram"]),
        (train_model, "EMBEDDINGS", KEYS["embeddings"]),
        (train_decoders, "DECODERS", KEYS["decoders"]),
        (extraction.versions, "LEXICON", KEYS["lexicon"]),
        (mining.versions, "TRIPLETS", KEYS["triplets"]),
        (paraphraser_stage.versions, "PARAPHRASER", KEYS["paraphraser"]),
    ],
)
def test_step_version_is_in_key(
    module: ModuleType, constant: str, of: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = of.of(of.parameters)
    monkeypatch.setattr(module, constant, 99)
    assert of.of(of.parameters) != before


def test_input_is_in_key() -> None:
    """Besides parameters, the key has the data, the models, and their kind and number."""
    held: Any = SimpleNamespace(digest="1")
    other: Any = SimpleNamespace(fingerprint=lambda: "other", records=[SimpleNamespace(sha256="1")])
    longer: Any = SimpleNamespace(records=[SimpleNamespace(sha256=one) for one in "12"])
    cleaning, lexicon, paraphraser = Cleaning(), LexiconParameters(), ParaphraserParameters()
    groups: list[list[Any]] = [
        [sources.file_key(FILE, cleaning, *rest) for rest in
         (("bitext", 1, {}), ("references", 1, {}), ("bitext", 2, {}), ("bitext", 1, {"": "1"}))],
        [nmt.training_key(NmtParameters(), *rest) for rest in
         ((NO_DATA,), (other,), (longer,), (NO_DATA, "paraphraser"), (NO_DATA, "nmt", 99))],
        [translated(), translated(weights="2"), translated(settings={"seed": 2}),
         translated(engine="fairseq")],
        [quantization._key(weights, SHORTLIST) for weights in "12"],
        [paragram._key(ParagramParameters(), data) for data in (NO_DATA, other)],
        [train_model._key(ModelParameters(), data) for data in (NO_DATA, other)],
        [train_decoders._key(DecodersParameters(), data) for data in "12"],
        [extraction._key(data, lexicon, one) for data in "12" for one in (None, held)],
        [mining._made_of(TripletsParameters(), data, encoder) for data in "12" for encoder in "12"],
        [paraphraser_stage._key(data, paraphraser, tests) for data in (["1"], ["1", "2"])
         for tests in ([], [["a test"]])],
    ]  # fmt: skip
    assert [len({repr(one) for one in group}) for group in groups] == [len(group) for group in groups]


def test_pair_file_options_are_in_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\n", encoding="utf-8")
    own = PairFileParameters(path=str(path))
    changes: list[dict[str, Any]] = [{}, {"format": "tsv"}, {"columns": (1, 0)}, {"limit": 1}]
    assert set().union(*changes) == set(PairFileParameters.model_fields) - {"path"}
    found = {TrainingData([own.model_copy(update=change)]).fingerprint() for change in changes}
    found |= {TrainingData([own], drop_leaked=False).fingerprint(), TrainingData([own, own]).fingerprint()}
    same = path.with_name("same.tsv")
    same.write_bytes(path.read_bytes())
    assert TrainingData([PairFileParameters(path=str(same))]).fingerprint() in found
    path.write_text("a\tc\n", encoding="utf-8")
    found.add(TrainingData([own]).fingerprint())
    for text in "ab":
        corpus = write_corpus(tmp_path / "corpus", [{"reference": text, "translation": "c"}])
        found.add(TrainingData([], [corpus]).fingerprint())
    assert len(found) == len(changes) + 5


def test_score_key_covers_languages_counts_and_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score.language, "LanguageIdentification", lambda languages: None)
    monkeypatch.setattr(score, "open_vectors", lambda *_, **__: ("model", None))
    monkeypatch.setattr(score.language, "fingerprint", lambda: "one")

    def description(**made: Any) -> str:
        parameters = ScoreParameters(identify_language=True)
        return repr(score.score_steps(parameters, tmp_path, Resources(), None, **made)[0].description())

    found = {description(), description(counted=(tmp_path, "1")), description(lexical=(tmp_path, "1"))}
    monkeypatch.setattr(score.language, "fingerprint", lambda: "other")
    found.add(description())
    monkeypatch.setattr(score, "scorer_types", lambda: [SimpleNamespace])
    found.add(description())
    monkeypatch.setattr(score, "TOKENIZER_NAME", "other")
    found.add(description())
    assert len(found) == 6
