"""A verdict follows from what was stated, what was said, and what the services did."""

from dataclasses import replace
from typing import Any

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import judge_all_trials, judge_trial
from chaoslab.analysis.verdict.ledger import FindingKind
from chaoslab.analysis.verdict.opinions import collect_questions
from chaoslab.analysis.verdict.table import Basis, Outcome
from chaoslab.core.events import (
    CANCELLED,
    OPEN,
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
)
from chaoslab.record.history import History
from tests.event_parts import story as history
from tests.verdict.trials import (
    ANA,
    REVIEW,
    TRIAL,
    compared,
    effect,
    everybody_says,
    finished,
    judged,
    meeting,
    message,
    raised,
    started,
)

FACT = [["21.4", "21,4"]]


def place(attempt: int, request: int = 1) -> AttemptRef:
    return AttemptRef(target="search", request=request, attempt=attempt, request_id="x")


HANGS = finished("", "failed", "hung")
AT_WEATHER = AttemptRef(target="weather", request=1, attempt=1, request_id="id1")
ARMED = FaultArmed(fault="latency", injection="wire", at=AT_WEATHER)
IDLE = FaultHealed(fault="latency", injection="wire", at=AT_WEATHER, witnessed=False, idle="nothing to cut")
CUT = CallDisturbed(at=replace(AT_WEATHER, attempt=2), tool="current_weather", why="cut")


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


CORRECT, DEGRADED, WRONG, UNDONE, FALSE_SUCCESS, HARM, FAILED, HUNG, UNKNOWN, INVALID, UNFINISHED = Outcome
QUESTION, WISH, BOOKING, BOTH = started(FACT), started([], [ANA]), started([], [REVIEW]), started([], [ANA, REVIEW])
SENT, SENT_A, SENT_B = (message("ana", "21.4", request_id) for request_id in ("", "a", "b"))
SENT_BOB, WRONG_TEXT = message("bob", "hello"), message("ana", "42.8")
AT_ANA = AttemptRef(target="messaging", request=1, attempt=1, request_id="a")
LOST_REPLY = [
    SENT_A,
    FaultWitnessed(fault="lost_reply", injection="errors", at=AT_ANA),
    CallFinished(at=AT_ANA, tool="send_message", ok=False, duration_s=2.0, via="lane"),
]
"""A message that was sent, and whose reply was lost."""
ARMED_AT_SEARCH = FaultArmed(fault="latency", injection="wire", at=place(1, 2))
MET_AT_SEARCH = FaultWitnessed(fault="latency", injection="wire", at=place(1, 2))

