"""Requests of one trial for the same thing: equal target, tool and arguments, under different numbers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from chaoslab.base.identity import canonical
from chaoslab.core.events import CallFinished, CallStarted, Effect
from chaoslab.record.history import History, Place, make_sort_key

Target = tuple[str | None, str]
"""A trial and a target."""
Moment = tuple[float, str, int]
"""The place of a record in its history."""


@dataclass(slots=True)
class _Request:
    """One request, from the beginning of its first attempt to the end of its last one. `asked`: its first attempt that
    tells what is wanted."""

    number: int
    began: Moment
    asked: CallStarted | None = None
    ended: Moment = (math.inf, "", 0)
    ends: list[tuple[Moment, CallFinished]] = field(default_factory=list)

    def overlaps(self, second: _Request) -> bool:
        """True if each began before the other ended."""
        return self.began < second.ended and second.began < self.ended

    @property
    def has_fully_logged_arguments(self) -> bool:
        """True if the log has all that was wanted. Of a model's conversation it has only the number of messages."""
        arguments = self.asked.arguments if self.asked is not None else None
        return not (
            isinstance(arguments, Mapping) and arguments.keys() == {"messages"} and type(arguments["messages"]) is int
        )


_RightResult = tuple[Moment, _Request, CallFinished]
"""The end of an attempt that was right."""


class EqualRequestFinder:
    """Finds the right result that another request got for the same thing. `targets`: the only ones that are asked
    about. `wrong`: attempts that got another reply in place of the right one."""

    def __init__(self, history: History, targets: Collection[Target], wrong: Set[Place]) -> None:
        self._history, self._targets, self._wrong = history, targets, wrong
        self._same: dict[Target, dict[str, list[_RightResult]]] = {}

    def find_result_of_equal_request(
        self, target_key: Target, number: int, since_t: float, *, anew: bool
    ) -> tuple[float, CallFinished] | None:
        """The first right result from `since_t` on of another request for the same thing that was under way together
        with this one, and changed nothing. `anew`: or of one that began after this one had ended."""
        request = self._requests_by_target[target_key].get(number)
        if request is None or request.asked is None:
            return None
        if target_key not in self._same:
            self._same[target_key] = self._group_right_results(target_key)
        right_results = self._same[target_key].get(_request_key(request.asked), ())
        for index in range(
            bisect_left(right_results, since_t, key=lambda right_result: right_result[0][0]), len(right_results)
        ):
            moment, other_request, call = right_results[index]
            if other_request is request:
                continue
            if request.overlaps(other_request):
                is_granted = request.has_fully_logged_arguments and not self._has_effect_between(
                    target_key, call.tool, min(request.began, other_request.began), moment
                )
            else:
                is_granted = anew and other_request.began > request.ended
            if is_granted:
                return moment[0], call
        return None

    @cached_property
    def _requests_by_target(self) -> dict[Target, dict[int, _Request]]:
        """The requests by number."""
        requests: dict[Target, dict[int, _Request]] = {target_key: {} for target_key in self._targets}
        for record, start, at in self._history.find_attempt_events(CallStarted):
            if (of_target := requests.get(at[:2])) is None:
                continue
            request = of_target.get(at[2])
            if request is None:
                request = of_target[at[2]] = _Request(at[2], make_sort_key(record))
            if request.asked is None and start.arguments is not None:
                request.asked = start
        for record, ended, at in self._history.find_attempt_events(CallFinished):
            if at[:2] in requests and (request := requests[at[:2]].get(at[2])) is not None:
                request.ended = make_sort_key(record)
                if ended.ok and at not in self._wrong:
                    request.ends.append((request.ended, ended))
        return requests

    def _group_right_results(self, target_key: Target) -> dict[str, list[_RightResult]]:
        """The right results at a target in the order of time, by what was wanted."""
        results: dict[str, list[_RightResult]] = {}
        for request in self._requests_by_target[target_key].values():
            if request.asked is not None and request.ends:
                results.setdefault(_request_key(request.asked), []).extend(
                    (moment, request, call) for moment, call in request.ends
                )
        for of_wish in results.values():
            of_wish.sort(key=lambda result: result[0])
        return results

    @cached_property
    def _effects_by_trial(self) -> dict[str | None, list[tuple[Moment, Effect]]]:
        effects: dict[str | None, list[tuple[Moment, Effect]]] = {}
        for record, effect in self._history.find_events(Effect):
            effects.setdefault(record.trial, []).append((make_sort_key(record), effect))
        return effects

    def _has_effect_between(self, target_key: Target, tool: str, since: Moment, until: Moment) -> bool:
        """True if the ledger has an effect of the tool between these moments. One that a server does for a function is
        named after it."""
        return any(
            since <= moment <= until
            and ((effect.target, effect.tool) == (target_key[1], tool) or effect.effect == tool)
            for moment, effect in self._effects_by_trial.get(target_key[0], ())
        )


def _request_key(call: CallStarted) -> str:
    return canonical([call.tool, call.arguments])
