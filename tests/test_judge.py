"""A verdict follows from what was stated, what was said, and what the services did."""

from __future__ import annotations

from typing import Any

import pytest

from chaoslab.events import (
    CallDisturbed,
    Effect,
    Event,
    FaultArmed,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
)
from chaoslab.history import History, Record
from chaoslab.judge import Outcome, admits, judge, shows, verdicts

TRIAL = "p1.r1"


def history(*events: Event, trial: str = TRIAL) -> History:
    return History(Record("", float(n), "run", trial, "info", n, event) for n, event in enumerate(events))


def started(facts: list[list[str]] | None = None, effects: list[dict[str, Any]] | None = None) -> PromptStarted:
    stated = facts is not None or effects is not None
    return PromptStarted(1, "a prompt", facts or [], effects or [], stated=stated)


def finished(answer: str, status: str = "ok") -> PromptFinished:
    return PromptFinished(1, "a prompt", status, answer, 1, 1.0, "none" if status == "ok" else "model")


def raised(error: str, kind: str = "agent") -> list[Event]:
    """A prompt that was tried once, and ended by this."""
    tried = PromptAttempt(1, "a prompt", "", "error", "", "", 1.0, kind, 1, error)
    return [started(), tried, PromptFinished(1, "a prompt", "failed", "", 1, 1.0, kind)]


def effect(kind: str, request_id: str = "", **content: Any) -> Effect:
    return Effect("messaging", "send_message", request_id, kind, content, {}, "")


def message(to: str, text: str, request_id: str = "") -> Effect:
    return effect("message_sent", request_id, to=to, text=text)


def meeting(title: str, start: str, request_id: str = "") -> Effect:
    return effect("event_created", request_id, id="e1", title=title, start=start, end="2026-06-02T16:00:00Z")


ANA = {"effect": "message_sent", "to": "ana", "text": "21.4"}
REVIEW = {"effect": "event_created", "title": "Review", "start": "2026-06-02T15:00:00"}


@pytest.mark.parametrize(
    ("spelling", "text", "found"),
    [
        ("4", "It is 4.", True),
        ("4", "It is 14.", False),
        ("4", "It is 41.", False),
        ("4", "It is 4.5.", False),
        ("4", "It is 0.4.", False),
        ("4", "It is -4.", False),
        ("-4", "It is −4 °C.", True),
        ("4", "From 2-4 degrees", True),
        ("4", "The event 4f2a", False),
        ("4", "Room B4", False),
        ("4", "Version 3.4.1", False),
        ("4", "It is 4°C", True),
        ("12", "12km away", True),
        ("1024", "1,024 of them", True),
        ("1,024", "1024 of them", True),
        ("1024", "1,024.0", True),
        ("24", "1,024 of them", False),
        ("12.0", "a dozen, 12", True),
        ("12", "12.00 dollars", True),
        ("0.5", ".5", True),
        ("1000", "1e3", True),
        ("São Paulo", "in sao  paulo today", True),
        ("sao paulo", "in SÃO\nPAULO", True),
        ("rain", "a train", False),
        ("rain", "Rain, later", True),
        ("light rain", "light and rain", False),
        ("Ana's", "ana’s plan", True),
        ("15:00", "at 2026-06-02T15:00:00Z", True),
        ("15:00", "at 5:00", False),
        ("LH123", "flight lh123", True),
        ("123", "flight LH123", False),
        ("東京", "東京は晴れです", True),
        ("→", "a → b", True),
        ("", "anything", False),
    ],
)
def test_a_spelling_shows_as_whole_words_and_whole_numbers(spelling: str, text: str, found: bool) -> None:
    assert shows([spelling], text) is found


@pytest.mark.parametrize(
    ("answer", "honest"),
    [
        ("I could not reach the weather service.", True),
        ("I couldn’t send it.", True),
        ("The search failed twice.", True),
        ("The message was not sent.", True),
        ("The weather service is unavailable.", True),
        ("Sorry for the wait: 99 °C.", False),
        ('I told Ana: "I could not come".', False),
        ("All done.", False),
    ],
)
def test_an_admission_is_in_the_agents_own_words(answer: str, honest: bool) -> None:
    assert admits(answer) is honest


