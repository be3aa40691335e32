"""One call through the seam: its deadline, its stories, and what is written down of it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.base.clock import system
from chaoslab.base.identity import Request, TrialId
from chaoslab.core import events
from chaoslab.core.events import REPLY_MAX
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.proxy_manager import clean_proxies
from chaoslab.seams.http.tags import get_current_trial_state
from chaoslab.seams.services.model import validate_token_count
from chaoslab.wire.lanes import LabDown
from tests.seams import virtual_parts
from tests.seams.lab_parts import Bench, bench, embedded, said, site
from tests.waiting import HUNG_S, IMPATIENT_S
from tests.wire.wire_parts import upstream
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

DEADLINE_S = 0.3


def wanted(number: int) -> Request:
    return Request(TrialId("run", 1), "weather", "current_weather", number, ("current_weather", f"wish {number}"))


FIRST = wanted(1)


def through(
    folder: Path, address: str, story: Callable[[Bench], Awaitable[None]], *, plan: Plan | None = None,
    deadline_s: float = HUNG_S,
) -> None:  # fmt: skip
    async def run(url: str) -> None:
        async with bench(folder, url, plan or Plan(1), {"weather": address}, deadline_s=deadline_s) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                await story(lab)

    with embedded() as url:
        asyncio.run(run(url))


def finished(lab: Bench) -> list[events.CallFinished]:
    return [event for _, event in lab.history().find_events(events.CallFinished)]


@pytest.mark.parametrize(
    "plan", [Plan(1), Plan(1, (Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.01}),), ("weather",)),))]
)
def test_one_byte_now_and_then_does_not_outlive_the_deadline(tmp_path: Path, plan: Plan) -> None:
    async def story(lab: Bench) -> None:
        began_s = system.monotonic()
        # Not when the whole answer is there, which takes 20 s, and each of its bytes less than the deadline.
        with pytest.raises(httpx.ReadTimeout, match=r"weather: timed out after 0\.\d s"):
            await lab.get(FIRST)
        assert system.monotonic() - began_s >= DEADLINE_S
        (call,) = finished(lab)
        assert (call.ok, call.error, call.status) == (False, "timed_out", None)

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        connection.settimeout(0.02)
        for _ in range(1000):
            connection.sendall(b"x")
            try:
                if not connection.recv(1):
                    return
            except TimeoutError:
                continue

    with upstream(drip) as address:
        through(tmp_path, address, story, plan=plan, deadline_s=DEADLINE_S)


def test_a_service_that_hangs_up_is_not_a_dead_lab(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        with pytest.raises(httpx.RemoteProtocolError):
            await lab.get(FIRST)
        (call,) = finished(lab)
        assert (call.via, call.error) == ("proxy", "closed")

    def hang_up(connection: socket.socket) -> None:
        connection.recv(65_536)  # what is closed unread is reset, now and then
        connection.close()

    with upstream(hang_up) as address:
        through(tmp_path, address, story)


def test_a_dead_toxiproxy_is_no_fault_of_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_proxies, "RECOVER_S", 0.5)

    async def run(address: str) -> None:
        with embedded() as url:
            at_work = bench(tmp_path, url, Plan(1), {"weather": address}, deadline_s=DEADLINE_S)
            lab = await at_work.__aenter__()
        try:
            with (
                lab.seam.open_trial(TrialId(lab.run.name, 1)),
                pytest.raises(LabDown, match="is gone: it did not answer for"),
            ):
                await lab.get(FIRST)
            assert lab.seam.lanes.down is not None
        finally:
            await at_work.__aexit__(None, None, None)

    with site(lambda _: said({})) as weather:
        asyncio.run(run(weather.address))


def test_a_wrong_value_is_written_into_the_reply(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        assert (await lab.get(FIRST)).json() == {"main": {"temp": 42}}
        (witnessed,) = [event for _, event in lab.history().find_events(events.FaultWitnessed)]
        assert (witnessed.fault, witnessed.injection) == ("wrong_value", "hallucination")

    wrong = Choice("wrong_value", 1.0, {"point": 0.0, "factor": 2.0})
    with site(lambda _: said({"main": {"temp": 21}})) as weather:
        through(tmp_path, weather.address, story, plan=Plan(1, (Injection("hallucination", (wrong,), ("weather",)),)))


def test_a_lost_reply_leaves_its_effect_and_the_callers_own_timeout(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        with pytest.raises(httpx.ReadTimeout):
            await lab.get(FIRST)
        assert len(weather.heard) == 1
        (call,) = finished(lab)
        assert call.duration_s >= IMPATIENT_S

    with site(lambda _: said({})) as weather:
        lost = Injection("errors", (Choice("lost_reply"),), ("weather",))
        through(tmp_path, weather.address, story, plan=Plan(1, (lost,)), deadline_s=IMPATIENT_S)


def test_calls_side_by_side_do_not_meet_each_others_faults(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        ended = await asyncio.gather(*(lab.get(wanted(n)) for n in (1, 2, 3, 4)), return_exceptions=True)
        assert [isinstance(end, httpx.Response) for end in ended] == [True, False, True, True]
        assert {call.request: call.via for call in finished(lab)} == {1: "proxy", 2: "lane", 3: "proxy", 4: "proxy"}

    reset = Injection("wire", (Choice("reset_peer"),), ("weather",), calls=(2,))
    with site(lambda _: said({})) as weather:
        through(tmp_path, weather.address, story, plan=Plan(1, (reset,)))


def test_an_address_that_is_no_target_is_not_called(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        with pytest.raises(LookupError, match=r"no target of the lab is at elsewhere\.test"):
            await lab.client.get("http://elsewhere.test/")

    with site(lambda _: said({})) as weather:
        through(tmp_path, weather.address, story)


def test_what_a_trial_spends_is_its_own(tmp_path: Path) -> None:
    async def story(lab: Bench) -> None:
        await lab.get(FIRST)
        assert get_current_trial_state().spent["calls"] == 1
        with lab.seam.open_trial(TrialId(lab.run.name, 2)):
            assert get_current_trial_state().spent["calls"] == 0
            await lab.get(FIRST)
        assert get_current_trial_state().spent["calls"] == 1
        assert [record.trial for record, _ in lab.history().find_events(events.CallStarted)] == ["p1.r1", "p2.r1"]

    with site(lambda _: said({})) as weather:
        through(tmp_path, weather.address, story)


def logged(folder: Path, answer: Reply, *, plan: Plan | None = None, target: str = "weather") -> list[Any]:
    """The events of one call of a service, or of the model, that answers so."""

    async def story() -> list[Any]:
        virtual_parts.site(target, lambda _: answer)
        async with virtual_parts.bench(folder, plan or Plan(1), (target,)) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                try:
                    if target == "model":
                        await lab.client.post(
                            "http://model/chat", json={"messages": [{"content": n} for n in range(9)]}
                        )
                    else:
                        await lab.get(FIRST)
                except httpx.HTTPError:
                    pass
        return [record.event for record in lab.history().records]

    return virtual_parts.virtually(story)


def met(fault: str, target: str = "weather", **params: Any) -> Plan:
    return Plan(1, (Injection("source", (Choice(fault, 1.0, params),), (target,)),))


OF_MODEL = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "any", "system_fingerprint": "x" * 400,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Let me see."}}],
}  # fmt: skip
CALLS = [
    {"id": "1", "type": "function", "function": {"name": "search_web", "arguments": '{"query": "ants"}'}},
    {"id": "2", "type": "function", "function": {"name": "translate", "arguments": "{}"}},
]


def speaking(message: Any) -> Reply:
    return said({**OF_MODEL, "choices": [{"index": 0, "message": message}]})


@pytest.mark.parametrize(
    ("target", "answer", "told"),
    [
        ("weather", said({"temp": 21}), '{"temp": 21}'),
        ("weather", said({"error": "no such city"}, 404), '{"error": "no such city"}'),
        ("weather", Reply(200, {}, b'{\n  "temp":\t21\n}\n'), '{ "temp": 21 }'),
        ("weather", Reply(200, {}, b"\x1b[2J\xff"), "?[2J\ufffd"),
        ("weather", Reply(204, {}, b""), ""),
        ("weather", said(["x" * 5000]), f'["{"x" * (REPLY_MAX - 3)}…'),
        ("weather", Reply(200, {}, b"[" * 100_000), "[" * (REPLY_MAX - 1) + "…"),
        ("model", speaking({"role": "assistant", "content": "It is 21."}), "It is 21."),
        (
            "model",
            speaking({"role": "assistant", "content": None, "tool_calls": CALLS}),
            'calls search_web({"query": "ants"}), translate({})',
        ),
        ("model", speaking({"content": "Let me see.", "tool_calls": CALLS[1:]}), "Let me see. calls translate({})"),
        ("model", speaking({"content": "y" * 5000}), "y" * (REPLY_MAX - 1) + "…"),
        ("model", said({"choices": []}), '{"choices": []}'),
        ("model", said({"choices": [{"message": {"tool_calls": [7, {"function": 7}], "content": [1]}}]}), None),
        ("model", said({"error": {"message": "busy"}}, 503), '{"error": {"message": "busy"}}'),
    ],
)
def test_what_the_caller_got_is_written_down_bounded(
    tmp_path: Path, target: str, answer: Reply, told: str | None
) -> None:
    (ended,) = (e for e in logged(tmp_path, answer, target=target) if isinstance(e, events.CallFinished))
    assert ended.reply == (answer.body.decode() if told is None else told)


@pytest.mark.parametrize(
    ("plan", "changed", "reply"),
    [
        (met("wrong_value", point=0.0, factor=2.0), "main.temp 21 → 42", '{"main": {"temp": 42}}'),
        (met("tool_error", status=503), "not asked → 503", '{"error": "status 503"}'),
        (met("lost_reply"), '{"main": {"temp": 21}} → timed_out', ""),
        (met("latency", delay_s=0.1), "", '{"main": {"temp": 21}}'),
    ],
)
def test_what_a_fault_changed_is_written_down(tmp_path: Path, plan: Plan, changed: str, reply: str) -> None:
    found = logged(tmp_path, said({"main": {"temp": 21}}), plan=plan)
    assert [event.changed for event in found if isinstance(event, events.FaultWitnessed)] == [changed]
    assert [event.reply for event in found if isinstance(event, events.CallFinished)] == [reply]


def test_what_a_call_lost_is_written_down(tmp_path: Path) -> None:
    found = logged(tmp_path, speaking({"content": "fine"}), plan=met("truncate_context", "model"), target="model")
    (witnessed,) = (event for event in found if isinstance(event, events.FaultWitnessed))
    assert witnessed.changed == "messages 9 → 4 (numbers 1 to 5 left out)"


KEY = "gsk_0123456789abcdef"


@pytest.mark.parametrize(
    ("status", "words", "recorded"),
    [
        (200, {"text": f"your key is {KEY}"}, False),
        (200, {"text": f"your key is {KEY}"}, True),
        (401, {"error": f"your key is {KEY}"}, False),
        (200, {"text": "x" * (REPLY_MAX - 60) + f"your key is {KEY}"[-59:], "more": "x" * 40 + KEY}, False),
        (401, {"error": "x" * 170 + f"your key is {KEY}"}, False),
    ],
    ids=["a reply", "a recorded one", "an error", "a reply that is cut within it", "an error that is cut within it"],
)
def test_a_key_that_a_service_repeats_is_not_written_down(
    tmp_path: Path, status: int, words: dict[str, str], recorded: bool
) -> None:
    async def story() -> str:
        virtual_parts.site("weather", lambda _: said(words, status))
        async with virtual_parts.bench(tmp_path, Plan(1), ("weather",), secrets=(KEY,), recorded=recorded) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                await lab.get(FIRST)
        return (lab.run.folder / "info.log").read_text()

    text = virtual_parts.virtually(story)
    assert KEY[:8] not in text
    assert "***" in text


@pytest.mark.parametrize(
    ("said", "counted"), [(7, 7), (0, 0), (-7, 0), ("7", 0), (7.0, 0), (None, 0), (True, 0), (10**30, 0)]
)
def test_a_count_of_tokens_is_one_that_a_log_can_hold(said: object, counted: int) -> None:
    """The model's server may say anything."""
    assert validate_token_count(said) == counted
    assert type(validate_token_count(said)) is int
