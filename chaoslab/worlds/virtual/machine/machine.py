"""The machine of a trial: a clock that jumps, threads that take turns, and no real waiting.

A thread of the machine (`VirtualThread`) is a greenlet. One runs at a time, until it waits. Then the machine runs
whatever is due at this moment; if nothing is, it moves its clock to the next timer. So the order depends only on what
the threads do, and a wait of an hour costs as much as one of a millisecond. If nothing is due and no timer is left, the
remaining threads would wait for ever, and the machine detects it at once.
"""

import contextvars
import heapq
import itertools
import threading
from _thread import get_ident
from asyncio import _get_running_loop, _set_running_loop
from collections import defaultdict, deque
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from sys import exception as under_way
from sys import get_asyncgen_hooks, set_asyncgen_hooks
from typing import Any, NoReturn, Protocol

from greenlet import GreenletExit, getcurrent, greenlet

from chaoslab.seams.functions.seam import CALLS_MAX
from chaoslab.worlds.virtual.machine._standstill import StepCounters, describe_wait, list_loop_due_times
from chaoslab.worlds.virtual.machine._thread_local import ThreadLocals
from chaoslab.worlds.virtual.machine.context import Unsupported

# The monotonic clock's value at the start: like a machine that has been up for a day, so that nobody takes the time for
# unset.
STARTS_S = 100_000.0
# The most turns of all threads after one was told to end.
LAST_TURNS_MAX = 100_000
# The most waits of a thread that was told to end: one that waits more often will not end.
LAST_MOVES_MAX = 10_000


class Hung(Exception):
    """The trial would never end. The message has the reason, and a line per waiting thread or task."""

    def __init__(self, why: str, waiting: list[str]) -> None:
        super().__init__("\n".join([why, *waiting]))
        self.why, self.waiting = why, waiting

    # An exception of two arguments is not made again by its `args`, which a worker's result needs.
    def __reduce__(self) -> tuple[Any, ...]:
        return Hung, (self.why, self.waiting)


# BaseException, since a program that swallows every Exception must not swallow its own death.
class Killed(BaseException):
    """The program's process was killed. A machine raises it, and none of the program's threads ever gets it."""


class Reporter(Protocol):
    """An object to wait in that can describe the wait better than its thread, such as an event loop with its tasks."""

    def describe_waits(self) -> list[str]: ...