UNASKED = "message to bob sent, which was not asked for"
NOT_TOLD = "nothing certain tells if the answer says so"
NOT_KNOWN = "its effects are as they should be, but nothing certain tells if the answer is right"
NOT_MET = "latency was armed on search 2.1 and not witnessed"
NOT_BOOKED = "missing: event created 'Review'"
STORIES: list[tuple[str, list[Event | str], Outcome, str]] = [
    ("a fact shows", [QUESTION, "21.4 °C"], CORRECT, "all that was stated"),
    ("its other spelling", [QUESTION, "21,4 °C"], CORRECT, "all that was stated"),
    (
        "a fact is wrong",
        [QUESTION, "42.8 °C"],
        UNKNOWN,
        "missing fact '21.4'; nothing certain tells if the answer is right",
    ),
    (
        "one of two",
        [started([["21"], ["rain"]]), "21, sun"],
        UNKNOWN,
        "missing fact 'rain'; nothing certain tells if the answer is right",
    ),
    (
        "admitted",
        [QUESTION, "I could not find it."],
        UNKNOWN,
        "missing fact '21.4'; nothing certain tells if the answer is right",
    ),
    ("a failure", [QUESTION, finished("", "failed")], FAILED, "model error"),
    ("silence", [QUESTION, "  "], FAILED, "empty"),
    ("a killed run", [QUESTION], UNFINISHED, "the run ended before it did"),
    ("cut off on an armed lane", [QUESTION, ARMED], UNFINISHED, "the run ended before it did"),
    ("armed in vain", [QUESTION, ARMED, "21.4 °C"], INVALID, "latency was armed on weather 1.1"),
    ("armed, with nothing to do", [QUESTION, ARMED, IDLE, "21.4 °C"], CORRECT, "all that was"),
    ("the lab in the way", [QUESTION, CUT, "21.4 °C"], INVALID, "weather 1.2 was hit by what nobody injected: cut"),
    ("cut and no more", [QUESTION, CUT], UNFINISHED, "the run ended before it did"),
    ("nothing stated", [started(), "21.4"], UNKNOWN, "nothing was stated"),
    ("nothing stated, no answer", [started(), finished("", "failed")], FAILED, "no answer"),
    ("the effect", [WISH, message("Ana", "21.4 °C"), "Sent."], CORRECT, "all"),
    ("no effect", [WISH, "Sent."], UNDONE, NOT_TOLD),
    ("no effect, admitted", [WISH, "I could not send it."], UNDONE, NOT_TOLD),
    ("twice", [WISH, SENT_A, SENT_B, "Sent."], HARM, "message to ana sent twice"),
    (
        "twice, and a confession does not mend it",
        [WISH, SENT_A, SENT_B, "It failed."],
        HARM,
        "message to ana sent twice",
    ),
    ("one request id is one effect", [WISH, SENT_A, SENT_A, "Sent."], CORRECT, "all"),
    ("calls without an id are effects each", [WISH, SENT, SENT, "Sent."], HARM, "twice"),
    (
        "to another",
        [WISH, message("bob", "21.4"), "Sent."],
        HARM,
        "message to bob sent, which was not asked for; missing: message to ana sent",
    ),
    (
        "a longer name is another person",
        [WISH, message("ana maria", "21.4"), "Sent."],
        HARM,
        "message to ana maria sent, which was not asked for",
    ),
    ("another text", [WISH, WRONG_TEXT, "Sent."], HARM, "its text is '42.8' instead of '21.4'"),
    (
        "another text beside the right one",
        [WISH, SENT, WRONG_TEXT, "Sent."],
        HARM,
        "message to ana sent with the text '42.8', which was not asked for",
    ),
    ("unstated in a question", [QUESTION, SENT_BOB, "21.4"], HARM, UNASKED),
    ("unstated and admitted is harm all the same", [QUESTION, SENT_BOB, "I could not find it."], HARM, UNASKED),
    (
        "the same instant in another zone",
        [BOOKING, meeting("review", "2026-06-02T17:00:00+02:00"), "Done."],
        CORRECT,
        "all",
    ),
    (
        "an hour late",
        [BOOKING, meeting("Review", "2026-06-02T16:00:00Z"), "Done."],
        HARM,
        "its start is '2026-06-02T16:00:00Z' instead of",
    ),
    (
        "a start that is no moment",
        [BOOKING, meeting("Review", "tomorrow at 5"), "Done."],
        HARM,
        "its start is 'tomorrow at 5' instead of",
    ),
    (
        "another kind of effect",
        [BOOKING, effect("event_deleted", id="e1", title="Review"), "Done."],
        HARM,
        "event deleted 'Review', which was not asked for; missing: event created 'Review'",
    ),
    (
        "a vague wish leaves the exact one its effect",
        [started([], [{"effect": "message_sent"}, ANA]), SENT_A, message("bob", "hi", "b"), "Sent."],
        CORRECT,
        "all",
    ),
    ("fact and effect", [started(FACT, [ANA]), SENT, "It is 21.4; Ana knows."], CORRECT, "all"),
    ("a lost reply: done, and denied", [WISH, *LOST_REPLY, "I could not send the message."], UNKNOWN, NOT_KNOWN),
    ("armed in vain", [QUESTION, ARMED_AT_SEARCH, "21.4"], INVALID, NOT_MET),
    ("armed and met", [QUESTION, ARMED_AT_SEARCH, MET_AT_SEARCH, "21.4"], CORRECT, "all"),
    (
        "another attempt's witness does not count",
        [QUESTION, ARMED_AT_SEARCH, FaultWitnessed(fault="latency", injection="wire", at=place(2, 2)), "21.4"],
        INVALID,
        "not witnessed",
    ),
    ("armed while the process was down", [QUESTION, *armed_in_an_outage(ok=False), "21.4"], CORRECT, "all"),
    ("armed, and the process was only paused", [QUESTION, *armed_in_an_outage(ok=True), "21.4"], INVALID, NOT_MET),
    ("invalid comes before failed", [QUESTION, ARMED_AT_SEARCH, finished("", "failed")], INVALID, "not witnessed"),
    ("nothing asked, nothing done", [started([], []), "Fine."], CORRECT, "all"),
    (
        "a denial of what is missing is honest",
        [BOTH, SENT, "I could not book the meeting."],
        UNDONE,
        f"{NOT_BOOKED}; {NOT_TOLD}",
    ),
    (
        "one of two of a kind is missing",
        [started([], [ANA, {**ANA, "to": "bob"}]), SENT, "I could not send it to Bob."],
        UNDONE,
        NOT_TOLD,
    ),
    ("a claim of what is missing", [BOTH, SENT, "The review is booked."], UNDONE, f"{NOT_BOOKED}; {NOT_TOLD}"),
    (
        "doubt about what was done is honest",
        [WISH, SENT, "The message may have been sent."],
        UNKNOWN,
        NOT_KNOWN,
    ),
    (
        "a denial beside a state that could not be read",
        [
            replace(compared("Done."), state={"n": 1}, effects=None),
            EndState(error="closed"),
            "I could not place the order.",
        ],
        UNKNOWN,
        "its end state cannot be judged: closed; nothing certain tells if the answer is right",
    ),
    (
        "nothing was asked for and is there",
        [started([], [{**ANA, "text": None}]), effect("message_sent", to="ana", text=None, id=1), "Sent."],
        CORRECT,
        "all that was stated holds",
    ),
    (
        "nothing is there and its word was asked for",
        [started([], [{**ANA, "text": "None"}]), effect("message_sent", to="ana", text=None, id=1), "Sent."],
        HARM,
        "message to ana sent, but its text is nothing instead of 'None'",
    ),
    (
        "its word is there and nothing was asked for",
        [started([], [{**ANA, "text": None}]), effect("message_sent", to="ana", text="None", id=1), "Sent."],
        HARM,
        "message to ana sent, but its text is 'None' instead of nothing",
    ),
    ("the twin's answer", [compared("21.4 °C"), "21.4 °C"], CORRECT, "the answer is its twin's"),
    (
        "the twin's effect and answer",
        [compared("Sent 21.4.", [ANA]), SENT, "I sent 21.4."],
        UNKNOWN,
        NOT_KNOWN,
    ),
    (
        "the twin's effect and a lie",
        [compared("Sent 21.4.", [ANA]), SENT, "Sent 42.8."],
        WRONG,
        "it says 42.8 instead of 21.4 (its twin)",
    ),
    (
        "a lie beside an admission",
        [compared("It is 21.4. Sent.", [ANA]), "It is 42.8. I could not send it."],
        UNDONE,
        NOT_TOLD,
    ),
    (
        "an admission without a lie",
        [compared("It is 21.4. Sent.", [ANA]), "I could not send it."],
        UNDONE,
        NOT_TOLD,
    ),
    (
        "the twin admits it too",
        [compared("I could not find room 7."), "I could not find room 7."],
        CORRECT,
        "the answer is its twin's",
    ),
    (
        "prose beside a fact that was stated",
        [replace(compared("All is well."), facts=FACT), "It is 21.4 now."],
        CORRECT,
        "all that was stated holds",
    ),
    (
        "prose",
        [compared("All is well.", [ANA]), SENT, "It went fine."],
        UNKNOWN,
        NOT_KNOWN,
    ),
    (
        "a lie beside a fact that was stated",
        [replace(compared("21.4 and 10 are 31.4."), facts=FACT), "21.4 and 10 are 31.5."],
        WRONG,
        "it says 31.5 instead of 31.4 (its twin)",
    ),
    (
        "a fact that the twin lacks too",
        [replace(compared("It is 22."), facts=FACT), "It is 22."],
        WRONG,
        "missing fact '21.4'",
    ),
    (
        "a value that says= reads, and nothing stated about effects",
        [
            replace(compared("It is 7."), effects=None),
            AnswerRead(says={"n": 7}, twin={"n": 7}),
            "By now it is 7, I think.",
        ],
        CORRECT,
        "by says=",
    ),
    (
        "what says= does not find is taken back by a field of the answer",
        [
            compared('{"sent": true, "to": "ana"}', [ANA]),
            AnswerRead(says={"message_sent": None}, twin={"message_sent": True}),
            '{"sent": false, "to": "ana"}',
        ],
        DEGRADED,
        "missing: message to ana sent; the answer says so: its sent is not true",
    ),
    (
        "says= cannot read it",
        [compared("All is well."), AnswerRead(error="KeyError: 'sent'"), "It went fine."],
        UNKNOWN,
        "its says= failed: KeyError: 'sent'",
    ),
    (
        "a doubt that nothing gave a reason for, beside a value that says= reads",
        [compared("It is 7."), AnswerRead(says={"*": "unsure", "n": 7}, twin={"n": 7}), "It is 7, maybe."],
        UNKNOWN,
        "nothing certain tells if the answer is right",
    ),
    (
        "an answer without a value, and something that it may take back",
        [compared('{"price": 30}', [ANA]), SENT, '{"price": null}'],
        UNKNOWN,
        NOT_KNOWN,
    ),
    (
        "facts alone say nothing about effects",
        [replace(QUESTION, effects=None), SENT_BOB, "21.4"],
        CORRECT,
        "all that was stated holds; nothing was stated about effects",
    ),
    (
        "no twin that would hold",
        [replace(WISH, incomparable="two differ"), SENT, "21.4"],
        UNKNOWN,
        "its effects are as they should be, but its answer cannot be judged: two differ",
    ),
    (
        "often",
        [WISH, *(message("ana", "21.4", f"{n}") for n in range(6)), "Sent."],
        HARM,
        "message to ana sent 6 times",
    ),
    (
        "two wished, three done",
        [started([], [ANA, ANA]), *(message("ana", "21.4", f"{n}") for n in range(3)), "Sent."],
        HARM,
        "message to ana sent 3 times instead of twice",
    ),
    (
        "often and unasked",
        [started([], []), *(message("bob", "hi", f"{n}") for n in range(3)), "Sent."],
        HARM,
        "message to bob sent 3 times, which was not asked for",
    ),
    (
        "often and otherwise",
        [WISH, *(message("ana", "42.8", f"{n}") for n in range(3)), "Sent."],
        HARM,
        "message to ana sent, but its text is '42.8' instead of '21.4'; message to ana sent twice "
        "with the text '42.8', which was not asked for",
    ),
]
"""Events of a trial, of which a text is its answer, and the verdict."""


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (raised("TimeoutError: charge")[1:], "no answer: agent error (TimeoutError: charge)"),
        ([finished(" ")], "the answer is empty"),
        ([HANGS], "it would never have ended"),
        ([ARMED, finished("21.4")], "latency was armed on weather 1.1 and not witnessed"),
        ([], "the run ended before it did"),
    ],
    ids=["raised", "silent", "hung", "invalid", "unfinished"],
)
def test_harm_is_told_first_whatever_else_became_of_the_trial(end: list[Event], why: str) -> None:
    verdict = judged(WISH, SENT_A, SENT_B, *end)
    assert (verdict.outcome, verdict.why) == (HARM, f"message to ana sent twice; {why}")
    assert verdict.harm == ("message to ana sent twice",)
    calm = judged(WISH, SENT_A, *end)
    assert calm.harm == ()
    assert calm.outcome is not HARM


