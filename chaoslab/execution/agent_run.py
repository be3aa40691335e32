"""A user's agent with its functions, a plan and a world, as a run: what does one trial of it, and the next.

Where a trial happens is chosen here; the trial itself is the same in both worlds.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from chaoslab.analysis.answers import Twin
from chaoslab.analysis.judge import HUNG, Outcome, judge
from chaoslab.base.clock import iso, system
from chaoslab.base.identity import nth
from chaoslab.base.jsonable import describe_error, to_jsonable
from chaoslab.core import events
from chaoslab.core.plan import Plan
from chaoslab.execution.place import Here, Place
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import portable
from chaoslab.record.log import BufferedEvent
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams import langchain
from chaoslab.seams.function import CALLS_MAX, FunctionSeam, WrappedFunction
from chaoslab.seams.injected import injected
from chaoslab.seams.references import References

WORLDS = ("virtual", "local")
Hangs = tuple[type[Exception], ...]
"""What a world raises for a trial that would never end."""
Pairs = list[tuple[Any, Any]]
"""Real things, and what stands in for them."""
_alone = threading.Lock()


@dataclass
class AgentResult:
    """What came of one trial, as `TrialResult` says. `book`: all that happened; `warnings`: what a person should know of it; `called`: the
    names of the functions that were called."""

    book: TrialLog
    answer: Any = None
    error: BaseException | None = None
    hung: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    called: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        return self.error is None and not self.hung

    @property
    def outcome(self) -> Outcome:
        return judge(self.book.history, self.book.key).outcome

    @property
    def witnessed(self) -> int:
        return sum(1 for _ in self.book.history.of(events.FaultWitnessed))

    @property
    def spent_usd(self) -> float:
        """What a user's agent spends is not known, and bounds nothing."""
        return 0.0

    @property
    def kept(self) -> list[BufferedEvent]:
        return self.book.kept

    def __getstate__(self) -> dict[str, Any]:
        """To another process goes an error that can be made again there; of any other, its name and its words."""
        error = self.error
        return {**vars(self), "error": error and portable(error, describe_error(error))}


@dataclass(frozen=True)
class Fresh:
    """An agent that is made anew for each trial, in that trial's world."""

    make: Callable[[], Any]


def fresh(make: Callable[[], Any]) -> Fresh:
    """An agent for `run` and `run_many` that `make()` makes anew for each trial, so that nothing it keeps leads from one trial to the next:
    `lab.run(lab.fresh(Shop), …, tools=[Shop.order])`.

    Raises:
        TypeError: `make` cannot be called.
    """
    if not callable(make):
        raise TypeError(f"fresh was given a {type(make).__name__}: it should be a function that makes the agent")
    return Fresh(make)


