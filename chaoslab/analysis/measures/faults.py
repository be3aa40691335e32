"""The delivery of faults (eligible → scheduled → injected → witnessed), failures without a fault, and disturbances by
the lab. An attempt is eligible for an injection if its dice were rolled for it; if an outer fault masks it, they are
not. The exact binomial interval of the hits, at 99.9 %, checks that the plan was carried out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from chaoslab.analysis.measures.intervals import is_chance_plausible
from chaoslab.analysis.verdict import traits
from chaoslab.base.jsonable import join_truncated
from chaoslab.core import events
from chaoslab.record.history import History, Place, make_sort_key
from chaoslab.record.lines import Record

PLAUSIBLE = 0.999
STAGES = ("scheduled", "injected", "witnessed")

NAMED = 3
"""The most faults that are named beside a failure that nobody injected."""
FUNCTION = "function"
"""The `via` of a call of a Python function, whose errors are words of the program."""
NOTHING = "there was nothing in it to change"


@dataclass(frozen=True)
class FaultCount:
    """One fault of one injection at one target; the faults of an injection share their eligible attempts."""

    injection: str
    fault: str
    target: str
    eligible: int
    scheduled: int
    armed: int
    injected: int
    witnessed: int


@dataclass(frozen=True)
class InjectionCount:
    """One injection over all its faults and targets. `plausible`: None if there is no chance or no attempt to check."""

    injection: str
    eligible: int
    scheduled: int
    injected: int
    witnessed: int
    chance: float | None
    plausible: bool | None


@dataclass(frozen=True)
class UnexplainedFailure:
    """Attempts that failed without a witnessed fault and without a disturbance by the lab, with their number. Those
    that were given up did not fail. `late`: the number of them whose trial had met a fault before, so that they may be
    a consequence of it. `met`: these faults and their targets, most frequent first, as in "wrong_value on model"."""

    target: str
    error: str
    count: int
    late: int = 0
    met: tuple[str, ...] = ()

    @property
    def earlier_faults_text(self) -> str:
        """The faults that their trials had met before, in words; empty if there are none."""
        if not self.late:
            return ""
        every = "its trial" if self.count == 1 else "their trials"
        whose = every if self.late == self.count else f"the trials of {self.late} of them"
        return f"{whose} had met {join_truncated(self.met, NAMED)} before"


@dataclass
class FaultStages:
    """Counts the stages of the faults of batches. `eligible`: by injection and target; the others by injection, fault
    and target."""

    eligible: Counter[tuple[str, str]] = field(default_factory=Counter)
    stages: tuple[Counter[tuple[str, str, str]], ...] = field(
        default_factory=lambda: (Counter(), Counter(), Counter(), Counter())
    )
    chances: Mapping[str, float | None] | None = None

    def add_history(self, history: History) -> None:
        if self.chances is None and (run := history.find_first_event(events.RunStarted)):
            self.chances = _list_planned_chances(run.injections)
        rolled = Counter([(event.target, *event.rolled) for _, event in history.find_events(events.CallFinished)])
        for (target, *names), count in rolled.items():
            for name in names:
                self.eligible[name, target] += count
        kinds: tuple[type[events.FaultEvent], ...] = (
            events.FaultScheduled,
            events.FaultArmed,
            events.FaultInjected,
            events.FaultWitnessed,
        )
        for counts, kind in zip(self.stages, kinds, strict=True):
            counts.update([(event.injection, event.fault, event.target) for _, event in history.find_events(kind)])

    @property
    def scheduled_count(self) -> int:
        return self.stages[0].total()

    @cached_property
    def counts_by_fault(self) -> list[FaultCount]:
        """The counts per injection, fault and target, sorted by these names. To be read after the last batch."""
        keys = sorted(set().union(*self.stages))
        return [FaultCount(*key, self.eligible[key[0], key[2]], *(count[key] for count in self.stages)) for key in keys]

    def count_by_injection(self) -> list[InjectionCount]:
        """The counts per injection, also for one whose dice never hit."""
        chances = self.chances or {}
        rolled, rows = Counter[str](), defaultdict[str, list[FaultCount]](list)
        for (name, _), count in self.eligible.items():
            rolled[name] += count
        for row in self.counts_by_fault:
            rows[row.injection].append(row)
        return [
            _sum_injection_counts(name, rolled[name], rows[name], chances.get(name))
            for name in sorted({*rolled, *rows, *chances})
        ]


def _sum_injection_counts(name: str, rolled: int, rows: Sequence[FaultCount], chance: float | None) -> InjectionCount:
    scheduled, injected, witnessed = (sum(getattr(row, stage) for row in rows) for stage in STAGES)
    return InjectionCount(
        name, rolled, scheduled, injected, witnessed, chance, _is_chance_plausible(scheduled, rolled, chance)
    )


@dataclass(frozen=True)
class Unmet:
    """A fault that was scheduled but not witnessed, with the reason and the count."""

    fault: str
    why: str
    count: int


@dataclass
class UnwitnessedFaults:
    """Counts the faults of batches that were scheduled and not witnessed, by fault and reason."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add_history(self, history: History) -> None:
        facts = _AttemptFacts(history)
        missed = [
            (at, event)
            for _, event, at in history.find_attempt_events(events.FaultScheduled)
            if (at, event.fault, event.injection) not in facts.met
        ]
        self.counts.update((event.fault, facts.explain_not_witnessed(at, event)) for at, event in missed)

    def list_reasons(self) -> list[Unmet]:
        """Every one, most frequent first."""
        return [Unmet(*key, count) for key, count in _sort_by_count(self.counts)]


