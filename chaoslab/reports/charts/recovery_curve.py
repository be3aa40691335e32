"""The share of incidents that are not over yet, over the time since the fault began."""

from chaoslab.analysis.measures.mttr import ENOUGH
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._palette import INK, OUTCOMES, SLATE
from chaoslab.reports.charts._style import describe_no_faults_met, draw_legend, draw_message_figure, make_figure
from chaoslab.reports.contents._parts import RECOVERY, join_key_figure_sentences
from chaoslab.reports.frames import Frames
from chaoslab.reports.page import format_count


def recovery_curve(run: Frames) -> Figure:
    """Kaplan–Meier's curve of all incidents with its 95 % interval (log–log), a line at the share that never recovered,
    or did so with harm, and a stroke where the log ends before an incident does."""
    report, incidents, curve, title = run.measures, run.incidents, run.recovery, "Recovery over time"
    if curve.empty:
        too_few_note = f"{format_count(len(incidents), 'incident')}: too few for a curve ({ENOUGH} at least)"
        no_incident = "no fault was met from which an agent could recover"
        return draw_message_figure(
            title,
            too_few_note
            if len(incidents)
            else f"no data: {no_incident if report.met else describe_no_faults_met(report)}",
        )
    # Censored ones are neither: nobody knows if they would have.
    n, recovered_count, never_count = (
        len(incidents),
        incidents["recovered"].sum(),
        (~incidents["recovered"] & ~incidents["cut"]).sum(),
    )
    note = f"{join_key_figure_sentences(report, RECOVERY, 'recovered')} Kaplan–Meier; band: 95 % interval."
    figure, axes = make_figure(title, note)
    corners, still_open = curve[~curve["open"]], curve[curve["open"]]
    times_s, shares, lows, highs = (corners[name].tolist() for name in ("seconds", "share", "low", "high"))
    axes.fill_between(times_s, lows, highs, color=SLATE, alpha=0.2, linewidth=0)
    axes.plot(times_s, shares, color=INK, linewidth=2, label="not recovered yet")
    if never_count:
        label = f"never recovered, or with harm ({never_count:,})"
        axes.axhline(never_count / n, color=OUTCOMES["harm"].color, linestyle=(0, (6, 4)), label=label)
    if len(still_open):
        xs, ys = still_open["seconds"].tolist(), still_open["share"].tolist()
        axes.plot(
            xs,
            ys,
            linestyle="",
            marker="|",
            markersize=10,
            markeredgewidth=1.6,
            color=SLATE,
            clip_on=False,
            label=f"cut short, by the log's end or a dead service ({n - recovered_count - never_count:,})",
        )
    # A width for incidents that took no time.
    axes.set_xlim(0, max(times_s[-1], 1e-6) * 1.03)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:.0f}")
    axes.set_xlabel("time since the beginning of the call that met the fault (s)")
    axes.set_ylabel("incidents not over yet (%)")
    draw_legend(figure, axes)
    return figure