class Timer:
    # Timers and waits are the machine's most frequent objects.
    """A call due at a moment."""

    __slots__ = ("args", "call", "cancelled", "when")

    def __init__(self, when: float, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.when, self.call, self.args, self.cancelled = when, call, args, False

    def cancel(self) -> None:
        self.cancelled = True
        # Called off it stays on the heap until its time; without its arguments it keeps nobody alive.
        self.args = ()


Wait = str | Callable[[], str] | Reporter
"""The description of a wait: a text, a function that makes it on demand, or a reporter."""


class VirtualThread(greenlet):
    """One thread of the machine. `waits_for`: the wait in which it is parked. `over`: called once at its end, for
    whatever reason. `sentinel`: the lock by which `Thread.join` learns of its end, before Python 3.13. `serves`:
    it is a service's, for work that nobody waits for. `of_agent`: it is the program's, and no service's.
    `killed`: it died with its process, and never goes on.

    The first one is the thread of the process that runs the machine, and has no number of its own.
    """

    def __init__(self, work: Callable[[], Any], number: int, name: str, on_end: Callable[[], Any] | None) -> None:
        super().__init__(work)
        self.number, self.name, self.over = number, name, on_end
        self.first = self.of_agent = self.serves = self.killed = False
        self.waits_for: Wait = "its first turn"
        self.locals: Any = None
        self.sentinel: Any = None


class Waiter:
    """One wait of one thread; the holder of this object may end it, once."""

    __slots__ = ("_left", "_over", "_woken", "machine", "strand")

    def __init__(self, machine: "Machine") -> None:
        strand = getcurrent()
        if not isinstance(strand, VirtualThread):
            raise RuntimeError("the machine itself cannot wait: only its threads can")
        self.machine, self.strand = machine, strand
        self._over = self._woken = self._left = False

    @property
    def is_woken(self) -> bool:
        return self._woken

    def wake(self) -> bool:
        """Ends the wait, so that the thread goes on in its turn; True if it was still waiting."""
        # Killed: the thread is never run again, so whoever would wake it has woken nobody.
        if self._over or self.strand.killed:
            return False
        self.machine.raise_if_foreign_thread()
        self._over = self._woken = True
        # In its turn and not at once: who wakes another goes on first, so that the order depends on the program alone.
        self.machine.schedule_now(self._resume)
        return True

    def park(self, wait: Wait, until: float | None = None) -> bool:
        """Waits; returns True if woken before `until`."""
        machine = self.machine
        # It may have been woken before it parked.
        if self._over:
            return self._woken
        # A wait of no time would let a loop of them turn for ever, since nothing else moves the clock.
        if until is not None and until <= machine.now:
            until = machine.steps.find_zero_wait_end(wait)
        # Nothing else happens until then, so the clock is moved here, without a switch of greenlets.
        if until is not None and machine.is_idle_until(until):
            machine.now = machine.lapsed_at = max(machine.now, until)
            self._over = True
            return False
        timer = None if until is None else machine.schedule_at(until, self._expire)
        self.strand.waits_for = wait
        loop, hooks = _get_running_loop(), get_asyncgen_hooks()
        # A thread of asyncio's that goes on would find another thread's loop running.
        if loop is not None:  # each of these asks the system for the process's id
            _set_running_loop(None)
        try:
            machine.hub.switch()
        finally:
            self._over = self._left = True
            machine.locals.switch_to_thread(self.strand)
            if loop is not None:
                _set_running_loop(loop)
            # The hooks are of the OS thread, which all threads of the machine share.
            set_asyncgen_hooks(*hooks)
            if timer is not None:
                timer.cancel()
        return self._woken

    def _expire(self) -> None:
        if not (self._over or self.strand.killed):
            self.machine.lapsed_at = self.machine.now
            self._resume()

    def _resume(self) -> None:
        if not (self.strand.killed or self._left):  # an interrupt may have come first
            self.strand.switch()


class Machine:
    """A machine. `deadline_s` bounds its total time, `calls_max` the calls without a wait. It must not be used from
    another thread of the process."""

    def __init__(self, *, deadline_s: float, calls_max: int = CALLS_MAX) -> None:
        self.now = STARTS_S
        self.deadline = STARTS_S + deadline_s
        self.hub: greenlet = getcurrent()
        self._timers: list[tuple[float, int, Timer]] = []
        self.lapsed_at = -1.0
        """The last moment at which a wait of a thread ended because its time was over."""
        self.ready: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._order = itertools.count()
        # Numbers that no thread of the process has: those are addresses.
        self._idents = itertools.count(1_000_001)
        self._strands: dict[int, VirtualThread] = {}
        self._dead: list[VirtualThread] = []
        """The threads of processes that were killed. A greenlet that nobody holds would be told to end, and run its
        `finally` blocks."""
        self.locals = ThreadLocals()
        self.endings: list[Callable[[], Any]] = []
        """Called when the run is over and no thread is left."""
        self.pools: dict[int, Callable[[], object]] = {}
        """By id, the thread pools that were moved to this machine, each with a function that gives it threads anew;
        `endings` keeps them alive."""
        self._numbers: defaultdict[type, itertools.count[int]] = defaultdict(_from_one)
        self._numbered: dict[int, int] = {}
        self.thread_names, self.pool_names = itertools.count(1), itertools.count()
        self.steps = StepCounters(self, calls_max)
        self.looks_left = 0
        self._quiet: Callable[[], object] | None = None
        self.pending: list[str] = []
        """The waits that would still have ended when the bound of `notify_when_quiet` was reached, as lines; first
        those that began before it was called, and services at work."""
        self.pending_since = 0
        """Their number."""
        self.stopping, self._last_moves = False, 0
        self.left_behind = False
        """True if one of its threads would not end."""
        self._os_thread = get_ident()
        self.foreign: Unsupported | None = None

    def raise_if_foreign_thread(self) -> None:
        """Checks that the caller is the thread of the process that runs this machine: a call from another one would
        come at an arbitrary moment. Raises Unsupported: it is another thread; the run ends with this too."""
        if get_ident() != self._os_thread:
            error = self.foreign = Unsupported(
                "a thread of the process that runs no world of its own", "do without the library that starts it"
            )
            self.end_run_with_error(error)
            raise error

    # Timers.

    def schedule_at(self, due_s: float, call: Callable[..., Any], *args: Any) -> Timer:
        """Schedules a call. Calls due at the same moment happen in the order in which they were scheduled."""
        timer = Timer(due_s, call, args)
        # The number keeps the order of calls of one moment, and spares a comparison of timers, which have no order.
        heapq.heappush(self._timers, (due_s, next(self._order), timer))
        return timer

    def schedule_after(self, delay_s: float, call: Callable[..., Any], *args: Any) -> Timer:
        return self.schedule_at(self.now + delay_s, call, *args)

    def schedule_now(self, call: Callable[..., Any], *args: Any) -> None:
        self.ready.append((call, args))

    def is_idle_until(self, until_s: float) -> bool:
        """True if nothing happens up to that moment, so that a lone thread may be moved there without a switch."""
        if self.stopping:
            self._last_moves += 1
            # A thread that is being ended may still move the time; one that does so without end is left behind.
            if self._last_moves > LAST_MOVES_MAX:
                return False
        timers = self._timers
        # Those that were called off must not count as something that happens.
        while timers and timers[0][2].cancelled:
            heapq.heappop(timers)
        # Past the deadline the loop has to see it, and end the run.
        return not self.ready and (not timers or timers[0][0] > until_s) and until_s <= self.deadline

    def read_clock(self) -> float:
        """The clock, as the program reads it."""
        # Granted in portions: a look at the clock is a program's most frequent step.
        self.looks_left -= 1
        if self.looks_left < 0:
            self.looks_left = self.steps.looks.grant_steps("looks at the clock", "times") - 1
        return self.now

    def find_next_due_time(self) -> float | None:
        """The time of the next event after now, including timers of the calling thread's event loop; None if there is
        none."""
        coming = [due_s for due_s, _, timer in self._timers if due_s > self.now and not timer.cancelled]
        return min([*coming, *list_loop_due_times(self.now)], default=None)

    # Ends that a program cannot swallow.

    def end_run_soon(self, reason: str, *, but: greenlet | None = None) -> None:
        """Ends the run as soon as the calling thread has given up its turn. `but`: a thread that `reason` describes
        already."""
        if not self.stopping:
            self.end_run_with_error(Hung(reason, self.describe_waits(but=but)))

    def end_run_with_error(self, error: BaseException) -> None:
        """Ends the run with this error as soon as the calling thread has given up its turn."""
        # Before all else that is ready.
        self.ready.appendleft((_raise_error, (error,)))

    def end_run(self, reason: str, wait: Wait | None = None) -> NoReturn:
        """Ends the run from one of its threads, which does not go on. `wait`: its wait, if `reason` does not describe
        it."""
        thread = getcurrent()
        if isinstance(thread, VirtualThread):
            thread.waits_for = wait or ""
        self.end_run_soon(reason, but=None if wait else thread)
        self.park_until_run_ends()

    def park_until_run_ends(self) -> NoReturn:
        """Ends the turn of the calling thread for good."""
        if self.is_in_virtual_thread():
            Waiter(self).park("the end of the run")
        else:  # a greenlet of the program's own
            self.hub.switch()
        # Reached when the run is over: the thread is then told to end at this place.
        raise GreenletExit

    def kill_program(self) -> None:
        """Kills the program's process: `run` raises Killed. If the caller is one of its threads, this never returns."""
        self.end_run_with_error(Killed())
        # A service's thread goes on: it is the program that dies.
        if _is_agent_thread(getcurrent()):
            self.park_until_run_ends()

    def interrupt_program(self, error: BaseException) -> None:
        """Raises the error in the first thread of the program, where it waits. The calling thread gets no error."""
        first = next((strand for strand in self._strands.values() if strand.first), None)
        if first is not None and first is not getcurrent():
            self.schedule_now(first.throw, error)

    def is_caller_dead(self) -> bool:
        """True if the calling thread was killed, and is told to end now that the run is over."""
        return getcurrent() in self._dead

    def remove_killed_threads(self) -> None:
        """Takes all threads of a process that was killed out of the run, at the places where they are."""
        dead = [strand for strand in self._strands.values() if strand.of_agent]
        for strand in dead:
            strand.killed = True
            del self._strands[strand.number]
        self._dead += dead
        for _, _, timer in self._timers:
            # Calls that are due later and would switch into a dead thread.
            waiter = getattr(timer.call, "__self__", None)
            if isinstance(waiter, Waiter) and waiter.strand.killed:
                timer.cancel()
        # A thread that has not begun is dead too: its first switch stands here.
        held = [(call, args) for call, args in self.ready if getattr(call, "__self__", None) not in dead]
        self.ready.clear()
        self.ready.extend(held)
        # Who waited for the world to become quiet is dead.
        self._quiet = None
        for renew in self.pools.values():
            # A pool's threads died with the process, but the pool may be a module's, and goes on in the next one.
            renew()

    # Threads.

    def start_thread(
        self, work: Callable[[], Any], *, name: str, over: Callable[[], Any] | None = None
    ) -> VirtualThread:
        """Starts a thread, which begins in its turn. An exception of `work` ends the run."""
        strand = VirtualThread(lambda: self._run_thread(work, strand), next(self._idents), name, over)
        strand.parent, strand.of_agent = self.hub, _is_agent_thread(getcurrent())
        self._strands[strand.number] = strand
        self.schedule_now(strand.switch)
        return strand

    def start_service_thread(self, work: Callable[[], Any], *, name: str) -> None:
        """Starts a thread of a service as `start_thread` does, for work that nobody waits for."""
        strand = self.start_thread(work, name=name)
        strand.of_agent, strand.serves = False, True

    def _run_thread(self, work: Callable[[], Any], strand: VirtualThread) -> None:
        """Does the work of a thread, unless it is told to end."""
        self.locals.switch_to_thread(strand)
        # The last thread's hooks, which would be called for this one's generators.
        set_asyncgen_hooks(None, None)
        try:
            with suppress(GreenletExit):
                work()
        finally:
            if _get_running_loop() is not None:
                # A thread that ends within a running loop would leave it to the next.
                _set_running_loop(None)
            self._forget_thread(strand)

    def _forget_thread(self, strand: VirtualThread) -> None:
        if self._strands.pop(strand.number, None) is None:
            return
        if not strand.first:
            threading._active.pop(strand.number, None)  # type: ignore[attr-defined]  # from asking for its name
        if strand.over is not None:
            strand.over()

    def sleep(self, delay_s: float) -> None:
        """`time.sleep` for the calling thread."""
        self.wait(f"time.sleep({delay_s:g})", self.now + delay_s)

    def wait(self, wait_: Wait, until: float) -> None:
        Waiter(self).park(wait_, until)

    def is_in_virtual_thread(self) -> bool:
        """True if the caller is one of its threads, not the machine itself or a greenlet of the program's own."""
        return isinstance(getcurrent(), VirtualThread)

    def yield_to_due_calls(self) -> None:
        """Runs everything due at this moment before the calling thread goes on."""
        # Alone it need not give up its turn.
        if self.is_idle_until(self.now) or not self.is_in_virtual_thread():
            return
        waiter = Waiter(self)
        # Behind the timers of this moment, which are due and not yet ready.
        if not self.stopping and self._timers and self._timers[0][0] <= self.now:
            self.schedule_at(self.now, waiter.wake)
        else:
            self.schedule_now(waiter.wake)
        waiter.park("its next turn")

    # Numbers that order the members of sets.

    def number_object(self, thing: object) -> None:
        """Numbers a new object; an object with the same address no longer exists."""
        # By address: objects of a program may have no hash, or one of their own.
        self._numbered[id(thing)] = next(self._numbers[type(thing)])

    def get_object_number(self, thing: object) -> int | None:
        """The number of an object; None if it is older than this machine."""
        return self._numbered.get(id(thing))

    # The run.

    def run(self, work: Callable[[], Any], *, name: str) -> None:
        """Runs `work` as a thread until it is over, together with all others.

        Raises:
            Hung: it would never be over, or not before the deadline.
        """
        main = self.start_thread(work, name=name)
        # A copy: what the trial sets in its context must not stay with the caller's.
        main.first, main.of_agent, main.gr_context = True, True, contextvars.copy_context()
        if not self._dead:  # a fresh process has values of its own
            self.locals.adopt_os_values(main)
        self.run_until_thread_ends(main)

    def run_until_thread_ends(self, thread: VirtualThread) -> None:
        """Runs all threads until this one is over. Raises Hung: it would never be over, or not before the deadline."""
        ready, timers = self.ready, self._timers
        while not thread.dead:
            if ready:
                call, args = ready.popleft()
                call(*args)
            elif timers:
                due = due_s, _, timer = heapq.heappop(timers)
                if timer.cancelled:
                    continue
                if due_s <= self.deadline:
                    self.now = max(self.now, due_s)
                    timer.call(*timer.args)
                    continue
                # Back on the heap: after quiet the old deadline may hold again, and then it is due.
                heapq.heappush(timers, due)
                allowed, self.now = self.deadline - STARTS_S, self.deadline
                if not self._call_quiet_callback():
                    raise Hung(f"not over after {allowed:g} s of virtual time", self.describe_waits())
            elif not self._call_quiet_callback():
                raise Hung("nothing is ready and nothing is due: it would wait for ever", self.describe_waits())

    def has_nothing_due(self) -> bool:
        """True if nothing but the calling thread has anything to do, now or later."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return not (self.ready or self._timers)

    def notify_when_quiet(self, notify: Callable[[], object], *, within_s: float) -> None:
        """Calls `notify` when nothing is due any more, or after that time, whatever the deadline was. Then the deadline
        is the old one, or this moment if that is over."""
        deadline, self.deadline = self.deadline, self.now + within_s
        # A number of the order, so that timers of before are told from those that came later.
        since = next(self._order)

        def handle_quiet() -> None:
            self._record_pending_waits(since)
            self.deadline = max(deadline, self.now)
            notify()

        self._quiet = handle_quiet

    def _call_quiet_callback(self) -> bool:
        """Tells who waits for it that the world is quiet; False if nobody does."""
        # Once: quiet is told to whom asked for it, and no longer.
        callback, self._quiet = self._quiet, None
        if callback is not None:
            callback()
        return callback is not None

    def _record_pending_waits(self, since: int) -> None:
        """Keeps the waits of the threads that go on at a later moment. `since`: the first number of a new timer."""
        old, new = set[greenlet](), set[greenlet]()
        for _, number, timer in self._timers:
            waiter = getattr(timer.call, "__self__", None)
            if isinstance(waiter, Waiter) and not timer.cancelled:
                # A service at work was asked before the answer, whenever it set its timer.
                at_work = waiter.strand.serves
                (old if number < since or at_work else new).add(waiter.strand)
        first = self.describe_waits(old)
        self.pending, self.pending_since = [*first, *self.describe_waits(new - old)], len(first)

    def describe_waits(self, threads: Collection[greenlet] | None = None, *, but: greenlet | None = None) -> list[str]:
        """The wait of each thread, or of some, as one line or several."""
        lines: list[str] = []
        for strand in self._strands.values():
            if strand is but or (threads is not None and strand not in threads):
                continue
            wait_ = strand.waits_for
            if isinstance(wait_, str) or callable(wait_):
                lines.append(
                    # The text is made on demand, since most waits are never told.
                    f"{strand.name} {describe_wait(strand.gr_frame, wait_ if isinstance(wait_, str) else wait_())}"
                )
            else:
                lines += [f"{strand.name}: {line}" for line in wait_.describe_waits()]
        return lines

    def _run_last_calls(self) -> None:
        """Runs the remaining calls of a thread that was told to end, such as the cancellation of its tasks."""
        for _ in range(LAST_TURNS_MAX):
            if not self.ready:
                return
            call, args = self.ready.popleft()
            call(*args)

    def _end_thread(self, strand: VirtualThread) -> list[BaseException]:
        """Ends a thread at its present place, and returns the errors of that. One that will not end is left behind."""
        failed = list[BaseException]()
        self._last_moves = self.looks_left = 0
        # A thread that is being ended has its limits anew, for its `finally` blocks.
        self.steps.reset_counters()
        # A thread may catch GreenletExit and go on, so it is ended again; one that always does is left behind.
        for _ in range(100):
            if strand.dead:
                break
            try:
                strand.throw(GreenletExit)
                self._run_last_calls()
            except BaseException as raised:  # noqa: BLE001 - the others must still be ended
                failed.append(raised)
        self.left_behind |= not strand.dead
        self._forget_thread(strand)  # a thread that never began cannot do it itself
        return failed

    def run_last_thread(self, work: Callable[[], Any], *, name: str) -> None:
        """Runs a thread while the machine stops, as long as it does not wait: then it is told to end."""
        strand = self.start_thread(work, name=name)
        self._run_last_calls()
        for error in self._end_thread(strand):
            raise error

    def stop(self) -> None:
        """Ends every remaining thread at its present place. One that will not end is left behind. Virtual time does not
        pass.

        An error of one of them is raised after everything is restored, unless the run failed already.
        """
        ended_at, failed = self.now, list[BaseException]()
        self.stopping = True
        # The dead are told to end now, when nothing that they do is seen by the trial.
        self._strands.update((strand.number, strand) for strand in self._dead)
        # A copy: threads take themselves out.
        for strand in list(self._strands.values()):
            failed += self._end_thread(strand)
        self.now = ended_at
        self.ready.clear()
        self._timers.clear()
        for ending in (self.locals.restore_os_values, *self.endings):
            try:
                ending()
            except BaseException as raised:  # noqa: BLE001 - as above
                failed.append(raised)
        self.endings.clear()
        for error in failed:
            # An error under way is the run's own, and says more than what its end has met.
            if under_way() is None or not isinstance(error, Exception):
                raise error


def _is_agent_thread(thread: greenlet | None) -> bool:
    """True of a thread of the program, and of a greenlet that the program has made in one."""
    while thread is not None and not isinstance(thread, VirtualThread):
        thread = thread.parent
    return thread is not None and thread.of_agent


_from_one = partial(itertools.count, 1)


def _raise_error(error: BaseException) -> None:
    raise error
