"""A run in one sentence, with the numbers that it rests on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Rate, compute_flag_rate
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.standing import Standing, StandingCount, classify_share
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import format_duration
from chaoslab.record.rulings import Rulings, RulingState
from chaoslab.reports.contents._rows import WHY
from chaoslab.reports.contents._table import Figure
from chaoslab.reports.page import format_count, format_rate_in_percent
from chaoslab.reports.text import escape_and_shorten

HARMS = {
    FindingKind.DUPLICATE: "done more often than asked",
    FindingKind.PHANTOM: "done and never asked for",
    FindingKind.ALTERED: "done with other content",
    FindingKind.ORDER: "done in the wrong order",
    FindingKind.STATE: "left in a wrong end state",
    FindingKind.LOST: "not done",
}
"""The findings about the world, in words."""


class Tone(StrEnum):
    """The colour of a headline. OPEN: the run allows no conclusion."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


class Delivery(NamedTuple):
    """The faults of a run by stage. Only faults of the wire are armed."""

    scheduled: int
    armed: int
    injected: int
    witnessed: int


class Example(NamedTuple):
    """One text of a harm, the number of findings that have it, and the first trial that does."""

    text: str
    times: int
    trial: str


@dataclass(frozen=True)
class Harm:
    """One kind of harm: the number of findings, the trials with them, and the texts, most frequent first."""

    kind: FindingKind
    findings: int
    trials: tuple[str, ...]
    examples: tuple[Example, ...]

    @property
    def kind_text(self) -> str:
        return HARMS[self.kind]


@dataclass(frozen=True)
class Headline:
    """The run's verdict. `trials`: also those that the log lost. `met`: the trials in which a fault was witnessed.
    `ended`: the trials that ended well. `done`: those in which all was done as asked; None if nothing was stated about
    effects. `harmed`: those with harm, of all trials."""

    said: str
    tone: Tone
    trials: int
    met: int
    ended: StandingCount
    done: StandingCount | None
    harmed: Rate | None
    delivery: Delivery | None


def build_headline(report: RunReport) -> Headline:
    """The verdict on a run, with its numbers."""
    sentence, tone = describe_verdict(report)
    figures = report.success.value
    return Headline(
        sentence,
        tone,
        figures.ended.total,
        len(report.met),
        figures.ended,
        figures.done,
        _compute_harm_rate(report),
        sum_fault_delivery(report),
    )


def _compute_harm_rate(report: RunReport) -> Rate | None:
    """The share of trials with harm."""
    prompts = report.figures.value.list_prompt_texts(report.verdicts)
    return compute_flag_rate((bool(verdict.harm) for verdict in report.verdicts.values()), prompts)


def describe_verdict(report: RunReport) -> tuple[str, Tone]:
    """The verdict on a run as a sentence without its full stop, with the damage that nobody injected. If a scenario ran
    it, its ruling is the verdict."""
    sentence, tone = _describe_run_verdict(report)
    damage_text = describe_uninjected_damage(report)
    return "; ".join(filter(None, [sentence, damage_text])), Tone.OPEN if damage_text and tone is Tone.GOOD else tone


def describe_uninjected_damage(report: RunReport) -> str:
    """The damage to the trials that nobody injected, as part of a sentence; empty if there is none, or none is
    known."""
    trials_text, clauses = format_count(len(report.verdicts), "trial"), []
    if not report.damage.unknown and (uninjected := report.damage.value).trials:
        failed = format_count(uninjected.trials.total(), "time")
        delay_note = ""
        if late := uninjected.overdue.total():
            silence = (
                f"no answer from {', '.join(sorted(uninjected.overdue))} after "
                f"{format_duration(uninjected.waited_s, 1)}"
            )
            delay_note = f" ({silence} in {late} of them: a standstill, or a slow machine)"
        failure_text = f"services failed {failed} (5xx or no answer), no fault there before"
        clauses.append(f"{failure_text}, in {len(uninjected.trials)} of {trials_text}{delay_note}")
    if not report.disturbance.unknown and (hit := report.disturbance.value) is not None and hit.attempt_count:
        calls = (
            f"{format_count(hit.attempt_count, 'call')} in {len(hit.hit)} of {trials_text} hit by a disturbance of the "
            "lab"
        )
        clauses.append(calls + (f" ({hit.spans_text})" if hit.spans_text else ""))
    return "; ".join(clauses)


