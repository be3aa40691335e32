"""Advice on an agent, from the evidence of a run alone. A rule is a `FaultRule` of a module here, or a function of the
evidence. Each piece of advice names the trials that show it and how many did, with the interval; without such a trial
there is none. It tells what happened together, which proves no cause."""

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import chain
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Rate, compute_flag_rate
from chaoslab.analysis.measures.noticed import Noticed
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import TrialFigures
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome, Said
from chaoslab.reports.contents._rows import PROMPT
from chaoslab.reports.page import format_count
from chaoslab.reports.text import escape_and_shorten

_AMISS = {FindingKind.ALTERED, FindingKind.STATE, FindingKind.LOST, FindingKind.FACT, FindingKind.VALUE}


@dataclass(frozen=True)
class Advice:
    """One piece of advice. `seen`: the observation; `do`: the remedy; `size`: the share of the trials concerned.
    `trials`: those that show it. `of_run`: it is about the run and not about the agent, so it comes after the rest.
    `of_harm`: who had followed it would not have done harm in these trials, so it comes first."""

    seen: str
    do: str
    size: Rate
    trials: tuple[str, ...]
    of_run: bool = False
    of_harm: bool = False


class Case(NamedTuple):
    """All that rules read of a trial. `evidence`: kind and text of each finding. `met`: the faults that were witnessed,
    each with its target. `calls`: the attempts at calls; `calm_calls`: those of its trial without faults."""

    outcome: Outcome
    standing: Standing
    said: Said
    harm: bool
    evidence: tuple[tuple[str, str], ...]
    met: tuple[tuple[str, str], ...]
    calls: int
    calm_calls: int | None
    noticed: Noticed

    @property
    def ended_short_of_well(self) -> bool:
        """True if the trial allows a conclusion, and either did not end well or its agent could not do all."""
        well = self.standing is Standing.WELL
        return self.standing is Standing.BAD or (well and self.outcome is Outcome.DEGRADED)

    @property
    def did_mislead_or_harm(self) -> bool:
        """True if the trial ended with an answer that claims what is not so, or with harm."""
        return self.outcome in (Outcome.WRONG, Outcome.FALSE_SUCCESS, Outcome.HARM)

    @property
    def finding_kinds(self) -> set[str]:
        """The kinds of the findings behind the trial's verdict."""
        return {kind for kind, _ in self.evidence}

    @property
    def has_missing_or_wrong_value(self) -> bool:
        """True if something is missing or has another value, in the answer, an effect or the end state."""
        return not _AMISS.isdisjoint(self.finding_kinds)


