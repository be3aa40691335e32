"""The figures of each trial are read from its events."""

from dataclasses import replace
from fractions import Fraction

from chaoslab.analysis.measures.trials import TrialTable
from chaoslab.core.events import Event, StoryLeftOut, Usage
from chaoslab.record.history import History
from tests.event_parts import story as history
from tests.verdict.trials import finished, message, started

STORIES: dict[str, list[Event]] = {
    "p1.r1": [
        started([], []),
        *(message("ana", "hi", request_id) for request_id in ("a", "a", "", "")),
        Usage(model="m", request=1, prompt_tokens=3, completion_tokens=4, cost_usd=0.5),
        Usage(model="m", request=2, prompt_tokens=10, completion_tokens=20),
        finished("Sent."),
    ],
    "p1.r2": [replace(finished("Its beginning is lost."), duration_s=5.0)],
    "p1.r3": [started(), replace(finished("It took no time."), duration_s=0.0)],
    "p1.r4": [
        started(),
        StoryLeftOut(calls={"search": 2, "pay": 1}, met={"latency": {"pay": 1}, "refused": {"pay": 2, "search": 3}}),
    ],
}


def test_what_a_trial_spent_and_how_long_it_took_is_what_its_events_tell() -> None:
    whole = History([record for trial, events in STORIES.items() for record in history(*events, trial=trial).records])
    found = TrialTable.from_history(whole, {"p1.r1": "correct", "p1.r3": "harm", "p1.r4": "unknown"})
    assert found.durations_s == [1.0, 0.0]
    first, second, third, fourth = (found.figures_by_key[key] for key in STORIES)
    assert (first.effects, first.tokens, first.usd, first.unpriced) == (3, 37, Fraction(1, 2), True)
    assert (second.prompt, second.took_s, second.ended, second.is_comparable) == (None, 5.0, True, False)
    assert (third.took_s, third.ended, third.spent_s, third.is_comparable) == (0.0, True, 0, True)
    assert (fourth.calls, fourth.attempts, fourth.called) == (3, 3, frozenset({"search", "pay"}))
    assert fourth.met == ((("latency", "pay"), 1), (("refused", "pay"), 2), (("refused", "search"), 3))
    assert not fourth.ended
