"""The injections of a plan that could have hit and hit nothing, such as one whose `tool=` fits no call, and those that
found nothing to change in the calls that they hit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from chaoslab.analysis.verdict.traits import describe_required_content
from chaoslab.base.jsonable import join_truncated, to_one_line
from chaoslab.core import events
from chaoslab.core.plan import Injection, Plan
from chaoslab.record.history import History

ACTED = (events.FaultInjected, events.FaultArmed, events.FaultWitnessed)
"""The events of a fault that acted, or whose lane says why it did not. One that hit a call which failed or met another
fault has shown as much as it could."""
SHOWN, NAME = 5, 60
"""The most tools that are named, and the most characters of one."""


class IdleInjections:
    """The injections that have hit nothing in the trials so far, or changed nothing.

    One that is left to chance counts only while no attempt concerned it, since its dice may spare all others. So does
    one that waits for another, or whose story decides itself. Of those that must hit a request by its number, only the
    ones count that changed nothing: the verdict tells of the others.
    """

    def __init__(self) -> None:
        self._left: dict[str, Injection] = {}
        self._hits: Counter[str] = Counter()
        self._done: set[str] = set()
        self._tools: dict[str, dict[str, None]] = {}
        self._held: Counter[tuple[str, str]] = Counter()

    def register_injections(self, injections: Sequence[Injection]) -> bool:
        """Tells if there is one, of these or from before, that a trial with these could say something of."""
        for injection in injections:
            if injection.name not in self._done and injection.may_hit:
                self._left[injection.name] = injection
        return bool(self._left)

    def add_trial(self, history: History, injections: Sequence[Injection]) -> None:
        """Adds a trial with its injections."""
        if not self.register_injections(injections):
            return
        ends = [event for _, event in history.find_events(events.CallFinished)]
        concerned = {name for event in ends for name in event.rolled}
        changed = {event.at for _, event in history.find_events(events.FaultInjected)}
        unchanged = {event.at for event in ends if event.ok} - changed
        hits = [event for _, event in history.find_events(events.FaultScheduled)]
        acted = {event.injection for kind in ACTED for _, event in history.find_events(kind)}
        acted |= {event.injection for event in hits if event.at not in unchanged}
        self._hits.update(event.injection for event in hits)
        self._held.update((event.injection, event.limit) for _, event in history.find_events(events.FaultHeldBack))
        for name, injection in list(self._left.items()):
            if name in acted or (
                name in concerned and (injection.chance < 1 or "after" in injection.triggers or injection.conditional)
            ):
                self._done.add(name)
                del self._left[name]
        for name, injection in self._left.items():
            tools = self._tools.setdefault(name, {})
            tools.update(
                {
                    event.tool: None
                    for _, event in history.find_events(events.CallStarted)
                    if injection.covers(event.target)
                }
            )

    def describe_idle_injections(self, *, called: bool = False) -> list[str]:
        """A line for each of them. `called`: only those whose targets were called."""
        return [
            to_one_line(
                self._describe_blocking_limits(name)
                or _describe_idle_injection(injection, self._tools.get(name, {}), self._hits[name]),
                500,
            )
            for name, injection in self._left.items()
            if (self._tools.get(name) or not called) and (self._hits[name] or not injection.certain)
        ]

    def _describe_blocking_limits(self, name: str) -> str:
        """The line for an injection that limits have kept from hitting anything; empty if none has."""
        limits = {limit: times for (injection_name, limit), times in self._held.items() if injection_name == name}
        if not limits or self._hits[name]:
            return ""
        limit_text = ", ".join(f"{limit} ({times} time{'s' if times > 1 else ''})" for limit, times in limits.items())
        return f"'{name}' hit nothing: held back by {limit_text}"


def describe_trial_idle_injections(history: History, injections: Sequence[Injection]) -> tuple[str, ...]:
    """A line for each injection that hit or changed nothing in this trial, though its targets were called."""
    idle_injections = IdleInjections()
    idle_injections.add_trial(history, injections)
    return tuple(idle_injections.describe_idle_injections(called=True))


def describe_run_idle_injections(history: History) -> tuple[str, ...]:
    """A line for each injection of the run's plan that hit or changed nothing in any of its trials, though it had to
    hit: dice may spare all. None if the plan is not known, or not all stories are there."""
    if events.StoryLeftOut in history.event_kinds:
        return ()
    started, idle_injections = history.find_first_event(events.RunStarted), IdleInjections()
    with suppress(LookupError, TypeError, ValueError):  # a plan that is none of this version's
        idle_injections.add_trial(history, Plan.from_json(started.plan).injections if started is not None else ())
    return tuple(idle_injections.describe_idle_injections())


def describe_triggers(injection: Injection) -> str:
    """The triggers of an injection but for its chance, as they were stated."""
    triggers = {name: trigger.value for name, trigger in injection.by_name.items() if name != "chance"}
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in triggers.items()}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _describe_idle_injection(injection: Injection, tools: Mapping[str, None], hits: int) -> str:
    if hits:
        wants = {describe_required_content(choice.fault) for choice in injection.choices}
        reason = f": it needs {wants.pop()}" if len(wants) == 1 and all(wants) else ""
        return f"'{injection.name}' changed nothing in the {hits} call{'s' if hits > 1 else ''} that it hit{reason}"
    target_text = ", ".join(injection.targets)
    if not tools:
        return f"'{injection.name}' hit nothing: nothing called {target_text}"
    named = [to_one_line(tool, NAME) for tool in tools]
    is_own_target = (
        named == [target_text] and "tool" not in injection.triggers
    )  # a function is the only tool of its target
    calls_text = (
        f"no call to {target_text} was such"
        if is_own_target
        else f"the calls to {target_text} were {join_truncated(named, SHOWN)}"
    )
    triggers_text = describe_triggers(injection)
    if not triggers_text:
        return (
            f"'{injection.name}' hit nothing{f' in the calls to {target_text}' if is_own_target else f': {calls_text}'}"
        )
    counts = f"; calls= counts all requests to {target_text}" if injection.calls and injection.triggers else ""
    return f"'{injection.name}' hit nothing: it asks for {triggers_text}, and {calls_text}{counts}"
