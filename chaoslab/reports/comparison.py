"""The comparison of two runs, as text, Markdown, JSON and HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from chaoslab.analysis.comparison import Comparison, Pair
from chaoslab.analysis.judge import Outcome
from chaoslab.analysis.measures.intervals import Rate
from chaoslab.analysis.run_report import RunReport
from chaoslab.base.jsonable import line
from chaoslab.reports.contents.outcomes import word
from chaoslab.reports.contents.text import visible
from chaoslab.reports.page import count, percent, table, wrapped

SHOWN = 20
"""The most pairs of a kind that are told one by one, but in JSON."""
TEXT, WHY, NAME = 160, 1000, 200
LIKELY = 0.05
"""The p-value above which chance explains the difference."""


def headline(found: Comparison) -> str:
    """The comparison in one sentence."""
    if not found.pairs:
        return "No trial of one run is a trial of the other: they cannot be compared"
    if not found.judged:
        return "No pair of trials allows a conclusion"
    better, worse = len(found.better), len(found.worse)
    if not better and not worse:
        return f"All {count(found.judged, 'judged pair')} ended alike"
    return (
        f"{better} better, {worse} worse, {found.judged - better - worse} alike of {count(found.judged, 'judged pair')}"
    )


def certainty(found: Comparison) -> str:
    """The result of the test in one sentence; empty if no pair differs in being correct."""
    if found.p is None:
        return ""
    said = (
        f"Correct only now: {found.gained}; correct only before: {found.lost}. So uneven a split has a chance of "
        f"{_chance(found.p)} if nothing changed (McNemar's exact test)"
    )
    return f"{said}: {'it may be chance' if found.p > LIKELY else 'chance hardly explains it'}."


def _chance(p: float) -> str:
    return "less than 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.01 else f"{p:.2f}"


def text(found: Comparison) -> str:
    """Plain text in lines of at most 80 columns, but for commands, which stay whole."""
    lines = [*wrapped(f"before: {_name(found.before.where)}"), *wrapped(f"now:    {_name(found.after.where)}"), ""]
    lines += wrapped(f"{headline(found)}.") + wrapped(certainty(found))
    lines += [part for note in _notes(found) for part in wrapped(f"note: {note}")]
    if found.moves:
        rows = [[f"{word(then)} → {word(now)}", str(n)] for (then, now), n in found.moves.items()]
        lines += ["", *table(["outcome before → now", "pairs"], rows)]
    if figures := _figures(found):
        lines += ["", *table(["", "before", "now"], figures)]
    for title, pairs in (("worse", found.worse), ("better", found.better)):
        if pairs:
            lines += ["", f"{title}:"]
        for pair in pairs[:SHOWN]:
            lines += wrapped(_told(pair), indent="  ")
            lines.append(f"    {_replay(found, pair)}")
        if len(pairs) > SHOWN:
            lines.append(f"  … and {len(pairs) - SHOWN} more {title}")
    return "\n".join(lines) + "\n"


def markdown(found: Comparison) -> str:
    """Markdown for a pull request."""
    from chaoslab.reports.formats.markdown import code

    mark = "❔" if not found.judged else "❌" if found.worse else "✅"
    lines = [f"## {mark} {headline(found)}", ""]
    lines += [f"- before: {code(found.before.where)}", f"- now: {code(found.after.where)}"]
    lines += [f"- {said}" for said in (certainty(found),) if said]
    lines += [f"- note: {code(note)}" for note in _notes(found)]
    if found.moves:
        lines += ["", "| outcome before | now | pairs |", "| --- | --- | --- |"]
        lines += [f"| {word(then)} | {word(now)} | {n} |" for (then, now), n in found.moves.items()]
    for title, pairs in (("Worse", found.worse), ("Better", found.better)):
        if pairs:
            lines += ["", f"### {title}", ""]
        for pair in pairs[:SHOWN]:
            lines.append(
                f"- **{pair.trial} {word(pair.before.outcome)} → {word(pair.after.outcome)}**: {code(pair.after.why)} "
                f"({code(_replay(found, pair))})"
            )
        if len(pairs) > SHOWN:
            lines.append(f"- … and {len(pairs) - SHOWN} more")
    return "\n".join(lines) + "\n"


def as_json(found: Comparison) -> str:
    """JSON, with every pair."""
    return json.dumps(value(found), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def value(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    return {
        "schema": 1,
        "before": found.before.where,
        "after": found.after.where,
        "said": headline(found),
        "pairs": len(found.pairs),
        "judged": found.judged,
        "better": len(found.better),
        "worse": len(found.worse),
        "only_before": found.alone[0],
        "only_after": found.alone[1],
        "correct_only_after": found.gained,
        "correct_only_before": found.lost,
        "p": found.p,
        "notes": list(found.notes),
        "trials": [
            {
                "trial": pair.trial,
                "prompt": line(pair.prompt, TEXT),
                "before": str(pair.before.outcome),
                "after": str(pair.after.outcome),
                "better": pair.better,
                "why_before": pair.before.why,
                "why_after": pair.after.why,
            }
            for pair in found.pairs
        ],
    }


def html(found: Comparison) -> str:
    """One HTML file that loads nothing.

    Raises:
        Missing: Jinja is not installed.
    """
    from chaoslab.reports.formats import Missing

    try:
        from chaoslab.reports.formats.html import page
    except ModuleNotFoundError as error:
        raise Missing(f"{error.name} is not installed: pip install 'chaoslab[charts]'") from None
    tone = "open" if not found.judged else "bad" if found.worse else "good"
    return page(
        "comparison.html", it=found, said=headline(found), sure=certainty(found), tone=tone, notes=_notes(found),
        figures=_figures(found), groups={"Worse": found.worse, "Better": found.better}, shown=SHOWN, word=word,
        replay=lambda pair: _replay(found, pair), visible=lambda why: visible(why, WHY),
    )  # fmt: skip


FORMATS: Mapping[str, Callable[[Comparison], str]] = {"text": text, "html": html, "json": as_json, "markdown": markdown}


def _notes(found: Comparison) -> list[str]:
    places = zip(found.alone, ("before", "now"), strict=True)
    alone = [f"{count(number, 'trial')} only in the run {where}" for number, where in places if number]
    return [*found.notes, *alone]


def _figures(found: Comparison) -> list[list[str]]:
    """The figures of both runs that a reader asks for first; those without data are left out."""
    one, other = found.before.report, found.after.report
    rows: list[tuple[str, str | None, str | None]] = [
        ("trials", str(len(one.trials)), str(len(other.trials))),
        ("correct", _correct(one.success.value.correct), _correct(other.success.value.correct)),
        ("trials with harm", _harmed(one), _harmed(other)),
        ("trials that met a fault", str(len(one.met)), str(len(other.met))),
        ("attempts at calls", str(one.calls.value.made), str(other.calls.value.made)),
    ]
    return [[name, then or "no data", now or "no data"] for name, then, now in rows]


def _correct(rate: Rate | None) -> str | None:
    return None if rate is None else f"{rate.count}/{rate.total} ({percent(rate.value)})"


def _harmed(report: RunReport) -> str:
    return str(sum(bool(verdict.harm) for verdict in report.verdicts.values()))


def _told(pair: Pair) -> str:
    then, now = word(pair.before.outcome), word(pair.after.outcome)
    why = pair.after.why if pair.after.outcome is not Outcome.CORRECT else pair.before.why
    return f"{pair.trial} {then} → {now}: {line(why, TEXT)}"


def _replay(found: Comparison, pair: Pair) -> str:
    verb = "show" if found.after.report.of_functions or found.after.history.unknown else "replay"
    return f"chaoslab {verb} {_name(found.after.where)} --trial {pair.trial}"


def _name(where: str) -> str:
    return line(where, NAME)
