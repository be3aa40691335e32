"""Threads, locks, queues and pools: threading's own code, on the machine's threads."""

from __future__ import annotations

from collections.abc import Iterable

from chaoslab.worlds.virtual.patches import Patch


def patches() -> Iterable[Patch]:
    return ()
