"""`lab.prove`: the map of one agent run again on another, or on itself with a mitigation around its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from chaoslab.base.registry import did_you_mean
from chaoslab.execution.explore import Exploration
from chaoslab.execution.exploring import SearchSession, fails_by_verdict, session
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import NoBaseline
from chaoslab.seams.functions.mitigations import KINDS
from chaoslab.search.proof import Proof, ProofChange
from chaoslab.search.variation import GOOD, Tried

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
    """Runs the trials of an exploration again with another agent, or with a mitigation around its functions: "key",
    "no-retry", "read-first", "backoff" or "deadline". `changed`: further options of `lab.run` that the other agent
    needs, such as its `tools`.

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
    return proof(found.trials, what, lambda: opened_with(asked, mitigation, jobs=jobs, fails=fails))


def opened_with(asked: RunArguments, mitigation: str, **options: Any) -> AbstractContextManager[SearchSession]:
    """The session of an agent with this mitigation; empty for none. Raises LookupError: there is no such mitigation."""
    if mitigation and mitigation not in MITIGATIONS:
        raise LookupError(f"no mitigation is called '{mitigation:.40}': {did_you_mean(mitigation, MITIGATIONS)}")
    if mitigation == DEADLINE:
        return session(replace(asked, timeout_s=min(DEADLINE_S, asked.timeout_s)), **options)
    return session(asked, **options, mitigation=mitigation)


def proof(before: Sequence[Tried], what: str, opened: Callable[[], AbstractContextManager[SearchSession]]) -> Proof:
    """The proof that running these variations again in this session gives."""
    found = Proof(what)
    try:
        with opened() as trials:
            again = trials.tried([each.variation for each in before], "prove")
            for was, (tried, _) in zip(before, again, strict=True):
                found.changes.append(ProofChange(was, tried))
    except NoBaseline as error:
        found.refused = str(error)
    return found
