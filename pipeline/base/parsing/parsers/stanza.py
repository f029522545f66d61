"""Stanza's neural constituency parser, whose English models the user downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paraforge.base.errors import InputError, require
from paraforge.base.files import hash_json

EXTRA = "parse"
SENTENCES_AT_ONCE = 200


class StanzaParser:
    """A :class:`~paraforge.base.parsing.parser.Parser` over ``stanza.Pipeline``."""

    def __init__(self) -> None:
        """Load the models. Raises MissingPackageError if stanza is not installed, and InputError if its
        models are missing."""
        stanza: Any = require("stanza", EXTRA)
        try:
            self._pipeline = stanza.Pipeline(
                "en",
                processors="tokenize,pos,constituency",
                tokenize_no_ssplit=True,
                download_method=None,
                verbose=False,
            )
        except Exception as error:  # stanza has exceptions of its own for each kind of missing model
            raise InputError(
                f"the parser 'stanza' cannot start: {error}",
                remedy="Download its models: python -c \"import stanza; stanza.download('en')\".",
            ) from error
        self.version = str(getattr(stanza, "__version__", "unknown"))
        self.fingerprint = hash_json(["stanza", self.version])

    def parse(self, sentences: Sequence[str]) -> list[str | None]:
        """Return the trees of the sentences; see :class:`~paraforge.base.parsing.parser.Parser`."""
        trees: list[str | None] = []
        for start in range(0, len(sentences), SENTENCES_AT_ONCE):
            # With these settings, sentences are separated by a blank line.
            texts = [" ".join(text.split()) for text in sentences[start : start + SENTENCES_AT_ONCE]]
            parsed = iter(self._pipeline("\n\n".join(filter(None, texts))).sentences if any(texts) else ())
            trees += [str(next(parsed).constituency) if text else None for text in texts]
        return trees
