"""A run of a user's agent: its functions, plan and world, and a function that runs its trials.

This module chooses the place of a trial; the trial itself is the same in both worlds.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from chaoslab.analysis.answers import Twin
from chaoslab.analysis.judge import HUNG, Outcome, judge
from chaoslab.base.clock import iso, system
from chaoslab.base.identity import nth
from chaoslab.base.jsonable import describe_error, to_jsonable
from chaoslab.core import events
from chaoslab.core.conversation import Conversation, Talk
from chaoslab.core.plan import Plan
from chaoslab.execution.drawn import Drawn
from chaoslab.execution.forked import in_child
from chaoslab.execution.place import Here, Place
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import portable
from chaoslab.model import formats
from chaoslab.model.app import ModelApp
from chaoslab.model.prices import cost_usd
from chaoslab.record.history import History
from chaoslab.record.log import BufferedEvent
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams import adapters, code_swap, native_errors
from chaoslab.seams.adapters.mcp import read_by_clients
from chaoslab.seams.function import CALLS_MAX, FunctionSeam, WrappedFunction, Wrapping
from chaoslab.seams.gateway.routes import Route
from chaoslab.seams.injected import injected
from chaoslab.seams.references import References
from chaoslab.seams.service import ServiceSeam
from chaoslab.seams.service_app import address_of
from chaoslab.seams.service_model import ModelHost

WORLDS = ("virtual", "local")
Hangs = tuple[type[Exception], ...]
"""The exceptions by which a world ends an endless trial."""
Pairs = list[tuple[Any, Any]]
"""Real objects, each with its stand-in."""


class Loop:
    """The event loop of a trial whose agent gives awaitables, one for all turns, made when the first one comes."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def fetched(self, answer: Any) -> Any:
        """The awaited answer if it is an awaitable, the whole one if it is a generator."""
        if inspect.isawaitable(answer) or inspect.isasyncgen(answer):
            self._runner = self._runner or asyncio.Runner()
            return self._runner.run(_awaited(answer))
        return _run(answer)

    def sleep(self, delay_s: float) -> None:
        """Waits; tasks that a turn has left in the loop go on meanwhile."""
        if self._runner is None:
            system.sleep(delay_s)
        else:
            self._runner.run(system.asleep(delay_s))

    def close(self) -> None:
        """Cancels what is left in the loop and closes it, like `asyncio.run`."""
        if self._runner is not None:
            self._runner.close()


async def _awaited(answer: Any) -> Any:
    if inspect.isawaitable(answer):
        answer = await answer
    return _whole([part async for part in answer]) if inspect.isasyncgen(answer) else _run(answer)


def _run(answer: Any) -> Any:
    """The whole answer of an agent that gave a generator; any other answer as it is."""
    if not inspect.isgenerator(answer):
        return answer
    parts: list[Any] = []
    while True:
        try:
            parts.append(next(answer))
        except StopIteration as end:
            return _whole(parts) if end.value is None else end.value


def _whole(parts: list[Any]) -> Any:
    """The text that a streamed answer is, or its parts if they are no texts."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts


class Start:
    """The start of a trial's agent. `agent`: the one that was made for this trial, if each has its own. `loop`: where
    its awaitables are awaited."""

    def __init__(self, ready: Callable[[], None]) -> None:
        self._ready: Callable[[], None] | None = ready
        self.agent: Any = None
        self.loop = Loop()

    def ready(self) -> None:
        """Tells that the agent begins; called once a turn, heard once."""
        if self._ready is not None:
            self._ready()
        self._ready = None


Ask = Callable[[Any, Start], Any]
"""An agent: called with the prompt and with the start, which it tells before it begins."""
_alone = threading.Lock()


def _after(agent: Callable[[Any], Any]) -> Ask:
    def ask(prompt: Any, start: Start) -> Any:
        start.ready()
        return agent(prompt)

    return ask


@dataclass
class AgentResult:
    """The result of one trial; see `TrialResult`.

    `book`: its events. `warnings`: warnings about it. `called`: the names of the functions and services that were
    called. `spent_usd`: the run's spending for models at the end of the trial, in dollars.
    """

    book: TrialLog
    answer: Any = None
    error: BaseException | None = None
    hung: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    called: frozenset[str] = frozenset()
    spent_usd: float = 0.0

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
    def history(self) -> History:
        return self.book.history

    @property
    def kept(self) -> list[BufferedEvent]:
        return self.book.kept

    def __getstate__(self) -> dict[str, Any]:
        """Replaces an error that cannot be rebuilt in another process by its name and message."""
        error = self.error
        return {**vars(self), "error": error and portable(error, describe_error(error))}


@dataclass(frozen=True)
class Fresh:
    """An agent, or a service, that is made anew for each trial, in the trial's world."""

    make: Callable[[], Any]


