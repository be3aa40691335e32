"""Ports for what listens at a port that it is told, below those that a system hands out by itself.

One of those may be a client's, of any process, before it is listened at.
"""

import atexit
import contextlib
import socket
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import cycle, islice

NUMBERS = 27900
PROCESSES, EACH = 30, 26
LOOSE = 29200
"""The first port of `free_port`; each process has so many of its own from there on."""


def fixed_ports(count: int, *, start: int = 28000) -> list[int]:
    """Free ports below those that a system hands out for port 0, where lanes are.

    One that refuses must not become a lane.
    """
    start += own_number() * 40
    found = list(islice(_free(range(start, start + 40)), count))
    if len(found) < count:
        raise OSError(f"{count} ports are not free from {start} on")
    return found


def free_port() -> int:
    """A free port, another one each time."""
    return next(_free(islice(_loose(), EACH)))


def _free(ports: Iterable[int]) -> Iterator[int]:
    for port in ports:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        yield port


@cache
def _loose() -> Iterator[int]:
    first = LOOSE + own_number() * EACH
    return cycle(range(first, first + EACH))


@cache
def own_number() -> int:
    """A number from 0 that no other process has, as tests that run side by side look for ports in places of their own:
    one that is free may else be taken before it is listened at."""
    for number in range(PROCESSES):
        held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError):
            held.bind(("127.0.0.1", NUMBERS + number))
            atexit.register(held.close)  # which holds it to the process's end
            return number
        held.close()
    raise OSError(f"{PROCESSES} processes look for ports already")
