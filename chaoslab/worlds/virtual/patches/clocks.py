"""Clocks and sleep; this module decides the time of each thread.

time_machine replaces most functions of the wall clock themselves, so every reference to `datetime.now` follows.
"""

import contextlib
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.patches import Patch

real_sleep = time.sleep
real_monotonic, real_monotonic_ns = time.monotonic, time.monotonic_ns
real_perf_counter, real_perf_counter_ns = time.perf_counter, time.perf_counter_ns
real_ctime, real_asctime = time.ctime, time.asctime
RISING = {
    getattr(time, name)
    for name in ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_UPTIME", "CLOCK_UPTIME_RAW")
    if hasattr(time, name)
    # Not all systems have all of them.
}
WALL = getattr(time, "CLOCK_REALTIME", None)


def monotonic() -> float:
    world = here.world
    if world is None:
        return real_monotonic()
    machine = world.machine  # the same as `look`, at a third of the cost for most calls
    machine.looks_left -= 1
    return machine.now if machine.looks_left > 0 else machine.read_clock()


def monotonic_ns() -> int:
    world = here.world
    return real_monotonic_ns() if world is None else round(world.machine.read_clock() * 1e9)


def perf_counter() -> float:
    world = here.world
    return real_perf_counter() if world is None else world.machine.read_clock()


def perf_counter_ns() -> int:
    world = here.world
    return real_perf_counter_ns() if world is None else round(world.machine.read_clock() * 1e9)


def sleep(seconds: float, /) -> None:
    world = here.world
    if world is None:
        real_sleep(seconds)
    # `not >=` also refuses NaN.
    elif not seconds >= 0:
        raise ValueError("sleep length must be non-negative")
    else:
        world.machine.sleep(seconds)


def ctime(seconds: float | None = None, /) -> str:
    world = here.world
    return real_ctime(world.time() if world is not None and seconds is None else seconds)


def asctime(*of: Any) -> str:
    world = here.world
    return real_asctime(*of) if world is None or of else real_asctime(time.localtime(world.time()))


def _wrap_clock(real: Callable[[int], Any], per_second: int | None) -> Callable[[int], Any]:
    """A fake for `clock_gettime` or `clock_gettime_ns`."""

    def read_clock(clk_id: int, /) -> Any:
        world = here.world
        if world is None or clk_id == WALL:
            return real(clk_id)
        if clk_id not in RISING:
            raise Unsupported(f"clock {clk_id} of the real machine", "ask time.monotonic() or time.time()")
        now = world.machine.read_clock()
        return now if per_second is None else round(now * per_second)

    return read_clock


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """A context that sets the wall clock of each thread: its world's, or the time without us, even if that is another
    time machine's."""
    # Here, and without pytest, which time_machine imports where it is installed, for a fixture: that takes as long as a
    # hundred trials, and tests, which alone need it, have loaded pytest already.
    without_pytest = {"pytest", "time_machine"}.isdisjoint(sys.modules)
    if without_pytest:
        sys.modules["pytest"] = None  # type: ignore[assignment]
    try:
        import _time_machine
        import time_machine
    finally:
        if without_pytest:
            del sys.modules["pytest"]

    # A test may travel already; outside of a world its time stays.
    below = time_machine.traveller_stack[-1].time_ns if time_machine.traveller_stack else _time_machine.original_time_ns

    def time_ns() -> int:
        world = here.world
        return int(below()) if world is None else world.time_ns()

    of_uuid = vars(uuid)  # time_machine changes it too; but ids.py makes the ids, and other threads keep theirs
    before = {name: value for name, value in of_uuid.items() if name.startswith(("_last_", "_generate_", "_Uuid"))}
    # No ticks of its own: each look asks the world.
    travel = time_machine.travel(0, tick=False)
    traveller = travel.start()
    traveller.time_ns = time_ns  # type: ignore[method-assign]
    of_uuid.update(before)
    try:
        yield
    finally:
        meanwhile = {name: of_uuid[name] for name in before}
        travel.stop()
        of_uuid.update(meanwhile)


def patches() -> Iterable[Patch]:
    for stand_in in (monotonic, monotonic_ns, perf_counter, perf_counter_ns, sleep, ctime, asctime):
        yield Patch(time, stand_in.__name__, stand_in, everywhere=True)
    if hasattr(time, "clock_gettime"):
        yield Patch(time, "clock_gettime", _wrap_clock(time.clock_gettime, None), everywhere=True)
        yield Patch(time, "clock_gettime_ns", _wrap_clock(time.clock_gettime_ns, 10**9), everywhere=True)
