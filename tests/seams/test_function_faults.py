"""Every fault at a Python function: what the function's caller meets, in exact time, and what is written down."""

import asyncio
import gc
import pickle
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.identity import Request, Requests, TrialId, canonical, make_request_id
from chaoslab.base.jsonable import BITS_MAX, render_brief, to_jsonable
from chaoslab.core.events import (
    REPLY_MAX,
    Budget,
    CallFinished,
    CallStarted,
    Effect,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
)
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.functions._call_record import CallRecord, Spelt, abridge_result
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import WrappedFunction
from tests.waiting import together
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

Met = tuple[Any, float]


def refund(order: int, amount: float = 30.0) -> dict[str, Any]:
    time.sleep(0.5)
    return {"order": order, "refunded": amount}


async def refund_soon(order: int, amount: float = 30.0) -> dict[str, Any]:
    await asyncio.sleep(0.5)
    return {"order": order, "refunded": amount}


def met_by(function: Callable[..., Any], fault: Any, **options: Any) -> tuple[Met, lab.Trial]:
    """The result or exception of one call of the function, its seconds, and the trial."""
    met: list[Met] = []

    def agent(_: str) -> str:
        began = time.monotonic()
        try:
            result = function(17)
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            result = error
        met.append((result, round(time.monotonic() - began, 6)))
        return "done"

    async def agent_async(_: str) -> str:
        began = time.monotonic()
        try:
            result = await function(17)
        except Exception as error:  # noqa: BLE001
            result = error
        met.append((result, round(time.monotonic() - began, 6)))
        return "done"

    chosen = agent_async if asyncio.iscoroutinefunction(function) else agent
    trial = lab.run(chosen, "go", tools=[function], faults=[fault], effects=[], timeout_s=10, **options)
    return met[0], trial


STORIES = [
    ("lost_reply", {}, TimeoutError, 10.0, 1),
    ("latency", {"delay_s": 2.0, "stream": "upstream"}, None, 2.5, 1),
    ("latency", {"delay_s": 2.0, "stream": "downstream"}, None, 2.5, 1),
    ("latency", {"delay_s": 12.0, "stream": "upstream"}, TimeoutError, 10.0, 0),
    ("latency", {"delay_s": 12.0, "stream": "downstream"}, TimeoutError, 10.0, 1),
    ("timeout", {"stream": "upstream"}, TimeoutError, 10.0, 0),
    ("timeout", {"stream": "downstream"}, TimeoutError, 10.0, 1),
    ("timeout", {"stream": "downstream", "after_s": 3.0}, ConnectionAbortedError, 3.5, 1),
    ("reset_peer", {"stream": "upstream"}, ConnectionResetError, 0.0, 0),
    ("reset_peer", {"stream": "downstream", "after_s": 1.0}, ConnectionResetError, 1.5, 1),
    ("refused", {}, ConnectionRefusedError, 0.0, 0),
    ("dns_failure", {}, socket.gaierror, 0.0, 0),
    ("tls_failure", {}, ssl.SSLCertVerificationError, 0.0, 0),
    ("tool_error", {"status": 503}, lab.ToolError, 0.0, 0),
    ("wrong_value", {"point": 0.9, "factor": 2.0}, None, 0.5, 1),
]


NAMED: dict[type[Exception], str] = {
    TimeoutError: "timed_out",
    ConnectionAbortedError: "closed",
    ConnectionResetError: "reset",
    ConnectionRefusedError: "refused",
    socket.gaierror: "dns",
    ssl.SSLCertVerificationError: "untrusted",
    lab.ToolError: "Service Unavailable",
}
"""The log's name for the failure that the caller met as this exception."""


