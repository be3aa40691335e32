"""The colours and shapes of all charts. A colour has one meaning, in every chart and for every run.

Three families share no colour: outcomes, faults, and runs drawn over each other. Greys and slates belong to none of
them: they show amounts, statistics, and attempts without a fault. Within a family the colours can be distinguished by
colour-blind people too, and each has its own shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from chaoslab.analysis.measures.run_report import RunReport


class Look(NamedTuple):
    """The colour and the shape of a thing, as matplotlib names them."""

    color: str
    marker: str


INK, SLATE, CLEAN = "#2F3E4E", "#5B6B7B", "#8FA3B5"
"""Medians and intervals; marks with only a shape of their own; an attempt without a fault."""
CALLS, PROMPTS, LAB = "#BBD0E4", "#4A5A3C", "#F0E3C8"
"""Calls of any kind; prompts; attempts that the lab disturbed; calls that met a fault of any kind."""

OUTCOMES = {
    "correct": Look("#009E73", "o"),
    "degraded": Look("#8FD3FF", "s"),
    "wrong": Look("#0072B2", "h"),
    "undone": Look("#786048", "d"),
    "false_success": Look("#8533FF", "p"),
    "harm": Look("#D55E00", "X"),
    "failed": Look("#000000", "v"),
    "hung": Look("#E69F00", "*"),
    "unknown": Look("#A6A6A6", "D"),
    "invalid": Look("#D4D4D4", "P"),
    "unfinished": Look("#5A5A5A", "^"),
}
"""The look of each outcome, best first. The greys allow no conclusion."""

FAULTS = {
    "latency": Look("#118AFF", "o"),
    "timeout": Look("#CD066D", "D"),
    "reset_peer": Look("#6F7400", "v"),
    "refused": Look("#5D3700", "^"),
    "tool_error": Look("#BF5C4F", "s"),
    "lost_reply": Look("#0A0572", "P"),
    "html_instead_of_json": Look("#00FBF6", "2"),
    "empty_response": Look("#A2F876", "3"),
    "cut": Look("#63E505", "H"),
    "stall": Look("#2C11B6", "+"),
    "slow_chunks": Look("#2757FE", "1"),
    "wrong_value": Look("#66B83E", "X"),
    "truncate_context": Look("#9646B9", "*"),
    "budget": Look("#DAB585", "h"),
}
"""The looks of the faults that are seen most. All others have one of `STRANGERS`."""
LONE = Look("#5B0018", "x")
"""A failure without an injected fault."""

STRANGERS = tuple(Look(c, marker) for marker in "<>dp8" for c in ("#00888F", "#C6A1EC", "#F2A6B8", "#51124E"))
"""The looks for all other faults, chosen by the fault's name."""

HATCHES = ("...", "xxx", "---", "|||")
"""The patterns that tell apart bars of one colour."""

SERIES = ("#175B1D", "#FA71D1", "#90B16D", "#032752", "#926088", "#B6B71B")
"""The colours of runs drawn over each other. From the seventh series on they repeat with another line style."""
LINES = ("-", "--", ":", "-.")
SHAPES = "osD^vPX"


def choose_fault_looks(names: Iterable[str]) -> dict[str, Look]:
    """The look of each of these faults. One without a look of its own looks the same in every run, unless two of a run
    share a look: then the later by name takes the next."""
    fault_names = sorted(set(names))
    looks = {name: FAULTS[name] for name in fault_names if name in FAULTS}
    for name in fault_names:
        if name not in looks:
            looks[name] = _choose_free_look(name, taken=looks.values())
    return looks


def choose_fault_looks_of_run(report: RunReport, names: Iterable[str]) -> dict[str, Look]:
    """The look of each of these faults, the same in all charts of the run: all that it met count as wanted."""
    fault_names = set(names)
    counts = () if report.delivered.unknown else report.delivered.value.by_fault
    met_faults = {row.fault for row in counts if row.witnessed}
    return {name: look for name, look in choose_fault_looks({*fault_names, *met_faults}).items() if name in fault_names}


def choose_hatches(looks: Mapping[str, Look]) -> dict[str, str]:
    """A pattern for each of these that has the colour of one before it, for charts without shapes."""
    counts: Counter[str] = Counter()
    patterns = {}
    for name, look in looks.items():
        if nth := counts[look.color]:
            patterns[name] = HATCHES[(nth - 1) % len(HATCHES)]
        counts[look.color] += 1
    return patterns


def _choose_free_look(name: str, *, taken: Iterable[Look]) -> Look:
    """The look by the hash of the name, or the next with a free colour, else with a free combination."""
    # By a hash of the name, so that a fault looks the same in the charts of two runs.
    first = int.from_bytes(blake2b(name.encode(errors="replace"), digest_size=4).digest()) % len(STRANGERS)
    ordered = [*STRANGERS[first:], *STRANGERS[:first]]
    looks = set(taken)
    colors = {look.color for look in looks}
    # First by colour, since many charts have no shapes.
    for free in (lambda look: look.color not in colors, lambda look: look not in looks):
        if free_looks := list(filter(free, ordered)):
            return free_looks[0]
    return ordered[0]


def get_series_style(number: int) -> tuple[Look, str]:
    """The look and the line of a series, counted from 0."""
    # After all colours the line changes, so that 24 series differ.
    line = LINES[number // len(SERIES) % len(LINES)]
    return Look(SERIES[number % len(SERIES)], SHAPES[number % len(SHAPES)]), line
