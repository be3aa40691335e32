"""The requests that each target got for each one that was wanted."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import CALLS, INK, MET
from chaoslab.reports.charts._style import canvas, legend, nothing, rows_named, shorts
from chaoslab.reports.frames import Frames

ROWS = 16
"""The most targets in the picture, the most amplified."""


def amplification(run: Frames) -> Figure:
    """A bar per target: attempts per request, over all requests and over those that met a fault. 1 is no retry."""
    found = run.amplification
    shown, title = found[:ROWS], "Retry amplification by target"
    note = "attempts for each request that was wanted; 1: none was tried again"
    note += f"; {len(found) - ROWS} more targets are amplified less" if len(found) > ROWS else ""
    if shown.empty:
        return nothing(title, "no call was made in this run")
    figure, axes = canvas(title, note, height_in=1.9 + 0.46 * max(3, len(shown)))
    factors, met = shown["factor"].tolist(), shown["met_factor"].dropna()
    axes.barh(shown.index - 0.19, factors, height=0.36, color=CALLS, label="calls")
    if len(met):
        axes.barh(met.index + 0.19, met.tolist(), height=0.36, color=MET, label="met a fault")
    for row, most in shown["most"].items():
        axes.text(1.01, row, f"most {most}", transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
    sent = zip(shorts(shown["target"].tolist()), shown["attempts"], shown["requests"], strict=True)
    rows_named(axes, [f"{name} ({attempts:,}/{requests:,})" for name, attempts, requests in sent])
    axes.set_xlim(0, max([2.0, *factors, *met]) * 1.06)
    axes.set_xlabel("attempts per request (count; attempts/requests beside the name)")
    legend(figure, axes)
    return figure
