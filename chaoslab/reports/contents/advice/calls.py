"""Rules on the agent's calls: each public function is one."""

from collections import Counter

from chaoslab.analysis.measures.intervals import rate
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.analysis.verdict.traits import leaves
from chaoslab.core.events import CallFinished, FaultScheduled, FaultWitnessed, PromptFinished, PromptStarted
from chaoslab.reports.contents.advice import Advice, Seen
from chaoslab.reports.contents.attempts import may_pass, refused
from chaoslab.reports.contents.rows import Row

TIMES, LEAST = 3, 4
"""The factor from which on the calls are many, and the fewest additional calls."""


def costly_fault(seen: Seen) -> list[Advice]:
    """A trial that met a fault made several times the calls of the same trial without one."""
    calm = {record.trial: begun.twin_calls for record, begun in seen.history.of(PromptStarted)}
    return seen.beside_faults(
        lambda row: (own := calm.get(row.trial)) is not None and row.calls >= own * TIMES and row.calls - own >= LEAST,
        "Give each task a budget of calls, and end with an honest answer when it is used up.",
        f"The agent made at least {TIMES} times the calls of its trial without faults in {{size}} that met {{fault}}.",
    )


def hung(seen: Seen) -> list[Advice]:
    """A trial would never have ended."""
    return seen.beside_faults(
        lambda row: row.outcome is Outcome.HUNG,
        "Give every call a deadline, for the connection and for each read of it, and one to the whole task.",
        "The agent would never have ended, or not before its deadline, in {size} that met {fault}.",
    )


SLACK_S = 0.001


def ignored_retry_after(seen: Seen) -> list[Advice]:
    """The service said how long to wait, and the next attempt came earlier."""
    told = _told(seen)
    early = seen.hit_at(
        (one.trial, one.before)
        for one in seen.again
        if one.wait_s < told.get((one.trial, one.before.target, one.before.request, one.before.attempt), 0.0) - SLACK_S
    )
    trials = {trial for trial, _ in early}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Wait as long as the header Retry-After says before the next attempt.",
        "The next attempt came before the end of Retry-After in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in early,
    )


def _told(seen: Seen) -> dict[tuple[str, str, int, int], float]:
    """The seconds of Retry-After that a witnessed fault stated, by attempt."""
    met = {
        (record.trial, e.target, e.request, e.attempt, e.fault, e.injection)
        for record, e in seen.history.of(FaultWitnessed)
    }
    found = {}
    for record, e in seen.history.of(FaultScheduled):
        wait_s = e.params.get("retry_after_s")
        if isinstance(wait_s, int | float) and wait_s > 0:
            place = (record.trial or "", e.target, e.request, e.attempt)
            if (*place, e.fault, e.injection) in met:
                found[place] = float(wait_s)
    return found


MANY = 6
"""The attempts at one request from which on they are many. Those that the agent gave up do not count."""


def many_attempts(seen: Seen) -> list[Advice]:
    """One request was attempted so often that the retries would add to an outage."""
    most: dict[str, int] = {}
    given_up = Counter([at[:3] for at in seen.history.given_up])
    for record, call, at in seen.history.placed(CallFinished):
        trial = record.trial or ""
        most[trial] = max(most.get(trial, 0), call.attempt - given_up[at[:3]])
    shown = tuple(row.trial for row in seen.rows if most.get(row.trial, 0) >= MANY)
    size = rate(len(shown), len(seen.rows))
    if not shown or size is None:
        return []
    longest = max(most[trial] for trial in shown)
    text = f"One request was attempted {MANY} times or more in {size.count} of {size.total} trials, {longest} at most."
    remedy = "Let one layer alone retry, and bound its attempts: stacked retries multiply."
    return [Advice(text, remedy, size, shown)]


AT_ONCE_S = 0.05
"""The seconds below which a wait is none."""


def no_backoff(seen: Seen) -> list[Advice]:
    """A call that failed at once was tried again at once. A timeout has itself waited, so it does not count."""
    rushed = seen.hit_at(
        (one.trial, one.before)
        for one in seen.again
        if one.wait_s < AT_ONCE_S and may_pass(one.before) and one.before.error != "timed_out"
    )
    trials = {trial for trial, _ in rushed}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Back off exponentially with jitter between attempts, so that a service in trouble can recover.",
        "A failed call was tried again at once in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in rushed,
    )


def no_second_try(seen: Seen) -> list[Advice]:
    """A call failed in a way that may pass, was not tried again, and the trial did not end as it should have."""
    untried = _untried(seen)
    trials = {trial for trial, _ in untried}
    return seen.beside_faults(
        lambda row: seen.short(row) and row.trial in trials,
        "Try such a call again, after a short wait that grows. Before one that changes something, look whether it was "
        "done, or send the same Idempotency-Key with both.",
        "A call that timed out, broke off or met a 429 or 5xx was not tried again, and the trial fell short, in {size} "
        "that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in untried,
    )


def _untried(seen: Seen) -> set[tuple[str | None, str]]:
    """The trials in which the last attempt at a request failed in a way that may pass, and was the first, with the
    faults that it met."""
    last: dict[tuple[str | None, str, int], CallFinished] = {}
    for record, call in seen.history.of(CallFinished):
        last[record.trial, call.target, call.request] = call
    once = ((at[0], call) for at, call in last.items() if call.attempt == 1 and not call.ok and may_pass(call))
    return seen.hit_at(once)


def retried_refusal(seen: Seen) -> list[Advice]:
    """A call that the service refuses for good was sent again."""
    vain = seen.hit_at((one.trial, one.before) for one in seen.again if refused(one.before))
    trials = {trial for trial, _ in vain}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Stop at a 4xx other than 408, 409, 425 and 429: change the request, or tell the user why it was refused.",
        "The same call was sent again after a 4xx that does not pass in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in vain,
    )


LONG_S = 30.0
"""The seconds above which a wait for nothing is long."""


def slow_timeout(seen: Seen) -> list[Advice]:
    """A call waited longer for nothing than a user would."""
    waited = seen.hit_at(
        (record.trial, call)
        for record, call in seen.history.of(CallFinished)
        if not call.ok and call.error == "timed_out" and call.duration_s > LONG_S
    )
    trials = {trial for trial, _ in waited}
    return seen.beside_faults(
        lambda row: row.trial in trials,
        "Set the client's timeout to what a user waits; the defaults of many SDKs are minutes.",
        f"A call waited more than {LONG_S:g} s for nothing in {{size}} that met {{fault}}.",
        there=lambda row, fault: (row.trial, fault) in waited,
    )


def uncaught(seen: Seen) -> list[Advice]:
    """The failure of a call ended the agent."""
    raised = {record.trial for record, end in seen.history.of(PromptFinished) if end.error_type == "agent"}

    def ended(row: Row) -> bool:
        return row.outcome is Outcome.FAILED and row.trial in raised

    of_calls = seen.beside_faults(
        ended,
        "Catch the failure of a call where it is made, and tell the user what could not be done.",
        "An exception ended the agent in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in seen.failed,
    )
    taken = seen.taken(lambda fault: bool(leaves(fault))) - seen.failed
    return of_calls + seen.beside_faults(
        ended,
        "Check a reply against its schema where it is read, and take one that does not fit for a failed call.",
        "An exception ended the agent after a reply that was not the right one in {size} that met {fault}.",
        there=lambda row, fault: (row.trial, fault) in taken,
    )
