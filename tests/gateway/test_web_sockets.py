"""WebSockets pass the gateway, and meet faults message by message."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.seams.services.messages import FRAME_MAX, WebSocketSplitter
from tests.gateway.parts import history, standing
from tests.seams.lab_parts import eventually
from tests.waiting import DEADLINE_S


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Says every message once more; "end" ends the connection."""
    if request.headers.get("Authorization") == "wrong":
        raise web.HTTPForbidden(text="no")
    line = web.WebSocketResponse(protocols=["chat"], max_msg_size=0)
    await line.prepare(request)
    async for message in line:
        if message.type is aiohttp.WSMsgType.BINARY:
            await line.send_bytes(message.data)
        elif message.data == "end":
            break
        else:
            await line.send_str(f"you said {message.data}")
    await line.close()
    return line


@pytest.fixture(scope="module")
def route() -> Iterator[str]:
    loop, ports = asyncio.new_event_loop(), list[int]()
    ready = threading.Event()

    async def begin() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/chat", echo)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ports.append(runner.addresses[0][1])
        ready.set()
        return runner

    def serve() -> None:
        runner = loop.run_until_complete(begin())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(DEADLINE_S)
    yield f"chat=http://127.0.0.1:{ports[0]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def talk(url: str, *said: str | bytes, **given: Any) -> list[Any]:
    """The messages that come, and the end: a close code, or an error's name."""

    async def talked() -> list[Any]:
        found: list[Any] = []
        async with aiohttp.ClientSession() as session:
            try:
                async with session.ws_connect(url, protocols=["chat"], max_msg_size=0, **given) as line:
                    for each in said:
                        await (line.send_str(each) if isinstance(each, str) else line.send_bytes(each))
                        message = await line.receive()
                        if message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.ERROR):
                            break
                        found.append(message.data)
                    await line.close()
                    found.append((line.protocol, line.close_code))
            except aiohttp.WSServerHandshakeError as error:
                found.append(error.status)
        return found

    work: Coroutine[Any, Any, list[Any]] = talked()
    return asyncio.run(work)


def ends(logs: Path) -> list[tuple[Any, ...]]:
    return [(end.ok, end.status, end.error) for _, end in history(logs).find_events(CallFinished)]


def test_messages_of_any_size_pass_both_ways_and_the_end_is_no_failure(route: str, tmp_path: Path) -> None:
    large = b"x" * (FRAME_MAX + 70_000)
    with standing(tmp_path, [route]) as running:
        url = running.make_route_url("chat") + "/chat"
        assert talk(url, "hello", b"\0\1", large, "end") == ["you said hello", b"\0\1", large, ("chat", 1000)]
        assert talk(url, "hello") == ["you said hello", ("chat", 1000)]
        assert talk(url, headers={"Authorization": "wrong"}) == [403]
        eventually(lambda: len(ends(tmp_path)) == 3)
    assert ends(tmp_path) == [(True, 101, None), (True, 101, None), (False, 403, None)] or ends(tmp_path) == [
        (True, 101, None), (True, 101, None), (False, 403, "Forbidden")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "given", "heard"),
    [
        ("disconnect", {"after_events": 2}, ["you said a", "you said b"]),
        ("reset_peer", {}, []),
        ("latency", {"delay_s": 0.2}, ["you said a", "you said b", "you said c"]),
    ],
)
def test_a_fault_is_met_and_witnessed(
    fault: str, given: dict[str, Any], heard: list[str], route: str, tmp_path: Path
) -> None:
    with standing(tmp_path, [route], {"fault": fault, "target": "chat", **given}) as running:
        try:
            found = talk(running.make_route_url("chat") + "/chat", "a", "b", "c")[:-1]
        except aiohttp.ClientError:
            found = []
        assert found == heard
        eventually(lambda: len(ends(tmp_path)) > 0)
    # a client may try again
    assert {event.fault for _, event in history(tmp_path).find_events(FaultWitnessed)} == {fault}


def frame(data: bytes, *, first: int = 0x81, mask: bytes = b"") -> bytes:
    """`mask`: four bytes, as a client sends; what they cover matters to nobody here."""
    size, bytes_ = (len(data), 0) if len(data) < 126 else (126, 2) if len(data) < 1 << 16 else (127, 8)
    told = len(data).to_bytes(bytes_, "big") if bytes_ else b""
    return bytes([first, size | (0x80 if mask else 0)]) + told + mask + data


def test_messages_are_told_apart_whatever_pieces_they_come_in() -> None:
    ping = frame(b"p", first=0x89)
    split = frame(b"be", first=0x01) + ping + frame(b"gin" * 50, first=0) + frame(b"end", first=0x80, mask=b"1234")
    long = [frame(b"x" * size, mask=mask) for size in (125, 126, 300, 0xFFFF, 0x10000) for mask in (b"", b"1234")]
    sent = [frame(b"a"), split, ping, *long]
    data = b"".join(sent)
    for size in (1, 3, 7, 9000):
        messages, cut = WebSocketSplitter(), min(len(data), 9000 // size * size)
        found = [each for n in range(0, cut, size) for each in messages.feed(data[n : n + size])]
        found += messages.feed(data[cut:])
        assert (found, messages.rest) == (sent, b"")


@pytest.mark.parametrize(("size", "passes"), [(4 * 1024 * 1024, False), (4 * 1024 * 1024 + 1, True)])
def test_a_frame_of_more_than_four_mebibytes_passes_in_pieces(size: int, passes: bool) -> None:
    begun = bytes([0x82, 127]) + (size - 10).to_bytes(8, "big") + b"x"
    assert WebSocketSplitter().feed(begun) == [begun] * passes
