"""Trials of the lab's own agent in virtual time, for scenarios: its ten tools and the offline model."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from chaoslab.agent.prompts import Prompt, as_data
from chaoslab.analysis.verdict.ledger import wish
from chaoslab.base.identity import digest
from chaoslab.config.limits import limited
from chaoslab.config.settings import Settings
from chaoslab.config.topology import WRITERS
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import PromptAttempt, PromptFinished
from chaoslab.core.limits import all_of
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution.drawn import Drawn, DrawnRun
from chaoslab.execution.exploring import Subject
from chaoslab.execution.forked import children
from chaoslab.execution.pipeline import results, written
from chaoslab.execution.spec import RunSpec, TrialSpec
from chaoslab.execution.trial import Trial
from chaoslab.execution.workers import executor
from chaoslab.lab._virtual_lab import LabResult, LabSpec, lasting
from chaoslab.record.history import History
from chaoslab.record.lines import parse_line
from chaoslab.record.log import BufferedEvent, lines_of
from chaoslab.record.runs import Run


@dataclass
class LabTrialResult:
    """The result of a trial of the lab's agent, with its events as a history."""

    spec: LabSpec
    result: LabResult
    warnings: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """See `TrialResult.wanted`."""
        return self.result.wanted

    @wanted.setter
    def wanted(self, wanted: bool) -> None:
        self.result.wanted = wanted

    @property
    def kept(self) -> list[BufferedEvent]:
        """The trial's events as they go into a log."""
        return self.result.kept

    @property
    def ok(self) -> bool:
        """True if the agent gave an answer."""
        return self.result.ok

    @cached_property
    def history(self) -> History:
        """All events of the trial."""
        began = datetime.fromisoformat(self.spec.now)
        lines = lines_of(self.result.kept, run=self.spec.name, began=began, after_s=0.0, seqs={})
        return History(record for line in lines if (record := parse_line(line)) is not None)


class AgentFailed(Exception):
    """The lab's agent gave no answer; the message is its own account."""


def lab_trials(
    prompt: str | Conversation, numbers: Sequence[int], *, faults: Sequence[Injection], seed: int, jobs: int = 1,
    timeout_s: float | None = None, deadline_s: float | None = None,
    effects: Sequence[Mapping[str, Any]] | None = None, facts: Sequence[Any] | None = None,
    logs: Path | None = None, drawn: Callable[[int], Drawn] | None = None, limit_s: float | None = None,
    limits: Any = None, keep: str = "all",
) -> Generator[Trial, None, None]:  # fmt: skip
    """Runs the trials with these numbers, from 0, like `numbered`. Settings of the environment have no influence.

    The answer is compared with that of a run without faults unless `facts` are given, and so are the effects unless
    `effects` are. `timeout_s`: the deadline of an attempt at a tool. `limit_s`: as `apart` of `numbered`, with the most
    seconds of real time for a trial. `keep`: see `RunOptions`.
    """
    spec = _spec(prompt, faults, seed, timeout_s, deadline_s, effects, facts, limits)
    spec, twin = _with_twin(spec, effects)
    run: RunSpec[LabResult] = spec if drawn is None else DrawnRun(spec, drawn)
    with ExitStack() as stack:
        book = folder = None
        if logs is not None:
            place = Run.create(logs, now=spec.now, name=spec.name, writers=WRITERS)
            place.make_latest()
            folder = place.folder
            book = stack.enter_context(written(run, len(numbers), folder, keep=keep))
        jobs = 1 if spec.sequential else jobs
        does = executor(jobs) if limit_s is None else children(jobs, limit_s, at_once=spec.sequential)
        for result in stack.enter_context(closing(results(run, numbers, executor=does, book=book))):
            own = spec.plan if drawn is None else replace(spec.plan, injections=drawn(result.number).injections)
            yield _trial(spec, result, own.without(result.off), twin, folder)


def subject(
    prompt: str | Conversation, targets: Sequence[str], check: Callable[[Injection], object], *, seed: int,
    effects: Sequence[Mapping[str, Any]] | None, facts: Sequence[Any] | None,
    timeout_s: float | None, deadline_s: float | None,
) -> Subject:  # fmt: skip
    """The lab's agent as what a search breaks; the arguments are those of `lab_trials`."""
    spec, twin = _with_twin(_spec(prompt, (), seed, timeout_s, deadline_s, effects, facts), effects)
    return Subject(spec, targets, check, lambda result, plan: _trial(spec, result, plan, twin))


def _with_twin(spec: LabSpec, effects: Sequence[Mapping[str, Any]] | None) -> tuple[LabSpec, Trial]:
    """The run with the effects of its twin, unless they are stated, and the twin."""
    # the first two trials without faults
    calm = replace(spec, plan=Plan(spec.plan.seed), twins=False)
    with calm.opened() as do:
        first, second = (_trial(calm, do(TrialSpec(number)), calm.plan, None) for number in range(2))
    twin, another = first, second
    if effects is None and twin.said is not None:
        stated = {"effects": [wish(each) for each in lasting(twin.effects, another.effects)]}
        spec = replace(spec, prompts=as_data([Prompt.model_validate({**spec.prompts[0], **stated})]))
    return spec, twin


def _spec(
    prompt: str | Conversation, faults: Sequence[Injection], seed: int, timeout_s: float | None,
    deadline_s: float | None, effects: Sequence[Mapping[str, Any]] | None, facts: Sequence[Any] | None,
    limits: Any = None,
) -> LabSpec:  # fmt: skip
    given = {"TOOL_TIMEOUT_S": timeout_s, "DEADLINE_S": deadline_s, "SEED": seed, "WORLD": "virtual"}
    if any(each.layer == "stream" for each in faults):
        given["STREAM"] = "on"
    chosen = Settings().override({name: str(value) for name, value in given.items() if value is not None})
    stated = {key: value for key, value in (("effects", effects), ("facts", facts)) if value is not None}
    asked = Prompt.of(prompt, **stated)
    prompts, plan = as_data([asked]), limited(Plan(seed, tuple(faults), () if limits is None else all_of(limits)))
    name = f"lab{seed}-{digest([plan.to_json(), chosen.shown(), prompts])}"
    return LabSpec(name, chosen.now, chosen, plan, prompts)


def _trial(spec: LabSpec, result: LabResult, plan: Plan, twin: Trial | None, folder: Path | None = None) -> Trial:
    found = LabTrialResult(spec, result)
    ended = next((event for _, event in found.history.of(PromptFinished)), None)
    told = [event.error for _, event in found.history.of(PromptAttempt) if event.error]
    answer = ended.answer if ended is not None and ended.status == "ok" else None
    error = AgentFailed(told[-1] if told else ended.error_type if ended else "") if answer is None else None
    return Trial(spec.named(TrialSpec(result.number)), answer, error, result.seconds, plan, twin, found, folder)
