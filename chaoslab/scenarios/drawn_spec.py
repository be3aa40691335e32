"""The types of a value that each trial may draw: {from: 1, to: 5} or {choices: [1, 5]} in the value's place."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chaoslab.base.dice import Dice
from chaoslab.base.identity import make_nth_trial_id
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution.drawn import DrawnPlan

FIXED = ("name", "fault", "target", "after")
"""The arguments of a fault that no trial may have for itself."""
CHOICES_MAX = 100
"""The most values of a parameter that trials choose from."""
SPACE_KEYS = ("from", "to", "choices")
"""The keys of a range and of choices."""
LEVEL = "chaos_level"


class Space(ABC):
    """The values that something may have."""

    @property
    @abstractmethod
    def values_to_check(self) -> tuple[Any, ...]:
        """The values that stand for all others when they are checked."""

    @abstractmethod
    def draw_value(self, dice: Dice) -> Any:
        """One of the values, each as likely as any other."""


@dataclass(frozen=True)
class OneOf(Space):
    """A value out of a list."""

    choices: tuple[Any, ...]

    @property
    def values_to_check(self) -> tuple[Any, ...]:
        return self.choices

    def draw_value(self, dice: Dice) -> Any:
        return dice.pick(self.choices)


@dataclass(frozen=True)
class RangeSpace(Space):
    """A value from `low` to `high`; a whole number if both are."""

    low: float
    high: float

    @property
    def values_to_check(self) -> tuple[Any, ...]:
        return self.low, self.high

    def draw_value(self, dice: Dice) -> Any:
        if isinstance(self.low, int) and isinstance(self.high, int):
            # Up to high + 1, and never above high, so that both ends are as likely as the rest.
            return min(self.high, int(dice.draw_between(self.low, self.high + 1)))
        # Six places: a value of a log should read as it was drawn.
        return round(dice.draw_between(self.low, self.high), 6)


@dataclass(frozen=True)
class ListSpace(Space):
    """A list, some of whose entries are spaces."""

    parts: tuple[Any, ...]

    @property
    def values_to_check(self) -> tuple[Any, ...]:
        return tuple(list(combination) for combination in product(*map(_list_values_to_check, self.parts)))

    def draw_value(self, dice: Dice) -> Any:
        return [entry.draw_value(dice(n)) if isinstance(entry, Space) else entry for n, entry in enumerate(self.parts)]


def _list_values_to_check(entry: Any) -> tuple[Any, ...]:
    return entry.values_to_check if isinstance(entry, Space) else (entry,)


@dataclass(frozen=True)
class DrawnFault:
    """A fault with spaces among its arguments."""

    fault: str
    target: str | Sequence[str]
    arguments: Mapping[str, Any]

    def make_injection(self, dice: Dice | None, name: str = "") -> tuple[Injection, dict[str, Any]]:
        """The injection and the drawn values, by parameter. Without dice: each space's first value."""
        values = {
            # Without dice the first value of each: enough to tell names and targets.
            key: space.values_to_check[0] if dice is None else space.draw_value(dice(key))
            for key, space in self.arguments.items()
            if isinstance(space, Space)
        }
        keywords = {"name": name} if name else {}
        return inject(self.fault, self.target, **{**self.arguments, **values, **keywords}), values

    def check_all_values(self) -> None:
        """Checks that each value may be drawn. Raises LookupError, ValueError, TypeError: one may not."""
        spaces = {key: value for key, value in self.arguments.items() if isinstance(value, Space)}
        first = {key: space.values_to_check[0] for key, space in spaces.items()}
        # Each value in turn, the others at their first: all combinations could be millions.
        for key, value in [(key, value) for key, space in spaces.items() for value in space.values_to_check]:
            inject(self.fault, self.target, **{**self.arguments, **first, key: value})


