"""`lab.prove`: the map of one agent run again on another, or on itself with a mitigation around its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from chaoslab.base.registry import did_you_mean
from chaoslab.execution._confirming import BY, Confirmation, mark_survived
from chaoslab.execution.explore import Exploration, ExploreArguments, run_exploration
from chaoslab.execution.exploring import SearchSession, fails_by_verdict, open_session
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
    arguments = found.asked
    if arguments is None:
        raise ValueError("this exploration holds no agent to run again: give what lab.explore returned")
    if (agent is None) == (not mitigation):
        raise ValueError("prove takes another agent, or mitigation=, and not both")
    arguments = replace(arguments, **{**({} if agent is None else {"agent": agent}), **changed, "logs": None})
    fails = fails_by_verdict(accept)
    change_text = mitigation or f"the agent {getattr(agent, '__qualname__', type(agent).__name__)}"
    budget = arguments_after(found, arguments)
    return build_proof(
        found.trials, change_text, lambda: open_with_mitigation(arguments, mitigation, jobs=jobs, fails=fails), budget
    )


def open_with_mitigation(
    arguments: RunArguments, mitigation: str, **options: Any
) -> AbstractContextManager[SearchSession]:
    """The session of an agent with this mitigation; empty for none. Raises LookupError: there is no such mitigation."""
    if mitigation and mitigation not in MITIGATIONS:
        raise LookupError(f"no mitigation is called '{mitigation:.40}': {did_you_mean(mitigation, MITIGATIONS)}")
    if mitigation == DEADLINE:
        return open_session(replace(arguments, timeout_s=min(DEADLINE_S, arguments.timeout_s)), **options)
    return open_session(arguments, **options, mitigation=mitigation)


def arguments_after(exploration: Exploration, arguments: ExploreArguments) -> ExploreArguments:
    """The arguments with which the changed agent is explored. An exploration that went on where another was had a
    budget of its own."""
    trials = max(arguments.trials, 2 * len(exploration.trials))
    return replace(arguments, trials=trials, logs=None, resume=None, tell=None)


def build_proof(
    before: Sequence[Tried],
    change_text: str,
    open_changed_session: Callable[[], AbstractContextManager[SearchSession]],
    arguments: ExploreArguments,
) -> Proof:
    """The proof that this session gives: the map of the changed agent, and these variations again with it.
    `arguments`: the arguments of its exploration."""
    built = Proof(change_text)
    try:
        with open_changed_session() as trials:
            after = run_exploration(trials, arguments)
            tried_after = after.map.known
            confirmation = Confirmation(trials, tried_after.calm)
            todo = [earlier_tried for earlier_tried in before if tried_after.of(earlier_tried.variation) is None]
            numbers = [earlier_tried.chance for earlier_tried in todo]
            rerun_results = trials.tried([earlier_tried.variation for earlier_tried in todo], "prove", numbers=numbers)
            reruns = {tried.variation.key: tried for tried, _ in rerun_results}
            for tried_before in before:
                tried_now = tried_after.of(tried_before.variation) or _confirm_change(
                    reruns[tried_before.variation.key], tried_before, confirmation
                )
                if tried_before.failed and not tried_now.failed:
                    tried_now = _find_failing(tried_now, trials, confirmation) or tried_now
                built.changes.append(ProofChange(tried_before, tried_now))
            built.new = _find_new_calls(before, after)
    except NoBaseline as error:
        built.refused = str(error)
    return built


def _confirm_change(after: Tried, before: Tried, confirmation: Confirmation) -> Tried:
    """The trial; as survived if it failed where it did not before, and its faults are not the cause."""
    if before.failed or not after.failed:
        return after
    contrast, reruns = confirmation.contrast(after)
    return after if contrast.holds else mark_survived(after, reruns)


def _find_failing(passed: Tried, trials: SearchSession, confirmation: Confirmation) -> Tried | None:
    """The trial on other chance, where the agent draws, if it fails there. One that is not seen to fail is closed."""
    if not confirmation.draws(passed):
        return None
    numbers = range(passed.chance + 1, passed.chance + LOOKS[0])
    reruns = trials.tried([passed.variation] * len(numbers), BY, numbers=numbers)
    failures = [tried for tried, _ in reruns if tried.failed]
    return next((candidate for candidate in failures if confirmation.contrast(candidate)[0].holds), None)


def _find_new_calls(before: Sequence[Tried], after: Exploration) -> list[NewCall]:
    """The calls that no trial made before, with what came of the faults at them."""
    known_sites = {site for tried_before in before for site in tried_before.sites}
    cells: dict[Site, list[Tried | None]] = {}
    for row, _, tried in after.map.cells:
        if row.site not in known_sites and not row.lasts:
            cells.setdefault(row.site, []).append(tried)
    causes = {site: list[str]() for site in cells}
    for failure in after.failures:
        for site in {
            site_of(cell_result) for cell_result in failure.variation.injections if len(cell_result.calls) == 1
        } & cells.keys():
            causes[site].append(str(failure))
    return [
        NewCall(site, sum(cell_result is not None for cell_result in results), len(results), tuple(causes[site]))
        for site, results in cells.items()
    ]