@dataclass(frozen=True)
class AgentSpec:
    """A run of a user's agent.

    `tools` have effects, `reads` have none. `effects` (None: not stated), `facts`: what was stated about a right answer, if `stated`;
    `twin`: what to compare with, or `incomparable`: why it cannot be. `now`: what the wall clock says when a trial of virtual time
    begins.
    """

    agent: Any
    prompt: Any
    tools: Sequence[Any]
    reads: Sequence[Any]
    plan: Plan
    name: str
    world: str
    now: str
    timeout_s: float
    deadline_s: float
    services: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]] | None = None
    facts: Sequence[Sequence[str]] = ()
    stated: bool = False
    twin: Twin | None = None
    incomparable: str = ""
    notes: tuple[str, ...] = field(default=())
    """Warnings that hold for each of its trials."""
    calls_max: int = CALLS_MAX
    called: frozenset[str] | None = None
    """The names of the functions that were called in its twin, if it has one."""

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """The world is at hand meanwhile, so that it need not be made so again for each `opened`, and this process is nobody else's.

        Raises:
            RuntimeError: another trial is under way in this process.
        """
        if not _alone.acquire(blocking=False):
            raise RuntimeError(
                "another trial is under way in this process, and its functions are swapped: one after the other, or in processes"
            )
        try:
            with {"virtual": self._virtual, "local": self._local}[self.world]():
                yield
        finally:
            _alone.release()

    def named(self, spec: TrialSpec) -> str:
        """The trial's key, as in the logs."""
        return nth(self.name, spec.number, 1).key

    @property
    def sequential(self) -> bool:
        """No trial depends on another."""
        return False

    def started(self, trials: int) -> events.RunStarted:
        """The first event of the run. It does not hold the program, so a log cannot be replayed."""
        return events.RunStarted(
            seed=self.plan.seed,
            settings={"TOOL_TIMEOUT_S": self.timeout_s, "DEADLINE_S": self.deadline_s},
            plan=self.plan.to_json(),
            prompts=trials,
            now=self.now,
            model=name_of(self.agent),
            world=self.world,
            code={"log": str(events.VERSION)},
        )

    @contextmanager
    def opened(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        """Gives what does one of its trials, in this process."""
        with ExitStack() as stack:
            new, hung, exchanged = stack.enter_context({"virtual": self._virtual, "local": self._local}[self.world]())
            seam = FunctionSeam(self.plan, timeout_s=self.timeout_s)
            pairs, unheld = stack.enter_context(self._wrapped(seam, exchanged))
            ask, of_coroutine = self._ask(self.agent)
            if isinstance(self.agent, Fresh):  # what it will reach is not known yet
                ask, of_coroutine, unheld = self._anew(pairs), False, ()
            yield lambda spec: self._trial(spec, seam, new, hung, ask, of_coroutine, unheld)

    # The worlds.

    @contextmanager
    def _virtual(self) -> Iterator[tuple[Callable[[], Place], Hangs, Pairs]]:
        from chaoslab.worlds.virtual.machine import Hung
        from chaoslab.worlds.virtual.patches import Patches
        from chaoslab.worlds.virtual.serving import serve
        from chaoslab.worlds.virtual.world import World

        now = datetime.fromisoformat(self.now)

        def new() -> Place:
            world = World(self.plan.seed, now=now, deadline_s=self.deadline_s, calls_max=self.calls_max)
            for name, app in self.services.items():
                serve(world.network, name, 80, app)
            return world

        with Patches() as patches:
            yield new, (Hung,), patches.exchanged()

    @contextmanager
    def _local(self) -> Iterator[tuple[Callable[[], Place], Hangs, Pairs]]:
        yield lambda: Here(self.deadline_s), (), []

    # The agent and its functions.

    def _anew(self, pairs: Pairs) -> Callable[[Any], Any]:
        """The agent as a callable that makes it first, with the stand-ins in place wherever it can reach the functions."""

        def ask(prompt: Any) -> Any:
            agent = self.agent.make()
            if not callable(agent) and not langchain.is_runnable(agent):
                raise TypeError(
                    f"{name_of(self.agent)} made a {type(agent).__name__}: an agent is a callable, or a LangChain Runnable"
                )
            with References([agent], pairs):
                return _fetched(self._ask(agent)[0](prompt))

        return ask

    def _ask(self, agent: Any) -> tuple[Callable[[Any], Any], bool]:
        """The agent as a callable, and whether it is async. A Runnable is asked by `ainvoke` where a tool can be called in no other way,
        else by `invoke`."""
        if langchain.is_runnable(agent):
            functions = [*self.tools, *self.reads]
            only = any(
                langchain.is_async_only(f) or WrappedFunction("", f, effect=False).of_coroutine for f in functions
            )
            return langchain.callable_of(agent, of_coroutine=only), only
        return agent, WrappedFunction("", agent, effect=False).of_coroutine

    @contextmanager
    def _wrapped(self, seam: FunctionSeam, exchanged: Pairs) -> Iterator[tuple[Pairs, tuple[str, ...]]]:
        """The stand-ins are in place, those of the world too, such as a clock that the agent keeps in an attribute; each with what it stands
        for, and the names of the functions to which no reference was found."""
        pairs, names = [], []
        with ExitStack() as stack:
            for functions, effect in ((self.tools, True), (self.reads, False)):
                for function in functions:
                    if langchain.is_tool(function):
                        stack.enter_context(langchain.in_place(seam, function, effect=effect))
                    else:
                        names.append(name_of(function))
                        pairs.append(
                            (function, seam.stand_in(WrappedFunction(names[-1], function, effect, unasked(function))))
                        )
            agent = self.agent.make if isinstance(self.agent, Fresh) else self.agent
            found = References([agent, *self.tools, *self.reads], [*pairs, *exchanged])
            swapped = stack.enter_context(found)
            yield (
                [*pairs, *exchanged],
                tuple(name for name, count in zip(names, swapped.count, strict=False) if not count),
            )

    # One trial.

    def _trial(
        self, spec: TrialSpec, seam: FunctionSeam, new: Callable[[], Place], hung: tuple[type[Exception], ...],
        ask: Callable[[Any], Any], of_coroutine: bool, unheld: Sequence[str],
    ) -> AgentResult:  # fmt: skip
        place = new()
        with place.entered():
            now = system.utc()
            book = TrialLog(nth(self.name, spec.number, 1), began=now)
            started = events.PromptStarted(
                prompt_index=1,
                prompt=str(self.prompt),
                facts=[list(fact) for fact in self.facts],
                effects=None if self.effects is None else [dict(effect) for effect in self.effects],
                stated=self.stated,
                incomparable=self.incomparable,
            )
            if self.twin is not None:
                twin = self.twin
                started = replace(started, twin=twin.answer, twin_s=twin.seconds, twin_calls=twin.calls)
            book.note(started)
        result = AgentResult(book, warnings=(*self.notes, *(UNHELD.format(name) for name in unheld)))

        async def work_async() -> None:
            with _caught(result, hung):
                result.answer = await ask(self.prompt)

        def work() -> None:
            with _caught(result, hung):
                result.answer = _fetched(ask(self.prompt))

        def over() -> None:
            result.seconds = round(system.monotonic() - book.origin, 6)
            seam.book = None

        seam.book, seam.pace, seam.left = book, place.pace, 0
        try:
            with _caught(result, hung):  # what another of its tasks or threads ended everything by
                if of_coroutine:
                    place.run_async(work_async, over=over)
                else:
                    place.run(work, over=over)
        except hung as error:
            result.hung = str(error)
        if isinstance(place, Here) and place.late:  # whatever the agent made of it
            result.hung = place.late
        if result.hung:
            result.answer = result.error = None
        result.called = book.called()
        result.warnings += self._uncalled(result.called, unheld)
        with place.entered():
            self._finish(result, now)
        return result

    def _uncalled(self, called: frozenset[str], unheld: Sequence[str]) -> tuple[str, ...]:
        """In one line, which functions nobody called, neither in this trial nor in its twin, and which faults had nothing to hit for that."""
        known = called.union(self.called or (), unheld)
        names = [name for function in (*self.tools, *self.reads) if (name := name_of(function)) not in known]
        if not names:
            return ()
        idle = [i.name for i in self.plan.injections if i.may_hit and not i.calls and set(i.targets) <= set(names)]
        where = "" if self.called is None else ", neither in the trial nor in its twin"
        were, them, others = ("was", "it", "another object") if len(names) == 1 else ("were", "them", "other objects")
        said = f"{_listed(names)} {were} never called{where}: the agent had no use for {them}, or calls {others}"
        return (f"{said}; {_listed(idle)} could hit nothing" if idle else said,)

    def _finish(self, result: AgentResult, now: datetime) -> None:
        book, asked = result.book, str(self.prompt)
        kind = HUNG if result.hung else "agent" if result.error is not None else "none"
        error = result.hung or (describe_error(result.error) if result.error is not None else "")
        text = "" if kind != "none" else _text(result.answer)
        end = iso(now + timedelta(seconds=result.seconds))
        for warning in result.warnings:
            book.note(events.LabWarning(message=warning))
        for unreached in self._unreached(book):
            book.note(unreached)
        book.note(
            events.PromptAttempt(
                prompt_index=1,
                prompt=asked,
                response=text,
                status="ok" if kind == "none" else "error",
                start_time=iso(now),
                end_time=end,
                duration_s=result.seconds,
                error_type=kind,
                prompt_attempt=1,
                error=error[:2000],
            )
        )
        ok = "ok" if kind == "none" else "failed"
        book.note(
            events.PromptFinished(
                prompt_index=1,
                prompt=asked,
                status=ok,
                answer=text,
                attempts=1,
                duration_s=result.seconds,
                error_type=kind,
            )
        )

    def _unreached(self, book: TrialLog) -> list[events.FaultUnreached]:
        """What was to be hit by its number and was not."""
        if not self.plan.named:
            return []
        met = {(event.injection, event.target, event.request) for event in book.noted(events.FaultScheduled)}
        return [
            events.FaultUnreached(injection=injection.name, target=target, request=request, made=made)
            for injection, target, request in self.plan.named
            if request > (made := book.requests.made(target))
            or ((injection.name, target, request) not in met and not injection.conditional)
        ]


UNHELD = "no reference to {} was found that the agent can reach, so its calls go unseen: give in tools= the very object that the agent calls"


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


@contextmanager
def _caught(result: AgentResult, hung: tuple[type[Exception], ...]) -> Iterator[None]:
    """Whatever an agent raises fails its trial, not whoever tries it."""
    try:
        yield
    except hung:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001
        result.error = error


def _fetched(answer: Any) -> Any:
    """The answer itself, where the agent gave the promise of one; what nobody would ever run is none."""
    if inspect.isawaitable(answer):

        async def fetch() -> Any:
            return await answer

        return asyncio.run(fetch())
    if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        raise TypeError(
            "the agent gave a generator, and nobody has run it: it should return its answer, as list(…) of it does"
        )
    return answer


def unasked(function: Any) -> frozenset[str]:
    """The parameters that are no arguments of a call's: a framework fills them in, or they are the object that a method belongs to."""
    return injected(function) | _receiver(function)


def _receiver(function: Any) -> frozenset[str]:
    """The parameter by which a method that is named by its class (`Shop.order`) is given its object."""
    path = getattr(function, "__qualname__", "").split(".")
    if not inspect.isfunction(function) or len(path) < 2 or path[-2] == "<locals>":
        return frozenset()
    return frozenset(function.__code__.co_varnames[: min(1, function.__code__.co_argcount)])


def name_of(function: Any) -> str:
    """What a function is called in plans and logs."""
    function = function.make if isinstance(function, Fresh) else function
    named = function.name if langchain.is_tool(function) else getattr(function, "__name__", type(function).__name__)
    return str(named)


def _text(answer: Any) -> str:
    """An answer in words, to be judged and written down; of a conversation (`{"messages": […]}`), its last message."""
    answer = langchain.spoken(answer)
    return answer if isinstance(answer, str) else json.dumps(to_jsonable(answer), ensure_ascii=False)
