"""Uses a trained paraphraser: turns requests into tags, and searches for paraphrases with an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from paraforge.base.errors import ConfigurationError
from paraforge.base.section import Section
from paraforge.base.shards.resources import available_cores
from paraforge.products.paraphrasing.controls import CONTROLS_FILE, RANGES, Controls, tagged
from paraforge.translation.decoding.translator import DecodingOptions, Placement, Translator
from paraforge.translation.engines import open_translator
from paraforge.translation.models.model import open_model

MAXIMUM_TOKENS = 256


def is_paraphraser(path: Path) -> bool:
    """Return whether a directory has a paraphraser."""
    return (path / CONTROLS_FILE).is_file()


class Wishes(Section):
    """What a paraphrase should be like, how many there are, and how wide the beam is."""

    similarity: str | float | None = Field(None, description="low, medium, high, or a value")
    overlap: str | float | None = Field(
        None, description="share of words on both sides: low, medium, high, or a value"
    )
    length: str | float | None = Field(
        None, description="length of the paraphrase divided by that of the source, in tokens"
    )
    template: str | None = Field(
        None, description="top two levels of the paraphrase's parse, e.g. (S (NP) (VP) (.))"
    )
    nbest: int = Field(1, ge=1, le=64, description="number of paraphrases for each text")
    beam: int = Field(8, ge=1, le=128, description="beam width, at least nbest")


class Paraphraser:
    """A model of the stage ``paraphraser``.

        model = paraforge.load("models/paraphraser")
        model.paraphrase(["A dog runs."], overlap="low", nbest=3)

    controls: what can be requested.
    """

    def __init__(self, path: Path, device: str = "auto", threads: int = 0) -> None:
        """Open a paraphraser; the engine is loaded on first use.

        path: its directory. device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. threads: 0 is one per core.
        Raises InputError if this is not a paraphraser, or if it is damaged.
        """
        self.controls = Controls.read(path)
        self._path = path
        self._model = open_model(path)
        self._placement = Placement(device, threads or available_cores())
        self._opened: tuple[DecodingOptions, Translator] | None = None

    def sources(self, texts: Iterable[str], wishes: Wishes) -> Iterator[str]:
        """Return each text as the model reads it, with the tags for the request.

        Raises ConfigurationError, before reading any text, if the model does not support the request.
        """
        asked = {name: getattr(wishes, name) for name in RANGES}
        wanted = {
            name: self.controls.bucket(name, str(text)) for name, text in asked.items() if text is not None
        }
        template = None if wishes.template is None else self.controls.known_template(wishes.template)
        prefix = self.controls.prefix(wanted, template)
        return (tagged(prefix, text) for text in texts)

    def translator(self, wishes: Wishes) -> Translator:
        """Return the engine that searches; sources are
        :func:`~paraforge.products.paraphrasing.controls.tagged` texts. Equal wishes reuse the loaded
        engine."""
        # LSTMs run only in fairseq.
        engine = "ctranslate2" if "ctranslate2" in self._model.folders else "fairseq"
        options = DecodingOptions(
            beam=max(wishes.beam, wishes.nbest), nbest=wishes.nbest, maximum_target_tokens=MAXIMUM_TOKENS
        )
        if self._opened is None or self._opened[0] != options:
            self._opened = None  # frees the previous one
            self._opened = (options, open_translator(engine, self._model, options, self._placement))
        return self._opened[1]

    def paraphrase(self, texts: Iterable[str], **wishes: Any) -> list[list[str]]:
        """Return the paraphrases of each text, the best first; none if it could not be paraphrased.

        wishes: their properties, number and beam, see :class:`Wishes`.

        Raises ConfigurationError if a wish is not possible.
        """
        sentences = list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in sentences):
            raise TypeError("texts must be a list of strings")
        try:
            wanted = Wishes(**wishes)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
            raise ConfigurationError(problems) from error
        sources = self.sources(sentences, wanted)
        results = self.translator(wanted).translate(sources)
        return [[hypothesis.text for hypothesis in result.hypotheses] for result in results]