def fresh(make: Callable[[], Any]) -> Fresh:
    """Wraps `make` as an agent for `run` and `run_many`: `make()` makes a new agent for each trial, so no state is kept
    between trials. Example: `lab.run(lab.fresh(Shop), …, tools=[Shop.order])`. As one of `services=`, the application
    that it makes is made anew for each trial too, and whenever its process loses its state.

    Raises:
        TypeError: `make` cannot be called.
    """
    if not callable(make):
        raise TypeError(f"fresh was given a {type(make).__name__}: it should be a function that makes the agent")
    return Fresh(make)


@dataclass(frozen=True)
class AgentSpec:
    """A run of a user's agent.

    `tools` have effects, `reads` have none. `effects` and `facts` describe the right result; `effects` is None if not
    stated. `stated`: something about the result is known, stated or from the twin. `twin`: the run to compare with;
    `incomparable`: the reason if there is none. `now`: the wall clock's time at the start of a virtual trial.
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
    elsewhere: str = "refuse"
    """The fate of hosts that are no service: refuse or unreachable."""
    models: tuple[str, ...] = ()
    """The services that speak a model's API."""
    called: frozenset[str] | None = None
    """The names of the functions that the twin called, if there is a twin."""
    ignore: frozenset[str] = frozenset()
    """Parameters that are no arguments of a request."""
    isolate: bool = False
    """Each trial runs in a process of its own."""
    upstreams: Mapping[str, Route] = field(default_factory=dict)
    """Services behind a gateway, in the local world."""
    raises: Any = None
    """The exceptions by which the tools' callers learn of faults; see `native_errors.of_tool`."""
    state: Callable[[], Any] | None = None
    """The user's function that reads the world's state."""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    """The values that were drawn for the only trial, by name."""
    right_state: Any = None
    """The end state of the twin; None: nothing to compare with."""

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """A context that keeps the world ready, so that `opened` need not make it again, and reserves this process for
        the run.

        Raises:
            RuntimeError: another trial is under way in this process.
        """
        if not _alone.acquire(blocking=False):
            raise RuntimeError(
                "another trial is under way in this process, and its functions are swapped: one after the other, or "
                "in processes"
            )
        try:
            with {"virtual": self._virtual, "local": self._local}[self.world]():
                yield
        finally:
            _alone.release()

    def with_drawn(self, drawn: Drawn) -> AgentSpec:
        """The same run with the plan of one trial. Where its waits are its own, the twin's duration says nothing."""
        run = replace(self, plan=Plan(self.plan.seed, drawn.injections), drawn=drawn.values)
        if not drawn.waits or not isinstance(self.prompt, Conversation):
            return run
        prompt = self.prompt.waiting(drawn.waits)
        return replace(
            run,
            prompt=prompt,
            deadline_s=self.deadline_s + prompt.waits_s - self.prompt.waits_s,
            twin=self.twin and replace(self.twin, seconds=None),
        )

    def named(self, spec: TrialSpec) -> str:
        """The trial's key, as in the logs."""
        return nth(self.name, spec.number, 1).key

    @property
    def sequential(self) -> bool:
        """True if a budget in dollars counts over the whole run."""
        return any(choice.params.get("cost_usd") for i in self.plan.injections for choice in i.choices)

    def started(self, trials: int) -> events.RunStarted:
        """The first event of the run. The log does not hold the agent's program, so the run cannot be replayed."""
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
        """A context that gives a function which runs one of the trials in this process."""
        with ExitStack() as stack:
            new, hung, exchanged = stack.enter_context({"virtual": self._virtual, "local": self._local}[self.world]())
            seam = FunctionSeam(self.plan, timeout_s=self.timeout_s)
            models = {name: _model(self.services.get(name)) for name in self.models}
            reads = read_by_clients(self.reads)
            services = ServiceSeam(self.plan, timeout_s=self.timeout_s, models=models, price=cost_usd, mcp_reads=reads)
            stack.enter_context(self._gateway(services))
            pairs, unheld = stack.enter_context(self._wrapped(seam, exchanged))
            ask, of_coroutine = self._ask(self.agent)
            if isinstance(self.agent, Fresh):  # the functions it will reach are not known yet
                ask, of_coroutine, unheld = self._anew(pairs), False, ()

            def do(spec: TrialSpec) -> AgentResult:
                self._check_upstreams()
                return self._trial(spec, seam, services, new, hung, ask, of_coroutine, unheld)

            yield in_child(do, self.named) if self.isolate else do

    def _check_upstreams(self) -> None:
        """Checks that there are services to break: an agent that meets none is at most degraded, which proves nothing.

        Raises:
            LookupError: one cannot be reached.
        """
        if self.upstreams:
            from chaoslab.seams.gateway.upstream import check_reached

            for route in self.upstreams.values():
                check_reached(route)

    @contextmanager
    def _gateway(self, services: ServiceSeam) -> Iterator[None]:
        """A context in which the upstreams stand behind a gateway, whose addresses are in the environment."""
        if not self.upstreams:
            yield
            return
        from chaoslab.config.settings import with_variables
        from chaoslab.execution.gateway import GRACE_S, addresses, listening

        with listening(self.upstreams, services) as (address, shared):
            services.settle = partial(shared.settle, GRACE_S)
            urls = {name: f"{address}/{name}" for name in self.upstreams}
            own = {f"{name.upper().replace('-', '_')}_URL": url for name, url in urls.items()}
            with with_variables({**own, **addresses(self.upstreams, urls.__getitem__)}):
                yield

    # The worlds.

    @contextmanager
    def _virtual(self) -> Iterator[tuple[Callable[[ServiceSeam], Place], Hangs, Pairs]]:
        from chaoslab.worlds.virtual.asgi import Remade, application
        from chaoslab.worlds.virtual.elsewhere import Elsewhere
        from chaoslab.worlds.virtual.machine import Hung
        from chaoslab.worlds.virtual.patches import Patches
        from chaoslab.worlds.virtual.serving import serve
        from chaoslab.worlds.virtual.world import World

        now = datetime.fromisoformat(self.now)

        def new(seam: ServiceSeam) -> Place:
            models = [address_of(name)[0] for name in self.services if name in self.models]
            elsewhere = Elsewhere(self.elsewhere, self.services, models)
            world = World(
                self.plan.seed, now=now, deadline_s=self.deadline_s, calls_max=self.calls_max, elsewhere=elsewhere
            )
            for name, app in self.services.items():
                host, ports = address_of(name)
                if isinstance(app, Fresh):
                    wsgi: Any = Remade(world, app.make, name)
                    seam.outages.resets[name] = wsgi.lose
                else:
                    wsgi = application(world, app, name)
                for port in ports:
                    serve(world.network, host, port, wsgi, seam, name=name)
            return world

        with Patches() as patches:
            yield new, (Hung,), patches.exchanged()

    @contextmanager
    def _local(self) -> Iterator[tuple[Callable[[ServiceSeam], Place], Hangs, Pairs]]:
        yield lambda _: Here(self.deadline_s), (), []

    # The agent and its functions.

    def _anew(self, pairs: Pairs) -> Ask:
        """A callable that makes the agent, then calls it with the stand-ins in place wherever it can reach the
        functions."""

        def ask(prompt: Any, start: Start) -> Any:
            if start.agent is None:
                start.agent = self.agent.make()
            agent = start.agent
            if not callable(agent) and adapters.of_agent(agent) is None:
                agents = adapters.words("a callable", (each.agents for each in adapters.adapters()))
                raise TypeError(f"{name_of(self.agent)} made a {type(agent).__name__}: an agent is {agents}")
            with References([agent], pairs):
                return start.loop.fetched(self._ask(agent)[0](prompt, start))

        return ask

    def _ask(self, agent: Any) -> tuple[Ask, bool]:
        """The agent, and True if it is async. A framework's agent is called async if a tool is async only."""
        if (framework := adapters.of_agent(agent)) is not None:
            only = any(
                ((adapter := adapters.of_tool(each)) is not None and adapter.is_async_only(each))
                or WrappedFunction("", each, effect=False).of_coroutine
                for each in (*self.tools, *self.reads)
            )
            return _after(framework.callable_of(agent, of_coroutine=only)), only
        return _after(agent), WrappedFunction("", agent, effect=False).of_coroutine

    @contextmanager
    def _wrapped(self, seam: FunctionSeam, exchanged: Pairs) -> Iterator[tuple[Pairs, tuple[str, ...]]]:
        """A context with the stand-ins in place: in the code of functions, else in the agent's references to them. Also
        those of the world, such as for a clock that the agent keeps in an attribute. Gives the pairs that are swapped
        by reference, and the names of the functions to which no reference was found."""
        pairs, names, later = [], [], []
        innermost = _innermost([*self.tools, *self.reads])
        with ExitStack() as stack:
            for functions, effect in ((self.tools, True), (self.reads, False)):
                for function in functions:
                    errors = native_errors.of_tool(self.raises, name_of(function))
                    wrapping = Wrapping(seam, effect, self.ignore, errors)
                    stand_in = partial(_stand_in, wrapping, function)
                    if (adapter := adapters.of_tool(function)) is not None:
                        later.append(adapter.swapped(function, wrapping))
                    elif code_swap.can_swap(function):
                        later.append(code_swap.swapped(innermost[id(function)], stand_in))
                    else:
                        names.append(name_of(function))
                        pairs.append(code_swap.by_reference(function, stand_in))
            agent = self.agent.make if isinstance(self.agent, Fresh) else self.agent
            found = References([agent, *self.tools, *self.reads], [*pairs, *exchanged])
            swapped = stack.enter_context(found)
            for each in later:  # after the world's clocks, which the copies of the functions are to have too
                stack.enter_context(each)
            yield (
                [*pairs, *exchanged],
                tuple(name for name, count in zip(names, swapped.count, strict=False) if not count),
            )

    # One trial.

    def _trial(
        self, spec: TrialSpec, seam: FunctionSeam, services: ServiceSeam, new: Callable[[ServiceSeam], Place],
        hung: tuple[type[Exception], ...], ask: Ask, of_coroutine: bool, unheld: Sequence[str],
    ) -> AgentResult:  # fmt: skip
        place = new(services)
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
                state=self.right_state,
            )
            if self.twin is not None:
                twin = self.twin
                started = replace(started, twin=twin.answer, twin_s=twin.seconds, twin_calls=twin.calls)
            book.note(started)
            if self.drawn:
                book.note(events.ValuesDrawn(values=dict(self.drawn)))
        result = AgentResult(book, warnings=(*self.notes, *(UNHELD.format(name) for name in unheld)))

        before: list[_Read] = []
        after: list[_Read] = []

        def ready() -> None:
            if self.state is not None:
                seam.book = services.book = None  # these calls are not the agent's
                before.append(_read(self.state))
                seam.book = services.book = book

        start = Start(ready)

        async def work_async() -> None:
            with _caught(result, hung):
                if talk is None:
                    result.answer = await _awaited(ask(self.prompt, start))
                    return
                while (words := talk.next()) is not None:
                    await system.asleep(talk.wait_s)
                    talk.begin(words)
                    talk.answered(_text(await _awaited(ask(words, start))))
                result.answer = talk.whole

        def work() -> None:
            with _caught(result, hung), closing(start.loop) as loop:
                if talk is None:
                    result.answer = loop.fetched(ask(self.prompt, start))
                    return
                while (words := talk.next()) is not None:
                    loop.sleep(talk.wait_s)
                    talk.begin(words)
                    talk.answered(_text(loop.fetched(ask(words, start))))
                result.answer = talk.whole

        def over() -> None:
            result.seconds = round(system.monotonic() - book.origin, 6)
            seam.book = None
            services.end()
            if self.state is not None:
                place.aside(lambda: after.append(_read(self.state)))

        seam.begin(book)
        services.begin(book, seam.memory, spent_usd=spec.spent_usd)
        talk = (
            Talk(self.prompt, book.note, book.requests, seam.memory, system)
            if isinstance(self.prompt, Conversation)
            else None
        )
        warned: list[str] = []
        for name in self.models:
            if isinstance(app := self.services.get(name), ModelApp):
                app.begin(name, book.key, warned.append)
        seam.pace, seam.left = place.pace, 0
        try:
            with _caught(result, hung):  # a task or thread may have ended everything by raising
                if of_coroutine:
                    place.run_async(work_async, over=over)
                else:
                    place.run(work, over=over)
        except hung as error:
            result.hung = str(error)
        if isinstance(place, Here) and place.late:  # even if the agent swallowed the exit
            result.hung = place.late
        if result.hung:
            result.answer = result.error = None
        result.called = book.called() | services.asked_of
        result.spent_usd = services.spent.cost_usd
        result.warnings += tuple(dict.fromkeys(warned))
        result.warnings += (*place.warnings, *self._uncalled(result.called, unheld))
        with place.entered():
            if self.state is not None:
                book.note(_end_state(before, after))
            self._finish(result, now)
        return result

    def _uncalled(self, called: frozenset[str], unheld: Sequence[str]) -> tuple[str, ...]:
        """A warning about functions, and services that faults are aimed at, that were called neither in this trial nor
        in its twin, and about the faults that had no target because of that."""
        known = called.union(self.called or (), unheld)
        services = (*self.services, *self.upstreams)
        aimed_at = [name for name in services if any(i.may_hit and i.covers(name) for i in self.plan.injections)]
        there = [*(name_of(function) for function in (*self.tools, *self.reads)), *aimed_at]
        names = [name for name in there if name not in known]
        if not names:
            return ()
        used = set(there).difference(names)
        idle = [i.name for i in self.plan.injections if i.may_hit and not i.calls and not any(map(i.covers, used))]
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
        """The numbered requests that should have met a fault and did not."""
        if not self.plan.named:
            return []
        met = {(event.injection, event.target, event.request) for event in book.noted(events.FaultScheduled)}
        return [
            events.FaultUnreached(injection=injection.name, target=target, request=request, made=made)
            for injection, target, request in self.plan.named
            if request > (made := book.requests.made(target))
            or ((injection.name, target, request) not in met and not injection.conditional)
        ]


