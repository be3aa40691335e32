"""Experiments that were done, as rows, and the sums of them that planning asks for."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.dose import DoseRange, range_of

BAD, HARM = "bad", "harm"


@dataclass(frozen=True)
class Experiment:
    """The trials of one run that met one cell; `cell` None: those that met no fault.

    `subject`: the scenario's name, or the agent's. `tried`: the trials that allow a conclusion. `bad`: those that ended
    badly; `blame`: the same, each divided by the number of cells that it met; `alone`: those that met no other. `harm`,
    `harm_blame`: those with harm, likewise. `near`: near misses, which ended well though a part was not done.
    `outcomes`: all, by name. `affected`: by other target, the trials in which its calls failed though
    no fault was there, and those that called it.
    `incidents`, `recovered`, `repair_s`: the requests that met the fault, those that recovered, and the sum of their
    times. `seconds`, `squares`: the sums of the durations, and of their squares, of `timed` trials.
    """

    subject: str
    cell: Cell | None
    tried: int = 0
    bad: int = 0
    blame: float = 0.0
    alone: int = 0
    harm: int = 0
    harm_blame: float = 0.0
    near: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    affected: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    incidents: int = 0
    recovered: int = 0
    repair_s: float = 0.0
    timed: int = 0
    seconds: float = 0.0
    squares: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    world: str = ""

    @property
    def weight(self) -> float:
        """The trials that say something of this cell alone: one that ended well counts whole, one that ended badly by
        its share of the blame."""
        return self.tried - self.bad + self.blame


@dataclass(frozen=True)
class TargetKnowledge:
    """The knowledge of a target: the trials, those that called it, its effects and those that can be taken back."""

    trials: int = 0
    called: int = 0
    effects: int = 0
    undoable: int = 0

    def __add__(self, other: "TargetKnowledge") -> "TargetKnowledge":
        return TargetKnowledge(
            self.trials + other.trials, self.called + other.called, self.effects + other.effects,
            self.undoable + other.undoable,
        )  # fmt: skip


@dataclass
class Count:
    """A sum of trials: those that count, and the bad ones and the harmful ones among them."""

    weight: float = 0.0
    bad: float = 0.0
    harm: float = 0.0

    def add(self, each: Experiment) -> None:
        self.weight += each.weight
        self.bad += each.blame
        self.harm += each.harm_blame

    def of(self, what: str) -> float:
        return self.harm if what == HARM else self.bad


class Evidence:
    """All experiments, summed by cell, by fault, by target and by subject. Rows may be added at any time."""

    def __init__(
        self, rows: Iterable[Experiment] = (), targets: Mapping[tuple[str, str], TargetKnowledge] | None = None
    ) -> None:
        self.cells: dict[tuple[str, str], Count] = defaultdict(Count)
        """By subject and the key of the cell."""
        self.places: dict[tuple[str, str, str], Count] = defaultdict(Count)
        """By subject, fault and target."""
        self.faults: dict[tuple[str, str, bool], Count] = defaultdict(Count)
        """By fault, kind and whether the target changes something, over all subjects."""
        self.of_subject: dict[tuple[str, str, str, bool], Count] = defaultdict(Count)
        """The same of one subject."""
        self.doses: dict[tuple[str, str, str, str], dict[float, list[float]]] = defaultdict(dict)
        """By subject, target, fault and kind: trials and bad ones, by dose."""
        self.outcomes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        """By subject and the key of the cell, which is empty for trials without a fault."""
        self.near: Counter[tuple[str, str]] = Counter()
        """Near misses by subject and target."""
        self.met: Counter[tuple[str, str]] = Counter()
        """The trials that met a fault, by subject and target."""
        self.rows: list[Experiment] = []
        self.by_subject: dict[str, list[Experiment]] = defaultdict(list)
        self.targets: dict[tuple[str, str], TargetKnowledge] = dict(targets or {})
        for each in rows:
            self.add(each)

    def add(self, each: Experiment) -> None:
        cell, subject = each.cell, each.subject
        self.rows.append(each)
        self.by_subject[subject].append(each)
        self.outcomes[subject, "" if cell is None else cell.key].update(each.outcomes)
        if cell is None:
            return
        kind = (cell.fault, cell.how, self.changes(subject, cell.target))
        for count in (
            self.cells[subject, cell.key], self.places[subject, cell.fault, cell.target], self.faults[kind],
            self.of_subject[subject, *kind],
        ):  # fmt: skip
            count.add(each)
        self.near[subject, cell.target] += each.near
        self.met[subject, cell.target] += each.tried
        if cell.dose is not None:
            at = self.doses[subject, cell.target, cell.fault, cell.how].setdefault(cell.dose, [0.0, 0.0])
            at[0] += each.tried - each.bad + each.alone
            at[1] += each.alone

    def changes(self, subject: str, target: str) -> bool:
        """True if the target is known to have effects."""
        found = self.targets.get((subject, target))
        return found is not None and found.effects > 0

    def range(self, subject: str, cell: Cell) -> DoseRange:
        """The known safe and unsafe doses of a cell's fault at its target."""
        return range_of(self.doses.get((subject, cell.target, cell.fault, cell.how), {}))

    def ranges(self) -> Iterable[tuple[tuple[str, str, str, str], DoseRange]]:
        """All of them, by subject, target, fault and kind."""
        return ((key, range_of(found)) for key, found in sorted(self.doses.items()))