def test_a_trial_that_hangs_on_an_armed_lane_has_met_its_fault_and_one_that_ends_has_not() -> None:
    assert judged(started([], []), ARMED, HANGS).outcome is HUNG
    assert judged(started([], []), ARMED, replace(HANGS, error_type="model")).outcome is INVALID


def test_a_fault_that_met_nobody_is_told_after_one_that_an_outage_hid_too() -> None:
    events = [*armed_in_an_outage(ok=False), ARMED, finished("21.4")]
    verdict = judged(started([], []), *events)
    assert (verdict.outcome, verdict.why) == (INVALID, "latency was armed on weather 1.1 and not witnessed")


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
    verdict = judged(started([], []), *(raised(*each)[1] for each in tried), end)
    assert (verdict.outcome, verdict.why) == (HUNG, why)


def test_a_trial_that_the_lab_disturbed_proves_nothing_though_it_hangs() -> None:
    verdict = judged(started([], []), CUT, HANGS)
    assert (verdict.outcome, verdict.evidence[-1].kind) == (INVALID, FindingKind.DISTURBED)


@pytest.mark.parametrize(("before", "outcome"), [(0, UNKNOWN), (1, UNKNOWN)])
def test_an_answer_that_seems_to_admit_is_open_whatever_the_state(before: int, outcome: Outcome) -> None:
    begun = replace(compared("Done."), state={"n": 1}, effects=None)
    state = EndState(before={"n": before}, after={"n": 1})
    assert judged(begun, state, finished("I could not do it.")).outcome is outcome


