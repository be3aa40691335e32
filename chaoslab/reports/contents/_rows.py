"""The trials of a run as rows (outcome, reason, evidence, calls and the faults met), and those that ended alike as one
way to fail."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import TrialFigures
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Basis, Outcome, Said, WorldState
from chaoslab.core.events import PromptFinished
from chaoslab.record.history import History
from chaoslab.record.rulings import RulingState, TrialRuling
from chaoslab.reports.contents.outcomes import SEVERITY, outcome_word
from chaoslab.reports.page import NAMED, group_alike_texts
from chaoslab.reports.text import escape_and_shorten
from chaoslab.reports.trials import WORST_FIRST

PROMPT, WHY, ANSWER = 300, 1000, 2000
"""The most characters of a prompt, of a reason or a finding, and of an answer."""


@dataclass(frozen=True)
class LogLine:
    """A line of a log: the file's name in the run's folder, and the line's number from 1."""

    file: str
    line: int


@dataclass(frozen=True)
class FindingRow:
    """One finding behind a verdict, and the lines of the log that show it."""

    kind: str
    text: str
    lines: tuple[LogLine, ...]


@dataclass(frozen=True)
class TrialRow:
    """One trial. `world`, `said`, `basis`, `hint`: as a `Verdict` has them. `seconds`: its duration in its
    world's time, None if it is not known. `calls`, `failed`: attempts at
    calls, and those that failed; those that were given up did not. `retries`: attempts after the first of a request,
    without fallbacks. `met`: each fault that was witnessed, with its target. `ruling`: the scenario's, if one ran it.
    """

    trial: str
    prompt: str
    outcome: Outcome
    world: WorldState
    said: Said
    basis: Basis
    hint: str
    standing: Standing
    why: str
    ruling: TrialRuling | None
    harm: tuple[str, ...]
    evidence: tuple[FindingRow, ...]
    answer: str
    seconds: float | None
    calls: int
    failed: int
    retries: int
    met: tuple[tuple[str, str], ...]

    @property
    def outcome_text(self) -> str:
        """The outcome in words."""
        return outcome_word(self.outcome)

    @property
    # The outcome stands before it already: said twice it would look like two reasons.
    def reason_text(self) -> str:
        """The reason why the scenario did not let it pass, without the outcome, which stands before it; else the reason
        for its outcome."""
        if self.ruling is None or not self.ruling.reasons:
            return self.why
        return "; ".join(reason.removeprefix(f"{self.outcome}: ") for reason in self.ruling.reasons)


def sort_trials_worst_first(report: RunReport) -> list[str]:
    """All trials, worst first, then those that met a fault, of these the fewest faults first, and else in the order in
    which they began. Where a scenario ruled on them, those that failed come first."""
    ruled = report.rulings.by_trial if report.rulings is not None else {}

    def rank_trial(trial: str) -> tuple[bool, int, bool, int]:
        passed, fault_count = (
            trial not in ruled or report.standings[trial] is not Standing.BAD,
            report.met.get(trial, 0),
        )
        # One fault first: what met several has several causes.
        return passed, SEVERITY.index(report.verdicts[trial].outcome), not fault_count, fault_count

    return sorted(report.trials, key=rank_trial)


def trial_needs_attention(report: RunReport, trial: str) -> bool:
    """True if the trial failed, could not do all or proves nothing: `chaoslab show --failed` shows it, or its scenario
    did not let it pass."""
    return report.verdicts[trial].outcome in WORST_FIRST or report.standings[trial] is Standing.BAD