@dataclass(frozen=True)
class _Read:
    """A state as a JSON value, or the reason why it could not be read."""

    value: Any = None
    error: str = ""


def _read(state: Callable[[], Any] | None) -> _Read:
    assert state is not None
    try:
        return _Read(to_jsonable(state()))
    except Exception as error:  # noqa: BLE001 - of the user's function
        return _Read(error=f"state raised {describe_error(error)}")


def _end_state(before: Sequence[_Read], after: Sequence[_Read]) -> events.EndState:
    """The event; without a value if one of the two could not be read."""
    for found, when in ((before, "before"), (after, "after")):
        error = found[0].error if found else f"it was not read {when} the trial"
        if error:
            return events.EndState(error=error)
    return events.EndState(before=before[0].value, after=after[0].value)


def _model(app: Any) -> ModelHost:
    """A service that speaks a model's API, for its seam."""

    if isinstance(app, ModelApp):
        return ModelHost(formats.format_of, formats.errors_of, app.delivered)
    return ModelHost(formats.format_of, formats.errors_of, recorded=True)


UNHELD = (
    "no reference to {} was found that the agent can reach, so its calls go unseen: give in tools= the very object "
    "that the agent calls"
)


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


@contextmanager
def _caught(result: AgentResult, hung: tuple[type[Exception], ...]) -> Iterator[None]:
    """Records an exception of the agent as the trial's error, so that it does not end the caller."""
    try:
        yield
    except hung:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001
        result.error = error


