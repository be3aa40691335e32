"""Stories about one exchange nest, wait, fail and are seen through; no socket and no second is spent on it."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from chaoslab.core.chain import ActiveFault, nest_flows, run_flow
from chaoslab.core.events import Event, FaultScheduled, LabWarning
from chaoslab.core.exchange import (
    Ahead,
    Call,
    Failure,
    Flow,
    Note,
    Observation,
    Reply,
    TrialContext,
    UserActs,
    Wait,
    forever,
)
from chaoslab.core.fault import Fault
from chaoslab.core.service_spec import ErrorReply
from chaoslab.faults.tool.tool_error import ToolError
from tests.event_parts import fault_at
from tests.faults.fault_parts import Attempt, played

CALL = Call("weather", "current_weather", "p1.r1", 1, 1, value={"city": "Oslo"})
TRUTH = Reply(200, {"Content-Type": "application/json"}, b'{"temp": 20}')
LIE = TRUTH.with_value({"temp": 40})


@dataclass
class World(Attempt):
    """A target that answers at once, and what happened in order."""

    fails: list[str] = field(default_factory=list)
    diary: list[str] = field(default_factory=list)

    def tell(self, flow: Flow) -> Reply:
        return played(flow, self)

    async def send(self, call: Call) -> Reply:
        self.diary.append("sent")
        self.sent.append(call)
        if self.fails:
            raise Failure(self.fails.pop(0))
        return TRUTH


class Story(Fault):
    """A fault made of a function, for the test's own stories."""

    layer = "tool"

    def __init__(self, tell: Callable[[Call], Flow]) -> None:
        self.tell = tell

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return self.tell(call)


def active(tell: Callable[[Call], Flow], name: str = "story") -> ActiveFault:
    return ActiveFault(name, name, Story(tell))


def as_it_is(call: Call) -> Flow:
    return (yield call)


def late(call: Call) -> Flow:
    reply = yield call
    yield Wait(0.5)
    return reply


def lying(call: Call) -> Flow:
    yield call
    return LIE


def refusing(call: Call) -> Flow:
    return LIE
    yield call


def elsewhere(call: Call) -> Flow:
    return (yield call.with_value({"city": "Rome"}))


def twice_sent(call: Call) -> Flow:
    yield call
    return (yield call)


def lost(call: Call) -> Flow:
    yield call
    yield Wait(forever)
    raise AssertionError("the deadline is thrown into the story")


def noting(call: Call) -> Flow:
    yield Note(LabWarning(message="seen"))
    return (yield call)


def breaking(call: Call) -> Flow:
    yield call
    raise Failure("reset")


def forgiving(call: Call) -> Flow:
    try:
        return (yield call)
    except Failure:
        return LIE


def ahead_first(call: Call) -> Flow:
    yield Ahead(5.0)
    reply = yield call
    yield Ahead(-5.0)
    return reply


def in_turn(*stories: ActiveFault) -> list[Callable[[Call], ActiveFault | None]]:
    return [lambda _, story=story: story for story in stories]  # type: ignore[misc]


def diarist(world: World, name: str) -> ActiveFault:
    def tell(call: Call) -> Flow:
        world.diary.append(f"{name} begins")
        reply = yield call
        world.diary.append(f"{name} ends")
        return reply

    return active(tell, name)


def test_an_outer_story_wraps_the_inner_and_the_wire_is_innermost() -> None:
    world = World()
    assert world.tell(nest_flows(in_turn(diarist(world, "outer"), diarist(world, "inner")), CALL)) is TRUTH
    assert world.diary == ["outer begins", "inner begins", "sent", "inner ends", "outer ends"]


@pytest.mark.parametrize(("told", "changed"), [(["09:00", ""], ""), (["", "09:05"], "09:05"), (["", ""], "")])
def test_a_clock_has_told_a_time_of_the_storys_only_once_its_call_was_sent(told: list[str], changed: str) -> None:
    class Clock(World):
        def advance_clock(self, by_s: float) -> str:
            return told[by_s < 0]

    story = active(ahead_first)
    assert Clock().tell(nest_flows(in_turn(story), CALL)) is TRUTH
    assert (story.told, story.injected) == (changed, bool(changed))


def test_without_stories_the_call_goes_out_as_it_is() -> None:
    world = World()
    assert world.tell(nest_flows([], CALL)) is TRUTH
    assert world.sent == [CALL]


