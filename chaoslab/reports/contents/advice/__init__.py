"""Advice on an agent, from the evidence of a run alone. A rule is a public function of a module here, as `hung(seen)`.
Each piece of advice names the trials that show it and how many did, with the interval; without such a trial there is
none. It tells what happened together, which proves no cause."""

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import chain
from typing import NamedTuple

from chaoslab.analysis.measures.intervals import Rate, rate_flags
from chaoslab.analysis.measures.noticed import Noticed
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import TrialFigures
from chaoslab.analysis.verdict.guard import run_guarded
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome, Said
from chaoslab.reports.contents._rows import PROMPT
from chaoslab.reports.page import count
from chaoslab.reports.text import make_visible

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
    def short(self) -> bool:
        """True if the trial allows a conclusion, and either did not end well or its agent could not do all."""
        well = self.standing is Standing.WELL
        return self.standing is Standing.BAD or (well and self.outcome is Outcome.DEGRADED)

    @property
    def misled(self) -> bool:
        """True if the trial ended with an answer that claims what is not so, or with harm."""
        return self.outcome in (Outcome.WRONG, Outcome.FALSE_SUCCESS, Outcome.HARM)

    @property
    def kinds(self) -> set[str]:
        """The kinds of the findings behind the trial's verdict."""
        return {kind for kind, _ in self.evidence}

    @property
    def amiss(self) -> bool:
        """True if something is missing or has another value, in the answer, an effect or the end state."""
        return not _AMISS.isdisjoint(self.kinds)


@dataclass(frozen=True)
class RuleEvidence:
    """The evidence that rules read. `order`: that of the trials in the report."""

    report: RunReport
    order: Sequence[str]

    @cached_property
    def cases(self) -> dict[Case, list[int]]:
        """The trials, by their places in `order`. Most are alike, so a rule looks at each kind of trial once. One whose
        service was dead after the fault, for a reason that nobody injected, tells nothing of the agent and is none."""
        indices: dict[Case, list[int]] = {}
        dead = {incident.trial for incident in self.report.recovery.value.incidents if incident.beside_dead_service}
        figures = self.report.figures.value.by_key
        for number, trial in enumerate(self.order):
            if trial in dead:
                continue
            verdict, trial_figures = self.report.verdicts[trial], figures.get(trial, TrialFigures())
            case = Case(
                verdict.outcome, self.report.standings[trial], verdict.said, bool(verdict.harm),
                tuple((finding.kind, finding.text) for finding in verdict.evidence),
                tuple(place for place, _ in trial_figures.met),
                trial_figures.attempts, trial_figures.twin_calls, trial_figures.noticed,
            )  # fmt: skip
            # By number and not by name, since a rate needs the prompt of each.
            indices.setdefault(case, []).append(number)
        return indices

    @cached_property
    def judged(self) -> list[Case]:
        """Those that allow a conclusion."""
        return [case for case in self.cases if case.standing is not Standing.OPEN]

    def number(self, cases: Iterable[Case]) -> int:
        """The number of these trials."""
        return sum(len(self.cases[case]) for case in cases)

    @cached_property
    def prompts(self) -> list[str | None]:
        """The prompt of each trial of the order."""
        return self.report.figures.value.prompts(self.order)

    def rate(self, shown_cases: Iterable[Case], among: Iterable[Case] | None = None) -> Rate | None:
        """The rate of these trials among those of further cases, or among all; None without any."""
        shown_at = {*chain.from_iterable(map(self.cases.__getitem__, shown_cases))}
        positions = (
            range(len(self.order)) if among is None else [*chain.from_iterable(map(self.cases.__getitem__, among))]
        )
        return rate_flags(
            (position in shown_at for position in positions), (self.prompts[position] for position in positions)
        )

    def trials(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """These trials, in the report's order."""
        return tuple(
            self.order[position] for position in sorted(chain.from_iterable(map(self.cases.__getitem__, cases)))
        )

    def beside_faults(
        self, shows: Callable[[Case], bool], remedy: str, text: str, *, of: Callable[[str], bool] = lambda _: True,
        at: Callable[[Case, str], bool] = lambda _case, _target: False,
        there: Callable[[Case, str], bool] = lambda _case, _fault: True, of_harm: bool = False,
    ) -> list[Advice]:  # fmt: skip
        """Advice on the fault whose trials show it most often beyond the share of all trials, so that a frequent fault
        does not stand for a rare one that goes with it; none if no trial that met a fault shows it.

        `text`: the observation, in which `{fault}` stands for the fault and `{size}` for "3 of 12 judged trials".
        `of`: the faults that are considered. `at`: of faults that are shown alike, those at such a target come first.
        `there`: the trial shows it of this fault. `of_harm`: see `Advice`. Only trials that allow a conclusion count.
        """
        candidates: list[tuple[int, Advice]] = []
        usual_share = self.number(filter(shows, self.judged)) / max(1, self.number(self.judged))
        for name in sorted({fault for case in self.judged for fault, _ in case.met if of(fault)}):
            met_cases = [case for case in self.judged if any(fault == name for fault, _ in case.met)]
            shown_cases = [case for case in met_cases if shows(case) and there(case, name)]
            near_count = self.number(
                case for case in shown_cases if any(fault == name and at(case, target) for fault, target in case.met)
            )
            size = self.rate(shown_cases, met_cases)
            if shown_cases and size:
                observation = text.format(
                    # A name may hold braces, and the text is formatted once more.
                    fault=make_visible(name, PROMPT).replace("{", "{{"),
                    size=f"{size.count} of {count(size.total, 'judged trial')}",
                )
                candidates.append(
                    (near_count, Advice(observation, remedy, size, self.trials(shown_cases), of_harm=of_harm))
                )

        def rank_candidate(candidate: tuple[int, Advice]) -> tuple[float, int, int, float]:
            near, size = candidate[0], candidate[1].size
            # Rounded, so that the last digit of a float decides no order.
            return -round(size.count - usual_share * size.total, 6), -size.count, -near, -size.value

        return [best for _, best in sorted(candidates, key=rank_candidate)[:1]]


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

    def beyond(trials: set[str], item: Advice) -> float:
        # Rounded, so that the last digit of a float decides no order.
        return round(len(trials.intersection(item.trials)) - len(trials) / max(1, len(order)) * len(item.trials), 6)

    def rank_item(item: Advice) -> tuple[bool, bool, float, float, int]:
        return item.of_run, not item.of_harm, -max(0.0, beyond(harmed, item)), -beyond(bad, item), -item.size.count

    return tuple(sorted(items, key=rank_item))


@cache
def load_rules() -> dict[str, Callable[[RuleEvidence], list[Advice]]]:
    """The rules by name."""
    rules_by_name: dict[str, Callable[[RuleEvidence], list[Advice]]] = {}
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        public = {
            name: function for name, function in vars(import_module(file.name)).items() if not name.startswith("_")
        }
        rules_by_name |= {
            name: function for name, function in public.items() if getattr(function, "__module__", "") == file.name
        }
    return rules_by_name
