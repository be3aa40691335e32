"""What a Python user calls: one trial of an agent with faults at its functions, or many, each with what came of it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from chaoslab import arguments
from chaoslab.batch import WORLDS, Batch, Ended, name_of
from chaoslab.clock import iso
from chaoslab.events import VERSION, PromptFinished, RunStarted
from chaoslab.history import History
from chaoslab.identity import digest
from chaoslab.injecting import check
from chaoslab.judge import Outcome, Verdict, effects_of, judge
from chaoslab.measures.mttr import Incident, incidents
from chaoslab.plain import named, plain
from chaoslab.plan import Injection, Plan
from chaoslab.runs import Run
from chaoslab.seams.function import CALLS_MAX
from chaoslab.settings import DEFAULT_NOW
from chaoslab.sweep import spread


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
    _ended: Ended

    @property
    def seed(self) -> int:
        return self.plan.seed

    @property
    def history(self) -> History:
        """All that happened, as events."""
        return self._ended.book.history

    @cached_property
    def verdict(self) -> Verdict:
        return judge(self.history, self.key)

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def why(self) -> str:
        """The reason for the outcome, in one line."""
        return self.verdict.why

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
        return self._ended.warnings

    def __repr__(self) -> str:
        return f"Trial({self.key}, {self.outcome}: {self.why})"


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
    `calls_max`: so many calls may follow one another while no virtual time passes, as in a loop that tries again without waiting.
    `services`: WSGI applications by host name, on the virtual network as http://<name>; no faults there as yet. A list or mapping that
    is None is as if it were not given.

    What is right: `effects` as `Trial.effects` shows them, `facts` as texts (or lists of spellings) that the answer must show. Where one of
    them is stated, what is not in `effects` was not asked for: an agent that has such an effect is wrong (with facts alone, any effect).
    Where neither is stated the trial is compared with its `twin`, the same without faults, run first: its effects, or where it has none
    its answer, are what should have been (in the local world only if `twin=True`). So agent and functions must keep nothing from one trial
    to the next. `logs`: a folder in which the run is left for `chaoslab show` and `summary`.

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
        NotSent: a TypeError; the processes cannot be forked, since this one has other threads, and what is given cannot be pickled.
    """
    arguments.check_number("trials", trials, whole=True)
    arguments.check_number("jobs", jobs, whole=True)
    batch, wants_twin, logs = _batch(agent, prompt, options)
    return _trials(batch, trials, jobs, wants_twin=wants_twin, logs=logs)


def _trials(
    batch: Batch, trials: int, jobs: int, *, wants_twin: bool, logs: Path | None
) -> Generator[Trial, None, None]:
    twin = None
    with ExitStack() as stack:
        stack.enter_context(batch.prepared())  # workers that are forked find it so
        if wants_twin:
            twin, batch = _compared(batch)
        add = stack.enter_context(_written(batch, trials, logs)) if logs is not None else None
        done = cast(Generator[Ended, None, None], spread(batch, range(trials), jobs=jobs, name=batch.named))
        for ended in stack.enter_context(closing(done)):
            trial = _told(ended, batch.plan, twin)
            if add is not None:
                add(trial)
            yield trial


def _told(ended: Ended, plan: Plan, twin: Trial | None) -> Trial:
    return Trial(ended.book.trial.key, ended.answer, ended.error, ended.seconds, plan, twin, ended)


def _compared(batch: Batch) -> tuple[Trial, Batch]:
    """The twin without faults, and the batch that is to be compared with it."""
    calm = Plan(batch.plan.seed)
    with replace(batch, plan=calm).opened() as do:
        twin = _told(do(0), calm, None)
    said = next(event for _, event in twin.history.of(PromptFinished))
    if said.status != "ok":
        why = named(twin.error) if twin.error else "it would never have ended"
        return twin, replace(batch, notes=(f"nothing to compare with, since it fails without faults too ({why})",))
    effects = [{name: _wish(value) for name, value in effect.items()} for effect in twin.effects]
    facts = () if effects else ([said.answer],)
    return twin, replace(batch, effects=effects, facts=facts, stated=True)


def _wish(value: Any) -> Any:
    """A list in a stated effect would be a choice."""
    return [value] if isinstance(value, list) else value


@contextmanager
def _written(batch: Batch, trials: int, logs: Path) -> Iterator[Callable[[Trial], None]]:
    """What writes a trial down, in a run's folder under `logs`."""
    from chaoslab.worlds.virtual.book import Book

    now = iso(batch.now)
    run = Run.create(logs, now=now, name=batch.run)
    run.make_latest()
    settings = {"TOOL_TIMEOUT_S": batch.timeout_s, "DEADLINE_S": batch.deadline_s}
    with Book(run.folder, run.name, now) as book:
        book.begin(
            RunStarted(
                batch.plan.seed,
                settings,
                batch.plan.to_json(),
                trials,
                now,
                name_of(batch.agent),
                batch.world,
                code={"log": str(VERSION)},
            )
        )

        def add(trial: Trial) -> None:
            ok = trial._ended.error is None and not trial._ended.hung
            book.add(trial._ended.book.kept, seconds=trial.seconds, ok=ok)

        reason = "interrupted"
        try:
            yield add
            reason = "done"
        finally:
            book.end(reason)


# What is looked at before anything is started.


def _batch(agent: Any, prompt: Any, given: Options) -> tuple[Batch, bool, Path | None]:
    tools, reads = (arguments.functions(where, given.get(where)) for where in ("tools", "reads"))
    faults = arguments.a_list("faults", given.get("faults"), '[lab.inject("latency", "refund")]')
    services, seed = arguments.services(given.get("services")), given.get("seed", 1)
    world, logs, twin = given.get("world", "virtual"), given.get("logs"), given.get("twin")
    timeout_s, deadline_s = given.get("timeout_s", 30.0), given.get("deadline_s", 3600.0)
    calls_max = given.get("calls_max", CALLS_MAX)
    _check_world(world, services)
    arguments.check_number("seed", seed, whole=True, least=0)
    arguments.check_number("timeout_s", timeout_s)
    arguments.check_number("deadline_s", deadline_s)
    arguments.check_number("calls_max", calls_max, whole=True)
    if logs is not None and not isinstance(logs, str | os.PathLike):
        raise TypeError(f"logs is {arguments.shown(logs)}: it should be a folder, as in 'logs'")
    names = arguments.names_of(agent, tools, reads, services)
    plan = Plan(seed, check(faults, names))
    for injection in plan.injections:
        if hit := [target for target in injection.targets if target in services]:
            raise ValueError(f"'{injection.name}' is aimed at the service {hit[0]}: faults meet functions alone as yet")
    effects = arguments.effects(given.get("effects"), {name_of(function): function for function in tools})
    facts = arguments.facts(given.get("facts"))
    stated = given.get("effects") is not None or given.get("facts") is not None
    if twin is not None and not isinstance(twin, bool):
        raise TypeError(f"twin is {arguments.shown(twin)}: it should be True, False or None")
    if twin and stated:
        raise ValueError(
            "twin=True compares with a run without faults, and effects or facts state what is right: one of both"
        )
    known = digest([plan.to_json(), str(prompt), names, timeout_s, deadline_s, facts, plain(effects), world, calls_max])
    batch = Batch(
        agent, prompt, tools, reads, plan, f"py{seed}-{known}",
        world, datetime.fromisoformat(DEFAULT_NOW), timeout_s, deadline_s, services, effects, facts, stated,
        calls_max=calls_max,
    )  # fmt: skip
    return batch, (not stated and world == "virtual") if twin is None else twin, None if logs is None else Path(logs)


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
