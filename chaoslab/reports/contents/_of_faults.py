"""The parts of a report on its faults: their delivery, their effects, and the recovery from them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar

from chaoslab.analysis.measures.faults import STAGES, FaultCount
from chaoslab.analysis.measures.impact import Impact
from chaoslab.analysis.measures.incidents import HARMED
from chaoslab.analysis.measures.intervals import Estimate
from chaoslab.analysis.measures.latency import late
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.recovery_quality import WEIGHTS
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import difference, duration
from chaoslab.reports.contents._table import ALL, MANY, NONE, SAID, Table, each_place
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.page import count, percent, rate_text, seconds
from chaoslab.reports.text import one_line

K = TypeVar("K")

OF_SETTINGS = {
    "wire": "TOXIC_PROB", "model_wire": "MODEL_TOXIC_PROB", "errors": "ERROR_PROB", "stream": "STREAM_PROB",
    "hallucination": "HALLUCINATION_PROB", "context": "CONTEXT_PROB",
}  # fmt: skip
"""The injections that settings make, by name."""

# Their effects.


def effects(report: RunReport) -> Iterator[str | Table]:
    """The outcomes and the costs of the trials that met each fault, worst first."""
    found = report.impacts.value
    if not found.by_fault:
        return
    by_fault = _sorted(found.by_fault)
    unruled = ""
    bad = unruled if report.rulings is None else "failed the scenario, "
    yield (
        f"Did not end well: {bad}of those that could be judged; without it: the same of the trials that called the "
        f"same targets and did not meet it; more: {_beside(found.by_fault)}."
    )
    caption = "The trials that met each fault, worst first: by harm, then by bad ends"
    header = ["fault met", "target", "trials", "did not end well", "without it", "seconds more", "calls more"]
    rows = [_effect(*place, of) for place, of in each_place(by_fault, _sorted(found.by_target))]
    yield Table(caption, header, rows, names=2).without("seconds more", "calls more")
    ended = [name for name in Outcome if any(of.outcomes.get(name) for of in by_fault.values())]
    rows = [[fault, *(str(of.outcomes.get(name, 0)) for name in ended)] for fault, of in by_fault.items()]
    yield Table(
        "How the trials ended that met each fault, some of which met several", ["fault met", *map(word, ended)], rows
    )


def _sorted(found: Mapping[K, Impact]) -> dict[K, Impact]:
    def worst(named: tuple[object, Impact]) -> tuple[int, int, float]:
        of = named[1]
        return -of.outcomes.get(Outcome.HARM, 0), -of.bad.count if of.bad else 0, -(of.lost_s or 0.0)

    return dict(sorted(found.items(), key=worst))


def _beside(found: Mapping[str, Impact]) -> str:
    what = "what such a trial took more, in the mean, than"
    twin, median = (any(getattr(of, f"beside_{name}") for of in found.values()) for name in ("twin", "median"))
    calm = "the median of the trials of the same prompt that met no fault"
    if twin and median:
        return f"{what} its twin without faults or, where it has none, {calm}"
    if twin or median:
        return f"{what} {'its twin without faults' if twin else calm}"
    return "no data, since each hung, did not end or has no trial of the same prompt without faults beside it"


def _effect(fault: str, target: str, of: Impact) -> list[str]:
    took = NONE if of.lost_s is None else difference(of.lost_s).removesuffix(" s")
    calls = NONE if of.lost_calls is None else f"{round(of.lost_calls, 1) + 0.0:+.1f}"
    without = NONE if of.without is None else percent(of.without.value)
    return [fault, target, str(of.trials), rate_text(of.bad), without, took, calls]


# The recovery from them.


def recovery(report: RunReport) -> Iterator[str | Table]:
    """The number of repaired incidents, the means of repair, and the time that it took."""
    found = report.recovery.value
    every = found.overall
    if not every.n:
        yield "No data: no call that met a fault had anything to recover from."
        return
    interval, took = every.mean_interval, ""
    sure = interval is not None and interval.low != interval.high
    if every.mean_s is not None:
        how = "" if every.recovered == 1 else " in the mean" if sure or interval is None else " each"
        took = f"; it took {duration(every.mean_s, 2)}{how}"
    yield f"{recovered(every)}{took}."
    if every.mean_s is not None:
        mean = f": {seconds(Estimate(every.mean_s, interval))}" if sure and interval is not None else ""
        yield f"That is from the beginning of the call that met the fault to the right answer{mean}."
        if every.detected_s is not None and every.since_notice_s is not None:
            noticed = every.recovered - every.late
            those = (
                "one that a retry or a fallback repaired was"
                if noticed == 1
                else (f"{noticed} that a retry or a fallback repaired were")
            )
            yield (
                f"The {those} noticed after {duration(every.detected_s, 2)}, when that call ended or was made again, "
                f"and repaired {duration(every.since_notice_s, 2)} later."
            )
    yield from _never(every)
    by_fault, places = dict(sorted(found.by_fault.items(), key=_worst)), {}
    for (target, fault), of in sorted(found.by_target.items(), key=_worst):
        places[fault, target] = of
    rows = [
        [
            "recovery from",
            "target",
            "n",
            "retry",
            "fallback",
            "late",
            "harm",
            "never",
            "cut short",
            "mean",
            "detect",
            "repair",
        ],
        *(_recovered(*place, of) for place, of in each_place(by_fault, places)),
    ]
    caption = "Time to recovery (mean = detect + repair, but for late answers), worst first"
    yield Table(caption, rows[0], rows[1:], names=2).without("fallback", "late", "harm", "cut short")
    if len(by_fault) > 1 and any(of.enough for of in by_fault.values()):
        medians = [
            [fault, str(of.n), seconds(of.median) if of.median else "not reached" if of.enough else "too few"]
            for fault, of in by_fault.items()
        ]
        caption = "Median time to recovery, where what did not recover is never over (Kaplan–Meier)"
        yield Table(caption, ["recovery from", "n", "median"], medians, detail=True)


def recovered(found: Recovery) -> str:
    """The number of incidents per ending."""
    ways = {"by retry": found.retry, "by fallback": found.fallback, "late": found.late}
    by = ", ".join(f"{number} {way}" for way, number in ways.items() if number)
    harmed = f", {found.harmed} with harm ({HARMED})" if found.harmed else ""
    some = f"{found.recovered} of {count(found.n, 'incident')} recovered{f' ({by})' if by else ''}"
    open_ = f", {found.censored} cut short, by the log's end or a dead service" if found.censored else ""
    return f"{some}{harmed}, {found.never} never{open_}"


def _never(found: Recovery) -> Iterator[str]:
    """A sentence on all incidents, of which those that did not recover are never over."""
    if not found.enough:
        yield f"{count(found.n, 'fault')}: too few for a median and an interval."
    elif not found.recovered:
        yield "None recovered, so the median is not reached and there is no mean."
    elif found.recovered < found.n:
        said = f"{seconds(found.median)} in the median" if found.median else "median not reached"
        if found.restricted_mean and found.horizon_s:
            mean, horizon = seconds(found.restricted_mean), duration(found.horizon_s, 2)
            said += f"; {mean} in the mean, looking no further than {horizon}"
        yield f"Of all, where what did not recover is never over (Kaplan–Meier): {said}."


def _worst(named: tuple[object, Recovery]) -> tuple[int, int, float]:
    of = named[1]
    return -of.harmed, -of.never, -(of.mean_s or 0.0)


def _recovered(fault: str, target: str, of: Recovery) -> list[str]:
    numbers = (of.n, of.retry, of.fallback, of.late, of.harmed, of.never, of.censored)
    times = (NONE if s is None else duration(s, 2) for s in (of.mean_s, of.detected_s, of.since_notice_s))
    return [fault, target, *map(str, numbers), *times]


def quality(report: RunReport) -> Iterator[str | Table]:
    if found := report.recovery_quality.value:
        spread = "" if found.interval is None else f" ({found.interval.low:.2f} to {found.interval.high:.2f})"
        yield (
            f"Quality of recovery over {count(found.n, 'trial')} that met a fault: {found.quality:.2f}{spread}, "
            f"{found.grade}."
        )
        rows = [[name, f"{WEIGHTS[name]:.2f}", f"{value:.2f}"] for name, value in found.parts.items()]
        yield Table("Quality of recovery, from 0 to 1", ["part", "weight", "mean"], rows, detail=True)


# Their delivery.


def delivery(report: RunReport) -> Iterator[str | Table]:
    """The faults from the dice to the witness: first what is not as planned, then what was witnessed most often."""
    found = report.delivered.value.by_injection
    if not found:
        yield "No fault was planned."
        return
    rows, by_fault = [], defaultdict[str, dict[str, list[FaultCount]]](dict)
    for each in report.delivered.value.by_fault:
        by_fault[each.injection].setdefault(each.fault, []).append(each)
    for one in sorted(found, key=lambda one: (one.plausible is not False, -one.witnessed)):
        name, faults = one_line(one.injection, SAID), by_fault[one.injection]
        numbers = (one.eligible, one.scheduled, one.injected, one.witnessed)
        place = one_line(next(iter(faults)), SAID) if len(faults) == 1 else ALL
        rows.append([name, place, *map(str, numbers), NONE if one.chance is None else f"{one.chance:.3g}"])
        for fault, stages in faults.items() if place == ALL else ():
            sums = [str(sum(getattr(each, stage) for each in stages)) for stage in STAGES]
            rows.append([name, one_line(fault, SAID), NONE, *sums, NONE])
    odd = [one for one in found if one.plausible is False]
    for one in odd:
        yield (
            f"NOT AS PLANNED: {one_line(one.injection, SAID)} was scheduled {one.scheduled} times in "
            f"{count(one.eligible, 'eligible attempt')}, which a chance of {one.chance:g} does not explain."
        )
    if not odd and any(one.plausible for one in found):
        yield "The dice hit as often as the chances say."
    theirs = [f"{one.injection} is {OF_SETTINGS[one.injection]}'s" for one in found if one.injection in OF_SETTINGS]
    if theirs and not report.of_functions:
        yield f"{', '.join(theirs)}."
    header = ["faults", "fault", "eligible", "scheduled", "injected", "witnessed", "chance"]
    caption = "First what is not as planned; eligible: rolled for; witnessed: a caller met it"
    yield Table(caption, header, rows, names=2, joint=": ")


def not_met(report: RunReport) -> Iterator[Table]:
    reasons = report.not_met.value.reasons
    if reasons:
        number, of = sum(each.count for each in reasons), count(report.not_met.value.scheduled, "scheduled fault")
        rows = [[each.fault, str(each.count), each.why] for each in reasons]
        yield Table(f"{number} of {of} were not witnessed", ["fault", "number", "reason"], rows, words=True)


def alone(report: RunReport) -> Iterator[str | Table]:
    """The failures without a fault, most frequent first."""
    found = report.uninjected.value
    rows = [
        [one_line(each.target, SAID), str(each.count),
         one_line("; ".join(filter(None, (each.error[:SAID], each.before))), 2 * SAID)]
        for each in found[:MANY]
    ]  # fmt: skip
    if found:
        number = count(sum(each.count for each in found), "failure")
        yield Table(f"{number} that nobody injected", ["target", "number", "error"], rows, words=True)
    else:
        yield "Failures that nobody injected: none."


def delays(report: RunReport) -> Iterator[str | Table]:
    for each in () if report.of_functions else late(report.attempts.value):
        yield f"Delays that nobody injected: {each.said}."


def coverage(report: RunReport) -> Iterator[str | Table]:
    if (found := report.coverage.value) is None:
        return
    bare = f"; called, and no fault was planned for it: {', '.join(found.bare)}" if found.bare else ""
    pairs = count(len(found.pairs), "planned pair")
    yield one_line(f"{found.witnessed} of {pairs} of a target and a fault witnessed{bare}.", SAID)
    rows = [
        [one_line(pair.fault, SAID), one_line(pair.target, SAID), str(pair.reach),
         *map(str, (pair.eligible, pair.scheduled, pair.armed, pair.witnessed))]
        for pair in found.pairs
    ]  # fmt: skip
    header = ["fault", "target", "reached", "eligible", "scheduled", "armed", "witnessed"]
    yield Table("How far each planned pair came", header, rows, names=2, detail=True).without("armed")
