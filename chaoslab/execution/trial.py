"""`run` and `run_many`: trials of a user's agent with faults at its functions and services, and their results."""

from __future__ import annotations

import atexit
import importlib.util
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, Unpack
from weakref import WeakSet

from chaoslab.analysis.answers import Twin, compare
from chaoslab.analysis.idle import Idle, idle
from chaoslab.analysis.judge import Outcome, Verdict, judge
from chaoslab.analysis.ledger import effects_of
from chaoslab.analysis.likeness import Likeness
from chaoslab.analysis.measures.incidents import Incident, how_bad, incidents
from chaoslab.base.clock import iso
from chaoslab.base.durations import duration
from chaoslab.base.identity import digest
from chaoslab.base.jsonable import describe_error, line, to_jsonable
from chaoslab.base.terminal import clean
from chaoslab.config.settings import DEFAULT_NOW, name_secrets
from chaoslab.core.conversation import Conversation
from chaoslab.core.events import CallStarted, EndState, Event, PromptFinished
from chaoslab.core.inject import check
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution import validation
from chaoslab.execution.agents.case import AgentResult
from chaoslab.execution.agents.functions import name_of
from chaoslab.execution.agents.run import WORLDS, AgentSpec
from chaoslab.execution.drawn import Drawn, DrawnRun
from chaoslab.execution.gateway import check_clocks, check_refusing
from chaoslab.execution.pipeline import results, written
from chaoslab.execution.spec import RunSpec, TrialSpec
from chaoslab.execution.workers import executor
from chaoslab.model.formats import with_objects
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.seams import adapters
from chaoslab.seams.functions.seam import CALLS_MAX
from chaoslab.seams.services.refusals import check as check_services

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 300
"""The longest one-line text of a trial, in characters."""


