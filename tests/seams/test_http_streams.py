"""Groq's own SDK and LangChain's ChatGroq, streaming through the seam: without a fault, and with each that there is."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import groq
import httpx
import pytest
from langchain_groq import ChatGroq
from pydantic import SecretStr

from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.core import events
from chaoslab.core.events import CallFinished, FaultInjected, FaultWitnessed, Usage
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection, Plan
from chaoslab.model.endpoint import create_app
from chaoslab.record.history import History
from chaoslab.seams.functions.seam import CALLS_MAX
from chaoslab.seams.services.app import Wsgi
from chaoslab.worlds.virtual.machine.machine import Hung
from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network.network import TRIP_S, WINDOW_BYTES
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.seams.lab_parts import NOW
from tests.seams.virtual_parts import bench

ASK: Any = [{"role": "user", "content": "Hello"}]
TOKEN_S = 0.2
DEADLINE_S = 5.0


async def by_sdk(sdk: groq.AsyncGroq, *, stops_after: int = -1) -> list[str]:
    """The words as the SDK gives them, with the tenths of seconds since it was asked."""
    began_s = system.monotonic()
    words = []
    stream = await sdk.chat.completions.create(model="m", messages=ASK, stream=True)
    async for chunk in stream:
        if said := chunk.choices[0].delta.content:
            words.append(f"{system.monotonic() - began_s:.1f} {said.strip()}")
        if len(words) == stops_after:
            await stream.close()
            break
    return words


async def by_chatgroq(sdk: groq.AsyncGroq, client: httpx.AsyncClient) -> list[str]:
    model = ChatGroq(
        model="m", api_key=SecretStr("k"), base_url=str(sdk.base_url), http_async_client=client, streaming=True
    )
    return [str((await model.ainvoke(ASK)).text)]


class Run:
    """One call in a world of its own: the words or the error, and the log."""

    def __init__(
        self,
        folder: Path,
        *faults: Injection,
        app: Wsgi | None = None,
        ask: Callable[..., Any] = by_sdk,
        calls_max: int = CALLS_MAX,
        **of_asking: Any,
    ) -> None:
        self.error = ""
        self.words: list[str] = []
        self.history: History

        async def main() -> None:
            serve_application(world().network, "model", 80, app or create_app(token_s=TOKEN_S))
            async with bench(folder, Plan(1, faults), ["model"], deadline_s=DEADLINE_S) as here:
                sdk = groq.AsyncGroq(api_key="k", base_url="http://model", http_client=here.client, max_retries=0)
                if ask is by_chatgroq:
                    of_asking["client"] = here.client
                with here.seam.open_trial(TrialId("run", 1, 1)):
                    try:
                        self.words = await ask(sdk, **of_asking)
                    except (httpx.HTTPError, groq.APIError, ValueError) as error:
                        self.error = type(error).__name__
                self.history = here.history()

        with Patches():
            World(1, now=datetime.fromisoformat(NOW), calls_max=calls_max).run_program_async(main)

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for _, event in self.history.find_events(kind)]

    @property
    def finished(self) -> CallFinished:
        (finished,) = self.of(CallFinished)
        return finished  # type: ignore[no-any-return]

    @property
    def evidence(self) -> list[str]:
        return [event.evidence for event in self.of(FaultWitnessed)]


def test_a_word_reaches_the_sdk_when_it_was_sent(tmp_path: Path) -> None:
    run = Run(tmp_path)
    words = [word.split()[1] for word in run.words]
    assert run.words == [f"{number * TOKEN_S:.1f} {word}" for number, word in enumerate(words, 1)]
    assert len(words) > 4
    end = run.finished
    assert (end.ok, end.status, end.error, end.reply) == (True, 200, None, " ".join(words))
    assert end.first_byte_s == pytest.approx(0.0, abs=9 * TRIP_S)
    assert end.last_byte_s == pytest.approx(end.duration_s, abs=9 * TRIP_S)
    assert end.last_byte_s == pytest.approx((len(words) + 2) * TOKEN_S, abs=9 * TRIP_S)
    (usage,) = run.of(Usage)
    assert (usage.model, usage.completion_tokens > 0, usage.prompt_tokens > 0) == ("m", True, True)


def test_a_whole_answer_has_no_such_times_and_no_such_fields_in_its_line(tmp_path: Path) -> None:
    async def whole(sdk: groq.AsyncGroq) -> list[str]:
        reply = await sdk.chat.completions.create(model="m", messages=ASK)
        return [reply.choices[0].message.content or ""]

    run = Run(tmp_path, inject("cut", "model"), ask=whole)
    assert (run.words[0].split()[0], run.finished.first_byte_s, run.of(FaultInjected)) == ("Hello!", None, [])
    (log,) = tmp_path.rglob("info.log")
    assert "first_byte_s" not in log.read_text()


def test_an_answer_with_a_damaged_event_is_a_failure(tmp_path: Path) -> None:
    run = Run(tmp_path, inject("corrupt_chunk", "model", after_events=3))
    assert (run.error, len(run.evidence)) == ("JSONDecodeError", 1)
    assert (run.finished.ok, run.finished.status, run.finished.error) == (False, 200, "status 200, and no JSON")


def test_an_empty_answer_of_a_model_is_a_failure(tmp_path: Path) -> None:
    async def whole(sdk: groq.AsyncGroq) -> list[str]:
        return [str(await sdk.chat.completions.create(model="m", messages=ASK))]

    run = Run(tmp_path, inject("empty_response", "model"), ask=whole)
    assert (run.error, len(run.evidence)) == ("JSONDecodeError", 1)
    assert (run.finished.ok, run.finished.status, run.finished.error) == (False, 200, "status 200, and no body")


def test_a_cut_is_a_silently_truncated_answer(tmp_path: Path) -> None:
    all_of_it = Run(tmp_path / "all", ask=by_chatgroq).words[0]
    run = Run(tmp_path / "cut", inject("cut", "model", after_events=4), ask=by_chatgroq)
    assert (run.error, run.words) == ("", [" ".join(all_of_it.split()[:3])])
    assert run.evidence == ["the answer ended after 4 events, without [DONE]"]
    assert (run.finished.ok, run.of(Usage)) == (True, [])


def test_a_stall_for_ever_is_the_clients_own_timeout(tmp_path: Path) -> None:
    run = Run(tmp_path, inject("stall", "model", after_events=3))
    assert (run.error, run.finished.ok, run.finished.error) == ("ReadTimeout", False, "timed_out")
    assert run.finished.status == 200
    assert run.finished.duration_s == pytest.approx(2 * TOKEN_S + DEADLINE_S, abs=9 * TRIP_S)
    assert run.evidence == ["nothing came for 5.000 s in the middle of the answer"]


def test_two_faults_of_streams_meet_one_answer(tmp_path: Path) -> None:
    slow, cut = inject("slow_chunks", "model", delay_s=1.0), inject("cut", "model", after_events=3)
    run = Run(tmp_path, slow, cut)
    assert [event.fault for event in run.of(FaultInjected)] == ["slow_chunks", "cut"]
    assert len(run.evidence) == 2
    assert run.finished.duration_s == pytest.approx(2.0, abs=0.01)


def test_a_reader_that_stops_ends_it_upstream(tmp_path: Path) -> None:
    sent: list[float] = []

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:  # noqa: ARG001
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        try:
            while True:
                sent.append(system.monotonic())
                yield b'data: {"choices": [{"delta": {"content": "on "}}]}\n\n'
                system.sleep(1.0)
        finally:
            sent.append(-1.0)

    run = Run(tmp_path, app=app, stops_after=3)
    assert (len(run.words), run.finished.ok, run.finished.error) == (3, False, "cancelled")
    assert (sent[-1], len(sent) <= 6) == (-1.0, True)


def test_an_application_that_fails_in_the_middle_breaks_the_stream_off(tmp_path: Path) -> None:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:  # noqa: ARG001
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        yield b'data: {"choices": [{"delta": {"content": "on "}}]}\n\n'
        raise RuntimeError("no more")

    run = Run(tmp_path, app=app)
    assert (run.error, run.finished.error, run.finished.status) == ("RemoteProtocolError", "closed", 200)


def test_a_fault_of_the_wire_meets_a_stream_too(tmp_path: Path) -> None:
    run = Run(tmp_path, inject("latency", "model", delay_s=1.0, stream="downstream"))
    assert [float(word.split()[0]) for word in run.words[:3]] == [1.2, 1.4, 1.6]
    assert run.finished.via == "lane"
    assert len(run.evidence) == 1
    assert run.finished.ok


def test_a_story_that_loses_the_answer_ends_its_stream(tmp_path: Path) -> None:
    run = Run(tmp_path, inject("lost_reply", "model"))
    assert (run.error, run.finished.error) == ("APITimeoutError", "timed_out")
    assert len(run.evidence) == 1


def test_an_application_waits_for_a_slow_reader(tmp_path: Path) -> None:
    size = 100_000
    part = b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % (b"x" * size)
    sent: list[int] = []

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:  # noqa: ARG001
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        for number in range(100):
            sent.append(number)
            yield part

    ahead = []

    async def slowly(sdk: groq.AsyncGroq) -> list[str]:
        count = 0
        async for _ in await sdk.chat.completions.create(model="m", messages=ASK, stream=True):
            count += 1
            await system.sleep_async(0.1)
            ahead.append(len(sent) - count)
        return [str(count)]

    assert Run(tmp_path, app=app, ask=slowly).words == ["100"]
    assert max(ahead) * size < 3 * WINDOW_BYTES, "the client's own buffer takes a window too"


def test_a_stream_that_is_left_alone_ends_with_its_trial(tmp_path: Path) -> None:
    left: list[Any] = []

    async def leave(sdk: groq.AsyncGroq) -> list[str]:
        stream = await sdk.chat.completions.create(model="m", messages=ASK, stream=True)
        left.append(stream)
        return [str(await anext(aiter(stream)))]

    run = Run(tmp_path, ask=leave)
    assert (run.finished.ok, run.finished.error, run.finished.status) == (False, "cancelled", 200)
    assert len(left) == 1


def test_an_endless_stream_without_a_pause_ends_the_trial(tmp_path: Path) -> None:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:  # noqa: ARG001
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        while True:
            yield b": still here" + b"!" * 100_000 + b"\n\n"

    with pytest.raises(Hung, match="is asked again and again without a wait"):
        Run(tmp_path, app=app, calls_max=20)
