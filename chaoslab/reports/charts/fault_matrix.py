"""The outcomes of the trials that met each fault at each target."""

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.reports._types import Figure
from chaoslab.reports.charts._style import canvas, keys, nothing, shorts
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
    from chaoslab.reports.contents.outcomes import SEVERITY, color, ink_on, word

    found, title = run.matrix, "Outcomes by fault and target"
    scheduled = found[found["state"].isin(SCHEDULED)]["fault"].unique()
    if not len(scheduled):
        which = "planned" if found.empty else "scheduled"
        return nothing(title, f"no fault was {which} in this run")
    found = found[found["fault"].isin(scheduled)]
    met = found.groupby("fault")["attempts"].sum().sort_values(ascending=False, kind="stable").index
    rows, targets = [*met[:ROWS]], [*found["target"].unique()[:COLUMNS]]
    note = "0/3: of 3 judged trials that met this fault alone 0 did not end well, with the 95 % interval over prompts; "
    note += "*: each met others too; colour: the worst outcome; most met first"
    hidden = {"faults": len(met) - len(rows), "targets": found["target"].nunique() - len(targets)}
    left = [f"{more} more {what}" for what, more in hidden.items() if more]
    note += f"; {' and '.join(left)} in the report" if left else ""
    figure, axes = canvas(title, note, height_in=2.1 + 0.46 * len(rows))
    seen: dict[str, Patch] = {}
    shown = found[found["fault"].isin(rows) & found["target"].isin(targets)].fillna({"worst": "", "judged": 0})
    for cell in shown.itertuples():
        x, y = targets.index(cell.target), rows.index(cell.fault)
        ground, hatch, label = EMPTY, None, ""
        if cell.worst:
            ground, label = color(Outcome(cell.worst)), word(Outcome(cell.worst))
        elif cell.state == CellState.UNMET:
            hatch, label = "////", "scheduled, not witnessed"
        elif cell.state == CellState.NOT_RUN:
            ground, label = IDLE, "not run"
        box = Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=ground, edgecolor=EDGE, hatch=hatch)
        axes.add_patch(box)
        if label:
            seen.setdefault(label, Patch(facecolor=ground, edgecolor=EDGE, hatch=hatch, label=label))
        if cell.state == CellState.MET:
            said = "0 judged"
            if cell.judged:
                said = f"{cell.bad}/{cell.judged}{'*' if cell.mixed else ''}\n{cell.low:.0%}–{cell.high:.0%}"
            axes.text(x, y, said, ha="center", va="center", fontsize=7.5, color=ink_on(ground))
    upright = sum(map(len, targets)) > UPRIGHT
    axes.set_xticks(range(len(targets)), shorts(targets, 22), rotation=90 if upright else 0)
    axes.set_yticks(range(len(rows)), shorts(rows))
    axes.tick_params(length=0, labelsize=8.5)
    axes.set_xlim(-0.5, max(len(targets), LEAST) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("target (trials that met the fault)", loc="left" if len(targets) < LEAST else "center")
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    order = [word(outcome) for outcome in SEVERITY]
    handles = sorted(seen.values(), key=lambda patch: [*order, str(patch.get_label())].index(str(patch.get_label())))
    keys(figure, handles, [str(patch.get_label()) for patch in handles])
    return figure
