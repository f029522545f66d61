"""Modules of other packages that cannot be imported or have a taken name."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from paraforge.base import plugins
from paraforge.base.errors import InputError
from paraforge.embeddings import losses
from paraforge.translation import engines


@pytest.mark.parametrize(
    "opened",
    [
        lambda: plugins.classes_in("absent", object),
        lambda: losses.loss_named("a"),
        lambda: engines.engine_class("a"),
    ],
    ids=["class", "loss", "engine"],
)
def test_broken_package_error_says_to_reinstall(
    opened: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "found_modules", lambda _: {"a": "absent"})
    monkeypatch.setattr(engines, "ENGINES", {"a": "absent"})
    with pytest.raises(
        InputError, match="'absent', an entry point of an installed package, cannot be imported"
    ):
        opened()


def test_plugin_cannot_take_module_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the module's own classes would be lost."""
    plugins._modules.cache_clear()
    entry = SimpleNamespace(name="softmax", value="theirs")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    with pytest.raises(InputError, match=r"'softmax' of paraforge.losses is 'theirs' .*Give the entry point"):
        losses.loss_names()
    entry.name = "hinge"
    assert "hinge" in losses.loss_names()
    plugins._modules.cache_clear()


def test_classes_are_found_in_module_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, defined in (("other.a", "A"), ("paraforge.own.b", "B"), ("another.c", "C")):
        module = ModuleType(name)
        kind = type(defined, (Exception,), {"__module__": name})
        vars(module).update({defined: kind, "imported": InputError, "value": 1, "another": str})
        monkeypatch.setitem(sys.modules, name, module)
    found = {"x": "another.c", "y": "paraforge.own.b", "z": "other.a"}
    monkeypatch.setattr(plugins, "found_modules", lambda _: found)
    assert [kind.__name__ for kind in plugins.found_classes("any", Exception)] == ["A", "B", "C"]


def test_missing_own_module_is_defect() -> None:
    with pytest.raises(ModuleNotFoundError):
        plugins.import_found("paraforge.absent")