def test_dice_are_rolled_when_a_story_is_reached() -> None:
    rolled: list[str] = []

    def roller(name: str, story: ActiveFault | None) -> Callable[[Call], ActiveFault | None]:
        def roll(_: Call) -> ActiveFault | None:
            rolled.append(name)
            return story

        return roll

    world = World()
    reach = [roller("missed", None), roller("refusing", active(refusing)), roller("masked", active(late))]
    assert world.tell(nest_flows(reach, CALL)) is LIE
    assert rolled == ["missed", "refusing"]
    assert world.sent == []
    rolled.clear()
    World().tell(nest_flows([roller("first", None), roller("second", None)], CALL))
    assert rolled == ["first", "second"]


def test_an_inner_story_is_rolled_for_the_call_that_reaches_it() -> None:
    reached: list[Call] = []

    def roll(call: Call) -> ActiveFault | None:
        reached.append(call)
        return None

    World().tell(nest_flows([*in_turn(active(elsewhere)), roll], CALL))
    assert [call.value for call in reached] == [{"city": "Rome"}]


@pytest.mark.parametrize(
    ("tell", "changes"),
    [
        (as_it_is, False),
        (noting, False),
        (late, True),
        (lying, True),
        (refusing, True),
        (elsewhere, True),
        (twice_sent, True),
    ],
)
def test_a_story_counts_as_injected_only_when_it_changed_the_exchange(
    tell: Callable[[Call], Flow], changes: bool
) -> None:
    story = active(tell)
    injected: list[ActiveFault] = []
    World().tell(nest_flows(in_turn(story), CALL, injected.append))
    assert story.injected is changes
    assert injected == ([story] if changes else [])


def test_a_story_that_changes_twice_is_injected_once() -> None:
    def twice(call: Call) -> Flow:
        yield Wait(0.1)
        yield call.with_value({})
        return LIE

    injected: list[ActiveFault] = []
    World().tell(nest_flows(in_turn(active(twice)), CALL, injected.append))
    assert len(injected) == 1


def test_what_a_story_did_is_kept_to_be_compared_with_what_the_caller_saw() -> None:
    outer, inner = active(lying), active(elsewhere)
    World().tell(nest_flows(in_turn(outer, inner), CALL))
    assert (outer.call, outer.reply) == (None, LIE)
    assert (inner.call, inner.reply) == (CALL.with_value({"city": "Rome"}), None)


def test_an_outer_story_that_hands_on_an_inner_lie_did_not_inject_it() -> None:
    outer, inner = active(as_it_is), active(lying)
    assert World().tell(nest_flows(in_turn(outer, inner), CALL)) is LIE
    assert (outer.injected, inner.injected) == (False, True)


def test_waiting_forever_ends_at_the_deadline_with_a_failure() -> None:
    world, story = World(deadline_s=2.0), active(lost)
    with pytest.raises(Failure, match="timed_out"):
        world.tell(nest_flows(in_turn(story), CALL))
    assert (world.now_s, world.sent, story.injected) == (2.0, [CALL], True)


def test_two_waits_add_up_and_share_one_deadline() -> None:
    world = World(deadline_s=0.9)
    with pytest.raises(Failure, match="timed_out"):
        world.tell(nest_flows(in_turn(active(late), active(late)), CALL))
    assert world.now_s == 0.9
    patient = World(deadline_s=1.1)
    assert patient.tell(nest_flows(in_turn(active(late), active(late)), CALL)) is TRUTH
    assert patient.now_s == 1.0


def test_a_failure_of_the_wire_passes_through_every_story_uninjected() -> None:
    outer, inner = active(lying), active(late)
    with pytest.raises(Failure, match="refused"):
        World(fails=["refused"]).tell(nest_flows(in_turn(outer, inner), CALL))
    assert (outer.injected, inner.injected) == (False, False)


def test_a_failure_of_a_storys_own_is_injected_there_and_only_there() -> None:
    outer, inner = active(late), active(breaking)
    with pytest.raises(Failure, match="reset"):
        World().tell(nest_flows(in_turn(outer, inner), CALL))
    assert (outer.injected, inner.injected) == (False, True)