@pytest.mark.parametrize("function", [refund, refund_soon])
@pytest.mark.parametrize(("fault", "params", "error", "seconds", "effects"), STORIES)
def test_each_fault_is_met_at_its_moment_witnessed_and_its_effect_counted(
    function: Callable[..., Any], fault: str, params: dict[str, Any], error: type[Exception] | None, seconds: float,
    effects: int,
) -> None:  # fmt: skip
    name = function.__name__
    (result, took_s), trial = met_by(function, lab.inject(fault, name, **params))
    assert took_s == seconds
    assert (type(result) is error) if error else isinstance(result, dict)
    assert len(list(trial.history.find_events(Effect))) == effects
    told = (FaultScheduled, FaultInjected, FaultWitnessed)
    met = [record.event for record in trial.history.records if isinstance(record.event, told)]
    assert [(type(event), event.fault) for event in met] == [(kind, fault) for kind in told]
    (finished,) = [event for _, event in trial.history.find_events(CallFinished)]
    assert (finished.ok, finished.duration_s, finished.status) == (error is None, seconds, params.get("status"))
    assert finished.error == (NAMED[error] if error else None)
    assert finished.via == ("function" if effects else "none")
    assert finished.rolled == [f"{fault} on {name}"]


def test_a_tool_error_says_its_status_in_words() -> None:
    (error, _), trial = met_by(refund, lab.inject("tool_error", "refund", status=429))
    assert isinstance(error, lab.ToolError)
    assert (error.status, error.message, str(error)) == (429, "Too Many Requests", "429 Too Many Requests")
    assert [event.status for _, event in trial.history.find_events(CallFinished)] == [429]


def test_a_wrong_value_is_another_than_the_function_gave_and_leaves_that_alone() -> None:
    (result, _), trial = met_by(refund, lab.inject("wrong_value", "refund", point=0.9, factor=2.0))
    assert result == {"order": 17, "refunded": 60.0}
    assert trial.effects == [{"effect": "refund", "order": 17, "amount": 30.0}]


def test_a_hard_budget_lets_so_many_calls_pass() -> None:
    def agent(_: str) -> list[int]:
        return [outcome(n) for n in range(4)]

    def outcome(n: int) -> int:
        try:
            refund(n)
        except lab.ToolError as error:
            return error.status
        return 200

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("budget", "refund", calls_max=2)], facts=[])
    assert trial.answer == [200, 200, 429, 429]


def test_a_soft_budget_writes_down_each_call_beyond_it_and_lets_it_pass() -> None:
    soft = lab.inject("budget", "refund", calls_max=2, mode="soft")
    trial = lab.run(lambda _: [refund(n)["order"] for n in range(4)], "go", tools=[refund], faults=[soft], facts=[])
    assert trial.answer == [0, 1, 2, 3]
    assert [(b.limit, b.spent, b.allowed, b.mode) for _, b in trial.history.find_events(Budget)] == [
        ("calls", 2, 2, "soft"), ("calls", 3, 2, "soft"),
    ]  # fmt: skip


def test_a_budget_of_seconds_counts_from_the_trials_beginning() -> None:
    def agent(_: str) -> list[str]:
        time.sleep(0.8)
        return [outcome(n) for n in range(3)]

    def outcome(n: int) -> str:
        try:
            refund(n)
        except lab.ToolError as error:
            return error.message
        return "done"

    trial = lab.run(agent, "go", tools=[refund], faults=[lab.inject("budget", "refund", seconds=1.5)], facts=[])
    assert trial.answer == ["done", "done", "Too Many Requests"]


@pytest.mark.parametrize("error", [KeyError("order 17"), StopIteration("order 17")], ids=repr)
def test_what_the_function_raises_passes_as_the_very_object_and_is_written_down(error: Exception) -> None:
    told = f"{type(error).__name__}: {error}"
    caught: list[BaseException] = []

    def broken() -> None:
        raise error

    def agent(_: str) -> None:
        for _attempt in range(2):
            try:
                broken()
            except (KeyError, StopIteration) as found:
                caught.append(found)

    for faults in ([], [lab.inject("lost_reply", "broken")]):
        caught.clear()
        trial = lab.run(agent, "go", tools=[broken], faults=faults, effects=[])
        assert [found is error for found in caught] == [True, True]
        assert (error.__cause__, error.__context__, error.__suppress_context__) == (None, None, False)
        finished = [event for _, event in trial.history.find_events(CallFinished)]
        found = [(f.request, f.attempt, f.ok, f.error) for f in finished]
        assert found == [(1, 1, False, told), (1, 2, False, told)]
        assert not list(trial.history.find_events(FaultInjected))
        assert trial.effects == []


