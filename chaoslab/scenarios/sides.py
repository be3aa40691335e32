"""The trials of one side of a comparison: of a scenario, of an agent in Python, or of rows that were kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from chaoslab.analysis.measures.incidents import incidents
from chaoslab.analysis.measures.recovery_quality import recovery_quality
from chaoslab.analysis.measures.trace_diff import tell
from chaoslab.base.jsonable import line
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import CallStarted, Usage
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
    """One side of a comparison."""

    def take(self, numbers: Sequence[int]) -> Iterable[Side]:
        """The trials with these numbers, from 1, in order."""

    def cause(self, number: int, /) -> str:
        """The smallest cause of a trial that is not well, in one line, or why there is none."""


@dataclass(frozen=True)
class OfScenario:
    """The trials of a scenario."""

    scenario: Scenario
    seed: int | None = None
    jobs: int = 1

    def take(self, numbers: Sequence[int]) -> list[Side]:
        made = run(self.scenario, only=numbers, seed=self.seed, jobs=self.jobs, apart=True)
        return [side_of(ruling, text_of(self.scenario.prompt)) for ruling in made]

    def cause(self, number: int) -> str:
        try:
            return shrink(self.scenario, number, seed=self.seed).cause
        except ValueError as error:  # a ScenarioError is one
            return f"not found: {line(str(error), PROMPT)}"


@dataclass(frozen=True)
class OfAgent:
    """The trials of an agent in Python."""

    asked: RunArguments
    rules: TrialRules
    jobs: int = 1

    def take(self, numbers: Sequence[int]) -> Iterable[Side]:
        made = zip(numbers, self._trials(numbers), strict=True)
        return [side_of(ruled(self.rules, number, trial), text_of(self.asked.prompt)) for number, trial in made]

    def cause(self, number: int) -> str:
        try:
            (trial,) = self._trials([number])
            return shrink_trial(trial, accept=self.rules.accept, count_words=self.rules.count_words).cause
        except ValueError as error:
            return f"not found: {line(str(error), PROMPT)}"

    def _trials(self, numbers: Sequence[int]) -> Iterable[Trial]:
        return numbered(self.asked, [number - 1 for number in numbers], jobs=self.jobs)


@dataclass(frozen=True)
class SeveralSides:
    """Several prompts or variants, in turns: the trial n is one of the n-th of them."""

    parts: Sequence[Sides]

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
    quality = recovery_quality(history, {key: verdict})
    return Side(
        None if ruling.state is RulingState.INVALID else ruling.state is RulingState.PASSED, verdict.name,
        "; ".join(ruling.reasons) or verdict.why, sum(1 for _ in history.of(CallStarted)), trial.seconds,
        sum(event.prompt_tokens + event.completion_tokens for event in used), bool(verdict.harm),
        None if None in prices else sum(filter(None, prices)), None if quality is None else quality.quality,
        tuple((one.duration_s, one.recovered, one.censored) for one in incidents(history)), not verdict.certain, prompt,
        tuple(dict.fromkeys(event.model for event in used)), partial(tell, history.records, key),
    )  # fmt: skip


def text_of(prompt: object) -> str:
    """The prompt as the text that names it."""
    said = "; ".join(each.say for each in prompt.turns) if isinstance(prompt, Conversation) else str(prompt)
    return line(said, PROMPT)
