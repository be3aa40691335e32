"""Locks of files are granted, refused and waited for in a world as by a kernel."""

import fcntl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaoslab.worlds.virtual.machine import _standstill as standstill
from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.patch_parts import world

SHARED, ALONE, NOW = fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_NB


def really(work: Callable[[], bool]) -> bool:
    with Patches():
        return work()


def virtually(work: Callable[[], bool]) -> bool:
    with Patches():
        return world().run_program(work)


@pytest.mark.parametrize("run", [really, virtually])
@pytest.mark.parametrize(
    ("held", "wanted", "granted"),
    [(SHARED, SHARED, True), (SHARED, ALONE, False), (ALONE, SHARED, False), (ALONE, ALONE, False)],
)
def test_a_lock_is_shared_with_those_that_share_alone(
    run: Callable[[Callable[[], bool]], bool], held: int, wanted: int, granted: bool, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()

    def work() -> bool:
        with file.open() as one, file.open() as other:
            fcntl.flock(one, held)
            try:
                fcntl.flock(other.fileno(), wanted | NOW)
            except BlockingIOError:
                fcntl.flock(one, fcntl.LOCK_UN)
                fcntl.flock(other, wanted | NOW)
                return False
            return True

    assert run(work) is granted


def test_time_passes_for_one_who_asks_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "TURNS_MAX", 50)
    file = tmp_path / "file"
    file.touch()

    def work() -> float:
        began_s = time.time()

        def hold() -> None:
            with file.open() as held:
                fcntl.flock(held, ALONE)
                time.sleep(60)

        threading.Thread(target=hold).start()
        time.sleep(1)
        with file.open() as wanted:
            while True:
                try:
                    fcntl.flock(wanted, ALONE | NOW)
                except BlockingIOError:
                    continue
                return time.time() - began_s

    with Patches():
        assert world().run_program(work) >= 60


def test_one_who_waits_for_a_lock_looks_often_at_first_and_each_second_later(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    def waited_s(held_s: float) -> float:
        def hold() -> None:
            with file.open() as held:
                fcntl.flock(held, ALONE)
                time.sleep(held_s)

        threading.Thread(target=hold).start()
        time.sleep(1)
        with file.open() as wanted:
            began_s = time.monotonic()
            fcntl.flock(wanted, ALONE)
            return round(time.monotonic() - began_s, 3)

    with Patches():
        assert world().run_program(lambda: [waited_s(held_s) for held_s in (1.002, 1.02, 6)]) == [0.003, 0.031, 5.023]


def test_a_lock_of_a_part_asks_for_a_file_that_is_open(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    def work() -> None:
        with file.open("w") as mine:
            fcntl.lockf(mine, ALONE)
            fcntl.lockf(mine.fileno(), ALONE)
            gone = mine.fileno()
        for closed in (gone, mine):
            with pytest.raises((OSError, ValueError)):
                fcntl.lockf(closed, ALONE)

    with Patches():
        world().run_program(work)