def test_the_same_wish_after_a_failure_is_the_next_attempt_and_after_an_answer_a_new_request() -> None:
    def agent(_: str) -> None:
        for order, amount in ((1, 5), (1, 5), (1, 5), (2, 5)):
            try:
                refund(order, amount=amount)
            except TimeoutError:
                refund(order=order, amount=amount)

    for faults in ([lab.inject("lost_reply", "refund", calls=[1])], []):
        trial = lab.run(agent, "go", tools=[refund], faults=faults, effects=[])
        numbers = [(call.request, call.attempt) for _, call in trial.history.find_events(CallStarted)]
        assert numbers == [(1, 1)] + [(1, 2)] * bool(faults) + [(2, 1), (3, 1), (4, 1)]


@pytest.mark.parametrize("keyed", [False, True])
def test_one_idempotency_key_is_one_effect(keyed: bool) -> None:
    def charge(amount: int, idempotency_key: str) -> None:
        pass

    def agent(_: str) -> str:
        for n in range(3):
            try:
                charge(5, "k" if keyed else f"k{n}")
                break
            except TimeoutError:
                continue
        return "charged"

    lost = [1] if keyed else [1, 2]  # with one key, asking again is no other request
    trial = lab.run(agent, "go", tools=[charge], faults=[lab.inject("lost_reply", "charge", calls=lost)])
    assert len(trial.effects) == (1 if keyed else 3)
    assert trial.outcome is (lab.Outcome.CORRECT if keyed else lab.Outcome.HARM)
    assert keyed or trial.why == "charge 3 times"


def test_parallel_calls_meet_each_their_own_fault() -> None:
    async def agent(_: str) -> str:
        found = await asyncio.gather(*(refund_soon(n) for n in range(3)), return_exceptions=True)
        return " ".join(type(one).__name__ for one in found)

    trial = lab.run(
        agent, "go", tools=[refund_soon], effects=[],
        faults=[lab.inject("refused", "refund_soon", calls=[1]),
                lab.inject("latency", "refund_soon", calls=[3], delay_s=4.0)],
    )  # fmt: skip
    assert trial.answer == "ConnectionRefusedError dict dict"
    assert trial.seconds == 4.5


def test_what_an_outer_fault_masks_is_never_rolled() -> None:
    faults = [lab.inject("tool_error", "refund"), lab.inject("latency", "refund")]
    _, trial = met_by(refund, faults[0])
    with pytest.warns(lab.NothingHit, match="'latency on refund' hit nothing"):
        both = lab.run(lambda _: refund(1), "go", tools=[refund], faults=faults, effects=[])
    for history in (trial.history, both.history):
        assert [event.rolled for _, event in history.find_events(CallFinished)] == [["tool_error on refund"]]


def test_arguments_of_any_type_are_told_in_plain_words_as_they_were_when_called() -> None:
    class Basket:
        pass

    def order(basket: Basket, items: list[str], *more: int, **named: set[int]) -> None:  # noqa: ARG001
        items.append("changed later")

    def agent(_: str) -> None:
        order(Basket(), ["a"], 1, 2, colours={3, 2})
        order(17, ["b"])  # type: ignore[arg-type]

    for faults in ([], [lab.inject("latency", "order", delay_s=1.0)]):
        trial = lab.run(agent, "go", tools=[order], faults=faults, effects=[])
        first, second = [event.arguments for _, event in trial.history.find_events(CallStarted)]
        assert first == {
            "basket": f"a {__name__}.{Basket.__qualname__}", "items": ["a"], "more": [1, 2], "colours": [2, 3],
        }  # fmt: skip
        assert second == {"basket": 17, "items": ["b"]}


def test_an_argument_given_by_name_is_told_as_it_was_when_called() -> None:
    def order(basket: int, items: list[str]) -> int:
        items.append("changed later")
        return basket

    trial = lab.run(lambda _: order(17, items=["a"]), "go", tools=[order], effects=[])
    assert [event.arguments for _, event in trial.history.find_events(CallStarted)] == [{"basket": 17, "items": ["a"]}]


