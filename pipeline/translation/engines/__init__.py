"""The engines, one per module. An engine's package is imported when a model is opened.

A module here, whose name is the engine's, defines one public subclass of
:class:`~paraforge.translation.decoding.translator.Engine`. Another package registers its module in the entry
point group ``paraforge.engines``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paraforge.base.errors import InputError
from paraforge.base.plugins import classes_in, found_modules
from paraforge.translation.decoding.pieces import limited_options
from paraforge.translation.decoding.translator import (
    DecodingOptions,
    Engine,
    EngineSettings,
    Placement,
    Translator,
    settings_of,
)
from paraforge.translation.models.model import SHORTLIST_FILE, TranslationModel, open_model

# Engine names with their modules.
ENGINES: Mapping[str, str] = found_modules("paraforge.translation.engines")


def engine_class(engine: str) -> type[Engine]:
    """Return the class of an engine. Raises InputError if there is no such engine, or if its module, such as
    another package's, does not define exactly one."""
    if engine not in ENGINES:
        raise InputError(f"there is no engine '{engine}'", remedy=f"Use {', '.join(ENGINES)}.")
    kinds = [kind for kind in classes_in(ENGINES[engine], Engine) if not kind.__name__.startswith("_")]
    if len(kinds) != 1:
        raise InputError(
            f"the engine '{engine}': {ENGINES[engine]} defines {len(kinds)} public subclasses of Engine",
            remedy="Define one, or uninstall the package that names this module.",
        )
    return kinds[0]


def engine_settings() -> dict[str, type[EngineSettings]]:
    """Return the settings class of each engine that has settings."""
    settings_of = {name: engine_class(name).SETTINGS for name in ENGINES}
    return {name: settings for name, settings in settings_of.items() if settings.model_fields}


def is_model_free(engine: str) -> bool:
    """Return whether an engine translates without a model."""
    return engine_class(engine).MODEL_FREE


def is_remote(engine: str) -> bool:
    """Return whether an engine uses no device of this machine."""
    return engine_class(engine).REMOTE


def folder_of(engine: str, model: TranslationModel) -> Path:
    """Return the directory of a model that an engine reads. Raises InputError if the model does not exist in
    the engine's form."""
    if (form := engine_class(engine).FORM or engine) not in model.folders:
        able = [name for name in ENGINES if (engine_class(name).FORM or name) in model.folders]
        raise InputError(
            f"the model has no weights for the engine '{engine}'",
            model.path,
            remedy=f"Engines that can read it: {', '.join(able) or 'none'}.",
        )
    return model.folders[form]


def result_settings(engine: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an engine without a model that a translation depends on. Raises InputError if
    one is wrong."""
    return settings_of(engine_class(engine).SETTINGS, engine, settings).result_settings()


def recorded_settings(engine: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for keys and manifests.

    For an engine without a model, there are none, because their hash takes the place of the weights'. A
    remote engine is an exception: its settings name the model that translated.
    """
    if is_remote(engine):
        return result_settings(engine, settings)
    return {} if is_model_free(engine) else settings


def with_model(engine: str, options: DecodingOptions, model: TranslationModel | None) -> DecodingOptions:
    """Return resolved options that fit a model: within its positions, and with ``shortlist`` true or false.

    Raises InputError if the model has no weights for the engine, or a shortlist is requested, but engine or
    model has none.
    """
    if model is not None:
        folder_of(engine, model)
        options = limited_options(options, model)
    if options.shortlist is False:
        return options
    able = engine_class(engine).SHORTLISTS
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
    kind = engine_class(engine)
    options, placement = options or DecodingOptions(), placement or Placement()
    chosen = settings_of(kind.SETTINGS, engine, settings or {}, options)
    opened = None if kind.MODEL_FREE else model
    if opened is None and not kind.MODEL_FREE:
        raise InputError(f"the engine '{engine}' needs a model")
    if isinstance(opened, Path):
        opened = open_model(opened)
    return kind(opened, with_model(engine, kind.resolve(options, placement), opened), placement, chosen)
