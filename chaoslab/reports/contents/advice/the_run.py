"""Rules on the run, not on the agent: each public function is one."""

from chaoslab.analysis.measures.faults import NOTHING
from chaoslab.analysis.measures.intervals import rate
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.reports.contents.advice import Advice, Case, RuleEvidence
from chaoslab.reports.text import visible

NAME, NAMED = 60, 8
"""The most characters of a fault's name, and the most faults that are named."""


def never_called(seen: RuleEvidence) -> list[Advice]:
    """An injection whose dice were rolled for no call."""
    trials = tuple(seen.order)
    size = rate(len(trials), len(trials))
    return [
        Advice(
            f"{visible(one.injection, NAME)} had no call to hit in {size.count} of {size.total} trials: none was for "
            "its target and fitted its conditions, or another fault took each.",
            "Name a target and conditions that fit the agent's calls, or leave out the fault that takes them first: "
            "this run tells nothing about it.",
            size,
            trials,
            of_run=True,
        )
        for one in seen.report.delivered.value.by_injection
        if size and not one.eligible
    ]


def never_witnessed(seen: RuleEvidence) -> list[Advice]:
    """Faults were drawn and never met."""
    met = {fault for case in seen.cases for fault, _ in case.met}
    cases = [case for case in seen.cases if not met.issuperset(case.noticed.drawn)]
    drawn = {fault for case in cases for fault in case.noticed.drawn} - met
    size = seen.rate(cases)
    if not cases or size is None:
        return []
    whys = {one.fault: one.why for one in reversed(seen.report.not_met.value.reasons)}
    told = [(visible(fault, NAME), whys.get(fault, "no reason is known")) for fault in sorted(drawn)]
    in_trials = f"drawn in {size.count} of {size.total} trials and met in none"
    if len(told) == 1:
        said, whose, them = f"{told[0][0]} was {in_trials}: {told[0][1]}.", "its target", "it"
    else:
        names = [f"{fault} ({why.removeprefix(f'{NOTHING}: ')})" for fault, why in told[:NAMED]]
        names += [f"{len(told) - NAMED} more"] if len(told) > NAMED else []
        said, whose, them = f"{len(told)} faults were {in_trials}: {'; '.join(names)}.", "their targets", "them"
    subject = "it" if len(told) == 1 else "they"
    do = f"Choose {whose} and parameters so that {subject} can take effect: this run tells nothing about {them}."
    return [Advice(said, do, size, seen.trials(cases), of_run=True)]


POSSIBLE = 0.1
"""The share of bad ends that the trials should exclude at 95 %. That takes 35 of them."""


def too_few(seen: RuleEvidence) -> list[Advice]:
    """No trial that met a fault ended badly, and the trials are too few to rely on that."""
    found = []
    for name in sorted({fault for case in seen.judged for fault, _ in case.met}):
        met = [case for case in seen.judged if any(fault == name for fault, _ in case.met)]
        size = seen.rate((case for case in met if case.standing is Standing.BAD), met)
        if size and not size.count and size.interval.high > POSSIBLE:
            said = (
                f"None of {size.total} judged trials that met {visible(name, NAME)} ended badly, and up to "
                f"{size.interval.high:.0%} of all could."
            )
            found.append(Advice(said, _REMEDY.format(visible(name, NAME)), size, seen.trials(met), of_run=True))
    return sorted(found, key=lambda one: one.size.total)[:1]


_REMEDY = (
    "Run more trials that meet {} before you rely on this: 35 good ends leave a rate of 10% possible, 381 leave 1%."
)


def unreached(seen: RuleEvidence) -> list[Advice]:
    """A fault was planned for a numbered request that the agent did not make."""
    made: dict[tuple[str, str, int], dict[Case, int]] = {}
    for case in seen.cases:
        for injection, target, request, number in case.noticed.missed:
            made.setdefault((injection, target, request), {})[case] = number
    found = []
    for (injection, target, request), cases in sorted(made.items()):
        if size := seen.rate(cases):
            said = (
                f"{visible(injection, NAME)} is for request {request} of {visible(target, NAME)}, and {size.count} of "
                f"{size.total} trials made {max(cases.values())} at most."
            )
            do = "Plan it for a request that the agent makes: such trials are invalid, and tell nothing about it."
            found.append(Advice(said, do, size, seen.trials(cases), of_run=True))
    return found
