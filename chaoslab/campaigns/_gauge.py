"""The measures of a campaign while its steps run: it follows the logs of every run in its folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.standing import StandingCount, Standings
from chaoslab.core.events import CallFinished, FaultWitnessed, RunStarted, Usage
from chaoslab.record.follow import Follower
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.record.rulings import Rulings
from chaoslab.record.steering import REAL

if TYPE_CHECKING:
    from chaoslab.campaigns._spec import ObjectiveSpec

RATED_MIN = 10
"""The fewest calls that have a rate."""


class CampaignMeasures:
    """The measures of all runs that begin in `logs` after it is made. `over_s`: the longest time that a rate is taken
    over."""

    def __init__(self, logs: Path, *, slo: ObjectiveSpec | None = None, over_s: float = 0.0) -> None:
        self._logs, self._slo, self._over_s = logs, slo, over_s
        self._old = set(self._list_run_folders())
        self._follows: dict[Path, Follower] = {}
        self._calls: deque[tuple[float, bool, bool, float]] = deque()
        self._sums: list[float] = [0, 0, 0, 0.0]
        self._without_traffic: set[Path] = set()
        self.call_count = self.failed_call_count = 0
        """The calls of all runs, also of those without traffic."""
        self._base_s = self._now_s = 0.0
        self.cost = 0.0
        self.faults = 0
        self._counts: dict[Path, tuple[StandingCount, int]] = {}

    def _list_run_folders(self) -> Iterable[Path]:
        with suppress(FileNotFoundError):
            yield from (folder for folder in self._logs.iterdir() if folder.is_dir() and not folder.is_symlink())

    def read_new_records(self) -> None:
        """Takes what was written since the last look."""
        for folder in sorted({*self._list_run_folders()} - self._old):
            if folder not in self._follows:
                # The times of each run begin at 0: a later one goes on where those before it are.
                self._follows[folder], self._base_s = Follower(folder), self._now_s
            follower = self._follows[folder]
            with suppress(OSError):  # a run that somebody deletes meanwhile tells no more
                for record in follower.read_new_records():
                    self._add_record(record, folder)
                rulings = Rulings.read(folder)
                if rulings is not None:
                    self._counts[folder] = _count_ruled_trials(rulings)
                elif follower.ended:
                    self._counts[folder] = _count_judged_trials(folder)
                if follower.ended and (rulings is None or rulings.state is not None):  # no ruling is to come
                    follower.close()
                    self._old.add(folder)

    def _add_record(self, record: Record, folder: Path) -> None:
        """Takes one event of a run."""
        event = record.event
        self._now_s = max(self._now_s, self._base_s + record.t)
        if isinstance(event, CallFinished):
            self.call_count += 1
            self.failed_call_count += not event.ok
        # Outside of real time no call reaches anybody. Some runs do not tell their world.
        if isinstance(event, RunStarted) and event.world and event.world not in REAL:
            self._without_traffic.add(folder)
        elif isinstance(event, CallFinished) and folder not in self._without_traffic:
            late = self._slo is not None and event.duration_s > self._slo.within
            figures = (self._base_s + record.t, not event.ok, not event.ok or late, event.duration_s)
            for n, figure in enumerate((1, *figures[1:])):
                self._sums[n] += figure
            if self._over_s:
                self._calls.append(figures)
                while self._calls[0][0] < self._now_s - self._over_s:
                    self._calls.popleft()
        elif isinstance(event, Usage):
            self.cost += event.cost_usd or 0.0
        elif isinstance(event, FaultWitnessed):
            self.faults += 1

    @property
    def trial_counts(self) -> StandingCount:
        """The trials that ended well, badly, and are open: by the ruling of their scenario, or by their verdict once
        their run has ended."""
        return sum((count for count, _ in self._counts.values()), StandingCount())

    @property
    def failed_trial_count(self) -> int:
        return self.trial_counts.bad

    @property
    def harmed_trial_count(self) -> int:
        """The trials with harm, also those that their scenario accepts."""
        return sum(harmed for _, harmed in self._counts.values())

    def compute_measure(self, measure: str, over_s: float | None = None) -> float | None:
        """The value of a measure; None if there is too little for a rate."""
        sums_of_trials = {
            "harm": self.harmed_trial_count, "failed": self.failed_trial_count, "faults": self.faults,
            "cost": self.cost,
        }  # fmt: skip
        if measure in sums_of_trials:
            return float(sums_of_trials[measure])
        sums = self._sums
        if over_s is not None:
            calls = [call for call in self._calls if call[0] >= self._now_s - over_s]
            sums = [len(calls), *(sum(call[n] for call in calls) for n in (1, 2, 3))]
        if sums[0] < RATED_MIN:
            return None
        if measure == "slo_burn":
            assert self._slo is not None
            return float(sums[2] / sums[0] / (1 - self._slo.share))
        return float(sums[1 if measure == "error_rate" else 3] / sums[0])

    def close(self) -> None:
        for follower in self._follows.values():
            follower.close()


def _count_ruled_trials(rulings: Rulings) -> tuple[StandingCount, int]:
    """The trials of a run that its scenario ruled on, and those with harm."""
    ruled = rulings.by_trial
    return StandingCount.from_standings(Standings(ruled).map_standings(dict.fromkeys(ruled)).values()), sum(
        ruling.harm for ruling in ruled.values()
    )


def _count_judged_trials(folder: Path) -> tuple[StandingCount, int]:
    """The trials of a run that has ended and that no scenario ran, and those with harm."""
    judged = judge_all_trials(History.read(folder))
    outcomes = {trial: str(verdict.outcome) for trial, verdict in judged.items()}
    return StandingCount.from_standings(Standings().map_standings(outcomes).values()), sum(
        bool(verdict.harm) for verdict in judged.values()
    )
