"""Fixed properties of the computer, since pools are sized and logs named by them: a trial is the same on every
machine. It has no proxy either: the settings of the real one lead out of the world."""

import os
import platform
import urllib.request
from collections.abc import Iterable
from typing import Any

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patch

CPUS, NAME = 4, "localhost"

real_cpu_count, real_platform_uname = os.cpu_count, platform.uname
real_affinity: Any = getattr(os, "sched_getaffinity", None)
real_uname: Any = getattr(os, "uname", None)
real_process_cpu_count: Any = getattr(os, "process_cpu_count", None)


def cpu_count() -> int | None:
    return real_cpu_count() if here.world is None else CPUS


def process_cpu_count() -> int | None:
    count: int | None = real_process_cpu_count() if here.world is None else CPUS
    return count


def sched_getaffinity(pid: int, /) -> set[int]:
    cpus: set[int] = real_affinity(pid) if here.world is None else set(range(CPUS))
    return cpus


def uname() -> Any:
    """The real values except for the name."""
    real = real_uname()
    return real if here.world is None else os.uname_result((real[0], NAME, *real[2:]))


def platform_uname() -> Any:
    """`platform.uname`, which `platform.node` uses too. The processor's name is cached, since a subprocess would be
    asked for it (refusals.py)."""
    real = real_platform_uname()
    if here.world is None:
        return real
    named = type(real)(real.system, NAME, real.release, real.version, real.machine)
    vars(named)["processor"] = real.processor
    return named


real_getproxies, real_getproxies_environment = urllib.request.getproxies, urllib.request.getproxies_environment


def getproxies() -> dict[str, str]:
    return real_getproxies() if here.world is None else {}


def getproxies_environment() -> dict[str, str]:
    return real_getproxies_environment() if here.world is None else {}


def patches() -> Iterable[Patch]:
    yield Patch(os, "cpu_count", cpu_count, everywhere=True)
    if real_process_cpu_count is not None:
        yield Patch(os, "process_cpu_count", process_cpu_count, everywhere=True)
    if real_affinity is not None:
        yield Patch(os, "sched_getaffinity", sched_getaffinity, everywhere=True)
    if real_uname is not None:
        yield Patch(os, "uname", uname, everywhere=True)
    yield Patch(platform, "uname", platform_uname, everywhere=True)
    yield Patch(urllib.request, "getproxies", getproxies, everywhere=True)
    is_same = real_getproxies is real_getproxies_environment  # so on Linux: one real thing has one fake
    stand_in = getproxies if is_same else getproxies_environment
    yield Patch(urllib.request, "getproxies_environment", stand_in, everywhere=True)
