"""A run on one page: outcomes, harm, faults, recovery, and costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from chaoslab.analysis.judge import Outcome, Verdict
from chaoslab.analysis.measures.durations import duration
from chaoslab.analysis.measures.latency import latency
from chaoslab.analysis.run_report import RunReport
from chaoslab.record.rulings import State
from chaoslab.reports import summary_faults, summary_recovery
from chaoslab.reports.contents.headline import verdict
from chaoslab.reports.page import count, percent, percents, section, share, table, wrapped
from chaoslab.reports.trials import worst

FEW, SOME = 3, 8
"""The most examples shown of one outcome, and lines of any other list."""
WHY = 220
"""The most characters of a reason."""
WORST = (
    Outcome.HARM, Outcome.FALSE_SUCCESS, Outcome.WRONG, Outcome.FAILED, Outcome.HUNG, Outcome.INVALID,
    Outcome.UNFINISHED, Outcome.DEGRADED,
)  # fmt: skip
"""The outcomes that need a reason, worst first."""


def render(report: RunReport) -> str:
    """The summary as plain text in lines of at most 80 columns."""
    parts = [
        section("verdict", lambda: wrapped(verdict(report)[0] + ".")),
        section("scenario", lambda: _ruled(report)),
        section("run", lambda: _head(report)),
        section("prompts", lambda: _prompts(report)),
        section("harm", lambda: [*_harm(report), *_once_more(report)]),
        summary_faults.delivered(report),
        section("what the faults led to", lambda: summary_faults.led_to(report)),
        section("time to recovery", lambda: summary_recovery.lines(report)),
        _took(report),
        section("warnings", lambda: _strange(report)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _ruled(report: RunReport) -> list[str]:
    """The scenario, and why trials have not passed it."""
    rulings = report.rulings
    if rulings is None:
        return []
    lines = wrapped(f"scenario {rulings.scenario}, which asks for {'; '.join(rulings.asked)}")
    poor = {trial: ruling for trial, ruling in rulings.by_trial.items() if ruling.state is not State.PASSED}
    alike = _alike((f"{ruling.state}: {'; '.join(ruling.reasons)}", trial) for trial, ruling in poor.items())
    for why, trials in alike[:FEW]:
        lines += _example(f"{len(trials)} trials" if trials[1:] else trials[0], why, trials)
        lines += wrapped(f"again: {poor[trials[0]].again}", indent="    ") if poor[trials[0]].again else []
    return lines + _more(len(alike), FEW)


def _head(report: RunReport) -> list[str]:
    run, end = report.started, report.finished
    if run is None:
        return ["the logs do not say how this run was started"]
    ended = end.reason if end else "still running" if report.running else "not finished"
    if end and not math.isnan(end.duration_s):
        ended += f" after {end.duration_s:.1f} s"
    seed = "not known" if run.seed is None else run.seed
    who = "agent" if report.of_functions else "model"
    head = f"run {report.name} · seed {seed} · {who} {run.model or 'not known'} · {ended}"
    return wrapped(head) + [line for note in report.notes for line in wrapped(f"note: {note}")]


# Outcomes and effects.


def _prompts(report: RunReport) -> list[str]:
    judged = report.verdicts
    if not judged:
        return ["prompts: none was started"]
    found = report.success.value
    rows = [
        [name, str(rate.count), percent(rate.value), percents(rate.interval)]
        for name in Outcome
        if (rate := found.by_outcome.get(name))
    ]
    lines = [f"prompts: {found.total}", *table(["outcome", "prompts", "share", "95 % interval"], rows)]
    if found.correct is not None:
        right = found.correct
        verb = "is" if 1 in (right.count, right.total) else "are"
        lines.append(f"{right.count} of {count(right.total, 'judged prompt')} {verb} correct ({share(right)}).")
    elif report.judgeable:
        lines.append("Of these none could be judged.")
    else:
        lines.append("Of these none could be judged: nothing was stated about right answers.")
    return lines + [line for outcome in WORST for line in _examples(outcome, judged)]


def _examples(outcome: Outcome, judged: Mapping[str, Verdict]) -> list[str]:
    """The most frequent reasons for an outcome; harm has its own part."""
    poor = _alike((v.why, trial) for trial, v in judged.items() if v.outcome is outcome and not v.harm)
    lines = [
        line
        for why, trials in poor[:FEW]
        for line in _example(f"{len(trials)} × {outcome}" if trials[1:] else f"{trials[0]} {outcome}", why, trials)
    ]
    left = sum(len(trials) for _, trials in poor[FEW:])
    return lines + ([f"  … and {left} more {outcome}"] if left else [])


def _alike(told: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """The texts, each with its trials, most frequent first."""
    trials: dict[str, list[str]] = {}
    for what, trial in told:
        trials.setdefault(what, []).append(trial)
    return sorted(trials.items(), key=lambda item: -len(item[1]))


def _example(head: str, what: str, trials: Sequence[str]) -> list[str]:
    what = what if len(what) <= WHY else f"{what[: WHY - 1]}…"
    named = f" ({', '.join(trials[:FEW])}{' …' if trials[FEW:] else ''})" if trials[1:] else ""
    return wrapped(f"{head}: {what}{named}", indent="  ")


def _harm(report: RunReport) -> list[str]:
    if not report.knows_effects:
        return ["harm: not known from such a log"]
    return harm(report.verdicts, stated=report.judgeable)


def _once_more(report: RunReport) -> list[str]:
    """The command that does the worst trial again, or tells its story where the log does not hold the program. Any
    other trial goes the same way."""
    one = worst(report.verdicts)
    if one is None or report.started is None:
        return []
    verb = "show" if report.of_functions else "replay"
    return wrapped(f"the worst trial once more: chaoslab {verb} {report.name} --trial {one}")


def harm(judged: Mapping[str, Verdict], *, stated: bool) -> list[str]:
    """The harm on the ledgers, equal texts together, most frequent first. `stated`: something was stated about right
    answers."""
    done = _alike((what, trial) for trial, verdict in judged.items() for what in dict.fromkeys(verdict.harm))
    if not done:
        return ["harm: none was found on the ledgers"] if stated else []
    harmful = sum(bool(verdict.harm) for verdict in judged.values())
    lines = wrapped(f"harm: {harmful} of {count(len(judged), 'prompt')} left the ledgers other than they should be")
    for what, trials in done[:SOME]:
        lines += _example(f"{len(trials)} times" if trials[1:] else trials[0], what, trials)
    return lines + _more(len(done))


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
    if report.of_functions:
        made = f"{found.made} of functions{' and of models' if report.knows_usage else ''}"
        asked = "" if report.knows_usage else ", and what it asks of a model,"
        return wrapped(
            f"calls: {made}; {found.failed} failed; {found.retries} were further attempts at a call already made. "
            f"How long the agent waits before one{asked} is not known."
        )
    models = f"{found.to_model} to the model" if report.knows_usage else "those to the model are not known"
    return wrapped(
        f"calls: {found.made - found.to_model} to tools, {models}; {found.failed} failed; {found.retries} retries, "
        f"{found.fallbacks} fallbacks"
    )


def _latency(report: RunReport) -> list[str]:
    found = latency([a.duration_s for a in report.attempts.value if a.timed and not a.faults])
    if not found:
        return []
    which = "without a fault" if report.knows_faults else f"{found.n} calls of known duration"
    return [f"{which}: median {duration(found.p50_s)}, 99th percentile {duration(found.p99_s)}"]


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
    cost = "price unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
    cost += f" ({spent.unpriced} answers without a price)" if spent.unpriced and spent.cost_usd is not None else ""
    tokens = f"{spent.prompt_tokens} tokens to the model, {spent.completion_tokens} from it"
    return wrapped(f"usage: {tokens}, in {count(spent.answers, 'answer')}; {cost}")


def _budget(report: RunReport) -> list[str]:
    """Each limit that was exceeded, by name, with the effect."""
    lines = []
    for passed in report.budgets.value:
        where = f"{count(passed.calls, 'call')} in {count(passed.trials, 'prompt')}"
        hard = f"{passed.limit} refused {where}"
        lines += wrapped(
            f"budget: {hard if passed.mode == 'hard' else f'{passed.limit} was passed at {where}, and only noted'}"
        )
    return lines


def _strange(report: RunReport) -> list[str]:
    warnings = Counter(f"warning ({who}): {message}" for who, message in report.warnings.value)
    told = [f"{text} ({number} times)" if number > 1 else text for text, number in warnings.items()]
    lines = [line for warning in told[:SOME] for line in wrapped(warning, longest=WHY)]
    return [part for line in lines for part in wrapped(line)] + _more(len(told))


def _more(number: int, most: int = SOME) -> list[str]:
    return [f"  … and {number - most} more"] if number > most else []
