"""The outcomes of the trials that met each fault at each target."""

from chaoslab.reports._types import Figure
from chaoslab.reports.charts._style import draw_legend_keys, draw_message_figure, make_figure, shorten_labels
from chaoslab.reports.frames import Frames

ROWS, COLUMNS = 24, 9
"""The most faults and targets in the picture; the report's HTML has all of them."""
LEAST = 4
"""The columns for which there is room at least, so that few cells do not become wide."""
UPRIGHT = 88
"""The characters of all targets' names above which they stand upright."""
IDLE, EMPTY, EDGE = "#E4E8EC", "#FFFFFF", "#D5DBE2"


def fault_matrix(run: Frames) -> Figure:
    """A cell per fault and target, as in the report. The colour is the worst outcome's; grey: not run; hatched:
    scheduled and not witnessed."""
    from matplotlib.patches import Patch, Rectangle

    from chaoslab.reports.contents._matrix import LEGEND, CellState, build_matrix
    from chaoslab.reports.contents.outcomes import SEVERITY, choose_text_color, outcome_color, outcome_word

    matrix, title = build_matrix(run.measures), "Outcomes by fault and target"
    if not matrix.scheduled_rows:
        # A chart of no fault would only be an empty grid; why there is none is said instead.
        return draw_message_figure(title, f"no fault was {'scheduled' if matrix.rows else 'planned'} in this run")
    rows, targets = [*matrix.scheduled_rows][:ROWS], [*matrix.targets][:COLUMNS]
    hidden = {"faults": len(matrix.scheduled_rows) - len(rows), "targets": len(matrix.targets) - len(targets)}
    hidden_notes = [f"{hidden_count} more {kind}" for kind, hidden_count in hidden.items() if hidden_count]
    note = f"{LEGEND} {' and '.join(hidden_notes)} in the report." if hidden_notes else LEGEND
    figure, axes = make_figure(title, note, height_in=2.4 + 0.46 * len(rows))
    legend_patches: dict[str, Patch] = {}
    for cell in (cell for fault in rows for cell in matrix.rows[fault] if cell.target in targets):
        x, y = targets.index(cell.target), rows.index(cell.fault)
        fill, hatch, label = EMPTY, None, ""
        if cell.worst:
            fill, label = outcome_color(cell.worst), outcome_word(cell.worst)
        elif cell.state is CellState.UNMET:
            hatch, label = "////", "scheduled, not witnessed"
        elif cell.state is CellState.NOT_RUN:
            fill, label = IDLE, "not run"
        box = Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=fill, edgecolor=EDGE, hatch=hatch)
        axes.add_patch(box)
        if label:
            legend_patches.setdefault(label, Patch(facecolor=fill, edgecolor=EDGE, hatch=hatch, label=label))
        if cell.state is CellState.MET:
            # The worst outcome is the colour.
            cell_text = "\n".join([*cell.text_lines[:2], *cell.text_lines[3:]])
            axes.text(
                x, y, cell_text, ha="center", va="center", fontsize=7, color=choose_text_color(fill), linespacing=1
            )
    upright = sum(map(len, targets)) > UPRIGHT
    axes.set_xticks(range(len(targets)), shorten_labels(targets, 22), rotation=90 if upright else 0)
    axes.set_yticks(range(len(rows)), shorten_labels(rows))
    axes.tick_params(length=0, labelsize=8.5)
    # Names side by side would run into each other.
    axes.set_xlim(-0.5, max(len(targets), LEAST) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("target (trials that met the fault)", loc="left" if len(targets) < LEAST else "center")
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    outcome_order = [outcome_word(outcome) for outcome in SEVERITY]
    handles = sorted(
        legend_patches.values(),
        key=lambda patch: [*outcome_order, str(patch.get_label())].index(str(patch.get_label())),
    )
    draw_legend_keys(figure, handles, [str(patch.get_label()) for patch in handles])
    return figure
