"""The trials of one side of a comparison: of a scenario, of an agent in Python, or of rows that were kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from chaoslab.analysis.measures.trace_diff import build_story
from chaoslab.base.jsonable import to_one_line
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import CallStarted, Usage
from chaoslab.execution.explore import FoundFailure
from chaoslab.execution.explore import shrink as shrink_trial
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import Trial, run_numbered_trials
from chaoslab.record.rulings import RulingState
from chaoslab.scenarios.exploring import shrink_failing_trial
from chaoslab.scenarios.running import Ruling, TrialRules, rule_trial, run_scenario
from chaoslab.scenarios.scenario import Scenario
from chaoslab.search.pairs import Side

PROMPT = 300
"""The most characters of a prompt."""


class ComparisonSide(Protocol):
    """One side of a comparison. `round_size`: the trials of a round, in which each of its prompts is asked."""

    @property
    def round_size(self) -> int: ...

    def produce_trials(self, numbers: Sequence[int]) -> Iterable[Side]:
        """The trials with these numbers, from 1, in order."""

    def explain_cause(self, number: int, /) -> str:
        """The cause of a trial that is not well, in one line, or why there is none."""


@dataclass(frozen=True)
class ScenarioSide:
    """The trials of a scenario."""

    scenario: Scenario
    seed: int | None = None
    jobs: int = 1
    # Each of a scenario's own trials asks the same, so a round is one.
    round_size = 1

    def produce_trials(self, numbers: Sequence[int]) -> list[Side]:
        rulings = run_scenario(self.scenario, only=numbers, seed=self.seed, jobs=self.jobs, apart=True)
        return [ruling_to_side(ruling, render_prompt(self.scenario.prompt)) for ruling in rulings]

    def explain_cause(self, number: int) -> str:
        try:
            return describe_cause(shrink_failing_trial(self.scenario, number, seed=self.seed))
        except ValueError as error:  # a ScenarioError is one
            return f"not found: {to_one_line(str(error), PROMPT)}"


@dataclass(frozen=True)
class AgentSide:
    """The trials of an agent in Python."""

    asked: RunArguments
    rules: TrialRules
    jobs: int = 1
    round_size = 1

    def produce_trials(self, numbers: Sequence[int]) -> Iterable[Side]:
        numbered_trials = zip(numbers, self._run_trials(numbers), strict=True)
        return [
            ruling_to_side(rule_trial(self.rules, number, trial), render_prompt(self.asked.prompt))
            for number, trial in numbered_trials
        ]

    def explain_cause(self, number: int) -> str:
        try:
            (trial,) = self._run_trials([number])
            return describe_cause(shrink_trial(trial, accept=self.rules.accept))
        except ValueError as error:
            return f"not found: {to_one_line(str(error), PROMPT)}"

    def _run_trials(self, numbers: Sequence[int]) -> Iterable[Trial]:
        return run_numbered_trials(self.asked, [number - 1 for number in numbers], jobs=self.jobs)


@dataclass(frozen=True)
class SeveralSides:
    """Several prompts or variants, in turns: the trial n is one of the n-th of them."""

    parts: Sequence[ComparisonSide]

    @property
    def round_size(self) -> int:
        return len(self.parts)

    def produce_trials(self, numbers: Sequence[int]) -> Iterable[Side]:
        by_number: dict[int, Side] = {}
        for index in dict.fromkeys(map(self._find_part_index, numbers)):
            own_numbers = [number for number in numbers if self._find_part_index(number) == index]
            by_number |= zip(own_numbers, self.parts[index].produce_trials(own_numbers), strict=True)
        return [by_number[number] for number in numbers]

    def explain_cause(self, number: int) -> str:
        return self.parts[self._find_part_index(number)].explain_cause(number)

    def _find_part_index(self, number: int) -> int:
        return (number - 1) % len(self.parts)


@dataclass(frozen=True)
class KeptTrials:
    """Trials that were kept, by number."""

    rows: Mapping[int, Side]
    round_size = 1

    def produce_trials(self, numbers: Sequence[int]) -> Iterable[Side]:
        return [self.rows[number] for number in numbers]

    def explain_cause(self, _: int) -> str:
        return "not looked for: the trial was kept, and is not run again"


def ruling_to_side(ruling: Ruling, prompt: str = "") -> Side:
    """One trial of a pair."""
    trial, verdict = ruling.trial, ruling.trial.verdict
    history, key = trial.history, ruling.trial.key
    usages = [event for _, event in history.find_events(Usage)]
    prices = [event.cost_usd for event in usages]
    # What was held back may have failed for that, so what was done is not known.
    is_known = not ruling.held or ruling.state is RulingState.FAILED
    return Side(
        well=None if ruling.state is RulingState.INVALID else ruling.state is RulingState.PASSED,
        outcome=str(verdict.outcome),
        why="; ".join(ruling.reasons) or verdict.why,
        calls=sum(1 for _ in history.find_events(CallStarted)),
        seconds=trial.seconds,
        tokens=sum(event.prompt_tokens + event.completion_tokens for event in usages),
        harm=bool(verdict.harm),
        dollars=None if None in prices else sum(filter(None, prices)),
        done=verdict.done if is_known else None,
        met=ruling.has_met_fault,
        held=ruling.held,
        prompt=prompt,
        models=tuple(dict.fromkeys(event.model for event in usages)),
        story=partial(build_story, history.records, key),
    )


def describe_cause(failure: FoundFailure) -> str:
    """The cause with its condition."""
    return failure.cause + (
        "; no fault can be left out" if failure.minimal else "; not shown that none can be left out"
    )


def render_prompt(prompt: object) -> str:
    """The prompt as the text that names it."""
    text = (
        "; ".join(prompt_turn.say for prompt_turn in prompt.turns) if isinstance(prompt, Conversation) else str(prompt)
    )
    return to_one_line(text, PROMPT)
