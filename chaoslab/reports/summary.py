"""A run on one page: the verdict, harm and failures, then outcomes, faults, recovery, and costs."""

import math
from collections import Counter
from collections.abc import Mapping
from shlex import quote

from chaoslab.analysis.measures.latency import latency
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.durations import duration
from chaoslab.config import settings
from chaoslab.reports import _summary_faults as summary_faults
from chaoslab.reports import _summary_recovery as summary_recovery
from chaoslab.reports._summary_failures import failures, hurt_most
from chaoslab.reports.contents.headline import verdict
from chaoslab.reports.page import (
    WHY,
    ListBounds,
    alike,
    count,
    example,
    percent,
    percents,
    section,
    share,
    table,
    usd,
    wrapped,
)

FEW, SOME = 3, 8
"""The most examples shown of one outcome, and lines of any other list."""
SHORT = (Outcome.INVALID, Outcome.UNFINISHED, Outcome.DEGRADED)
"""The outcomes that need a reason and are no failures."""
FUNCTION = "function"
"""The `via` of a call of a Python function."""


def render(report: RunReport, *, where: str = "", program: str = "", full: bool = False) -> str:
    """The summary as plain text in lines of at most 80 columns, but for commands. `where`, `program`: as `failures`
    takes them. `full`: all rows and items, in place of the first of each."""
    cut = ListBounds("" if full else f"{program or settings.program()} summary {quote(where or report.name)} --full")
    parts = [
        section("verdict", lambda: wrapped(verdict(report)[0] + ".")),
        section("harm", lambda: harmed(report, cut)),
        section("what hurt most", lambda: hurt_most(report, cut)),
        section("failures", lambda: failures(report, cut, where=where, program=program)),
        section("run", lambda: head(report)),
        section("trials", lambda: _trials(report, cut)),
        summary_faults.delivered(report, cut),
        section("what the faults led to", lambda: summary_faults.led_to(report, cut)),
        section("time to recovery", lambda: summary_recovery.lines(report, cut)),
        _took(report),
        section("warnings", lambda: warned(report, cut)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def head(report: RunReport) -> list[str]:
    """The run, and how it ended, with the notes of its log."""
    run, end = report.started, report.finished
    if run is None:
        return ["the logs do not say how this run was started"]
    ended = end.reason if end else "still running" if report.running else "not finished"
    if end and not math.isnan(end.duration_s):
        ended += f" after {duration(end.duration_s, 1)}"
    seed = "not known" if run.seed is None else run.seed
    who = "agent" if report.of_functions else "model"
    head = f"run {report.name} · seed {seed} · {who} {run.model or 'not known'} · {ended}"
    return wrapped(head) + [line for note in report.notes for line in wrapped(f"note: {note}")]


# Outcomes and effects.


def _trials(report: RunReport, cut: ListBounds) -> list[str]:
    judged = report.verdicts
    if not judged:
        return ["trials: none was started"]
    found = report.success.value
    rows = [
        [name, str(rate.count), percent(rate.value), percents(rate.interval)]
        for name in Outcome
        if (rate := found.by_outcome.get(name))
    ]
    lines = [f"trials: {found.total}", *table(["outcome", "trials", "share", "95 % interval"], rows)]
    if found.correct is not None:
        lines += right(report)
    elif report.judgeable:
        lines.append("Of these none could be judged.")
    elif report.rulings is None:
        lines.append("Nothing was stated about right answers, so none is called correct or wrong.")
    else:
        lines.append("Nothing was stated about right answers; the scenario ruled on them.")
    lines += [
        line
        for said in (report.grounds.value.said, report.grounds.value.undecided)
        if said
        for line in wrapped(f"{said}.")
    ]
    return lines + [line for outcome in SHORT for line in _examples(outcome, judged, cut)]


def right(report: RunReport) -> list[str]:
    """The share of the judged trials that are correct; empty if none was judged."""
    found = report.success.value.correct
    if found is None:
        return []
    verb = "is" if 1 in (found.count, found.total) else "are"
    return [f"{found.count} of {count(found.total, 'judged trial')} {verb} correct ({share(found)})."]


def _examples(outcome: Outcome, judged: Mapping[str, Verdict], cut: ListBounds) -> list[str]:
    """The most frequent reasons for an outcome; of harm there is a part of its own."""
    poor = alike((v.why, trial) for trial, v in judged.items() if v.outcome is outcome and not v.harm)
    lines = [
        line
        for why, trials in cut.shown(poor, FEW)
        for line in example(f"{len(trials)} × {outcome}" if trials[1:] else f"{trials[0]} {outcome}", why, trials)
    ]
    return lines + cut.more(sum(len(trials) for _, trials in poor[FEW:]), str(outcome))


def harmed(report: RunReport, cut: ListBounds, *, most: int = SOME) -> list[str]:
    """The harm that the run did, as `harm` tells it."""
    if not report.knows_effects:
        return ["harm: not known from such a log"]
    return harm(report.verdicts, cut, stated=report.judgeable, most=most)


def harm(judged: Mapping[str, Verdict], cut: ListBounds, *, stated: bool, most: int = SOME) -> list[str]:
    """The harm on the ledgers, equal texts together, most frequent first. `stated`: something was stated about right
    answers. `most`: the most texts."""
    done = alike((what, trial) for trial, verdict in judged.items() for what in dict.fromkeys(verdict.harm))
    if not done:
        return ["harm: none was found on the ledgers"] if stated else []
    harmful = sum(bool(verdict.harm) for verdict in judged.values())
    lines = wrapped(f"harm: {harmful} of {count(len(judged), 'trial')} left the ledgers other than they should be")
    for what, trials in cut.shown(done, most):
        lines += example(f"{len(trials)} times" if trials[1:] else trials[0], what, trials)
    return lines + cut.more(len(done) - most)


# Costs.


def _took(report: RunReport) -> list[str]:
    return [
        *section("calls", lambda: _calls(report)),
        *section("latency", lambda: _latency(report)),
        *section("streamed", lambda: _streamed(report)),
        *section("usage", lambda: _usage(report)),
        *section("budget", lambda: _budget(report)),
    ]


def _calls(report: RunReport) -> list[str]:
    found = report.calls.value
    failed = f"{found.failed} failed" + (f"; {found.given_up} given up by the agent" if found.given_up else "")
    if report.of_functions:
        reached = {attempt.via for attempt in report.attempts.value.drawn if attempt.left}
        to = ["tools"] * (FUNCTION in reached) + ["services"] * bool(reached - {FUNCTION})
        made = f"{found.made} to {' and '.join(to)}" if to else f"{found.made}"
        model = "how many tokens a model takes" if reached - {FUNCTION} else "what it asks of a model"
        asked = "" if report.knows_usage else f", and {model},"
        return wrapped(
            f"calls: {made}; {failed}; {found.retries} were further attempts at a call already made. "
            f"How long the agent waits before one{asked} is not known."
        )
    models = f"{found.to_model} to the model" if report.knows_usage else "those to the model are not known"
    return wrapped(
        f"calls: {found.made - found.to_model} to tools, {models}; {failed}; "
        f"{count(found.retries, 'retry', 'retries')}, {count(found.fallbacks, 'fallback')}"
    )


def _latency(report: RunReport) -> list[str]:
    found = latency(report.attempts.value.calm)
    if not found:
        return []
    which = "without a fault" if report.knows_faults else f"{found.n} calls of known duration"
    return [f"{which}: median {duration(found.p50_s)}, 99th percentile {duration(found.p99_s)}{found.about}"]


def _streamed(report: RunReport) -> list[str]:
    found = report.streamed.value
    if not found:
        return []
    first, last = found.first_byte, found.last_byte
    return wrapped(
        f"streamed: {count(first.n, 'reply', 'replies')}; first byte after {duration(first.p50_s)} in the median, 99th "
        f"percentile {duration(first.p99_s)}; last byte after {duration(last.p50_s)}, {duration(last.p99_s)}"
    )


def _usage(report: RunReport) -> list[str]:
    if report.of_functions and not report.knows_usage:
        return []
    if not report.knows_usage:
        return ["usage: not known from such a log"]
    spent = report.usage.value
    if not spent:
        return ["usage: the model never answered"]
    cost = "price unknown" if spent.cost_usd is None else usd(spent.cost_usd)
    cost += f" ({spent.unpriced} answers without a price)" if spent.unpriced and spent.cost_usd is not None else ""
    tokens = f"{spent.prompt_tokens} tokens to the model, {spent.completion_tokens} from it"
    return wrapped(f"usage: {tokens}, in {count(spent.answers, 'answer')}; {cost}")


def _budget(report: RunReport) -> list[str]:
    """Each limit that was exceeded, by name, with the effect."""
    lines = []
    for passed in report.budgets.value:
        where = f"{count(passed.calls, 'call')} in {count(passed.trials, 'trial')}"
        hard = f"{passed.limit} refused {where}"
        lines += wrapped(
            f"budget: {hard if passed.mode == 'hard' else f'{passed.limit} was passed at {where}, and only noted'}"
        )
    return lines


def warned(report: RunReport, cut: ListBounds, *, most: int = SOME) -> list[str]:
    """The warnings of the run, each once."""
    warnings = Counter(f"warning ({who}): {message}" for who, message in report.warnings.value)
    told = [f"{text} ({number} times)" if number > 1 else text for text, number in warnings.items()]
    lines = [line for warning in cut.shown(told, most) for line in wrapped(warning, longest=WHY)]
    return [part for line in lines for part in wrapped(line)] + cut.more(len(told) - most)