def _describe_run_verdict(report: RunReport) -> tuple[str, Tone]:
    ended, harmed = report.success.value.ended, _compute_harm_rate(report)
    all_ = len(report.verdicts)
    if not all_:
        return "No conclusion: no trial was started", Tone.OPEN
    # A scenario's ruling is the verdict: it may ask for more, or for less.
    if report.rulings is not None:
        return _describe_ruling(report.rulings, harmed, report.lost_trial_count)
    trials_text = format_count(all_, "trial")
    if harmed and harmed.count:
        calm_text = _describe_unfaulted_trials(
            report, [trial for trial, verdict in report.verdicts.items() if verdict.harm]
        )
        return f"Harm was done in {harmed.count} of {trials_text}{calm_text}", Tone.BAD
    if ended.bad:
        bad = [trial for trial, standing in report.standings.items() if standing is Standing.BAD]
        rest = _describe_unfaulted_trials(report, bad) + (f"; {ended.open} open" if ended.open else "")
        return f"{ended.bad} of {format_count(ended.judged_count, 'judged trial')} did not end well{rest}", Tone.BAD
    if not ended.judged_count:
        lost = f", as the log has lost lines of {report.lost_trial_count}" if report.lost_trial_count else ""
        return f"No conclusion: none of {trials_text} could be judged{lost}", Tone.OPEN
    if not report.met:
        missing = "witnessed" if report.delivered.unknown or report.delivered.value.by_injection else "planned"
        return f"No conclusion about faults: none was {missing} in {trials_text}", Tone.OPEN
    degraded = sum(verdict.outcome is Outcome.DEGRADED for verdict in report.verdicts.values())
    # None did all that it was asked for, so there is no success to speak of.
    if degraded == ended.judged_count:
        verb = "was" if degraded == 1 else "were"
        return f"{degraded} of {format_count(degraded, 'judged trial')} {verb} degraded, and said so", Tone.OPEN
    low, high = ended.share_bounds
    # The bounds are those if all open trials ended badly, or all well.
    open_text = f"; {ended.open} of {ended.total} are open, so {low:.0%} to {high:.0%} ended well" if ended.open else ""
    honest = f", {degraded} of them degraded, and said so" if degraded else ""
    well_text = f"ll of {format_count(ended.judged_count, 'judged trial')} ended well{honest}{open_text}"
    # A lost line may have held a bad end, so nothing good is certain.
    if report.lost_trial_count:
        return f"{_describe_lost_lines(report.lost_trial_count)}: a{well_text}", Tone.OPEN
    if report.finished is None and report.started is not None:
        return f"{'The run still goes on' if report.running else 'The run did not end'}: a{well_text}", Tone.OPEN
    reason = report.finished.reason if report.finished else "done"
    if reason != "done":
        return f"The run ended early ({reason.replace('_', ' ')}): a{well_text}", Tone.OPEN
    return f"A{well_text}", Tone.GOOD if classify_share(ended, 1.0) is Standing.WELL else Tone.OPEN


def _describe_unfaulted_trials(report: RunReport, trials: Sequence[str]) -> str:
    """The number of these trials that met no fault, which no fault can explain, as an addition to a sentence."""
    calm = sum(trial not in report.met for trial in trials)
    if not calm:
        return ""
    return "; none of these met a fault" if calm == len(trials) else f"; {calm} of these met no fault"


def _describe_lost_lines(number: int) -> str:
    return f"The log has lost lines of {format_count(number, 'trial')}"


def _describe_ruling(rulings: Rulings, harmed: Rate | None, lost: int) -> tuple[str, Tone]:
    """The ruling of the scenario as a sentence. `lost`: the trials of which the log has lost lines."""
    counts = Counter(ruling.state for ruling in rulings.by_trial.values())
    failed, passed = counts[RulingState.FAILED], counts[RulingState.PASSED]
    judged_text = format_count(failed + passed, "judged trial")
    harm_text = f"; harm was done in {harmed.count}" if harmed and harmed.count else ""
    if rulings.state is RulingState.FAILED or (rulings.state is None and failed):
        failed_text = f"{failed} of {judged_text} failed" if failed else "; ".join(rulings.why) or "it says no reason"
        return f"The scenario does not hold: {failed_text}{harm_text}", Tone.BAD
    if lost:
        return f"{_describe_lost_lines(lost)}: {passed} of {judged_text} passed{harm_text}", Tone.OPEN
    # Fewer rulings than trials: the scenario was ended before it had ruled on all.
    if rulings.state is None or counts.total() < rulings.trials:
        partial_text = f"{passed} of {format_count(rulings.trials, 'trial')} passed before it ended"
        return f"No conclusion: the scenario ended early, {partial_text}{harm_text}", Tone.OPEN
    if rulings.state is RulingState.INVALID:
        return f"The scenario proves nothing: {'; '.join(rulings.why) or 'it says no reason'}{harm_text}", Tone.OPEN
    passed_text = f"all of {judged_text} passed"
    if failed:
        passed_text = f"{passed} of {judged_text} passed, as many as it asks for"
    still_open = f"; {counts[RulingState.INVALID]} open" if counts[RulingState.INVALID] else ""
    return f"The scenario holds: {passed_text}{still_open}{harm_text}", Tone.GOOD


