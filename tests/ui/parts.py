"""Runs for the pages: an agent that pays, and at times twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import chaoslab as lab
from chaoslab.execution.trial import Trial
from chaoslab.surfaces.ui.reader import Reader
from chaoslab.surfaces.ui.watched import Watched


def price(*, item: str) -> int:
    return len(item) * 10


def pay(*, amount: int) -> str:
    return f"paid {amount}"


def agent(_prompt: str) -> str:
    for _ in range(3):
        try:
            amount = price(item="pen")
            pay(amount=amount)
        except Exception:  # noqa: BLE001 - any error of a tool
            continue
        else:
            return f"It costs {amount} and is paid."
    return "I could not pay."


def trials(logs: Path, *, trials: int, seed: int = 1) -> Iterator[Trial]:
    """The trials of a run, each run when it is asked for."""
    faults = [lab.inject("server_error", "price", chance=0.3), lab.inject("lost_reply", "pay", chance=0.2)]
    return lab.run_many(
        agent, "Pay a pen", trials=trials, reads=[price], tools=[pay], faults=faults, logs=logs, seed=seed
    )


@contextmanager
def seen(folder: Path) -> Iterator[Watched]:
    """A context with a run as its page shows it when all that there is has been read."""
    with closing(Watched(folder)) as watched:
        read(watched)
        yield watched


def read(what: Watched | Reader) -> None:
    """Reads all that there is by now, and judges it."""
    version = -1
    while what.look() or what.version != version:
        version = what.version
