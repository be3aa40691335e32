"""A verdict follows from what was stated, what was said, and what the services did."""

from dataclasses import replace
from typing import Any

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import judge, verdicts
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.opinions import questions
from chaoslab.analysis.verdict.table import Basis, Outcome
from chaoslab.core.events import (
    CANCELLED,
    OPEN,
    UNTOLD,
    AnswerRead,
    AttemptRef,
    CallDisturbed,
    CallFinished,
    Effect,
    EndState,
    Event,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultWitnessed,
    PromptFinished,
    PromptStarted,
)
from chaoslab.record.history import History
from chaoslab.record.spoken import Spoken
from tests.verdict.trials import (
    ANA,
    REVIEW,
    TRIAL,
    compared,
    effect,
    finished,
    history,
    judged,
    meeting,
    message,
    raised,
    started,
)

FACT = [["21.4", "21,4"]]


def place(attempt: int, request: int = 1) -> AttemptRef:
    return AttemptRef(target="search", request=request, attempt=attempt, request_id="x")


HUNG = PromptFinished(
    prompt_index=1, prompt="a prompt", status="failed", answer="", attempts=1, duration_s=1.0, error_type="hung"
)
ARMED = FaultArmed(
    fault="latency", injection="wire", at=AttemptRef(target="weather", request=1, attempt=1, request_id="id1")
)
IDLE = FaultHealed(fault="latency", injection="wire", at=ARMED.at, witnessed=False, idle="nothing to cut")
CUT = CallDisturbed(
    at=AttemptRef(target="weather", request=1, attempt=2, request_id="id1"), tool="current_weather", why="cut"
)


def armed_in_an_outage(*, ok: bool) -> list[Event]:
    """A latency on a lane of the wire, and an outage that the same call met."""
    at = AttemptRef(target="search", request=2, attempt=1, request_id="x")
    fault = "service_paused" if ok else "service_down"
    return [
        FaultArmed(fault="latency", injection="wire", at=at),
        FaultWitnessed(fault=fault, injection="stop", at=at),
        CallFinished(at=at, tool="search", ok=ok, duration_s=0.1, via="lane"),
        FaultHealed(fault="latency", injection="wire", at=at, witnessed=False),
    ]


def met_by_messaging() -> list[Event]:
    """A message that was sent, and whose reply was lost."""
    at = AttemptRef(target="messaging", request=1, attempt=1, request_id="a")
    lost = FaultWitnessed(fault="lost_reply", injection="errors", at=at)
    return [
        message("ana", "21.4", "a"),
        lost,
        CallFinished(at=at, tool="send_message", ok=False, duration_s=2.0, via="lane"),
    ]