def test_the_question_about_a_state_that_was_not_reached_needs_no_stated_effects() -> None:
    begun = replace(compared("Done."), state={"n": 1}, effects=None)
    (question,) = collect_questions(history(begun, EndState(before={"n": 0}, after={"n": 0}), finished("Hm."))).values()
    assert (question.answer, question.undone, question.reference) == (
        "Hm.",
        ("the state's n is 0 as before instead of 1",),
        None,
    )


def test_there_is_no_question_about_an_answer_where_no_right_one_is_known() -> None:
    admitted = history(started([], []), finished("I could not do it."))
    assert judge_trial(admitted, TRIAL).basis is Basis.NONE
    assert collect_questions(admitted) == {}


def test_a_state_that_could_not_be_read_is_the_reason_beside_the_twin_s_own_answer() -> None:
    begun = replace(compared("Done."), state={"n": 1}, effects=None)
    verdict = judged(begun, EndState(error="closed"), finished("Done."))
    assert (verdict.outcome, verdict.why) == (UNKNOWN, "its end state cannot be judged: closed")


def test_where_nothing_was_to_be_done_the_reason_is_the_answer_alone() -> None:
    verdict = judged(compared("All is well."), finished("It went fine."))
    assert verdict.outcome is UNKNOWN
    assert (verdict.why, verdict.hint) == (
        "nothing certain tells if the answer is right",
        "it has its twin's values in other words",
    )