@dataclass
class Trial:
    """The result of one trial.

    `answer`: the agent's return value. `error`: the exception it raised. `seconds`: its duration, in the world's time.
    `twin`: the same trial without faults, if there was one. `plan`: the faults that could happen. `folder`: the folder
    of its run's logs, if they are written.
    """

    key: str
    answer: Any
    error: BaseException | None
    seconds: float
    plan: Plan
    twin: Trial | None
    _result: Any
    """Its result with `history` and `warnings`: an `AgentResult`, or that of the lab's agent."""
    folder: Path | None = None

    @property
    def seed(self) -> int:
        """The seed of the faults' dice."""
        return self.plan.seed

    def _events(self) -> Iterator[Event]:
        """The events without records, which the history makes of them: to be read once, and instead of it."""
        found: Iterator[Event] = self._result.book.events()
        return found

    @cached_property
    def history(self) -> History:
        """The trial's events as records in time order; it prints as the story."""
        from chaoslab.reports.show import Story

        return Story.of_history(self._result.history)

    @cached_property
    def verdict(self) -> Verdict:
        """The outcome, the reason for it, and a text for each harm."""
        return judge(self.history, self.key)

    @property
    def outcome(self) -> Outcome:
        """The outcome, a member of `lab.Outcome`."""
        return self.verdict.outcome

    @property
    def why(self) -> str:
        """The reason for the outcome, in one line."""
        return self.verdict.why

    @property
    def said(self) -> str | None:
        """The answer as the text that is judged; None if the agent gave none."""
        finished = next((event for _, event in self.history.of(PromptFinished)), None)
        return finished.answer if finished is not None and finished.status == "ok" else None

    @property
    def ok(self) -> bool:
        """True if the outcome is correct: `assert trial.ok, trial.story()`."""
        return self.outcome is Outcome.CORRECT

    def story(self) -> str:
        """The whole trial, line by line, with the verdict and the warnings."""
        from chaoslab.reports import show

        warnings = (f"warning: {warning}\n" for warning in self.warnings)
        return clean("".join([show.render(self.history), *warnings]))

    def __bool__(self) -> NoReturn:
        raise TypeError("a Trial is neither true nor false: ask trial.ok, or trial.outcome")

    @property
    def effects(self) -> list[dict[str, Any]]:
        """The agent's effects, each as `{"effect": <function>, <parameter>: <argument>, …}`, like those given as
        `effects=`. An effect of a service is named after the request, as in "POST /orders"."""
        return [{"effect": effect.effect, **effect.content} for effect in effects_of(self.history, self.key)]

    @property
    def end_state(self) -> Any:
        """The JSON value that `state` returned at the end; None without `state`, or if it failed."""
        return next((event.after for _, event in self.history.of(EndState)), None)

    @property
    def recovery(self) -> dict[str, Incident]:
        """The incident of each target that met a fault, with its time, its duration and its ending. Of several it is
        the worst: one with harm, then one that never recovered, then the longest."""
        return {incident.target: incident for incident in sorted(self.incidents, key=how_bad)}

    @property
    def incidents(self) -> list[Incident]:
        """An incident for each request that met a fault, in the order in which they began."""
        return incidents(self.history)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the trial, such as functions that could not be watched, or faults that hit nothing."""
        return (*self._result.warnings, *idle(self.history, self.plan.injections))

    def __str__(self) -> str:
        """The outcome and its reason in one line; `story` has the details."""
        return line(f"{self.key} {self.outcome} after {duration(self.seconds)}: {self.why}", SHOWN)

    def __repr__(self) -> str:
        return line(f"Trial({self.key}, {self.outcome}: {self.why}", SHOWN - 1) + ")"


class Options(TypedDict, total=False):
    """The options of `run` and `run_many`; `run` explains them."""

    tools: Sequence[Any] | None
    reads: Sequence[Any] | None
    faults: Sequence[Injection] | None
    seed: int
    world: str
    timeout_s: float
    deadline_s: float
    calls_max: int
    services: Mapping[str, Any] | None
    elsewhere: str
    upstreams: Mapping[str, str] | None
    models: Sequence[str] | None
    effects: Sequence[Mapping[str, Any]] | None
    facts: Sequence[str | Sequence[str]] | None
    twin: bool | None
    logs: str | Path | None
    ignore: Sequence[str] | None
    raises: str | Mapping[str, Any] | None
    isolate: str | None
    state: Callable[[], Any] | None


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
    elsewhere: str = "refuse",
    upstreams: Mapping[str, str] | None = None,
    models: Sequence[str] | None = None,
    effects: Sequence[Mapping[str, Any]] | None = None,
    facts: Sequence[str | Sequence[str]] | None = None,
    twin: bool | None = None,
    logs: str | Path | None = None,
    ignore: Sequence[str] | None = None,
    raises: str | Mapping[str, Any] | None = None,
    isolate: str | None = None,
    state: Callable[[], Any] | None = None,
) -> Trial:
    """Runs one trial of an agent, and returns its result even if the agent fails. The agent's code is not edited: its
    functions are swapped during the trial.

    The agent and its functions:

        `agent`: a callable that takes the prompt and returns the answer, sync or async, or a LangChain Runnable. A
            Runnable is called by `invoke`, or by `ainvoke` if a tool is async only.
        `prompt`: what the agent is called with, or a conversation (`lab.turns`), whose turns it is called with.
        `tools`: the functions that change the world. Each call of one is an effect.
        `reads`: the functions that do not. Both lists take functions (sync or async), bound methods, objects that can
            be called, tools of a framework that the lab knows (such as LangChain), and `mcp_tool`. Calls with the same
            `idempotency_key` argument count as one effect.
        `ignore`: names of parameters that are no arguments of a request, beside those that a framework fills in.
        `raises`: the exceptions by which a tool's caller learns of a fault: "httpx", "httpx2", "requests", "aiohttp",
            "urllib", or classes by kind ("timed_out", "refused", "reset", "closed", "unresolved", "untrusted",
            "status"), or one of these for each tool by its name. By default they are Python's own, and `ToolError` for
            a status.
        `isolate`: "fork" runs each trial in a process of its own, a copy of this one, so that nothing of a trial is
            left to the next.
        `services`: applications by host name, served on the virtual network at http://<name> and https://<name>, or at
            the port of a name such as "localhost:11434": WSGI, ASGI 3, or a function from a request (`method`, `path`,
            `query`, `headers`, `json`, `text`, `body`) to a dict, a text, (status, body) or (status, body, headers).
            Faults hit the requests to them, whatever client makes them. A request's tool is its method and path, as in
            "POST /orders", and its arguments are the fields of its JSON or form and `query`. One with an unsafe method
            and a reply of 2xx is an effect; those with one Idempotency-Key are one effect. A reply's header
            `X-Lab-Effect` states other effects: "none", or JSON such as {"effect": "order_placed", "item": "tea"}.
        `upstreams`: addresses of services by name, for world="local". They stand behind a gateway on loopback, and the
            agent finds its address in the environment: `CRM_URL` for "crm", and for "model" (or "openai", "anthropic",
            "groq", "gemini") the variables in which the providers' SDKs look. Faults hit the requests as at `services`.
        `models`: the services that speak a model's API (OpenAI, Anthropic, Gemini). Their requests are no effects, and
            their tokens and dollars are counted. Faults of the context hit them, and errors come in the provider's own
            form. `lab.offline_model()`, `lab.scripted(…)` and `lab.recorded(…)` are known without being named.

    The faults and the world:

        `faults`: see `inject`.
        `seed`: the seed of the faults' dice.
        `world`: "virtual" (a clock that jumps; no real input or output) or "local" (this process, in real time).
        `timeout_s`: the caller's timeout for an attempt that a fault delays. A client of a service has its own.
        `deadline_s`: the longest duration of the trial, without the waits between turns. Real time is checked when a
            function is called, so in the local world an agent that swallows SystemExit is not ended.
        `elsewhere`: what becomes of a host that is no service: "refuse" ends the trial, "unreachable" is a name that is
            not found, with a warning. The telemetry of some SDKs is unreachable in any case.
        `calls_max`: the most calls, or requests to services, without a wait in virtual time. More count as an endless
            loop.
        `logs`: a folder for the run's logs, which `chaoslab show` and `summary` read.

    The expected result:

        `effects`: exactly the effects that should happen, as in `Trial.effects`, those of services too.
        `facts`: texts, or lists of spellings, that the answer must show.
        `state`: a function without parameters that returns the state of the agent's world, such as
            the orders of a shop or the rows of a table. It is read before and after each trial, outside of faults. An
            end state other than the twin's is harm; if the place is as it was before, something was not done.
        `twin`: True compares the trial with a run of it without faults. By default that is so in the virtual world if
            no `effects` are given.

    The twin runs first. Its effects are the expected ones unless `effects` are given, and its answer unless `facts`
    are. An answer with other numbers, dates or names is wrong. An answer that cannot be compared by its words is
    unknown. If only `effects` are given and `twin` is not True, the answer is not judged.

    Agent and functions must keep no state between trials. In virtual time the twin runs twice; differences between the
    two runs are not compared, and `warnings` names them. `agent=lab.fresh(make)` makes a new agent for each trial. None
    for a list or a mapping means the same as leaving it out.

    Raises:
        ValueError, LookupError, TypeError: an argument is invalid; the message is one line.
        RuntimeError: another trial is under way in this process.

    Warns:
        NothingHit: a fault hit or changed nothing, as in `Trial.warnings`.
    """
    (trial,) = numbered(
        agent, prompt, range(1), tools=tools, reads=reads, faults=faults, seed=seed, world=world,
        timeout_s=timeout_s, deadline_s=deadline_s, calls_max=calls_max, services=services, models=models,
        elsewhere=elsewhere, effects=effects, facts=facts, twin=twin, logs=logs, ignore=ignore, raises=raises,
        isolate=isolate, upstreams=upstreams, state=state,
    )  # fmt: skip
    for said in idle(trial.history, trial.plan.injections):
        warnings.warn(said, NothingHit, stacklevel=3)
    return trial


class NothingHit(UserWarning):
    """A fault that had to hit has hit or changed nothing in any trial, such as one whose `tool=` fits no call."""


def run_many(agent: Any, prompt: Any, *, trials: int, jobs: int = 1, **options: Unpack[Options]) -> Trials:
    """Runs `trials` trials of an agent, each when the iterator is advanced; `.frame()` makes one table of all. The
    options are those of `run`.

    Each trial has its own dice for the faults; the trials' keys are p1.r1, p1.r2 and so on. The agent's own random
    numbers are the same in all trials, so one twin serves all. `jobs`: the number of processes.

    Raises:
        NotPicklable: a TypeError; this process has other threads, so workers cannot be forked, and an argument cannot
            be pickled.
    """
    validation.check_number("trials", trials, whole=True)
    validation.check_number("jobs", jobs, whole=True)
    return Trials(_watched(numbered(agent, prompt, range(trials), jobs=jobs, **options)))


class Trials(Iterator[Trial]):
    """The trials of `run_many`. Each is run when it is asked for, and then not kept here."""

    def __init__(self, trials: Generator[Trial, None, None]) -> None:
        self._trials, self._taken = trials, 0

    def __next__(self) -> Trial:
        self._taken += 1
        return next(self._trials)

    def close(self) -> None:
        """Ends them early."""
        self._trials.close()

    def frame(self) -> pd.DataFrame:
        """Runs all trials, as one DataFrame: the columns of `lab.load(…).trials`, a row a trial.

        Raises:
            ValueError: some were taken before, and are not here any more.
            Incomplete: pandas is not installed.
        """
        if self._taken:
            raise ValueError("these trials were taken before: keep them in a list, and give that to lab.frame")
        from chaoslab.reports.frames import frame

        return frame(self)


def _watched(trials: Generator[Trial, None, None]) -> Generator[Trial, None, None]:
    """The trials, with a warning after the last about each fault that hit nothing in all of them."""
    found = Idle()
    with closing(trials):
        for trial in trials:
            found.take(trial.history, trial.plan.injections)
            yield trial
    for said in found.told(called=True):
        warnings.warn(said, NothingHit, stacklevel=3)


def numbered(
    agent: Any, prompt: Any, numbers: Sequence[int], *, jobs: int = 1,
    drawn: Callable[[int], Drawn] | None = None, **options: Unpack[Options],
) -> Generator[Trial, None, None]:  # fmt: skip
    """The same for the trials with these numbers, from 0: each is as it is among all others. `drawn`: the plan of a
    trial by its number, in place of the faults."""
    spec, wants_twin, logs = _checked(agent, prompt, options)
    trials = _trials(spec, numbers, jobs, wants_twin=wants_twin, logs=logs, drawn=drawn)
    _begun.add(trials)
    return trials


_begun: WeakSet[Generator[Trial, None, None]] = WeakSet()


@atexit.register
def _end_all() -> None:
    """Ends the trials that nobody has ended, while there is an interpreter to do it."""
    for trials in list(_begun):
        with suppress(ValueError):  # the process ends within one of them
            trials.close()


def _trials(
    spec: AgentSpec, numbers: Sequence[int], jobs: int, *, wants_twin: bool, logs: Path | None,
    drawn: Callable[[int], Drawn] | None = None,
) -> Generator[Trial, None, None]:  # fmt: skip
    twin = None
    with ExitStack() as stack:
        stack.enter_context(spec.prepared())  # forked workers inherit it
        if wants_twin:
            twin, spec = _compared(spec)
        book = folder = None
        if logs is not None:
            name_secrets()
            place = Run.create(logs, now=spec.now, name=spec.name)
            place.make_latest()
            folder = place.folder
            book = stack.enter_context(written(spec, len(numbers), folder))
        run: RunSpec[AgentResult] = spec if drawn is None else DrawnRun(spec, drawn)
        done = stack.enter_context(
            closing(results(run, numbers, executor=executor(1 if spec.sequential else jobs), book=book))
        )
        for number, result in zip(numbers, done, strict=True):
            plan = spec.plan if drawn is None else Plan(spec.plan.seed, drawn(number).injections)
            yield _trial(result, plan, twin, folder)


def _trial(result: AgentResult, plan: Plan, twin: Trial | None, folder: Path | None = None) -> Trial:
    return Trial(result.book.trial.key, result.answer, result.error, result.seconds, plan, twin, result, folder)


def _compared(spec: AgentSpec) -> tuple[Trial, AgentSpec]:
    """The twin without faults, and the spec with the twin's results in place of those not stated."""
    calm, first = Plan(spec.plan.seed), TrialSpec(0)
    with replace(spec, plan=calm).opened() as do:
        twin = _trial(do(first), calm, None)
        again = _trial(do(first), calm, None) if spec.world == "virtual" else twin
    spec = replace(spec, called=twin._result.called)
    why = ""
    if twin.said is None:
        why = f"it fails without faults too ({_failure(twin)})"
        return twin, replace(spec, incomparable=f"nothing to compare with, since {why}", notes=(_NO_TWIN.format(why),))
    effects = None if again.effects != twin.effects else [wish(effect) for effect in twin.effects]
    answer = None if again.said is None or compare(twin.said, again.said).likeness is not Likeness.SAME else twin.said
    if answer is None:
        why = (
            f"its answer is {_short(twin.said)} in one and {_short(again.said) if again.said else _failure(again)} "
            "in the other"
        )
    elif twin.end_state != again.end_state:
        why = "their end states differ"
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
        right_state=twin.end_state if twin.end_state == again.end_state else None,
    )


