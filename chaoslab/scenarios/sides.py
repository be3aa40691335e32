"""The trials of one side of a comparison: of a scenario, of an agent in Python, or of rows that were kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from chaoslab.analysis.measures.trace_diff import tell
from chaoslab.base.jsonable import line
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import CallStarted, Usage
from chaoslab.execution.explore import FoundFailure
from chaoslab.execution.explore import shrink as shrink_trial
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import Trial, numbered
from chaoslab.record.rulings import RulingState
from chaoslab.scenarios.exploring import shrink
from chaoslab.scenarios.running import Ruling, TrialRules, ruled, run
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.pairs import Side

PROMPT = 300
"""The most characters of a prompt."""


class Sides(Protocol):
    """One side of a comparison. `period`: the trials of a round, in which each of its prompts is asked."""

    @property
    def period(self) -> int: ...

    def take(self, numbers: Sequence[int]) -> Iterable[Side]:
        """The trials with these numbers, from 1, in order."""

    def cause(self, number: int, /) -> str:
        """The cause of a trial that is not well, in one line, or why there is none."""


@dataclass(frozen=True)
class OfScenario:
    """The trials of a scenario."""

    scenario: Scenario
    seed: int | None = None
    jobs: int = 1
    period = 1

    def take(self, numbers: Sequence[int]) -> list[Side]:
        made = run(self.scenario, only=numbers, seed=self.seed, jobs=self.jobs, apart=True)
        return [side_of(ruling, text_of(self.scenario.prompt)) for ruling in made]

    def cause(self, number: int) -> str:
        try:
            return told_cause(shrink(self.scenario, number, seed=self.seed))
        except ValueError as error:  # a ScenarioError is one
            return f"not found: {line(str(error), PROMPT)}"


@dataclass(frozen=True)
class OfAgent:
    """The trials of an agent in Python."""

    asked: RunArguments
    rules: TrialRules
    jobs: int = 1
    period = 1

    def take(self, numbers: Sequence[int]) -> Iterable[Side]:
        made = zip(numbers, self._trials(numbers), strict=True)
        return [side_of(ruled(self.rules, number, trial), text_of(self.asked.prompt)) for number, trial in made]

    def cause(self, number: int) -> str:
        try:
            (trial,) = self._trials([number])
            return told_cause(shrink_trial(trial, accept=self.rules.accept))
        except ValueError as error:
            return f"not found: {line(str(error), PROMPT)}"

    def _trials(self, numbers: Sequence[int]) -> Iterable[Trial]:
        return numbered(self.asked, [number - 1 for number in numbers], jobs=self.jobs)


@dataclass(frozen=True)
class SeveralSides:
    """Several prompts or variants, in turns: the trial n is one of the n-th of them."""

    parts: Sequence[Sides]

    @property
    def period(self) -> int:
        return len(self.parts)

    def take(self, numbers: Sequence[int]) -> Iterable[Side]:
        found: dict[int, Side] = {}
        for part in dict.fromkeys(map(self._of, numbers)):
            own = [number for number in numbers if self._of(number) == part]
            found |= zip(own, self.parts[part].take(own), strict=True)
        return [found[number] for number in numbers]

    def cause(self, number: int) -> str:
        return self.parts[self._of(number)].cause(number)

    def _of(self, number: int) -> int:
        return (number - 1) % len(self.parts)


@dataclass(frozen=True)
class KeptTrials:
    """Trials that were kept, by number."""

    rows: Mapping[int, Side]
    period: int = 1

    def take(self, numbers: Sequence[int]) -> Iterable[Side]:
        return [self.rows[number] for number in numbers]

    def cause(self, _: int) -> str:
        return "not looked for: the trial was kept, and is not run again"


def side_of(ruling: Ruling, prompt: str = "") -> Side:
    """One trial of a pair."""
    trial, verdict = ruling.trial, ruling.trial.verdict
    history, key = trial.history, ruling.trial.key
    used = [event for _, event in history.of(Usage)]
    prices = [event.cost_usd for event in used]
    known = not ruling.held or ruling.state is RulingState.FAILED
    return Side(
        well=None if ruling.state is RulingState.INVALID else ruling.state is RulingState.PASSED,
        outcome=str(verdict.outcome), why="; ".join(ruling.reasons) or verdict.why,
        calls=sum(1 for _ in history.of(CallStarted)), seconds=trial.seconds,
        tokens=sum(event.prompt_tokens + event.completion_tokens for event in used), harm=bool(verdict.harm),
        dollars=None if None in prices else sum(filter(None, prices)), done=verdict.done if known else None,
        met=ruling.met, held=ruling.held, prompt=prompt,
        models=tuple(dict.fromkeys(event.model for event in used)), story=partial(tell, history.records, key),
    )  # fmt: skip


def told_cause(failure: FoundFailure) -> str:
    """The cause with its condition."""
    return failure.cause + (
        "; no fault can be left out" if failure.minimal else "; not shown that none can be left out"
    )


def text_of(prompt: object) -> str:
    """The prompt as the text that names it."""
    said = "; ".join(each.say for each in prompt.turns) if isinstance(prompt, Conversation) else str(prompt)
    return line(said, PROMPT)
