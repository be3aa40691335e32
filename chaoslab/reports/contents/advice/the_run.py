"""Rules on the run, not on the agent: each public function is one."""

from chaoslab.analysis.measures.faults import NOTHING
from chaoslab.analysis.measures.intervals import compute_rate
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.reports.contents.advice import Advice, Case, RuleEvidence
from chaoslab.reports.text import escape_and_shorten

NAME, NAMED = 60, 8
"""The most characters of a fault's name, and the most faults that are named."""


def advise_on_injections_without_calls(evidence: RuleEvidence) -> list[Advice]:
    """An injection whose dice were rolled for no call."""
    trials = tuple(evidence.order)
    size = compute_rate(len(trials), len(trials))
    return [
        Advice(
            f"{escape_and_shorten(injection.injection, NAME)} had no call to hit in {size.count} of {size.total} "
            f"trials: none was for "
            "its target and fitted its conditions, or another fault took each.",
            "Name a target and conditions that fit the agent's calls, or leave out the fault that takes them first: "
            "this run tells nothing about it.",
            size,
            trials,
            of_run=True,
        )
        for injection in evidence.report.delivered.value.by_injection
        if size and not injection.eligible
    ]


def advise_on_never_met_faults(evidence: RuleEvidence) -> list[Advice]:
    """Faults were drawn and never met."""
    met_faults = {fault for case in evidence.trials_by_case for fault, _ in case.met}
    cases = [case for case in evidence.trials_by_case if not met_faults.issuperset(case.noticed.drawn)]
    drawn = {fault for case in cases for fault in case.noticed.drawn} - met_faults
    size = evidence.compute_trial_rate(cases)
    if not cases or size is None:
        return []
    # Backwards, so that the first reason of each fault stays.
    reasons = {reason_count.fault: reason_count.why for reason_count in reversed(evidence.report.not_met.value.reasons)}
    drawn_reasons = [
        (escape_and_shorten(fault, NAME), reasons.get(fault, "no reason is known")) for fault in sorted(drawn)
    ]
    in_trials = f"drawn in {size.count} of {size.total} trials and met in none"
    if len(drawn_reasons) == 1:
        observation, targets_text, faults_text = (
            f"{drawn_reasons[0][0]} was {in_trials}: {drawn_reasons[0][1]}.",
            "its target",
            "it",
        )
    else:
        names = [f"{fault} ({reason.removeprefix(f'{NOTHING}: ')})" for fault, reason in drawn_reasons[:NAMED]]
        names += [f"{len(drawn_reasons) - NAMED} more"] if len(drawn_reasons) > NAMED else []
        observation, targets_text, faults_text = (
            f"{len(drawn_reasons)} faults were {in_trials}: {'; '.join(names)}.",
            "their targets",
            "them",
        )
    subject = "it" if len(drawn_reasons) == 1 else "they"
    do = (
        f"Choose {targets_text} and parameters so that {subject} can take effect: this run tells nothing about "
        f"{faults_text}."
    )
    return [Advice(observation, do, size, evidence.list_trials(cases), of_run=True)]


POSSIBLE = 0.1
"""The share of bad ends that the trials should exclude at 95 %. That takes 35 of them."""


def advise_on_too_few_trials(evidence: RuleEvidence) -> list[Advice]:
    """No trial that met a fault ended badly, and the trials are too few to rely on that."""
    items = []
    for name in sorted({fault for case in evidence.judged_cases for fault, _ in case.met}):
        met_cases = [case for case in evidence.judged_cases if any(fault == name for fault, _ in case.met)]
        size = evidence.compute_trial_rate((case for case in met_cases if case.standing is Standing.BAD), met_cases)
        if size and not size.count and size.interval.high > POSSIBLE:
            observation = (
                f"None of {size.total} judged trials that met {escape_and_shorten(name, NAME)} ended badly, and up to "
                f"{size.interval.high:.0%} of all could."
            )
            items.append(
                Advice(
                    observation,
                    _REMEDY.format(escape_and_shorten(name, NAME)),
                    size,
                    evidence.list_trials(met_cases),
                    of_run=True,
                )
            )
    # The fault with the fewest trials: what is enough for it is enough for the others.
    return sorted(items, key=lambda item: item.size.total)[:1]


_REMEDY = (
    "Run more trials that meet {} before you rely on this: 35 good ends leave a rate of 10% possible, 381 leave 1%."
)


def advise_on_unreached_requests(evidence: RuleEvidence) -> list[Advice]:
    """A fault was planned for a numbered request that the agent did not make."""
    requests_made: dict[tuple[str, str, int], dict[Case, int]] = {}
    for case in evidence.trials_by_case:
        for injection, target, request, number in case.noticed.missed:
            requests_made.setdefault((injection, target, request), {})[case] = number
    items = []
    for (injection, target, request), cases in sorted(requests_made.items()):
        if size := evidence.compute_trial_rate(cases):
            observation = (
                f"{escape_and_shorten(injection, NAME)} is for request {request} of "
                f"{escape_and_shorten(target, NAME)}, and "
                f"{size.count} of "
                f"{size.total} trials made {max(cases.values())} at most."
            )
            do = "Plan it for a request that the agent makes: such trials are invalid, and tell nothing about it."
            items.append(Advice(observation, do, size, evidence.list_trials(cases), of_run=True))
    return items
