"""Experiments that were done, as rows, and the sums of them that planning asks for: of one agent, the trials of its
last revision apart from those of earlier ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.dose import DoseRange, compute_dose_range

BAD, HARM = "bad", "harm"


@dataclass(frozen=True)
class Experiment:
    """The trials of one run that met one cell; `cell` None: those that met no fault.

    `subject`: the agent. `tried`: the trials that allow a conclusion and met no other fault; `bad`, `harm`: those of
    them that ended badly, and that did harm; `near`: near misses, which ended well though a part was not done;
    `outcomes`: all of them, by name. `joint`, `joint_bad`: the trials that met other faults too, which credit none.
    `void`: the trials with it alone that allow no conclusion, and those of a search that were to meet it and did not.
    `affected`: by other target, the trials with this fault alone in which its calls failed and did not in the twin,
    those in which it was the other way round, and all. `drew`: a trial drew chance of its own.
    `incidents`, `recovered`, `repair_s`: the requests that met the fault, those that recovered, and the sum of their
    times. `seconds`, `squares`: the sums of the durations, and of their squares, of `timed` trials.
    `revision`: that of the agent's code.
    """

    subject: str
    cell: Cell | None
    tried: int = 0
    bad: int = 0
    harm: int = 0
    near: int = 0
    joint: int = 0
    joint_bad: int = 0
    void: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    affected: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    drew: bool = False
    incidents: int = 0
    recovered: int = 0
    repair_s: float = 0.0
    timed: int = 0
    seconds: float = 0.0
    squares: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    world: str = ""
    revision: str = ""


@dataclass(frozen=True)
class TargetKnowledge:
    """The knowledge of a target: the trials, those that called it, its effects and those that can be taken back."""

    trials: int = 0
    called: int = 0
    effects: int = 0
    undoable: int = 0

    def __add__(self, more: "TargetKnowledge") -> "TargetKnowledge":
        return TargetKnowledge(
            self.trials + more.trials,
            self.called + more.called,
            self.effects + more.effects,
            self.undoable + more.undoable,
        )


@dataclass(frozen=True)
class Tally:
    """A sum of trials: all, the bad ones and the harmful ones."""

    tried: int = 0
    bad: int = 0
    harm: int = 0

    def __add__(self, more: "Tally | Experiment") -> "Tally":
        return Tally(self.tried + more.tried, self.bad + more.bad, self.harm + more.harm)

    def __sub__(self, fewer: "Tally") -> "Tally":
        return Tally(self.tried - fewer.tried, self.bad - fewer.bad, self.harm - fewer.harm)

    def count_trials_ended(self, end: str) -> int:
        """The trials that ended in BAD or HARM."""
        return self.harm if end == HARM else self.bad


class Evidence:
    """The experiments of one agent. `revision`: the one that counts, by default that of the last row; trials of others
    are earlier ones. `targets`: its targets by name. `faults`: those that were tried at any agent."""

    def __init__(
        self,
        subject: str,
        rows: Iterable[Experiment] = (),
        targets: Mapping[str, TargetKnowledge] | None = None,
        *,
        revision: str | None = None,
        faults: Iterable[str] = (),
    ) -> None:
        rows = [*rows]
        self.subject = subject
        self.revision = revision if revision is not None else rows[-1].revision if rows else ""
        self.targets = dict(targets or {})
        self.faults = frozenset(faults)
        self.rows: list[Experiment] = []
        self.calm = Tally()
        """The trials without a fault."""
        self.cells: dict[Cell, Tally] = {}
        """By cell, without its exact dose, of the revision that counts."""
        self.older: dict[Cell, dict[str, Tally]] = {}
        """The same by earlier revision, the last one last."""
        self._doses: dict[bool, dict[tuple[str, str, str], dict[float, list[float]]]] = {
            True: defaultdict(dict),
            False: defaultdict(dict),
        }
        self.void: Counter[Cell] = Counter()
        """The trials of a cell that taught nothing, of the revision that counts."""
        self.near: Counter[str] = Counter()
        """Near misses by target."""
        for row in rows:
            self.add_row(row)

    def add_row(self, row: Experiment) -> None:
        self.rows.append(row)
        counts = row.revision == self.revision
        if row.cell is None:
            self.calm += row if counts else Tally()
            return
        cell = row.cell.dose_bucket_cell
        if row.void and counts:
            self.void[cell] += row.void
        if not row.tried:
            return
        if counts:
            self.cells[cell] = self.cells.get(cell, Tally()) + row
            self.near[cell.target] += row.near
        else:
            earlier = self.older.setdefault(cell, {})
            # Put back at the end, so that the last revision stands last.
            earlier[row.revision] = earlier.pop(row.revision, Tally()) + row
        # By the exact dose, unlike the cells: the edge is looked for within a bucket too.
        if row.cell.dose is not None:
            dose_key = row.cell.target, row.cell.fault, row.cell.how
            at = self._doses[counts][dose_key].setdefault(row.cell.dose, [0.0, 0.0])
            at[0], at[1] = at[0] + row.tried, at[1] + row.bad

    def has_effects(self, target: str) -> bool:
        """True if the target is known to have effects."""
        return target in self.targets and self.targets[target].effects > 0

    def list_rows_at(self, target: str) -> Iterator[Experiment]:
        """The rows at a target."""
        return (row for row in self.rows if row.cell is not None and row.cell.target == target)

    def sum_trial_tallies(self, target: str, fault: str = "") -> Tally:
        """The trials that count with a fault at a target, of any kind and dose; without `fault`, with any."""
        tallies = (t for cell, t in self.cells.items() if cell.target == target and fault in ("", cell.fault))
        return reduce(Tally.__add__, tallies, Tally())

    def get_dose_range(self, cell: Cell) -> DoseRange:
        """The known safe and unsafe doses of a cell's fault at its target: of the revision that counts, or of earlier
        ones if it was not tried since."""
        dose_key = cell.target, cell.fault, cell.how
        return compute_dose_range(self._doses[True].get(dose_key) or self._doses[False].get(dose_key, {}))