@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "refund_soon", delay_s=2.0)]])
def test_a_call_that_the_agent_gives_up_is_cancelled_and_no_error_of_the_functions(faults: list[Any]) -> None:
    async def agent(_: str) -> str:
        try:
            async with asyncio.timeout(0.2):
                await refund_soon(17)
        except TimeoutError:
            return "given up"
        return "done"

    trial = lab.run(agent, "go", tools=[refund_soon], faults=faults, effects=[])
    assert trial.answer == "given up"
    assert [(end.ok, end.error, end.duration_s) for _, end in trial.history.find_events(CallFinished)] == [
        (False, "cancelled", 0.2)
    ]


def test_a_call_with_arguments_that_do_not_fit_raises_pythons_own_error() -> None:
    def agent(_: str) -> str:
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            refund()  # type: ignore[call-arg]
        return "refused"

    for faults in ([], [lab.inject("latency", "refund")]):
        assert lab.run(agent, "go", tools=[refund], faults=faults, effects=[]).answer == "refused"


def test_a_call_with_more_than_its_function_takes_is_told_as_it_was_made() -> None:
    def agent(_: str) -> str:
        with pytest.raises(TypeError, match="multiple values for argument 'amount'"):
            refund(17, 5.0, amount=6.0)  # type: ignore[misc]
        return "refused"

    trial = lab.run(agent, "go", tools=[refund], effects=[])
    assert [event.arguments for _, event in trial.history.find_events(CallStarted)] == [
        {"argument 1": 17, "argument 2": 5.0, "amount": 6.0}
    ]


def test_what_the_dice_spare_is_told_with_the_dice_that_were_rolled_and_counted_as_any_other() -> None:
    def agent(_: str) -> None:
        for order in (17, 17, 18):
            refund(order)

    spared = [lab.inject(fault, "refund", chance=1e-9) for fault in ("tool_error", "latency")]
    trial = lab.run(agent, "go", tools=[refund], faults=spared, effects=[])
    ended = [event for _, event in trial.history.find_events(CallFinished)]
    assert [(event.request, event.attempt, event.ok) for event in ended] == [(1, 1, True), (2, 1, True), (3, 1, True)]
    assert {tuple(event.rolled) for event in ended} == {("tool_error on refund", "latency on refund")}
    run = trial.history.records[0].run
    wanted = [
        ({"order": 17, "amount": 30.0}, 1),
        ({"order": 17, "amount": 30.0}, 2),
        ({"order": 18, "amount": 30.0}, 1),
    ]
    assert [e.request_id for e in ended] == [
        make_request_id(f"{run}.p1.r1", "refund", wish, nth) for wish, nth in wanted
    ]


ODD = [
    1,
    True,
    1.0,
    -1,
    0,
    False,
    0.0,
    -0.0,
    "1",
    "",
    None,
    "None",
    "\ud83d",
    2**BITS_MAX,
    2**BITS_MAX + 1,
    [1],
    [True],
]


@pytest.mark.parametrize("reversed_", [False, True])
def test_calls_are_one_request_exactly_if_their_arguments_are_one_text_in_json(reversed_: bool) -> None:
    wishes = [*product(ODD, ODD)]
    requests, function = (
        Requests(TrialId("run", 1)),
        WrappedFunction("pair", lambda left, right=1: (left, right), effect=False),
    )
    found: dict[str, set[int]] = {}
    for left, right in wishes[::-1] if reversed_ else wishes:
        ways = [((left, right), {}), ((left,), {"right": right}), ((), {"right": right, "left": left})]
        for args, kwargs in [*ways, *([((left,), {})] if type(right) is int and right == 1 else [])]:
            made = CallRecord(function, args, kwargs)
            number = made.assign_request_number(requests, 0.0)[0]
            made.ok = False  # so that the next one is a retry
            made.end_attempt(requests)
            found.setdefault(canonical(made.get_logged_arguments()), set()).add(number)
    assert max(map(len, found.values())) == 1
    assert len({number for numbers in found.values() for number in numbers}) == len(found) > len(ODD)


