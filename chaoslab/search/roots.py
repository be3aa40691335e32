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

from chaoslab.analysis.verdict.ledger import Finding, FindingKind, strip_positions
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.user_line import Raised
from chaoslab.core.events import Effect
from chaoslab.core.fault import load, trait
from chaoslab.core.plan import Injection
from chaoslab.record.history import History
from chaoslab.search._danger import rank_likelihood, unnoticeable
from chaoslab.search._seen_kinds import UNUSABLE
from chaoslab.search.variation import Made, Root, Tried, Variation, is_lasting, site_of

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
        "{harm}: the agent does again what may have been done.",
        "Send the same Idempotency-Key with each attempt at a write, or look whether it was done before a retry.",
    ),
    "delivered twice": Symptom(
        "{harm}: a request that arrives twice is done twice.",
        "Give each write an Idempotency-Key, by which its service knows a request that it has served.",
    ),
    "resumes twice": Symptom(
        "{harm}: when the agent is killed and goes on, it does again what was done.",
        "Write down the key of a write before it is sent; when going on, send that key again, or ask what was done.",
    ),
    "resumes too far": Symptom(
        "When the agent is killed and goes on, something is left undone or wrong.",
        "Write down that a step is done after it was done, and what the next ones need together with it.",
    ),
    "unasked": Symptom(
        "{harm}: the agent does something else when {op} fails.",
        "Confirm a write that the user did not ask for, also one that makes up for a failure.",
    ),
    "swallows": Symptom(
        "The user is told that all is well: the failure of {op} is swallowed.",
        "Name in the answer what failed and what is missing, instead of passing over it.",
    ),
    "takes": Symptom(
        "{harm}: the agent takes what {op} replies as it comes.",
        "Check a reply against its schema where it is read, and take one that does not fit for a failed call.",
    ),
    "uncaught": Symptom(
        "The user gets {error} instead of an answer: nothing catches the failure of a call.",
        "Catch the failure of a call where it is made, and tell the user what could not be done.",
    ),
    "raises": Symptom(
        "The user gets {error} instead of an answer.",
        "Tell the user what was done and what was not, instead of an exception.",
    ),
    "waits": Symptom(
        "The user waits for ever: the agent does not get past {op}.",
        "Give every call a deadline, and each loop of attempts a bound; then say what could not be done.",
    ),
    "order": Symptom(
        "{harm}: it depends on which of several calls at once comes first.",
        "Wait for a call whose result or effect the next one rests on.",
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
    def told(self) -> bool:
        """True if its caller was told of a failure, instead of a reply that is not the right one."""
        return bool(self.made.error) and not self.made.error.startswith(UNUSABLE)


def find_root(variation: Variation, verdict: Verdict, calls: Sequence[Made], history: History, raised: Raised) -> Root:
    """The root cause of a trial that failed. `raised`: where its error was raised."""
    hits = sorted(_find_hits(variation, calls), key=lambda hit: calls.index(hit.made))
    last = hits[-1] if hits else None
    aimed_at = variation.injections[-1].targets[0] if variation.injections else ""
    operation, line = (_operation_of(last.made), last.made.line) if last is not None else (aimed_at, "")
    unnoticed = any(unnoticeable(hit.fault) for hit in hits)
    if any(trait(load(hit.fault), "of_agent") for hit in hits):
        finding, root = _find_finding(verdict, AGAIN), Root("", operation, line)
        return (
            _root_at_effect("resumes twice", finding, calls, history, root)
            if finding
            else root._replace(symptom="resumes too far")
        )
    if verdict.outcome is Outcome.HARM:
        if (repeat := _find_finding(verdict, AGAIN)) is not None:
            if any(trait(load(hit.fault), "redelivers") for hit in hits):
                return _root_at_effect("delivered twice", repeat, calls, history, Root("", operation, line))
            if hits and all(unnoticeable(hit.fault) and trait(load(hit.fault), "of_model") for hit in hits):
                return Root(UNNOTICED)
            return _root_at_effect("repeats" if hits else "order", repeat, calls, history, Root("", operation, line))
        if not hits:
            finding = _find_finding(verdict, WORLD)
            return _root_at_effect("order", finding, calls, history, Root("")) if finding else Root("order")
        if unnoticed:
            return Root(UNNOTICED)
        if last is not None and (not last.told or _find_finding(verdict, (FindingKind.ALTERED,)) is not None):
            return Root("takes", operation, line)
        finding = _find_finding(verdict, WORLD)
        root = Root("unasked", operation, line)
        return (
            _root_at_effect("unasked", finding, calls, history, root)._replace(operation=operation) if finding else root
        )
    if verdict.outcome is Outcome.HUNG:
        stuck = calls[-1] if calls else None
        return Root("waits", _operation_of(stuck), stuck.line) if stuck is not None else Root("waits", operation)
    if verdict.outcome is Outcome.FAILED:
        if last is not None and not last.told and (raised.own or not raised.line):
            return Root("takes", operation, line)
        return Root("raises", "", raised.line) if raised.own else Root("uncaught", operation, raised.line)
    if unnoticed:
        return Root(UNNOTICED)
    if not hits:
        return Root("order")
    return Root("swallows", operation, line) if last is not None and last.told else Root("takes", operation, line)


def _find_hits(variation: Variation, calls: Sequence[Made]) -> "list[_Hit]":
    hits = []
    for injection in variation.injections:
        if (hit := _call_at(injection, calls)) is not None:
            hits.append(_Hit(injection.choices[0].fault, hit))
    return hits


def _call_at(injection: Injection, calls: Sequence[Made]) -> Made | None:
    if not injection.calls:
        return None
    site = site_of(injection)
    if is_lasting(injection):
        return next((call for call in reversed(calls) if call.site.target == site.target), None)
    return next((call for call in calls if call.site == site), None)


def _operation_of(call: Made) -> str:
    return call.site.tool or call.site.target


def _find_finding(verdict: Verdict, kinds: Sequence[FindingKind]) -> Finding | None:
    return next((finding for finding in verdict.evidence if finding.kind in kinds), None)


def _root_at_effect(symptom: str, finding: Finding, calls: Sequence[Made], history: History, otherwise: Root) -> Root:
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


def describe_harm(tried: Tried) -> str:
    """The harm to a user of the agent, in a sentence."""
    root = tried.root or Root("raises")
    harm = strip_positions(tried.harm[0]) if tried.harm else ""
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


def key_of(root: Root) -> Root:
    """The root without the place, if one mend meets it at all places."""
    return Root(root.symptom) if root.symptom in EVERYWHERE else root


def list_places(tried: Sequence[Tried]) -> list[str]:
    """The lines at which these trials of one root cause went wrong, each once; the operation where no line is known."""
    roots = [trial.root for trial in tried if trial.root is not None]
    roots = roots if roots and roots[0].symptom in EVERYWHERE else roots[:1]
    return [*dict.fromkeys(root.line or root.operation for root in roots if root.line or root.operation)]


def is_unnoticed(tried: Tried) -> bool:
    """True of a failure that no agent could have noticed."""
    return tried.root is not None and tried.root.symptom == UNNOTICED


RANK = {name: n for n, name in enumerate(("harm", "false_success", "undone", "hung", "wrong", "failed"))}
"""The outcomes, worst first."""


def rank(tried: Tried) -> tuple[Any, ...]:
    """Sorts failures: the worst first, then what needs the fewest and likeliest faults."""
    return RANK.get(tried.outcome, len(RANK)), tried.variation.size, rank_likelihood(tried)


def group_by_root(groups: Sequence[Sequence[Tried]]) -> list[list[Tried]]:
    """The failures by root cause, each with that first which shows it best. One that holds a smaller one which is as
    bad shows nothing new, and counts there."""
    rooted_trials: list[tuple[Root, Tried]] = []
    kept_trials: list[Tried] = []
    # The smallest first, so that a larger one that holds it is known as such.
    for trial in sorted(chain.from_iterable(groups), key=lambda trial: (trial.variation.size, rank(trial))):
        smaller = (
            smaller_trial
            for smaller_trial in kept_trials
            if smaller_trial.variation.parts < trial.variation.parts and rank(smaller_trial)[0] <= rank(trial)[0]
        )
        root = next(smaller, trial).root
        assert root is not None  # it failed
        kept_trials.append(trial)
        rooted_trials.append((root, trial))
    # What the agent does twice by itself and what arrives twice is one effect, and one key for it mends both.
    repeats = {root.operation: root for root, _ in rooted_trials if root.symptom == "repeats"}
    groups_by_root: dict[Root, list[Tried]] = {}
    for root, trial in rooted_trials:
        is_delivered_twice = root.symptom == "delivered twice"
        key = repeats.get(root.operation, root) if is_delivered_twice else root
        groups_by_root.setdefault(key_of(key), []).append(trial)
    return sorted((sorted(group, key=_rank_in_group) for group in groups_by_root.values()), key=lambda g: rank(g[0]))


def _rank_in_group(tried: Tried) -> tuple[Any, ...]:
    # The agent's own repetition is shown, which has a line, also where it needs more faults.
    return tried.root is not None and tried.root.symptom == "delivered twice", *rank(tried)
