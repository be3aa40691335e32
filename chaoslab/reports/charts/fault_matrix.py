"""The outcomes of the trials that met each fault at each target."""

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._style import draw_keys, draw_message, make_canvas, shorten_all
from chaoslab.reports.frames import Frames

ROWS, COLUMNS = 24, 9
"""The most faults and targets in the picture; the report's HTML has all of them."""
LEAST = 4
"""The columns for which there is room at least, so that few cells do not become wide."""
UPRIGHT = 88
"""The characters of all targets' names above which they stand upright."""
IDLE, EMPTY, EDGE = "#E4E8EC", "#FFFFFF", "#D5DBE2"


def fault_matrix(run: Frames) -> Figure:
    """A cell per fault and target: the trials that did not end well, of the judged ones that met it alone, with the
    95 % interval; of those that met others too, with a *, if there are no others. The colour is their worst
    outcome's; grey: not run; hatched: scheduled and not witnessed."""
    from matplotlib.patches import Patch, Rectangle

    from chaoslab.reports.contents._matrix import SCHEDULED, CellState
    from chaoslab.reports.contents.outcomes import SEVERITY, choose_ink, outcome_color, outcome_word

    cells, title = run.matrix, "Outcomes by fault and target"
    scheduled = cells[cells["state"].isin(SCHEDULED)]["fault"].unique()
    if not len(scheduled):
        missing = "planned" if cells.empty else "scheduled"
        # A chart of no fault would only be an empty grid; why there is none is said instead.
        return draw_message(title, f"no fault was {missing} in this run")
    cells = cells[cells["fault"].isin(scheduled)]
    attempts_by_fault = cells.groupby("fault")["attempts"].sum().sort_values(ascending=False, kind="stable").index
    rows, targets = [*attempts_by_fault[:ROWS]], [*cells["target"].unique()[:COLUMNS]]
    note = "0/3: of 3 judged trials that met this fault alone 0 did not end well, with the 95 % interval over prompts; "
    note += "*: each met others too; colour: the worst outcome; most met first"
    hidden = {"faults": len(attempts_by_fault) - len(rows), "targets": cells["target"].nunique() - len(targets)}
    hidden_notes = [f"{hidden_count} more {kind}" for kind, hidden_count in hidden.items() if hidden_count]
    note += f"; {' and '.join(hidden_notes)} in the report" if hidden_notes else ""
    figure, axes = make_canvas(title, note, height_in=2.1 + 0.46 * len(rows))
    legend_patches: dict[str, Patch] = {}
    # "" and 0, since NA of pandas is neither true nor false.
    drawn_cells = cells[cells["fault"].isin(rows) & cells["target"].isin(targets)].fillna({"worst": "", "judged": 0})
    for cell in drawn_cells.itertuples():
        x, y = targets.index(cell.target), rows.index(cell.fault)
        fill, hatch, label = EMPTY, None, ""
        if cell.worst:
            fill, label = outcome_color(Outcome(cell.worst)), outcome_word(Outcome(cell.worst))
        elif cell.state == CellState.UNMET:
            hatch, label = "////", "scheduled, not witnessed"
        elif cell.state == CellState.NOT_RUN:
            fill, label = IDLE, "not run"
        box = Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=fill, edgecolor=EDGE, hatch=hatch)
        axes.add_patch(box)
        if label:
            legend_patches.setdefault(label, Patch(facecolor=fill, edgecolor=EDGE, hatch=hatch, label=label))
        if cell.state == CellState.MET:
            cell_text = "0 judged"
            if cell.judged:
                cell_text = f"{cell.bad}/{cell.judged}{'*' if cell.mixed else ''}\n{cell.low:.0%}–{cell.high:.0%}"
            axes.text(x, y, cell_text, ha="center", va="center", fontsize=7.5, color=choose_ink(fill))
    upright = sum(map(len, targets)) > UPRIGHT
    axes.set_xticks(range(len(targets)), shorten_all(targets, 22), rotation=90 if upright else 0)
    axes.set_yticks(range(len(rows)), shorten_all(rows))
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
    draw_keys(figure, handles, [str(patch.get_label()) for patch in handles])
    return figure
