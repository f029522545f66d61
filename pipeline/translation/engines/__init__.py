"""The engines, one a module; the package that one needs is imported when a model is opened.

A module here offers what :class:`EngineModule` says. It is found by being here; another package names its
module in the entry point group ``paraforge.engines``.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from paraforge.base.errors import InputError
from paraforge.base.plugins import found_modules
from paraforge.translation.decoding.pieces import limited_options
from paraforge.translation.decoding.translator import DecodingOptions, EngineSettings, Placement, Translator
from paraforge.translation.models.model import TranslationModel, open_model

# Name of an engine: its module, which offers what EngineModule says.
ENGINES: Mapping[str, str] = found_modules("paraforge.translation.engines")


class EngineModule(Protocol):
    """What the module of an engine offers.

    Also, where they are needed, ``SETTINGS``, its own settings as a subclass of
    :class:`~paraforge.translation.decoding.translator.EngineSettings`; ``MODEL_FREE = True`` if it needs no
    model; ``REMOTE = True`` if it computes nothing on this machine: then one process asks for all sentences;
    ``weights(model, settings)`` if something else than the model's fingerprint, or of an engine without a
    model the hash of its settings, is to name the weights in keys, or something is to be checked first;
    ``remembered_as(settings)`` if something else than model and options names its set of the memory;
    ``recorded_settings(settings)`` if keys and manifests are to have other settings than all of them.

    LIBRARIES: distributions whose version decides what it gives; they are recorded with the translations.
    """

    LIBRARIES: Sequence[str]

    def resolve(self, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Return the options with every ``auto`` replaced, so that they say what a result depends on. Raises
        InputError: the engine or the device cannot do what is asked."""

    def open_engine(
        self,
        model: TranslationModel | None,
        options: DecodingOptions,
        placement: Placement,
        settings: dict[str, Any],
    ) -> Translator:
        """Load the model; ``options`` are resolved, ``settings`` are the engine's own."""


def engine_module(engine: str) -> EngineModule:
    """Return the module of an engine. Raises InputError: there is no such engine."""
    if engine not in ENGINES:
        raise InputError(f"no engine is called '{engine}'", remedy=f"Use {', '.join(ENGINES)}.")
    return cast("EngineModule", importlib.import_module(ENGINES[engine]))


def engine_settings() -> dict[str, type[EngineSettings]]:
    """Of each engine that has settings of its own, their class."""
    found = {name: getattr(engine_module(name), "SETTINGS", None) for name in ENGINES}
    return {name: settings for name, settings in found.items() if settings is not None}


def is_model_free(engine: str) -> bool:
    """Return whether an engine translates without a model."""
    return bool(getattr(engine_module(engine), "MODEL_FREE", False))


def recorded_settings(engine: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings that keys and manifests name: all of them, or those that the engine's own function
    ``recorded_settings`` gives; none of another engine without a model, whose weights they are."""
    own = getattr(engine_module(engine), "recorded_settings", None)
    if own is not None:
        return dict(own(settings))
    return {} if is_model_free(engine) else settings


def is_remote(engine: str) -> bool:
    """Return whether an engine uses no device of this machine."""
    return bool(getattr(engine_module(engine), "REMOTE", False))


def open_translator(
    engine: str,
    model: Path | TranslationModel | None,
    options: DecodingOptions | None = None,
    placement: Placement | None = None,
    settings: dict[str, Any] | None = None,
) -> Translator:
    """Open a model with an engine.

    engine: a name in :data:`ENGINES`.
    model: directory of the model, or an opened one; None for an engine that needs none.
    options: what the translation depends on. placement: where it runs.
    settings: the engine's own settings; those of ``fake`` and ``torch`` are described in their modules.

    Raises:
        InputError: no such engine, model or setting, or the engine cannot read this model.
        MissingPackageError: the engine's package is not installed.
    """
    module = engine_module(engine)
    if settings and not hasattr(module, "SETTINGS"):
        having = [name for name, kind in engine_settings().items() if set(settings) <= set(kind.model_fields)]
        raise InputError(
            f"the engine '{engine}' has no setting {', '.join(settings)}",
            remedy=f"The engine {' or '.join(having)} has." if having else None,
        )
    placement = placement or Placement()
    if is_model_free(engine):
        opened = None
    elif model is None:
        raise InputError(f"the engine '{engine}' needs a model")
    else:
        opened = model if isinstance(model, TranslationModel) else open_model(model, engine)
    resolved = module.resolve(options or DecodingOptions(), placement)
    if opened is not None:
        resolved = limited_options(resolved, opened)
    return module.open_engine(opened, resolved, placement, settings or {})