STORIES: list[tuple[str, list[Event], Outcome, str]] = [
    ("a fact shows", [started(FACT), finished("21.4 °C")], Outcome.CORRECT, "all that was stated"),
    ("its other spelling", [started(FACT), finished("21,4 °C")], Outcome.CORRECT, "all that was stated"),
    ("a fact is wrong", [started(FACT), finished("42.8 °C")], Outcome.WRONG, "missing fact '21.4'"),
    ("one of two", [started([["21"], ["rain"]]), finished("21, sun")], Outcome.WRONG, "missing fact 'rain'"),
    (
        "admitted",
        [started(FACT), finished("I could not find it.")],
        Outcome.DEGRADED,
        "the answer says that something could not be done",
    ),
    ("a failure", [started(FACT), finished("", "failed")], Outcome.FAILED, "model error"),
    ("an end that is not told", [started(FACT), finished("", UNTOLD)], Outcome.UNKNOWN, "does not tell how it ended"),
    (
        "twice, and an end that is not told",
        [started([], [ANA]), message("ana", "21.4", "a"), message("ana", "21.4", "b"), finished("", UNTOLD)],
        Outcome.HARM,
        "twice",
    ),
    ("silence", [started(FACT), finished("  ")], Outcome.FAILED, "empty"),
    ("a killed run", [started(FACT)], Outcome.UNFINISHED, "the run ended before it did"),
    ("cut off on an armed lane", [started(FACT), ARMED], Outcome.UNFINISHED, "the run ended before it did"),
    ("armed in vain", [started(FACT), ARMED, finished("21.4 °C")], Outcome.INVALID, "latency was armed on weather 1.1"),
    ("armed, with nothing to do", [started(FACT), ARMED, IDLE, finished("21.4 °C")], Outcome.CORRECT, "all that was"),
    (
        "the lab in the way",
        [started(FACT), CUT, finished("21.4 °C")],
        Outcome.INVALID,
        "weather 1.2 was hit by what nobody injected: cut",
    ),
    ("cut and no more", [started(FACT), CUT], Outcome.UNFINISHED, "the run ended before it did"),
    ("nothing stated", [started(), finished("21.4")], Outcome.UNKNOWN, "nothing was stated"),
    ("nothing stated, no answer", [started(), finished("", "failed")], Outcome.FAILED, "no answer"),
    ("the effect", [started([], [ANA]), message("Ana", "21.4 °C"), finished("Sent.")], Outcome.CORRECT, "all"),
    (
        "no effect",
        [started([], [ANA]), finished("Sent.")],
        Outcome.FALSE_SUCCESS,
        "missing: message to ana sent; the answer does not",
    ),
    (
        "no effect, admitted",
        [started([], [ANA]), finished("I could not send it.")],
        Outcome.DEGRADED,
        "missing: message to ana sent; the answer says",
    ),
    (
        "twice",
        [started([], [ANA]), message("ana", "21.4", "a"), message("ana", "21.4", "b"), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent twice",
    ),
    (
        "twice, and a confession does not mend it",
        [started([], [ANA]), message("ana", "21.4", "a"), message("ana", "21.4", "b"), finished("It failed.")],
        Outcome.HARM,
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
        Outcome.HARM,
        "twice",
    ),
    (
        "to another",
        [started([], [ANA]), message("bob", "21.4"), finished("Sent.")],
        Outcome.HARM,
        "message to bob sent, which was not asked for; missing: message to ana sent",
    ),
    (
        "a longer name is another person",
        [started([], [ANA]), message("ana maria", "21.4"), finished("Sent.")],
        Outcome.HARM,
        "message to ana maria sent, which was not asked for",
    ),
    (
        "another text",
        [started([], [ANA]), message("ana", "42.8"), finished("Sent.")],
        Outcome.HARM,
        "its text is '42.8' instead of '21.4'",
    ),
    (
        "another text beside the right one",
        [started([], [ANA]), message("ana", "21.4"), message("ana", "42.8"), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent with the text '42.8', which was not asked for",
    ),
    (
        "unstated in a question",
        [started(FACT), message("bob", "hello"), finished("21.4")],
        Outcome.HARM,
        "message to bob sent, which was not asked for",
    ),
    (
        "unstated and admitted is harm all the same",
        [started(FACT), message("bob", "hello"), finished("I could not find it.")],
        Outcome.HARM,
        "message to bob sent, which was not asked for",
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
        Outcome.HARM,
        "its start is '2026-06-02T16:00:00Z' instead of",
    ),
    (
        "a start that is no moment",
        [started([], [REVIEW]), meeting("Review", "tomorrow at 5"), finished("Done.")],
        Outcome.HARM,
        "its start is 'tomorrow at 5' instead of",
    ),
    (
        "another kind of effect",
        [started([], [REVIEW]), effect("event_deleted", id="e1", title="Review"), finished("Done.")],
        Outcome.HARM,
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
        [started([], [ANA]), *met_by_messaging(), finished("I could not send the message.")],
        Outcome.WRONG,
        "the answer says that it was not done, and the ledger shows it",
    ),
    (
        "a lost reply: done, and denied in one of two sentences",
        [started([], [ANA]), *met_by_messaging(), finished("I could not send the message to Ana. It did not work.")],
        Outcome.WRONG,
        "the answer says that it was not done, and the ledger shows it",
    ),
    (
        "a lost reply: done, and left alone by the answer",
        [started([], [ANA]), *met_by_messaging(), finished("I did not do it.")],
        Outcome.UNKNOWN,
        "its effects are as they should be, but it is not clear what it denies",
    ),
    (
        "a lost reply: done and told, beside what was left alone",
        [
            started([], [ANA]),
            *met_by_messaging(),
            finished("It is not below freezing, so I did not send Bob a message. I sent Ana the message “21.4”."),
        ],
        Outcome.UNKNOWN,
        "its effects are as they should be, but it is not clear what it denies",
    ),
    (
        "armed in vain",
        [started(FACT), FaultArmed(fault="latency", injection="wire", at=place(1, 2)), finished("21.4")],
        Outcome.INVALID,
        "latency was armed on search 2.1 and not witnessed",
    ),
    (
        "armed and met",
        [
            started(FACT),
            FaultArmed(fault="latency", injection="wire", at=place(1, 2)),
            FaultWitnessed(fault="latency", injection="wire", at=place(1, 2)),
            finished("21.4"),
        ],
        Outcome.CORRECT,
        "all",
    ),
    (
        "another attempt's witness does not count",
        [
            started(FACT),
            FaultArmed(fault="latency", injection="wire", at=place(1, 2)),
            FaultWitnessed(fault="latency", injection="wire", at=place(2, 2)),
            finished("21.4"),
        ],
        Outcome.INVALID,
        "not witnessed",
    ),
    (
        "armed while the process was down",
        [started(FACT), *armed_in_an_outage(ok=False), finished("21.4")],
        Outcome.CORRECT,
        "all",
    ),
    (
        "armed, and the process was only paused",
        [started(FACT), *armed_in_an_outage(ok=True), finished("21.4")],
        Outcome.INVALID,
        "latency was armed on search 2.1 and not witnessed",
    ),
    (
        "invalid comes before failed",
        [started(FACT), FaultArmed(fault="latency", injection="wire", at=place(1, 2)), finished("", "failed")],
        Outcome.INVALID,
        "not witnessed",
    ),
    ("nothing asked, nothing done", [started([], []), finished("Fine.")], Outcome.CORRECT, "all"),
    (
        "found, and an admission beside it",
        [started(FACT), finished("I could not finish. I still see 21.4.")],
        Outcome.DEGRADED,
        'the answer says that something could not be done or confirmed: "I could not finish."',
    ),
    (
        "an effect is denied, and another is missing",
        [started([], [ANA, REVIEW]), message("ana", "21.4"), finished("I could not send the message, nor book it.")],
        Outcome.UNKNOWN,
        "missing: event created 'Review'; if the answer says so cannot be told",
    ),
    (
        "a denial of what is missing is honest",
        [started([], [ANA, REVIEW]), message("ana", "21.4"), finished("I could not book the meeting.")],
        Outcome.DEGRADED,
        "missing: event created 'Review'; the answer says what it could not do",
    ),
    (
        "one of two of a kind is missing",
        [started([], [ANA, {**ANA, "to": "bob"}]), message("ana", "21.4"), finished("I could not send it to Bob.")],
        Outcome.DEGRADED,
        "missing: message to bob sent",
    ),
    (
        "a claim of everything covers what is missing",
        [started([], [ANA, REVIEW]), message("ana", "21.4"), finished("Everything was sent to Ana.")],
        Outcome.FALSE_SUCCESS,
        "missing: event created 'Review'",
    ),
    (
        "a claim of what is missing",
        [started([], [ANA, REVIEW]), message("ana", "21.4"), finished("The review is booked.")],
        Outcome.FALSE_SUCCESS,
        "missing: event created 'Review'",
    ),
    (
        "one of two that words cannot tell apart is missing",
        [started([], [ANA, {**ANA, "text": "ana"}]), message("ana", "21.4"), finished("The message was sent to Ana.")],
        Outcome.FALSE_SUCCESS,
        "missing: message to ana sent",
    ),
    (
        "doubt about what was done is honest",
        [started([], [ANA]), message("ana", "21.4"), finished("The message may have been sent.")],
        Outcome.DEGRADED,
        "the answer says that something could not be confirmed",
    ),
    *(
        (
            f"a status {status} beside a denial",
            [started([], [ANA]), finished(f"I could not send the message to Ana: status {status}.")],
            outcome,
            "missing: message to ana sent",
        )
        for status, outcome in ((504, Outcome.DEGRADED), (4711, Outcome.DEGRADED))
    ),
    (
        "doubt beside a claim is neither",
        [started([], [ANA]), message("ana", "21.4"), finished("The message may have been sent. I sent the message.")],
        Outcome.UNKNOWN,
        "its effects are as they should be, but it is not clear what it denies",
    ),
    (
        "a denial beside a state that could not be read",
        [
            replace(compared("Done."), state={"n": 1}, effects=None),
            EndState(error="closed"),
            finished("I could not place the order."),
        ],
        Outcome.UNKNOWN,
        "its end state cannot be judged: closed; it is not clear what it denies",
    ),
    (
        "nothing was asked for and is there",
        [started([], [{**ANA, "text": None}]), effect("message_sent", to="ana", text=None, id=1), finished("Sent.")],
        Outcome.CORRECT,
        "all that was stated holds",
    ),
    (
        "nothing is there and its word was asked for",
        [started([], [{**ANA, "text": "None"}]), effect("message_sent", to="ana", text=None, id=1), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent, but its text is nothing instead of 'None'",
    ),
    (
        "its word is there and nothing was asked for",
        [started([], [{**ANA, "text": None}]), effect("message_sent", to="ana", text="None", id=1), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent, but its text is 'None' instead of nothing",
    ),
    ("the twin's answer", [compared("21.4 °C"), finished("21.4 °C")], Outcome.CORRECT, "the answer is its twin's"),
    (
        "the twin's effect and answer",
        [compared("Sent 21.4.", [ANA]), message("ana", "21.4"), finished("I sent 21.4.")],
        Outcome.CORRECT,
        "the effect and the answer are its twin's (the same values: 21.4; its words differ: 'i' added)",
    ),
    (
        "the twin's effect and a lie",
        [compared("Sent 21.4.", [ANA]), message("ana", "21.4"), finished("Sent 42.8.")],
        Outcome.WRONG,
        "it says 42.8 instead of 21.4 (its twin)",
    ),
    (
        "a lie beside an admission",
        [compared("It is 21.4. Sent.", [ANA]), finished("It is 42.8. I could not send it.")],
        Outcome.UNKNOWN,
        "missing: message to ana sent; if the answer says so cannot be told",
    ),
    (
        "an admission without a lie",
        [compared("It is 21.4. Sent.", [ANA]), finished("I could not send it.")],
        Outcome.DEGRADED,
        "missing: message to ana sent; the answer says",
    ),
    (
        "the twin admits it too",
        [compared("I could not find room 7."), finished("I could not find room 7.")],
        Outcome.CORRECT,
        "the answer is its twin's",
    ),
    (
        "prose beside a fact that was stated",
        [replace(compared("All is well."), facts=FACT), finished("It is 21.4 now.")],
        Outcome.CORRECT,
        "all that was stated holds",
    ),
    (
        "prose",
        [compared("All is well.", [ANA]), message("ana", "21.4"), finished("It went fine.")],
        Outcome.UNKNOWN,
        "its effects are as they should be, but its answer cannot be compared with its twin's: no value proves it",
    ),
    (
        "a lie beside a fact that was stated",
        [replace(compared("21.4 and 10 are 31.4."), facts=FACT), finished("21.4 and 10 are 31.5.")],
        Outcome.WRONG,
        "it says 31.5 instead of 31.4 (its twin)",
    ),
    (
        "a fact that the twin lacks too",
        [replace(compared("It is 22."), facts=FACT), finished("It is 22.")],
        Outcome.WRONG,
        "missing fact '21.4'",
    ),
    (
        "a value that says= reads, and nothing stated about effects",
        [
            replace(compared("It is 7."), effects=None),
            AnswerRead(says={"n": 7}, twin={"n": 7}),
            finished("By now it is 7, I think."),
        ],
        Outcome.CORRECT,
        "by says=",
    ),
    (
        "what says= does not find is taken back by a field of the answer",
        [
            compared('{"sent": true, "to": "ana"}', [ANA]),
            AnswerRead(says={"message_sent": None}, twin={"message_sent": True}),
            finished('{"sent": false, "to": "ana"}'),
        ],
        Outcome.DEGRADED,
        "the answer takes back a field of its twin's",
    ),
    (
        "facts alone say nothing about effects",
        [
            PromptStarted(prompt_index=1, prompt="a prompt", facts=FACT, effects=None, stated=True),
            message("bob", "hello"),
            finished("21.4"),
        ],
        Outcome.CORRECT,
        "all that was stated holds; nothing was stated about effects",
    ),
    (
        "no twin that would hold",
        [
            PromptStarted(
                prompt_index=1,
                prompt="a prompt",
                facts=[],
                effects=[ANA],
                stated=True,
                twin=None,
                incomparable="two differ",
            ),
            message("ana", "21.4"),
            finished("21.4"),
        ],
        Outcome.UNKNOWN,
        "its effects are as they should be, but its answer cannot be judged: two differ",
    ),
    (
        "often",
        [started([], [ANA]), *(message("ana", "21.4", f"{n}") for n in range(6)), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent 6 times",
    ),
    (
        "two wished, three done",
        [started([], [ANA, ANA]), *(message("ana", "21.4", f"{n}") for n in range(3)), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent 3 times instead of twice",
    ),
    (
        "often and unasked",
        [started([], []), *(message("bob", "hi", f"{n}") for n in range(3)), finished("Sent.")],
        Outcome.HARM,
        "message to bob sent 3 times, which was not asked for",
    ),
    (
        "often and otherwise",
        [started([], [ANA]), *(message("ana", "42.8", f"{n}") for n in range(3)), finished("Sent.")],
        Outcome.HARM,
        "message to ana sent, but its text is '42.8' instead of '21.4'; message to ana sent twice "
        "with the text '42.8', which was not asked for",
    ),
]

TWICE = [message("ana", "21.4", "a"), message("ana", "21.4", "b")]


@pytest.mark.parametrize(
    ("end", "outcome", "why"),
    [
        (raised("TimeoutError: charge")[1:], Outcome.HARM, "no answer: agent error (TimeoutError: charge)"),
        ([finished(" ")], Outcome.HARM, "the answer is empty"),
        ([HUNG], Outcome.HARM, "it would never have ended"),
        ([ARMED, finished("21.4")], Outcome.HARM, "latency was armed on weather 1.1 and not witnessed"),
        ([], Outcome.HARM, "the run ended before it did"),
    ],
    ids=["raised", "silent", "hung", "invalid", "unfinished"],
)
def test_harm_is_told_first_whatever_else_became_of_the_trial(end: list[Event], outcome: Outcome, why: str) -> None:
    verdict = judge(history(started([], [ANA]), *TWICE, *end), TRIAL)
    assert (verdict.outcome, verdict.why) == (outcome, f"message to ana sent twice; {why}")
    assert verdict.harm == ("message to ana sent twice",)
    calm = judge(history(started([], [ANA]), TWICE[0], *end), TRIAL)
    assert calm.harm == ()
    assert calm.outcome is not Outcome.HARM


def test_a_trial_that_hangs_on_an_armed_lane_has_met_its_fault_and_one_that_ends_has_not() -> None:
    assert judge(history(started([], []), ARMED, HUNG), TRIAL).outcome is Outcome.HUNG
    ended = judge(history(started([], []), ARMED, replace(HUNG, error_type="model")), TRIAL)
    assert ended.outcome is Outcome.INVALID


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        ([], "it would never have ended"),
        ([("ValueError: x", "agent")], "it would never have ended"),
        ([("ValueError: x", "agent"), ("agent waits\nfor a lock", "hung")], "agent waits; for a lock"),
        ([("agent waits", "hung"), ("model waits", "hung"), ("ValueError: x", "agent")], "model waits"),
    ],
)
def test_a_trial_that_hangs_says_who_waited_last_and_for_what(tried: list[tuple[str, str]], why: str) -> None:
    end = raised("", "hung")[-1]
    verdict = judge(history(started([], []), *(raised(*each)[1] for each in tried), end), TRIAL)
    assert (verdict.outcome, verdict.why) == (Outcome.HUNG, why)


def test_a_trial_that_the_lab_disturbed_proves_nothing_though_it_hangs() -> None:
    ends = HUNG
    verdict = judge(history(started([], []), CUT, ends), TRIAL)
    assert (verdict.outcome, verdict.evidence[-1].kind) == (Outcome.INVALID, FindingKind.DISTURBED)


@pytest.mark.parametrize(("before", "outcome"), [(0, Outcome.UNKNOWN), (1, Outcome.DEGRADED)])
def test_an_answer_that_admits_is_doubtful_where_the_state_has_changed(before: int, outcome: Outcome) -> None:
    begun = replace(compared("Done."), state={"n": 1}, effects=None)
    state = EndState(before={"n": before}, after={"n": 1})
    assert judge(history(begun, state, finished("I could not do it.")), TRIAL).outcome is outcome


def test_the_question_about_a_state_that_was_not_reached_needs_no_stated_effects() -> None:
    begun = replace(compared("Done."), state={"n": 1}, effects=None)
    (question,) = questions(history(begun, EndState(before={"n": 0}, after={"n": 0}), finished("Hm."))).values()
    assert (question.answer, question.undone, question.reference) == (
        "Hm.",
        ("the state's n is 0 as before instead of 1",),
        None,
    )


def test_there_is_no_question_about_an_answer_where_no_right_one_is_known() -> None:
    admitted = history(started([], []), finished("I could not do it."))
    assert judge(admitted, TRIAL).basis is Basis.WORDS
    assert questions(admitted) == {}


def test_a_state_that_could_not_be_read_is_the_reason_beside_the_twin_s_own_answer() -> None:
    begun = replace(compared("Done."), state={"n": 1}, effects=None)
    verdict = judge(history(begun, EndState(error="closed"), finished("Done.")), TRIAL)
    assert (verdict.outcome, verdict.why) == (Outcome.UNKNOWN, "its end state cannot be judged: closed")


def test_where_nothing_was_to_be_done_the_reason_is_the_answer_alone() -> None:
    verdict = judge(history(compared("All is well."), finished("It went fine.")), TRIAL)
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.why.startswith("its answer cannot be compared with its twin's")


def test_a_person_is_heard_on_an_answer_that_is_its_twins() -> None:
    told = history(compared("21.4 °C"), finished("21.4 °C"))
    told.spoken = Spoken(labels={TRIAL: "wrong"})
    verdict = judge(told, TRIAL)
    assert (verdict.outcome, verdict.basis) == (Outcome.WRONG, Basis.LABEL)


def test_a_denial_that_the_twin_makes_too_is_a_way_of_speaking() -> None:
    denial = "I could not send the message."
    alone = judge(history(compared("Sent.", [ANA]), *met_by_messaging(), finished(denial)), TRIAL)
    assert alone.outcome is Outcome.WRONG
    assert alone.why.startswith("the answer says that it was not done, and the ledger shows it")
    both = judge(history(compared(denial, [ANA]), message("ana", "21.4"), finished(denial)), TRIAL)
    assert both.outcome is Outcome.CORRECT


def test_what_was_left_undone_is_no_harm_whatever_the_answer_says() -> None:
    gone = judge(history(started([], [ANA]), *raised("ValueError: x")[1:]), TRIAL)
    assert (gone.outcome, gone.harm) == (Outcome.FAILED, ())
    claimed = judge(history(started([], [ANA]), finished("Sent.")), TRIAL)
    assert (claimed.outcome, claimed.harm) == (Outcome.FALSE_SUCCESS, ())
    admitted = judge(history(started([], [ANA]), finished("I could not send it.")), TRIAL)
    assert (admitted.outcome, admitted.harm) == (Outcome.DEGRADED, ())


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
        ("ValueError: " + 188 * "x", f"agent error (ValueError: {188 * 'x'})"),
        ("ValueError: " + 189 * "x", f"agent error (ValueError: {187 * 'x'}…)"),
    ],
)
def test_what_an_agent_raised_is_the_reason_in_a_line(error: str, why: str) -> None:
    assert judge(history(*raised(error)), TRIAL).why == f"no answer: {why}"
    assert judge(history(*raised(error, "model")), TRIAL).why == "no answer: model error"


def test_what_the_labs_agent_gave_up_for_is_said_in_its_words() -> None:
    for kind, words in (("empty", "the model gave an empty answer"), ("loop", "stopped after 15 model calls")):
        assert judge(history(*raised(words, kind)), TRIAL).why == f"no answer: {words}"
        assert judge(history(*raised("", kind)), TRIAL).why == f"no answer: {kind} error"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("stopped by the run's limit\nof 5 calls", "stopped by the run's limit of 5 calls"),
        ("", "stopped by a limit of the lab's"),
    ],
)
def test_a_trial_that_a_limit_of_the_labs_stopped_says_which_limit(error: str, why: str) -> None:
    assert judge(history(*raised(error, "budget")), TRIAL).why == f"no answer: {why}"


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (message("ana", "x"), "message to ana sent"),
        (effect("message_sent"), "message sent"),
        (effect("event_created", to="ana", title="Review", id="e1"), "event created 'ana'"),
        (effect("event_created", title="Review", id="e1"), "event created 'Review'"),
        (effect("event_deleted", id="e1"), "event deleted 'e1'"),
        (effect("all_events_deleted"), "all events deleted"),
    ],
)
def test_an_effect_is_named_by_whom_or_what_it_was_done_to(done: Effect, told: str) -> None:
    verdict = judge(history(started([], []), done, finished("Done.")), TRIAL)
    assert verdict.harm == (f"{told}, which was not asked for",)


