"""The engine for translations made elsewhere, which are in a set of the translation memory.

Translations added by ``paraforge memory import`` are found before any engine is asked. Other sentences fail
here, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import Field

from paraforge.base.shards.scheduler import report_rows
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    EngineSettings,
    Hypotheses,
    Placement,
    settings_of,
)
from paraforge.translation.models.model import TranslationModel

NAME = "imported"
LIBRARIES: Final = ()
MODEL_FREE = True


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


SETTINGS = Imported


def resolve(options: DecodingOptions, placement: Placement) -> DecodingOptions:
    """Set the compute type to ``float32``; nothing is computed."""
    return options.with_changes(compute_type="float32")


def remembered_as(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the identity of the set in the memory, which does not depend on options, because another system
    made the translations."""
    return settings_of(Imported, NAME, settings).result_settings()


def open_engine(
    model: TranslationModel | None, options: DecodingOptions, placement: Placement, settings: dict[str, Any]
) -> ImportedTranslator:
    """Return the engine, which fails on sentences that are not in the memory."""
    return ImportedTranslator(options, settings_of(Imported, NAME, settings))


class ImportedTranslator:
    """Fails on every sentence, because known sentences never reach it."""

    def __init__(self, options: DecodingOptions, settings: Imported) -> None:
        self._reason = f"not among the imported translations '{settings.name}'"

    def translate(self, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        """Yield one failure per sentence."""
        for _ in sentences:
            report_rows(1)
            yield Hypotheses((), failed=self._reason)