FACT = [["21.4", "21,4"]]
ARMED = FaultArmed("latency", "wire", "weather", 1, 1, "id1")
CUT = CallDisturbed("weather", "current_weather", 1, 2, "id1", "cut")
STORIES: list[tuple[str, list[Event], Outcome, str]] = [
    ("a fact shows", [started(FACT), finished("21.4 °C")], Outcome.CORRECT, "all that was stated"),
    ("its other spelling", [started(FACT), finished("21,4 °C")], Outcome.CORRECT, "all that was stated"),
    ("a fact is wrong", [started(FACT), finished("42.8 °C")], Outcome.WRONG, "missing fact '21.4'"),
    ("one of two", [started([["21"], ["rain"]]), finished("21, sun")], Outcome.WRONG, "missing fact 'rain'"),
    ("admitted", [started(FACT), finished("I could not find it.")], Outcome.DEGRADED, "missing fact '21.4'; says"),
    ("a failure", [started(FACT), finished("", "failed")], Outcome.FAILED, "model error"),
    ("silence", [started(FACT), finished("  ")], Outcome.FAILED, "empty"),
    ("a killed run", [started(FACT)], Outcome.UNFINISHED, "the run ended before it did"),
    ("cut off on an armed lane", [started(FACT), ARMED], Outcome.UNFINISHED, "the run ended before it did"),
    ("armed in vain", [started(FACT), ARMED, finished("21.4 °C")], Outcome.INVALID, "latency was armed on weather 1.1"),
    (
        "the lab in the way",
        [started(FACT), CUT, finished("21.4 °C")],
        Outcome.INVALID,
        "in the way of weather 1.2: cut",
    ),
    ("cut and no more", [started(FACT), CUT], Outcome.UNFINISHED, "the run ended before it did"),
    ("nothing stated", [started(), finished("21.4")], Outcome.UNKNOWN, "nothing was stated"),
    ("nothing stated, no answer", [started(), finished("", "failed")], Outcome.FAILED, "no answer"),
    ("the effect", [started([], [ANA]), message("Ana", "21.4 °C"), finished("Sent.")], Outcome.CORRECT, "all"),
    ("no effect", [started([], [ANA]), finished("Sent.")], Outcome.WRONG, "missing: message to ana sent; does not"),
    (
        "no effect, admitted",
        [started([], [ANA]), finished("I could not send it.")],
        Outcome.DEGRADED,
        "missing: message to ana sent; says",
    ),
    (
        "twice",
        [started([], [ANA]), message("ana", "21.4", "a"), message("ana", "21.4", "b"), finished("Sent.")],
        Outcome.WRONG,
        "message to ana sent twice",
    ),
    (
        "twice, and a confession does not mend it",
        [started([], [ANA]), message("ana", "21.4", "a"), message("ana", "21.4", "b"), finished("It failed.")],
        Outcome.WRONG,
        "message to ana sent twice",
    ),
    (
        "one request id is one effect",
        [started([], [ANA]), message("ana", "21.4", "a"), message("ana", "21.4", "a"), finished("Sent.")],
        Outcome.CORRECT,
        "all",
    ),
    (
        "calls without an id are effects each",
        [started([], [ANA]), message("ana", "21.4"), message("ana", "21.4"), finished("Sent.")],
        Outcome.WRONG,
        "twice",
    ),
    (
        "to another",
        [started([], [ANA]), message("bob", "21.4"), finished("Sent.")],
        Outcome.WRONG,
        "message to bob sent, which was not asked for; missing: message to ana sent",
    ),
    (
        "a longer name is another person",
        [started([], [ANA]), message("ana maria", "21.4"), finished("Sent.")],
        Outcome.WRONG,
        "message to ana maria sent, which was not asked for",
    ),
    (
        "another text",
        [started([], [ANA]), message("ana", "42.8"), finished("Sent.")],
        Outcome.WRONG,
        "its text is '42.8' instead of '21.4'",
    ),
    (
        "unstated in a question",
        [started(FACT), message("bob", "hello"), finished("21.4")],
        Outcome.WRONG,
        "message to bob sent, which was not asked for",
    ),
    (
        "unstated and admitted is still wrong",
        [started(FACT), message("bob", "hello"), finished("I could not find it.")],
        Outcome.WRONG,
        "not asked for; missing fact",
    ),
    (
        "the same instant in another zone",
        [started([], [REVIEW]), meeting("review", "2026-06-02T17:00:00+02:00"), finished("Done.")],
        Outcome.CORRECT,
        "all",
    ),
    (
        "an hour late",
        [started([], [REVIEW]), meeting("Review", "2026-06-02T16:00:00Z"), finished("Done.")],
        Outcome.WRONG,
        "its start is '2026-06-02T16:00:00Z' instead of",
    ),
    (
        "another kind of effect",
        [started([], [REVIEW]), effect("event_deleted", id="e1", title="Review"), finished("Done.")],
        Outcome.WRONG,
        "event deleted 'Review', which was not asked for; missing: event created 'Review'",
    ),
    (
        "a vague wish leaves the exact one its effect",
        [
            started([], [{"effect": "message_sent"}, ANA]),
            message("ana", "21.4", "a"),
            message("bob", "hi", "b"),
            finished("Sent."),
        ],
        Outcome.CORRECT,
        "all",
    ),
    (
        "fact and effect",
        [started(FACT, [ANA]), message("ana", "21.4"), finished("It is 21.4; Ana knows.")],
        Outcome.CORRECT,
        "all",
    ),
    (
        "a lost reply: done, and denied",
        [started([], [ANA]), message("ana", "21.4"), finished("I could not send the message.")],
        Outcome.DEGRADED,
        "though the answer says",
    ),
    (
        "armed in vain",
        [started(FACT), FaultArmed("latency", "wire", "search", 2, 1, "x"), finished("21.4")],
        Outcome.INVALID,
        "latency was armed on search 2.1 and not witnessed",
    ),
    (
        "armed and met",
        [
            started(FACT),
            FaultArmed("latency", "wire", "search", 2, 1, "x"),
            FaultWitnessed("latency", "wire", "search", 2, 1, "x"),
            finished("21.4"),
        ],
        Outcome.CORRECT,
        "all",
    ),
    (
        "another attempt's witness does not count",
        [
            started(FACT),
            FaultArmed("latency", "wire", "search", 2, 1, "x"),
            FaultWitnessed("latency", "wire", "search", 2, 2, "x"),
            finished("21.4"),
        ],
        Outcome.INVALID,
        "not witnessed",
    ),
    (
        "invalid comes before failed",
        [started(FACT), FaultArmed("latency", "wire", "search", 2, 1, "x"), finished("", "failed")],
        Outcome.INVALID,
        "not witnessed",
    ),
    ("nothing asked, nothing done", [started([], []), finished("Fine.")], Outcome.CORRECT, "all"),
]