@pytest.mark.parametrize("place", ["numbered", "answered"])
def test_no_two_threads_are_ever_numbered_at_once(place: str) -> None:
    """Two calls with one number would be two attempts of one request, and one of them a retry that nobody made."""
    meeting = threading.Barrier(2)

    class Crossing(Requests):
        def find_or_create_by_intent(self, *args: Any, **options: Any) -> Request:
            self._cross("numbered")
            return super().find_or_create_by_intent(*args, **options)

        def mark_answered(self, request: Request) -> None:
            self._cross("answered")
            super().mark_answered(request)

        def _cross(self, here: str) -> None:
            """Lets another thread catch up within the numbering, if it can."""
            if here == place:
                with suppress(threading.BrokenBarrierError):
                    meeting.wait(0.1)

    plan = Plan(1, (Injection("wire", (Choice("latency"),), ("double",), chance=1e-9),))
    seam = FunctionSeam(plan, timeout_s=1.0)
    book = TrialLog(TrialId("run", 1), began=datetime(2026, 6, 1, tzinfo=UTC))
    seam.begin_trial(book)
    book.requests = Crossing(book.trial)
    double = seam.make_fake_function(WrappedFunction("double", lambda n: 2 * n, effect=False))
    results: list[int] = []
    together(*(partial(lambda n: results.append(double(n)), n) for n in (1, 2)))
    assert meeting.broken  # the first waited in vain
    assert sorted(results) == [2, 4]
    assert sorted(call.request for _, call in book.history.find_events(CallFinished)) == [1, 2]


def test_what_the_dice_spare_fails_and_is_tried_again_as_one_request() -> None:
    tries: list[int] = []

    def flaky(order: int) -> int:
        tries.append(order)
        if len(tries) % 2:
            raise ConnectionError("busy")
        return order

    def agent(_: str) -> int:
        try:
            return flaky(17)
        except ConnectionError:
            return flaky(17)

    trial = lab.run(agent, "go", tools=[flaky], faults=[lab.inject("latency", "flaky", chance=1e-9)], effects=[])
    ended = [event for _, event in trial.history.find_events(CallFinished)]
    found = [(e.request, e.attempt, e.ok, e.error) for e in ended]
    assert found == [(1, 1, False, "ConnectionError: busy"), (1, 2, True, None)]


CHANGED = [
    ("wrong_value", {"point": 0.9, "factor": 2.0}, "refunded 30.0 → 60.0", '{"order": 17, "refunded": 60.0}'),
    ("tool_error", {"status": 503}, "not asked → 503", '{"error": "status 503"}'),
    ("lost_reply", {}, '{"order": 17, "refunded": 30.0} → timed_out', ""),
    ("reset_peer", {"stream": "downstream"}, '{"order": 17, "refunded": 30.0} → reset', ""),
    ("refused", {}, "", ""),
    ("latency", {"delay_s": 2.0}, "", '{"order": 17, "refunded": 30.0}'),
]


@pytest.mark.parametrize("function", [refund, refund_soon])
@pytest.mark.parametrize(("fault", "params", "changed", "reply"), CHANGED)
def test_what_a_fault_changed_and_what_its_caller_got_is_written_down(
    function: Callable[..., Any], fault: str, params: dict[str, Any], changed: str, reply: str
) -> None:
    _, trial = met_by(function, lab.inject(fault, function.__name__, **params))
    assert [event.changed for _, event in trial.history.find_events(FaultWitnessed)] == [changed]
    assert [event.reply for _, event in trial.history.find_events(CallFinished)] == [reply]


class Account:
    """Somebody's own object."""


REPLIES: list[tuple[Any, str]] = [
    ("sent", '"sent"'),
    (None, "null"),
    (1.5, "1.5"),
    ({"order": 17, "items": ["lamp"]}, '{"order": 17, "items": ["lamp"]}'),
    (Account(), f'"a {__name__}.Account"'),
    ("x" * 5000, '"' + "x" * (REPLY_MAX - 2) + "…"),
    (10**5000, '"an integer of 16610 bits"'),
]


