"""An agent with its functions, a plan and a world: what does one trial of it, and the next.

Where a trial happens is chosen here; the trial itself is the same in both worlds.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import threading
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from chaoslab import events
from chaoslab.clock import iso, system
from chaoslab.identity import nth
from chaoslab.judge import HUNG
from chaoslab.notebook import Notebook
from chaoslab.plain import named, plain
from chaoslab.plan import Plan
from chaoslab.references import References
from chaoslab.seams import langchain
from chaoslab.seams.function import CALLS_MAX, FunctionSeam, Tool
from chaoslab.seams.injected import injected
from chaoslab.sweep import portable
from chaoslab.worlds.virtual.here import own_line

WORLDS = ("virtual", "local")
Hangs = tuple[type[Exception], ...]
"""What a world raises for a trial that would never end."""
Pairs = list[tuple[Any, Any]]
"""Real things, and what stands in for them."""
_alone = threading.Lock()


class Place(Protocol):
    """Where one trial happens."""

    def entered(self) -> AbstractContextManager[None]: ...
    def run(self, work: Callable[[], Any], *, over: Callable[[], object]) -> Any:
        """`over` is called when the work is: what those whom it has left behind still do is no part of it."""

    def run_async(self, work: Callable[[], Coroutine[Any, Any, Any]], *, over: Callable[[], object]) -> Any: ...

    def pace(self, function: str) -> int:
        """How many calls may be made until this is asked again, this one of that function among them; ends a trial that would never end."""


class Here:
    """This process, in real time. `late`: which call came after the deadline, if one did: it raises SystemExit, which agents do not take for
    one more failure, event loops end with, and threads end by without a word."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s, self.deadline, self.late = deadline_s, system.monotonic() + deadline_s, ""

    def pace(self, function: str) -> int:
        if system.monotonic() <= self.deadline:
            return 1
        self.late = self.late or f"{own_line()} calls {function} after the deadline of {self.deadline_s:g} s"
        raise SystemExit(self.late)

    def entered(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, work: Callable[[], Any], *, over: Callable[[], object]) -> Any:
        outer = _get_running_loop()
        _set_running_loop(None)  # in a notebook, say: the loop there rests while the trial's own runs
        try:
            return work()
        finally:
            over()
            _set_running_loop(outer)

    def run_async(self, work: Callable[[], Coroutine[Any, Any, Any]], *, over: Callable[[], object]) -> Any:
        return self.run(lambda: asyncio.run(work()), over=over)


@dataclass
class Ended:
    """What came of one trial. `book`: all that happened; `warnings`: what a person should know of it."""

    book: Notebook
    answer: Any = None
    error: BaseException | None = None
    hung: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """To another process goes an error that can be made again there; of any other, its name and its words."""
        error = self.error
        return {**vars(self), "error": error and portable(error, named(error))}


