"""The measures of a run as titled tables, in the order of a report. A further measure is a function in `PARTS`."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from chaoslab.analysis.measures.amplification import LAYERS
from chaoslab.analysis.measures.cost import Costs, Spending
from chaoslab.analysis.measures.impact import Impact
from chaoslab.analysis.measures.incidents import HARMED
from chaoslab.analysis.measures.intervals import Estimate, Rate
from chaoslab.analysis.measures.latency import late, latency
from chaoslab.analysis.measures.mttr import Recovery
from chaoslab.analysis.measures.quantiles import EXACT, WITHIN
from chaoslab.analysis.measures.recovery_quality import WEIGHTS
from chaoslab.analysis.measures.reliability import WEIGHTS as RELIABILITY_WEIGHTS
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.guard import guarded
from chaoslab.base.durations import difference, duration, span
from chaoslab.reports.page import count, percent, percents, seconds, usd
from chaoslab.reports.text import one_line

NONE, ALL = "–", "all"
REAL_TIME = ("", "local", "compose")
"""The worlds whose seconds are real ones; without a name it is another lab's."""
T_ = TypeVar("T_")
SAID = 300
"""The most characters of a foreign text in a part."""
LONG_S = 10.0
"""The duration from which on whole seconds say enough."""
MANY = 40
"""The most rows of lists without a natural bound: warnings, and failures that nobody injected."""


