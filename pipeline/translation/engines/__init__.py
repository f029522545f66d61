"""The engines, one per module. An engine's package is imported when a model is opened.

A module here implements :class:`EngineModule`. Every module in this directory is found. Another package
registers its module in the entry point group ``paraforge.engines``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from paraforge.base.errors import InputError
from paraforge.base.plugins import found_modules, import_found
from paraforge.translation.decoding.pieces import limited_options
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    EngineSettings,
    Placement,
    Translator,
    settings_of,
)
from paraforge.translation.models.model import SHORTLIST_FILE, TranslationModel, open_model

# Engine names with their modules, which implement EngineModule.
ENGINES: Mapping[str, str] = found_modules("paraforge.translation.engines")


class EngineModule(Protocol):
    """The protocol of an engine's module. Its name is the engine's.

    LIBRARIES: distributions whose version affects the translations; recorded with them.

    A module can also have:

    MODEL_FREE: True if the engine needs no model.
    FORM: name of the engine whose form of a model it reads; by default its own.
    SETTINGS: its own settings, a subclass of
        :class:`~paraforge.translation.decoding.translator.EngineSettings`.
    REMOTE: True if it computes nothing on this machine, so that one process requests all sentences.
    SHORTLISTS: True if it can search with a model's shortlist.
    check(model): refuses a model before any work.
    remembered_as(settings): what names its set in the memory instead of model and options.
    """

    LIBRARIES: Sequence[str]

    def resolve(self, options: DecodingOptions, placement: Placement) -> DecodingOptions:
        """Return the options with every ``auto`` resolved, so that they determine the result. Raises
        InputError if the engine or the device does not support them."""

    def open_engine(
        self,
        model: TranslationModel | None,
        options: DecodingOptions,
        placement: Placement,
        settings: dict[str, Any],
    ) -> Translator:
        """Load the model with resolved ``options`` and the engine's own ``settings``."""


def engine_module(engine: str) -> EngineModule:
    """Return the module of an engine. Raises InputError if there is no such engine."""
    if engine not in ENGINES:
        raise InputError(f"there is no engine '{engine}'", remedy=f"Use {', '.join(ENGINES)}.")
    return cast("EngineModule", import_found(ENGINES[engine]))


def engine_settings() -> dict[str, type[EngineSettings]]:
    """Return the settings class of each engine that has one."""
    found = {name: getattr(engine_module(name), "SETTINGS", None) for name in ENGINES}
    return {name: settings for name, settings in found.items() if settings is not None}


def is_model_free(engine: str) -> bool:
    """Return whether an engine translates without a model."""
    return bool(getattr(engine_module(engine), "MODEL_FREE", False))


def folder_of(engine: str, model: TranslationModel) -> Path:
    """Return the directory of a model that an engine reads. Raises InputError if the model does not exist in
    the engine's form."""

    def form_of(name: str) -> str:
        return str(getattr(engine_module(name), "FORM", name))

    if form_of(engine) not in model.folders:
        able = [name for name in ENGINES if form_of(name) in model.folders]
        raise InputError(
            f"the model has no weights for the engine '{engine}'",
            model.path,
            remedy=f"Engines that can read it: {', '.join(able) or 'none'}.",
        )
    return model.folders[form_of(engine)]


def result_settings(engine: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an engine without a model that a translation depends on. Raises InputError if
    one is wrong."""
    kind = getattr(engine_module(engine), "SETTINGS", None)
    return {} if kind is None else dict(settings_of(kind, engine, settings).result_settings())


def recorded_settings(engine: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for keys and manifests.

    For an engine without a model, there are none, because their hash takes the place of the weights'. A
    remote engine is an exception: its settings name the model that translated.
    """
    if is_remote(engine):
        return result_settings(engine, settings)
    return {} if is_model_free(engine) else settings


def is_remote(engine: str) -> bool:
    """Return whether an engine uses no device of this machine."""
    return bool(getattr(engine_module(engine), "REMOTE", False))


def with_shortlist(engine: str, options: DecodingOptions, model: TranslationModel | None) -> DecodingOptions:
    """Return resolved options in which ``shortlist`` is true or false. Raises InputError if it is requested,
    but the engine or the model has none."""
    if options.shortlist is False:
        return options
    able = bool(getattr(engine_module(engine), "SHORTLISTS", False))
    has = able and model is not None and (folder_of(engine, model) / SHORTLIST_FILE).is_file()
    if options.shortlist is True and not has:
        reason = f"the model has no {SHORTLIST_FILE}" if able else f"the engine '{engine}' has none"
        raise InputError(f"translate.shortlist is true, but {reason}", remedy="Set shortlist to auto.")
    return options.with_changes(shortlist=has)


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
    options: decoding options. placement: where it runs.
    settings: the engine's own settings, described in its module.

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
        opened = model if isinstance(model, TranslationModel) else open_model(model)
    resolved = module.resolve(options or DecodingOptions(), placement)
    if opened is not None:
        folder_of(engine, opened)
        resolved = limited_options(resolved, opened)
    resolved = with_shortlist(engine, resolved, opened)
    return module.open_engine(opened, resolved, placement, settings or {})