def test_a_story_may_turn_a_failure_into_a_reply() -> None:
    story = active(forgiving)
    assert World(fails=["reset"]).tell(nest_flows(in_turn(story), CALL)) is LIE
    assert story.injected


def test_a_story_may_try_again_after_a_failure() -> None:
    def stubborn(call: Call) -> Flow:
        try:
            return (yield call)
        except Failure:
            return (yield call)

    world = World(fails=["reset"])
    assert world.tell(nest_flows(in_turn(active(stubborn)), CALL)) is TRUTH
    assert world.diary == ["sent", "sent"]


def test_a_reply_means_its_json_and_can_be_given_another_meaning() -> None:
    assert TRUTH.value == {"temp": 20}
    assert Reply(200, {}, b"<html>").value is None
    assert Reply(200, {}, b"\xff").value is None
    assert Reply(200, {}, b"[" * 100_000).value is None
    packed = Reply(200, {"Content-Encoding": "gzip", "content-length": "9", "X": "y"}, b"{}")
    assert packed.with_value(["é"]) == Reply(200, {"X": "y"}, '["é"]'.encode())


def test_replies_are_the_same_by_status_and_body() -> None:
    assert TRUTH.same_as(Reply(200, {"Date": "later"}, TRUTH.body))
    assert not TRUTH.same_as(Reply(201, TRUTH.headers, TRUTH.body))
    assert not TRUTH.same_as(LIE)
    assert not TRUTH.same_as(None)


def test_a_target_refuses_in_its_own_words() -> None:
    words = {429: ErrorReply(200, {"ok": False, "error": "ratelimited"}, {"Retry-After": "1"})}
    reply = Call("messaging", "send_message", "p1.r1", 1, 1, errors=words).build_refusal_reply(429)
    assert (reply.status, reply.value) == (200, {"ok": False, "error": "ratelimited"})
    assert reply.headers == {"Content-Type": "application/json", "Retry-After": "1"}


def test_a_target_without_words_of_its_own_refuses_in_plain_json() -> None:
    reply = Call("search", "search_web", "p1.r1", 1, 1).build_refusal_reply(503)
    assert (reply.status, reply.value) == (503, {"error": "status 503"})
    assert reply.headers == {"Content-Type": "application/json"}


STREAMED = {"Content-Type": "text/event-stream; charset=utf-8"}


@pytest.mark.parametrize(
    ("headers", "body", "unreadable"),
    [
        ({}, b'{"temp": 20}', False),
        ({}, b"0", False),
        ({}, b"", False),
        ({}, b" \n", False),
        ({}, b" null ", False),
        ({}, b"<html>", True),
        ({"Content-Type": "text/html"}, b"<html>", True),
        ({"X-Kind": "text/event-stream"}, b"data: 1", True),
        (STREAMED, b"data: {}", False),
        ({"Date": "today", **STREAMED}, b"data: {}", False),
        (STREAMED, b"", False),
    ],
)
def test_a_body_is_unreadable_when_it_is_neither_json_nor_empty_nor_a_stream(
    headers: dict[str, str], body: bytes, unreadable: bool
) -> None:
    assert Reply(200, headers, body).unreadable is unreadable


def test_a_fault_is_scheduled_with_its_call_and_its_parameters() -> None:
    fault = ToolError(503)
    call = Call("weather", "current_weather", "p1.r1", 3, 2, "id3")
    assert ActiveFault("errors", "tool_error", fault).build_scheduled_event(call) == FaultScheduled(
        **fault_at("tool_error", "errors", "weather", 3, 2, "id3"), params={"status": 503, "retry_after_s": 0.0}
    )


@pytest.mark.parametrize(
    ("tell", "fails", "failed"),
    [
        (as_it_is, "refused", None),
        (lambda call: turned(call, "timed_out"), "refused", "timed_out"),
        (lambda call: turned(call, "refused"), "refused", "refused"),
        (lambda call: after_a_wait(call, 0.1), "refused", None),
        (lambda call: after_a_wait(call, 60.0), "", "timed_out"),
    ],
    ids=["let through", "turned into another", "made anew", "let through later", "of its own wait"],
)
def test_a_failure_is_a_storys_own_unless_it_lets_it_through(
    tell: Callable[[Call], Flow], fails: str, failed: str | None
) -> None:
    story = active(tell)
    with pytest.raises(Failure):
        World(fails=[fails] if fails else []).tell(nest_flows(in_turn(story), CALL))
    assert story.failed == failed