@dataclass(frozen=True)
class Table:
    """A table. The first `names` columns name the row; the others are figures unless `words` is true."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    words: bool = False


@dataclass(frozen=True)
class Section:
    """One section of a report. `lines`: sentences before its tables."""

    title: str
    lines: Sequence[str] = ()
    tables: Sequence[Table] = field(default_factory=tuple)


def parts(report: RunReport) -> tuple[Section, ...]:
    """Every section with data. One whose measure failed gives the reason."""
    made = (guarded(partial(make, report), _unknown(title)) for title, make in PARTS.items())
    return tuple(part for part in made if part is not None)


def _unknown(title: str) -> Callable[[str], Section]:
    return lambda why: Section(title, (f"Unknown: {one_line(why, SAID)}",))


def _recovery(report: RunReport) -> Section:
    found, told = report.recovery.value, report.knows_faults
    every = found.overall
    if not every.n:
        return Section("Recovery", ("No data: no call that met a fault had anything to recover from.",))
    lines = [f"{every.recovered} of {count(every.n, 'incident')} recovered, {every.censored} never did."]
    if every.harmed:
        lines.append(f"{every.harmed} more recovered with harm: {HARMED}.")
    if every.mean_s is not None:
        mean = seconds(Estimate(every.mean_s, every.mean_interval)) if every.mean_interval else _s(every.mean_s)
        lines.append(f"Those that recovered took {mean} in the mean.")
    if every.median:
        lines.append(
            f"Median of all, where what did not recover is never over (Kaplan–Meier): {seconds(every.median)}."
        )
    elif not every.enough:
        lines.append("Too few incidents for a median and an interval.")
    if every.restricted_mean and every.horizon_s and every.recovered:
        lines.append(f"Restricted mean, up to {duration(every.horizon_s, 2)}: {seconds(every.restricted_mean)}.")
    if not told:
        lines.append("Inferred from failures that were noticed, since this log tells of no faults.")
    header = [
        "fault", "target", "incidents", "by retry", "by fallback", "late", "with harm", "never", "mean", "detect",
        "repair", "median",
    ]  # fmt: skip
    places = {(fault, target): of for (target, fault), of in found.by_target.items()}
    table = [_recovered(*place, of) for place, of in _each(found.by_fault, places)]
    said = "from the beginning of the call that met the fault to the right answer" if told else "from the failure"
    tables = [Table(f"Time to recovery, {said}; mean = detect + repair, but for late answers", header, table, names=2)]
    if quality := report.recovery_quality.value:
        spread = "" if quality.interval is None else f" ({quality.interval.low:.2f} to {quality.interval.high:.2f})"
        lines.append(
            f"Quality of recovery over {count(quality.n, 'trial')} that met a fault: {quality.quality:.2f}{spread}, "
            f"{quality.grade}."
        )
        rows = [[name, f"{WEIGHTS[name]:.2f}", f"{value:.2f}"] for name, value in quality.parts.items()]
        tables.append(Table("Quality of recovery, from 0 to 1", ["part", "weight", "mean"], rows))
    return Section("Recovery", lines, tables)


def _each(by_fault: Mapping[str, T_], by_place: Mapping[tuple[str, str], T_]) -> Iterator[tuple[tuple[str, str], T_]]:
    """Each fault over all its targets, if there are several, and then each fault at each target."""
    for fault, every in by_fault.items():
        mine = [(place, of) for place, of in by_place.items() if place[0] == fault]
        if len(mine) > 1:
            yield (fault, ALL), every
        yield from mine


def _recovered(fault: str, target: str, of: Recovery) -> list[str]:
    numbers = (of.n, of.retry, of.fallback, of.late, of.harmed, of.censored)
    median = _s(of.median.value) if of.median else "too few" if not of.enough else "not reached"
    return [fault, target, *map(str, numbers), *map(_s, (of.mean_s, of.detected_s, of.since_notice_s)), median]


def _calls(report: RunReport) -> Section:
    found = report.calls.value
    rows = [["attempts at calls", str(found.made)]]
    if report.knows_usage and not report.of_functions:  # an agent's model is one of its services
        rows.append(["of these to the model", str(found.to_model)])
    rows.append(["failed", str(found.failed)])
    if found.given_up:
        rows.append(["given up by the agent, or cut by the trial's end, without a fault", str(found.given_up)])
    rows.append(["retries: further attempts at a call already made", str(found.retries)])
    if not report.of_functions:
        rows.append(["fallbacks", str(found.fallbacks)])
    tables = [Table("Calls of the run", ["calls", "number"], rows)]
    if more := [each for each in report.amplification.value if each.attempts > each.requests]:
        layers = [one for one in LAYERS if any(each.layers.get(one) for each in more)]
        header = [
            "target", "requests", "attempts", "for each request", "for each that met a fault", "most", "in",
            *(f"again by {one}" for one in layers),
        ]  # fmt: skip
        rows = [
            [each.target, str(each.requests), str(each.attempts), f"{each.factor:.2f}",
             NONE if each.met_factor is None else f"{each.met_factor:.2f}", str(each.most), each.where,
             *(str(each.layers.get(one, 0)) for one in layers)]
            for each in more
        ]  # fmt: skip
        tables.append(Table("Retry amplification: attempts for each request that was wanted", header, rows))
    if times := _latencies(report):
        header = ["target", "fault", "attempts", "median", "90th percentile", "99th percentile", "longest"]
        said = "Duration of attempts; percentiles by type 7 of Hyndman and Fan"
        if not all(each.exact for of in report.attempts.value.by_target.values() for each in of.both):
            said += f", {WITHIN} where there are more than {EXACT:,} attempts"
        tables.append(Table(said, header, times, names=2))
    return Section("Retries and calls", (), tables)


def _latencies(report: RunReport) -> list[list[str]]:
    rows = []
    for target, of in sorted(report.attempts.value.by_target.items()):
        for met, durations in zip(("without", "with one"), of.both, strict=True):
            if found := latency(durations):
                times = map(duration, (found.p50_s, found.p90_s, found.p99_s, found.longest_s))
                rows.append([target, met if report.knows_faults else "not known", str(found.n), *times])
    return rows


def _cost(report: RunReport) -> Section | None:
    rows: list[list[str]] = []
    if report.knows_usage and (spent := report.usage.value):
        cost = "price not known" if spent.cost_usd is None else usd(spent.cost_usd)
        rows += [
            ["answers of the model", f"{spent.answers:,}"],
            ["tokens to the model", f"{spent.prompt_tokens:,}"],
            ["tokens from the model", f"{spent.completion_tokens:,}"],
            ["cost", cost],
        ]
    tables = [Table("Use of the model", ["cost", "amount"], rows)] if rows else []
    passed = report.budgets.value
    if passed:
        limits = [[one.limit, one.mode, str(one.calls), str(one.trials)] for one in passed]
        tables.append(Table("Limits that were passed", ["limit", "mode", "calls", "trials"], limits))
    found = report.impacts.value
    if found.by_fault:
        header = ["fault", "target", "trials", "did not end well", "without the fault", "seconds more", "calls more"]
        table = [_impact(*place, of) for place, of in _each(found.by_fault, found.by_target)]
        said = "beside the same trial without faults, or the median of the trials of its prompt that met none"
        tables.append(Table(f"Cost of each fault to a trial that met it, {said}", header, table, names=2))
    if (spent_on := report.costs.value) is not None:
        tables.append(_spent(spent_on, _unknown_amounts(report)))
    return Section("Cost", (), tables) if tables else None


def _unknown_amounts(report: RunReport) -> Collection[str]:
    """The amounts of `Spending` that the run's log does not tell."""
    if not report.knows_usage:
        return ("tokens", "usd")
    spent = report.usage.value
    return ("usd",) if spent is not None and spent.cost_usd is None else ()


