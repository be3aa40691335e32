"""Plug-ins by file name: `faults/lost_reply.py` *is* the fault "lost_reply", its class is `LostReply`.

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


@cache
def names(group: str) -> tuple[str, ...]:
    """All plug-ins of a group ("faults"), bundled and installed, sorted."""
    package = importlib.import_module(f"chaoslab.{group}")
    bundled = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return tuple(sorted(bundled | {point.name for point in entry_points(group=f"chaoslab.{group}")}))


@cache
def load(group: str, name: str) -> Any:
    """The plug-in's class.

    Raises:
        LookupError: no such plug-in; the message names the nearest one.
    """
    if name not in names(group):
        kind = group.removesuffix("s")
        raise LookupError(f"no {kind} is called '{name}': {did_you_mean(name, names(group))}")
    for point in entry_points(group=f"chaoslab.{group}", name=name):
        return point.load()
    module = importlib.import_module(f"chaoslab.{group}.{name}")
    return getattr(module, "".join(part.capitalize() for part in name.split("_")))