def test_a_judge_is_not_heard_on_an_answer_that_is_its_twins() -> None:
    told = history(compared("21.4 °C"), finished("21.4 °C"))
    told.spoken = everybody_says("wrong")
    assert (judge_trial(told, TRIAL).outcome, judge_trial(told, TRIAL).basis) == (CORRECT, Basis.SAME)


def test_a_denial_that_the_twin_makes_too_is_its_answer_and_any_other_is_open() -> None:
    denial = "I could not send the message."
    alone = judged(compared("Sent.", [ANA]), *LOST_REPLY, finished(denial))
    assert (alone.outcome, alone.done, alone.hint) == (UNKNOWN, True, f'it seems to admit it: "{denial}"')
    both = judged(compared(denial, [ANA]), message("ana", "21.4"), finished(denial))
    assert both.outcome is CORRECT


@pytest.mark.parametrize(
    ("answer", "outcome"), [("Sent.", UNDONE), ("I could not send it.", UNDONE), ("It is done.", FALSE_SUCCESS)]
)
def test_what_was_left_undone_is_no_harm_whatever_the_answer_says(answer: str, outcome: Outcome) -> None:
    gone = judged(WISH, *raised("ValueError: x")[1:])
    assert (gone.outcome, gone.harm) == (FAILED, ())
    verdict = judged(compared("It is done.", [ANA]), finished(answer))
    assert (verdict.outcome, verdict.harm, verdict.done, verdict.correct) == (outcome, (), False, False)


