"""The search for real locks that modules hold, which looks at an installed module once."""

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from chaoslab.worlds.virtual.patches import kept_locks


class Made:
    held: Any = None
    other = 1


def ours(module: ModuleType) -> set[tuple[str, str]]:
    """The places in the module and its class that get a wrapper."""
    holders = {id(module): "module", id(module.Made): "class"}
    return {(holders[id(patch.holder)], patch.name) for patch in kept_locks.patches() if id(patch.holder) in holders}


@pytest.fixture(params=["installed", "the user's"])
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made: Any = ModuleType("a_package_of_this_test")
    made.__file__ = "/lib/site-packages/a.py" if request.param == "installed" else "/home/agent.py"
    made.Made = type("Made", (Made,), {"held": None, "other": 1, "__module__": made.__name__})
    made.held, made.other = None, 1
    monkeypatch.setitem(sys.modules, made.__name__, made)
    assert not ours(made)
    return made  # type: ignore[no-any-return]


def of_module(module: ModuleType, name: str) -> set[tuple[str, str]]:
    setattr(module, name, threading.Lock())
    return {("module", name)}


def of_class(module: ModuleType, name: str) -> set[tuple[str, str]]:
    setattr(module.Made, name, threading.Lock())
    return {("class", name)}


@pytest.mark.parametrize("name", ["held", "new"])
@pytest.mark.parametrize("make", [of_module, of_class])
def test_a_lock_that_is_made_later_is_found(
    module: ModuleType, make: Callable[[ModuleType, str], set[tuple[str, str]]], name: str
) -> None:
    expected = make(module, name)
    assert ours(module) == expected
    expected |= make(module, "newer")
    assert ours(module) == expected


def test_a_module_loaded_anew_is_searched_anew(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    again: Any = ModuleType(module.__name__)
    again.Made, again.held, again.other = module.Made, 1, threading.Lock()
    again.__file__ = module.__file__
    monkeypatch.setitem(sys.modules, module.__name__, again)
    assert ours(again) == {("module", "other")}


def test_one_lock_gets_one_wrapper(module: Any) -> None:
    module.held = module.Made.held = threading.Lock()
    values = [patch.value for patch in kept_locks.patches() if patch.holder in (module, module.Made)]
    assert len(values) == 2
    assert values[0] is values[1]
