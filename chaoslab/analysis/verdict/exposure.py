"""The one check that trials met faults at all. Whatever gives a verdict on trials with faults asks it where it counts
them: without a fault that was met, nothing was tried."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.core.events import FaultHeldBack, FaultWitnessed, RunStarted
from chaoslab.core.limits import ends_all_faults
from chaoslab.core.plan import Plan
from chaoslab.record.history import History

REASON_MAX = 200


@dataclass
class FaultExposure:
    """The trials that had faults to meet, those that met one, and what held faults back."""

    planned: int = 0
    met: int = 0
    held: Counter[str] = field(default_factory=Counter)

    def add_trial(self, *, met: bool | None, held: str = "") -> None:
        """Adds a trial. `met`: a fault was witnessed; None if none was planned. `held`: what held faults back in it."""
        if met is None:
            return
        self.planned += 1
        self.met += met
        if held:
            self.held[held] += 1

    def __add__(self, second: "FaultExposure") -> "FaultExposure":
        return FaultExposure(self.planned + second.planned, self.met + second.met, self.held + second.held)

    @property
    def no_proof_reason(self) -> str:
        """The reason why the trials prove nothing: no fault was met in any, or faults were held back in more of them
        than may be open; empty if they may prove something, or no fault was planned."""
        if not self.planned or (self.met and self.held.total() <= OPEN_MAX * self.planned):
            return ""
        return self.held_back_reasons or "no trial met a fault"

    @property
    def held_back_reasons(self) -> str:
        """The reasons why faults were held back, each with its number of trials; empty if nothing did that."""
        if not self.held:
            return ""
        reasons = ", ".join(reason for reason, _ in self.held.most_common(2))
        return f"faults were held back in {self.held.total()} of {self.planned} trials: {reasons}"[:REASON_MAX]


def find_limit_ending_all_faults(limits: Iterable[str]) -> str:
    """The first of the limits that held faults back which ends all faults, such as a lever that was pulled; empty if
    there is none. One that thins faults out, such as a share, is part of the plan."""
    return next((limit for limit in limits if ends_all_faults(limit)), "")


def has_planned_faults(started: RunStarted | None) -> bool:
    """True if the plan of a run has a fault that may hit."""
    with suppress(LookupError, TypeError, ValueError):  # a plan that is none of this version's
        return started is not None and any(injection.may_hit for injection in Plan.from_json(started.plan).injections)
    return False


def compute_exposure(history: History) -> FaultExposure:
    """The exposure of the trials of a run, by its log."""
    exposure = FaultExposure()
    if not has_planned_faults(history.find_first_event(RunStarted)):
        return exposure
    faulted = {record.trial for record, _ in history.find_events(FaultWitnessed)}
    limits_by_trial: dict[str | None, list[str]] = {}
    for record, event in history.find_events(FaultHeldBack):
        limits_by_trial.setdefault(record.trial or event.at.trial, []).append(event.limit)
    for trial in history.trials:
        exposure.add_trial(met=trial in faulted, held=find_limit_ending_all_faults(limits_by_trial.get(trial, ())))
    return exposure
