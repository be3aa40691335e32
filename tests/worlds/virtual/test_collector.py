"""Callbacks of the garbage collector in a virtual world."""

import gc
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.machine_parts import a_world


@pytest.mark.parametrize("raises", [False, True])
def test_a_callback_that_was_there_before_sees_no_world_and_is_there_afterwards(raises: bool) -> None:
    seen: list[bool] = []

    def watching(_phase: str, _info: dict[str, int]) -> None:
        seen.append(here.world is None)

    def of_the_program(_phase: str, _info: dict[str, int]) -> None: ...

    def story() -> None:
        gc.callbacks.append(of_the_program)
        gc.collect()
        assert here.world is not None
        if raises:
            raise KeyError("story")

    before = list(gc.callbacks)
    gc.callbacks.append(watching)
    try:
        with Patches(), pytest.raises(KeyError) if raises else nullcontext():
            a_world().run_program(story)
        assert set(seen) == {True}
        assert gc.callbacks == [*before, watching, of_the_program]
    finally:
        gc.callbacks[:] = before


def book(day: str) -> str:
    return f"booked {day}"


def stubborn(_: str) -> str:
    try:
        book("Monday")
    except OSError:
        book("Tuesday")
    return "done"


def full(day: str) -> str:
    raise LookupError(f"nothing is free on {day}")


def resigned(_: str) -> str:
    with suppress(Exception):
        book("Monday")
    return "done"


def content(_: str) -> str:
    with suppress(LookupError):
        full("Monday")
    return "done"


@pytest.mark.parametrize(
    ("agent", "tool", "fault"),
    [(stubborn, book, "lost_reply"), (content, full, "latency"), (resigned, book, "tool_error")],
)
def test_trials_leave_no_circles_to_the_collector_whether_a_fault_is_met_or_not(
    agent: Callable[[str], Any], tool: Callable[[str], Any], fault: str
) -> None:
    """Each would have it go through all that the process has made of late."""

    def left(trials: int) -> int:
        gc.collect()
        for _ in lab.run_many(agent, "go", tools=[tool], faults=[half], trials=trials):
            pass
        return gc.collect()

    half = lab.inject(fault, tool.__name__, calls=[1], chance=0.5)
    left(5)
    gc.disable()
    try:
        assert left(45) - left(5) < 40
    finally:
        gc.enable()
