"""The injections of a plan that could have hit and hit nothing, such as one whose `tool=` fits no call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chaoslab.base.jsonable import line
from chaoslab.core.events import CallFinished, CallStarted, FaultScheduled, FaultWitnessed
from chaoslab.core.plan import Injection
from chaoslab.record.history import History

SHOWN, NAME = 5, 60
"""The most tools that are named, and the most characters of one."""


class Idle:
    """The injections that have hit nothing in the trials so far.

    One that is left to chance counts only while no attempt concerned it, since its dice may spare all others. So does
    one that waits for another, or whose story decides itself. Those that must hit a request by its number are left
    out: the verdict tells of them.
    """

    def __init__(self) -> None:
        self._left: dict[str, Injection] = {}
        self._done: set[str] = set()
        self._tools: dict[str, dict[str, None]] = {}

    def take(self, history: History, injections: Sequence[Injection]) -> None:
        """Adds a trial with its injections."""
        for each in injections:
            if each.name not in self._done and each.may_hit and not each.certain:
                self._left[each.name] = each
        if not self._left:
            return
        hit = {event.injection for _, event in history.of(FaultScheduled)}
        hit |= {event.injection for _, event in history.of(FaultWitnessed)}
        concerned = {name for _, event in history.of(CallFinished) for name in event.rolled}
        for name, each in list(self._left.items()):
            if name in hit or (name in concerned and _by_chance(each)):
                self._done.add(name)
                del self._left[name]
        for name, each in self._left.items():
            tools = self._tools.setdefault(name, {})
            tools.update({event.tool: None for _, event in history.of(CallStarted) if each.covers(event.target)})

    def told(self, *, called: bool = False) -> list[str]:
        """A line for each of them. `called`: only those whose targets were called."""
        return [
            line(_told(each, self._tools.get(name, {})), 500)
            for name, each in self._left.items()
            if self._tools.get(name) or not called
        ]


def idle(history: History, injections: Sequence[Injection]) -> tuple[str, ...]:
    """A line for each injection that hit nothing in this trial, though its targets were called."""
    found = Idle()
    found.take(history, injections)
    return tuple(found.told(called=True))


def _by_chance(injection: Injection) -> bool:
    return injection.chance < 1 or "after" in injection.triggers or injection.conditional


def conditions(injection: Injection) -> str:
    """The triggers of an injection but for its chance, as they were stated."""
    stated = {name: trigger.value for name, trigger in injection.by_name.items() if name != "chance"}
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in stated.items()}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _told(injection: Injection, tools: Mapping[str, None]) -> str:
    where = ", ".join(injection.targets)
    if not tools:
        return f"'{injection.name}' hit nothing: nothing called {where}"
    named = [line(tool, NAME) for tool in tools]
    were = f"the calls to {where} were {_listed(named)}"
    asks = conditions(injection)
    if not asks:
        return f"'{injection.name}' hit nothing: {were}"
    counts = f"; calls= counts all requests to {where}" if injection.calls and injection.triggers else ""
    return f"'{injection.name}' hit nothing: it asks for {asks}, and {were}{counts}"


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more