class _AttemptFacts:
    """The attempts of a log and the faults on them."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.met = _collect_fault_keys(history.find_attempt_events(events.FaultWitnessed))

    @cached_property
    def finished_calls(self) -> Mapping[Place, events.CallFinished]:
        return {at: event for _, event, at in self._history.find_attempt_events(events.CallFinished)}

    @cached_property
    def injected_fault_keys(self) -> set[tuple[Place, str, str]]:
        return _collect_fault_keys(self._history.find_attempt_events(events.FaultInjected))

    @cached_property
    def armed_fault_keys(self) -> set[tuple[Place, str, str]]:
        return _collect_fault_keys(self._history.find_attempt_events(events.FaultArmed))

    @cached_property
    def idle_fault_keys(self) -> set[tuple[Place, str, str]]:
        """The faults of lanes that had nothing to do."""
        return _collect_fault_keys(
            (record, event, at)
            for record, event, at in self._history.find_attempt_events(events.FaultHealed)
            if event.idle
        )

    @cached_property
    def disturbed_attempts(self) -> set[Place]:
        return _find_disturbed_attempts(self._history)

    @cached_property
    def faulted_attempts(self) -> set[Place]:
        return {attempt for attempt, _, _ in self.met}

    def explain_not_witnessed(self, attempt: Place, fault: events.FaultScheduled) -> str:
        call, key = self.finished_calls.get(attempt), (attempt, fault.fault, fault.injection)
        corrupts, needs, injected = (
            traits.get_corrupted_side(fault.fault),
            traits.describe_required_content(fault.fault),
            key in self.injected_fault_keys,
        )
        if attempt in self.disturbed_attempts:
            return "the lab itself got in the way"
        if call is None:
            return "its prompt ended first"
        if call.is_cancelled:
            return "its call was cancelled first"
        if key in self.idle_fault_keys or ((corrupts or needs) and not injected and (corrupts == "call" or call.ok)):
            return NOTHING + (f": it needs {needs}" if needs else "")
        if attempt in self.faulted_attempts:
            return "its call met another fault instead"
        if not injected and not call.ok:
            return "its call failed without it"
        return (
            "it was armed and not met, so its prompt is invalid"
            if key in self.armed_fault_keys
            else "no reason is known"
        )


def _collect_fault_keys(
    stages: Iterable[
        tuple[Record, events.FaultWitnessed | events.FaultInjected | events.FaultArmed | events.FaultHealed, Place]
    ],
) -> set[tuple[Place, str, str]]:
    return {(at, event.fault, event.injection) for _, event, at in stages}


@dataclass
class UninjectedDamage:
    """The calls that got no answer from their service, or a 5xx, though no fault had hit it in the trial. `trials`:
    their number by trial. `overdue`: by target, the number of those that were not answered by their deadline;
    `waited_s`: the longest wait of these."""

    trials: Counter[str] = field(default_factory=Counter)
    overdue: Counter[str] = field(default_factory=Counter)
    waited_s: float = 0.0

    def add_failed_call(self, trial: str, call: events.CallFinished) -> None:
        self.trials[trial] += 1
        if call.error == "timed_out":
            self.overdue[call.target] += 1
            self.waited_s = max(self.waited_s, call.duration_s)


@dataclass
class UninjectedFailures:
    """Counts the failures of batches without an injected fault, by target and error."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    late: Counter[tuple[str, str]] = field(default_factory=Counter)
    before: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    damage: UninjectedDamage = field(default_factory=UninjectedDamage)

    def __post_init__(self) -> None:
        self._may_fail = cache(traits.can_cause_error)

    def add_history(self, history: History) -> None:
        faults_by_place: dict[Place, list[str]] = defaultdict(list)
        of_trial: dict[str | None, list[tuple[Record, str]]] = defaultdict(list)
        for record, fault, at in history.find_attempt_events(events.FaultWitnessed):
            faults_by_place[at].append(fault.fault)
            of_trial[at[0]].append((record, f"{fault.fault} on {fault.target}"))
        excluded, may_fail = _find_disturbed_attempts(history) | history.given_up_attempts, self._may_fail
        for record, e, at in history.failed_attempts:
            if e.ok or at in excluded or any(may_fail(name, e.error) for name in faults_by_place.get(at, ())):
                continue
            failure = (e.target, e.error or (f"status {e.status}" if e.status else "no reason given"))
            self.counts[failure] += 1
            ended = make_sort_key(record)
            before = {name for fault_record, name in of_trial.get(at[0], ()) if make_sort_key(fault_record) < ended}
            if (
                at[0] is not None
                and e.via != FUNCTION
                # No status: no answer came at all, which counts like a 5xx.
                and (e.status or 500) >= 500
                and not any(name.endswith(f" on {e.target}") for name in before)
            ):
                self.damage.add_failed_call(at[0], e)
            if before:
                self.late[failure] += 1
                self.before.setdefault(failure, Counter()).update(before)

    def list_failures(self) -> list[UnexplainedFailure]:
        """Every one, most frequent first."""
        failures = []
        for key, count in _sort_by_count(self.counts):
            before = sorted(self.before.get(key, Counter()).items(), key=lambda item: (-item[1], item[0]))
            failures.append(UnexplainedFailure(*key, count, self.late[key], tuple(name for name, _ in before)))
        return failures


