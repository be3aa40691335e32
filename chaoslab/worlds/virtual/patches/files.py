"""Locks of files, which belong to the world: a real one would stop the process, which runs all of the world's threads.

`fcntl.flock` is kept in a table of the world, by file, so that its threads exclude each other in virtual time and no
other process does. A lock ends with its file's closing, which is noticed by the next one that wants it. `fcntl.lockf`
never excludes threads of one process, so it is granted at once.
"""

import errno
import os
from collections.abc import Iterable
from typing import Any, cast

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patch

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

# The time between two looks at a lock that is held, which doubles from the first to the longest.
FIRST_S, LONGEST_S = 0.001, 1.0
_File = tuple[int, int]
"""Device and number."""


def _get_file_locks() -> dict[_File, dict[int, bool]]:
    """The files that are locked: by which descriptors, each with True if that excludes all others."""
    assert here.world is not None
    return cast("dict[_File, dict[int, bool]]", here.world.kept.setdefault("file locks", {}))


def _identify_file(fd: int) -> _File:
    """The file of a descriptor. Raises OSError: there is none."""
    stat = os.fstat(fd)
    # The file and not its name: two descriptors of one file exclude each other.
    return stat.st_dev, stat.st_ino


def _is_blocked(file: _File, fd: int, *, alone: bool) -> bool:
    """True if another descriptor's lock excludes this one. Locks of closed descriptors are forgotten."""
    holders = _get_file_locks().setdefault(file, {})
    # A copy, as closed ones are taken out.
    for descriptor in list(holders):
        try:
            # A number that is another file's by now was closed meanwhile.
            is_open = _identify_file(descriptor) == file
        except OSError:
            is_open = False
        if not is_open:
            del holders[descriptor]
    return any(descriptor != fd and (alone or excludes) for descriptor, excludes in holders.items())


def flock(fd: Any, operation: int, /) -> None:
    world = here.world
    if world is None:
        real_flock(fd, operation)
        return
    # `fcntl.flock` takes files as well as numbers.
    number = fd if isinstance(fd, int) else fd.fileno()
    file = _identify_file(number)
    if operation & fcntl.LOCK_UN:
        _get_file_locks().get(file, {}).pop(number, None)
        return
    alone, delay_s = bool(operation & fcntl.LOCK_EX), FIRST_S
    while _is_blocked(file, number, alone=alone):
        if operation & fcntl.LOCK_NB:
            # A loop of tries takes no time.
            world.machine.steps.tries.count_step("asks for a file's lock that is held", "times")
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        # Nobody says when a lock's file is closed, so it is looked at again.
        world.machine.wait("flock of a file that another thread holds", world.machine.now + delay_s)
        delay_s = min(LONGEST_S, 2 * delay_s)
    _get_file_locks()[file][number] = alone


def lockf(fd: Any, cmd: int, *args: Any) -> None:
    """`fcntl.lockf`. In a world it checks the descriptor only."""
    if here.world is None:
        real_lockf(fd, cmd, *args)
    else:
        os.fstat(fd if isinstance(fd, int) else fd.fileno())


if fcntl is not None:
    real_flock, real_lockf = fcntl.flock, fcntl.lockf


def patches() -> Iterable[Patch]:
    if fcntl is not None:
        yield Patch(fcntl, "flock", flock, everywhere=True)
        yield Patch(fcntl, "lockf", lockf, everywhere=True)