@dataclass(frozen=True)
class Batch:
    """`tools` have effects, `reads` have none. `effects`, `facts`: what was stated about a right answer, if `stated`. `now`: what the wall
    clock says when a trial of virtual time begins."""

    agent: Any
    prompt: Any
    tools: Sequence[Any]
    reads: Sequence[Any]
    plan: Plan
    run: str
    world: str
    now: datetime
    timeout_s: float
    deadline_s: float
    services: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]] = ()
    facts: Sequence[Sequence[str]] = ()
    stated: bool = False
    notes: tuple[str, ...] = field(default=())
    """Warnings that hold for each of its trials."""
    calls_max: int = CALLS_MAX

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

    def named(self, number: int) -> str:
        """What its logs call the trial of that number, counted from 0."""
        return nth(self.run, number, 1).key

    @contextmanager
    def opened(self) -> Iterator[Callable[[int], Ended]]:
        """What does the trial of a number, counted from 0."""
        with ExitStack() as stack:
            new, hung, exchanged = stack.enter_context({"virtual": self._virtual, "local": self._local}[self.world]())
            seam = FunctionSeam(self.plan, timeout_s=self.timeout_s)
            unheld = stack.enter_context(self._wrapped(seam, exchanged))
            ask, of_coroutine = self._ask()
            yield lambda number: self._trial(number, seam, new, hung, ask, of_coroutine, unheld)

    # The worlds.

    @contextmanager
    def _virtual(self) -> Iterator[tuple[Callable[[], Place], Hangs, Pairs]]:
        parts = {
            name: importlib.import_module(f"chaoslab.worlds.virtual.{name}")
            for name in ("machine", "patches", "serving", "world")
        }

        def new() -> Place:
            world: Any = parts["world"].World(
                self.plan.seed, now=self.now, deadline_s=self.deadline_s, calls_max=self.calls_max
            )
            for name, app in self.services.items():
                parts["serving"].serve(world.network, name, 80, app)
            place: Place = world
            return place

        with parts["patches"].Patches():
            yield new, (parts["machine"].Hung,), parts["patches"].Patches.exchanged()

    @contextmanager
    def _local(self) -> Iterator[tuple[Callable[[], Place], Hangs, Pairs]]:
        yield lambda: Here(self.deadline_s), (), []

    # The agent and its functions.

    def _ask(self) -> tuple[Callable[[Any], Any], bool]:
        """The agent as a callable, and whether it is async. A Runnable is asked by `ainvoke` where a tool can be called in no other way,
        else by `invoke`."""
        if langchain.is_runnable(self.agent):
            functions = [*self.tools, *self.reads]
            only = any(langchain.is_async_only(f) or Tool("", f, effect=False).of_coroutine for f in functions)
            return langchain.callable_of(self.agent, of_coroutine=only), only
        return self.agent, Tool("", self.agent, effect=False).of_coroutine

    @contextmanager
    def _wrapped(self, seam: FunctionSeam, exchanged: Pairs) -> Iterator[tuple[str, ...]]:
        """The stand-ins are in place, those of the world too, such as a clock that the agent keeps in an attribute; the names of the
        functions to which no reference was found."""
        pairs, names = [], []
        with ExitStack() as stack:
            for functions, effect in ((self.tools, True), (self.reads, False)):
                for function in functions:
                    if langchain.is_tool(function):
                        stack.enter_context(langchain.in_place(seam, function, effect=effect))
                    else:
                        names.append(name_of(function))
                        pairs.append((function, seam.stand_in(Tool(names[-1], function, effect, injected(function)))))
            swapped = stack.enter_context(References([self.agent, *self.tools, *self.reads], [*pairs, *exchanged]))
            yield tuple(name for name, count in zip(names, swapped.count, strict=False) if not count)

    # One trial.

    def _trial(
        self, number: int, seam: FunctionSeam, new: Callable[[], Place], hung: tuple[type[Exception], ...],
        ask: Callable[[Any], Any], of_coroutine: bool, unheld: Sequence[str],
    ) -> Ended:  # fmt: skip
        place = new()
        with place.entered():
            now = system.utc()
            book = Notebook(nth(self.run, number, 1), began=now)
            book.note(
                events.PromptStarted(
                    1, str(self.prompt), [list(f) for f in self.facts], [dict(e) for e in self.effects], self.stated
                )
            )
        ended = Ended(book, warnings=(*self.notes, *(UNHELD.format(name) for name in unheld)))

        async def work_async() -> None:
            with _caught(ended, hung):
                ended.answer = await ask(self.prompt)

        def work() -> None:
            with _caught(ended, hung):
                ended.answer = _fetched(ask(self.prompt))

        def over() -> None:
            ended.seconds = round(system.monotonic() - book.origin, 6)
            seam.book = None

        seam.book, seam.pace, seam.left = book, place.pace, 0
        try:
            with _caught(ended, hung):  # what another of its tasks or threads ended everything by
                if of_coroutine:
                    place.run_async(work_async, over=over)
                else:
                    place.run(work, over=over)
        except hung as error:
            ended.hung = str(error)
        if isinstance(place, Here) and place.late:  # whatever the agent made of it
            ended.hung = place.late
        if ended.hung:
            ended.answer = ended.error = None
        with place.entered():
            self._finish(ended, now)
        return ended

    def _finish(self, ended: Ended, now: datetime) -> None:
        book, asked = ended.book, str(self.prompt)
        kind = HUNG if ended.hung else "agent" if ended.error is not None else "none"
        error = ended.hung or (named(ended.error) if ended.error is not None else "")
        text = "" if kind != "none" else _text(ended.answer)
        end = iso(now + timedelta(seconds=ended.seconds))
        for warning in ended.warnings:
            book.note(events.Warning(warning))
        for unreached in self._unreached(book):
            book.note(unreached)
        book.note(
            events.PromptAttempt(
                1, asked, text, "ok" if kind == "none" else "error", iso(now), end, ended.seconds, kind, 1, error[:2000]
            )
        )
        ok = "ok" if kind == "none" else "failed"
        book.note(events.PromptFinished(1, asked, ok, text, 1, ended.seconds, kind))

    def _unreached(self, book: Notebook) -> list[events.FaultUnreached]:
        """What was to be hit by its number and was not."""
        if not self.plan.named:
            return []
        met = {(event.injection, event.target, event.request) for event in book.noted(events.FaultScheduled)}
        return [
            events.FaultUnreached(injection.name, target, request, made)
            for injection, target, request in self.plan.named
            if request > (made := book.requests.made(target))
            or ((injection.name, target, request) not in met and not injection.conditional)
        ]


UNHELD = "no reference to {} was found that the agent can reach, so its calls go unseen: give in tools= the very object that the agent calls"


@contextmanager
def _caught(ended: Ended, hung: tuple[type[Exception], ...]) -> Iterator[None]:
    """Whatever an agent raises fails its trial, not whoever tries it."""
    try:
        yield
    except hung:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001
        ended.error = error


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


def name_of(function: Any) -> str:
    """What a function is called in plans and logs."""
    named = function.name if langchain.is_tool(function) else getattr(function, "__name__", type(function).__name__)
    return str(named)


def _text(answer: Any) -> str:
    """An answer in words, to be judged and written down."""
    return answer if isinstance(answer, str) else json.dumps(plain(answer), ensure_ascii=False)
