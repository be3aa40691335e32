"""A replay as text: its trials, and the first differences if any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports.page import count

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


def heading(replay: Replay) -> str:
    """The replay in one line, before it begins."""
    made = f"run {replay.run}, made in {replay.world}"
    return f"{replay.folder}: {made}; {count(len(replay.trials), 'trial')} of {replay.prompts} again in virtual time"


def lines(replay: Replay, trials: Sequence[ReplayedTrial]) -> Iterator[str]:
    """The results: the first differences, the trials left out, and in the last line the verdict."""
    unlike = [each for each in trials if each.difference]
    apart = [each for each in trials if each.left_out]
    for each in unlike[:SHOWN]:
        yield f"{each.trial}  {each.difference}"
    for each in apart[:SHOWN]:
        yield f"{each.trial}  left out: {each.left_out}"
    whole = [each for each in trials if not each.left_out]
    left = f"; {count(len(apart), 'trial')} left out" if apart else ""
    if unlike:
        yield f"different: {len(unlike)} of {count(len(whole), 'trial')}{left}"
        return
    how = "byte for byte" if replay.exact else "as stories, times apart"
    events = sum(each.events for each in whole)
    yield f"equal: {count(len(whole), 'trial')}, {count(events, 'event')}, {how}{left}"


def plain(replay: Replay, trials: Sequence[ReplayedTrial]) -> dict[str, Any]:
    """The replay as JSON values; `difference` and `left_out` are null where there is none."""
    return {
        "run": replay.run, "folder": str(replay.folder), "exact": replay.exact, "notes": list(replay.notes),
        "equal": not any(each.difference for each in trials),
        "trials": [
            {
                "trial": each.trial, "events": each.events, "outcome": str(each.outcome), "seconds": each.seconds,
                "faults_witnessed": each.witnessed, "difference": each.difference or None,
                "left_out": each.left_out or None,
            }
            for each in trials
        ],
    }  # fmt: skip
