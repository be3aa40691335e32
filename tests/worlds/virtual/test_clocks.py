"""Every clock of a world says what the machine's says, every other thread's what it did; each has its own remedy."""

import contextlib
import functools
import time
import timeit
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from time import monotonic as bound_elsewhere
from typing import Any

import pytest
import time_machine

from chaoslab.base.clock import system
from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.machine.machine import STARTS_S
from chaoslab.worlds.virtual.patches import Patches, clocks
from tests.worlds.virtual.patch_parts import NOW, named, run, take_out, world

SLEPT_S = 86_400 + 0.25
RISING = STARTS_S + SLEPT_S
WALL = NOW + timedelta(seconds=SLEPT_S)
LOCAL = WALL.astimezone().replace(tzinfo=None)
NS = 10**9


def by_default(
    clock: Callable[[], float] = time.monotonic, *, fine: Callable[[], int] = time.monotonic_ns
) -> tuple[float, int]:
    return clock(), fine()


class Stopwatch:
    read = time.perf_counter
    also = staticmethod(time.perf_counter)


in_part = functools.partial(round, 0.0)
in_part.__setstate__((time.monotonic, (), {}, {}))  # type: ignore[attr-defined]

CASES: list[tuple[str, Callable[[], Any], Any, str]] = [
    ("monotonic", lambda: time.monotonic(), RISING, "monotonic"),
    ("monotonic_ns", lambda: time.monotonic_ns(), round(RISING * NS), "monotonic_ns"),
    ("perf_counter", lambda: time.perf_counter(), RISING, "perf_counter"),
    ("perf_counter_ns", lambda: time.perf_counter_ns(), round(RISING * NS), "perf_counter_ns"),
    ("of chaoslab", lambda: system.monotonic(), RISING, "monotonic"),
    ("bound elsewhere", lambda: bound_elsewhere(), RISING, "monotonic"),
    ("timeit", lambda: timeit.default_timer(), RISING, "perf_counter"),
    ("default argument", lambda: by_default()[0], RISING, "monotonic"),
    ("keyword argument", lambda: by_default()[1], round(RISING * NS), "monotonic_ns"),
    ("attribute of a class", lambda: Stopwatch.__new__(Stopwatch).read(), RISING, "perf_counter"),  # type: ignore[misc]
    ("static method", lambda: Stopwatch().also(), RISING, "perf_counter"),
    ("partial", lambda: in_part(), RISING, "monotonic"),
    ("clock_gettime", lambda: time.clock_gettime(time.CLOCK_MONOTONIC), RISING, "clock_gettime"),
    ("clock_gettime_ns", lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME), round(RISING * NS), "clock_gettime_ns"),
    ("time", lambda: time.time(), WALL.timestamp(), ""),
    ("time_ns", lambda: time.time_ns(), int(WALL.timestamp() * 4) * NS // 4, ""),
    ("wall clock_gettime", lambda: time.clock_gettime(time.CLOCK_REALTIME), WALL.timestamp(), ""),
    ("now", lambda: datetime.now(UTC), WALL, ""),
    ("local now", lambda: datetime.now(), LOCAL, ""),
    ("utcnow", lambda: getattr(datetime, "utc" + "now")(), WALL.replace(tzinfo=None), ""),
    ("datetime.today", lambda: datetime.today(), LOCAL, ""),
    ("date.today", lambda: date.today(), LOCAL.date(), ""),
    ("utc of chaoslab", lambda: system.utc(), WALL, ""),
    ("gmtime", lambda: time.gmtime()[:6], WALL.timetuple()[:6], ""),
    ("localtime", lambda: time.localtime()[:6], LOCAL.timetuple()[:6], ""),
    ("strftime", lambda: time.strftime("%Y %j %H"), LOCAL.strftime("%Y %j %H"), ""),
    ("ctime", lambda: time.ctime(), LOCAL.ctime(), "ctime"),
    ("asctime", lambda: time.asctime(), LOCAL.ctime(), "asctime"),
]
"""(what is read, its value after that sleep, the fake's name in `time`); no name: time_machine does it."""


