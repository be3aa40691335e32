"""A trial as a person sees it who labels its answer: what the world was, and the answer beside its twin's, word by
word. Below it, the agreement of a model with labels, as text and as plain data."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from chaoslab.analysis.measures.agreement import Agreement, least
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import PromptFinished, PromptStarted
from chaoslab.record.history import History
from chaoslab.reports import page
from chaoslab.reports.page import count
from chaoslab.reports.text import one_line

SHOWN = 4000
"""The most characters of a text that are shown."""
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])")


def shown(history: History, trial: str, verdict: Verdict, *, colour: bool) -> Iterator[str]:
    """The trial in lines; no foreign word in them steers the terminal. Without `colour`, the words that differ stand in
    brackets."""
    started = next((event for _, event in history.of(PromptStarted, trial=trial)), None)
    ended = next((event for _, event in history.of(PromptFinished, trial=trial)), None)
    answer = one_line("" if ended is None else ended.answer, SHOWN)
    twin = None if started is None or started.twin is None else one_line(started.twin, SHOWN)
    yield f"world    {verdict.world}"
    yield f"verdict  {verdict.name}: {one_line(verdict.why, SHOWN)}"
    if started is not None:
        yield f"asked    {one_line(started.prompt, SHOWN)}"
    right, given = (twin, answer) if twin is None else parted(twin, answer, colour=colour)
    if right is not None:
        yield f"twin     {right}"
    yield f"answer   {given}"


def parted(twin: str, answer: str, *, colour: bool) -> tuple[str, str]:
    """Both texts with the words marked in which they differ: the twin's green, the answer's red."""
    one, two = _WORDS.findall(twin), _WORDS.findall(answer)
    same = SequenceMatcher(None, [*map(str.strip, one)], [*map(str.strip, two)], autojunk=False)
    marks = (GREEN, RED) if colour else ("", "")
    right = given = ""
    for step, a, b, c, d in same.get_opcodes():
        right += _marked("".join(one[a:b]), marks[0], equal=step == "equal")
        given += _marked("".join(two[c:d]), marks[1], equal=step == "equal")
    return right, given


def _marked(text: str, colour: str, *, equal: bool) -> str:
    if equal or not text:
        return text
    words = text.lstrip()
    return text[: len(text) - len(words)] + (f"{colour}{words}{PLAIN}" if colour else f"[{words}]")


def agreement_lines(found: Agreement, model: str, certain_above: float | None) -> Iterator[str]:
    """The agreement in lines. `certain_above`: the lower bound that the user asks for."""
    share, kappa = found.share, found.kappa
    without = f"; {found.without} more have no opinion" if found.without else ""
    yield f"from {count(found.labels, 'label')} of {count(len(found.pairs), 'different answer')}{without}"
    if share is None:
        return
    between = f"95 % interval {share.interval.low:.0%}–{share.interval.high:.0%}"
    yield f"{model} agrees in {share.count} of {share.total} ({share.value:.0%}), {between}"
    if kappa is None:
        yield "Cohen's kappa: none, since one outcome alone was found"
    else:
        yield f"Cohen's kappa {kappa.value:.2f}, 95 % interval {kappa.interval.low:.2f}–{kappa.interval.high:.2f}"
    yield from table(found)
    if certain_above is None:
        return
    low = f"the interval begins at {share.interval.low:.1%}"
    if found.above(certain_above):
        yield f"certain above {certain_above:.1%}: yes, {low}; the verdicts by {model} count in gates"
    else:
        few = f", which takes {least(certain_above)} different answers or more" if share.value > certain_above else ""
        yield f"certain above {certain_above:.1%}: no, {low}{few}; the verdicts by {model} stay uncertain"


def table(found: Agreement) -> list[str]:
    """The confusion table: a row an outcome by the label, a column an outcome by the model."""
    rows = [str(name) for name in Outcome if any(one == name for one, _ in found.pairs)]
    columns = [str(name) for name in Outcome if any(other == name for _, other in found.pairs)]
    cells = [[row, *(str(found.table.get((row, column), 0)) for column in columns)] for row in rows]
    return page.table(["label \\ model", *columns], cells)


def plain(found: Agreement, certain_above: float | None) -> dict[str, Any]:
    """The agreement as JSON values."""
    share, kappa = found.share, found.kappa
    return {
        "labels": found.labels,
        "answers": len(found.pairs),
        "without_opinion": found.without,
        "agreed": 0 if share is None else share.count,
        "share": None if share is None else share.value,
        "interval": None if share is None else [share.interval.low, share.interval.high],
        "kappa": None if kappa is None else kappa.value,
        "kappa_interval": None if kappa is None else [kappa.interval.low, kappa.interval.high],
        "table": [{"label": one, "model": other, "answers": n} for (one, other), n in sorted(found.table.items())],
        "certain_above": certain_above,
        "certain": certain_above is not None and found.above(certain_above),
    }
