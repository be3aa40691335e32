"""The summary's part on faults: their delivery, their effects and their costs."""

from collections.abc import Mapping, Sequence

from chaoslab.analysis.measures.faults import FaultCount, InjectionCount
from chaoslab.analysis.measures.impact import Impact
from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.measures.latency import late
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import difference, duration
from chaoslab.reports.page import ListBounds, count, percent, section, wrapped

SOME = 8
OF_SETTINGS = {
    "wire": "TOXIC_PROB", "model_wire": "MODEL_TOXIC_PROB", "errors": "ERROR_PROB", "stream": "STREAM_PROB",
    "hallucination": "HALLUCINATION_PROB", "context": "CONTEXT_PROB",
}  # fmt: skip
"""The injections that settings make, by name."""
OTHER = ("unknown", "invalid", "unfinished")
"""Outcomes that share a column."""
ORDER = "the most trials with harm, then the most bad ones"
"""The order of what faults did."""


def delivered(report: RunReport, cut: ListBounds) -> list[str]:
    """The delivery of each injection from dice to witness, the faults not met and why, and the failures without a
    fault."""
    if not report.knows_faults:
        return ["faults: not known from such a log, nor which failures they caused"]
    return [
        *section("faults", lambda: _delivered(report, cut)),
        *section("faults that were not witnessed", lambda: _unmet(report, cut)),
        *section("disturbances of the lab", lambda: _disturbed(report)),
        *section("failures that nobody injected", lambda: lone(report, cut)),
        *section("delays that nobody injected", lambda: _late(report)),
    ]


def _delivered(report: RunReport, cut: ListBounds) -> list[str]:
    found, by_fault = report.delivered.value.by_injection, report.delivered.value.by_fault
    if not found:
        return ["faults: none was planned"]
    told = sorted(found, key=lambda one: (one.plausible is not False, -one.witnessed))
    groups = [_rows(one, [f for f in by_fault if f.injection == one.injection]) for one in told]
    lines = cut.table(["faults", "eligible", "scheduled", "injected", "witnessed", "chance"], groups)
    lines.append("eligible: attempts at which it was rolled; witnessed: its caller met it.")
    if groups[1:]:
        odd = "What is not as planned comes first, then " if told[0].plausible is False else "First comes "
        lines.append(f"{odd}what was witnessed most often.")
    theirs = [f"{one.injection} is {OF_SETTINGS[one.injection]}'s" for one in told if one.injection in OF_SETTINGS]
    lines += wrapped(f"{', '.join(theirs)}.") if theirs and not report.of_functions else []
    return lines + _dice(found) + _met(report, found, cut)


def _met(report: RunReport, found: Sequence[InjectionCount], cut: ListBounds) -> list[str]:
    """The number of trials that a fault has tried, and the injections whose dice were never rolled."""
    met, trials = len(report.met), len(report.trials)
    lines = wrapped(
        f"{met} of {count(trials, 'trial')} met a fault"
        + (": this run says nothing about what faults do to the agent." if not met else ".")
    )
    idle = [one.injection for one in found if not one.eligible]
    if met and idle:
        lines += wrapped(
            f"No attempt fitted these, or another fault took it first: {', '.join(cut.shown(idle, SOME))}."
        )
        lines += cut.more(len(idle) - SOME)
    return lines


def lone(report: RunReport, cut: ListBounds, *, most: int = SOME) -> list[str]:
    """The failures without a fault, most frequent first."""
    found = report.uninjected.value
    lines = [f"failures that nobody injected: {sum(f.count for f in found) if found else 'none'}"]
    for failure in cut.shown(found, most):
        lines += wrapped(f"{failure.count} × {failure.target}: {failure.error}", indent="  ", longest=150)
        lines += wrapped(failure.before, indent="    ") if failure.before else []
    return lines + cut.more(len(found) - most)


def _late(report: RunReport) -> list[str]:
    found = [] if report.of_functions else late(report.attempts.value)
    return [line for each in found for line in wrapped(f"delays that nobody injected: {each.said}")]


def _rows(of: InjectionCount, by_fault: Sequence[FaultCount]) -> list[list[str]]:
    """An injection's row, and one for each of its faults if there are several."""
    names = sorted({f.fault for f in by_fault})
    name = of.injection
    if len(names) == 1 and names[0] not in name:
        name += f": {names[0]}"
    numbers = [of.eligible, of.scheduled, of.injected, of.witnessed]
    rows = [[name, *map(str, numbers), "" if of.chance is None else f"{of.chance:g}"]]
    for fault in names if len(names) > 1 else ():
        mine = [f for f in by_fault if f.fault == fault]
        sums = [sum(f.scheduled for f in mine), sum(f.injected for f in mine), sum(f.witnessed for f in mine)]
        rows.append([f"  {fault}", "", *map(str, sums), ""])
    return rows


def _dice(found: Sequence[InjectionCount]) -> list[str]:
    """A check of the number of scheduled faults against the chances."""
    odd = [one for one in found if one.plausible is False]
    lines = []
    for one in odd:
        share = f"scheduled {one.scheduled} times in {count(one.eligible, 'eligible attempt')}"
        lines += wrapped(f"{one.injection} NOT AS PLANNED: {share}, which a chance of {one.chance:g} does not explain.")
    if not odd and any(one.plausible for one in found):
        lines.append("The dice hit as often as the chances say.")
    return lines


