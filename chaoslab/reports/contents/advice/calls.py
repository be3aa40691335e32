"""Rules on the agent's calls."""

from chaoslab.analysis.measures.noticed import LONG_S
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.analysis.verdict.traits import get_replacement_kind
from chaoslab.reports.contents.advice import Advice, Case, FaultRule, RuleEvidence

TIMES, LEAST, MANY = 3, 4, 6
"""The factor from which on the calls are many, the fewest additional calls, and the attempts at one request from which
on they are many, without those that the agent gave up."""

costly_fault = FaultRule(
    # Both: three calls in place of one are no waste, and four more of a hundred are none either.
    lambda case: (own := case.calm_calls) is not None and case.calls >= own * TIMES and case.calls - own >= LEAST,
    "Give each task a call budget, and end with an honest answer when it is used up.",
    f"The agent made at least {TIMES} times the calls of its trial without faults in {{size}} that met {{fault}}.",
)
hung = FaultRule(
    lambda case: case.outcome is Outcome.HUNG,
    "Give every call a deadline, for connecting and for each read, and the whole task another.",
    "The agent would not have ended before its deadline, if ever, in {size} that met {fault}.",
)
ignored_retry_after = FaultRule(
    lambda case: bool(case.noticed.early),
    "Honour the Retry-After header before the next attempt.",
    "The next attempt came before the end of Retry-After in {size} that met {fault}.",
    there=lambda case, fault: fault in case.noticed.early,
)
no_backoff = FaultRule(
    # A timeout has itself waited, so it does not count.
    lambda case: bool(case.noticed.at_once),
    "Back off exponentially with jitter between attempts, so that a service in trouble can recover.",
    "A failed call was retried at once in {size} that met {fault}.",
    there=lambda case, fault: fault in case.noticed.at_once,
)
no_second_try = FaultRule(
    # A trial that misled went on as if the call had not failed: a second try would only hide that.
    lambda case: case.ended_short_of_well and not case.did_mislead_or_harm and bool(case.noticed.untried),
    "Retry a call that timed out or failed for a while, with a growing delay. Before repeating one that changes "
    "something, check whether it was done, or send the same Idempotency-Key with both.",
    "A call that timed out, broke off or met a 429 or 5xx was not retried, and the trial fell short, in {size} that "
    "met {fault}.",
    there=lambda case, fault: fault in case.noticed.untried,
)
retried_refusal = FaultRule(
    lambda case: bool(case.noticed.refused),
    "Do not retry a 4xx other than 408, 409, 425 and 429: change the request, or tell the user why it was refused.",
    "The same call was retried after a permanent 4xx in {size} that met {fault}.",
    there=lambda case, fault: fault in case.noticed.refused,
)
slow_timeout = FaultRule(
    lambda case: bool(case.noticed.waited),
    "Set the client's timeout to what a user will wait; many SDKs default to minutes.",
    f"A call waited more than {LONG_S:g} s in vain in {{size}} that met {{fault}}.",
    there=lambda case, fault: fault in case.noticed.waited,
)


def advise_on_many_attempts(evidence: RuleEvidence) -> list[Advice]:
    """One request was attempted so often that the retries would add to an outage."""
    cases = [case for case in evidence.trials_by_case if case.noticed.attempts >= MANY]
    size = evidence.compute_trial_rate(cases)
    if not cases or size is None:
        return []
    longest = max(case.noticed.attempts for case in cases)
    text = f"One request was attempted {MANY} times or more in {size.count} of {size.total} trials, {longest} at most."
    remedy = "Let only one layer retry, and limit its attempts: stacked retries multiply."
    return [Advice(text, remedy, size, evidence.list_trials(cases))]


def _ended_by_exception(case: Case) -> bool:
    return case.outcome is Outcome.FAILED and case.noticed.raised


uncaught = FaultRule(
    _ended_by_exception,
    "Catch the failure where the call is made, and tell the user what could not be done.",
    "An exception ended the agent in {size} that met {fault}.",
    there=lambda case, fault: fault in case.noticed.failed,
)
uncaught_reply = FaultRule(
    _ended_by_exception,
    "Validate each reply against its schema where it is read, and treat one that does not fit as a failed call.",
    "An exception ended the agent after a wrong reply in {size} that met {fault}.",
    there=lambda case, fault: (
        # An exception after a failed call has the rule above.
        bool(get_replacement_kind(fault)) and fault in case.noticed.taken and fault not in case.noticed.failed
    ),
)
