"""The toxics of Toxiproxy, one file each: the file's name is the type, the fields are the API's attributes in the API's units.

Every attribute is an int64 that defaults to 0. `pipe(dice, now)` makes the live thing for one direction of one connection;
`before` is the pipe that it replaces after a PATCH, for the toxics that remember.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base import registry
from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipe

GROUP = "wire.toxics"


@dataclass(frozen=True)
class Toxic:
    """What a toxic's dataclass offers; its attributes are its fields. `UNITS`: the lab's name for an attribute → the attribute, and how many
    of its units make one of the lab's."""

    UNITS: ClassVar[Mapping[str, tuple[str, int]]] = {}

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:
        """The live pipe, from `now` on."""
        raise NotImplementedError


def types() -> tuple[str, ...]:
    """Every type there is, found by scanning."""
    return registry.names(GROUP)


def load(name: str) -> type[Toxic]:
    """The toxic of that type.

    Raises:
        LookupError: no such type.
    """
    found: type[Toxic] = registry.load(GROUP, name)
    return found
