"""Runs of the lab in virtual time, as bytes. Called with a folder and settings it makes one in a process of its own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.config.settings import Settings
from chaoslab.execution.launch import order_of
from chaoslab.execution.virtual_lab import Done, Order, Unit
from chaoslab.execution.workers import spread
from chaoslab.record.log import Kept
from chaoslab.record.runs import Run
from chaoslab.worlds.virtual.run_writer import Book

EVERYTHING = {
    "TOXIC_PROB": "0.3", "MODEL_TOXIC_PROB": "0.3", "ERROR_PROB": "0.3", "HALLUCINATION_PROB": "0.3", "CONTEXT_PROB": "0.3",
    "TOXICS": "timeout:1,latency:1,reset_peer:1,refused:1", "TOKEN_LIMIT": "6000", "CALL_LIMIT": "14", "TIME_LIMIT_S": "60",
}  # fmt: skip
"""Faults on all layers, and budgets that some prompts pass."""


def prompts(wanted: Sequence[int] = ()) -> list[Any]:
    """Those of the agent's own prompts, counted from 1; all of them when none is named."""
    reader = importlib.import_module("chaoslab.agent.prompts")
    found: list[Any] = reader.load(reader.FILE)
    return [found[number - 1] for number in wanted] if wanted else found


def order(settings: Mapping[str, str], asked: Sequence[Any] | None = None) -> Order:
    return order_of(Settings().override({"WORLD": "virtual", **settings}), asked or prompts())


def done(work: Order, *, jobs: int = 1, method: str | None = None, shuffled: bool = False) -> list[Done]:
    """What came of each trial, in the order of their numbers. `shuffled`: done in another."""
    units = [Unit(number) for number in range(work.settings.trials_of(len(work.prompts)))]
    if shuffled:
        units.sort(key=lambda unit: Dice("shuffled", unit.number).uniform())
    return sorted(spread(work, units, jobs=jobs, method=method), key=lambda one: one.number)


def events_of(one: Done, writer: str) -> list[Kept]:
    return [kept for kept in one.kept if kept.writer == writer]


def written(folder: Path, work: Order, found: Sequence[Done]) -> dict[str, bytes]:
    """The run's files and what is in them."""
    run = Run.create(folder, now=work.now, name=work.run)
    assembly, reader = (
        importlib.import_module("chaoslab.agent.assembly"),
        importlib.import_module("chaoslab.agent.prompts"),
    )
    asked = [reader.Prompt.model_validate(prompt) for prompt in work.prompts]
    with Book(run.folder, work.run, work.now) as book:
        book.begin(assembly.started(work.settings, work.plan, asked, len(found), work.now))
        for one in found:
            book.add(one.kept, seconds=one.seconds, ok=one.ok)
        book.end("done")
    return files(run.folder)


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(run.iterdir())}


def main() -> None:
    folder, *given = sys.argv[1:]
    work = order(dict(setting.split("=", 1) for setting in given))
    written(Path(folder), work, done(work))


if __name__ == "__main__":
    main()
