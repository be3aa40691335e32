"""The trials of a run as rows: outcome, reason, evidence, calls and the faults met."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from chaoslab.analysis.measures.calls import retries
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Basis, Outcome, Said, World
from chaoslab.core.events import CallFinished, FaultWitnessed, PromptFinished, PromptStarted
from chaoslab.record.history import History
from chaoslab.record.rulings import TrialRuling
from chaoslab.reports.contents.outcomes import SEVERITY, word
from chaoslab.reports.text import visible

PROMPT, WHY, ANSWER = 300, 1000, 2000
"""The most characters of a prompt, of a reason or a finding, and of an answer."""


@dataclass(frozen=True)
class Line:
    """A line of a log: the file's name in the run's folder, and the line's number from 1."""

    file: str
    line: int


@dataclass(frozen=True)
class Evidence:
    """One finding behind a verdict, and the lines of the log that show it."""

    kind: str
    text: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Row:
    """One trial. `world`, `said`, `basis`, `certain`: as a `Verdict` has them. `seconds`: its duration in its
    world's time, None if it is not known. `calls`, `failed`: attempts at
    calls, and those that failed; those that were given up did not. `retries`: attempts after the first of a request,
    without fallbacks. `met`: each fault that was witnessed, with its target. `ruling`: the scenario's, if one ran it.
    """

    trial: str
    prompt: str
    outcome: Outcome
    world: World
    said: Said
    basis: Basis
    certain: bool
    standing: Standing
    why: str
    ruling: TrialRuling | None
    harm: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    answer: str
    seconds: float | None
    calls: int
    failed: int
    retries: int
    met: tuple[tuple[str, str], ...]

    @property
    def word(self) -> str:
        """The outcome in words, with ≈ before it if it rests on words alone."""
        return word(self.outcome) if self.certain else f"≈ {word(self.outcome)}"

    @property
    def told(self) -> str:
        """The reason why the scenario did not let it pass, without the outcome, which stands before it; else the reason
        for its outcome."""
        if self.ruling is None or not self.ruling.reasons:
            return self.why
        before = f"{self.outcome}: " if self.certain else f"≈ {self.outcome}: "
        return "; ".join(reason.removeprefix(before) for reason in self.ruling.reasons)


def rows(history: History, report: RunReport) -> tuple[Row, ...]:
    """All trials, worst first, then those that met a fault, of these the fewest faults first, and else in the order in
    which they began. Where a scenario ruled on them, those that failed come first."""
    prompts = {record.trial: event.prompt for record, event in history.of(PromptStarted)}
    ends = {record.trial: event for record, event in history.of(PromptFinished)}
    calls = Counter(trial for trial, _, _, _ in history.made)
    failed: Counter[str | None] = Counter()
    again = Counter(trial for trial, _, _, _ in retries(history))
    gone = history.given_up
    for record, call, at in history.placed(CallFinished):
        failed[record.trial] += not call.ok and at not in gone
    met: dict[str | None, dict[tuple[str, str], None]] = {}
    for record, fault in history.of(FaultWitnessed):
        met.setdefault(record.trial, {})[visible(fault.fault, PROMPT), visible(fault.target, PROMPT)] = None
    foreign = bool(history.unknown)

    def row(trial: str) -> Row:
        verdict, end = report.verdicts[trial], ends.get(trial)
        return Row(
            trial=trial,
            prompt=visible(prompts.get(trial, ""), PROMPT),
            outcome=verdict.outcome,
            world=verdict.world,
            said=verdict.said,
            basis=verdict.basis,
            certain=verdict.certain,
            standing=report.standings[trial],
            ruling=_shown(report.rulings.by_trial.get(trial) if report.rulings else None),
            why=visible(verdict.why, WHY),
            harm=tuple(visible(text, WHY) for text in verdict.harm),
            evidence=tuple(
                Evidence(str(found.kind), visible(found.text, WHY), () if foreign else lines(found.lines))
                for found in verdict.evidence
            ),
            answer=visible(end.answer, ANSWER) if end else "",
            seconds=end.duration_s if end and not math.isnan(end.duration_s) else None,
            calls=calls[trial],
            failed=failed[trial],
            retries=again[trial],
            met=tuple(met.get(trial, ())),
        )

    def place(one: Row) -> tuple[bool, int, bool, int]:
        passed = one.ruling is None or one.standing is not Standing.BAD
        return passed, SEVERITY.index(one.outcome), not one.met, len(one.met)

    return tuple(sorted(map(row, report.trials), key=place))


def _shown(ruling: TrialRuling | None) -> TrialRuling | None:
    """The ruling with texts that are safe to show."""
    if ruling is None:
        return None
    return replace(ruling, reasons=tuple(visible(text, WHY) for text in ruling.reasons))


def lines(found: Iterable[tuple[str, int]]) -> tuple[Line, ...]:
    """The lines of these writers and sequence numbers: a writer has one file, and each line the next number."""
    return tuple(Line(f"{visible(writer, PROMPT)}.log", seq) for writer, seq in found)