def _spent(found: Costs, unknown: Collection[str]) -> Table:
    """The cost of chaos by fault, with the rows that make the sum whole."""
    others = {
        "the same trials without faults": found.matched, "trials that met no fault": found.no_fault,
        "no comparison": found.no_comparison, "outside of trials": found.outside, ALL: found.total,
    }  # fmt: skip
    added = {**found.by_fault, "several faults at once": found.shared}
    rows = [[one_line(name, SAID), *_amounts(of, unknown, "+")] for name, of in added.items() if of != Spending()]
    rows += [[name, *_amounts(of, unknown)] for name, of in others.items() if of != Spending()]
    header = ["spent on", "trials", "tokens", "dollars", "calls", "effects", "seconds"]
    return Table("Cost of chaos: what each fault added to its trials; the rows add up to the run", header, rows)


def _amounts(of: Spending, unknown: Collection[str], sign: str = "") -> list[str]:
    forms = {"tokens": ",.10g", "usd": ".6f", "calls": ",.10g", "effects": ",.10g"}
    amounts = {name: None if name in unknown else getattr(of, name) for name in forms}
    if (dollars := amounts["usd"]) is not None:
        amounts["usd"] = round(float(dollars), 6) + 0.0  # no "-0.000000"
    said = [NONE if amount is None else f"{float(amount):{sign}{forms[name]}}" for name, amount in amounts.items()]
    took = NONE if "seconds" in unknown or of.seconds is None else _number(float(of.seconds), sign)
    return [str(of.trials) if of.trials else NONE, *said, took]


def _number(seconds: float, sign: str) -> str:
    """A duration, or a difference if it has a sign, for a column of seconds."""
    said = difference(seconds).removesuffix(" s")
    return said if sign else said.removeprefix("+")


def _impact(fault: str, target: str, of: Impact) -> list[str]:
    more = NONE if of.lost_s is None else difference(of.lost_s)
    calls = NONE if of.lost_calls is None else f"{round(of.lost_calls, 1) + 0.0:+.1f}"
    return [fault, target, str(of.trials), rate_text(of.bad), rate_text(of.without), more, calls]