def turned(call: Call, kind: str) -> Flow:
    try:
        return (yield call)
    except Failure:
        raise Failure(kind) from None


def after_a_wait(call: Call, delay_s: float) -> Flow:
    try:
        reply = yield call
    except Failure:
        yield Wait(delay_s)
        raise
    yield Wait(delay_s)
    return reply


def test_an_attempt_of_which_only_the_time_is_known_saw_nothing() -> None:
    seen = Observation(0.1, 2.0)
    assert (seen.error, seen.status, seen.bytes, seen.sent, seen.reply) == (None, None, 0, None, None)


def test_the_async_driver_sends_waits_notes_and_throws_what_fails() -> None:
    class Driver:
        def __init__(self) -> None:
            self.did: list[object] = []

        async def send(self, call: Call) -> Reply:
            self.did.append(call)
            return TRUTH

        async def wait(self, delay_s: float) -> None:
            self.did.append(delay_s)
            if delay_s == forever:
                raise Failure("timed_out")

        def advance_clock(self, by_s: float) -> str:
            return ""

        def perform_user_act(self, step: UserActs) -> bool:
            return False

        def log_flow_event(self, event: Event) -> None:
            self.did.append(event)

    async def both() -> None:
        driver = Driver()
        assert await run_flow(nest_flows(in_turn(active(noting), active(late)), CALL), driver) is TRUTH
        assert driver.did == [LabWarning(message="seen"), CALL, 0.5]
        assert await run_flow(nest_flows(in_turn(active(forgiving), active(lost)), CALL), Driver()) is LIE
        silent = Driver()
        with pytest.raises(Failure, match="timed_out"):
            await run_flow(nest_flows(in_turn(active(lost)), CALL), silent)
        assert silent.did == [CALL, forever]

    asyncio.run(both())


def failing(call: Call) -> Flow:
    yield call
    return Reply(503, {}, b"{}")


def garbling(call: Call) -> Flow:
    reply = yield call
    return Reply(reply.status, {}, b"not JSON")


def trimming(call: Call) -> Flow:
    reply = yield call.with_value({"city": "Rome"})
    return reply.with_value({"temp": 40})


@pytest.mark.parametrize(
    ("story", "fails", "changed"),
    [
        (as_it_is, [], ""),
        (as_it_is, ["reset"], ""),
        (late, [], ""),
        (lying, [], "temp 20 → 40"),
        (refusing, [], "not asked → 200"),
        (failing, [], "200 → 503"),
        (garbling, [], '{"temp": 20} → null'),
        (elsewhere, [], "city Oslo → Rome"),
        (elsewhere, ["reset"], "city Oslo → Rome"),
        (trimming, [], "city Oslo → Rome; temp 20 → 40"),
        (twice_sent, [], "sent 2 times"),
        (lost, [], '{"temp": 20} → timed_out'),
        (breaking, [], '{"temp": 20} → reset'),
        (breaking, ["timed_out"], ""),
        (forgiving, ["reset"], "no answer → 200"),
    ],
)
def test_what_a_story_changed_is_told_from_what_came_to_it_and_what_it_made_of_it(
    story: Callable[[Call], Flow], fails: list[str], changed: str
) -> None:
    one = active(story)
    with contextlib.suppress(Failure):
        World(fails=fails).tell(nest_flows(in_turn(one), CALL))
    assert one.describe_changes() == changed


def test_each_story_tells_what_it_changed_itself() -> None:
    outer, inner = active(garbling), active(lying)
    World().tell(nest_flows(in_turn(outer, inner), CALL))
    assert (outer.describe_changes(), inner.describe_changes()) == ('{"temp": 40} → null', "temp 20 → 40")


@pytest.mark.parametrize(
    ("kind", "value", "spelt"),
    [
        ("application/x-ndjson", [{"a": "é"}, 2], '{"a": "é"}\n2\n'),
        ("application/x-ndjson", {"a": 1}, '{"a": 1}'),
        ("application/json", [{"a": 1}, 2], '[{"a": 1}, 2]'),
    ],
)
def test_a_list_is_spelt_line_by_line_where_the_reply_is(kind: str, value: Any, spelt: str) -> None:
    assert Reply(200, {"Content-Type": kind}, b"").encode_value(value) == spelt