def build_trial_rows(report: RunReport, trials: Iterable[str], stories: History | None = None) -> tuple[TrialRow, ...]:
    """These trials, in this order. `stories`: those of the trials; without them no answer is known."""
    ends = {} if stories is None else {record.trial: event for record, event in stories.find_events(PromptFinished)}
    figures = report.figures.value.figures_by_key
    # Many trials have the same prompt and reason, and making a text safe takes time.
    texts: dict[tuple[str, int], str] = {}

    def shorten(text: str, length_max: int) -> str:
        if (text, length_max) not in texts:
            texts[text, length_max] = escape_and_shorten(text, length_max)
        return texts[text, length_max]

    def build_row(trial: str) -> TrialRow:
        verdict, trial_figures = report.verdicts[trial], figures.get(trial, TrialFigures())
        return TrialRow(
            trial=trial,
            prompt=shorten(trial_figures.prompt[1] if trial_figures.prompt else "", PROMPT),
            outcome=verdict.outcome,
            world=verdict.world,
            said=verdict.said,
            basis=verdict.basis,
            hint=shorten(verdict.hint, WHY),
            standing=report.standings[trial],
            ruling=_sanitize_ruling(report.rulings.by_trial.get(trial) if report.rulings else None),
            why=shorten(verdict.why, WHY),
            harm=tuple(shorten(text, WHY) for text in verdict.harm),
            evidence=tuple(
                FindingRow(str(finding.kind), shorten(finding.text, WHY), positions_to_log_lines(finding.lines))
                for finding in verdict.evidence
            ),
            # Each answer is another text: kept, all of them would be held twice.
            answer=escape_and_shorten(ends[trial].answer, ANSWER) if trial in ends else "",
            seconds=trial_figures.took_s,
            calls=trial_figures.attempts,
            failed=trial_figures.failed,
            retries=trial_figures.retries,
            met=tuple((shorten(fault, PROMPT), shorten(target, PROMPT)) for (fault, target), _ in trial_figures.met),
        )

    return tuple(map(build_row, trials))


def _sanitize_ruling(ruling: TrialRuling | None) -> TrialRuling | None:
    """The ruling with texts that are safe to show."""
    if ruling is None:
        return None
    return replace(ruling, reasons=tuple(escape_and_shorten(text, WHY) for text in ruling.reasons))


def positions_to_log_lines(positions: Iterable[tuple[str, int]]) -> tuple[LogLine, ...]:
    """The lines of these writers and sequence numbers: a writer has one file, and each line the next number."""
    return tuple(LogLine(f"{escape_and_shorten(writer, PROMPT)}.log", seq) for writer, seq in positions)


@dataclass(frozen=True)
class FailureWay:
    """A way to fail. `said`: the outcome, or a scenario's ruling. `trials`: those that ended so, in their order."""

    said: str
    why: str
    trials: tuple[str, ...]

    @property
    def heading(self) -> str:
        """The outcome with the number of its trials, or with the trial if it is one: 12 × wrong, p1.r1 wrong."""
        return f"{len(self.trials)} × {self.said}" if self.trials[1:] else f"{self.trials[0]} {self.said}"

    @property
    def examples_text(self) -> str:
        """Some of its trials, if it has several, as an addition: (p1.r1, p2.r1, p3.r1 …)."""
        return f" ({', '.join(self.trials[:NAMED])}{' …' if self.trials[NAMED:] else ''})" if self.trials[1:] else ""


def group_failures(report: RunReport, order: Sequence[str]) -> tuple[FailureWay, ...]:
    """The ways of the trials that failed, could not do all or prove nothing, or that a scenario did not let pass: in
    the order of the trials, and of those that ended so the most frequent first."""
    by_outcome: dict[str, list[tuple[str, str]]] = {}
    for outcome_text, reason, trial in _list_failing_trials(report, order):
        by_outcome.setdefault(outcome_text, []).append((reason, trial))
    return tuple(
        FailureWay(outcome_text, escape_and_shorten(reason, WHY), tuple(trials))
        for outcome_text, cases in by_outcome.items()
        for reason, trials in group_alike_texts(cases)
    )


def _list_failing_trials(report: RunReport, order: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    ruled = report.rulings.by_trial if report.rulings is not None else {}
    for trial in order:
        verdict, ruling = report.verdicts[trial], ruled.get(trial)
        if ruling is not None and ruling.state is not RulingState.PASSED:
            yield ruling.state, "; ".join(ruling.reasons) or verdict.why, trial
        elif ruling is None and trial_needs_attention(report, trial):
            yield outcome_word(verdict.outcome), verdict.why, trial