def sum_fault_delivery(report: RunReport) -> Delivery | None:
    """The sums over all faults; None if the log cannot tell."""
    if report.delivered.unknown:
        return None
    fault_counts = report.delivered.value.by_fault
    return Delivery(*(sum(getattr(fault_count, stage) for fault_count in fault_counts) for stage in Delivery._fields))


def build_headline_figures(report: RunReport) -> tuple[Figure, ...]:
    """The figures that belong to the verdict: what could be judged, by what, and was correct; the faults and who met
    them. Each sentence is without its full stop."""
    trials_text, success = format_count(len(report.verdicts), "trial"), report.success.value
    figures = [_build_count_key_figure("ended well", success.ended, success.ended_well_rate, "ended well")]
    if success.done is not None:
        description = "did all as asked, by ledger and end state"
        figures.append(_build_count_key_figure("did all as asked", success.done, success.done_rate, description))
    grounds = report.grounds.value
    figures += [
        Figure("decided", sentence)
        for sentence in (grounds.summary_sentence, grounds.open_verdicts_summary)
        if sentence
    ]
    if faults := sum_fault_delivery(report):
        armed = f"{faults.armed} armed on the wire, " if faults.armed else ""
        sentence = f"{faults.witnessed} of {format_count(faults.scheduled, 'scheduled fault')} witnessed"
        sentence = f"{sentence} ({armed}{faults.injected} injected)" if faults.scheduled else "No fault was scheduled"
        figures.append(Figure("witnessed faults", sentence, faults.witnessed, unit="faults", n=faults.scheduled))
    sentence = f"{len(report.met)} of {trials_text} met a fault"
    return *figures, Figure("met a fault", sentence, len(report.met), unit="trials", n=len(report.verdicts))


def _build_count_key_figure(
    name: str, standing_count: StandingCount, share_rate: Rate | None, description: str
) -> Figure:
    """A count with its interval, and the open ones beside it."""
    sentence = f"{standing_count.well} of {standing_count.judged_count} judged trials {description}"
    sentence += f" ({format_rate_in_percent(share_rate)})" if share_rate is not None else ""
    sentence += f"; {standing_count.open} open" if standing_count.open else ""
    return Figure.build(name, sentence, share_rate, n=standing_count.judged_count)


def describe_harm(report: RunReport) -> str:
    """One sentence on harm, also if there is none, or none could be found."""
    harmed = sum(bool(trial_verdict.harm) for trial_verdict in report.verdicts.values())
    if harmed:
        return f"{harmed} of {format_count(len(report.verdicts), 'trial')} left the ledgers other than they should be."
    if report.judgeable:
        return "No harm was found on the ledgers."
    return "Nothing was stated about right effects or answers, so harm cannot be found."


def list_harms(report: RunReport, order: Sequence[str]) -> tuple[Harm, ...]:
    """Each kind of harm, also those that did not happen: the absence is worth telling. A loss that the answer admits is
    none. `order`: that of the trials."""
    texts: dict[str, Counter[str]] = {kind: Counter() for kind in HARMS}
    first: dict[tuple[str, str], str] = {}
    trials: dict[str, dict[str, None]] = {kind: {} for kind in HARMS}
    for trial in order:
        verdict = report.verdicts[trial]
        # A loss that the answer admits is a finding, and no harm.
        for finding in verdict.evidence if verdict.harm else ():
            if finding.text in verdict.harm and finding.kind in texts:
                text = escape_and_shorten(finding.text, WHY)
                texts[finding.kind][text] += 1
                # In the order of the report, so the example is the worst trial's.
                first.setdefault((finding.kind, text), trial)
                trials[finding.kind][trial] = None
    return tuple(
        Harm(
            kind,
            texts[kind].total(),
            (*trials[kind],),
            tuple(Example(text, times, first[kind, text]) for text, times in texts[kind].most_common()),
        )
        for kind in HARMS
    )
