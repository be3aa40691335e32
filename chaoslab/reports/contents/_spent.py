"""The cost of chaos as rows to draw: what each fault added to the run."""

from collections.abc import Sequence
from dataclasses import dataclass

from chaoslab.analysis.measures.cost import Costs
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.durations import difference

SEVERAL = "several at once"
"""The name of the row of trials that met several faults, whose parts nobody can tell apart."""
AMOUNTS = {"seconds": "s", "calls": "calls", "tokens": "tokens", "usd": "USD", "effects": "effects"}
"""Each amount of `Spending` that is drawn, with its unit."""


@dataclass(frozen=True)
class AddedCost:
    """A row. `trials`: those that met the fault alone and can be compared. `amounts`: the sums that it added to them,
    by the names in AMOUNTS, of those that are known; negative if it saved."""

    fault: str
    trials: int
    amounts: dict[str, float]


def added(report: RunReport) -> Sequence[AddedCost]:
    """A row per fault, dearest first, and one of several faults at once. No row if nothing was added, or nothing can be
    compared; an amount that none added is left out, and so is a row whose first amount is not known."""
    found = report.costs.value
    names = _compared(found) if found else []
    if found is None or not names:
        return ()
    rows = [
        AddedCost(fault, trials, {name: float(known) for name in names if (known := getattr(of, name)) is not None})
        for fault, key, of in (*((name, name, of) for name, of in found.by_fault.items()), (SEVERAL, "", found.shared))
        if (trials := of.trials - found.incomparable.get(key, 0))
    ]
    made = [row for row in rows if names[0] in row.amounts]
    return sorted(made, key=lambda row: (row.fault == SEVERAL, -row.amounts[names[0]], row.fault))


def _compared(found: Costs) -> list[str]:
    """The amounts that differ from the match of some trial."""
    rows = (found.shared, *found.by_fault.values())
    return [name for name in AMOUNTS if any(getattr(of, name) for of in rows)]


def apart(report: RunReport) -> str:
    """One clause on the trials without a comparison; empty if there are none."""
    found = report.costs.value
    trials = found.no_comparison.trials if found else 0
    return f"{trials:,} trial{'' if trials == 1 else 's'} cannot be compared" if trials else ""


def amount(name: str, value: float) -> str:
    """An added amount as text: +0.62 s, +3 calls, +820 tokens."""
    if name == "usd":
        return f"{round(value, 6) + 0.0:+.6f} USD"
    return difference(value) if name == "seconds" else f"{value:+,.10g} {AMOUNTS[name]}"