@dataclass(frozen=True)
class TrialDrawSpaces:
    """All that each trial of a scenario draws. `faults`: by the injection's name. `level`: the level of chaos, with the
    injections of each value. `waits`: the time before a turn, by its number."""

    faults: Mapping[str, DrawnFault] = field(default_factory=dict)
    level: Space | None = None
    levels: Mapping[float, tuple[Injection, ...]] = field(default_factory=dict)
    waits: Mapping[int, Space] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.faults or self.level or self.waits)

    def draw_plan(self, injections: Sequence[Injection], *, seed: int, number: int) -> DrawnPlan:
        """The plan of the trial with this number, from 0. The values have names such as "injection.parameter". The dice
        are named (seed, trial, injection, parameter), so a trial draws the same alone and among others."""
        trial = make_nth_trial_id("", number, 1).key
        drawn_injections: list[Injection] = []
        values: dict[str, Any] = {}
        if self.level is not None:
            values[LEVEL] = self.level.draw_value(Dice(seed, "space", trial, "", LEVEL))
        of_levels = {injection.name for level in self.levels.values() for injection in level}
        of_level = {injection.name: injection for injection in self.levels.get(values.get(LEVEL, 0), ())}
        for injection in injections:
            if injection.name in of_levels:
                drawn_injections += [of_level[injection.name]] if injection.name in of_level else []
                continue
            if injection.name in self.faults:
                injection, drawn_values = self.faults[injection.name].make_injection(
                    Dice(seed, "space", trial, injection.name), injection.name
                )
                values |= {f"{injection.name}.{key}": value for key, value in drawn_values.items()}
            drawn_injections.append(injection)
        waits = {n: space.draw_value(Dice(seed, "space", trial, "", "wait", n)) for n, space in self.waits.items()}
        values |= {f"turn {n}.after": wait for n, wait in waits.items()}
        return DrawnPlan(tuple(drawn_injections), values, waits)


def parse_value_space(value: Any) -> Space | None:
    """The space that a value states, as in {from: 1, to: 5}, {choices: [1, 5]}, or a list with such entries; None if it
    states none. Raises ValueError: it is a mapping and no space, or has too many values."""
    if isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value):
        parts = tuple(entry if (space := parse_value_space(entry)) is None else space for entry in value)
        if (count := prod(len(_list_values_to_check(entry_space)) for entry_space in parts)) > CHOICES_MAX:
            raise ValueError(f"its entries have {count} combinations: {CHOICES_MAX} at most")
        return ListSpace(parts)
    if not isinstance(value, Mapping):
        return None
    if set(value) == {"choices"}:
        choices = value["choices"]
        if not isinstance(choices, list) or not choices:
            raise ValueError(f"its choices are {choices!r:.60}: they should be a list of values")
        if len(choices) > CHOICES_MAX:
            raise ValueError(f"it has {len(choices)} choices: {CHOICES_MAX} at most")
        return OneOf(tuple(choices))
    if set(value) == {"from", "to"}:
        low, high = value["from"], value["to"]
        if any(isinstance(end, bool) or not isinstance(end, int | float) for end in (low, high)) or not low < high:
            raise ValueError(
                f"its range is from {low!r:.30} to {high!r:.30}: it should be from a number to a larger one"
            )
        return RangeSpace(low, high)
    raise ValueError("a value that each trial draws is {from: 1, to: 5} or {choices: [1, 5]}")


def parse_space_or_value(value: Any) -> Any:
    """The space of a checked value that states one; else the value itself."""
    return getattr(value, "space", value)


T = TypeVar("T")


class Strict(BaseModel):
    """A mapping without other keys, whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class RangeSpec(Strict, Generic[T]):
    """A range: each trial draws a value between two, whole if both are."""

    low: T = Field(alias="from", description="the least value")
    high: T = Field(alias="to", description="the largest value")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not self.low < self.high:  # type: ignore[operator]
            raise ValueError("a range from a number to a larger one")
        return self

    @property
    def space(self) -> Space:
        return RangeSpace(self.low, self.high)  # type: ignore[arg-type]


class ChoicesSpec(Strict, Generic[T]):
    """Choices: each trial draws one of the values, each as likely as any other."""

    choices: list[T] = Field(min_length=1, max_length=CHOICES_MAX, description="the values")

    @property
    def space(self) -> Space:
        return OneOf(tuple(self.choices))


def tag_one_range_or_choices(value: Any) -> str:
    """The tag of a value, of a range or of choices."""
    if isinstance(value, RangeSpec | ChoicesSpec):
        return "choices" if isinstance(value, ChoicesSpec) else "range"
    return "one" if not isinstance(value, Mapping) else "choices" if "choices" in value else "range"


def tag_one_or_choices(value: Any) -> str:
    """The tag of a value or of choices."""
    return "choices" if isinstance(value, ChoicesSpec) or (isinstance(value, Mapping) and "choices" in value) else "one"