_NO_TWIN = "nothing to compare with, since {}"
_LEAKS = (
    "two runs without faults differ: {}; something is kept from one trial to the next: "
    "give agent=lab.fresh(make), which makes the agent anew for each trial, or isolate='fork'"
)


def _failure(trial: Trial) -> str:
    return describe_error(trial.error) if trial.error else "it would never have ended"


def _short(text: str, width: int = 60) -> str:
    return repr(text if len(text) <= width else f"{text[: width - 1]}…")


def wish(effect: Mapping[str, Any]) -> dict[str, Any]:
    """The effect as one that must happen again. A list in it would be a choice of values, so it is wrapped in a
    list."""
    return {name: [value] if isinstance(value, list) else value for name, value in effect.items()}


# Checks before anything is started.


def _checked(agent: Any, prompt: Any, given: Options) -> tuple[AgentSpec, bool, Path | None]:
    adapters.adapters.cache_clear()  # one may have been installed since the last run, in a notebook
    tools, reads = (validation.functions(where, given.get(where)) for where in ("tools", "reads"))
    faults = validation.a_list("faults", given.get("faults"), '[lab.inject("latency", "refund")]')
    services, seed = validation.services(given.get("services")), given.get("seed", 1)
    world, logs, twin = given.get("world", "virtual"), given.get("logs"), given.get("twin")
    timeout_s, deadline_s = given.get("timeout_s", 30.0), given.get("deadline_s", 3600.0)
    calls_max, elsewhere = given.get("calls_max", CALLS_MAX), given.get("elsewhere", "refuse")
    _check_world(world, services)
    validation.check_elsewhere(elsewhere, world)
    validation.check_number("seed", seed, whole=True, least=0)
    validation.check_number("timeout_s", timeout_s)
    validation.check_number("deadline_s", deadline_s)
    validation.check_number("calls_max", calls_max, whole=True)
    if logs is not None and not isinstance(logs, str | os.PathLike):
        raise TypeError(f"logs is {validation.shown(logs)}: it should be a folder, as in 'logs'")
    if logs is not None and (not str(logs) or "\0" in str(logs)):
        raise ValueError(f"logs is {validation.shown(logs)}: it should be a folder, as in 'logs'")
    isolate = validation.isolated(given.get("isolate"))
    upstreams = validation.upstreams(given.get("upstreams"), world, isolate=isolate)
    there = {**services, **upstreams}
    validation.agent(agent)
    names = validation.names_of(tools, reads, there)
    models = validation.models(given.get("models"), there)
    functions = [name for name in names if name not in there]
    turns, asked = 1, str(prompt)
    if isinstance(prompt, Conversation):
        turns, asked = prompt.most, repr(prompt)
        deadline_s += prompt.waits_s
    no_texts = [name for name in models if with_objects(name)]
    checked = check(faults, names, turns=turns, models=models, functions=functions, objects=no_texts)
    plan = Plan(seed, checked)
    check_services(plan.injections, there)
    validation.check_lost(plan.injections, services)
    check_refusing(plan.injections, upstreams)
    if world != "virtual":
        check_clocks(plan.injections)
    effects = None
    if given.get("effects") is not None:
        named = {name_of(function): function for function in tools}
        effects = validation.effects(given.get("effects"), named, of_services=bool(there))
    facts = validation.facts(given.get("facts"))
    both = effects is not None and bool(facts)
    if twin is not None and not isinstance(twin, bool):
        raise TypeError(f"twin is {validation.shown(twin)}: it should be True, False or None")
    if twin and both:
        raise ValueError(
            "twin=True compares with a run without faults, and effects and facts state all that is right: leave one "
            "of them out"
        )
    ignore, raises = (validation.ignored(given.get("ignore"), [*tools, *reads]), given.get("raises"))
    known = digest(
        [
            plan.to_json(), asked, names, timeout_s, deadline_s, facts, to_jsonable(effects), world, calls_max,
            *([elsewhere] if elsewhere != "refuse" else ()),
            *([sorted(ignore), to_jsonable(raises)] if ignore or raises else ()),
        ]
    )  # fmt: skip
    state = validation.state(given.get("state"))
    wants_twin = (effects is None and world == "virtual") if twin is None else twin
    if state is not None and not wants_twin:
        raise ValueError("state= is compared with a run without faults: it needs twin=True, which this run has not")
    spec = AgentSpec(
        agent, prompt, tools, reads, plan, f"py{seed}-{known}",
        world, iso(datetime.fromisoformat(DEFAULT_NOW)), timeout_s, deadline_s, services, effects, facts,
        stated=effects is not None or bool(facts),
        calls_max=calls_max,
        elsewhere=elsewhere,
        models=models,
        ignore=ignore,
        isolate=isolate,
        upstreams=upstreams,
        raises=validation.raises(raises, [name_of(function) for function in (*tools, *reads)]),
        state=state,
    )  # fmt: skip
    if logs is not None:
        Run.prepare(Path(logs))
    return spec, wants_twin, None if logs is None else Path(logs)


def _check_world(world: str, services: Mapping[str, Any]) -> None:
    if world == "compose":
        raise ValueError(
            "world='compose' is for the lab's own agent (chaoslab run --world compose): functions cannot be moved "
            "into containers"
        )
    if world not in WORLDS:
        raise ValueError(f"world is {world!r}: it should be 'virtual' (a clock that jumps) or 'local' (real time)")
    if services and world != "virtual":
        raise ValueError("services stand on the virtual network: they need world='virtual'")
    for module in ("greenlet", "time_machine") if world == "virtual" else ():
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError("world='virtual' needs: pip install 'chaoslab[virtual]'")
