"""Requests of one trial for the same thing: equal target, tool and arguments, under different numbers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from chaoslab.base.identity import canonical
from chaoslab.core.events import CallFinished, CallStarted, Effect
from chaoslab.record.history import History, Place, place_in_time

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

    def together(self, other: _Request) -> bool:
        """True if each began before the other ended."""
        return self.began < other.ended and other.began < self.ended

    @property
    def is_whole(self) -> bool:
        """True if the log has all that was wanted. Of a model's conversation it has only the number of messages."""
        said = self.asked.arguments if self.asked is not None else None
        return not (isinstance(said, Mapping) and said.keys() == {"messages"} and type(said["messages"]) is int)


_Right = tuple[Moment, _Request, CallFinished]
"""The end of an attempt that was right."""


class Wishes:
    """Finds the right result that another request got for the same thing. `targets`: the only ones that are asked
    about. `wrong`: attempts that got another reply in place of the right one."""

    def __init__(self, history: History, targets: Collection[Target], wrong: Set[Place]) -> None:
        self._history, self._targets, self._wrong = history, targets, wrong
        self._same: dict[Target, dict[str, list[_Right]]] = {}

    def granted(self, where: Target, number: int, since_t: float, *, anew: bool) -> tuple[float, CallFinished] | None:
        """The first right result from `since_t` on of another request for the same thing that was under way together
        with this one, and changed nothing. `anew`: or of one that began after this one had ended."""
        mine = self._requests[where].get(number)
        if mine is None or mine.asked is None:
            return None
        if where not in self._same:
            self._same[where] = self._right(where)
        right = self._same[where].get(_wanted(mine.asked), ())
        for at in range(bisect_left(right, since_t, key=lambda one: one[0][0]), len(right)):
            moment, other, call = right[at]
            if other is mine:
                continue
            if mine.together(other):
                granted = mine.is_whole and not self._changed(where, call.tool, min(mine.began, other.began), moment)
            else:
                granted = anew and other.began > mine.ended
            if granted:
                return moment[0], call
        return None

    @cached_property
    def _requests(self) -> dict[Target, dict[int, _Request]]:
        """The requests by number."""
        found: dict[Target, dict[int, _Request]] = {where: {} for where in self._targets}
        for record, began, at in self._history.placed(CallStarted):
            if (there := found.get(at[:2])) is None:
                continue
            request = there.get(at[2])
            if request is None:
                request = there[at[2]] = _Request(at[2], place_in_time(record))
            if request.asked is None and began.arguments is not None:
                request.asked = began
        for record, ended, at in self._history.placed(CallFinished):
            if at[:2] in found and (request := found[at[:2]].get(at[2])) is not None:
                request.ended = place_in_time(record)
                if ended.ok and at not in self._wrong:
                    request.ends.append((request.ended, ended))
        return found

    def _right(self, where: Target) -> dict[str, list[_Right]]:
        """The right results at a target in the order of time, by what was wanted."""
        found: dict[str, list[_Right]] = {}
        for request in self._requests[where].values():
            if request.asked is not None and request.ends:
                found.setdefault(_wanted(request.asked), []).extend(
                    (moment, request, call) for moment, call in request.ends
                )
        for right in found.values():
            right.sort(key=lambda one: one[0])
        return found

    @cached_property
    def _effects(self) -> dict[str | None, list[tuple[Moment, Effect]]]:
        found: dict[str | None, list[tuple[Moment, Effect]]] = {}
        for record, effect in self._history.of(Effect):
            found.setdefault(record.trial, []).append((place_in_time(record), effect))
        return found

    def _changed(self, where: Target, tool: str, since: Moment, until: Moment) -> bool:
        """True if the ledger has an effect of the tool between these moments. One that a server does for a function is
        named after it."""
        return any(
            since <= moment <= until
            and ((effect.target, effect.tool) == (where[1], tool) or effect.effect == tool)
            for moment, effect in self._effects.get(where[0], ())
        )  # fmt: skip


def _wanted(asked: CallStarted) -> str:
    return canonical([asked.tool, asked.arguments])
