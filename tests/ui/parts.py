"""Runs for the pages: an agent that pays, and at times twice."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import chaoslab as lab
from chaoslab.base import levers
from chaoslab.campaigns.journal import Journal
from chaoslab.campaigns.running import SEEN
from chaoslab.execution.trial import Trial
from chaoslab.surfaces.ui._watched import WatchedRun
from chaoslab.surfaces.ui.reader import RunsReader

SCRIPT = "<script>alert(1)</script>"
LOOK = {
    "at": "2026-06-01T09:00:00Z", "lease_s": 10.0, "now": {"trials": 4, "harm": 1},
    "probes": [{"name": SCRIPT, "value": 0.61, "should": "< 0.6", "why": "errors: 0.61,\nshould be < 0.6"}],
    "spent": {"trials": 4, "seconds": 10.4, "dollars": 0.0}, "budget": {"trials": 1000, "dollars": 5.0},
}  # fmt: skip


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
        agent,
        "Pay a pen",
        trials=trials,
        reads=[price],
        tools=[pay],
        faults=faults,
        logs=logs,
        seed=seed,
    )


def a_campaign(folder: Path, look: Mapping[str, Any]) -> Path:
    """A campaign in this folder that goes on. `look`: what its last look saw."""
    folder.mkdir(exist_ok=True)
    (folder / "output.log").write_text("what a step printed\n")
    journal = Journal(folder)
    journal.append_entry("begun", digest="", pid=1)
    journal.append_entry("step", round=1, step=0, name="refund", level=0.5)
    (folder / SEEN).write_text(json.dumps(look))
    levers.renew_lease(folder / "lease.1")
    return folder


@contextmanager
def seen(folder: Path) -> Iterator[WatchedRun]:
    """A context with a run as its page shows it when all that there is has been read."""
    with closing(WatchedRun(folder)) as watched:
        read(watched)
        yield watched


def read(what: WatchedRun | RunsReader) -> None:
    """Reads all that there is by now, and judges it."""
    version = -1
    while what.poll_logs() or what.version != version:
        version = what.version