@dataclass(frozen=True)
class RuleEvidence:
    """The evidence that rules read. `order`: that of the trials in the report."""

    report: RunReport
    order: Sequence[str]

    @cached_property
    def trials_by_case(self) -> dict[Case, list[int]]:
        """The trials, by their places in `order`. Most are alike, so a rule looks at each kind of trial once. One whose
        service was dead after the fault, for a reason that nobody injected, tells nothing of the agent and is none."""
        indices: dict[Case, list[int]] = {}
        dead = {incident.trial for incident in self.report.recovery.value.incidents if incident.beside_dead_service}
        figures = self.report.figures.value.figures_by_key
        for number, trial in enumerate(self.order):
            if trial in dead:
                continue
            verdict, trial_figures = self.report.verdicts[trial], figures.get(trial, TrialFigures())
            case = Case(
                verdict.outcome,
                self.report.standings[trial],
                verdict.said,
                bool(verdict.harm),
                tuple((finding.kind, finding.text) for finding in verdict.evidence),
                tuple(place for place, _ in trial_figures.met),
                trial_figures.attempts,
                trial_figures.twin_calls,
                trial_figures.noticed,
            )
            # By number and not by name, since a rate needs the prompt of each.
            indices.setdefault(case, []).append(number)
        return indices

    @cached_property
    def judged_cases(self) -> list[Case]:
        """Those that allow a conclusion."""
        return [case for case in self.trials_by_case if case.standing is not Standing.OPEN]

    def count_trials(self, cases: Iterable[Case]) -> int:
        """The number of these trials."""
        return sum(len(self.trials_by_case[case]) for case in cases)

    @cached_property
    def trial_prompts(self) -> list[str | None]:
        """The prompt of each trial of the order."""
        return self.report.figures.value.list_prompt_texts(self.order)

    def compute_trial_rate(self, shown_cases: Iterable[Case], among: Iterable[Case] | None = None) -> Rate | None:
        """The rate of these trials among those of further cases, or among all; None without any."""
        shown_at = {*chain.from_iterable(map(self.trials_by_case.__getitem__, shown_cases))}
        positions = (
            range(len(self.order))
            if among is None
            else [*chain.from_iterable(map(self.trials_by_case.__getitem__, among))]
        )
        return compute_flag_rate(
            (position in shown_at for position in positions), (self.trial_prompts[position] for position in positions)
        )

    def list_trials(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """These trials, in the report's order."""
        return tuple(
            self.order[position]
            for position in sorted(chain.from_iterable(map(self.trials_by_case.__getitem__, cases)))
        )


@dataclass(frozen=True)
class FaultRule:
    """A rule that names the fault whose trials show something most often beyond the share of all trials, so that a
    frequent fault does not stand for a rare one that goes with it; none if no trial that met a fault shows it.

    `shows`: the trial shows it. `text`: the observation, in which `{fault}` stands for the fault and `{size}` for "3 of
    12 judged trials". `of`: the faults that are considered. `at`: of faults that are shown alike, those at such a
    target come first. `there`: the trial shows it of this fault. `of_harm`: see `Advice`. Only trials that allow a
    conclusion count."""

    shows: Callable[[Case], bool]
    remedy: str
    text: str
    of: Callable[[str], bool] = lambda _: True
    at: Callable[[Case, str], bool] = lambda _case, _target: False
    there: Callable[[Case, str], bool] = lambda _case, _fault: True
    of_harm: bool = False

    def __call__(self, evidence: RuleEvidence) -> list[Advice]:
        candidates: list[tuple[int, Advice]] = []
        usual_share = evidence.count_trials(filter(self.shows, evidence.judged_cases)) / max(
            1, evidence.count_trials(evidence.judged_cases)
        )
        for name in sorted({fault for case in evidence.judged_cases for fault, _ in case.met if self.of(fault)}):
            met_cases = [case for case in evidence.judged_cases if any(fault == name for fault, _ in case.met)]
            cases = [case for case in met_cases if self.shows(case) and self.there(case, name)]
            near_count = evidence.count_trials(
                case for case in cases if any(fault == name and self.at(case, target) for fault, target in case.met)
            )
            if cases and (size := evidence.compute_trial_rate(cases, met_cases)):
                observation = self.text.format(
                    # A name may hold braces, and the text is formatted once more.
                    fault=escape_and_shorten(name, PROMPT).replace("{", "{{"),
                    size=f"{size.count} of {format_count(size.total, 'judged trial')}",
                )
                advice = Advice(observation, self.remedy, size, evidence.list_trials(cases), of_harm=self.of_harm)
                candidates.append((near_count, advice))

        def rank_advice(candidate: tuple[int, Advice]) -> tuple[float, int, int, float]:
            near, size = candidate[0], candidate[1].size
            # Rounded, so that the last digit of a float decides no order.
            return -round(size.count - usual_share * size.total, 6), -size.count, -near, -size.value

        return [best for _, best in sorted(candidates, key=rank_advice)[:1]]


def collect_advice(report: RunReport, order: Sequence[str]) -> tuple[Advice, ...]:
    """All advice that the run gives: first on the agent, then on the run. First comes what would have prevented harm,
    then that whose trials did harm most often beyond the share of all trials, then that whose trials ended badly so,
    then the most frequent. A rule that fails gives none. `order`: that of the trials in the report."""
    evidence = RuleEvidence(report, order)
    harmed = {trial for trial in order if report.verdicts[trial].harm}
    bad = {trial for trial in order if report.standings[trial] is Standing.BAD}
    items: list[Advice] = []
    # Sorted, since the order of files on a disk is the system's.
    for _, rule in sorted(load_rules().items()):
        items += run_guarded(partial(rule, evidence), lambda _: [])

    def compute_excess_trials(trials: set[str], item: Advice) -> float:
        # Rounded, so that the last digit of a float decides no order.
        return round(len(trials.intersection(item.trials)) - len(trials) / max(1, len(order)) * len(item.trials), 6)

    def rank_advice(item: Advice) -> tuple[bool, bool, float, float, int]:
        return (
            item.of_run,
            not item.of_harm,
            -max(0.0, compute_excess_trials(harmed, item)),
            -compute_excess_trials(bad, item),
            -item.size.count,
        )

    return tuple(sorted(items, key=rank_advice))


@cache
def load_rules() -> dict[str, Callable[[RuleEvidence], list[Advice]]]:
    """The rules by name."""
    return {
        name: rule
        for file in pkgutil.iter_modules(__path__, f"{__name__}.")
        for name, rule in vars(import_module(file.name)).items()
        if name[:1] != "_" and (isinstance(rule, FaultRule) or getattr(rule, "__module__", "") == file.name)
    }
