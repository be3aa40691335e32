"""A run in one sentence, with the numbers that it rests on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Rate, rate_over
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.standing import Count, Standing, decide_share
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.durations import duration
from chaoslab.record.rulings import Rulings, RulingState
from chaoslab.reports.contents._rows import WHY
from chaoslab.reports.contents._table import Figure
from chaoslab.reports.page import count, share
from chaoslab.reports.text import visible

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
    def said(self) -> str:
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
    ended: Count
    done: Count | None
    harmed: Rate | None
    delivery: Delivery | None


def headline(report: RunReport) -> Headline:
    """The verdict on a run, with its numbers."""
    said, tone = verdict(report)
    figures = report.success.value
    return Headline(
        said, tone, figures.ended.total, len(report.met), figures.ended, figures.done, _rate_harm(report),
        delivery(report),
    )  # fmt: skip


def _rate_harm(report: RunReport) -> Rate | None:
    """The share of trials with harm."""
    prompts = report.figures.value.prompts(report.verdicts)
    return rate_over((bool(verdict.harm) for verdict in report.verdicts.values()), prompts)


def verdict(report: RunReport) -> tuple[str, Tone]:
    """The verdict on a run as a sentence without its full stop, with the damage that nobody injected. If a scenario ran
    it, its ruling is the verdict."""
    said, tone = _verdict(report)
    hit = damage(report)
    return "; ".join(filter(None, [said, hit])), Tone.OPEN if hit and tone is Tone.GOOD else tone


def damage(report: RunReport) -> str:
    """The damage to the trials that nobody injected, as part of a sentence; empty if there is none, or none is
    known."""
    of, parts = count(len(report.verdicts), "trial"), []
    if not report.damage.unknown and (found := report.damage.value).trials:
        failed = count(found.trials.total(), "time")
        why = ""
        if late := found.overdue.total():
            waited = f"no answer from {', '.join(sorted(found.overdue))} after {duration(found.waited_s, 1)}"
            why = f" ({waited} in {late} of them: a standstill, or a slow machine)"
        told = f"services failed {failed} (5xx or no answer), no fault there before"
        parts.append(f"{told}, in {len(found.trials)} of {of}{why}")
    if not report.disturbance.unknown and (hit := report.disturbance.value) is not None and hit.attempts:
        calls = f"{count(hit.attempts, 'call')} in {len(hit.hit)} of {of} hit by a disturbance of the lab"
        parts.append(calls + (f" ({hit.said})" if hit.said else ""))
    return "; ".join(parts)


def _verdict(report: RunReport) -> tuple[str, Tone]:
    ended, harmed = report.success.value.ended, _rate_harm(report)
    all_ = len(report.verdicts)
    if not all_:
        return "No conclusion: no trial was started", Tone.OPEN
    if report.rulings is not None:
        return _ruled(report.rulings, harmed, report.lost)
    of = count(all_, "trial")
    if harmed and harmed.count:
        calm = _calm(report, [trial for trial, found in report.verdicts.items() if found.harm])
        return f"Harm was done in {harmed.count} of {of}{calm}", Tone.BAD
    if ended.bad:
        calm = _calm(report, [trial for trial, standing in report.standings.items() if standing is Standing.BAD])
        still_open = f"; {ended.open} open" if ended.open else ""
        return f"{ended.bad} of {count(ended.judged, 'judged trial')} did not end well{calm}{still_open}", Tone.BAD
    if not ended.judged:
        lost = f", as the log has lost lines of {report.lost}" if report.lost else ""
        return f"No conclusion: none of {of} could be judged{lost}", Tone.OPEN
    if not report.met:
        planned = report.delivered.unknown or report.delivered.value.by_injection
        return f"No conclusion about faults: none was {'witnessed' if planned else 'planned'} in {of}", Tone.OPEN
    degraded = sum(found.outcome is Outcome.DEGRADED for found in report.verdicts.values())
    if degraded == ended.judged:
        return f"{degraded} of {count(ended.judged, 'judged trial')} {_was(degraded)} degraded, and said so", Tone.OPEN
    low, high = ended.bounds
    left = f"; {ended.open} of {ended.total} are open, so {low:.0%} to {high:.0%} ended well" if ended.open else ""
    honest = f", {degraded} of them degraded, and said so" if degraded else ""
    well = f"ll of {count(ended.judged, 'judged trial')} ended well{honest}{left}"
    if report.lost:
        return f"{_lost(report.lost)}: a{well}", Tone.OPEN
    if report.finished is None and report.started is not None:
        return f"{'The run still goes on' if report.running else 'The run did not end'}: a{well}", Tone.OPEN
    reason = report.finished.reason if report.finished else "done"
    if reason != "done":
        return f"The run ended early ({reason.replace('_', ' ')}): a{well}", Tone.OPEN
    return f"A{well}", Tone.GOOD if decide_share(ended, 1.0) is Standing.WELL else Tone.OPEN


def _calm(report: RunReport, trials: Sequence[str]) -> str:
    """The number of these trials that met no fault, which no fault can explain, as an addition to a sentence."""
    calm = sum(trial not in report.met for trial in trials)
    if not calm:
        return ""
    return "; none of these met a fault" if calm == len(trials) else f"; {calm} of these met no fault"


def _lost(number: int) -> str:
    return f"The log has lost lines of {count(number, 'trial')}"


def _ruled(rulings: Rulings, harmed: Rate | None, lost: int) -> tuple[str, Tone]:
    """The ruling of the scenario as a sentence. `lost`: the trials of which the log has lost lines."""
    found = Counter(ruling.state for ruling in rulings.by_trial.values())
    failed, passed = found[RulingState.FAILED], found[RulingState.PASSED]
    of = count(failed + passed, "judged trial")
    harm = f"; harm was done in {harmed.count}" if harmed and harmed.count else ""
    if rulings.state is RulingState.FAILED or (rulings.state is None and failed):
        few = f"{failed} of {of} failed" if failed else "; ".join(rulings.why) or "it says no reason"
        return f"The scenario does not hold: {few}{harm}", Tone.BAD
    if lost:
        return f"{_lost(lost)}: {passed} of {of} passed{harm}", Tone.OPEN
    if rulings.state is None or found.total() < rulings.trials:
        early = f"{passed} of {count(rulings.trials, 'trial')} passed before it ended"
        return f"No conclusion: the scenario ended early, {early}{harm}", Tone.OPEN
    if rulings.state is RulingState.INVALID:
        return f"The scenario proves nothing: {'; '.join(rulings.why) or 'it says no reason'}{harm}", Tone.OPEN
    all_ = f"all of {of} passed" if not failed else f"{passed} of {of} passed, as many as it asks for"
    still_open = f"; {found[RulingState.INVALID]} open" if found[RulingState.INVALID] else ""
    return f"The scenario holds: {all_}{still_open}{harm}", Tone.GOOD


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def delivery(report: RunReport) -> Delivery | None:
    """The sums over all faults; None if the log cannot tell."""
    if report.delivered.unknown:
        return None
    found = report.delivered.value.by_fault
    return Delivery(*(sum(getattr(one, stage) for one in found) for stage in Delivery._fields))


def points(report: RunReport) -> tuple[Figure, ...]:
    """The figures that belong to the verdict: what could be judged, by what, and was correct; the faults and who met
    them. Each sentence is without its full stop."""
    of, found = count(len(report.verdicts), "trial"), report.success.value
    made = [_of_count("ended well", found.ended, found.ended_rate, "ended well")]
    if found.done is not None:
        made.append(_of_count("did all as asked", found.done, found.done_rate, "did all as asked, whatever was said"))
    made += [Figure("decided", said) for said in (report.grounds.value.said, report.grounds.value.undecided) if said]
    faults = delivery(report)
    if faults and not faults.scheduled:
        made.append(Figure("witnessed faults", "No fault was scheduled", 0, unit="faults", n=0))
    elif faults:
        armed = f"{faults.armed} armed on the wire, " if faults.armed else ""
        said = (
            f"{faults.witnessed} of {count(faults.scheduled, 'scheduled fault')} witnessed ({armed}{faults.injected} "
        )
        made.append(Figure("witnessed faults", f"{said}injected)", faults.witnessed, unit="faults", n=faults.scheduled))
    met = len(report.met)
    return (*made, Figure("met a fault", f"{met} of {of} met a fault", met, unit="trials", n=len(report.verdicts)))


def _of_count(name: str, found: Count, of: Rate | None, what: str) -> Figure:
    """A count with its interval, and the open ones beside it."""
    known = f" ({share(of)})" if of is not None else ""
    still_open = f"; {found.open} open" if found.open else ""
    return Figure.of(
        name, f"{found.well} of {found.judged} judged trials {what}{known}{still_open}", of, n=found.judged
    )


def harm_said(report: RunReport) -> str:
    """One sentence on harm, also if there is none, or none could be found."""
    harmed = sum(bool(found.harm) for found in report.verdicts.values())
    if harmed:
        return f"{harmed} of {count(len(report.verdicts), 'trial')} left the ledgers other than they should be."
    if report.judgeable:
        return "No harm was found on the ledgers."
    return "Nothing was stated about right effects or answers, so harm cannot be found."


def harms(report: RunReport, order: Sequence[str]) -> tuple[Harm, ...]:
    """Each kind of harm, also those that did not happen: the absence is worth telling. A loss that the answer admits is
    none. `order`: that of the trials."""
    texts: dict[str, Counter[str]] = {kind: Counter() for kind in HARMS}
    first: dict[tuple[str, str], str] = {}
    trials: dict[str, dict[str, None]] = {kind: {} for kind in HARMS}
    for trial in order:
        verdict = report.verdicts[trial]
        for finding in verdict.evidence if verdict.harm else ():
            if finding.text in verdict.harm and finding.kind in texts:
                text = visible(finding.text, WHY)
                texts[finding.kind][text] += 1
                first.setdefault((finding.kind, text), trial)
                trials[finding.kind][trial] = None
    return tuple(
        Harm(
            kind, texts[kind].total(), (*trials[kind],),
            tuple(Example(text, times, first[kind, text]) for text, times in texts[kind].most_common()),
        )
        for kind in HARMS
    )  # fmt: skip