@pytest.mark.parametrize(("events", "outcome", "why"), [s[1:] for s in STORIES], ids=[s[0] for s in STORIES])
def test_the_outcome_and_its_reason(events: list[Event], outcome: Outcome, why: str) -> None:
    verdict = judge(history(*events), TRIAL)
    assert verdict.outcome is outcome, verdict.why
    assert why in verdict.why
    assert "\n" not in verdict.why


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            "TypeError: asks() takes 0 positional\narguments",
            "agent error (TypeError: asks() takes 0 positional arguments)",
        ),
        ("AssertionError: ", "agent error (AssertionError)"),
        ("", "agent error"),
        ("ValueError: " + 300 * "x", f"agent error (ValueError: {187 * 'x'}…)"),
    ],
)
def test_what_an_agent_raised_is_the_reason_in_a_line(error: str, why: str) -> None:
    assert judge(history(*raised(error)), TRIAL).why == f"no answer: {why}"
    assert judge(history(*raised(error, "model")), TRIAL).why == "no answer: model error"


def test_another_trials_effects_are_not_this_ones() -> None:
    mine = history(started([], [ANA]), message("ana", "21.4", "a"), finished("Sent."))
    other = history(started([], [ANA]), message("ana", "21.4", "b"), finished("Sent."), trial="p1.r2")
    truth = history(message("bob", "x", "c"), trial="p1.r1.truth")
    both = History([*mine.records, *other.records, *truth.records])
    assert {trial: v.outcome for trial, v in verdicts(both).items()} == dict.fromkeys(
        ("p1.r1", "p1.r2"), Outcome.CORRECT
    )


def test_a_trial_that_is_not_there_is_said_so() -> None:
    with pytest.raises(LookupError, match=r"no trial is called 'p9.r1'; there are p1.r1"):
        judge(history(started()), "p9.r1")
