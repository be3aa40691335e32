"""Faults of a tool's answer. The larger ones have files of their own."""

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.config.topology import SERVICES
from chaoslab.core.exchange import Reply
from chaoslab.core.fault import Fault
from chaoslab.core.service_spec import ErrorReply, ServiceSpec
from chaoslab.faults.tool.auth_error import AuthError
from chaoslab.faults.tool.empty_response import EmptyResponse
from chaoslab.faults.tool.exception import Exception as ExceptionFault
from chaoslab.faults.tool.flapping import Flapping
from chaoslab.faults.tool.html_instead_of_json import PAGE, HtmlInsteadOfJson
from chaoslab.faults.tool.lost_reply import LostReply
from chaoslab.faults.tool.malformed_json import MalformedJson
from chaoslab.faults.tool.not_found import NotFound
from chaoslab.faults.tool.partial_success import FAILED, PartialSuccess
from chaoslab.faults.tool.redelivery import Redelivery
from chaoslab.faults.tool.server_error import STATUSES, ServerError
from chaoslab.faults.tool.timeout_before_effect import TimeoutBeforeEffect
from chaoslab.faults.tool.tool_error import STATUSES as TOOL_STATUSES
from chaoslab.faults.tool.tool_error import ToolError
from tests.faults.fault_parts import CALL, Target, answer, meet, saw

JSON_TYPE = "application/json"
GONE = {404: ErrorReply(404, {"gone": True})}
SAID: list[tuple[Fault, Mapping[int, ErrorReply], int, object, str]] = [
    *((AuthError(n), {}, n, {"error": f"status {n}"}, f"the service's own error {n}") for n in (401, 403)),
    (ExceptionFault("database is locked"), {}, 500, {"error": "database is locked"}, "the changed reply"),
    (NotFound(), GONE, 404, {"gone": True}, "a reply that there is no such thing"),
    *((ServerError(n), {}, n, {"error": f"status {n}"}, f"the service's own error {n}") for n in STATUSES),
    (ToolError(503), {}, 503, {"error": "status 503"}, "the service's own error 503"),
]
"""The fault, the target's own words, and the status, value and witness of the reply that comes in its place."""


@pytest.mark.parametrize(("fault", "words", "status", "value", "evidence"), SAID)
def test_the_service_says_it_in_its_own_words_and_is_not_asked(
    fault: Fault, words: Mapping[int, ErrorReply], status: int, value: object, evidence: str
) -> None:
    met = meet(fault, target := Target(), call=replace(CALL, errors=words))
    assert met.reply is not None
    assert (met.reply.status, met.reply.value, target.sent) == (status, value, [])
    assert met.evidence == f"{evidence} reached the caller"


@pytest.mark.parametrize(("make", "statuses"), [(ServerError, STATUSES), (ToolError, TOOL_STATUSES)])
def test_the_status_is_drawn_unless_it_is_named(make: Callable[..., Any], statuses: tuple[int, ...]) -> None:
    drawn = [make().draw(Dice(1, n)).status for n in range(200)]
    assert drawn == [make().draw(Dice(1, n)).status for n in range(200)]
    assert set(drawn) == set(statuses)
    assert make(504).draw(Dice(1)) == make(504)


@pytest.mark.parametrize(
    ("make", "status", "should_be"),
    [
        *((HtmlInsteadOfJson, status, "one that has a") for status in (199, 204, 304, 600)),
        *((ServerError, status, "from 500 to 599, or 0") for status in (499, 600, -1)),
        *((ToolError, status, "an error's, from 400 to 599, or 0") for status in (399, 600, 200, 1, -1)),
    ],
)
def test_a_status_that_it_cannot_have_is_refused(make: Callable[[int], Fault], status: int, should_be: str) -> None:
    with pytest.raises(ValueError, match=rf"^status of \w+ is {status}: it should be {should_be}"):
        make(status)


SILENT = "no answer within 2 s"


