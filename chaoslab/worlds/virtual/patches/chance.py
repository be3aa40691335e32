"""Chance and ids: the global `random`, entropy of the system, and every kind of UUID."""

from __future__ import annotations

from collections.abc import Iterable

from chaoslab.worlds.virtual.patches import Patch


def patches() -> Iterable[Patch]:
    return ()
