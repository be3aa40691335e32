"""A step of a request: a story that asks tools and ends with a finding or an honest refusal. A story is a generator
without I/O: it yields an `Ask`, gets the tool's JSON back, and returns a `StepResult`. The chat model replays every
story from the conversation at each turn, so that it needs no memory of its own."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from chaoslab.model._choosing import OfferedTool


@dataclass(frozen=True)
class Ask:
    """A request for a kind of tool, or with `tool` for a certain one, with the arguments by slot."""

    kind: str
    slots: Mapping[str, Any]
    tool: str = ""


@dataclass(frozen=True)
class StepResult:
    """A step's finding or result: a sentence for the answer, and the referent of "it" in later steps. `text`: the text
    for a message; empty if there is nothing to pass on. `parts`: single details, each by a pattern of the words that
    ask for it ("rating|score")."""

    sentence: str
    text: str = ""
    numbers: tuple[float, ...] = ()
    items: tuple[str, ...] = ()
    nothing: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)


class CouldNot(Exception):
    """The end of a step that failed; the text is a reason fit for the answer."""


Story = Generator[Ask, Any, StepResult]
Condition = Callable[[StepResult], bool]


@dataclass(frozen=True)
class StepCondition:
    """A condition on the findings of some steps: on one of them, or with `every` on each. `otherwise`: the branch for a
    false condition."""

    steps: tuple[int, ...]
    condition: Condition
    words: str
    every: bool = False
    otherwise: bool = False

    def is_met_by(self, results: Sequence[StepResult]) -> bool:
        return (all if self.every else any)(self.condition(result) for result in results) is not self.otherwise


@dataclass(frozen=True)
class Step:
    """One step. `label` completes "I could not …"; `needs` are the steps whose findings `act` gets."""

    label: str
    act: Callable[[Sequence[StepResult]], Story]
    needs: tuple[int, ...] = ()
    topic: str = ""
    only_if: StepCondition | None = None


@dataclass
class Draft:
    """The plan while the request is read: its steps, and the present referents of words like "it" and "her"."""

    offers: tuple[OfferedTool, ...]
    now: datetime | None
    quotes: tuple[str, ...] = ()
    earlier: str = ""
    steps: list[Step] = field(default_factory=list)
    last: tuple[int, ...] = ()
    person: str = ""
    thing: str = ""
    only_if: StepCondition | None = None
    asked: tuple[Condition, str] | None = None

    def add_step(self, step: Step) -> int:
        if self.only_if is not None:
            step = replace(step, only_if=self.only_if)
        self.steps.append(step)
        return len(self.steps) - 1

    def restore_quotes(self, text: str) -> str:
        """The text with its quoted parts restored, without their quotation marks."""
        for number, quote in enumerate(self.quotes):
            text = text.replace(chr(0xE000 + number), quote)
        return text.strip()

    def get_last_topic(self) -> str:
        return self.steps[self.last[-1]].topic if self.last else ""


def make_statement_step(text: str) -> Step:
    """A step that asks nothing and only gives the sentence."""

    def return_statement(_: Sequence[StepResult]) -> Story:
        return StepResult(text)
        yield Ask("", {})  # makes this function a generator

    return Step(label="", act=return_statement)
