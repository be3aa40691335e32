"""A replay as text: its trials, and the first differences if any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.page import format_count

SHOWN = 10
"""The most trials whose difference is shown; the others are only counted."""


@dataclass(frozen=True)
class ReplayedTrial:
    """One trial compared with its replay. `events`: their number in the log. `difference`: the first, as text.
    `left_out`: the reason why the comparison would mean nothing. `seconds`, `outcome`, `witnessed`: of the replay."""

    trial: str
    events: int
    difference: str
    left_out: str
    seconds: float
    outcome: Outcome
    witnessed: int


@dataclass(frozen=True)
class Replay:
    """A replay. `prompts`: the number of trials that the run was to have. `trials`: the keys of those that are
    replayed. `exact`: compared byte for byte, else as stories. `notes`: the changes since the run."""

    folder: Path
    run: str
    world: str
    prompts: int
    trials: Sequence[str]
    exact: bool
    notes: Sequence[str]


def render_heading(replay: Replay) -> str:
    """The replay in one line, before it begins."""
    origin = f"run {replay.run}, made in {replay.world}"
    return (
        f"{replay.folder}: {origin}; {format_count(len(replay.trials), 'trial')} of {replay.prompts} again in virtual "
        "time"
    )


def render_results(replay: Replay, trials: Sequence[ReplayedTrial]) -> Iterator[str]:
    """The results: the first differences, the trials left out, and in the last line the verdict."""
    different = [trial for trial in trials if trial.difference]
    left_out = [trial for trial in trials if trial.left_out]
    for trial in different[:SHOWN]:
        yield f"{trial.trial}  {trial.difference}"
    for trial in left_out[:SHOWN]:
        yield f"{trial.trial}  left out: {trial.left_out}"
    replayed = [trial for trial in trials if not trial.left_out]
    left_out_text = f"; {format_count(len(left_out), 'trial')} left out" if left_out else ""
    if different:
        yield f"different: {len(different)} of {format_count(len(replayed), 'trial')}{left_out_text}"
        return
    precision = "byte for byte" if replay.exact else "as stories, times apart"
    events = sum(trial.events for trial in replayed)
    yield f"equal: {format_count(len(replayed), 'trial')}, {format_count(events, 'event')}, {precision}{left_out_text}"


def replay_to_json(replay: Replay, trials: Sequence[ReplayedTrial]) -> dict[str, Any]:
    """The replay as JSON values; `difference` and `left_out` are null where there is none."""
    return {
        "run": replay.run, "folder": str(replay.folder), "exact": replay.exact, "notes": list(replay.notes),
        "equal": not any(trial.difference for trial in trials),
        "trials": [
            {
                "trial": trial.trial, "events": trial.events, "outcome": str(trial.outcome), "seconds": trial.seconds,
                "faults_witnessed": trial.witnessed, "difference": trial.difference or None,
                "left_out": trial.left_out or None,
            }
            for trial in trials
        ],
    }  # fmt: skip