def _unmet(report: RunReport, cut: ListBounds) -> list[str]:
    reasons, scheduled = report.not_met.value.reasons, report.not_met.value.scheduled
    if not reasons:
        return []
    lines = wrapped(f"{sum(r.count for r in reasons)} of {count(scheduled, 'scheduled fault')} were not witnessed:")
    often = cut.shown(sorted(reasons, key=lambda r: -r.count), SOME)
    lines += [line for r in often for line in wrapped(f"{r.count} × {r.fault}: {r.why}", indent="  ")]
    return lines + cut.more(len(reasons) - SOME)


def _disturbed(report: RunReport) -> list[str]:
    hit = report.disturbance.value
    if hit is None:
        return []
    attempts = f"{count(hit.attempts, 'attempt')} hit by it"
    if not hit.times:
        return wrapped(f"the lab was disturbed, when and how is not known; {attempts}")
    lasted = f"the lab was disturbed {count(hit.times, 'time')}, {duration(hit.lasted_s, 2)} in all; {attempts}"
    return wrapped(f"{lasted}: {hit.said}")


# The effects of the faults.


def led_to(report: RunReport, cut: ListBounds) -> list[str]:
    """The outcomes and the costs of the trials that met each fault."""
    found = report.impacts.value
    if not found.by_fault:
        return []
    unruled = "did not end well" if report.judgeable else "failed, hung or did harm"
    bad = unruled if report.rulings is None else "failed the scenario"
    said = (
        f"bad: {bad}, of those that could be judged; without: the same of the trials that called the same targets "
        "and did not meet it"
    )
    worst_first = dict(sorted(found.by_fault.items(), key=lambda named: hurt(named[1])))
    groups = [[_cost(*row) for row in _by_place(fault, of, found.by_target)] for fault, of in worst_first.items()]
    header = ["fault met", "trials", "attempts", "bad", "without", "seconds", "calls"]
    if not any(impact.lost_calls is not None for impact in found.by_fault.values()):
        header, groups = header[:-2], [[row[:-2] for row in group] for group in groups]
    return [
        *_endings(worst_first, cut),
        "",
        "What that cost them, and how the others fared:",
        *cut.table(header, groups),
        *wrapped(f"{said}; seconds, calls: {_beside(list(found.by_fault.values()))}."),
        *(wrapped(f"Both tables begin with the worst: {ORDER}.") if groups[1:] else []),
    ]


def hurt(of: Impact) -> tuple[int, int, float]:
    """Sorts what a fault did: worst first."""
    return -of.outcomes.get(Outcome.HARM, 0), -of.bad.count if of.bad else 0, -(of.lost_s or 0.0)


def _endings(by_fault: Mapping[str, Impact], cut: ListBounds) -> list[str]:
    """The outcomes of the trials that met each fault."""
    groups = {str(name): [str(name)] for name in Outcome if name not in OTHER} | {"other": list(OTHER)}
    ended = {
        fault: {group: sum(impact.outcomes.get(name, 0) for name in names) for group, names in groups.items()}
        for fault, impact in by_fault.items()
    }
    seen = [group for group in groups if any(counts[group] for counts in ended.values())]
    rows = [[f, str(by_fault[f].trials), *(str(counts[g]) for g in seen)] for f, counts in ended.items()]
    return [
        "How the trials ended that met each fault (some met several):",
        *cut.table(["fault met", "trials", *seen], [[row] for row in rows]),
    ]


def _by_place(fault: str, of: Impact, by_target: Mapping[tuple[str, str], Impact]) -> list[tuple[str, Impact]]:
    """The fault's row, and one for each of its targets if there are several, worst first."""
    there = [(target, impact) for (name, target), impact in by_target.items() if name == fault]
    there.sort(key=lambda named: hurt(named[1]))
    if len(there) == 1:
        return [(f"{fault} on {there[0][0]}", there[0][1])]
    return [(fault, of), *((f"  on {target}", impact) for target, impact in there)]


def _beside(found: Sequence[Impact]) -> str:
    what = "what such a trial took more, in the mean, than"
    twin, median = any(i.beside_twin for i in found), any(i.beside_median for i in found)
    calm = "the median of the trials of the same prompt that met no fault"
    if twin and median:
        return f"{what} its twin without faults or, where it has none, {calm}"
    if twin:
        return f"{what} its twin without faults"
    if median:
        return f"{what} {calm}"
    return "no data, since each hung, did not end or has no trial of the same prompt without faults beside it"


def _cost(name: str, of: Impact) -> list[str]:
    seconds = "no data" if of.lost_s is None else difference(of.lost_s).removesuffix(" s")
    calls = "no data" if of.lost_calls is None else f"{round(of.lost_calls, 1) + 0.0:+.1f}"
    return [name, str(of.trials), str(of.attempts), _share(of.bad), _share(of.without), seconds, calls]


def _share(rate: Rate | None) -> str:
    return "no data" if rate is None else percent(rate.value)
