"""Counters of steps that take no virtual time: a loop of them would never end, since nothing else moves the machine's
clock.

On a real computer time would pass. So after too many steps the clock moves to the next timer, and the limit shrinks
each time. If no timer is due, the trial ends as hung. A message about it describes
the waits of threads and tasks in terms of the user's program: the waiting call and its line.
"""

from __future__ import annotations

import threading
import weakref
from asyncio import _get_running_loop
from types import FrameType
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from chaoslab.worlds.virtual.machine.context import locate_caller

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.machine.machine import Machine, Wait

# The most waits of zero time, and failed tries, while the clock stands still.
TURNS_MAX = 100_000
# The most reads of the clock, and lock acquisitions.
LOOKS_MAX = 300_000
# The parts of a limit: steps are counted in slices of a tenth, so that a step costs next to nothing.
SLICES = 10
# The divisor for the smallest limit, a thousandth: code that is no loop takes such steps too.
FEWEST = 1000
# The gap between requests that counts as no wait. A request takes a few trips of 50 µs each.
NEAR_S = 0.001


class StepCounter:
    """A counter of one kind of step on a machine. `most`: the limit while the clock stands still. `near_s`: a clock
    that moved by no more than this between two steps stands still."""

    __slots__ = ("_granted", "_left", "_machine", "_most", "_moved_to", "_near_s", "allowed", "at", "count")

    def __init__(self, machine: Machine, steps_max: int, *, near_s: float = 0.0) -> None:
        self._machine, self._most, self._near_s = machine, steps_max, near_s
        self.reset_count()

    def reset_count(self) -> None:
        """Resets the counter and its limit."""
        self.allowed, self.count, self._granted, self._left = self._most, 0, 0, 0
        self.at, self._moved_to = self._machine.now, -1.0

    def count_and_tell_if_at_limit(self, steps: int = 1) -> bool:
        """Counts the steps taken since the last count; True if the limit is reached."""
        now = self._machine.now
        # A request takes some trips by itself, which is no wait of the program's.
        if now - self.at <= self._near_s:
            self.count += steps
        else:
            self.count = 0
            # Moved by these very steps, the clock tells of no wait, and the limit stays small.
            if now != self._moved_to:
                self.allowed = self._most
        self.at = now
        return self.count >= self.allowed

    def record_clock_move(self, until: float) -> None:
        """Records that the clock was moved because of these steps: that is no wait, and the limit shrinks."""
        # Halved each time: the next standstill is told sooner, down to a thousandth.
        self.allowed, self.count = max(1, self._most // FEWEST, self.allowed // 2), 0
        self.at = self._moved_to = until

    def count_step(self, doing: str, unit: str) -> None:
        """Counts one step, for callers that do not count their grant themselves."""
        self._left -= 1
        if self._left < 0:
            self._left = self.grant_steps(doing, unit) - 1

    def grant_steps(self, doing: str, unit: str) -> int:
        """The number of steps until this must be asked again, this one included. Called in the thread that takes them.

        `doing` and `unit`: the activity and its unit, as words for a message.
        """
        machine = self._machine
        if getcurrent() is machine.hub:  # the machine's own work, which is no loop
            return self._most
        if self.count_and_tell_if_at_limit(self._granted):
            self._advance_clock_or_end_run(doing, unit)
        elif self.count * 2 >= self.allowed:  # the loop may wait for work of another thread
            machine.yield_to_due_calls()
        self._granted = max(1, min(self._most // SLICES, self.allowed))
        return self._granted

    def _advance_clock_or_end_run(self, doing: str, unit: str) -> None:
        """Lets the calling thread go on when something else has happened. If nothing will, ends the run with a message
        that names the program's line."""
        machine = self._machine
        # A greenlet of the program's own cannot be moved: it has no wait.
        until = machine.find_next_due_time() if machine.is_in_virtual_thread() else None
        if until is None:
            caller_line = locate_caller() or "the agent"
            machine.end_run(f"{caller_line} {doing} again and again and no time passes ({self.count:,} {unit})")
        self.record_clock_move(until)
        machine.wait(f"a loop that {doing}", until)


class StepCounters:
    """The step counters of one machine."""

    def __init__(self, owner: Machine, calls_max: int) -> None:
        machine: Machine = weakref.proxy(owner)  # else only the collector would take the machine apart
        self._machine = machine
        self.calls, self.requests = StepCounter(machine, calls_max), StepCounter(machine, calls_max, near_s=NEAR_S)
        self.looks, self.locks = StepCounter(machine, LOOKS_MAX), StepCounter(machine, LOOKS_MAX)
        self.tries, self.turns = StepCounter(machine, TURNS_MAX), StepCounter(machine, TURNS_MAX)

    def reset_counters(self) -> None:
        """Resets all counters."""
        for pace in (self.calls, self.requests, self.looks, self.locks, self.tries, self.turns):
            pace.reset_count()

    def find_zero_wait_end(self, wait: Wait) -> float:
        """The end of the calling thread's wait of zero time: now, or after too many the next event. If there is none,
        ends the run."""
        machine = self._machine
        if not self.turns.count_and_tell_if_at_limit():
            return machine.now
        until = machine.find_next_due_time()
        if until is None:
            machine.end_run(
                f"it would turn for ever: {TURNS_MAX} turns without any time passing, and nothing is due", wait
            )
        self.turns.record_clock_move(until)
        return until

    def count_request(self, whom: str) -> None:
        """Counts a request over the network. It takes a little time, but a loop of requests is no wait."""
        # Soon and not at once, since it is called in the middle of a delivery.
        if self.requests.count_and_tell_if_at_limit():
            count = f"{self.requests.count:,} requests, less than {NEAR_S * 1000:g} ms apart"
            self._machine.end_run_soon(f"{whom} is asked again and again without a wait ({count})")


def list_loop_due_times(now: float) -> list[float]:
    """The timers of the event loop in this thread: the machine learns of them only when the loop waits."""
    # asyncio keeps its timers to itself.
    loop: Any = _get_running_loop()
    scheduled = getattr(loop, "_scheduled", ())
    return [handle._when for handle in scheduled if not handle._cancelled and handle._when > now]


PLUMBING = (
    "chaoslab.",
    "_thread",
    "aiohappyeyeballs",
    "aiohttp",
    "anyio",
    "asyncio",
    "concurrent.",
    "contextlib",
    "groq.",
    "http.client",
    "httpcore",
    "httpx",
    "langchain_core.",
    "langgraph.",
    "multiprocessing",
    "openai.",
    "queue",
    "requests",
    "selectors",
    "sniffio",
    "socket",
    "ssl",
    "subprocess",
    "tenacity",
    "threading",
    "urllib",
)
"""Modules whose frames say nothing about the place in the user's program."""
_LIBRARY = ("threading", "queue", "concurrent.", "asyncio")


def describe_wait(frame: FrameType | None, wait: str) -> str:
    """The wait of a parked thread by its innermost frame, as in "waits in Queue.get, called in agent.look_up, line
    12"."""
    return describe_wait_by_frames(_list_frames(frame), wait)


def describe_wait_by_frames(frames: list[FrameType], wait: str) -> str:
    """The wait by its frames, the innermost first. `wait`: the description if no library's name is better."""
    call: str | None = None
    for frame in frames:
        module = str(frame.f_globals.get("__name__", ""))
        # Of a connection, whom it waits for says more than the name of the library's function.
        if module.startswith(_LIBRARY) and not wait.startswith(("recv", "send", "connect")):
            call = _get_library_call_name(frame) or call
        if not module.startswith(PLUMBING):
            caller = f"{module}.{frame.f_code.co_name}, line {frame.f_lineno}"
            return f"waits {_add_preposition(call or wait)}, called in {caller}"
    return f"waits {_add_preposition(call or wait)}"


def _add_preposition(wait: str) -> str:
    return f"for {wait}" if wait.startswith(("a lock", "its ", "task", "something")) else f"in {wait}"


def _get_library_call_name(frame: FrameType) -> str | None:
    """The call's name; None for the outermost frames of a thread, and for a `with`."""
    name = frame.f_code.co_qualname.removeprefix("_")
    if name.endswith(
        (
            "_bootstrap",
            "_bootstrap_inner",
            "Thread.run",
            "WorkItem.run",
            "__enter__",
            "__exit__",
            "__aenter__",
            "__aexit__",
            "worker",
        )
    ):
        return None
    myself = frame.f_locals.get("self")
    if name == "Thread.join" and isinstance(myself, threading.Thread):
        return f"{name} of {myself.name}"
    return name


def _list_frames(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