@pytest.mark.parametrize(
    ("fault", "asked", "evidence", "otherwise"),
    [
        (LostReply(), 1, f"the work was done, {SILENT}", {"reply": answer({})}),
        (TimeoutBeforeEffect(), 0, f"nothing was asked, {SILENT}", {"sent": CALL}),
    ],
)
def test_the_caller_hears_nothing_until_its_deadline(
    fault: Fault, asked: int, evidence: str, otherwise: dict[str, Any]
) -> None:
    met = meet(fault, target := Target())
    assert (met.error, met.reply, len(target.sent), met.seen.duration_s) == ("timed_out", None, asked, 2.0)
    assert (met.injected, met.evidence) == (True, evidence)
    for other in (otherwise, {"error": "reset"}, {"error": None}):
        assert fault.witnessed(replace(met.seen, **other)) is None


@pytest.mark.parametrize("fault", [LostReply(), TimeoutBeforeEffect(), *map(ToolError, (400, 404, 599))])
def test_nothing_is_drawn_and_nothing_is_on_the_wire(fault: Fault) -> None:
    assert (fault.draw(Dice(1)), fault.toxics()) == (fault, ())


# empty_response: The service does the work, and its answer is empty.


def test_the_work_is_done_and_the_body_is_empty() -> None:
    target = Target()
    target.reply = answer({"id": 7}, 201, {"Content-Type": "application/json", "Content-Length": "9", "ETag": "a"})
    met = meet(EmptyResponse(), target)
    assert met.reply is not None
    assert (met.reply.status, met.reply.body) == (201, b"")
    assert met.reply.headers == {"Content-Type": "application/json", "ETag": "a"}
    assert len(target.sent) == 1
    assert met.evidence == "an empty answer with status 201 reached the caller"


def test_a_function_has_its_effect_and_returns_nothing() -> None:
    def refund(order: int) -> str:
        return f"refunded {order}"

    def agent(_: str) -> str:
        return str(refund(17))

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("empty_response", "refund")])
    assert trial.answer == "None"
    assert trial.effects == [{"effect": "refund", "order": 17}]


# exception: The tool raises an exception instead of doing the work.


def test_a_function_raises_with_the_message_and_has_no_effect() -> None:
    def refund(order: int) -> str:
        return f"refunded {order}"

    def agent(_: str) -> str:
        try:
            return refund(17)
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            return str(error)

    locked = lab.inject("exception", "refund", message="database is locked")
    trial = lab.run(agent, "go", tools=[refund], faults=[locked])
    assert "database is locked" in str(trial.answer)
    assert trial.effects == []


# flapping: The service comes and goes.


def test_it_is_up_and_down_by_turns_from_the_beginning_of_the_trial() -> None:
    moments = [0, 9.9, 10, 11.9, 12, 21.9, 22, 23.9, 24]
    met = [meet(Flapping(up_s=10, down_s=2), elapsed_s=moment) for moment in moments]
    assert [each.reply.status for each in met if each.reply] == [200, 200, 503, 503, 200, 200, 503, 503, 200]
    assert [bool(each.evidence) for each in met] == [each.injected for each in met]
    assert sum(each.injected for each in met) == 4


def test_while_it_is_down_it_is_not_asked() -> None:
    met = meet(Flapping(up_s=1, down_s=1), target := Target(), elapsed_s=1.5)
    assert target.sent == []
    assert met.evidence == "a reply that the service is down reached the caller"
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({}, 503))) is None


# html_instead_of_json: A page of HTML comes instead of the service's answer.


@pytest.mark.parametrize("status", [200, 502])
def test_the_page_reaches_the_caller_and_the_target_is_not_asked(status: int) -> None:
    met = meet(HtmlInsteadOfJson(status), target := Target())
    assert met.reply is not None
    assert (met.reply.status, met.reply.body, met.reply.unreadable) == (status, PAGE, True)
    assert met.reply.headers["Content-Type"].startswith("text/html")
    assert target.sent == []
    assert met.evidence == f"a page of HTML with status {status} reached the caller"


