"""The agreement of a model with labels, as text and as plain data."""

from collections.abc import Iterator
from typing import Any

from chaoslab.analysis.measures.agreement import Agreement, least
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports import page
from chaoslab.reports.page import count


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
