"""Parameters of faults that are given as a space: a range or choices, of which each trial draws one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.base.identity import nth
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution.drawn import Drawn

FIXED = ("name", "fault", "target", "after")
"""The arguments of a fault that no trial may have for itself."""


@dataclass(frozen=True)
class Space:
    """The values that a parameter may have: `choices`, or all from `low` to `high`, whole numbers if both are."""

    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that stand for all others when they are checked."""
        return self.choices or (self.low, self.high)

    def draw(self, dice: Dice) -> Any:
        """One of the values, each as likely as any other."""
        if self.choices:
            return dice.pick(self.choices)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return min(self.high, int(dice.between(self.low, self.high + 1)))
        return round(dice.between(self.low, self.high), 6)


@dataclass(frozen=True)
class DrawnFault:
    """A fault with spaces among its arguments."""

    fault: str
    target: Sequence[str]
    arguments: Mapping[str, Any]

    def made(self, dice: Dice | None, name: str = "") -> tuple[Injection, dict[str, Any]]:
        """The injection and the drawn values, by parameter. Without dice: each space's first value."""
        values = {
            key: space.ends[0] if dice is None else space.draw(dice(key))
            for key, space in self.arguments.items()
            if isinstance(space, Space)
        }
        more = {"name": name} if name else {}
        return inject(self.fault, self.target, **{**self.arguments, **values, **more}), values


def space_of(given: Any) -> Space | None:
    """The space that a value states, as in {from: 1, to: 5} or {choices: [1, 5]}; None if it states none.

    Raises:
        ValueError: it is a mapping and no space.
    """
    if not isinstance(given, Mapping):
        return None
    if set(given) == {"choices"}:
        choices = given["choices"]
        if not isinstance(choices, list) or not choices:
            raise ValueError(f"its choices are {choices!r:.60}: they should be a list of values")
        return Space(tuple(choices))
    if set(given) == {"from", "to"}:
        low, high = given["from"], given["to"]
        if any(isinstance(end, bool) or not isinstance(end, int | float) for end in (low, high)) or not low < high:
            raise ValueError(
                f"its range is from {low!r:.30} to {high!r:.30}: it should be from a number to a larger one"
            )
        return Space((), low, high)
    raise ValueError("a value that each trial draws is {from: 1, to: 5} or {choices: [1, 5]}")


def drawn(faults: Sequence[Injection], spaces: Mapping[str, DrawnFault], *, seed: int, number: int) -> Drawn:
    """The injections of the trial with this number, from 0, and the values drawn for it, by "injection.parameter". The
    dice are named (seed, trial, injection, parameter), so a trial draws the same alone and among others."""
    made: list[Injection] = []
    values: dict[str, Any] = {}
    for each in faults:
        if each.name in spaces:
            each, own = spaces[each.name].made(Dice(seed, "space", nth("", number, 1).key, each.name), each.name)
            values |= {f"{each.name}.{key}": value for key, value in own.items()}
        made.append(each)
    return tuple(made), values
