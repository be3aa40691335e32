"""One trial on two sides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from chaoslab.analysis.measures import trace_diff
from chaoslab.analysis.measures.trace_diff import Story
from chaoslab.base.jsonable import line, shown

WORSE, BETTER, SAME, FEW = "worse", "better", "no difference shown", "too few"
LEAST = 40
"""The judged pairs with which a change of 0.2 in the share would mostly have been shown."""
POWER = 0.9
"""The chance with which a change is shown by the pairs that it is said to need."""
SHOWN = 200
"""The most characters of a difference."""


@dataclass(frozen=True)
class Side:
    """One trial of a pair. `well`: it passed; None if nothing can be concluded. `dollars`: None if a model's price is
    not known. `quality`: that of its recovery, 0 to 1; None if it met no fault or was not judged. `prompt`: what it
    asks. `models`: those that answered. `story`: makes its story; None if that is not known."""

    well: bool | None
    outcome: str
    why: str
    calls: int
    seconds: float
    tokens: int = 0
    harm: bool = False
    dollars: float | None = 0.0
    quality: float | None = None
    prompt: str = ""
    models: tuple[str, ...] = ()
    story: Callable[[], Story] | None = field(default=None, repr=False, compare=False)

    def plain(self) -> dict[str, Any]:
        """The side as JSON values, without its story."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "story"}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Side":
        """The side of such values. Raises ValueError, TypeError: they are none of a side."""
        made = cls(**{**plain, "models": tuple(map(str, plain.get("models", ())))})
        numbers = (made.calls, made.seconds, made.tokens)
        texts = (made.outcome, made.why, made.prompt)
        fits = made.well in (True, False, None) and all(isinstance(each, int | float) for each in numbers)
        if not fits or not all(isinstance(each, str) for each in texts):
            raise TypeError("a value has another type")
        return made


@dataclass(frozen=True)
class Pair:
    """The same trial on both sides. `cluster`: the prompt that it asks; pairs of one prompt are not independent.
    `differs`: the first difference of both stories, if they ended otherwise. `cause`: the smallest cause of the bad
    one, if it was looked for."""

    number: int
    base: Side
    new: Side
    cluster: str = ""
    differs: str = ""
    cause: str = ""

    @property
    def judged(self) -> bool:
        return self.base.well is not None and self.new.well is not None

    @property
    def change(self) -> str:
        """worse, better, or empty: alike, or one of the two allows no conclusion."""
        if not self.judged or self.base.well == self.new.well:
            return ""
        return BETTER if self.new.well else WORSE

    @property
    def harm(self) -> str:
        """worse or better if one side alone does harm; else empty."""
        return "" if self.base.harm == self.new.harm else WORSE if self.new.harm else BETTER

    @property
    def difference(self) -> str:
        """The first difference of the stories of a pair that changed; empty if they are not known."""
        if not (self.change or self.harm) or self.base.story is None or self.new.story is None:
            return ""
        return first_difference(self.base.story(), self.new.story())


def first_difference(base: Story, new: Story) -> str:
    """The first difference of two stories, in one line; empty if there is none."""
    own = ({place: told for place, told in story.items() if place != "prompt"} for story in (base, new))
    found = trace_diff.compare(*own)
    if found is None:
        return ""
    if not found.what:
        return f"{found.place}: only on the {'base' if found.now is None else 'new side'}"
    return line(f"{found.place}, {found.what}: {shown(found.was)} → {shown(found.now)}", SHOWN)
