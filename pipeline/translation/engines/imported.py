"""The engine for translations made elsewhere, which are in a set of the translation memory.

Translations added by ``paraforge memory import`` are found before any engine is asked. Other sentences fail
here, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import Field

from paraforge.base.shards.scheduler import report_rows
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    Engine,
    EngineSettings,
    Hypotheses,
    Placement,
)
from paraforge.translation.models.model import TranslationModel

NAME = "imported"


class Imported(EngineSettings):
    """Settings of the engine."""

    name: str = Field("", description="name under which `paraforge memory import` added the translations")

    def check(self, options: DecodingOptions) -> None:
        """Check that there is a name. Raises ValueError if there is none."""
        if not self.name:
            raise ValueError("the engine imported needs translate.imported.name")

    def result_settings(self) -> dict[str, Any]:
        """Return what a translation depends on."""
        return {NAME: self.name}


class ImportedTranslator(Engine):
    """Fails on every sentence, because known sentences never reach it."""

    SETTINGS = Imported
    MODEL_FREE = True

    def __init__(
        self,
        model: TranslationModel | None,
        options: DecodingOptions,
        placement: Placement,
        settings: Imported,
    ) -> None:
        self._reason = f"not among the imported translations '{settings.name}'"

    @classmethod
    def remembered_as(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the name, because another system made the translations, whatever the options."""
        return Imported(**settings).result_settings()

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Yield one failure per sentence."""
        for _ in sentences:
            report_rows(1)
            yield Hypotheses((), failed=self._reason)