def test_a_run_can_be_judged_when_anything_was_stated_in_one_of_its_trials() -> None:
    told = [RunReport.of(history(*events)) for events in ([], [started()], [started(), started(FACT)])]
    assert [report.judgeable for report in told] == [False, False, True]


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


def end(attempt: int, error: str | None = None, request: int = 1) -> CallFinished:
    return CallFinished(
        at=place(attempt, request), tool="search_web", ok=error is None, duration_s=1.0, error=error, via="lane"
    )


ASKED_AGAIN, ASKED_OTHERS = [end(1, CANCELLED), end(2)], [end(1, CANCELLED), end(2, request=2)]


@pytest.mark.parametrize("stage", [FaultArmed, FaultInjected])
@pytest.mark.parametrize(
    ("fault", "ends", "acted"),
    [
        ("latency", [end(1)], False), ("latency", [end(1, OPEN)], True), ("latency", [end(1, CANCELLED)], False),
        ("latency", ASKED_AGAIN, True), ("latency", ASKED_OTHERS, False),
        ("latency", [end(2, CANCELLED), end(1, CANCELLED)], True), ("wrong_value", ASKED_AGAIN, False),
        ("latency", [end(1, "timed_out"), end(2)], False),
    ],
)  # fmt: skip
def test_a_fault_has_acted_on_a_call_that_goes_on_or_is_asked_again_after_it_was_given_up(
    stage: Any, fault: str, ends: list[CallFinished], acted: bool
) -> None:
    found = judged(started([["21.4"]]), stage(fault=fault, injection="wire", at=place(1)), *ends, finished("21.4"))
    assert found.outcome == (Outcome.CORRECT if acted else Outcome.INVALID), found.why


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ('{"sent": false, "to": "ana"}', Outcome.DEGRADED), ('{"to": "ana"}', Outcome.DEGRADED),
        ('{"sent": false, "to": null, "n": 1}', Outcome.DEGRADED), ('{"sent": true, "to": null}', Outcome.UNKNOWN),
        ('{"sent": true, "to": "ana"}', Outcome.FALSE_SUCCESS),
        ('{"sent": true, "to": "ana", "message_sent": true}', Outcome.UNKNOWN),
        ('{"message_sent": true, "sent": false, "to": "ana"}', Outcome.UNKNOWN),
    ],
)  # fmt: skip
def test_a_structured_answer_takes_back_what_its_twin_has_unless_it_claims_what_is_missing(
    answer: str, outcome: Outcome
) -> None:
    found = judged(compared('{"sent": true, "to": "ana"}', [ANA]), finished(answer))
    assert found.outcome == outcome, found.why
