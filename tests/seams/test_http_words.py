"""The HTTP seam reads an answer, in virtual time: success or failure, words for the log, tokens, dollars."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from chaoslab.base.clock import system
from chaoslab.base.identity import Request, Requests, TrialId, hash_value
from chaoslab.core import events
from chaoslab.core.exchange import Call, Reply
from chaoslab.core.limits import Limits
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.core.service_spec import TROUBLE, ErrorReply
from chaoslab.seams.http._words import extract_error
from chaoslab.seams.http.process_faults import OutageRequests, ProcessFaults
from chaoslab.seams.http.tags import EXTENSION, ProbeTag, Target, TrialState, enter_trial, get_current_trial_state
from chaoslab.wire.control import FIRST, ManagerAnswer
from chaoslab.wire.http1 import BODY_MAX
from chaoslab.wire.lanes import LabDown
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network.lanes import VirtualLanes
from tests.seams.lab_parts import Heard, get, said
from tests.seams.virtual_parts import Bench, bench, site, virtually
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TARGET = Target("weather", "http://weather", ("weather", 80), 2.0)
Story = Callable[[Bench], Awaitable[Any]]


def wanted(number: int = 1, target: str = "weather") -> Request:
    return Request(TrialId("run", 1), target, "ask", number, ("ask", f"wish {number}"))


def fault(name: str, target: str = "weather", *, calls: tuple[int, ...] = (), **params: Any) -> Injection:
    return Injection(name, (Choice(name, 1.0, params),), (target,), calls=calls)


def told(folder: Path, answer: Callable[[Heard], Reply], story: Story, *injections: Injection, **of_target: Any) -> Any:
    """The outcome of the story with one target that answers so, called `weather` and `model` alike."""

    async def run() -> Any:
        for name in ("weather", "model"):
            site(name, answer)
        async with bench(folder, Plan(1, injections), ["weather", "model"], **of_target) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                return await story(lab)

    return virtually(run)


def ends(lab: Bench) -> list[events.CallFinished]:
    return [event for _, event in lab.history().find_events(events.CallFinished)]


@pytest.mark.parametrize(
    ("reply", "failed_if", "no"),
    [
        (said({"temp": 20}), {}, False),
        (said({"temp": 20}, 299), {}, False),
        (said({"temp": 20}, 300), {}, True),
        (said({"temp": 20}, 199), {}, True),
        (Reply(200, {}, b""), {}, False),
        (Reply(200, {}, b"<html>"), {}, True),
        (said({"ok": False}), {}, False),
        (said({"ok": False}), {"ok": False}, True),
        (said({"ok": True}), {"ok": False}, False),
        (said({"temp": 20}), {"ok": None}, False),
        (said({"ok": True, "cod": "404"}), {"ok": False, "cod": "404"}, True),
        (said([{"ok": False}]), {"ok": False}, False),
    ],
)
def test_an_answer_is_a_failure_by_its_status_by_its_own_words_or_when_nobody_can_read_it(
    reply: Reply, failed_if: dict[str, Any], no: bool
) -> None:
    target = Target("weather", "http://weather", ("weather", 80), 2.0, failed_if=failed_if)
    assert target.is_failure(reply) is no


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (said({"message": "city not found"}, 404), "city not found"),
        (said({"error": "busy", "status_message": "other"}, 503), "busy"),
        (said({"error": {"code": 500, "message": "Backend Error"}}, 500), "Backend Error"),
        (said({"error": {"code": 500}, "status_message": "invalid key"}, 401), "invalid key"),
        (said({"message": "x" * 300}, 500), "x" * 200),
        (said({"message": 7}, 500), "status 500"),
        (said({"message": "cancelled"}, 410), "'cancelled'"),  # the lab's own word for a call that was given up
        (said(["message"], 502), "status 502"),
        (Reply(502, {}, b"<html>"), "status 502, and no JSON"),
        (Reply(503, {}, b""), "status 503"),
    ],
)
def test_a_failure_is_told_in_the_services_own_words(reply: Reply, words: str, tmp_path: Path) -> None:
    async def story(lab: Bench) -> events.CallFinished:
        response = await lab.get(wanted())
        assert (response.status_code, response.content) == (reply.status, reply.body)
        return ends(lab)[0]

    end = told(tmp_path, lambda _: reply, story)
    assert (end.ok, end.status, end.error, end.bytes, end.via) == (False, reply.status, words, len(reply.body), "proxy")


def test_a_call_is_told_from_its_arguments_to_its_end(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        named: list[str] = []
        lab.seam.on_call = named.append
        await lab.get(wanted(7), attempt=2)
        (started,) = [event for _, event in lab.history().find_events(events.CallStarted)]
        (end,) = ends(lab)
        assert (started.target, started.tool, started.request, started.attempt) == ("weather", "ask", 7, 2)
        assert (started.arguments, started.request_id) == ({"n": 7}, wanted(7).id)
        assert (end.request, end.attempt, end.ok, end.error, end.replayed) == (7, 2, True, None, True)
        assert end.duration_s == round(end.duration_s, 6) > 0
        assert named == ["weather.ask"]

    told(tmp_path, lambda _: Reply(200, {"Idempotency-Replayed": "true"}, b'{"temp": 20}'), story)


def test_an_answer_that_was_given_for_the_first_time_is_no_replay(tmp_path: Path) -> None:
    async def story(lab: Bench) -> bool:
        await lab.get(wanted())
        return ends(lab)[0].replayed

    assert told(tmp_path, lambda _: said({}), story) is False


def test_silence_ends_at_the_deadline_and_the_agent_reads_a_round_number(tmp_path: Path) -> None:
    async def story(lab: Bench) -> events.CallFinished:
        with pytest.raises(httpx.ReadTimeout, match=r"weather: timed out after 2\.0 s"):
            await lab.get(wanted())
        assert ends(lab)[0].duration_s == pytest.approx(2.0)
        return ends(lab)[0]

    end = told(tmp_path, lambda _: said({}), story, fault("lost_reply"))
    assert (end.ok, end.error, end.status, end.bytes) == (False, "timed_out", None, 0)


def test_the_agent_reads_after_how_long_an_answer_was_too_much(tmp_path: Path) -> None:
    def answer(_: Heard) -> Reply:
        system.sleep(0.5)
        return Reply(200, {}, bytes(BODY_MAX + 1))

    async def story(lab: Bench) -> None:
        with pytest.raises(httpx.RemoteProtocolError, match=rf"^weather: more than {BODY_MAX} bytes after 0\.5 s$"):
            await lab.get(wanted())

    told(tmp_path, answer, story)


def test_a_latency_within_the_deadline_is_waited_for_and_no_longer(tmp_path: Path) -> None:
    async def story(lab: Bench) -> float:
        began_s = system.monotonic()
        await lab.get(wanted())
        return system.monotonic() - began_s

    assert 1.5 <= told(tmp_path, lambda _: said({}), story, fault("latency", delay_s=1.5, stream="upstream")) < 1.51


def test_an_agent_that_gives_up_a_call_cancelled_it(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[Any]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await lab.get(wanted())
        (end,) = ends(lab)
        met = [event.evidence for _, event in lab.history().find_events(events.FaultWitnessed)]
        return [end.ok, end.error, end.status, bool(lab.history().given_up_attempts), met]

    def slow() -> Reply:
        system.sleep(9)
        return said({})

    assert told(tmp_path, lambda _: slow(), story) == [False, "cancelled", None, True, []]
    met = "the work was done, no answer within 0.5 s"
    assert told(tmp_path, lambda _: said({}), story, fault("lost_reply")) == [False, "cancelled", None, False, [met]]
    found = told(tmp_path, lambda _: said({}), story, fault("timeout", stream="upstream"))[:3]
    assert found == [False, "cancelled", None]


def test_a_fault_of_the_wire_is_witnessed_by_the_time_that_its_lane_took(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[str]:
        await lab.get(wanted(1))
        await system.sleep_async(7.0)
        await lab.get(wanted(2))
        return [event.evidence for _, event in lab.history().find_events(events.FaultWitnessed)]

    first, second = told(tmp_path, lambda _: said({}), story, fault("latency", delay_s=0.5, stream="downstream"))
    assert first == second
    assert first.startswith("took 0.50")


def test_the_time_in_which_the_lab_mended_itself_is_none_of_the_targets(tmp_path: Path) -> None:
    class Holding(VirtualLanes):
        async def request_lane(
            self, call: Call, *, deadline_s: float, occasion: Mapping[str, Any] = FIRST
        ) -> tuple[int, ManagerAnswer]:
            await system.sleep_async(1.5)
            row, answer = await super().request_lane(call, deadline_s=deadline_s, occasion=occasion)
            return row, replace(answer, held=call.request == 1)

    def answer(_: Heard) -> Reply:
        system.sleep(1.0)
        return said({})

    async def story(lab: Bench) -> list[tuple[bool, float]]:
        places = {"weather": ("weather", 80)}
        doors = Holding(log=lab.seam.log, plan=lab.seam.plan, network=world().network, clock=system, targets=places)
        lab.seam.lanes = doors
        await lab.get(wanted(1))
        with pytest.raises(httpx.ReadTimeout):
            await lab.get(wanted(2))
        return [(end.ok, round(end.duration_s, 2)) for end in ends(lab)]

    assert told(tmp_path, answer, story) == [(True, 2.5), (False, 2.0)]


def test_around_the_proxy_no_fault_of_the_wire_is_met(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[Any]:
        asked = [await get(lab.seam, lab.client, wanted(1), attempt=1, direct=True)]
        with pytest.raises(httpx.ConnectError):
            await lab.get(wanted(2))
        return [asked[0].status_code, [(end.via, end.ok, end.error, end.rolled) for end in ends(lab)]]

    found = told(tmp_path, lambda _: said({}), story, fault("refused"))
    assert found == [200, [("direct", True, None, []), ("lane", False, "refused", ["refused"])]]


def test_a_part_of_the_lab_that_says_it_is_broken_ends_the_run(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        with pytest.raises(LabDown, match="its disk is full"):
            await lab.get(wanted())
        assert lab.seam.lanes.down is not None

    told(tmp_path, lambda _: Reply(200, {TROUBLE: "its disk is full"}, b"{}"), story)


# The model.

CHAT = {"messages": [{"role": "user", "content": "hello"}, {"role": "user", "content": "well?"}]}


def completion(usage: Any, model: str = "openai/gpt-oss-120b") -> Reply:
    return said({"model": model, "choices": [], "usage": usage})


async def chat(lab: Bench, body: Any = CHAT) -> httpx.Response:
    return await lab.client.post("http://model/chat", json=body)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 20}, (100, 20)),
        ({"prompt_tokens": 1, "completion_tokens": 0}, (1, 0)),
        ({"prompt_tokens": -5, "completion_tokens": "20"}, (0, 0)),
        ({}, (0, 0)),
        (None, None),
        ("much", None),
    ],
)
def test_a_models_answer_is_counted_and_paid_for(usage: Any, tokens: tuple[int, int] | None, tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[Any]:
        with lab.seam.open_trial(TrialId(lab.run.name, 2)) as mine:
            await chat(lab)
            used = [event for _, event in lab.history().find_events(events.Usage)]
            return [used, mine.spent, lab.seam.cost_usd]

    used, spent, cost_usd = told(tmp_path, lambda _: completion(usage), story)
    if tokens is None:
        assert (used, spent, cost_usd) == ([], {"tokens": 0.0, "calls": 1}, 0.0)
        return
    paid = (tokens[0] * 0.15 + tokens[1] * 0.60) / 1e6
    assert used == [
        events.Usage(
            model="openai/gpt-oss-120b", request=1, prompt_tokens=tokens[0], completion_tokens=tokens[1], cost_usd=paid
        )
    ]
    assert (spent, cost_usd) == ({"tokens": sum(tokens), "calls": 1}, paid)


def test_the_purse_is_the_runs_and_a_model_of_unknown_price_takes_nothing_from_it(tmp_path: Path) -> None:
    models = iter(["openai/gpt-oss-120b", "unheard-of", "openai/gpt-oss-120b"])

    async def story(lab: Bench) -> list[Any]:
        for n in (1, 2, 3):
            with lab.seam.open_trial(TrialId(lab.run.name, n)):
                await chat(lab, {"messages": [], "n": n})
        return [lab.seam.cost_usd, [event.cost_usd for _, event in lab.history().find_events(events.Usage)]]

    answer = lambda _: completion({"prompt_tokens": 1000, "completion_tokens": 0}, next(models))  # noqa: E731
    assert told(tmp_path, answer, story) == [pytest.approx(0.0003), [0.00015, None, 0.00015]]


def test_an_answer_that_is_a_failure_or_no_object_costs_nothing(tmp_path: Path) -> None:
    replies = iter([said({"usage": {"prompt_tokens": 9}}, 500), said([{"usage": 1}])])

    async def story(lab: Bench) -> list[Any]:
        for _ in range(2):
            await chat(lab)
        return [list(lab.history().find_events(events.Usage)), [(end.attempt, end.ok) for end in ends(lab)]]

    assert told(tmp_path, lambda _: next(replies), story) == [[], [(1, False), (2, True)]]


def test_an_sdks_retry_is_another_attempt_and_a_question_after_the_answer_a_new_request(tmp_path: Path) -> None:
    replies = iter([said({"error": "busy"}, 503), completion({}), completion({}), completion({})])

    async def story(lab: Bench) -> list[Any]:
        for _ in range(3):
            await chat(lab)
        await chat(lab, {"messages": []})
        started = [event for _, event in lab.history().find_events(events.CallStarted)]
        assert [event.arguments for event in started] == [{"messages": 2}] * 3 + [{"messages": 0}]
        return [(event.request, event.attempt) for event in started]

    assert told(tmp_path, lambda _: next(replies), story) == [(1, 1), (1, 2), (2, 1), (3, 1)]


def test_a_model_call_without_a_body_is_a_call_without_messages(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[Any]:
        await lab.client.get("http://model/models")
        return [event.arguments for _, event in lab.history().find_events(events.CallStarted)]

    assert told(tmp_path, lambda _: said({}), story) == [{"messages": 0}]


def test_a_limit_of_tokens_calls_and_dollars_is_held_against_what_was_spent(tmp_path: Path) -> None:
    answer = lambda _: completion({"prompt_tokens": 600, "completion_tokens": 0})  # noqa: E731

    async def story(lab: Bench) -> list[int]:
        with lab.seam.open_trial(TrialId(lab.run.name, 2)):
            return [(await chat(lab, {"messages": [], "n": n})).status_code for n in range(4)]

    assert told(tmp_path, answer, story, fault("budget", "model", tokens=1200)) == [200, 200, 429, 429]
    by_calls = Injection("budget", (Choice("budget", params={"calls_max": 3}),), ("model",))
    assert told(tmp_path, answer, story, by_calls) == [200, 200, 200, 429]
    assert told(tmp_path, answer, story, fault("budget", "model", cost_usd=0.0001)) == [200, 200, 429, 429]


def test_a_limit_of_seconds_begins_with_the_trial(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[int]:
        await system.sleep_async(100.0)
        with lab.seam.open_trial(TrialId(lab.run.name, 2)):
            found = []
            for n in range(3):
                found.append((await lab.get(wanted(n))).status_code)
                await system.sleep_async(1.5)
            return found

    assert told(tmp_path, lambda _: said({}), story, fault("budget", seconds=3.0)) == [200, 200, 429]


def test_a_story_that_changes_the_request_changes_what_is_sent(tmp_path: Path) -> None:
    heard: list[Any] = []

    def answer(asked: Heard) -> Reply:
        heard.append(asked.json)
        return completion({})

    talk = {"messages": [{"role": "user", "content": str(n)} for n in range(4)], "model": "m"}
    told(tmp_path, answer, lambda lab: chat(lab, talk), fault("truncate_context", "model", keep=0.5))
    told(tmp_path, answer, lambda lab: chat(lab, talk))
    assert heard == [{"messages": talk["messages"][2:], "model": "m"}, talk]


def test_what_no_story_changes_is_sent_to_the_byte(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def answer(asked: Heard) -> Reply:
        heard.append(asked.body)
        return said({})

    async def story(lab: Bench) -> None:
        await lab.get(wanted())
        await lab.client.post("http://model/chat", content=spelt)

    spelt = b'{"messages":\t[ ] ,"model": "\\u006d"}'
    told(tmp_path, answer, story)
    assert heard == [b"", spelt]


# Targets whose words are kept.


def test_what_a_recorded_target_answers_is_kept_word_for_word_with_what_steers_the_client(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[events.Replied]:
        await lab.get(wanted(3))
        await chat(lab)
        return [event for _, event in lab.history().find_events(events.Replied)]

    reply = said({"täg": 1}, 503, **{"Retry-After": "3", "X-Other": "y"})
    tool, model = told(tmp_path, lambda _: reply, story, recorded=True)
    steering = {"retry-after": "3"}
    body, kind = reply.body.decode(), "application/json"
    assert tool == events.Replied(
        target="weather",
        request=3,
        attempt=1,
        asked=wanted(3).id,
        status=503,
        content_type=kind,
        body=body,
        headers=steering,
    )
    assert model == events.Replied(
        target="model",
        request=1,
        attempt=1,
        asked=hash_value(CHAT),
        status=503,
        content_type=kind,
        body=body,
        headers=steering,
    )
    assert told(tmp_path / "2", lambda _: reply, story) == []


def test_a_recorded_targets_own_silence_is_kept_and_a_faults_is_not(tmp_path: Path) -> None:
    async def story(lab: Bench) -> list[tuple[int, int, str]]:
        for n in (1, 2):
            with pytest.raises(httpx.ReadTimeout):
                await lab.get(wanted(n))
        return [(e.request, e.status, e.failure) for _, e in lab.history().find_events(events.Replied)]

    def answer(_: Heard) -> Reply:
        system.sleep(5.0)
        return said({})

    silence = fault("timeout", calls=(2,), stream="upstream")
    assert told(tmp_path, answer, story, silence, recorded=True) == [(1, 0, "timed_out")]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_question_of_the_labs_own_goes_past_every_story_and_is_no_call(tmp_path: Path, recorded: bool) -> None:
    around = ProbeTag(1.0, "weather", "question 1", "p1.r1")

    async def story(lab: Bench) -> list[Any]:
        response = await lab.client.get("http://weather/truth", extensions={EXTENSION: around})
        replied = [event for _, event in lab.history().find_events(events.Replied)]
        return [response.status_code, response.json(), ends(lab), replied]

    status, value, calls, replied = told(
        tmp_path, lambda _: said({"temp": 20}), story, fault("refused"), fault("tool_error"), recorded=recorded
    )
    assert (status, value, calls) == (200, {"temp": 20}, [])
    kept = events.Replied(
        target="weather",
        request=0,
        attempt=0,
        asked="question 1",
        status=200,
        content_type="application/json",
        body='{"temp": 20}',
    )
    assert replied == ([kept] if recorded else [])


def test_a_question_of_the_labs_own_ends_at_its_deadline(tmp_path: Path) -> None:
    around = ProbeTag(1.0, "weather", "question 1", "p1.r1")

    async def story(lab: Bench) -> float:
        began_s = system.monotonic()
        with pytest.raises(httpx.ReadTimeout, match=r"weather: timed out after 1\.0 s"):
            await lab.client.get("http://weather/truth", extensions={EXTENSION: around})
        return system.monotonic() - began_s

    def answer(_: Heard) -> Reply:
        system.sleep(5.0)
        return said({})

    assert told(tmp_path, answer, story) == pytest.approx(1.0)


def test_the_next_trial_has_lanes_connections_and_a_purse_of_its_own(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        seam, first = lab.seam, lab.seam.clean
        seam.cost_usd = 0.3
        assert seam.get_clean_transport(0) is first
        later = seam.get_clean_transport(1)
        assert later is not first
        assert seam.get_clean_transport(1) is later
        seam.replace_lanes(seam.lanes, spent_usd=0.1)
        assert seam.cost_usd == 0.1
        assert seam.clean is not later
        assert seam.get_clean_transport(0) is seam.clean
        seam.replace_lanes(seam.lanes)
        assert seam.cost_usd == 0.0

    told(tmp_path, lambda _: said({}), story)


def test_who_is_done_closes_the_old_connections_too(tmp_path: Path) -> None:
    closed: list[str] = []

    class Closing:
        def __init__(self, name: str) -> None:
            self.name = name

        async def aclose(self) -> None:
            closed.append(self.name)

    class Named:
        names = iter(["first", "standing", "second", "third"])

        def make_pooled_transport(self, _: Any) -> Any:
            return Closing(next(self.names))

        def make_fresh_transport(self, *_: Any) -> Any:
            raise AssertionError

    async def story(lab: Bench) -> None:
        lab.seam.get_clean_transport(1)
        lab.seam.get_clean_transport(2)

    told(tmp_path, lambda _: said({}), story, ways=Named())
    assert sorted(closed) == ["first", "second", "standing", "third"]


def test_a_trial_has_spent_nothing_when_it_begins() -> None:
    trial = TrialId("run", 1)
    first, second = (TrialState(trial, Requests(trial), 0.0, TrialMemory(Plan(1), trial.key)) for _ in range(2))
    first.spent["tokens"] += 5
    assert second.spent == {"tokens": 0.0, "calls": 0.0}
    assert json.dumps(second.spent) == '{"tokens": 0.0, "calls": 0.0}'


def test_a_service_refuses_in_its_own_words_through_the_seam(tmp_path: Path) -> None:
    words = {503: ErrorReply(503, {"message": "weather is closed"}, {"Retry-After": "1"})}

    async def story(lab: Bench) -> list[Any]:
        response = await lab.get(wanted())
        (end,) = ends(lab)
        return [response.status_code, response.json(), response.headers["retry-after"], end.error, end.via]

    assert told(tmp_path, lambda _: said({}), story, fault("tool_error", status=503), errors=words) == [
        503, {"message": "weather is closed"}, "1", "weather is closed", "none",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"message": "m" * 201, "error": "e"}, "m" * 200),
        ({"error": {"message": "no such city"}}, "no such city"),
        ({"message": 7, "error": {"code": 1}, "status_message": "gone"}, "gone"),
        ({"message": 7}, "status 500"),
        (["message"], "status 500"),
    ],
)
def test_the_error_of_a_service_is_told_in_its_own_words(value: Any, words: str) -> None:
    assert extract_error(said(value, 500)) == words


def test_what_is_no_json_is_told_so() -> None:
    assert extract_error(Reply(502, {}, b"<html>")) == "status 502, and no JSON"


def test_a_fault_of_no_process_hits_in_a_lab_that_stops_processes(tmp_path: Path) -> None:
    async def story(lab: Bench) -> int:
        with closing(OutageRequests(tmp_path / "state.db", "r1", clock=system)) as requests:
            lab.seam.processes = ProcessFaults(requests, system)
            return (await lab.get(wanted())).status_code

    failing = fault("tool_error", status=503)
    assert told(tmp_path, lambda _: said({"temp": 20}), story, failing) == 503


EVENTS = b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("faults", [(), (fault("latency", "model", delay_s=0.1, stream="upstream"),)])
@pytest.mark.parametrize("sent", ["whole", "in parts"])
def test_a_stream_of_a_recorded_model_is_kept_once_it_was_read(
    recorded: bool, faults: tuple[Injection, ...], sent: str, tmp_path: Path
) -> None:
    asked = {**CHAT, "stream": True}

    async def body() -> Any:
        yield json.dumps(asked).encode()

    async def story(lab: Bench) -> list[Any]:
        given: Any = {"json": asked} if sent == "whole" else {"content": body()}
        async with lab.client.stream("POST", "http://model/chat", **given) as response:
            assert await response.aread() == EVENTS
        (end,) = ends(lab)
        assert (end.ok, end.bytes, end.reply, end.via) == (True, len(EVENTS), "Hi", "lane" if faults else "proxy")
        return [(e.asked, e.status, e.body, e.failure) for _, e in lab.history().find_events(events.Replied)]

    reply = Reply(200, {"content-type": "text/event-stream"}, EVENTS)
    kept = [(hash_value(asked), 200, EVENTS.decode(), "")] if recorded else []
    assert told(tmp_path, lambda _: reply, story, *faults, recorded=recorded) == kept


def test_a_call_on_the_clean_lane_takes_no_place_among_the_faults_at_once(tmp_path: Path) -> None:
    def answer(_: Heard) -> Reply:
        system.sleep(1.0)
        return said({})

    async def story(lab: Bench) -> list[int]:
        limited = Plan(1, (fault("tool_error", status=503, calls=(2,)),), limits=(Limits(at_once=1),))
        lab.seam.change_plan(limited)
        with lab.seam.open_trial(TrialId(lab.run.name, 2)):

            async def later() -> int:
                await system.sleep_async(0.5)
                return (await lab.get(wanted(2))).status_code

            first, second = await asyncio.gather(lab.get(wanted(1)), later())
            return [first.status_code, second]

    assert told(tmp_path, answer, story) == [200, 503]


def test_a_call_after_a_change_of_the_plan_tells_the_manager_which_is_in_force(tmp_path: Path) -> None:
    asked = list[Any]()

    class Listening(VirtualLanes):
        async def request_lane(
            self, call: Call, *, deadline_s: float, occasion: Mapping[str, Any] = FIRST
        ) -> tuple[int, ManagerAnswer]:
            asked.append(dict(occasion))
            return await super().request_lane(call, deadline_s=deadline_s, occasion={})

    async def story(lab: Bench) -> None:
        places = {"weather": ("weather", 80)}
        lab.seam.lanes = Listening(
            log=lab.seam.log, plan=lab.seam.plan, network=world().network, clock=system, targets=places
        )
        for number in (1, 2, 3):
            await lab.get(wanted(number))
            lab.seam.change_plan(lab.seam.plan)

    told(tmp_path, lambda _: said({}), story)
    assert asked == [{}, {"plan": 2}, {"plan": 3}]


def test_a_trial_is_known_only_while_it_runs() -> None:
    outer, inner = (cast(TrialState, SimpleNamespace(reading={})) for _ in range(2))
    with enter_trial(outer):
        with enter_trial(inner):
            assert get_current_trial_state() is inner
        assert get_current_trial_state() is outer
