"""One trial on two sides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from chaoslab.analysis.measures import trace_diff
from chaoslab.analysis.measures.trace_diff import Story
from chaoslab.base.jsonable import repr_one_line, to_one_line

WORSE, BETTER, SAME, FEW, OPEN = "worse", "better", "no difference shown", "too few", "open"
LEAST = 40
"""The pairs with which a change of 0.2 in the share would mostly have been shown."""
POWER = 0.9
"""The chance with which a change is shown by the pairs that it is said to need."""
SHOWN = 200
"""The most characters of a difference."""
FIGURES = {"done": "done as asked", "well": "ended well"}
"""The figures of a trial that are compared, and their words."""


@dataclass(frozen=True)
class Side:
    """One trial of a pair. `well`: it passed; None if that is not known. `done`: all was done as asked, by ledger and
    state, whatever was said; None if that is not known or nothing was stated. `met`: a fault was witnessed; None if
    none was planned. `held`: what held faults back in this trial; empty if nothing did. `dollars`: None if a model's
    price is not known. `prompt`: what it asks. `models`: those that answered. `story`: makes its story; None if that is
    not known."""

    well: bool | None
    outcome: str
    why: str
    calls: int
    seconds: float
    tokens: int = 0
    harm: bool = False
    dollars: float | None = 0.0
    done: bool | None = None
    met: bool | None = None
    held: str = ""
    prompt: str = ""
    models: tuple[str, ...] = ()
    story: Callable[[], Story] | None = field(default=None, repr=False, compare=False)

    def to_json_values(self) -> dict[str, Any]:
        """The side as JSON values, without its story."""
        return {member.name: getattr(self, member.name) for member in fields(self) if member.name != "story"}

    @classmethod
    def from_json_values(cls, plain: Mapping[str, Any]) -> "Side":
        """The side of such values. Raises ValueError, TypeError: they are none of a side."""
        side = cls(**{**plain, "models": tuple(map(str, plain.get("models", ())))})
        numbers = (side.calls, side.seconds, side.tokens)
        texts = (side.outcome, side.why, side.prompt, side.held)
        flags = all(field_value in (True, False, None) for field_value in (side.well, side.done, side.met))
        if not flags or not all(isinstance(field_value, int | float) for field_value in numbers):
            raise TypeError("a value has another type")
        if not all(isinstance(field_value, str) for field_value in texts):
            raise TypeError("a value has another type")
        return side


@dataclass(frozen=True)
class Pair:
    """The same trial on both sides. `cluster`: the prompt that it asks; pairs of one prompt are not independent.
    `differs`: the first difference of both stories, if they ended otherwise. `cause`: that of the bad
    one, if it was looked for."""

    number: int
    base: Side
    new: Side
    cluster: str = ""
    differs: str = ""
    cause: str = ""

    def get_values_on_both_sides(self, figure: str) -> tuple[bool | None, bool | None]:
        """One of FIGURES on the base and on the new side."""
        return getattr(self.base, figure), getattr(self.new, figure)

    @property
    def change_kind(self) -> str:
        """worse if a figure is lost, else better if one is won, else open if one is known on one side alone; empty if
        both sides are alike."""
        states = [self.get_values_on_both_sides(figure) for figure in FIGURES]
        if (True, False) in states:
            return WORSE
        if (False, True) in states:
            return BETTER
        return OPEN if any((base is None) != (new is None) for base, new in states) else ""

    @property
    def harm_change(self) -> str:
        """worse or better if one side alone does harm; else empty."""
        return "" if self.base.harm == self.new.harm else WORSE if self.new.harm else BETTER

    @property
    def story_difference(self) -> str:
        """The first difference of the stories of a pair that changed; empty if they are not known."""
        if not (self.change_kind or self.harm_change) or self.base.story is None or self.new.story is None:
            return ""
        return describe_first_difference(self.base.story(), self.new.story())


def describe_first_difference(base: Story, new: Story) -> str:
    """The first difference of two stories, in one line; empty if there is none."""
    stories = ({location: event for location, event in story.items() if location != "prompt"} for story in (base, new))
    difference = trace_diff.find_story_difference(*stories)
    if difference is None:
        return ""
    if not difference.what:
        return f"{difference.place}: only on the {'base' if difference.now is None else 'new side'}"
    return to_one_line(
        f"{difference.place}, {difference.what}: {repr_one_line(difference.was)} → {repr_one_line(difference.now)}",
        SHOWN,
    )
