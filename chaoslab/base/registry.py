"""Plug-ins by file name: `faults/tool/lost_reply.py` *is* the fault "lost_reply", its class is `LostReply`.

A plug-in from outside of the tree registers its class under the entry-point group `chaoslab.faults` (or the like).
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import Any


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The hint behind an unknown name: the nearest known one, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(wrong, names, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(names)}"


def names(group: str) -> tuple[str, ...]:
    """All plug-ins of a group ("faults"), bundled and installed, sorted. One that was installed since the last time is among them."""
    return tuple(sorted({*_bundled(group), *(point.name for point in entry_points(group=f"chaoslab.{group}"))}))


@cache
def load(group: str, name: str) -> Any:
    """The plug-in's class. Only what is found is remembered.

    Raises:
        LookupError: no such plug-in; the message names the nearest one.
    """
    importlib.invalidate_caches()  # it may have been installed a moment ago, in a notebook
    for point in entry_points(group=f"chaoslab.{group}", name=name):
        return point.load()
    place = _bundled(group).get(name)
    if place is None:
        kind = group.removesuffix("s")
        raise LookupError(f"no {kind} is called '{name}': {did_you_mean(name, names(group))}")
    return getattr(importlib.import_module(place), "".join(part.capitalize() for part in name.split("_")))


@cache
def _bundled(group: str) -> dict[str, str]:
    """Name → module, of the group's own package and of the families in it."""
    package = importlib.import_module(f"chaoslab.{group}")
    found = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        inside = importlib.import_module(module.name).__path__ if module.ispkg else None
        for each in [module] if inside is None else pkgutil.iter_modules(inside, f"{module.name}."):
            found[each.name.rpartition(".")[2]] = each.name
    return found
