"""A replay in words: what was run again, whether the same happened, or where it first differed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaoslab.analysis.judge import Outcome

SHOWN = 10
"""Trials whose difference is told; of the others there are only so many."""


@dataclass(frozen=True)
class ReplayedTrial:
    """One trial laid beside itself.

    `events`: how many the log holds; `difference`: the first, in words; `left_out`: why no comparison of it would say anything. `seconds`,
    `outcome`, `witnessed`: of the trial as it is now.
    """

    trial: str
    events: int
    difference: str
    left_out: str
    seconds: float
    outcome: Outcome
    witnessed: int


@dataclass(frozen=True)
class Replay:
    """What is run again. `prompts`: trials that the run was to have; `trials`: the keys of those that are run again; `exact`: compared byte
    for byte, else as stories; `notes`: what is not as it was."""

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
    return f"{replay.folder}: {made}; {_many(len(replay.trials), 'trial')} of {replay.prompts} again in virtual time"


def lines(replay: Replay, trials: Sequence[ReplayedTrial]) -> Iterator[str]:
    """What came of it: the first differences, what was left out, and in the last line whether all was the same."""
    unlike = [each for each in trials if each.difference]
    apart = [each for each in trials if each.left_out]
    for each in unlike[:SHOWN]:
        yield f"{each.trial}  {each.difference}"
    for each in apart[:SHOWN]:
        yield f"{each.trial}  left out: {each.left_out}"
    whole = [each for each in trials if not each.left_out]
    left = f"; {_many(len(apart), 'trial')} left out" if apart else ""
    if unlike:
        yield f"different: {len(unlike)} of {_many(len(whole), 'trial')}{left}"
        return
    how = "byte for byte" if replay.exact else "as stories, times apart"
    events = sum(each.events for each in whole)
    yield f"equal: {_many(len(whole), 'trial')}, {_many(events, 'event')}, {how}{left}"


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
