"""A trial as a story: its calls, the faults of each attempt and its end, without times and addresses. Stories make a
trial comparable with itself in another world, where everything takes another time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.verdict import traits
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.core import events
from chaoslab.record.effects import make_attempt_finder
from chaoslab.record.history import History
from chaoslab.record.lines import Record

FACTOR = 2.0
"""The factor around an attempt's deadline within which a delay may end either way, since real clocks and machines are
not exact."""

Story = dict[str, dict[str, Any]]
"""Facts by place ("search 1.2" is the second attempt of the first request), in the order of their start."""
STAGES: Mapping[type[events.Event], str] = {
    events.FaultScheduled: "scheduled", events.FaultArmed: "armed", events.FaultInjected: "injected",
    events.FaultWitnessed: "witnessed", events.FaultHealed: "healed",
}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """The first difference between two stories: its place, the field, and both values."""

    place: str
    what: str
    was: Any
    now: Any


def build_story(records: Iterable[Record], trial: str) -> Story:
    """The story of that trial."""
    history = History(record for record in records if record.trial == trial)
    story: Story = {}
    attempt_of = make_attempt_finder(event for _, event in history.find_events(events.CallStarted))
    for record in history.records:
        event = record.event
        match event:
            case events.CallStarted():
                _get_attempt_facts(story, event).update({"tool": event.tool, "arguments": event.arguments})
            case events.CallFinished():
                end = {"ok": event.ok, "status": event.status, "error": event.error, "via": event.via}
                _get_attempt_facts(story, event).update(
                    {**end, "rolled": sorted(event.rolled), "replayed": event.replayed}
                )
            case _ if isinstance(event, events.Stage):
                _add_fault_event(story, event)
            case events.FaultUnreached():
                key = f"{event.target} {event.request}"
                story.setdefault(key, {}).setdefault("not reached by", []).append(event.injection)
            case events.Retry() | events.Fallback():
                _get_attempt_facts(story, event)[event.kind] = True
            case events.Budget():
                story.setdefault("budget", {}).setdefault(event.limit, []).append([event.mode, event.target])
            case events.Effect():
                key = " ".join(map(str, (attempt_of(event) or (event.target,))[:2]))
                happened = story.setdefault(f"effects of {key}", {}).setdefault("happened", [])
                happened.append([event.effect, event.content])
            case events.PromptStarted():
                story["prompt"] = {"asked": event.prompt, "facts": event.facts, "effects": event.effects}
            case events.PromptAttempt():
                story[f"prompt, attempt {event.prompt_attempt}"] = {"status": event.status, "error": event.error_type}
            case events.PromptFinished():
                story["end"] = {"status": event.status, "error": event.error_type, "answer": event.answer}
                story["end"]["outcome"] = str(judge_trial(history, trial).outcome)
            case _:
                pass
    return story


def _add_fault_event(story: Story, event: events.Stage) -> None:
    """Adds a fault's event to its place in the story."""
    fault = _get_attempt_facts(story, event)["faults"].setdefault(f"{event.fault} of {event.injection}", {"stages": []})
    stage = STAGES[type(event)]
    if isinstance(event, events.FaultScheduled):
        fault["params"] = event.params
    if isinstance(event, events.FaultHealed) and not event.witnessed:
        stage = "healed, not witnessed"
    fault["stages"].append(stage)


def _get_attempt_facts(story: Story, event: Any) -> dict[str, Any]:
    return story.setdefault(_attempt_label(event), {"faults": {}})


def _attempt_label(event: Any) -> str:
    return f"{event.target} {event.request}.{event.attempt}"


def find_story_difference(was: Story, now: Story) -> Difference | None:
    """The first difference, in the order of the first story; None if there is none."""
    for key, facts in was.items():
        if key not in now:
            return Difference(key, "", facts, None)
        if (difference := find_first_difference(facts, now[key])) is not None:
            return Difference(key, *difference)
    added = next((key for key in now if key not in was), None)
    return None if added is None else Difference(added, "", None, now[added])


def find_first_difference(was: Any, now: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The first field that differs in two JSON values: its path, and both values."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was | now:
            inner_path = f"{path}.{key}" if path else str(key)
            if key not in was or key not in now:
                return inner_path, was.get(key), now.get(key)
            if (difference := find_first_difference(was[key], now[key], inner_path)) is not None:
                return difference
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return next(
            (
                difference
                for n, pair in enumerate(zip(was, now, strict=True))
                if (difference := find_first_difference(*pair, f"{path}[{n}]"))
            ),
            None,
        )
    # True is 1 to Python, and 1 is 1.0: in a log they are not.
    return None if was == now and type(was) is type(now) else (path, was, now)


def explain_timing_difference(
    records: Iterable[Record], trial: str, difference: Difference, *, tool_s: float, model_s: float
) -> str:
    """The reason why the difference is only one of the clock, as part of a line; empty if it is none. A delay within
    `FACTOR` of the attempt's deadline may end either way. A closed connection is seen as reset if bytes of its client's
    were still unread."""
    for record in records:
        event = record.event
        if (
            record.trial != trial
            or not isinstance(event, events.FaultScheduled)
            or _attempt_label(event) != difference.place
        ):
            continue
        if (
            traits.closes_connection(event.fault)
            and difference.what == "error"
            and {difference.was, difference.now} == {"closed", "reset"}
        ):
            return f"{event.fault} closes a connection of which not all may have been read"
        deadline_s = model_s if event.target == "model" else tool_s
        parameters = [event.params.get(name) for name in ("delay_s", "after_s")]
        delays = [delay_s for delay_s in parameters if isinstance(delay_s, int | float)]
        if any(deadline_s / FACTOR <= delay_s <= deadline_s * FACTOR for delay_s in delays):
            return f"a delay within a factor of {FACTOR:g} of the deadline"
    return ""


def explain_incomparable(records: Iterable[Record], trial: str) -> str:
    """The reason why the trial cannot be compared with one in another world, such as a real disturbance; empty if there
    is none."""
    for record in records:
        if record.trial == trial:
            if isinstance(record.event, events.CallDisturbed):
                return f"the lab itself got in the way ({record.event.why})"
            if isinstance(record.event, events.Budget) and record.event.limit == "seconds":
                return "it ran out of seconds, which no two worlds count alike"
    return ""
