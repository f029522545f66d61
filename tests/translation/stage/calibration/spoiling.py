"""An int8 whose hypotheses are spoiled."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from paraforge.translation.decoding.translator import Hypotheses
from paraforge.translation.engines import ctranslate2


def spoil_int8(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[str], str]) -> list[str]:
    """Let CTranslate2 in int8 say something else; gives the compute type of each translated sentence.

    It computes in float32 whatever the type is: how good int8 is depends on the processor.
    """
    used: list[str] = []
    honest = ctranslate2.CTranslate2Translator.translate
    init = ctranslate2.CTranslate2Translator.__init__

    def remember(self: Any, model: Any, options: Any, placement: Any, settings: Any) -> None:
        init(self, model, options.with_changes(compute_type="float32"), placement, settings)
        self.kind = options.compute_type

    def translated(self: Any, sentences: Iterable[str]) -> Iterator[Hypotheses]:
        for result in honest(self, sentences):
            used.append(self.kind)
            if self.kind == "int8":
                best = result.hypotheses[0]
                result = replace(result, hypotheses=(replace(best, text=spoil(best.text)),))
            yield result

    monkeypatch.setattr(ctranslate2.CTranslate2Translator, "__init__", remember)
    monkeypatch.setattr(ctranslate2.CTranslate2Translator, "translate", translated)
    return used
