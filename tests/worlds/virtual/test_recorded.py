"""The fake of a model or a service that is gone gives each attempt the recorded answer."""

import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from chaoslab.base.identity import hash_value
from chaoslab.core.events import AttemptRef, CallStarted, Replied
from chaoslab.core.exchange import Failure
from chaoslab.record.log import BufferedEvent
from chaoslab.wire.sending import NEVER_SENT, Transport, fetch_reply
from chaoslab.worlds.virtual.network.recorded_targets import (
    FOR_EVER_S,
    NO_REPLY,
    AttemptNotingLog,
    RecordedSockets,
    Recording,
)
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TLS = httpx.create_ssl_context()
BODY = {"messages": ["hello"]}


def replied(
    request: int, attempt: int, body: str, *, asked: str = hash_value(BODY), status: int = 200, **more: Any
) -> Replied:
    return Replied(
        target="model",
        request=request,
        attempt=attempt,
        asked=asked,
        status=status,
        content_type="text/plain",
        body=body,
        **more,
    )


@pytest.mark.parametrize("failure", ["reset", "closed", "garbled"])
def test_a_streamed_answer_that_broke_off_is_told_up_to_there_and_breaks_off_again(failure: str) -> None:
    event = 'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'
    broken = Replied(
        target="model",
        request=1,
        attempt=1,
        asked=hash_value(BODY),
        status=200,
        content_type="text/event-stream",
        body=event,
        failure=failure,
    )
    recording = Recording()
    recording.load_replies([broken])
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))
    serve_application(world.network, "127.0.0.1", 80, recording.build_app("model"))
    asked = httpx.Request("POST", "http://127.0.0.1/", json=BODY)

    async def story() -> list[tuple[bytes | None, str]]:
        found = []
        ways = RecordedSockets(recording)
        for way in (ways.make_pooled_transport(TLS), ways.make_fresh_transport(TLS, asked, ("127.0.0.1", 80))):
            reply = await fetch_reply(way, asked, within_s=9.0, streams=True)
            assert reply.stream is not None
            part = await reply.stream.read_part()
            with pytest.raises(Failure) as met:
                await reply.stream.read_part()
            await reply.stream.aclose()
            found.append((part, met.value.kind))
            await way.aclose()
        return found

    with Patches():
        assert world.run_program_async(story) == [(event.encode(), failure)] * 2


class Client:
    """Asks the fake as the seam would have it asked: what begins is logged before it is sent."""

    def __init__(self, *replies: Replied) -> None:
        self.recording = Recording()
        self.recording.load_replies(replies)
        self.log = AttemptNotingLog(self.recording, list[BufferedEvent](), origin=0.0)

    def ask(self, request: int, attempt: int, body: Any = BODY, **headers: str) -> tuple[str, dict[str, str], str]:
        self.log.write(
            CallStarted(
                at=AttemptRef(target="model", request=request, attempt=attempt, request_id="an id"), tool="chat"
            ),
            trial="p1.r1",
        )
        began: list[tuple[str, Iterable[tuple[str, str]]]] = []
        text = json.dumps(body).encode() if body else b""
        environ = {"wsgi.input": io.BytesIO(text), "CONTENT_LENGTH": str(len(text)), **headers}
        parts = self.recording.build_app("model")(environ, lambda status, given: began.append((status, given)))
        said = b"".join(parts).decode()
        return began[0][0], dict(began[0][1]), said

    def met(self, request: int, attempt: int, *, within_s: float = 9.0) -> tuple[Failure, Failure]:
        """The attempt's failure, over a clean lane and over a poisoned one."""
        self.log.write(
            CallStarted(
                at=AttemptRef(target="model", request=request, attempt=attempt, request_id="an id"), tool="chat"
            ),
            trial="p1.r1",
        )
        world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC), deadline_s=5 * FOR_EVER_S)
        serve_application(world.network, "127.0.0.1", 80, self.recording.build_app("model"))
        asked = httpx.Request("POST", "http://127.0.0.1/", json=BODY)
        ways = RecordedSockets(self.recording)

        async def story() -> tuple[Failure, Failure]:
            return (
                await _failed(ways.make_pooled_transport(TLS), asked, within_s),
                await _failed(ways.make_fresh_transport(TLS, asked, ("127.0.0.1", 80)), asked, within_s),
            )

        with Patches():
            return world.run_program_async(story)


async def _failed(way: Transport, asked: httpx.Request, within_s: float) -> Failure:
    with pytest.raises(Failure) as met:
        await fetch_reply(way, asked, within_s=within_s)
    await way.aclose()
    return met.value


def test_each_attempt_is_told_what_it_was_told() -> None:
    client = Client(replied(1, 1, "no", status=503), replied(1, 2, "yes"), replied(2, 1, "yes again"))
    assert [client.ask(*place)[2] for place in ((1, 1), (1, 2), (2, 1))] == ["no", "yes", "yes again"]


def test_an_attempt_whose_reply_was_lost_does_not_use_up_the_next_ones() -> None:
    client = Client(replied(1, 2, "no", status=503), replied(1, 3, "yes"))
    assert [client.ask(1, attempt)[2] for attempt in (1, 2, 3, 4)] == ["no", "no", "yes", "yes"]


def test_a_service_is_asked_by_the_requests_id() -> None:
    client = Client(replied(3, 1, "mist", asked="an id", headers={"retry-after": "3"}))
    status, headers, said = client.ask(3, 1, None, HTTP_IDEMPOTENCY_KEY="an id")
    assert (status[:3], said) == ("200", "mist")
    assert headers == {"retry-after": "3", "Content-Type": "text/plain", "Content-Length": "4"}


def test_what_was_never_asked_has_no_answer_and_the_next_trial_none_of_this_ones() -> None:
    client = Client(replied(1, 1, "yes"))
    status, headers, said = client.ask(1, 1, {"messages": ["something else"]})
    assert status.startswith("500")
    assert (json.loads(said)["error"]["message"], headers["X-Should-Retry"]) == (NO_REPLY, "false")
    client.recording.load_replies([])
    assert NO_REPLY in client.ask(1, 1)[2]


@pytest.mark.parametrize(
    "failure", ["timed_out", "reset", "closed", "refused", "dns", "untrusted", "garbled", "too_large"]
)
def test_a_failure_comes_back_as_the_one_that_was_recorded(failure: str, caplog: pytest.LogCaptureFixture) -> None:
    """A poisoned lane takes the connection itself, and ends it where its target cannot be reached."""
    by_bytes = "closed" if failure in ("refused", *NEVER_SENT) else failure
    clean, poisoned = Client(replied(1, 1, "", status=0, failure=failure)).met(1, 1)
    assert (clean.kind, poisoned.kind) == (failure, by_bytes)
    if failure == "refused":  # the agent reads the words of its client
        assert str(clean.native) == "All connection attempts failed"
    assert not caplog.records


def test_a_client_that_waits_on_sees_who_fell_silent_end_at_last() -> None:
    client = Client(replied(1, 1, "", status=0, failure="timed_out"))
    assert [failure.kind for failure in client.met(1, 1, within_s=2 * FOR_EVER_S)] == ["closed", "closed"]
