"""A trained paraphraser in use: what is asked, as tags, and the engine that searches for paraphrases."""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.parsing.brackets import fill_template
from paraforge.base.parsing.parser import open_parser, parser_names
from paraforge.base.shards.resources import available_cores
from paraforge.products.paraphrasing.controls import (
    BUCKETED,
    CONTROLS_FILE,
    Controls,
    tagged,
    tree_of_tags,
    tree_tags,
)
from paraforge.translation.decoding.translator import DecodingOptions, Placement, Translator
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model import TranslationModel, open_model

Search = Literal["beam", "diverse", "sample"]
MAXIMUM_TOKENS = 256
MOST_PARAPHRASES = 64
WIDEST_BEAM = 128
# Below a paraphraser whose sources have full parses: what makes one of a template.
PARSE_GENERATOR = "parse_generator"
PARSE_BEAM = 4


def is_paraphraser(path: Path) -> bool:
    """Whether a directory has a model that paraphrases."""
    return (path / CONTROLS_FILE).is_file()


class Paraphraser:
    """A model of the stage ``paraphraser``.

        model = paraforge.load("models/paraphraser")
        model.paraphrase(["A dog runs."], overlap="low", nbest=3)

    controls: what can be asked for.
    """

    def __init__(self, path: Path, device: str = "auto", threads: int = 0) -> None:
        """Open it; an engine is loaded when it is first used. Raises InputError: no paraphraser, or damaged.

        path: its directory. device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. threads: 0 is one per core.
        """
        self.controls = Controls.read(path)
        self._path = path
        self._model = open_model(path)
        self._placement = Placement(device, threads or available_cores())
        self._opened: tuple[Any, Translator] | None = None

    def sources(
        self,
        texts: Iterable[str],
        *,
        similarity: str | float | None = None,
        overlap: str | float | None = None,
        length: str | float | None = None,
        template: str | None = None,
        like: str | None = None,
        parser: str | None = None,
    ) -> Iterator[str]:
        """Each text as the model reads it, with the tags for what is asked.

        similarity, overlap, length: ``low``, ``medium``, ``high``, the number of a bucket, or a value in it.
        template: ``(S (NP) (VP) (.))``.
        like: a sentence whose template is taken; it is parsed by ``parser``, or the model's own.

        Raises, before anything is read, ConfigurationError: the model cannot be asked that; InputError: no
        parser, or no parse.
        """
        asked = dict(zip(BUCKETED, (similarity, overlap, length), strict=True))
        wanted = {
            name: self.controls.bucket(name, str(text)) for name, text in asked.items() if text is not None
        }
        if parser is not None and like is None:
            raise ConfigurationError(["--parser parses the sentence of --like: give that, too"])
        if like is not None:
            if template is not None:
                raise ConfigurationError(["--template and --like are two ways to say one thing: give one"])
            template = self._tree_of(like, parser or self.controls.parser)
        if template is not None:
            template = self.controls.known_template(template)
            if self.controls.labels:
                generator = self._parse_generator
                return _with_parses(generator, texts, self.controls.prefix(wanted), template)
        prefix = self.controls.prefix(wanted, template)
        return (tagged(prefix, text) for text in texts)

    @cached_property
    def _parse_generator(self) -> Translator:
        """From texts with the tags of a template to the tags of a parse."""
        model = open_model(self._path / PARSE_GENERATOR)
        options = DecodingOptions(beam=PARSE_BEAM, maximum_target_tokens=MAXIMUM_TOKENS)
        return open_translator(_engine_of(model), model, options, self._placement)

    def _tree_of(self, sentence: str, parser: str | None) -> str:
        if parser is None:
            raise ConfigurationError(["this model was trained without templates"])
        if parser == "file":
            known = ", ".join(parser_names())
            raise ConfigurationError(
                [f"--like: the model's templates are from a file: give --parser ({known})"]
            )
        (tree,) = open_parser(parser).parse([sentence])
        if tree is None:
            raise InputError(f"{parser} finds no parse of {sentence!r}", remedy="Pass a --template.")
        return tree

    def translator(
        self,
        *,
        nbest: int = 1,
        search: Search = "beam",
        beam: int = 8,
        diversity: float = 1.0,
        temperature: float = 1.0,
        top_k: int = 10,
        seed: int = 1,
    ) -> Translator:
        """The engine that searches; sources are :func:`~paraforge.products.paraphrasing.controls.tagged`
        texts.

        nbest: paraphrases of a text.
        search: ``beam``; ``diverse``: a group of the beam for each paraphrase, each paying ``diversity`` nats
            for a token that an earlier one took; ``sample``: drawn among the ``top_k`` most probable tokens.
        beam: its width, at least nbest. temperature, top_k, seed: of sampling; top_k 0 is all tokens.

        Raises ConfigurationError, InputError: no such search, or a value cannot be.
        """
        if search not in get_args(Search):
            raise ConfigurationError([f"--search {search}: there are {', '.join(get_args(Search))}"])
        for name, value, most in (("nbest", nbest, MOST_PARAPHRASES), ("beam", beam, WIDEST_BEAM)):
            if not 1 <= value <= most:
                raise ConfigurationError([f"--{name} {value}: from 1 to {most}"])
        settings: dict[str, Any] = {}
        engine = _engine_of(self._model)
        width = max(beam, nbest)
        if search != "beam" and engine == "ctranslate2":
            engine = "torch"
        if search == "diverse":
            groups = max(2, nbest)
            width = groups * max(1, beam // groups)
            settings = {"groups": groups, "diversity": diversity}
        elif search == "sample":
            width = nbest
            settings = {"method": "sampling", "temperature": temperature, "top_k": top_k, "seed": seed}
        options = DecodingOptions(beam=width, nbest=nbest, maximum_target_tokens=MAXIMUM_TOKENS)
        key = (engine, options, sorted(settings.items()))
        if self._opened is None or self._opened[0] != key:
            self._opened = None  # frees the one before
            self._opened = (key, open_translator(engine, self._model, options, self._placement, settings))
        return self._opened[1]

    def paraphrase(
        self,
        texts: Iterable[str],
        *,
        similarity: str | float | None = None,
        overlap: str | float | None = None,
        length: str | float | None = None,
        template: str | None = None,
        like: str | None = None,
        parser: str | None = None,
        **search: Any,
    ) -> list[list[str]]:
        """Paraphrases of each text, the best first; none of a text that could not be paraphrased.

        similarity, overlap, length, template, like, parser: what they are like, see :meth:`sources`.
        search: how many and how, see :meth:`translator`.

        Raises ConfigurationError, InputError: as those.
        """
        sentences = list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in sentences):
            raise TypeError("texts is a list of strings")
        asked = {"similarity": similarity, "overlap": overlap, "length": length}
        sources = self.sources(sentences, **asked, template=template, like=like, parser=parser)
        results = self.translator(**search).translate(sources)
        return [[hypothesis.text for hypothesis in result.hypotheses] for result in results]


def _engine_of(model: TranslationModel) -> str:
    """What searches with a beam: LSTMs run in fairseq alone."""
    return "ctranslate2" if "ctranslate2" in model.folders else "fairseq"


def _with_parses(generator: Translator, texts: Iterable[str], prefix: str, template: str) -> Iterator[str]:
    """Texts with a template that is filled up with what the generator gives for each: left to itself it gives
    a rare template's text the parse of a frequent one."""
    kept, read = itertools.tee(texts)
    asked = tree_tags(template)
    results = generator.translate(tagged(asked, text) for text in read)
    for text, result in zip(kept, results, strict=True):
        tags = asked
        with suppress(ValueError, IndexError):
            tags = tree_tags(fill_template(template, tree_of_tags(result.hypotheses[0].text)))
        yield tagged(prefix + tags, text)