def _sort_by_count(counts: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@dataclass(frozen=True)
class DisturbedSpan:
    """A disturbance. `begin_s`: seconds since the run's start. `since`: the moment of its beginning, in ISO 8601."""

    begin_s: float
    lasted_s: float
    what: str
    since: str


@dataclass(frozen=True)
class Disturbance:
    """The disturbances of a run's proxies, and the attempts that were hit, by trial."""

    spans: Sequence[DisturbedSpan]
    hit: Mapping[str, int]

    @property
    def span_count(self) -> int:
        return len(self.spans)

    @property
    def total_seconds(self) -> float:
        return sum(span.lasted_s for span in self.spans)

    @property
    def attempt_count(self) -> int:
        return sum(self.hit.values())

    @property
    def spans_text(self) -> str:
        """The events with their times, as part of a line; empty if the log does not tell."""
        return "; ".join(dict.fromkeys(f"{span.what} since {span.since[11:19]}" for span in self.spans))


@dataclass
class Disturbances:
    """Collects the disturbances of batches."""

    spans: list[DisturbedSpan] = field(default_factory=list)
    hit: Counter[str] = field(default_factory=Counter)

    def add_history(self, history: History) -> None:
        self.spans += [
            DisturbedSpan(record.t - event.lasted_s, event.lasted_s, event.what, event.since)
            for record, event in history.find_events(events.LabDisturbed)
        ]
        self.hit.update(at[0] or "" for at in _find_disturbed_attempts(history))

    def build_disturbance(self) -> Disturbance | None:
        return Disturbance(self.spans, dict(sorted(self.hit.items()))) if self.spans or self.hit else None


def _find_disturbed_attempts(history: History) -> set[Place]:
    return {at for _, _, at in history.find_attempt_events(events.CallDisturbed)}


def _list_planned_chances(injections: Sequence[Mapping[str, Any]]) -> Mapping[str, float | None]:
    """The chance of each injection in the plan; None if another trigger says when it hits, or if its story decides."""
    chances = {i["name"]: float(i.get("chance", 1.0)) for i in injections}
    open_ended = {
        i["name"]
        for i in injections
        # The triggers tool and when only say which calls are eligible. A fault that is not installed here counts as one
        # of chance.
        if i.get("calls") or i.get("triggers", {}).keys() - {"tool", "when"}
        or any(map(traits.is_conditional, events.collect_fault_names(i)))
    }  # fmt: skip
    return {name: None if name in open_ended else chance for name, chance in chances.items()}


def _is_chance_plausible(hits: int, rolled: int, chance: float | None) -> bool | None:
    # More hits than rolls: the ends of attempts, which tell the rolls, are lost.
    if chance is None or not 0 < rolled >= hits:
        return None
    return is_chance_plausible(hits, rolled, chance, confidence=PLAUSIBLE)