def _delivery(report: RunReport) -> Section:
    if not report.knows_faults:
        return Section("Delivery of the faults", ("Not known from such a log.",))
    found, stages = report.delivered.value.by_injection, report.delivered.value.by_fault
    if not found:
        return Section("Delivery of the faults", ("No fault was planned.",))
    rows = []
    for one in found:
        chance = NONE if one.chance is None else f"{one.chance:g}"
        armed = sum(stage.armed for stage in stages if stage.injection == one.injection)
        numbers = (one.eligible, one.scheduled, armed, one.injected, one.witnessed)
        rows.append([one_line(one.injection, SAID), ALL, ALL, *map(str, numbers), chance])
        rows += [
            [one_line(one.injection, SAID), s.fault, s.target, NONE,
             *map(str, (s.scheduled, s.armed, s.injected, s.witnessed)), NONE]
            for s in stages if s.injection == one.injection
        ]  # fmt: skip
    header = ["injection", "fault", "target", "eligible", "scheduled", "armed", "injected", "witnessed", "chance"]
    odd = [one for one in found if one.plausible is False]
    lines = [
        f"NOT AS PLANNED: {one_line(one.injection, SAID)} was scheduled {one.scheduled} times in {one.eligible} "
        f"eligible attempts, which a chance of {one.chance:g} does not explain."
        for one in odd
    ]
    if not odd and any(one.plausible for one in found):
        lines.append("The dice hit as often as the chances say.")
    tables = [Table("From the dice to the witness; only faults of the wire are armed", header, rows, names=3)]
    if reasons := report.not_met.value.reasons:
        unmet = [[one.fault, str(one.count), one_line(one.why, SAID)] for one in reasons]
        tables.append(Table("Scheduled and not witnessed", ["fault", "number", "reason"], unmet, words=True))
    if lone := report.uninjected.value:
        alone = [
            [one_line(f.target, SAID), str(f.count), one_line(f.error, SAID), one_line(f.before, SAID) or NONE]
            for f in lone[:MANY]
        ]
        header = ["target", "number", "error", "faults before it"]
        tables.append(Table("Failures that nobody injected", header, alone, words=True))
    return Section("Delivery of the faults", lines, tables)


def _coverage(report: RunReport) -> Section | None:
    found = report.coverage.value if report.knows_faults else None
    if found is None:
        return None
    lines = [f"{found.witnessed} of {count(len(found.pairs), 'planned pair')} of a target and a fault witnessed."]
    if found.bare:
        lines.append(one_line(f"Called, and no fault was planned for it: {', '.join(found.bare)}.", SAID))
    header = ["target", "fault", "reached", "eligible", "scheduled", "armed", "witnessed"]
    rows = [
        [one_line(pair.target, SAID), one_line(pair.fault, SAID), str(pair.reach),
         *map(str, (pair.eligible, pair.scheduled, pair.armed, pair.witnessed))]
        for pair in found.pairs
    ]  # fmt: skip
    return Section("Fault coverage", lines, [Table("How far each planned pair came", header, rows, names=3)])


def _trouble(report: RunReport) -> Section | None:
    said = [one_line(note, SAID) for note in report.notes]
    if hit := report.disturbance.value:
        lasted = "" if math.isnan(hit.lasted_s) else f", {duration(hit.lasted_s, 2)} in all"
        said.append(f"The lab was disturbed {count(hit.times, 'time')}{lasted}; {count(hit.attempts, 'attempt')} hit.")
        said += [one_line(f"{hit.said}.", SAID)] if hit.said else []
    if report.knows_faults and not report.of_functions:
        said += [f"{each.said}." for each in late(report.attempts.value)]
    warned = Counter((who, one_line(message, SAID)) for who, message in report.warnings.value)
    rows = [[one_line(who, SAID), str(number), text] for (who, text), number in warned.most_common(MANY)]
    tables = [Table("Warnings of the lab", ["writer", "number", "warning"], rows, words=True)] if rows else []
    return Section("Trouble of the lab's own", said, tables) if said or tables else None


