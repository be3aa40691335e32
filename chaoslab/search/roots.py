"""Root causes: failures are one if the same went wrong at the same place in the agent, whatever fault brought it about.

The place is the line of the user's source at which the run departed from the one without faults: the call that was made
again, the call whose error was swallowed or whose reply was taken as it came, the line that raised. Without a line, as
of a command, it is the call alone. An error of a call that nothing in the agent catches has no place of its own: one
handler around the agent would meet them all.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from chaoslab.analysis.verdict.ledger import Finding, FindingKind, strip_varying_details
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.user_line import Raised
from chaoslab.core.events import Effect
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.plan import Injection
from chaoslab.record.history import History
from chaoslab.search._danger import is_unnoticeable_fault, rank_fault_dangers
from chaoslab.search._seen_kinds import UNUSABLE
from chaoslab.search.variation import Made, Root, TriedVariation, Variation, get_injection_site, is_lasting_injection

PAGE = "docs/how-to/mend.md"
UNNOTICED = "unnoticeable"
"""The symptom of a failure that no agent could have noticed: a value that might be right, an oddity of the model."""
_ERROR = re.compile(r"\(RuntimeError: the command ended with (exit code \d+)|\((\w+)[:)]")
HARM = 80
"""The most characters of a harm in a sentence."""
AGAIN = (FindingKind.DUPLICATE,)
WORLD = (FindingKind.PHANTOM, FindingKind.ALTERED, FindingKind.ORDER, FindingKind.STATE)


class Symptom(NamedTuple):
    """A way to go wrong: in words for a user of the agent, and what mends it. `{harm}`: what was done that should not
    have been; `{op}`: the operation; `{error}`: the exception."""

    words: str
    fix: str


SYMPTOMS = {
    "repeats": Symptom(
        "{harm}: the agent repeats a call that may have succeeded.",
        "Send one Idempotency-Key with all attempts, or check before retrying.",
    ),
    "delivered twice": Symptom(
        "{harm}: a request that arrives twice is carried out twice.",
        "Give each write an Idempotency-Key, so that its service recognizes a repeated request.",
    ),
    "resumes twice": Symptom(
        "{harm}: an agent that is killed and resumed repeats what was already done.",
        "Store the key of a write before sending it; on resuming, send the same key again, or check what was done.",
    ),
    "resumes too far": Symptom(
        "An agent that is killed and resumed leaves something undone or wrong.",
        "Record a step as done only after it is done, together with what the next steps need.",
    ),
    "unasked": Symptom(
        "{harm}: the agent does something else when {op} fails.",
        "Have the user confirm a write that was not requested, including one that compensates for a failure.",
    ),
    "swallows": Symptom(
        "The agent reports success: it swallows the failure of {op}.",
        "Say in the answer what failed and what is missing.",
    ),
    "takes": Symptom(
        "{harm}: the agent accepts any reply of {op} unchecked.",
        "Validate each reply against its schema where it is read, and treat one that does not fit as a failed call.",
    ),
    "uncaught": Symptom(
        "The user gets {error} instead of an answer: nothing catches the failure of a call.",
        "Catch the failure where the call is made, and tell the user what could not be done.",
    ),
    "raises": Symptom(
        "The user gets {error} instead of an answer.",
        "Tell the user what was done and what was not, instead of raising an exception.",
    ),
    "waits": Symptom(
        "The user waits forever: the agent never gets past {op}.",
        "Give every call a deadline and every retry loop a limit; then say what could not be done.",
    ),
    "order": Symptom(
        "{harm}: the result depends on which of several parallel calls comes first.",
        "Wait for a call before making another that depends on it.",
    ),
    UNNOTICED: Symptom("{harm}", "Ask a second source before acting on a value that matters."),
}


EVERYWHERE = ("delivered twice", "takes", "uncaught", UNNOTICED)
"""The symptoms that one habit of the agent brings about at many lines."""


class _Hit(NamedTuple):
    """A fault with the attempt that it hit; of one that lasts, the last."""

    fault: str
    made: Made

    @property
    def caller_saw_error(self) -> bool:
        """True if its caller was told of a failure, instead of a reply that is not the right one."""
        return bool(self.made.error) and not self.made.error.startswith(UNUSABLE)


def find_root_cause(
    variation: Variation, verdict: Verdict, calls: Sequence[Made], history: History, raised: Raised
) -> Root:
    """The root cause of a trial that failed. `raised`: where its error was raised."""
    hits = sorted(_pair_faults_with_calls(variation, calls), key=lambda hit: calls.index(hit.made))
    last = hits[-1] if hits else None
    aimed_at = variation.injections[-1].targets[0] if variation.injections else ""
    operation, line = (_get_operation_name(last.made), last.made.line) if last is not None else (aimed_at, "")
    unnoticed = any(is_unnoticeable_fault(hit.fault) for hit in hits)
    if any(get_trait(load_fault(hit.fault), "of_agent") for hit in hits):
        finding, root = _find_finding_of_kind(verdict, AGAIN), Root("", operation, line)
        return (
            _find_root_at_effect("resumes twice", finding, calls, history, root)
            if finding
            else root._replace(symptom="resumes too far")
        )
    if verdict.outcome is Outcome.HARM:
        if (repeat := _find_finding_of_kind(verdict, AGAIN)) is not None:
            if any(get_trait(load_fault(hit.fault), "redelivers") for hit in hits):
                return _find_root_at_effect("delivered twice", repeat, calls, history, Root("", operation, line))
            if hits and all(
                is_unnoticeable_fault(hit.fault) and get_trait(load_fault(hit.fault), "of_model") for hit in hits
            ):
                return Root(UNNOTICED)
            return _find_root_at_effect(
                "repeats" if hits else "order", repeat, calls, history, Root("", operation, line)
            )
        if not hits:
            finding = _find_finding_of_kind(verdict, WORLD)
            return _find_root_at_effect("order", finding, calls, history, Root("")) if finding else Root("order")
        if unnoticed:
            return Root(UNNOTICED)
        if last is not None and (
            not last.caller_saw_error or _find_finding_of_kind(verdict, (FindingKind.ALTERED,)) is not None
        ):
            return Root("takes", operation, line)
        finding = _find_finding_of_kind(verdict, WORLD)
        root = Root("unasked", operation, line)
        return (
            _find_root_at_effect("unasked", finding, calls, history, root)._replace(operation=operation)
            if finding
            else root
        )
    if verdict.outcome is Outcome.HUNG:
        stuck = calls[-1] if calls else None
        return Root("waits", _get_operation_name(stuck), stuck.line) if stuck is not None else Root("waits", operation)
    if verdict.outcome is Outcome.FAILED:
        if last is not None and not last.caller_saw_error and (raised.own or not raised.line):
            return Root("takes", operation, line)
        return Root("raises", "", raised.line) if raised.own else Root("uncaught", operation, raised.line)
    if unnoticed:
        return Root(UNNOTICED)
    if not hits:
        return Root("order")
    return (
        Root("swallows", operation, line)
        if last is not None and last.caller_saw_error
        else Root("takes", operation, line)
    )


def _pair_faults_with_calls(variation: Variation, calls: Sequence[Made]) -> "list[_Hit]":
    hits = []
    for injection in variation.injections:
        if (hit := _find_hit_call(injection, calls)) is not None:
            hits.append(_Hit(injection.choices[0].fault, hit))
    return hits


def _find_hit_call(injection: Injection, calls: Sequence[Made]) -> Made | None:
    if not injection.calls:
        return None
    site = get_injection_site(injection)
    if is_lasting_injection(injection):
        return next((call for call in reversed(calls) if call.site.target == site.target), None)
    return next((call for call in calls if call.site == site), None)


def _get_operation_name(call: Made) -> str:
    return call.site.tool or call.site.target


def _find_finding_of_kind(verdict: Verdict, kinds: Sequence[FindingKind]) -> Finding | None:
    return next((finding for finding in verdict.evidence if finding.kind in kinds), None)


def _find_root_at_effect(
    symptom: str, finding: Finding, calls: Sequence[Made], history: History, otherwise: Root
) -> Root:
    """The root at the call that had the last effect that a finding tells of."""
    lines = {*finding.lines}
    for record in reversed([*history]):
        effect = record.event
        if (record.writer, record.seq) not in lines or not isinstance(effect, Effect):
            continue
        attempt_key = (effect.target, effect.request, effect.attempt or 1)
        at = (call for call in calls if (call.site.target, call.site.request, call.site.attempt) == attempt_key)
        line = next((call.line for call in at), "")
        return Root(symptom, effect.tool or effect.target, line)
    return Root(symptom, otherwise.operation, otherwise.line)


def describe_harm(tried: TriedVariation) -> str:
    """The harm to a user of the agent, in a sentence."""
    root = tried.root or Root("raises")
    harm = strip_varying_details(tried.harm[0]) if tried.harm else ""
    harm = f"{harm[:HARM]}…" if len(harm) > HARM else harm
    match = _ERROR.search(tried.why)
    error = (match[1] or match[2]) if match else "an exception"
    if not harm:
        harm = f"The user gets {error} instead of an answer" if match else "The user is told what is not so"
        harm = "The user gets no answer" if tried.outcome == "failed" and not match else harm
    sentence = SYMPTOMS[root.symptom].words.format(harm=harm, op=root.operation or "a call", error=error)
    return sentence[:1].upper() + sentence[1:]


def build_fix_url(root: Root) -> str:
    """The page that tells more of the fix."""
    return f"{PAGE}#{root.symptom.replace(' ', '-')}"


def make_root_key(root: Root) -> Root:
    """The root without the place, if one mend meets it at all places."""
    return Root(root.symptom) if root.symptom in EVERYWHERE else root


def list_failure_places(tried: Sequence[TriedVariation]) -> list[str]:
    """The lines at which these trials of one root cause went wrong, each once; the operation where no line is known."""
    roots = [trial.root for trial in tried if trial.root is not None]
    roots = roots if roots and roots[0].symptom in EVERYWHERE else roots[:1]
    return [*dict.fromkeys(root.line or root.operation for root in roots if root.line or root.operation)]


def has_unnoticeable_root(tried: TriedVariation) -> bool:
    """True of a failure that no agent could have noticed."""
    return tried.root is not None and tried.root.symptom == UNNOTICED


RANK = {name: n for n, name in enumerate(("harm", "false_success", "undone", "hung", "wrong", "failed"))}
"""The outcomes, worst first."""


def make_failure_sort_key(tried: TriedVariation) -> tuple[Any, ...]:
    """Sorts failures: the worst first, then what needs the fewest and likeliest faults."""
    return RANK.get(tried.outcome, len(RANK)), tried.variation.part_count, rank_fault_dangers(tried)


def group_by_root(groups: Sequence[Sequence[TriedVariation]]) -> list[list[TriedVariation]]:
    """The failures by root cause, each with that first which shows it best. One that holds a smaller one which is as
    bad shows nothing new, and counts there."""
    rooted_trials: list[tuple[Root, TriedVariation]] = []
    kept_trials: list[TriedVariation] = []
    # The smallest first, so that a larger one that holds it is known as such.
    for trial in sorted(
        chain.from_iterable(groups), key=lambda trial: (trial.variation.part_count, make_failure_sort_key(trial))
    ):
        smaller = (
            smaller_trial
            for smaller_trial in kept_trials
            if smaller_trial.variation.part_texts < trial.variation.part_texts
            and make_failure_sort_key(smaller_trial)[0] <= make_failure_sort_key(trial)[0]
        )
        root = next(smaller, trial).root
        assert root is not None  # it failed
        kept_trials.append(trial)
        rooted_trials.append((root, trial))
    # What the agent does twice by itself and what arrives twice is one effect, and one key for it mends both.
    repeats = {root.operation: root for root, _ in rooted_trials if root.symptom == "repeats"}
    groups_by_root: dict[Root, list[TriedVariation]] = {}
    for root, trial in rooted_trials:
        is_delivered_twice = root.symptom == "delivered twice"
        key = repeats.get(root.operation, root) if is_delivered_twice else root
        groups_by_root.setdefault(make_root_key(key), []).append(trial)
    return sorted(
        (sorted(group, key=_make_group_sort_key) for group in groups_by_root.values()),
        key=lambda g: make_failure_sort_key(g[0]),
    )


def _make_group_sort_key(tried: TriedVariation) -> tuple[Any, ...]:
    # The agent's own repetition is shown, which has a line, also where it needs more faults.
    return tried.root is not None and tried.root.symptom == "delivered twice", *make_failure_sort_key(tried)
