"""Callbacks of the garbage collector in a virtual world."""

import gc
from contextlib import nullcontext

import pytest

import chaoslab as lab
from chaoslab.worlds.virtual.context import here
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
            a_world().run(story)
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


def test_trials_leave_no_circles_to_the_collector_whether_a_fault_is_met_or_not() -> None:
    """Each would have it go through all that the process has made of late."""

    def left(trials: int) -> int:
        gc.collect()
        for _ in lab.run_many(stubborn, "go", tools=[book], faults=[lost], trials=trials):
            pass
        return gc.collect()

    lost = lab.inject("lost_reply", "book", calls=[1], chance=0.5)
    left(5)
    gc.disable()
    try:
        assert left(45) - left(5) < 40
    finally:
        gc.enable()