def test_a_function_returns_the_page_as_its_text() -> None:
    def look_up(city: str) -> str:
        return f"{city}: 20 degrees"

    def agent(city: str) -> str:
        return look_up(city)

    page = lab.inject("html_instead_of_json", "look_up")
    trial = lab.run(agent, "Oslo", reads=[look_up], faults=[page])
    assert trial.answer == PAGE.decode()
    assert trial.outcome is lab.Outcome.UNKNOWN  # it lacks a value, and has none of its own


# lost_reply: The service does the work; its answer never arrives.


def test_a_call_that_could_not_be_sent_has_no_reply_to_lose() -> None:
    met = meet(LostReply(), Target(fails="refused"))
    assert (met.error, met.injected, met.evidence) == ("refused", False, None)
    assert LostReply().witnessed(saw(error="timed_out"))


# malformed_json: The answer's JSON is damaged.


LEAVES = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(value=JSON, part=st.floats(0.01, 0.99))
def test_whatever_the_answer_was_it_is_no_json_any_more(value: Any, part: float) -> None:
    met = meet(MalformedJson(part), target := Target(reply=answer(value)))
    assert met.reply is not None
    assert (met.reply.status, len(target.sent)) == (200, 1)
    with pytest.raises(json.JSONDecodeError):
        json.loads(met.reply.body)
    assert met.evidence == f"an answer that is no JSON, of {len(met.reply.body)} bytes, reached the caller"


def test_the_headers_stay_but_for_the_length() -> None:
    reply = answer({"temp": 20}, headers={"Content-Type": "application/json", "Content-Length": "12", "ETag": "x"})
    met = meet(MalformedJson(0.5), Target(reply=reply))
    assert met.reply is not None
    assert (dict(met.reply.headers), met.reply.body) == (
        {"Content-Type": "application/json", "ETag": "x"}, b'{"temp',
    )  # fmt: skip


def test_what_is_no_json_passes_unchanged() -> None:
    met = meet(MalformedJson(0.5), Target(reply=Reply(200, {}, b"<p>hello</p>")))
    assert (met.injected, met.evidence) == (False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    drawn = {MalformedJson().draw(Dice(1, n)).part for n in range(50)}
    assert len(drawn) > 40
    assert all(0.2 <= part <= 0.9 for part in drawn)
    assert MalformedJson(0.3).draw(Dice(1)) == MalformedJson(0.3)


# not_found: The service says that there is no such thing, though there is.


def test_a_reply_that_named_no_time_to_wait_keeps_its_words() -> None:
    later = ErrorReply(429, {"error": "it's late"}).with_retry_after(2)
    assert later == ErrorReply(429, {"error": "it's late"}, {"Retry-After": "2"})


# partial_success: The work is done, and the answer reports a part of it as failed.


def test_half_of_a_list_is_acknowledged() -> None:
    target = Target(reply=answer([1, 2, 3]))
    met = meet(PartialSuccess(), target)
    assert met.reply is not None
    assert (met.reply.status, len(target.sent)) == (207, 1)
    assert met.reply.value == {"successes": [1], "failures": [{**FAILED, "item": 2}, {**FAILED, "item": 3}]}
    assert met.evidence


@given(st.booleans() | st.integers() | st.text() | st.dictionaries(st.text(), st.integers()))
def test_any_other_result_is_one_success_beside_one_failure(value: object) -> None:
    met = meet(PartialSuccess(), Target(reply=answer(value)))
    assert met.reply is not None
    assert met.reply.value == {"successes": [value], "failures": [FAILED]}


@pytest.mark.parametrize("reply", [answer({"error": "busy"}, 503), Reply(204, {})])
def test_an_error_and_an_empty_answer_stay_as_they_are(reply: Reply) -> None:
    met = meet(PartialSuccess(), Target(reply=reply))
    assert met.reply is reply
    assert not met.injected


@pytest.mark.parametrize("result", [[1, 2], (1, 2), 7])
def test_a_function_has_its_effect_and_returns_both_parts(result: object) -> None:
    def refund(order: int) -> object:  # noqa: ARG001
        return result

    def agent(_: str) -> str:
        return ",".join(refund(17))  # type: ignore[arg-type]

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("partial_success", "refund")], anyway=True)
    assert (trial.answer, len(trial.effects)) == ("successes,failures", 1)


