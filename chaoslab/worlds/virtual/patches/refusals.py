"""What no virtual world can carry is refused where it begins: subprocesses, clocks of the real machine, foreign loops, C libraries."""

from __future__ import annotations

from collections.abc import Iterable

from chaoslab.worlds.virtual.patches import Patch


def patches() -> Iterable[Patch]:
    return ()
