"""An exploration as text."""

from __future__ import annotations

from collections.abc import Sequence

from chaoslab.search.map import Map


def text(map_: Map, failures: Sequence[str]) -> str:
    return "\n".join([map_.told(), *failures])