def test_a_service_that_answers_201_answers_207() -> None:
    def shop(_request: Any) -> tuple[int, dict[str, bool]]:
        return 201, {"ok": True}

    def agent(_: str) -> int:
        return httpx.post("http://shop/refunds", json={"order": 17}).status_code

    trial = lab.run(agent, "go", services={"shop": shop}, faults=[lab.inject("partial_success", "shop")])
    assert trial.answer == 207


# redelivery: The call arrives twice, as from a queue or a proxy that sends again what was done.


def test_the_same_call_is_sent_twice_and_the_caller_has_an_answer() -> None:
    met = meet(Redelivery(), target := Target())
    assert target.sent == [CALL, CALL]
    assert met.reply is target.reply
    assert met.evidence == "the service was asked twice, and the caller has the second answer"


def test_a_service_that_does_not_answer_gets_it_once() -> None:
    met = meet(Redelivery(), target := Target(fails="reset"))
    assert (len(target.sent), met.error, met.injected, met.evidence) == (1, "reset", False, None)


def test_the_ledger_shows_both_effects_and_an_idempotency_key_saves_from_them() -> None:
    paid: list[int] = []

    def refund(order: int, idempotency_key: str = "") -> str:
        paid.append(order)
        return f"refunded {order} {idempotency_key}"

    def naive(_: str) -> str:
        return refund(17)

    def careful(_: str) -> str:
        return refund(17, idempotency_key="a")

    faults = [lab.inject("redelivery", "refund")]
    effects = [{"effect": "refund", "order": 17}]
    assert lab.run(naive, "refund", tools=[refund], faults=faults, effects=effects).outcome is lab.Outcome.HARM
    assert paid == [17, 17]
    effects = [{"effect": "refund", "order": 17, "idempotency_key": "a"}]
    trial = lab.run(careful, "refund", tools=[refund], faults=faults, effects=effects)
    assert trial.outcome is lab.Outcome.CORRECT, trial.story()


# tool_error: The service answers with an error of its own instead of doing the work.


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("status", TOOL_STATUSES)
def test_each_service_says_each_status_in_its_own_words(name: str, status: int) -> None:
    service: ServiceSpec = importlib.import_module(f"chaoslab.flask_tools.{name}").SERVICE
    words, target = service.errors[status], Target()
    met = meet(ToolError(status), target, call=replace(CALL, target=name, errors=service.errors))
    assert met.reply is not None
    assert (met.reply.status, json.loads(met.reply.body)) == (words.status, words.body)
    assert met.reply.headers["Content-Type"] == "application/json"
    assert ("Retry-After" in met.reply.headers) is (status == 429)
    assert target.sent == []
    assert met.evidence == f"the service's own error {status} reached the caller"


def test_the_time_to_wait_stands_in_the_header_and_in_the_words() -> None:
    said = ErrorReply(429, {"error": {"message": "Try again in 1s.", "code": 1, "of": ["11s"]}}, {"retry-after": "1"})
    met = meet(ToolError(429, retry_after_s=30), call=replace(CALL, errors={429: said}))
    assert met.reply is not None
    assert met.reply.value == {"error": {"message": "Try again in 30s.", "code": 1, "of": ["11s"]}}
    assert met.reply.headers == {"Content-Type": "application/json", "Retry-After": "30"}
    without = meet(ToolError(503, retry_after_s=0.5))
    assert without.reply is not None
    assert without.reply.headers["Retry-After"] == "0.5"
