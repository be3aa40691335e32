"""The triggers: each class of a family is one, `MaxTimes` for `inject(…, max_times=2)`. So is a file of its own. A
trigger is a pure condition on an occasion. An injection hits an attempt if all its triggers hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from chaoslab.base import former, registry
from chaoslab.base.jsonable import repr_one_line
from chaoslab.core.occasion import HitsSoFar, Occasion

GROUP = "core.triggers"
FAMILIES = ("counting", "looking")


@dataclass(frozen=True)
class Trigger:
    """One condition on an attempt, with its checked `value`.

    Traits of a class:

    - `should_be`: the values that it takes, in words.
    - `place`: it says which attempts are concerned, not when a fault begins. It holds for each attempt of a fault that
      lasts.
    - `spares`: it decides by dice or by the hits so far. An attempt that it alone excludes was eligible.
    - `timed`: it reads `elapsed_s`. `reads`: it reads the arguments, or if the call may change something.
    - `order`: triggers are asked in this order, so the cheap ones come first.
    """

    value: Any
    should_be: ClassVar[str]
    place: ClassVar[bool] = False
    spares: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    reads: ClassVar[bool] = False
    order: ClassVar[int] = 0

    @classmethod
    def from_value(cls, value: Any) -> Self:  # noqa: ARG003 - of those that take one
        """The trigger of a value as a user writes it. Raises ValueError: it takes no such value; the message says which
        would be right, as `refused` makes it."""
        if instead := next((words for name, words in former.TRIGGER_METHODS.items() if hasattr(cls, name)), ""):
            raise registry.BrokenPlugin(f"the trigger {cls.__name__} cannot be used: {instead}")
        raise NotImplementedError

    @property
    def value_as_json(self) -> Any:
        """The value as JSON keeps it; `from_value` takes it again."""
        return list(self.value) if isinstance(self.value, tuple) else self.value

    @classmethod
    def refused(cls) -> ValueError:
        """The error for a value that it does not take."""
        return ValueError(f"it should be {cls.should_be}")

    def holds(self, occasion: Occasion, hits: HitsSoFar) -> bool:
        """Tells if the condition holds. `hits`: the hits of its own injection so far."""
        raise NotImplementedError

    def explain_never_holding(self, triggers: "Mapping[str, Trigger]") -> str:
        """The reason, in words, that it can never hold together with the others of its injection; empty if it can."""
        return ""

    def explain_too_few_turns(self, turns: int) -> str:
        """The reason, in words, that it cannot hold in a conversation of so many turns; empty if it can."""
        return ""


def list_trigger_names() -> tuple[str, ...]:
    """Every trigger, found by scanning."""
    return registry.list_plugins(GROUP)


def parse_trigger(name: str, value: Any, *, where: str = "") -> Trigger:
    """The trigger of that name with this value. `where` stands behind the name in an error, as in " of latency". Raises
    LookupError: no such trigger. ValueError: it takes no such value."""
    kind = load_trigger(name)
    try:
        return kind.from_value(value)
    except ValueError as error:
        raise ValueError(f"{name}{where} is {repr_one_line(value)}: {error.args[0]}") from None


def load_trigger(name: str) -> type[Trigger]:
    """The class of the trigger of this name. Raises LookupError: no such trigger. BrokenPlugin: it cannot be loaded."""
    class_: type[Trigger] = registry.load_plugin(GROUP, name)
    return class_


class OfNumbers(Trigger):
    """A trigger whose value is a list of whole numbers from 1, kept sorted."""

    @classmethod
    def from_value(cls, value: Any) -> Self:
        if not isinstance(value, list | tuple | set | frozenset | range) or not value:
            raise cls.refused()
        if not all(type(n) is int for n in value):
            raise cls.refused()
        if min(value) < 1:
            raise ValueError(f"it should be {cls.should_be}: the first is 1")
        return cls(tuple(sorted(set(value))))


class OfNumber(Trigger):
    """A trigger whose value is a whole number from 1."""

    @classmethod
    def from_value(cls, value: Any) -> Self:
        if type(value) is not int or value < 1:
            raise cls.refused()
        return cls(value)


class OnlyTrue(Trigger):
    """A trigger that is named or not: its value is True."""

    should_be = "True"

    @classmethod
    def from_value(cls, value: Any) -> Self:
        if value is not True:
            raise cls.refused()
        return cls(value)
