"""The toxics of Toxiproxy, one file each. The file's name is the type, the fields are the API's attributes in its
units. Every attribute is an int64 that defaults to 0. `pipe(dice, now)` makes the live pipe for one direction of one
connection. `before` is the pipe that it replaces after a PATCH, for the toxics that keep state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.base import registry
from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipe

GROUP = "wire.toxics"


@dataclass(frozen=True)
class Toxic:
    """The base of a toxic's dataclass, whose fields are the attributes. `UNITS`: the lab's name for an attribute → (the
    attribute, the number of its units in one of the lab's)."""

    UNITS: ClassVar[Mapping[str, tuple[str, int]]] = {}

    def pipe(self, dice: Dice, now: float, *, before: Pipe | None = None) -> Pipe:
        """The live pipe, from `now` on."""
        raise NotImplementedError


def list_toxic_types() -> tuple[str, ...]:
    """Every type of toxic, found by scanning."""
    return registry.list_plugins(GROUP)


def load_toxic(name: str) -> type[Toxic]:
    """The toxic of that type. Raises LookupError: no such type."""
    class_: type[Toxic] = registry.load_plugin(GROUP, name)
    return class_
