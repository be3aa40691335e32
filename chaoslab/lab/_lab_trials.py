"""Trials of the lab's own agent in virtual time, for scenarios: its ten tools and the offline model."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from chaoslab.agent.prompts import Prompt, prompts_to_json
from chaoslab.analysis.verdict.ledger import make_expected_effect
from chaoslab.base.identity import hash_value
from chaoslab.config.limits import add_environment_limits
from chaoslab.config.settings import Settings
from chaoslab.config.topology import WRITERS
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import PromptAttempt, PromptFinished
from chaoslab.core.limits import parse_limits
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution.drawn import DrawnPlan, DrawnRun
from chaoslab.execution.exploring import Subject
from chaoslab.execution.forked import make_executor
from chaoslab.execution.pipeline import open_run_folder, run_trials
from chaoslab.execution.spec import RunSpec, TrialSpec
from chaoslab.execution.trial import Trial
from chaoslab.lab._virtual_lab import LabResult, LabSpec, drop_unstable_effect_fields
from chaoslab.record.history import History
from chaoslab.record.lines import parse_line
from chaoslab.record.log import BufferedEvent, render_lines
from chaoslab.record.runs import Run


@dataclass
class LabTrialResult:
    """The result of a trial of the lab's agent, with its events as a history."""

    spec: LabSpec
    result: LabResult
    warnings: tuple[str, ...] = ()

    @property
    def is_story_requested(self) -> bool:
        """See `TrialResult.is_story_requested`."""
        return self.result.is_story_requested

    @is_story_requested.setter
    def is_story_requested(self, wanted: bool) -> None:
        self.result.is_story_requested = wanted

    @property
    def buffered_events(self) -> list[BufferedEvent]:
        """The trial's events as they go into a log."""
        return self.result.buffered_events

    @property
    def ok(self) -> bool:
        """True if the agent gave an answer."""
        return self.result.ok

    @cached_property
    def history(self) -> History:
        """All events of the trial."""
        begin = datetime.fromisoformat(self.spec.now)
        lines = render_lines(self.result.buffered_events, run=self.spec.name, began=begin, after_s=0.0, seqs={})
        return History(record for line in lines if (record := parse_line(line)) is not None)


class AgentFailed(Exception):
    """The lab's agent gave no answer; the message is its own account."""


def run_lab_trials(
    prompt: str | Conversation,
    numbers: Sequence[int],
    *,
    faults: Sequence[Injection],
    seed: int,
    jobs: int = 1,
    timeout_s: float | None = None,
    deadline_s: float | None = None,
    effects: Sequence[Mapping[str, Any]] | None = None,
    facts: Sequence[Any] | None = None,
    logs: Path | None = None,
    drawn: Callable[[int], DrawnPlan] | None = None,
    limit_s: float | None = None,
    limits: Any = None,
    keep: str = "all",
) -> Generator[Trial, None, None]:
    """Runs the trials with these numbers, from 0, like `numbered`. Settings of the environment have no influence.

    The answer is compared with that of a run without faults unless `facts` are given, and so are the effects unless
    `effects` are. `timeout_s`: the deadline of an attempt at a tool. `limit_s`: as `apart` of `numbered`, with the most
    seconds of real time for a trial. `keep`: see `RunOptions`.
    """
    spec = _make_lab_spec(prompt, faults, seed, timeout_s, deadline_s, effects, facts, limits)
    spec, twin = _run_and_attach_twin(spec, effects)
    run: RunSpec[LabResult] = spec if drawn is None else DrawnRun(spec, drawn)
    with ExitStack() as stack:
        book = folder = None
        if logs is not None:
            run_folder = Run.create(logs, now=spec.now, name=spec.name, writers=WRITERS)
            run_folder.link_as_latest()
            folder = run_folder.folder
            book = stack.enter_context(open_run_folder(run, len(numbers), folder, keep=keep))
        jobs = 1 if spec.is_sequential else jobs
        pool = make_executor(jobs, limit_s, at_once=spec.is_sequential)
        for result in stack.enter_context(closing(run_trials(run, numbers, executor=pool, book=book))):
            trial_plan = spec.plan if drawn is None else replace(spec.plan, injections=drawn(result.number).injections)
            yield _make_trial(spec, result, trial_plan.with_injections_off(result.off), twin, folder)


