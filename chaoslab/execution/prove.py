"""`lab.prove`: the map of one agent run again on another, or on itself with a mitigation around its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from chaoslab.base.registry import did_you_mean
from chaoslab.execution._confirming import BY, Confirmation, as_survived
from chaoslab.execution.explore import AskedExplore, Exploration, searched
from chaoslab.execution.exploring import SearchSession, fails_by_verdict, session
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import NoBaseline
from chaoslab.seams.functions.mitigations import KINDS
from chaoslab.search.contrast import LOOKS
from chaoslab.search.proof import NewCall, Proof, ProofChange
from chaoslab.search.variation import GOOD, Site, Tried, site_of

DEADLINE = "deadline"
DEADLINE_S = 10.0
"""The deadline of a call that the mitigation `deadline` states, in seconds."""
MITIGATIONS = (*KINDS, DEADLINE)
"""An idempotency key that the service honours, no second try of a write, a look before it, a wait that grows, and a
shorter deadline."""


def prove(
    found: Exploration, agent: Any = None, *, mitigation: str = "", accept: Sequence[str] = GOOD,
    jobs: int = 1, **changed: Any,
) -> Proof:  # fmt: skip
    """Explores another agent, or the same with a mitigation around its functions ("key", "no-retry", "read-first",
    "backoff" or "deadline"), and runs the trials of an exploration again with it. `changed`: further options of
    `lab.run` that the other agent needs, such as its `tools`.

    Raises:
        ValueError, LookupError, TypeError: an argument is invalid; the message is one line.
    """
    asked = found.asked
    if asked is None:
        raise ValueError("this exploration holds no agent to run again: give what lab.explore returned")
    if (agent is None) == (not mitigation):
        raise ValueError("prove takes another agent, or mitigation=, and not both")
    asked = replace(asked, **{**({} if agent is None else {"agent": agent}), **changed, "logs": None})
    fails = fails_by_verdict(accept)
    what = mitigation or f"the agent {getattr(agent, '__qualname__', type(agent).__name__)}"
    budget = as_after(found, asked)
    return proof(found.trials, what, lambda: opened_with(asked, mitigation, jobs=jobs, fails=fails), budget)


def opened_with(asked: RunArguments, mitigation: str, **options: Any) -> AbstractContextManager[SearchSession]:
    """The session of an agent with this mitigation; empty for none. Raises LookupError: there is no such mitigation."""
    if mitigation and mitigation not in MITIGATIONS:
        raise LookupError(f"no mitigation is called '{mitigation:.40}': {did_you_mean(mitigation, MITIGATIONS)}")
    if mitigation == DEADLINE:
        return session(replace(asked, timeout_s=min(DEADLINE_S, asked.timeout_s)), **options)
    return session(asked, **options, mitigation=mitigation)


def as_after(found: Exploration, asked: AskedExplore) -> AskedExplore:
    """The arguments with which the changed agent is explored. An exploration that went on where another was had a
    budget of its own."""
    trials = max(asked.trials, 2 * len(found.trials))
    return replace(asked, trials=trials, logs=None, resume=None, tell=None)


def proof(
    before: Sequence[Tried], what: str, opened: Callable[[], AbstractContextManager[SearchSession]], asked: AskedExplore
) -> Proof:
    """The proof that this session gives: the map of the changed agent, and these variations again with it. `asked`: the
    arguments of its exploration."""
    found = Proof(what)
    try:
        with opened() as trials:
            after = searched(trials, asked)
            known = after.map.known
            confirmation = Confirmation(trials, known.calm)
            todo = [each for each in before if known.of(each.variation) is None]
            numbers = [each.chance for each in todo]
            ran = trials.tried([each.variation for each in todo], "prove", numbers=numbers)
            again = {tried.variation.key: tried for tried, _ in ran}
            for was in before:
                now = known.of(was.variation) or _told_from_noise(again[was.variation.key], was, confirmation)
                if was.failed and not now.failed:
                    now = _failing(now, trials, confirmation) or now
                found.changes.append(ProofChange(was, now))
            found.new = _new_calls(before, after)
    except NoBaseline as error:
        found.refused = str(error)
    return found


def _told_from_noise(now: Tried, was: Tried, confirmation: Confirmation) -> Tried:
    """The trial; as survived if it failed where it did not before, and its faults are not the cause."""
    if was.failed or not now.failed:
        return now
    contrast, again = confirmation.contrast(now)
    return now if contrast.holds else as_survived(now, again)


def _failing(now: Tried, trials: SearchSession, confirmation: Confirmation) -> Tried | None:
    """The trial on other chance, where the agent draws, if it fails there. One that is not seen to fail is closed."""
    if not confirmation.draws(now):
        return None
    numbers = range(now.chance + 1, now.chance + LOOKS[0])
    again = trials.tried([now.variation] * len(numbers), BY, numbers=numbers)
    failed = [tried for tried, _ in again if tried.failed]
    return next((each for each in failed if confirmation.contrast(each)[0].holds), None)


def _new_calls(before: Sequence[Tried], after: Exploration) -> list[NewCall]:
    """The calls that no trial made before, with what came of the faults at them."""
    old = {site for was in before for site in was.sites}
    cells: dict[Site, list[Tried | None]] = {}
    for row, _, tried in after.map.cells:
        if row.site not in old and not row.lasts:
            cells.setdefault(row.site, []).append(tried)
    causes = {site: list[str]() for site in cells}
    for failure in after.failures:
        for site in {site_of(each) for each in failure.variation.injections if len(each.calls) == 1} & cells.keys():
            causes[site].append(str(failure))
    return [
        NewCall(site, sum(each is not None for each in own), len(own), tuple(causes[site]))
        for site, own in cells.items()
    ]
