"""Results of the trial without faults in which one of its parallel calls begins later than in the twin.

Where a twin makes calls side by side, its result may depend on which of them comes first, as with a balance that two
deposits read and write. A fault that delays or repeats one changes the order, and does no harm by that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from chaoslab.analysis.answers.compare import Likeness, compare_answers
from chaoslab.analysis.verdict.ledger import list_effects
from chaoslab.analysis.verdict.seen import ParallelCall
from chaoslab.analysis.verdict.standing import Standing, get_outcome_standing
from chaoslab.core import events
from chaoslab.core.exchange import Call, Flow, TrialContext, Wait
from chaoslab.core.fault import Fault
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._ground import list_effect_texts
from chaoslab.record.history import History

EACH_MAX = 8
"""The most calls of a twin that are held back each in a run of its own. Of more, some are held back together."""
DEPENDS = "the trial without faults has another result if {} begins after the calls beside it: a race of the agent's"
SLACK_S = 0.001
"""The time by which a call is held back longer than the twin took."""


@dataclass(frozen=True)
class HeldBack(Fault):
    """The request leaves later."""

    wait_s: float = 0.0
    layer = "tool"

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002
        yield Wait(self.wait_s)
        return (yield call)


def find_parallel_calls(history: History) -> list[ParallelCall]:
    """The calls that began before another one ended that had begun earlier, and ended after it; and those others. One
    that ends within another is made by it."""
    under_way: dict[tuple[str, int, int], ParallelCall] = {}
    since: dict[tuple[str, int, int], int] = {}
    parallel: dict[ParallelCall, None] = {}
    for number, record in enumerate(history):
        event = record.event
        if isinstance(event, events.CallStarted):
            attempt = event.target, event.request, event.attempt
            under_way[attempt], since[attempt] = (event.target, event.tool, event.request), number
        elif isinstance(event, events.CallFinished):
            attempt = event.target, event.request, event.attempt
            ended_call, start_number = under_way.pop(attempt, None), since.get(attempt, number)
            overlapping = [call for at, call in under_way.items() if since[at] > start_number]
            parallel |= dict.fromkeys([ended_call, *overlapping]) if ended_call is not None and overlapping else {}
    return [*parallel]


class CallReordering:
    """The results that the trials' twins have in other orders, each found once. `run`: runs the trial of this number
    without faults but for these injections."""

    def __init__(self, run: Callable[[int, Sequence[Injection]], AgentResult]) -> None:
        self._run = run
        self._known: dict[int, list[events.TwinReordered]] = {}

    def add_reordered_results(self, case: AgentCase, number: int, result: AgentResult) -> AgentResult:
        """Adds the results in other orders to the events of a trial that did not end well. `number`: as in
        `LostReadFinder.add_lost_read_events`."""
        if case.twin is None or not case.twin.parallel or get_outcome_standing(result.outcome) is Standing.WELL:
            return result
        twin_number = number if case.own_twins is not None else 0
        if twin_number not in self._known:
            self._known[twin_number] = [*self._find_reordered_results(case, twin_number)]
        for reordered in self._known[twin_number]:
            result.add_event(reordered)
        if self._known[twin_number]:
            result.warnings += (DEPENDS.format(self._known[twin_number][0].call),)
        return result

    def _find_reordered_results(self, case: AgentCase, number: int) -> Iterator[events.TwinReordered]:
        assert case.twin is not None
        # As long as the whole twin took: by then each call beside it has begun.
        wait_s = (case.twin.seconds or 0.0) + SLACK_S
        for late in iterate_groups_to_hold_back(case.twin.parallel):
            hold = [
                inject(HeldBack(wait_s), target, name=f"held back {request}", calls=[request])
                for target, _, request in late
            ]
            result = self._run(number, hold)
            ends = [call for _, call in result.history.find_events(events.CallFinished)]
            if all(call.ok for call in ends) and len(ends) == case.twin.calls:  # else more than the order is another
                target, tool, request = late[0]
                reordered = _make_reordered_event(case, result, f"{tool or target} {request}")
                if reordered is not None:
                    yield replace(reordered, together=len(late) > 1)


def iterate_groups_to_hold_back(calls: Sequence[ParallelCall]) -> Iterator[Sequence[ParallelCall]]:
    """The calls that begin later, run by run: each alone, or, if there are many, by the digits of their numbers in
    binary, so that of any two each comes once after the other."""
    if len(calls) <= EACH_MAX:
        yield from ([call] for call in calls)
        return
    for digit in range((len(calls) - 1).bit_length()):
        for late in (1, 0):
            yield [call for number, call in enumerate(calls) if number >> digit & 1 == late]


def _make_reordered_event(case: AgentCase, result: AgentResult, call: str) -> events.TwinReordered | None:
    """The result of a trial without faults; None if it gave no answer, or if it is the twin's."""
    assert case.twin is not None
    history = result.history
    answer_text = next(
        (event.answer for _, event in history.find_events(events.PromptFinished) if event.status == "ok"), None
    )
    if answer_text is None:
        return None
    state = next((event.after for _, event in history.find_events(events.EndState)), None)
    effects = list_effects(history, result.book.key)
    # In any order: a result is not another one since its effects came in another order.
    has_same_effects = (
        Counter(list_effect_texts(effects)) == Counter(case.twin.effect_names) and state == case.right_state
    )
    if has_same_effects and compare_answers(case.twin.said, answer_text).likeness is Likeness.SAME:
        return None
    return events.TwinReordered(
        call=call,
        answer=answer_text if case.twin.answer is not None else None,
        effects=[{"effect": effect.effect, **effect.content} for effect in effects],
        state=state if case.right_state is not None else None,
    )
