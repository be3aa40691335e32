"""The experiments to do next: those with the most expected damage that is not known yet per cost, under the risk that
is allowed.

In turns: what broke before the agent's last change and was not tried since; then each fault at each target once, so
that nothing is tried twice while something was never tried; then the other kinds and doses; then what is known. Within
a turn by (harm + BADLY · (bad − harm)) · novelty / cost, where novelty is WORTH / (WORTH + trials of what is seen
alike at the target). Where nothing is known the stories decide (`chances.story_of`), so what cannot be undone comes
first, and each trial lowers all that is like it. Dice break ties alone; they are named by seed, round and cell.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chaoslab.base.dice import Dice
from chaoslab.search.planning._risk import Risk, compute_risk
from chaoslab.search.planning.cells import ONCE, Cell
from chaoslab.search.planning.chances import WORTH, Chances, Prediction
from chaoslab.search.planning.dose import DoseRange
from chaoslab.search.planning.evidence import HARM, Evidence, Tally

BADLY = 0.3
"""The worth of showing a bad end, beside that of showing harm."""


@dataclass(frozen=True)
class Proposal:
    """An experiment to do. `cost`: a trial's, in seconds, or 1 where no time passes. `seen`: the known doses of the
    fault there."""

    subject: str
    cell: Cell
    reason: str
    prediction: Prediction
    risk: Risk
    cost: float
    seen: DoseRange = field(default_factory=DoseRange)


@dataclass(frozen=True)
class Proposed:
    """The proposals, the best first. `too_risky`: the cells whose risk is above the allowed one, with it. `chances`:
    those that they were chosen by."""

    proposals: Sequence[Proposal]
    too_risky: Sequence[tuple[Cell, Risk]]
    chances: Chances = field(compare=False)


@dataclass(frozen=True)
class _Candidate:
    cell: Cell
    cost: float
    seen: DoseRange
    turn: int
    tie: float

    def compute_rank(self, chances: Chances) -> tuple[float, ...]:
        """The place among others, the least first. `chances`: the trials so far, and those proposed before it."""
        turn = self.turn
        # Tried, or proposed just now: its other kinds and doses wait until each fault had its turn.
        if turn == 1 and chances.get_tally_at_level(self.cell, "fault at").tried:
            turn = 2
        harm = chances.compute_bad_end_chance(self.cell, HARM)
        damage = harm + BADLY * max(0.0, chances.compute_bad_end_chance(self.cell) - harm)
        damage *= WORTH / (WORTH + chances.get_tally_at_level(self.cell, "seen at").tried)
        # Rounded, so that dice decide between cells that differ in their last digits alone.
        return turn, -round(damage / self.cost, 9), self.tie


def propose_experiments(
    evidence: Evidence,
    cells: Iterable[Cell],
    *,
    n: int = 5,
    seed: int = 0,
    risk: float = 1.0,
    costs: Mapping[Cell, float] | None = None,
    share: float = 1.0,
    stated: Mapping[str, float] | None = None,
    round_: int = 0,
) -> Proposed:
    """The best `n` of these cells, each once. `risk`: the most that is allowed. `costs`: of a trial; 1 by default.
    `round_`: counts the plans that are made one after the other with one seed."""
    chances, pretended = Chances(evidence), Chances(evidence)
    # Trials that taught nothing count for the order too, else what is alike would stay as new as before.
    for cell, count in evidence.void.items():
        pretended.add_trials(cell, Tally(count))
    candidates: list[_Candidate] = []
    risky: list[tuple[Cell, Risk]] = []
    for cell in dict.fromkeys(cells):
        dose_range, cost = evidence.get_dose_range(cell), (costs or {}).get(cell, 1.0)
        turn = _choose_priority_group(evidence, cell)
        if turn and cell.dose is not None and dose_range != DoseRange():
            if dose_range.next_dose is None:
                continue  # its edge is known
            cell = replace(cell, dose=dose_range.next_dose)
        tie = Dice(seed, "plan", round_, evidence.subject, str(cell)).uniform()
        if risk < 1 and (cell_risk := compute_risk(chances, cell, share=share, stated=stated)).value > risk:
            risky.append((cell, cell_risk))
        else:
            candidates.append(_Candidate(cell, cost, dose_range, turn, tie))
    proposals: list[Proposal] = []
    while candidates and len(proposals) < n:
        best = min(candidates, key=lambda candidate: candidate.compute_rank(pretended))
        candidates.remove(best)
        # As if it had been tried and gone well, so that the next proposal is about something else.
        pretended.add_trials(best.cell, Tally(1))
        cell_risk = compute_risk(chances, best.cell, share=share, stated=stated)
        reason, prediction = _explain_choice(chances, best.cell, best.seen), chances.predict([best.cell])
        proposals.append(Proposal(evidence.subject, best.cell, reason, prediction, cell_risk, best.cost, best.seen))
    return Proposed(proposals, sorted(risky, key=lambda candidate: (-candidate[1].value, str(candidate[0]))), chances)


def _choose_priority_group(evidence: Evidence, cell: Cell) -> int:
    if cell.dose_bucket_cell in evidence.cells or cell.dose_bucket_cell in evidence.void:
        return 3
    if find_earlier_failure(evidence, cell) is not None:
        return 0
    return 1 if cell.how == ONCE else 2


def find_earlier_failure(evidence: Evidence, cell: Cell) -> tuple[str, Tally] | None:
    """The last earlier revision at which a cell was tried, with its trials, if some ended badly."""
    *_, (revision, tally) = [("", Tally()), *evidence.older.get(cell.dose_bucket_cell, {}).items()]
    return (revision, tally) if tally.bad else None


def _explain_choice(chances: Chances, cell: Cell, dose_range: DoseRange) -> str:
    """The reason for a proposal, in one line."""
    evidence = chances.evidence
    if tally := evidence.cells.get(cell.dose_bucket_cell):
        statement = f"tried {tally.tried} times: it broke {tally.bad}"
        return f"{statement}; {dose_range}" if cell.dose is not None else statement
    if void := evidence.void[cell.dose_bucket_cell]:
        return f"tried {void} times: the fault was not met, or nothing can be concluded"
    if (before := find_earlier_failure(evidence, cell)) is not None:
        return f"broke {before[1].bad} of {before[1].tried} at {before[0] or 'an earlier revision'}, not tried since"
    if cell.dose is not None and dose_range.safe_and_unsafe_dose != (None, None):
        return f"never tried at this dose: {dose_range}"
    if tried := chances.get_tally_at_level(cell, "fault at").tried:
        return f"never tried {cell.how}: {cell.fault} at {cell.target} broke {evidence.sum_trial_tallies(cell.target, cell.fault).bad} of {tried} otherwise"  # noqa: E501
    statement, sight = f"never tried: {cell.fault} at {cell.target}", chances.classify_what_caller_sees(cell)
    if elsewhere := chances.get_tally_at_level(cell, "fault").tried:
        return f"{statement}; at other targets it broke {chances.get_tally_at_level(cell, 'fault').bad} of {elsewhere}"
    if sight.doubt:
        return f"{statement}; it is done, and the caller sees {sight.what}"
    return f"{statement}; the caller sees {sight.what}"