@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "look", chance=1e-9)]], ids=["no dice", "spared"])
@pytest.mark.parametrize("world", ["virtual", "local"])
@pytest.mark.parametrize(("value", "told"), REPLIES, ids=lambda value: type(value).__name__)
def test_what_a_function_returned_is_written_down_bounded(value: Any, told: str, world: str, faults: list[Any]) -> None:
    def look() -> Any:
        return value

    trial = lab.run(lambda _: bool(look()), "go", reads=[look], faults=faults, facts=[], world=world)
    assert [event.reply for _, event in trial.history.find_events(CallFinished)] == [told]


def test_a_reply_is_told_as_it_was_when_it_was_given() -> None:
    def look() -> dict[str, Any]:
        return {"price": 30}

    def agent(_: str) -> str:
        look()["price"] = 0
        return "done"

    trial = lab.run(agent, "go", reads=[look], facts=[])
    assert [event.reply for _, event in trial.history.find_events(CallFinished)] == ['{"price": 30}']


def test_a_log_holds_none_of_the_objects_that_were_returned() -> None:
    class Big(str):
        """A text of a kind of its own, so that the collector can be asked for it."""

    def look(n: int) -> Any:
        return [Big("x" * 10_000), {"n": n}]

    def agent(_: str) -> str:
        for n in range(5):
            look(n)
        return "done"

    trial = lab.run(agent, "go", reads=[look], facts=[])
    gc.collect()
    lists = [thing for thing in gc.get_objects() if type(thing) is list and len(thing) == 2]
    assert [held for held in lists if type(held[0]) is Big] == []
    assert {len(event.reply) for _, event in trial.history.find_events(CallFinished)} == {REPLY_MAX}


def test_a_pace_is_asked_again_when_the_calls_that_it_gave_are_made() -> None:
    seam = FunctionSeam(Plan(1), timeout_s=1.0)
    asked: list[int] = []
    done: list[int] = []

    def pace(_: str) -> int:
        asked.append(len(done))
        return 2

    async def note_soon(n: int) -> None:
        done.append(n)

    async def notes() -> None:
        for n in range(5):
            await seam.make_fake_function(WrappedFunction("note_soon", note_soon, effect=False))(n)

    seam.pace = pace
    asyncio.run(notes())
    note = seam.make_fake_function(WrappedFunction("note", done.append, effect=False))
    for n in range(5):
        note(n)
    assert asked == [0, 2, 4, 6, 8]


def test_a_duration_is_told_to_the_microsecond() -> None:
    requests, made = (
        Requests(TrialId("run", 1)),
        CallRecord(WrappedFunction("double", lambda n: 2 * n, effect=False), (3,), {}),
    )
    made.make_phase_event("begin", requests, 1.0)
    ended = made.make_phase_event("end", requests, 1.12345678)
    assert isinstance(ended, CallFinished)
    assert ended.duration_s == 0.123457


@pytest.mark.parametrize(
    ("result", "is_kept"),
    [
        ("x" * REPLY_MAX, True),
        ("x" * (REPLY_MAX + 1), False),
        (2**BITS_MAX - 1, True),
        (2**BITS_MAX, False),
        (1 - 2**BITS_MAX, True),
        (-(2**BITS_MAX), False),
        (None, True),
        (1.5, True),
        (dict.fromkeys(range(16), "small"), True),
        (dict.fromkeys(range(17), "small"), False),
        ({"items": ["lamp"]}, False),
        (["lamp"], False),
    ],
    ids=lambda value: value if isinstance(value, bool) else type(value).__name__,
)
def test_small_results_that_cannot_change_are_kept_and_of_others_their_words(result: Any, is_kept: bool) -> None:
    found = abridge_result(result)
    assert (found == result) if is_kept else (found == render_brief(result, REPLY_MAX))
    assert isinstance(found, Spelt) is not is_kept
    assert found is not result or not isinstance(result, dict)


