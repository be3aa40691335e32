"""The parts of a report on its calls, and on what they cost."""

from collections.abc import Collection, Iterator

from chaoslab.analysis.measures.amplification import LAYERS
from chaoslab.analysis.measures.cost import Costs, Spending
from chaoslab.analysis.measures.latency import latency
from chaoslab.analysis.measures.quantiles import EXACT, WITHIN
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import difference, duration
from chaoslab.reports.contents._table import ALL, NONE, SAID, Table
from chaoslab.reports.page import count, usd
from chaoslab.reports.text import one_line

FUNCTION = "function"
"""The `via` of a call of a Python function."""
PLACE = 60
"""The most characters of the place of a call."""


def calls(report: RunReport) -> Iterator[str]:
    found = report.calls.value
    failed = f"{found.failed} failed" + (f"; {found.given_up} given up by the agent" if found.given_up else "")
    if report.of_functions:
        reached = {attempt.via for attempt in report.attempts.value.drawn if attempt.left}
        to = ["tools"] * (FUNCTION in reached) + ["services"] * bool(reached - {FUNCTION})
        made = f"{found.made} to {' and '.join(to)}" if to else f"{found.made}"
        model = "how many tokens a model takes" if reached - {FUNCTION} else "what it asks of a model"
        asked = "" if report.knows_usage else f", and {model},"
        yield (
            f"Calls: {made}; {failed}; {found.retries} were further attempts at a call already made. "
            f"How long the agent waits before one{asked} is not known."
        )
    else:
        models = f"{found.to_model} to the model" if report.knows_usage else "those to the model are not known"
        yield (
            f"Calls: {found.made - found.to_model} to tools, {models}; {failed}; "
            f"{count(found.retries, 'retry', 'retries')}, {count(found.fallbacks, 'fallback')}."
        )


def amplification(report: RunReport) -> Iterator[str | Table]:
    if more := [each for each in report.amplification.value if each.attempts > each.requests]:
        most = max(more, key=lambda each: each.factor)
        yield (
            f"Amplification: {most.factor:.2f} attempts for each request to {one_line(most.target, PLACE)}, "
            f"{most.most} at most."
        )
        layers = [one for one in LAYERS if any(each.layers.get(one) for each in more)]
        header = [
            "target", "requests", "attempts", "for each request", "for each that met a fault", "most", "in",
            *(f"again by {one}" for one in layers),
        ]  # fmt: skip
        rows = [
            [each.target, str(each.requests), str(each.attempts), f"{each.factor:.2f}",
             NONE if each.met_factor is None else f"{each.met_factor:.2f}", str(each.most), one_line(each.where, PLACE),
             *(str(each.layers.get(one, 0)) for one in layers)]
            for each in more
        ]  # fmt: skip
        yield Table("Retry amplification: attempts for each request that was wanted", header, rows, detail=True)


def latencies(report: RunReport) -> Iterator[str | Table]:
    attempts, rows = report.attempts.value, []
    if found := latency(attempts.calm):
        which = "without a fault"
        yield (
            f"Latency {which}: median {duration(found.p50_s)}, 99th percentile {duration(found.p99_s)}{found.about}."
        )
    for target, of in sorted(attempts.by_target.items()):
        for met, durations in zip(("without", "with one"), of.both, strict=True):
            if found := latency(durations):
                times = map(duration, (found.p50_s, found.p90_s, found.p99_s, found.longest_s))
                rows.append([target, met, str(found.n), *times])
    if rows:
        header = ["target", "fault", "attempts", "median", "90th percentile", "99th percentile", "longest"]
        said = "Duration of attempts; percentiles by type 7 of Hyndman and Fan"
        if not all(each.exact for of in attempts.by_target.values() for each in of.both):
            said += f", {WITHIN} where there are more than {EXACT:,} attempts"
        yield Table(said, header, rows, detail=True)


def streams(report: RunReport) -> Iterator[str]:
    if found := report.streamed.value:
        first, last = found.first_byte, found.last_byte
        yield (
            f"Streamed: {count(first.n, 'reply', 'replies')}; first byte after {duration(first.p50_s)} in the median, "
            f"99th percentile {duration(first.p99_s)}; last byte after {duration(last.p50_s)}, {duration(last.p99_s)}."
        )


def usage(report: RunReport) -> Iterator[str]:
    if not report.knows_usage:
        if not report.of_functions:
            yield "Usage of the model: not known from such a log."
    elif spent := report.usage.value:
        cost = "price not known" if spent.cost_usd is None else usd(spent.cost_usd)
        if spent.unpriced and spent.cost_usd is not None:
            cost += f" ({spent.unpriced} answers without a price)"
        yield (
            f"Usage: {spent.prompt_tokens} tokens to the model, {spent.completion_tokens} from it, in "
            f"{count(spent.answers, 'answer')}; {cost}."
        )
    else:
        yield "Usage: the model never answered."


def budgets(report: RunReport) -> Iterator[str]:
    """Each limit that was exceeded, by name, with the effect."""
    for passed in report.budgets.value:
        where = f"{count(passed.calls, 'call')} in {count(passed.trials, 'trial')}"
        hard, soft = f"refused {where}", f"was passed at {where}, and only noted"
        yield f"Budget: {passed.limit} {hard if passed.mode == 'hard' else soft}."


def added(report: RunReport) -> Iterator[Table]:
    if (found := report.costs.value) is not None:
        yield _spent(found, _unknown_amounts(report))


def _unknown_amounts(report: RunReport) -> Collection[str]:
    """The amounts of `Spending` that the run's log does not tell."""
    if not report.knows_usage or report.usage.unknown:
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
    caption = "Cost of chaos: what each fault added to its trials; the rows add up to the run"
    return Table(caption, header, rows, detail=True)


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