def _stand_in(wrapping: Wrapping, function: Any, real: Callable[..., Any]) -> Callable[..., Any]:
    """The stand-in of a function. `real`: a callable that does what the function did before it was swapped."""
    return wrapping.stand_in(name_of(function), real, unasked(code_swap.innermost(function)))


def _innermost(functions: Sequence[Any]) -> dict[int, Any]:
    """The objects whose code is swapped, by the ids of the functions that were given. Of two that decorate one
    function, each is swapped itself."""
    inner = {id(each): code_swap.innermost(each) for each in functions}

    def its(each: Any) -> int:
        return id(getattr(inner[id(each)], "__func__", inner[id(each)]))

    used = Counter(map(its, functions))
    return {id(each): each if used[its(each)] > 1 else inner[id(each)] for each in functions}


def unasked(function: Any) -> frozenset[str]:
    """The parameters that a caller does not pass: those that a framework injects, and the object of a method."""
    return injected(function) | _receiver(function)


def _receiver(function: Any) -> frozenset[str]:
    """The object parameter of a method that is given by its class, as in `Shop.order`."""
    path = getattr(function, "__qualname__", "").split(".")
    if not inspect.isfunction(function) or len(path) < 2 or path[-2] == "<locals>":
        return frozenset()
    return frozenset(function.__code__.co_varnames[: min(1, function.__code__.co_argcount)])


def name_of(function: Any) -> str:
    """The name of a function in plans and logs."""
    function = function.make if isinstance(function, Fresh) else function
    if inspect.isroutine(function) or (adapter := adapters.of_tool(function)) is None:
        while isinstance(function, partial) and "__name__" not in vars(function):
            function = function.func
        return str(getattr(function, "__name__", type(function).__name__))
    return adapter.name(function)


def _text(answer: Any) -> str:
    """The answer as text, for the judge and the log. For a conversation (`{"messages": […]}`) it is the last
    message."""
    answer = adapters.answer_of(answer)
    return answer if isinstance(answer, str) else json.dumps(to_jsonable(answer), ensure_ascii=False)
