"""What a Python user calls: one trial of an agent with faults at its functions, or many, each with what came of it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

from chaoslab.analysis.answers import Likeness, Twin, compare
from chaoslab.analysis.judge import Outcome, Verdict, effects_of, judge
from chaoslab.analysis.measures.durations import duration
from chaoslab.analysis.measures.mttr import Incident, incidents
from chaoslab.base.clock import iso
from chaoslab.base.identity import digest
from chaoslab.base.jsonable import describe_error, line, to_jsonable
from chaoslab.config.settings import DEFAULT_NOW
from chaoslab.core.events import CallStarted, PromptFinished
from chaoslab.core.inject import check
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution import validation
from chaoslab.execution.agent_run import WORLDS, AgentResult, AgentSpec, name_of
from chaoslab.execution.pipeline import results, written
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import executor
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.seams.function import CALLS_MAX

SHOWN = 300
"""Characters of a trial in one line."""


@dataclass
class Trial:
    """One trial and what came of it.

    `answer`: what the agent returned; `error`: what it raised; `seconds`: how long it took in its world's time; `twin`: the same without
    faults, if there was one; `plan`: what could go wrong.
    """

    key: str
    answer: Any
    error: BaseException | None
    seconds: float
    plan: Plan
    twin: Trial | None
    _result: AgentResult

    @property
    def seed(self) -> int:
        """The seed of the faults' dice."""
        return self.plan.seed

    @cached_property
    def history(self) -> History:
        """All that happened, as records of events in time order; printed, it is the story."""
        from chaoslab.reports.show import Story

        return Story.of_history(self._result.book.history)

    @cached_property
    def verdict(self) -> Verdict:
        """The outcome, the reason for it, and each harm in words."""
        return judge(self.history, self.key)

    @property
    def outcome(self) -> Outcome:
        """How the trial ended, as one of `lab.Outcome`."""
        return self.verdict.outcome

    @property
    def why(self) -> str:
        """The reason for the outcome, in one line."""
        return self.verdict.why

    @property
    def said(self) -> str | None:
        """The answer in words, as it is judged; None where the agent gave none."""
        finished = next((event for _, event in self.history.of(PromptFinished)), None)
        return finished.answer if finished is not None and finished.status == "ok" else None

    @property
    def ok(self) -> bool:
        """Whether the outcome is correct: `assert trial.ok, trial.story()`."""
        return self.outcome is Outcome.CORRECT

    def story(self) -> str:
        """All that happened, line by line, with the verdict and the warnings."""
        from chaoslab.reports import show

        return "".join([show.render(self.history), *(f"warning: {warning}\n" for warning in self.warnings)])

    def __bool__(self) -> NoReturn:
        raise TypeError("a Trial is neither true nor false: ask trial.ok, or trial.outcome")

    @property
    def effects(self) -> list[dict[str, Any]]:
        """What the agent did to the world: `{"effect": <function>, <parameter>: <argument>, …}`, as `effects=` states it."""
        return [{"effect": effect.effect, **effect.content} for effect in effects_of(self.history, self.key)]

    @property
    def recovery(self) -> dict[str, Incident]:
        """Per target that met a fault: when, how long until that request had a right answer, and by what; or that it never had one."""
        return {incident.target: incident for incident in incidents(self.history)}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know, such as functions that could not be watched."""
        return self._result.warnings

    def __str__(self) -> str:
        """The outcome and why, in one line; `story` tells all."""
        return line(f"{self.key} {self.outcome} after {duration(self.seconds)}: {self.why}", SHOWN)

    def __repr__(self) -> str:
        return line(f"Trial({self.key}, {self.outcome}: {self.why}", SHOWN - 1) + ")"


class Options(TypedDict, total=False):
    """What `run` and `run_many` take; `run` says what each means."""

    tools: Sequence[Any] | None
    reads: Sequence[Any] | None
    faults: Sequence[Injection] | None
    seed: int
    world: str
    timeout_s: float
    deadline_s: float
    calls_max: int
    services: Mapping[str, Any] | None
    effects: Sequence[Mapping[str, Any]] | None
    facts: Sequence[str | Sequence[str]] | None
    twin: bool | None
    logs: str | Path | None


def run(
    agent: Any,
    prompt: Any,
    *,
    tools: Sequence[Any] | None = (),
    reads: Sequence[Any] | None = (),
    faults: Sequence[Injection] | None = (),
    seed: int = 1,
    world: str = "virtual",
    timeout_s: float = 30.0,
    deadline_s: float = 3600.0,
    calls_max: int = CALLS_MAX,
    services: Mapping[str, Any] | None = None,
    effects: Sequence[Mapping[str, Any]] | None = None,
    facts: Sequence[str | Sequence[str]] | None = None,
    twin: bool | None = None,
    logs: str | Path | None = None,
) -> Trial:
    """One trial of an agent, whatever becomes of it. The agent is not edited: its functions are swapped while the trial goes on.

    `agent`: any callable from a prompt to an answer, sync or async, or a LangChain Runnable (asked by `ainvoke` where a tool is async
    only, else by `invoke`). `tools`: its functions that change the world, each call of which is an effect; `reads`: those that do not;
    functions, sync or async, bound methods, or LangChain tools. A parameter called `idempotency_key` is believed: calls with one key are
    one effect. `faults`: see `inject`. `world`: "virtual" (a clock that jumps, nothing real gets in or out) or "local" (this process,
    real time). `timeout_s`: after so long a caller gives up an attempt that a fault holds up. `deadline_s`: so much virtual time may pass
    (in the local world real time, which is looked at when a function is called: an agent that swallows even SystemExit is not ended).
    `calls_max`: so many calls, or requests to services, may follow one another without a wait in virtual time; more are a loop without end.
    `services`: WSGI applications by host name, on the virtual network as http://<name>; no faults there as yet. A list or mapping that
    is None is as if it were not given.

    What is right: `effects` as `Trial.effects` shows them, and no others; `facts` as texts (or lists of spellings) that the answer must show.
    Where no effects are stated the trial is compared with its `twin`: the same without faults, run first (in the local world only if
    `twin=True`). Its effects, and unless facts are stated its answer, are what should have been. An answer with other numbers, dates or names
    is wrong, one that cannot be compared by its words is unknown. Where effects alone are stated the answer is not judged, unless
    `twin=True`. Agent and functions must keep nothing from one trial to the next: in virtual time the twin is run twice, and what differs
    between the two is not compared, which `warnings` says; `agent=lab.fresh(make)` makes the agent anew for each trial.
    `logs`: a folder in which the run is left for `chaoslab show` and `summary`.

    Raises:
        ValueError, LookupError, TypeError: an argument that cannot be meant so, in one line.
        RuntimeError: another trial is under way in this process.
    """
    (trial,) = run_many(
        agent, prompt, trials=1, tools=tools, reads=reads, faults=faults, seed=seed, world=world, timeout_s=timeout_s,
        deadline_s=deadline_s, calls_max=calls_max, services=services, effects=effects, facts=facts, twin=twin, logs=logs,
    )  # fmt: skip
    return trial


def run_many(
    agent: Any, prompt: Any, *, trials: int, jobs: int = 1, **options: Unpack[Options]
) -> Generator[Trial, None, None]:
    """So many trials of an agent, one after the other as they are asked for, with all that `run` takes.

    The seed gives each trial dice of its own (its key is p1.r1, p1.r2 …). What the agent itself leaves to chance is drawn alike in all, so
    that one twin is the twin of all. `jobs`: so many processes side by side.

    Raises:
        NotPicklable: a TypeError; the processes cannot be forked, since this one has other threads, and what is given cannot be pickled.
    """
    validation.check_number("trials", trials, whole=True)
    validation.check_number("jobs", jobs, whole=True)
    spec, wants_twin, logs = _checked(agent, prompt, options)
    return _trials(spec, trials, jobs, wants_twin=wants_twin, logs=logs)


def _trials(
    spec: AgentSpec, trials: int, jobs: int, *, wants_twin: bool, logs: Path | None
) -> Generator[Trial, None, None]:
    twin = None
    with ExitStack() as stack:
        stack.enter_context(spec.prepared())  # workers that are forked find it so
        if wants_twin:
            twin, spec = _compared(spec)
        book = None
        if logs is not None:
            run = Run.create(logs, now=spec.now, name=spec.name)
            run.make_latest()
            book = stack.enter_context(written(spec, trials, run.folder))
        done = results(spec, trials, executor=executor(jobs), book=book)
        for result in stack.enter_context(closing(done)):
            yield _trial(result, spec.plan, twin)


def _trial(result: AgentResult, plan: Plan, twin: Trial | None) -> Trial:
    return Trial(result.book.trial.key, result.answer, result.error, result.seconds, plan, twin, result)


def _compared(spec: AgentSpec) -> tuple[Trial, AgentSpec]:
    """The twin without faults, and the run that is to be compared with it in whatever was not stated."""
    calm, first = Plan(spec.plan.seed), TrialSpec(0)
    with replace(spec, plan=calm).opened() as do:
        twin = _trial(do(first), calm, None)
        again = _trial(do(first), calm, None) if spec.world == "virtual" else twin
    spec = replace(spec, called=twin._result.called)
    why = ""
    if twin.said is None:
        why = f"it fails without faults too ({_failure(twin)})"
        return twin, replace(spec, incomparable=f"nothing to compare with, since {why}", notes=(_NO_TWIN.format(why),))
    effects = None if again.effects != twin.effects else [_wish(effect) for effect in twin.effects]
    answer = None if again.said is None or compare(twin.said, again.said).likeness is not Likeness.SAME else twin.said
    if answer is None:
        why = f"its answer is {_short(twin.said)} in one and {_short(again.said) if again.said else _failure(again)} in the other"
    elif effects is None:
        why = f"it has {len(twin.effects)} effects in one and {len(again.effects)} in the other"
        why = "its effects differ" if len(twin.effects) == len(again.effects) else why
    notes = (_LEAKS.format(why),) if why else ()
    facts_stated, effects_stated = bool(spec.facts), spec.effects is not None
    held = (facts_stated or answer is not None) and (effects_stated or effects is not None)
    incomparable = "" if held else f"two runs without faults differ: {why}"
    return twin, replace(
        spec,
        effects=spec.effects if effects_stated else effects,
        twin=Twin(
            None if facts_stated else answer,
            twin.seconds,
            sum(1 for _ in twin.history.of(CallStarted)),
        ),
        incomparable=incomparable,
        stated=facts_stated or effects_stated or answer is not None or effects is not None,
        notes=notes,
    )


_NO_TWIN = "nothing to compare with, since {}"
_LEAKS = (
    "two runs without faults differ: {}; something is kept from one trial to the next: "
    "give agent=lab.fresh(make), which makes the agent anew for each trial"
)


def _failure(trial: Trial) -> str:
    return describe_error(trial.error) if trial.error else "it would never have ended"


def _short(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else f"{text[: width - 1]}…")


def _wish(effect: Mapping[str, Any]) -> dict[str, Any]:
    """An effect as it must happen again. A list in it would be a choice of values, so it stands in a list."""
    return {name: [value] if isinstance(value, list) else value for name, value in effect.items()}


# What is looked at before anything is started.


def _checked(agent: Any, prompt: Any, given: Options) -> tuple[AgentSpec, bool, Path | None]:
    tools, reads = (validation.functions(where, given.get(where)) for where in ("tools", "reads"))
    faults = validation.a_list("faults", given.get("faults"), '[lab.inject("latency", "refund")]')
    services, seed = validation.services(given.get("services")), given.get("seed", 1)
    world, logs, twin = given.get("world", "virtual"), given.get("logs"), given.get("twin")
    timeout_s, deadline_s = given.get("timeout_s", 30.0), given.get("deadline_s", 3600.0)
    calls_max = given.get("calls_max", CALLS_MAX)
    _check_world(world, services)
    validation.check_number("seed", seed, whole=True, least=0)
    validation.check_number("timeout_s", timeout_s)
    validation.check_number("deadline_s", deadline_s)
    validation.check_number("calls_max", calls_max, whole=True)
    if logs is not None and not isinstance(logs, str | os.PathLike):
        raise TypeError(f"logs is {validation.shown(logs)}: it should be a folder, as in 'logs'")
    names = validation.names_of(agent, tools, reads, services)
    plan = Plan(seed, check(faults, names))
    for injection in plan.injections:
        if hit := [target for target in injection.targets if target in services]:
            raise ValueError(f"'{injection.name}' is aimed at the service {hit[0]}: faults meet functions alone as yet")
    effects = None
    if given.get("effects") is not None:
        effects = validation.effects(given.get("effects"), {name_of(function): function for function in tools})
    facts = validation.facts(given.get("facts"))
    both = effects is not None and bool(facts)
    if twin is not None and not isinstance(twin, bool):
        raise TypeError(f"twin is {validation.shown(twin)}: it should be True, False or None")
    if twin and both:
        raise ValueError(
            "twin=True compares with a run without faults, and effects and facts state all that is right: leave one of them out"
        )
    known = digest(
        [plan.to_json(), str(prompt), names, timeout_s, deadline_s, facts, to_jsonable(effects), world, calls_max]
    )
    spec = AgentSpec(
        agent, prompt, tools, reads, plan, f"py{seed}-{known}",
        world, iso(datetime.fromisoformat(DEFAULT_NOW)), timeout_s, deadline_s, services, effects, facts,
        stated=effects is not None or bool(facts),
        calls_max=calls_max,
    )  # fmt: skip
    return (
        spec,
        (effects is None and world == "virtual") if twin is None else twin,
        None if logs is None else Path(logs),
    )


def _check_world(world: str, services: Mapping[str, Any]) -> None:
    if world == "compose":
        raise ValueError(
            "world='compose' is for the lab's own agent (chaoslab run --world compose): functions cannot be moved into containers"
        )
    if world not in WORLDS:
        raise ValueError(f"world is {world!r}: it should be 'virtual' (a clock that jumps) or 'local' (real time)")
    if services and world != "virtual":
        raise ValueError("services stand on the virtual network: they need world='virtual'")
    for module in ("greenlet", "time_machine") if world == "virtual" else ():
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError("world='virtual' needs: pip install 'chaoslab[virtual]'")
