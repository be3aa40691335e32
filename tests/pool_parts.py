"""The agents and the work of tests/test_cluster.py. Workers import this, and not pytest and the tests' own imports."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import chaoslab as lab
from chaoslab.worlds.virtual.machine.context import within


def charge(order: int) -> str:
    return f"charged {order}"


def agent(prompt: str) -> str:
    for _ in range(2):
        try:
            return charge(len(prompt))
        except (OSError, lab.ToolError):
            continue
    return "I could not charge it."


def deadly(prompt: str) -> str:
    try:
        return charge(len(prompt))
    except OSError:
        with within(None):  # as a crash in C: the world would refuse it
            signal.raise_signal(signal.SIGKILL)
        raise


@dataclass(frozen=True)
class Stuck:
    """Work of which one unit never ends."""

    at: int

    def get_work_item_name(self, spec: int) -> str:
        return f"unit {spec}"

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[int], int]]:
        def do(spec: int) -> int:
            if spec == self.at:
                signal.pause()
            return spec

        yield do
