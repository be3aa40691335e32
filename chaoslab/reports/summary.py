"""A run on one page: how the prompts ended, what was delivered, what was repaired, and what it cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from chaoslab.events import (
    Budget,
    CallFinished,
    CallStarted,
    Fallback,
    FaultWitnessed,
    Retry,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.events import Warning as Told
from chaoslab.history import History
from chaoslab.judge import Outcome, Verdict, judgeable, verdicts
from chaoslab.measures import faults, mttr
from chaoslab.measures.durations import duration
from chaoslab.measures.latency import attempts, latency
from chaoslab.measures.success import success
from chaoslab.measures.usage import usage

WARNINGS = 8


def render(history: History) -> str:
    """Plain text, lines without a width of their own beyond their tables'."""
    parts = [_head(history), _prompts(history), _calls(history), _faults(history), _recovery(history), _rest(history)]
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
    head = f"run {name} · seed {seed} · model {run.model or 'not known'} · {ended}"
    return [head, *(f"note: {note}" for note in history.notes)]


def _prompts(history: History) -> list[str]:
    judged = verdicts(history)
    if not judged:
        return ["prompts: none was started"]
    found = success((str(v.outcome) for v in judged.values()), judgeable=judgeable(history))
    rows = [
        [name, str(rate.count), f"{rate.value:.0%}", f"{rate.interval.low:.0%}–{rate.interval.high:.0%}"]
        for name in Outcome
        if (rate := found.by_outcome.get(name))
    ]
    lines = [f"prompts: {found.total}", *_table(["outcome", "prompts", "share", "95 % interval"], rows)]
    if found.correct is None:
        return [*lines, "none could be judged", *_poor(judged)]
    low, high = found.correct.interval.low, found.correct.interval.high
    lines.append(
        f"{found.correct.count} of {found.correct.total} judged prompts correct, 95 % interval {low:.0%}–{high:.0%}"
    )
    return lines + _poor(judged)


def _poor(judged: Mapping[str, Verdict]) -> list[str]:
    poor = [(trial, v) for trial, v in judged.items() if v.outcome not in (Outcome.CORRECT, Outcome.UNKNOWN)]
    return [f"  {trial} {v.outcome}: {_line(v.why)}" for trial, v in poor[:WARNINGS]] + _more(len(poor))


def _calls(history: History) -> list[str]:
    made = {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(CallStarted)}
    made |= {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(CallFinished)}
    to_model = sum(target == "model" for _, target, _, _ in made)
    failed = sum(not e.ok for _, e in history.of(CallFinished))
    retries, fallbacks = (sum(1 for _ in history.of(kind)) for kind in (Retry, Fallback))
    models = f"{to_model} to the model" if history.tells(Usage) else "those to the model are not known"
    line = f"calls: {len(made) - to_model} to tools, {models}; {failed} failed"
    lines = [f"{line}; {retries} retries, {fallbacks} fallbacks"]
    found = latency([a.duration_s for a in attempts(history) if not a.faults])
    if found:
        which = "without a fault" if history.tells(FaultWitnessed) else f"{found.n} calls of known duration"
        lines.append(f"{which}: median {duration(found.p50_s)}, 99th percentile {duration(found.p99_s)}")
    return lines


def _faults(history: History) -> list[str]:
    if not history.tells(FaultWitnessed):
        return ["faults: not known from such a log, nor which failures they caused"]
    counts = faults.by_injection(history)
    rows: list[list[str]] = []
    for count in counts:
        hits = "" if count.plausible is None else "as planned" if count.plausible else "NOT AS PLANNED"
        numbers = [count.eligible, count.scheduled, count.injected, count.witnessed]
        chance = "" if count.chance is None else f"{count.chance:g}"
        rows.append([count.injection, *map(str, numbers), chance, hits])
        names = sorted({f.fault for f in faults.by_fault(history) if f.injection == count.injection})
        for name in names:
            mine = [f for f in faults.by_fault(history) if (f.injection, f.fault) == (count.injection, name)]
            sums = [sum(f.scheduled for f in mine), sum(f.injected for f in mine), sum(f.witnessed for f in mine)]
            rows.append([f"  {name}", "", *map(str, sums), "", ""])
    header = ["faults", "eligible", "scheduled", "injected", "witnessed", "chance", "hits"]
    lines = _table(header, rows) if rows else ["faults: none was planned"]
    if hit := faults.disturbance(history):
        lines.append(
            f"the lab was disturbed {hit.times} times, {hit.lasted_s:.2f} s in all; {hit.attempts} attempts hit by it"
        )
    lone = faults.uninjected(history)
    lines.append(f"failures that nobody injected: {sum(f.count for f in lone) if lone else 'none'}")
    return lines + [f"  {f.count} × {f.target}: {_line(f.error)}" for f in lone[:WARNINGS]] + _more(len(lone))


def _recovery(history: History) -> list[str]:
    found = mttr.mttr(history)
    how = "" if history.tells(FaultWitnessed) else " (inferred from failures that were noticed)"
    lines = [f"time to recovery{how}: {mttr.told(found.overall)}"]
    lines += [f"  {fault}: {mttr.told(known)}" for fault, known in found.by_fault.items()]
    if not found.incidents:
        return lines
    rows = [
        [target, fault, str(r.n), str(r.retry), str(r.fallback), str(r.late), str(r.censored), _seconds(r.mean_s)]
        for (target, fault), r in found.by_target.items()
    ]
    return lines + _table(["target", "fault", "n", "retry", "fallback", "late", "never", "mean"], rows)


def _rest(history: History) -> list[str]:
    spent = usage(history)
    lines = ["usage: the model never answered" if history.tells(Usage) else "usage: not known from such a log"]
    if spent:
        cost = "price unknown" if spent.cost_usd is None else f"{spent.cost_usd:.4f} USD"
        cost += f" ({spent.unpriced} answers without a price)" if spent.unpriced and spent.cost_usd is not None else ""
        lines = [f"usage: {spent.prompt_tokens} + {spent.completion_tokens} tokens in {spent.answers} answers, {cost}"]
    passed = Counter((e.limit, e.mode) for _, e in history.of(Budget))
    lines += [
        f"budget: limit of {limit} passed {count} times ({mode})" for (limit, mode), count in sorted(passed.items())
    ]
    warnings = [f"warning ({record.writer}): {_line(e.message)}" for record, e in history.of(Told)]
    return lines + warnings[:WARNINGS] + _more(len(warnings))


def _more(count: int) -> list[str]:
    return [f"  … and {count - WARNINGS} more"] if count > WARNINGS else []


def _seconds(value: float | None) -> str:
    return "no data" if value is None else duration(value, 2)


def _line(text: str, width: int = 120) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest entry, numbers to the right."""
    widths = [max(len(row[n]) for row in [header, *rows]) for n in range(len(header))]
    right = [all(not row[n] or row[n][0].isdigit() for row in rows) for n in range(len(header))]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [header, *rows]
    ]
