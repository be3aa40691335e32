"""Clocks and sleep. The wall clock in all its shapes is time_machine's work, which changes the functions themselves."""

from __future__ import annotations

import time
from collections.abc import Iterable

from chaoslab.worlds.virtual.here import here
from chaoslab.worlds.virtual.patches import Patch

real_sleep = time.sleep
real_monotonic, real_monotonic_ns = time.monotonic, time.monotonic_ns
real_perf_counter, real_perf_counter_ns = time.perf_counter, time.perf_counter_ns


def monotonic() -> float:
    world = here.world
    return real_monotonic() if world is None else world.machine.now


def monotonic_ns() -> int:
    world = here.world
    return real_monotonic_ns() if world is None else round(world.machine.now * 1e9)


def perf_counter() -> float:
    world = here.world
    return real_perf_counter() if world is None else world.machine.now


def perf_counter_ns() -> int:
    world = here.world
    return real_perf_counter_ns() if world is None else round(world.machine.now * 1e9)


def sleep(seconds: float, /) -> None:
    world = here.world
    if world is None:
        real_sleep(seconds)
    elif seconds < 0:
        raise ValueError("sleep length must be non-negative")
    else:
        world.machine.sleep(seconds)


def patches() -> Iterable[Patch]:
    for stand_in in (monotonic, monotonic_ns, perf_counter, perf_counter_ns, sleep):
        yield Patch(time, stand_in.__name__, stand_in, everywhere=True)
