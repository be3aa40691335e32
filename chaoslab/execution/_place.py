"""The place of a user's trial: a world of virtual time, or this process in real time."""

import asyncio
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.seams.functions.seam import CallTurnGate
from chaoslab.worlds.virtual.machine.context import locate_caller

Again = Callable[[], Callable[[], Any] | None]
"""Gives the work of the next process, or None."""
POLL_S = 0.01
"""The time between two looks at what is under way, in real time."""


class TrialPlace(Protocol):
    """A place in which one trial runs."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about what the program asked of it."""

    @property
    def has_program_drawn_chance(self) -> bool | None:
        """True if a program has drawn chance of its own; None: not known."""

    def enter_world(self) -> AbstractContextManager[None]: ...
    def run_program(self, work: Callable[[], Any], *, over: Callable[[], object], again: Again) -> Any:
        """Runs the work, then calls `over`: later events, from threads that outlive the work, are no part of the
        trial. `again`: asked for the work of a fresh process when `kill` ended the program's."""

    def run_program_async(
        self, work: Callable[[], Coroutine[Any, Any, Any]], *, over: Callable[[], object], again: Again
    ) -> Any: ...

    def kill_program(self) -> None:
        """Kills the program's process, and with it the calling thread, if that is the program's."""

    def interrupt_program_if_possible(self) -> None:
        """Ends what the agent's first thread waits for, with a CancelledError. Nothing in real time."""

    def wait_until_quiet(self, within_s: float, busy: Callable[[], Sequence[str]]) -> None:
        """Lets what is under way go on after the answer, for at most so long; to be called by the work. `busy`:
        the calls under way, for a world that sees nothing else."""

    async def await_quiet(self, within_s: float, busy: Callable[[], Sequence[str]]) -> None: ...

    def list_pending_waits(self, busy: Callable[[], Sequence[str]]) -> list[str]:
        """Lines about what was under way still when the time to settle was over. `busy`: the calls; if
        there are none, threads that only turn, such as for a pulse, are left out."""

    def suspend_world(self) -> AbstractContextManager[None]:
        """A context in which this thread is in real time, and the clock of this world stands still."""

    def run_without_trial_time(self, work: Callable[[], None]) -> None:
        """Runs the work in this world, before the trial or after it. It takes none of the trial's time."""

    def build_call_turns_if_virtual(
        self, order: Dice | Mapping[int, Sequence[str]], on_order: Callable[[Sequence[str]], object]
    ) -> CallTurnGate | None:
        """The turns of calls that begin at the same moment; None in real time. `order`, `on_order`: as in
        `CallTurnGate`."""

    def check_limits_and_grant_calls(self, function: str) -> int:
        """Counts this call of the function, and returns the number of calls until it must be asked again, this one
        included. Ends an endless trial."""


class RealTimePlace:
    """This process, in real time. The first call after the deadline raises SystemExit, and `late` describes it. Agents
    do not take SystemExit for a failure, event loops stop at it, and threads end by it silently. `kills`: each kills
    the processes of one agent that works in some: of the first one, and of the one that resumes."""

    def __init__(self, deadline_s: float, kills: Sequence[Callable[[], object]] = ()) -> None:
        self.deadline_s, self.deadline, self.late = deadline_s, system.monotonic() + deadline_s, ""
        self._kills, self._killed = [*kills], False

    has_program_drawn_chance = None
    """The chance of this process is not the lab's."""

    @property
    def warnings(self) -> list[str]:
        return []

    def build_call_turns_if_virtual(
        self, order: Dice | Mapping[int, Sequence[str]], on_order: Callable[[Sequence[str]], object]
    ) -> None:
        """None: nothing happens at the same moment."""

    def check_limits_and_grant_calls(self, function: str) -> int:
        if system.monotonic() <= self.deadline and not self.late:
            # 1: each call asks, because real time passes between any two of them.
            return 1
        self.late = self.late or f"{locate_caller()} calls {function} after the deadline of {self.deadline_s:g} s"
        raise SystemExit(self.late)

    def end_runaway_trial(self, reason: str) -> None:
        """Ends an endless trial at its next call of a function."""
        self.late = self.late or reason

    def enter_world(self) -> AbstractContextManager[None]:
        return nullcontext()

    def suspend_world(self) -> AbstractContextManager[None]:
        return nullcontext()

    def wait_until_quiet(self, within_s: float, busy: Callable[[], Sequence[str]]) -> None:
        until_s = system.monotonic() + within_s
        while busy() and system.monotonic() < until_s:
            system.sleep(POLL_S)

    async def await_quiet(self, within_s: float, busy: Callable[[], Sequence[str]]) -> None:
        until_s = system.monotonic() + within_s
        while busy() and system.monotonic() < until_s:
            await system.sleep_async(POLL_S)

    def list_pending_waits(self, busy: Callable[[], Sequence[str]]) -> list[str]:
        return [*busy()]

    def run_without_trial_time(self, work: Callable[[], None]) -> None:
        work()

    def kill_program(self) -> None:
        """Kills the agent's processes. This one is the lab's, too (`RunTargets.checked`)."""
        # Set before the signal: the end of the process may be seen at once. Only what runs now is killed, since the
        # process that resumes may begin before this returns.
        self._killed = True
        for kill in self._kills[:1]:
            kill()

    def interrupt_program_if_possible(self) -> None:
        """Does nothing: no thread can be interrupted from outside."""

    def run_program(self, work: Callable[[], Any], *, over: Callable[[], object], again: Again) -> Any:
        outer = _get_running_loop()
        _set_running_loop(None)  # in a notebook, for example: its loop rests while the trial's loop runs
        try:
            next_work: Callable[[], Any] | None = work
            while next_work is not None:
                self._killed = False
                next_work()
                next_work = again() if self._killed else None
                del self._kills[:-1]  # from now on it is the agent that resumes
        finally:
            over()
            _set_running_loop(outer)

    def run_program_async(
        self, work: Callable[[], Coroutine[Any, Any, Any]], *, over: Callable[[], object], again: Again
    ) -> Any:
        return self.run_program(lambda: asyncio.run(work()), over=over, again=again)
