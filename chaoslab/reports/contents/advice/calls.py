"""Rules on the agent's calls: each public function is one."""

from chaoslab.analysis.measures.noticed import LONG_S
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.analysis.verdict.traits import leaves
from chaoslab.reports.contents.advice import Advice, Case, RuleEvidence

TIMES, LEAST = 3, 4
"""The factor from which on the calls are many, and the fewest additional calls."""


def costly_fault(evidence: RuleEvidence) -> list[Advice]:
    """A trial that met a fault made several times the calls of the same trial without one."""
    return evidence.beside_faults(
        # Both: three calls in place of one are no waste, and four more of a hundred are none either.
        lambda case: (own := case.calm_calls) is not None and case.calls >= own * TIMES and case.calls - own >= LEAST,
        "Give each task a budget of calls, and end with an honest answer when it is used up.",
        f"The agent made at least {TIMES} times the calls of its trial without faults in {{size}} that met {{fault}}.",
    )


def hung(evidence: RuleEvidence) -> list[Advice]:
    """A trial would never have ended."""
    return evidence.beside_faults(
        lambda case: case.outcome is Outcome.HUNG,
        "Give every call a deadline, for the connection and for each read of it, and one to the whole task.",
        "The agent would never have ended, or not before its deadline, in {size} that met {fault}.",
    )


def ignored_retry_after(evidence: RuleEvidence) -> list[Advice]:
    """The service said how long to wait, and the next attempt came earlier."""
    return evidence.beside_faults(
        lambda case: bool(case.noticed.early),
        "Wait as long as the header Retry-After says before the next attempt.",
        "The next attempt came before the end of Retry-After in {size} that met {fault}.",
        there=lambda case, fault: fault in case.noticed.early,
    )


MANY = 6
"""The attempts at one request from which on they are many. Those that the agent gave up do not count."""


def many_attempts(evidence: RuleEvidence) -> list[Advice]:
    """One request was attempted so often that the retries would add to an outage."""
    cases = [case for case in evidence.cases if case.noticed.attempts >= MANY]
    size = evidence.rate(cases)
    if not cases or size is None:
        return []
    longest = max(case.noticed.attempts for case in cases)
    text = f"One request was attempted {MANY} times or more in {size.count} of {size.total} trials, {longest} at most."
    remedy = "Let one layer alone retry, and bound its attempts: stacked retries multiply."
    return [Advice(text, remedy, size, evidence.trials(cases))]


def no_backoff(evidence: RuleEvidence) -> list[Advice]:
    """A call that failed at once was tried again at once. A timeout has itself waited, so it does not count."""
    return evidence.beside_faults(
        lambda case: bool(case.noticed.at_once),
        "Back off exponentially with jitter between attempts, so that a service in trouble can recover.",
        "A failed call was tried again at once in {size} that met {fault}.",
        there=lambda case, fault: fault in case.noticed.at_once,
    )


def no_second_try(evidence: RuleEvidence) -> list[Advice]:
    """A call failed in a way that may pass, was not tried again, and the trial did not end as it should have. One that
    went on as if it had not failed has another fault: a second try would only hide it."""
    return evidence.beside_faults(
        # A trial that misled went on as if the call had not failed: a second try would only hide that.
        lambda case: case.short and not case.misled and bool(case.noticed.untried),
        "Try such a call again, after a short wait that grows. Before one that changes something, look whether it was "
        "done, or send the same Idempotency-Key with both.",
        "A call that timed out, broke off or met a 429 or 5xx was not tried again, and the trial fell short, in {size} "
        "that met {fault}.",
        there=lambda case, fault: fault in case.noticed.untried,
    )


def retried_refusal(evidence: RuleEvidence) -> list[Advice]:
    """A call that the service refuses for good was sent again."""
    return evidence.beside_faults(
        lambda case: bool(case.noticed.refused),
        "Stop at a 4xx other than 408, 409, 425 and 429: change the request, or tell the user why it was refused.",
        "The same call was sent again after a 4xx that does not pass in {size} that met {fault}.",
        there=lambda case, fault: fault in case.noticed.refused,
    )


def slow_timeout(evidence: RuleEvidence) -> list[Advice]:
    """A call waited longer for nothing than a user would."""
    return evidence.beside_faults(
        lambda case: bool(case.noticed.waited),
        "Set the client's timeout to what a user waits; the defaults of many SDKs are minutes.",
        f"A call waited more than {LONG_S:g} s for nothing in {{size}} that met {{fault}}.",
        there=lambda case, fault: fault in case.noticed.waited,
    )


def uncaught(evidence: RuleEvidence) -> list[Advice]:
    """The failure of a call ended the agent."""

    def ended(case: Case) -> bool:
        return case.outcome is Outcome.FAILED and case.noticed.raised

    after_failed_calls = evidence.beside_faults(
        ended,
        "Catch the failure of a call where it is made, and tell the user what could not be done.",
        "An exception ended the agent in {size} that met {fault}.",
        there=lambda case, fault: fault in case.noticed.failed,
    )
    return after_failed_calls + evidence.beside_faults(
        ended,
        "Check a reply against its schema where it is read, and take one that does not fit for a failed call.",
        "An exception ended the agent after a reply that was not the right one in {size} that met {fault}.",
        there=lambda case, fault: (
            # An exception after a failed call has the rule above.
            bool(leaves(fault)) and fault in case.noticed.taken and fault not in case.noticed.failed
        ),
    )