def read_after_a_sleep() -> dict[str, Any]:
    """Every clock's name and what it says."""

    def work() -> dict[str, Any]:
        time.sleep(SLEPT_S)
        return {name: read() for name, read, *_ in CASES}

    with Patches(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of utcnow
        return type(world())(7, now=NOW, deadline_s=2 * SLEPT_S).run_program(work)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return read_after_a_sleep()


@pytest.mark.parametrize(("name", "expected"), [(name, expected) for name, _, expected, _ in CASES])
def test_each_clock_is_the_worlds(name: str, expected: Any, told: dict[str, Any]) -> None:
    assert told[name] == expected


@pytest.mark.parametrize("remedy", sorted({remedy for *_, remedy in CASES}))
def test_without_its_remedy_no_clock_is(remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if remedy:
        take_out(monkeypatch, (time, remedy))
    else:
        monkeypatch.setattr(clocks, "installed", contextlib.nullcontext)
    told = read_after_a_sleep()
    for name, _, expected, needed in CASES:
        assert (told[name] == expected) is (needed != remedy), name


@pytest.mark.filterwarnings("ignore:.*utcnow.*:DeprecationWarning")
@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("read", "expected"), named([(name, read, expected) for name, read, expected, _ in CASES]))
def test_afterwards_no_clock_is(read: Callable[[], Any], expected: Any) -> None:
    assert read() != expected


def test_sleep_moves_the_worlds_clock_and_without_its_remedy_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def slept() -> float:
        time.sleep(1e-3)
        return time.monotonic()

    assert run(slept) == STARTS_S + 1e-3
    take_out(monkeypatch, (time, "sleep"))
    assert run(slept) == STARTS_S


@pytest.mark.parametrize("wrong", [-1, float("nan")])
def test_a_sleep_of_no_length_is_refused_as_ever(wrong: float) -> None:
    with pytest.raises(ValueError, match="sleep length"):
        run(lambda: time.sleep(wrong))


def test_what_is_said_of_a_moment_that_the_caller_has_is_not_changed() -> None:
    then = time.gmtime(0)
    assert run(lambda: (time.ctime(0), time.asctime(then))) == (time.ctime(0), time.asctime(then))


def test_a_clock_of_the_processor_has_no_meaning_here() -> None:
    with pytest.raises(Unsupported, match=r"clock \d+ of the real machine \(in test_clocks.py, line \d+, <lambda>\)"):
        run(lambda: time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID))


def test_outside_of_worlds_the_wall_clock_is_real_while_they_run_and_afterwards() -> None:
    real = time_machine.escape_hatch.time.time_ns
    with Patches():
        before, beside, after = real(), time.time_ns(), real()
        assert before <= beside <= after
        assert abs(datetime.now(UTC).timestamp() - real() / NS) < 60
    assert 0 <= time.time_ns() - after < 60 * NS


def test_somebodys_own_time_machine_stays_in_force_outside_of_worlds() -> None:
    with time_machine.travel(datetime(1999, 1, 1, tzinfo=UTC), tick=False):
        with Patches():
            assert datetime.now(UTC).year == 1999
            assert world().run_program(lambda: datetime.now(UTC)) == NOW
        assert datetime.now(UTC).year == 1999


def test_worlds_in_two_threads_have_each_its_own_time() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def year(now: datetime) -> list[int]:
        def work() -> list[int]:
            found = []
            for _ in range(200):
                time.sleep(0.5)
                found.append(datetime.now(UTC).year)
            return found

        return type(world())(1, now=now).run_program(work)

    with Patches(), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(year, (NOW, NOW.replace(year=1999))))
    assert found == [[2026] * 200, [1999] * 200]
