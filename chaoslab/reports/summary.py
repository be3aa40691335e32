"""A run on one page: how its prompts ended, what harm was done, what the faults did, what was repaired, and what it all took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from chaoslab.analysis.judge import Outcome, Verdict, judgeable, verdicts
from chaoslab.analysis.measures.durations import duration
from chaoslab.analysis.measures.latency import attempts, latency
from chaoslab.analysis.measures.success import success
from chaoslab.analysis.measures.usage import usage
from chaoslab.core.events import (
    Budget,
    CallFinished,
    CallStarted,
    Effect,
    Fallback,
    FaultWitnessed,
    LabWarning,
    Retry,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.record.history import History
from chaoslab.reports import summary_faults, summary_recovery
from chaoslab.reports.page import count, percent, percents, section, share, table, wrapped

FEW, SOME = 3, 8
"""Examples that are shown of one outcome, and lines of any other list."""
WHY = 220
"""Signs of a reason that are shown."""
WORST = (
    Outcome.HARM, Outcome.WRONG, Outcome.FAILED, Outcome.HUNG, Outcome.INVALID, Outcome.UNFINISHED, Outcome.DEGRADED,
)  # fmt: skip
"""The outcomes that need a reason, worst first."""


def render(history: History) -> str:
    """Plain text in lines of at most 80 columns."""
    judged = verdicts(history)
    outcomes = {trial: str(verdict.outcome) for trial, verdict in judged.items()}
    parts = [
        section("run", lambda: _head(history)),
        section("prompts", lambda: _prompts(history, judged)),
        section("harm", lambda: _harm(history, judged)),
        summary_faults.delivered(history),
        section("what the faults led to", lambda: summary_faults.led_to(history, outcomes)),
        section("time to recovery", lambda: summary_recovery.lines(history)),
        _took(history),
        section("warnings", lambda: _strange(history)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _head(history: History) -> list[str]:
    run, end = history.first(RunStarted), history.first(RunFinished)
    if run is None:
        return ["the logs do not say how this run was started"]
    name = history.records[0].run
    ended = end.reason if end else "not finished"
    if end and not math.isnan(end.duration_s):
        ended += f" after {end.duration_s:.1f} s"
    seed = "not known" if run.seed is None else run.seed
    who = "agent" if history.of_functions else "model"
    head = f"run {name} · seed {seed} · {who} {run.model or 'not known'} · {ended}"
    return wrapped(head) + [line for note in history.notes for line in wrapped(f"note: {note}")]


# How the prompts ended, and what they did.


def _prompts(history: History, judged: Mapping[str, Verdict]) -> list[str]:
    if not judged:
        return ["prompts: none was started"]
    stated = judgeable(history)
    found = success((str(v.outcome) for v in judged.values()), judgeable=stated)
    rows = [
        [name, str(rate.count), percent(rate.value), percents(rate.interval)]
        for name in Outcome
        if (rate := found.by_outcome.get(name))
    ]
    lines = [f"prompts: {found.total}", *table(["outcome", "prompts", "share", "95 % interval"], rows)]
    if found.correct is not None:
        right = found.correct
        verb = "is" if right.count == 1 else "are"
        lines.append(f"{right.count} of {count(right.total, 'judged prompt')} {verb} correct ({share(right)}).")
    elif stated:
        lines.append("Of these none could be judged.")
    else:
        lines.append("Of these none could be judged: nothing was stated about right answers.")
    return lines + [line for outcome in WORST for line in _examples(outcome, judged)]


def _examples(outcome: Outcome, judged: Mapping[str, Verdict]) -> list[str]:
    """Why prompts ended so, the most frequent reasons first; harm has a part of its own."""
    poor = _alike((v.why, trial) for trial, v in judged.items() if v.outcome is outcome and not v.harm)
    lines = [
        line
        for why, trials in poor[:FEW]
        for line in _example(f"{len(trials)} × {outcome}" if trials[1:] else f"{trials[0]} {outcome}", why, trials)
    ]
    left = sum(len(trials) for _, trials in poor[FEW:])
    return lines + ([f"  … and {left} more {outcome}"] if left else [])


def _alike(told: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """What was told, each with the trials of which it was, most frequent first."""
    trials: dict[str, list[str]] = {}
    for what, trial in told:
        trials.setdefault(what, []).append(trial)
    return sorted(trials.items(), key=lambda item: -len(item[1]))


def _example(head: str, what: str, trials: Sequence[str]) -> list[str]:
    what = what if len(what) <= WHY else f"{what[: WHY - 1]}…"
    named = f" ({', '.join(trials[:FEW])}{' …' if trials[FEW:] else ''})" if trials[1:] else ""
    return wrapped(f"{head}: {what}{named}", indent="  ")


def _harm(history: History, judged: Mapping[str, Verdict]) -> list[str]:
    if not history.has(Effect):
        return ["harm: not known from such a log"]
    return harm(judged, stated=judgeable(history))


def harm(judged: Mapping[str, Verdict], *, stated: bool) -> list[str]:
    """What is wrong on the ledgers, alike things together, most frequent first. `stated`: whether anything was about right answers."""
    done = _alike((what, trial) for trial, verdict in judged.items() for what in dict.fromkeys(verdict.harm))
    if not done:
        return ["harm: none was found on the ledgers"] if stated else []
    harmful = sum(bool(verdict.harm) for verdict in judged.values())
    lines = wrapped(f"harm: {harmful} of {count(len(judged), 'prompt')} left the ledgers other than they should be")
    for what, trials in done[:SOME]:
        lines += _example(f"{len(trials)} times" if trials[1:] else trials[0], what, trials)
    return lines + _more(len(done))


# What it took.


def _took(history: History) -> list[str]:
    return [
        *section("calls", lambda: _calls(history)),
        *section("latency", lambda: _latency(history)),
        *section("usage", lambda: _usage(history)),
        *section("budget", lambda: _budget(history)),
    ]


def _calls(history: History) -> list[str]:
    made = {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(CallStarted)}
    made |= {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(CallFinished)}
    failed = sum(not e.ok for _, e in history.of(CallFinished))
    if history.of_functions:
        again = sum(attempt > 1 for _, _, _, attempt in made)
        return wrapped(
            f"calls: {len(made)} of functions; {failed} failed; {again} were further attempts at a call already made. "
            "How long the agent waits before one, and what it asks of a model, is not known."
        )
    to_model = sum(target == "model" for _, target, _, _ in made)
    models = f"{to_model} to the model" if history.has(Usage) else "those to the model are not known"
    retries, fallbacks = (sum(1 for _ in history.of(kind)) for kind in (Retry, Fallback))
    return wrapped(
        f"calls: {len(made) - to_model} to tools, {models}; {failed} failed; {retries} retries, {fallbacks} fallbacks"
    )


def _latency(history: History) -> list[str]:
    found = latency([a.duration_s for a in attempts(history) if not a.faults])
    if not found:
        return []
    which = "without a fault" if history.has(FaultWitnessed) else f"{found.n} calls of known duration"
    return [f"{which}: median {duration(found.p50_s)}, 99th percentile {duration(found.p99_s)}"]


def _usage(history: History) -> list[str]:
    if history.of_functions:
        return []
    if not history.has(Usage):
        return ["usage: not known from such a log"]
    spent = usage(history)
    if not spent:
        return ["usage: the model never answered"]
    cost = "price unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
    cost += f" ({spent.unpriced} answers without a price)" if spent.unpriced and spent.cost_usd is not None else ""
    tokens = f"{spent.prompt_tokens} tokens to the model, {spent.completion_tokens} from it"
    return wrapped(f"usage: {tokens}, in {count(spent.answers, 'answer')}; {cost}")


def _budget(history: History) -> list[str]:
    """Each limit that was passed, by its name, and what came of it."""
    passed: Counter[tuple[str, str]] = Counter()
    trials: dict[tuple[str, str], set[str | None]] = {}
    for record, event in history.of(Budget):
        key = event.named(setting=not history.of_functions), event.mode
        passed[key] += 1
        trials.setdefault(key, set()).add(record.trial)
    lines = []
    for (limit, mode), calls in sorted(passed.items()):
        where = f"{count(calls, 'call')} in {count(len(trials[limit, mode]), 'prompt')}"
        said = f"{limit} refused {where}" if mode == "hard" else f"{limit} was passed at {where}, and only noted"
        lines += wrapped(f"budget: {said}")
    return lines


def _strange(history: History) -> list[str]:
    warnings = [f"warning ({record.writer}): {e.message}" for record, e in history.of(LabWarning)]
    lines = [line for warning in warnings[:SOME] for line in wrapped(warning, longest=WHY)]
    return [part for line in lines for part in wrapped(line)] + _more(len(warnings))


def _more(number: int) -> list[str]:
    return [f"  … and {number - SOME} more"] if number > SOME else []
