"""`lab.prove`: the map of one agent run again on another, or on itself with a mitigation around its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Any

from chaoslab.base.registry import suggest_name
from chaoslab.execution._confirming import BY, FailureConfirmation, make_unconfirmed_result
from chaoslab.execution.explore import Exploration, ExploreArguments, run_exploration
from chaoslab.execution.exploring import SearchSession, make_failure_test, open_agent_search
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import NoBaseline
from chaoslab.seams.functions.mitigations import KINDS
from chaoslab.search.proof import NewCall, Proof, ProofChange
from chaoslab.search.variation import GOOD, Site, TriedVariation, get_injection_site

DEADLINE = "deadline"
CLOSING_TRIALS = 20
"""The trials of which none may fail for a failure to be closed, where more than the faults decides."""
DEADLINE_S = 10.0
"""The deadline of a call that the mitigation `deadline` states, in seconds."""
MITIGATIONS = (*KINDS, DEADLINE)
"""An idempotency key that the service honours, no second try of a write, a look before it, a wait that grows, and a
shorter deadline."""


def prove(
    found: Exploration,
    agent: Any = None,
    *,
    mitigation: str = "",
    accept: Sequence[str] = GOOD,
    jobs: int = 1,
    **changed: Any,
) -> Proof:
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
    fails = make_failure_test(accept)
    change_text = mitigation or f"the agent {getattr(agent, '__qualname__', type(agent).__name__)}"
    budget = make_arguments_for_changed_agent(found, arguments)
    return build_proof(
        found, change_text, lambda: open_mitigated_session(arguments, mitigation, jobs=jobs, fails=fails), budget
    )


def open_mitigated_session(
    arguments: RunArguments, mitigation: str, **options: Any
) -> AbstractContextManager[SearchSession]:
    """The session of an agent with this mitigation; empty for none. Raises LookupError: there is no such mitigation."""
    if mitigation and mitigation not in MITIGATIONS:
        raise LookupError(f"no mitigation is called '{mitigation:.40}': {suggest_name(mitigation, MITIGATIONS)}")
    if mitigation == DEADLINE:
        return open_agent_search(replace(arguments, timeout_s=min(DEADLINE_S, arguments.timeout_s)), **options)
    return open_agent_search(arguments, **options, mitigation=mitigation)


def make_arguments_for_changed_agent(exploration: Exploration, arguments: ExploreArguments) -> ExploreArguments:
    """The arguments with which the changed agent is explored. An exploration that went on where another was had a
    budget of its own."""
    trials = max(arguments.trials, 2 * len(exploration.trials))
    return replace(arguments, trials=trials, logs=None, resume=None, tell=None)


def build_proof(
    found: Exploration,
    change_text: str,
    open_changed_session: Callable[[], AbstractContextManager[SearchSession]],
    arguments: ExploreArguments,
) -> Proof:
    """The proof that this session gives: the map of the changed agent, and what was tried before again with it.
    `arguments`: the arguments of its exploration."""
    built, before = Proof(change_text), found.trials
    try:
        with open_changed_session() as trials:
            after = run_exploration(trials, arguments)
            tried_after = after.map.known
            confirmation = FailureConfirmation(trials, tried_after.calm)
            confirmation.noisy = found.is_noisy or after.is_noisy
            known_kinds = {failure.kind for failure in found.by_itself}
            built.by_itself = [failure for failure in after.by_itself if failure.kind not in known_kinds]
            todo = [
                earlier_tried for earlier_tried in before if tried_after.find_trial(earlier_tried.variation) is None
            ]
            numbers = [earlier_tried.chance for earlier_tried in todo]
            rerun_results = trials.assess_variations(
                [earlier_tried.variation for earlier_tried in todo], "prove", numbers=numbers
            )
            reruns = {tried.variation.key: tried for tried, _ in rerun_results}
            for tried_before in before:
                tried_now = tried_after.find_trial(tried_before.variation) or _confirm_new_failure(
                    reruns[tried_before.variation.key], tried_before, confirmation
                )
                if tried_before.failed and not tried_now.failed:
                    tried_now = _find_failing_rerun(tried_now, trials, confirmation) or tried_now
                built.changes.append(ProofChange(tried_before, tried_now))
            built.new = _find_new_calls(before, after)
    except NoBaseline as error:
        built.refused = str(error)
    return built


def _confirm_new_failure(
    after: TriedVariation, before: TriedVariation, confirmation: FailureConfirmation
) -> TriedVariation:
    """The trial; as unknown or survived if it failed where it did not before, and its faults are not shown to be the
    cause."""
    if before.failed or not after.failed:
        return after
    contrast, reruns = confirmation.measure_contrast(after)
    return after if contrast.holds else make_unconfirmed_result(after, reruns, contrast)


def _find_failing_rerun(
    passed: TriedVariation, trials: SearchSession, confirmation: FailureConfirmation
) -> TriedVariation | None:
    """The trial on other chance, where more than its faults decides, if it fails there and not without faults. One that
    is not seen to fail is closed: what fails in 20 of 100 trials is so once in 86 times (0.8 ** 20)."""
    if not confirmation.is_nondeterministic(passed):
        return None
    numbers = range(passed.chance + 1, passed.chance + CLOSING_TRIALS)
    with closing(trials.assess_variations([passed.variation] * len(numbers), BY, numbers=numbers)) as reruns:
        failed = next((tried for tried, _ in reruns if tried.failed), None)
    if failed is None or confirmation.measure_contrast(failed)[0].calm_failed:
        return None
    return failed


def _find_new_calls(before: Sequence[TriedVariation], after: Exploration) -> list[NewCall]:
    """The calls that no trial made before, with what came of the faults at them."""
    known_sites = {site for tried_before in before for site in tried_before.attempt_sites}
    cells: dict[Site, list[TriedVariation | None]] = {}
    for row, _, tried in after.map.cells:
        if row.site not in known_sites and not row.lasts:
            cells.setdefault(row.site, []).append(tried)
    causes = {site: list[str]() for site in cells}
    for failure in after.failures:
        for site in {
            get_injection_site(cell_result)
            for cell_result in failure.variation.injections
            if len(cell_result.calls) == 1
        } & cells.keys():
            causes[site].append(str(failure))
    return [
        NewCall(
            site,
            sum(cell_result is not None for cell_result in results),
            len(results),
            tuple(causes[site]),
            sum(cell_result is not None and cell_result.is_inconclusive for cell_result in results),
        )
        for site, results in cells.items()
    ]
