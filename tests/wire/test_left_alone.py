"""A file that nobody has written since it was read is told from one that somebody may have written."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chaoslab.base.clock import SystemClock
from chaoslab.wire.control import SETTLED_S, WatchedFile

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)


class Stopped(SystemClock):
    """A wall clock that the test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def utc(self) -> datetime:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    path.write_bytes(b"one")
    return path


def written(file: Path, at: datetime, data: bytes = b"two") -> None:
    file.write_bytes(data)
    os.utime(file, (at.timestamp(), at.timestamp()))


def test_it_is_due_once_and_then_after_each_write(file: Path) -> None:
    written(file, NOW - timedelta(seconds=1))
    left = WatchedFile(file, Stopped())
    assert [left.may_have_changed() for _ in range(3)] == [True, False, False]
    written(file, NOW)
    assert left.may_have_changed()


def test_a_write_that_is_young_may_hide_a_second_one_of_the_same_moment(file: Path) -> None:
    clock = Stopped()
    written(file, NOW)
    left = WatchedFile(file, clock)
    clock.now = NOW + timedelta(seconds=SETTLED_S * 0.9)
    assert [left.may_have_changed() for _ in range(3)] == [True, True, True]
    written(file, NOW)  # in the same tick of the file system's clock
    clock.now = NOW + timedelta(seconds=SETTLED_S * 1.1)
    assert [left.may_have_changed() for _ in range(3)] == [True, False, False]


def test_a_clock_that_was_set_back_hides_no_write(file: Path) -> None:
    clock = Stopped()
    written(file, NOW - timedelta(seconds=1))
    left = WatchedFile(file, clock)
    assert [left.may_have_changed(), left.may_have_changed()] == [True, False]
    clock.now = NOW - timedelta(hours=1)
    written(file, clock.now)
    assert [left.may_have_changed() for _ in range(3)] == [True, True, True]


def test_another_file_in_its_place_and_none_are_due(file: Path) -> None:
    written(file, NOW - timedelta(seconds=1))
    left = WatchedFile(file, Stopped())
    assert [left.may_have_changed(), left.may_have_changed()] == [True, False]
    other = file.with_name("other")
    written(other, NOW - timedelta(seconds=1))
    other.replace(file)
    assert [left.may_have_changed(), left.may_have_changed()] == [True, False]
    file.unlink()
    assert [left.may_have_changed(), left.may_have_changed()] == [True, True]