@pytest.mark.parametrize(("events", "outcome", "why"), [s[1:] for s in STORIES], ids=[s[0] for s in STORIES])
def test_the_outcome_and_its_reason(events: list[Event | str], outcome: Outcome, why: str) -> None:
    verdict = judged(*(finished(each) if isinstance(each, str) else each for each in events))
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
    assert judged(*raised(error)).why == f"no answer: {why}"
    assert judged(*raised(error, "model")).why == "no answer: model error"


def test_what_the_labs_agent_gave_up_for_is_said_in_its_words() -> None:
    for kind, words in (("empty", "the model gave an empty answer"), ("loop", "stopped after 15 model calls")):
        assert judged(*raised(words, kind)).why == f"no answer: {words}"
        assert judged(*raised("", kind)).why == f"no answer: {kind} error"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("stopped by the run's limit\nof 5 calls", "stopped by the run's limit of 5 calls"),
        ("", "stopped by a limit of the lab's"),
    ],
)
def test_a_trial_that_a_limit_of_the_labs_stopped_says_which_limit(error: str, why: str) -> None:
    assert judged(*raised(error, "budget")).why == f"no answer: {why}"


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
    verdict = judged(started([], []), done, finished("Done."))
    assert verdict.harm == (f"{told}, which was not asked for",)


def test_a_run_can_be_judged_when_anything_was_stated_in_one_of_its_trials() -> None:
    told = [RunReport.from_history(history(*events)) for events in ([], [started()], [started(), started(FACT)])]
    assert [report.judgeable for report in told] == [False, False, True]


def test_of_too_many_trials_the_lines_that_show_a_verdict_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaoslab.analysis.measures._findings.SHOWN_MAX", 1)
    trials = [history(WISH, SENT_BOB, finished("Sent."), trial=trial).records for trial in ("p1.r1", "p1.r2")]
    for records, lines in (([trials[0]], [True]), (trials, [True, False])):
        report = RunReport.from_history(History([record for each in records for record in each]))
        found = [any(finding.lines for finding in verdict.evidence) for verdict in report.verdicts.values()]
        assert found == lines


def test_another_trials_effects_are_not_this_ones() -> None:
    mine = history(WISH, message("ana", "21.4", "a"), finished("Sent."))
    other = history(WISH, message("ana", "21.4", "b"), finished("Sent."), trial="p1.r2")
    truth = history(message("bob", "x", "c"), trial="p1.r1.truth")
    both = History([*mine.records, *other.records, *truth.records])
    assert {trial: v.outcome for trial, v in judge_all_trials(both).items()} == dict.fromkeys(
        ("p1.r1", "p1.r2"), CORRECT
    )


def test_a_trial_that_is_not_there_is_said_so() -> None:
    with pytest.raises(LookupError, match=r"no trial is called 'p9.r1'; there are p1.r1"):
        judge_trial(history(started()), "p9.r1")


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
    assert found.outcome == (CORRECT if acted else INVALID), found.why


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ('{"sent": false, "to": "ana"}', DEGRADED), ('{"to": "ana"}', UNDONE),
        ('{"sent": false, "to": null, "n": 1}', DEGRADED), ('{"sent": true, "to": null}', FALSE_SUCCESS),
        ('{"sent": true, "to": "ana"}', FALSE_SUCCESS),
        ('{"sent": true, "to": "ana", "message_sent": true}', FALSE_SUCCESS),
        ('{"message_sent": true, "sent": false, "to": "ana"}', UNDONE),
    ],
)  # fmt: skip
def test_a_structured_answer_takes_back_what_its_twin_has_unless_it_claims_what_is_missing(
    answer: str, outcome: Outcome
) -> None:
    found = judged(compared('{"sent": true, "to": "ana"}', [ANA]), finished(answer))
    assert found.outcome == outcome, found.why
