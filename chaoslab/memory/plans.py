"""A plan: proposals with everything filled in, and what came of those that were run, as text and as JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from chaoslab.base.durations import format_long_duration
from chaoslab.base.jsonable import join_truncated, render_brief
from chaoslab.reports.page import format_count
from chaoslab.search.planning.cells import Cell
from chaoslab.search.planning.chances import Prediction, brier_score
from chaoslab.search.planning.design import Design, Enhanced, fill_missing_fields
from chaoslab.search.planning.evidence import Evidence
from chaoslab.search.planning.proposals import Proposal
from chaoslab.search.variation import TriedVariation


@dataclass(frozen=True)
class PlanEntry:
    """A proposal with everything filled in. `command`: it runs it; Python text if no scenario's file does."""

    proposal: Proposal
    enhanced: Enhanced
    command: str

    @property
    def design(self) -> Design:
        return self.enhanced.design

    def describe_in_words(self, number: int) -> str:
        """The proposal in lines."""
        proposal = self.proposal
        cost = "1 trial" if proposal.cost == 1 else f"1 trial, about {format_long_duration(proposal.cost)}"
        lines = [
            f"{number}. {proposal.cell}",
            f"   {proposal.reason}",
            f"   risk {proposal.risk}; cost: {cost}",
            f"   {proposal.prediction}",
        ]
        lines += [
            f"   {entry}" for entry in self.enhanced.changes if entry.what.partition(".")[0] in ("params", "deadline_s")
        ]
        limits = [f"{name} {render_brief(value, 60)}" for name, value in self.design.run_limits.to_json().items()]
        safety = (("within", limits), ("stop at", self.design.stop), ("watch", self.design.watch))
        safety_text = "; ".join(f"{verb} {', '.join(entry)}" for verb, entry in safety if entry)
        return "\n".join([*lines, f"   {safety_text}", f"   {self.command}"])

    def to_dict(self) -> dict[str, Any]:
        """The proposal as JSON values."""
        proposal, design = self.proposal, self.design
        return {
            "target": proposal.cell.target,
            "fault": proposal.cell.fault,
            "how": proposal.cell.how,
            "params": proposal.cell.parameters_for_inject,
            "reason": proposal.reason,
            **prediction_to_dict(proposal.prediction),
            "risk": proposal.risk.value,
            "factors": dict(proposal.risk.factors),
            "cost": proposal.cost,
            "command": self.command,
            "watch": [*design.watch],
            "stop": [*design.stop],
            "limits": design.run_limits.to_json(),
            "deadline_s": design.deadline_s,
            "changes": [{"what": change.what, "evidence": change.evidence} for change in self.enhanced.changes],
        }


def prediction_to_dict(prediction: Prediction) -> dict[str, Any]:
    """A prediction as JSON values: None and the reason where nothing is said."""
    bad, base = (None, None) if prediction.why else (prediction.bad, prediction.base)
    return {"bad": bad, "base": base, "trials": prediction.trials, "why": prediction.why}


@dataclass(frozen=True)
class RunPrediction:
    """The predictions for a run beside what came. `bad` of `judged` trials ended badly. `predicted`: the chances of the
    trials of which something is said; `scores`, `base_scores`: Brier's scores of these, and of their base rates.
    `why`: the reason why nothing is said of others."""

    judged: int
    bad: int
    predicted: Sequence[float]
    scores: Sequence[float]
    base_scores: Sequence[float]
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The predictions as JSON values."""
        counts = {"judged": self.judged, "bad": self.bad, "predicted": len(self.predicted)}
        if not self.predicted:
            return {**counts, "why": self.why}
        return {**counts, "mean": fmean(self.predicted), "brier": fmean(self.scores), "base": fmean(self.base_scores)}

    def __str__(self) -> str:
        outcome_text = f"{self.bad} of {format_count(self.judged, 'judged trial')} ended badly"
        if not self.predicted:
            return f"{outcome_text}; nothing is predicted: {self.why}"
        prediction_text = f"for {len(self.predicted)} of them {fmean(self.predicted):.0%} was predicted"
        remainder = f"; of others nothing is said: {self.why}" if len(self.predicted) < self.judged else ""
        scores = f"{fmean(self.scores):.3f}, that of the base rate {fmean(self.base_scores):.3f}"
        return f"{outcome_text}; {prediction_text}, Brier score {scores} (0 is best, 1 is worst){remainder}"


@dataclass(frozen=True)
class RunProposal:
    """An experiment that a plan ran. `void`: it taught nothing. `held`: the limit that held its fault back, so that
    nothing was learnt; empty if none did."""

    cell: Cell
    tried: TriedVariation
    prediction: Prediction
    void: bool = False
    held: str = ""

    @property
    def brier_scores(self) -> tuple[float, float] | None:
        """Brier's scores of the prediction and of its base rate; None if nothing was said, or nothing came."""
        prediction, bad = self.prediction, self.tried.failed
        return (
            None
            if self.void or prediction.why
            else (brier_score(prediction.bad, bad), brier_score(prediction.base, bad))
        )

    def to_dict(self) -> dict[str, Any]:
        """The experiment as JSON values."""
        head = {"cell": str(self.cell), "outcome": self.tried.outcome, "failed": self.tried.failed}
        details = {"why": self.tried.why, "held": self.held, "brier": self.brier_scores and self.brier_scores[0]}
        return {**head, **details, "predicted": prediction_to_dict(self.prediction)}

    def __str__(self) -> str:
        if self.held:
            return f"{self.cell}: held back, {self.held}"
        unmet = "" if self.tried.met else ", the fault was not met"
        return f"{self.cell}: {self.tried.outcome}{f', {self.tried.why}' if self.tried.failed else unmet}"


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
        return fill_missing_fields(experiment, self.evidence)

    @property
    def mean_brier_scores(self) -> tuple[float, float, int] | None:
        """The mean Brier scores of the predictions and of their base rates, and their number; None without any."""
        scores = [entry.brier_scores for entry in self.done if entry.brier_scores is not None]
        scores_own, base = zip(*scores, strict=True) if scores else ((), ())
        return (fmean(scores_own), fmean(base), len(scores)) if scores else None

    def __str__(self) -> str:
        lines = [self.subject]
        lines += [str(proposal) for proposal in self.done]
        if self.done:
            failed = [proposal for proposal in self.done if proposal.tried.failed]
            harm = sum(bool(proposal.tried.harm) for proposal in failed)
            lines.append(
                f"{format_count(len(self.done), 'trial')}, {len(failed)} failed, {harm} with harm; {self.ended}"
            )
            if (brier_scores := self.mean_brier_scores) is not None:
                score, base, score_count = brier_scores
                lines.append(
                    f"predictions: Brier score {score:.3f}, the base rate's {base:.3f}, "
                    f"{format_count(score_count, 'trial')}"
                )
            else:
                lines.append("predictions: none")
        lines += [entry.describe_in_words(number) for number, entry in enumerate(self.entries, 1)]
        if not self.entries:
            lines.append("nothing is left to try" + (" under this risk" if self.left_out else ""))
        if self.left_out:
            lines.append(f"left out, above the risk allowed: {join_truncated(self.left_out, 3)}")
        return "\n".join(lines)

    __repr__ = __str__
