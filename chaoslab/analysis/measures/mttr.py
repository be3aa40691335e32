"""The time from a fault to a right answer, over many incidents (defined in `incidents.py`).

The main figure counts from the fault's *beginning*, since that is a user's waiting time: a timeout of 2 s, with a retry
at once that is answered within 0.1 s, took 2.1 s. The time from its *notice* (0.1 s there) shows the agent's speed, and
is given beside it; a late answer has none.

No recovery counts as a duration of 0. An incident whose trial ended without recovery, or with harm, never recovers: it
stays at risk to the end of Kaplan–Meier's curve, which comes to rest at the share of these. So the curve is 1 minus the
cumulative incidence of recovery, where what never recovers is a competing event (Gray 1988; Fine and Gray 1999), and
the median is not reached if more than half never recover. An incident whose trial the log does not see to its end, or
whose service was dead for a reason that nobody injected, is censored: it lasted at least so long.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import compress
from statistics import fmean
from typing import Protocol

from chaoslab.analysis.measures._dead_services import DeadServices
from chaoslab.analysis.measures.incidents import Ending as Ending
from chaoslab.analysis.measures.incidents import Incident as Incident
from chaoslab.analysis.measures.incidents import Traits, find_batch_incidents, mark_censored_incidents, time_order_key
from chaoslab.analysis.measures.incidents import find_incidents as find_incidents
from chaoslab.analysis.measures.intervals import Estimate, Interval, Spell, kaplan_meier, mean_interval
from chaoslab.record.history import History

ENOUGH = 8
"""The fewest incidents for an interval or an estimate other than the plain mean: with fewer it would be misleading."""


@dataclass(frozen=True)
class Recovery:
    """The figures of some incidents.

    `mean_s` is over the recovered ones, from the fault's beginning. Over those by retry or fallback, `detected_s` goes
    from there to the notice, and `since_notice_s` from the notice on; their sum is the mean duration of these. The
    estimates are None below 8 incidents; so is the median if more than half of them never recovered, or not within the
    observed time. `never` counts those that did not recover, `censored` those of which nobody knows if they would have.
    """

    n: int
    retry: int
    fallback: int
    late: int
    harmed: int
    never: int
    censored: int
    mean_s: float | None
    detected_s: float | None
    since_notice_s: float | None
    mean_interval: Interval | None
    median: Estimate | None
    restricted_mean: Estimate | None
    horizon_s: float | None

    @property
    def recovered_count(self) -> int:
        """The number that recovered without harm."""
        return self.n - self.never - self.censored - self.harmed

    @property
    def has_enough_data(self) -> bool:
        return self.n >= ENOUGH


@dataclass(frozen=True)
class Mttr:
    """The incidents and their figures: of all, per fault, and per target and fault."""

    incidents: tuple[Incident, ...]
    overall: Recovery
    by_fault: dict[str, Recovery]
    by_target: dict[tuple[str, str], Recovery]


@dataclass
class IncidentTimes:
    """Collects the incidents of batches."""

    found: list[Incident] = field(default_factory=list)
    _of: Traits = field(default_factory=Traits)

    _dead: DeadServices = field(default_factory=DeadServices)

    def add_history(self, history: History) -> None:
        self.found += find_batch_incidents(history, self._of)
        self._dead.add_history(history)

    def list_incidents(self) -> list[Incident]:
        """The incidents, with all that is known of the services by now."""
        return mark_censored_incidents(self.found, self._dead.find_affected_requests())

    def compute_mttr(self, run_trials: Collection[str] = ()) -> Mttr:
        """The recoveries. `run_trials`: the trials of the run. Where the agent's log was cut, the manager's tells of
        faults
        in later ones, and nobody of how they went on; those are left out. Empty: the run's trials are not known."""
        trials = frozenset(run_trials)
        incidents = sorted(
            (entry for entry in self.list_incidents() if not trials or entry.trial in trials), key=time_order_key
        )
        faults: dict[str, list[Incident]] = defaultdict(list)
        places: dict[tuple[str, str], list[Incident]] = defaultdict(list)
        for incident in incidents:
            faults[incident.fault].append(incident)
            places[incident.target, incident.fault].append(incident)
        return Mttr(
            tuple(incidents),
            summarize_recovery(incidents),
            {fault: summarize_recovery(faults[fault]) for fault in sorted(faults)},
            {key: summarize_recovery(places[key]) for key in sorted(places)},
        )


class _TimedIncident(Protocol):
    """An incident, as far as its place on the curve depends on it."""

    @property
    def recovered(self) -> bool: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def censored(self) -> bool: ...


def to_censored_durations(incidents: Sequence[_TimedIncident]) -> list[Spell]:
    """The durations for the curve. One that never recovers lasts as long as the longest of all."""
    longest_s = max((incident.duration_s for incident in incidents), default=0.0)
    return [
        Spell(incident.duration_s if incident.recovered or incident.censored else longest_s, ended=incident.recovered)
        for incident in incidents
    ]


def summarize_recovery(incidents: Sequence[Incident]) -> Recovery:
    """The figures of some incidents."""
    counts = Counter([incident.ending for incident in incidents])
    recovered_flags = [incident.recovered for incident in incidents]
    durations = [incident.duration_s for incident in compress(incidents, recovered_flags)]
    trial_keys = [incident.trial for incident in incidents]
    trials = [*compress(trial_keys, recovered_flags)]
    noticed = [
        (incident.noticed_after_s, after_s)
        for incident in compress(incidents, recovered_flags)
        if (after_s := incident.since_notice_s) is not None
    ]  # fmt: skip
    curve = kaplan_meier(to_censored_durations(incidents), trial_keys) if len(incidents) >= ENOUGH else None
    return Recovery(
        n=len(incidents),
        retry=counts[Ending.RETRY],
        fallback=counts[Ending.FALLBACK],
        late=counts[Ending.LATE],
        harmed=counts[Ending.HARM],
        never=counts[Ending.NEVER],
        censored=counts[Ending.CENSORED],
        mean_s=fmean(durations) if durations else None,
        detected_s=fmean([noticed_s for noticed_s, _ in noticed]) if noticed else None,
        since_notice_s=fmean([after_s for _, after_s in noticed]) if noticed else None,
        mean_interval=mean_interval(durations, groups=trials) if curve else None,
        median=curve.median if curve else None,
        restricted_mean=curve.restricted_mean if curve else None,
        horizon_s=curve.horizon_s if curve else None,
    )
