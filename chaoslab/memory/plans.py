"""A plan: proposals with everything filled in, and what came of those that were run, as text and as JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from chaoslab.base.durations import span
from chaoslab.base.jsonable import brief, listed
from chaoslab.reports.page import count
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.design import Design, Enhanced, enhance
from chaoslab.search.planning.evidence import Evidence
from chaoslab.search.planning.posterior import Prediction
from chaoslab.search.planning.proposals import Proposal
from chaoslab.search.variation import Tried


@dataclass(frozen=True)
class PlanEntry:
    """A proposal with everything filled in. `command`: it runs it; Python text if no scenario's file does."""

    proposal: Proposal
    enhanced: Enhanced
    command: str

    @property
    def design(self) -> Design:
        return self.enhanced.design

    def in_words(self, number: int) -> str:
        """The proposal in lines."""
        one = self.proposal
        harm, bad = (f"{each.mean:.0%}" for each in (one.harm, one.bad))
        cost = "1 trial" if one.cost == 1 else f"1 trial, about {span(one.cost)}"
        lines = [
            f"{number}. {one.cell}",
            f"   {one.reason}",
            f"   risk {one.risk}; a bad end {bad}, harm {harm}; cost: {cost}",
        ]
        lines += [
            f"   {each}" for each in self.enhanced.changes if each.what.partition(".")[0] in ("params", "deadline_s")
        ]
        limits = [f"{name} {brief(value, 60)}" for name, value in self.design.within.to_json().items()]
        safety = (("within", limits), ("stop at", self.design.stop), ("watch", self.design.watch))
        said = "; ".join(f"{does} {', '.join(each)}" for does, each in safety if each)
        return "\n".join([*lines, f"   {said}", f"   {self.command}"])

    def plain(self) -> dict[str, Any]:
        """The proposal as JSON values."""
        one, design = self.proposal, self.design
        return {
            "target": one.cell.target, "fault": one.cell.fault, "how": one.cell.how, "params": one.cell.parameters,
            "reason": one.reason, "bad": one.bad.mean, "harm": one.harm.mean, "risk": one.risk.value,
            "factors": dict(one.risk.factors), "cost": one.cost, "command": self.command, "watch": [*design.watch],
            "stop": [*design.stop], "limits": design.within.to_json(), "deadline_s": design.deadline_s,
            "changes": [{"what": each.what, "evidence": each.evidence} for each in self.enhanced.changes],
        }  # fmt: skip


@dataclass(frozen=True)
class RunProposal:
    """An experiment that a plan ran. `brier`: of its prediction; None if that was too little data. `held`: the limit
    that held its fault back, so that nothing was learnt; empty if none did."""

    cell: Cell
    tried: Tried
    prediction: Prediction
    brier: float | None
    held: str = ""

    def plain(self) -> dict[str, Any]:
        """The experiment as JSON values."""
        own = {"cell": str(self.cell), "outcome": self.tried.outcome, "failed": self.tried.failed}
        told = {"why": self.tried.why, "held": self.held, "brier": self.brier}
        return {**own, **told, "chances": dict(self.prediction.chances)}

    def __str__(self) -> str:
        if self.held:
            return f"{self.cell}: held back, {self.held}"
        return f"{self.cell}: {self.tried.outcome}{f', {self.tried.why}' if self.tried.failed else ''}"


@dataclass
class ProposedPlan:
    """The next experiments, the best first. `left_out`: those above the risk allowed. `done`: those that were run, in
    order; `folder`: the run that holds them. `ended`: why it ended."""

    subject: str
    evidence: Evidence
    entries: Sequence[PlanEntry] = ()
    left_out: Sequence[str] = ()
    done: list[RunProposal] = field(default_factory=list)
    folder: Path | None = None
    ended: str = ""

    def __iter__(self) -> Iterator[PlanEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def enhance(self, experiment: Design | Cell | Mapping[str, Any]) -> Enhanced:
        """A new experiment with what is missing filled in, and each change with its evidence. `experiment`: a mapping
        with `target`, `fault` and maybe `how`, `params`, `limits`, `stop`, `watch` and `deadline_s`. Raises ValueError,
        LookupError: something in it is wrong; one line."""
        return enhance(experiment, self.evidence, self.subject)

    @property
    def brier(self) -> tuple[float, int] | None:
        """The mean Brier score of the predictions, and their number; None if there was none."""
        scores = [each.brier for each in self.done if each.brier is not None]
        return (fmean(scores), len(scores)) if scores else None

    def __str__(self) -> str:
        lines = [self.subject]
        lines += [str(each) for each in self.done]
        if self.done:
            failed = [each for each in self.done if each.tried.failed]
            harm = sum(bool(each.tried.harm) for each in failed)
            lines.append(f"{count(len(self.done), 'trial')}, {len(failed)} failed, {harm} with harm; {self.ended}")
            if (found := self.brier) is not None:
                lines.append(f"predictions: Brier score {found[0]:.2f} over {count(found[1], 'trial')}")
            else:
                lines.append("predictions: too little data")
        lines += [entry.in_words(number) for number, entry in enumerate(self.entries, 1)]
        if not self.entries:
            lines.append("nothing is left to try" + (" under this risk" if self.left_out else ""))
        if self.left_out:
            lines.append(f"left out, above the risk allowed: {listed(self.left_out, 3)}")
        return "\n".join(lines)

    __repr__ = __str__