def make_search_subject(
    prompt: str | Conversation,
    targets: Sequence[str],
    check: Callable[[Injection], object],
    *,
    seed: int,
    effects: Sequence[Mapping[str, Any]] | None,
    facts: Sequence[Any] | None,
    timeout_s: float | None,
    deadline_s: float | None,
) -> Subject:
    """The lab's agent as what a search breaks; the arguments are those of `run_lab_trials`."""
    spec, twin = _run_and_attach_twin(_make_lab_spec(prompt, (), seed, timeout_s, deadline_s, effects, facts), effects)
    return Subject(spec, targets, check, lambda result, plan: _make_trial(spec, result, plan, twin))


def _run_and_attach_twin(spec: LabSpec, effects: Sequence[Mapping[str, Any]] | None) -> tuple[LabSpec, Trial]:
    """The run with the effects of its twin, unless they are stated, and the twin."""
    # the first two trials without faults
    without_faults_spec = replace(spec, plan=Plan(spec.plan.seed), twins=False)
    with without_faults_spec.open_runner() as do:
        first, second = (
            _make_trial(without_faults_spec, do(TrialSpec(number)), without_faults_spec.plan, None)
            for number in range(2)
        )
    twin, second_twin = first, second
    if effects is None and twin.said is not None:
        effect_values = {
            "effects": [
                make_expected_effect(effect)
                for effect in drop_unstable_effect_fields(twin.effects, second_twin.effects)
            ]
        }
        spec = replace(spec, prompts=prompts_to_json([Prompt.model_validate({**spec.prompts[0], **effect_values})]))
    return spec, twin


def _make_lab_spec(
    prompt: str | Conversation,
    faults: Sequence[Injection],
    seed: int,
    timeout_s: float | None,
    deadline_s: float | None,
    effects: Sequence[Mapping[str, Any]] | None,
    facts: Sequence[Any] | None,
    limits: Any = None,
) -> LabSpec:
    overrides = {"TOOL_TIMEOUT_S": timeout_s, "DEADLINE_S": deadline_s, "SEED": seed, "WORLD": "virtual"}
    if any(injection.layer == "stream" for injection in faults):
        overrides["STREAM"] = "on"
    chosen = Settings().override({name: str(value) for name, value in overrides.items() if value is not None})
    result_values = {key: value for key, value in (("effects", effects), ("facts", facts)) if value is not None}
    prompt_model = Prompt.build(prompt, **result_values)
    prompts, plan = (
        prompts_to_json([prompt_model]),
        add_environment_limits(Plan(seed, tuple(faults), () if limits is None else parse_limits(limits))),
    )
    name = f"lab{seed}-{hash_value([plan.to_json(), chosen.to_masked_dict(), prompts])}"
    return LabSpec(name, chosen.now, chosen, plan, prompts)


def _make_trial(spec: LabSpec, result: LabResult, plan: Plan, twin: Trial | None, folder: Path | None = None) -> Trial:
    lab_result = LabTrialResult(spec, result)
    end = next((event for _, event in lab_result.history.find_events(PromptFinished)), None)
    errors = [event.error for _, event in lab_result.history.find_events(PromptAttempt) if event.error]
    answer = end.answer if end is not None and end.status == "ok" else None
    error = AgentFailed(errors[-1] if errors else end.error_type if end else "") if answer is None else None
    return Trial(
        spec.get_work_item_name(TrialSpec(result.number)), answer, error, result.seconds, plan, twin, lab_result, folder
    )