def _repeated(report: RunReport) -> Section | None:
    found = report.consistency.value
    if found is None:
        return None
    lines = [
        f"{count(found.prompts, 'prompt')} with at least {found.trials} judged trials each. Consistency (2p − 1)²: "
        f"{found.consistency:.2f}; 1 where all trials of a prompt end alike."
    ]
    rows = [[str(k), percent(every), percent(found.one_passes[k])] for k, every in found.all_pass.items()]
    if (point := report.surface.value) is not None:
        lines.append(f"R(k, ε, λ) is the column “all k pass” at ε = {point.epsilon:.3g} and λ = {point.rate:.3g}.")
    return Section("Repeated trials", lines, [Table("pass^k and pass@k", ["k", "all k pass", "one of k passes"], rows)])


def _reliability(report: RunReport) -> Section | None:
    found = report.reliability.value
    if found is None:
        return None
    ruled = report.rulings is not None
    well = "passed the scenario" if ruled else "were correct, or honest about what could not be done"
    lines = [f"{rate_text(found.available)} of the judged trials {well}."]
    if found.handled is not None:
        lines.append(f"Of those that met a fault {rate_text(found.handled)}.")
    nines = f" ({count(found.nines, 'nine')})" if found.nines else ""
    lines.append(
        f"So at least {_share(found.proven)}{nines} of all such trials end well, with 95 % confidence. To show "
        f"{_share(1 - 10.0 ** -(found.nines + 1))} takes {found.next_needs:,} trials without a bad one."
    )
    if not found.busy_s:
        lines.append("Mean time between bad trials: no data, since they took no time.")
    elif report.started is not None and report.started.world not in REAL_TIME:
        pass  # its seconds are those of waits, and say nothing of days in operation
    elif found.mtbf_s is not None:
        lines.append(f"One trial after the other, one ended badly every {_long(found.mtbf_s)} in the mean.")
    elif found.mtbf_least_s is not None:
        lines.append(
            f"No trial ended badly in {_long(found.busy_s)} of trials, so one does so less often than every "
            f"{_long(found.mtbf_least_s)}, with 95 % confidence."
        )
    lines.append(f"Score {found.score:.2f}, from 0 to 1.")
    rows = [[name, f"{RELIABILITY_WEIGHTS[name]:.2f}", f"{value:.2f}"] for name, value in found.parts.items()]
    budgets = [
        [f"{b.objective:.1%}", _few(b.allowed), str(b.failed), percent(b.left), f"{b.burn:.1f}"] for b in found.budgets
    ]
    header = ["objective", "may end badly", "did", "budget left", "burn rate"]
    asked = "pass the scenario" if ruled else "be correct or honest"
    tables = [
        Table(f"Error budget of an objective (SLO), the share of trials that should {asked}", header, budgets),
        Table("Parts of the score that are known", ["part", "weight", "value"], rows),
    ]
    return Section("Reliability", lines, tables)


def _few(value: float) -> str:
    """A number of trials, with a digit above 0 also where it is a small part of one."""
    return f"{value:.1f}" if value >= 0.1 or not value else f"{value:.1g}"


def _long(value_s: float) -> str:
    """A duration of any length as text: 0.13 s, 2 h 5 min."""
    return duration(value_s, 2) if value_s < LONG_S else span(value_s)


def _share(value: float) -> str:
    """A share with as many digits as its nines need."""
    return f"{value:.1%}" if value < 0.99 else f"{value:.4%}"


PARTS: dict[str, Callable[[RunReport], Section | None]] = {
    "Reliability": _reliability, "Recovery": _recovery, "Retries and calls": _calls, "Repeated trials": _repeated,
    "Cost": _cost, "Delivery of the faults": _delivery, "Fault coverage": _coverage,
    "Trouble of the lab's own": _trouble,
}  # fmt: skip
"""Each section by its title, in the order of a report. None: there is nothing to tell."""


def rate_text(rate: Rate | None) -> str:
    """A rate as text: 3/12 (25%, 9–53%)."""
    if rate is None:
        return NONE
    return f"{rate.count}/{rate.total} ({percent(rate.value)}, {percents(rate.interval)})"


def _s(value_s: float | None) -> str:
    return NONE if value_s is None else duration(value_s, 2)
