"""Runs of the lab in virtual time, as bytes. Called with a folder and settings it makes one in a process of its own."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.config.settings import Settings
from chaoslab.execution.forked import ChildExecutor
from chaoslab.execution.pipeline import open_run_folder as run_written
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import InProcessExecutor
from chaoslab.lab._virtual_lab import LabResult, LabSpec
from chaoslab.lab.launch import make_lab_spec
from chaoslab.record.log import BufferedEvent
from chaoslab.record.runs import Run

EVERYTHING = {
    "TOXIC_PROB": "0.3", "MODEL_TOXIC_PROB": "0.3", "ERROR_PROB": "0.3", "HALLUCINATION_PROB": "0.3",
    "CONTEXT_PROB": "0.3",
    "TOXICS": "timeout:1,latency:1,reset_peer:1,refused:1", "TOKEN_LIMIT": "6000", "CALL_LIMIT": "14",
    "TIME_LIMIT_S": "60",
}  # fmt: skip
"""Faults on all layers, and budgets that some prompts pass."""


def prompts(wanted: Sequence[int] = ()) -> list[Any]:
    """Those of the agent's own prompts, counted from 1; all of them when none is named."""
    reader = importlib.import_module("chaoslab.agent.prompts")
    found: list[Any] = reader.load_prompts(reader.FILE)
    return [found[number - 1] for number in wanted] if wanted else found


def spec(settings: Mapping[str, str], asked: Sequence[Any] | None = None) -> LabSpec:
    return make_lab_spec(Settings().override({"WORLD": "virtual", **settings}), asked or prompts())


def done(work: LabSpec, *, jobs: int = 1, shuffled: bool = False) -> list[LabResult]:
    """The outcome of each trial, in the order of their numbers. `shuffled`: done in another."""
    specs = [TrialSpec(number) for number in range(work.settings.count_trials(len(work.prompts)))]
    if shuffled:
        specs.sort(key=lambda spec: Dice("shuffled", spec.number).uniform())
    does = InProcessExecutor() if jobs == 1 else ChildExecutor(jobs)
    return sorted(does.map(work, specs), key=lambda one: one.number)


def events_of(one: LabResult, writer: str) -> list[BufferedEvent]:
    return [kept for kept in one.buffered_events if kept.writer == writer]


def written(folder: Path, work: LabSpec, found: Sequence[LabResult]) -> dict[str, bytes]:
    """The run's files and what is in them."""
    run = Run.create(folder, now=work.now, name=work.name)
    with run_written(work, len(found), run.folder) as book:
        for one in found:
            book.write_trial(one.buffered_events, seconds=one.seconds, ok=one.ok)
    return files(run.folder)


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(run.iterdir())}


def main() -> None:
    folder, *given = sys.argv[1:]
    work = spec(dict(setting.split("=", 1) for setting in given))
    written(Path(folder), work, done(work))


if __name__ == "__main__":
    main()