@pytest.mark.parametrize("chance", [None, 1e-9], ids=["no dice", "spared"])
def test_what_is_sent_to_another_process_is_told_there_as_it_would_be_here(chance: float | None) -> None:
    wire = () if chance is None else (Injection("wire", (Choice("latency"),), ("double",), chance=chance),)
    seam = FunctionSeam(Plan(1, wire), timeout_s=1.0)
    book = TrialLog(TrialId("run", 1), began=datetime(2026, 6, 1, tzinfo=UTC))
    seam.begin_trial(book)
    double = seam.make_fake_function(WrappedFunction("double", lambda n: 2 * n, effect=True))
    assert [double(3), double(3)] == [6, 6]
    with pytest.raises(TypeError):
        double(None)
    sent: TrialLog = pickle.loads(pickle.dumps(book))
    here, there = ([record.event for record in each.history.records] for each in (book, sent))
    assert there == here
    wished = [make_request_id(book.trial.header, "double", {"n": n}, nth) for n, nth in ((3, 1), (3, 2), (None, 1))]
    assert [event.request_id for event in there if isinstance(event, CallStarted)] == wished
    assert [event.request_id for event in there if isinstance(event, CallFinished)] == wished


def test_another_thread_may_go_on_with_what_was_returned() -> None:
    shared: dict[str, Any] = {}
    stop = threading.Event()

    def grow() -> None:
        while not stop.is_set():
            shared.clear()
            shared.update({str(n): [n] for n in range(50)})

    def look() -> dict[str, Any]:
        return shared

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        trial = lab.run(lambda _: bool([look() for _ in range(300)]), "go", reads=[look], facts=[], world="local")
    finally:
        stop.set()
        thread.join()
    assert trial.error is None


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("less", [0, 1])
def test_a_number_with_too_many_bits_is_told_by_their_count(sign: int, less: int) -> None:
    def take(value: int) -> str:  # noqa: ARG001
        return "taken"

    number = sign * (2**BITS_MAX - less)
    trial = lab.run(lambda _: take(number), "go", tools={"take": take}, twin=False)
    assert [effect["value"] for effect in trial.effects] == [to_jsonable(number)]


@pytest.mark.parametrize("how", ["passed", "from", "instead", "itself", "kept"])
def test_a_tool_that_fails_for_a_fault_within_it_may_have_done_its_work(how: str) -> None:
    paid: list[int] = []

    def pay(order: int) -> str:
        paid.append(order)
        try:
            audit()
        except ConnectionError as error:
            if how == "passed":
                raise
            if how == "from":
                raise RuntimeError from error
            if how == "instead":
                raise RuntimeError  # noqa: B904 - as many do
        return "paid"

    def audit() -> None: ...

    def send(order: int) -> None:
        if how == "itself":
            raise ValueError(order)

    def agent(_: str) -> str:
        paid.clear()
        try:
            pay(17)
        except (ConnectionError, RuntimeError):
            pay(17)
        try:
            audit()
        except ConnectionError:
            with suppress(ValueError):  # its own error, beside the one that is handled
                send(17)
        return "Paid."

    calls = [2] if how == "itself" else [1]
    refused = lab.inject("refused", "audit", calls=calls, attempts=[1])
    trial = lab.run(agent, "Pay 17.", tools=[pay, send], reads=[audit], faults=[refused])
    if how in ("itself", "kept"):
        assert trial.outcome == "correct", trial.why
        return
    assert trial.outcome == "unknown"
    assert trial.why == "pay failed for a fault within it, and what it had done by then is not known"
    seen = lab.run(agent, "Pay 17.", tools=[pay], reads=[audit], faults=[refused], state=lambda: len(paid))
    assert (seen.outcome, seen.why) == ("harm", "the state's it is 2 instead of 1")


def test_two_equal_calls_at_once_are_two_requests_though_a_fault_waits_for_them() -> None:
    def pay(order: int) -> str:
        time.sleep(1)
        return f"paid {order}"

    def agent(_: str) -> str:
        threads = [threading.Thread(target=lambda: pay(17)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "done"

    options: dict[str, Any] = {"effects": [], "twin": False, "anyway": True}
    trial = lab.run(agent, "go", tools=[pay], faults=[lab.inject("latency", "pay", calls=[2])], **options)
    started = [(event.at.request, event.at.attempt) for _, event in trial.history.find_events(CallStarted)]
    assert started == [(1, 1), (2, 1)]
