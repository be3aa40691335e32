"""Streamed replies over real sockets, through the lab's proxy: in step with the server, byte for byte."""

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import groq
import httpx
import pytest

from chaoslab.base.identity import TrialId
from chaoslab.core.events import CallDisturbed, CallFinished, FaultWitnessed
from chaoslab.core.exchange import Failure
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection, Plan
from chaoslab.wire.sending import SocketFactory, fetch_reply, gather_body
from tests.seams.lab_parts import Bench, bench, embedded

WITHIN_S = 20.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n%b\r\n"
ASK: Any = [{"role": "user", "content": "Hello"}]
TLS = httpx.create_ssl_context()


def event(number: int) -> bytes:
    return b'data: {"choices": [{"delta": {"content": "w%d"}}]}\n\n' % number


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass
class Server:
    """Sends each part once the client has told that it has the one before it: a part held back would hold up all."""

    parts: list[bytes] = field(default_factory=lambda: [*map(event, range(5)), b"data: [DONE]\n\n"])
    header: bytes = b""
    connections: int = 0
    ended_by_client: asyncio.Event = field(default_factory=asyncio.Event)
    read: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    stops_after: int = 10**9
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:")), 0
                )
                await reader.readexactly(length)
                writer.write(HEAD % self.header)
                for number, part in enumerate(self.parts):
                    if number == self.stops_after:
                        return
                    await self._in_step(reader)
                    writer.write(chunk(part))
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended_by_client.set()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _in_step(self, reader: asyncio.StreamReader) -> None:
        """Waits until the client has read, or is gone."""
        read, gone = asyncio.ensure_future(self.read.acquire()), asyncio.ensure_future(reader.read(1))
        done, waiting = await asyncio.wait((read, gone), timeout=WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        if gone in done:
            raise ConnectionResetError("the client is gone")
        assert read in done, "the client did not read what was sent"

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[int]:
        async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]
            server.close()
            if self.tasks:  # each client has closed its connection by now
                await asyncio.wait(self.tasks, timeout=WITHIN_S)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(3 * WITHIN_S):
            await main()

    asyncio.run(bounded())


@contextlib.asynccontextmanager
async def streaming(folder: Path, *faults: Injection, stops_after: int = 10**9) -> AsyncIterator[tuple[Server, Bench]]:
    """A model that streams, and the whole way to it."""
    server = Server(stops_after=stops_after)
    async with server.up() as port:
        with embedded() as toxiproxy:
            async with bench(folder, toxiproxy, Plan(1, faults), {"model": f"127.0.0.1:{port}"}) as here:
                yield server, here


async def words(
    server: Server, here: Bench, *, stops_after: int = -1, on_first: Callable[[], None] = lambda: None
) -> list[str]:
    """The words as Groq's SDK gets them; the server sends the next part when one is here."""
    sdk = groq.AsyncGroq(api_key="k", base_url=here.seam.targets["model"].url, http_client=here.client, max_retries=0)
    found = []
    with here.seam.open_trial(TrialId(here.run.name, 1, 1)):
        stream = await sdk.chat.completions.create(model="m", messages=ASK, stream=True)
        async for chunk in stream:
            found.append(chunk.choices[0].delta.content or "")
            if len(found) == 1:
                await asyncio.to_thread(on_first)
            if len(found) == stops_after:
                await stream.close()
                break
            server.read.release()
    return found


def test_each_word_is_with_the_sdk_before_the_next_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with streaming(tmp_path) as (server, here):
            assert await words(server, here) == ["w0", "w1", "w2", "w3", "w4"]
            server.read.release()
            assert await words(server, here) == ["w0", "w1", "w2", "w3", "w4"]
            assert server.connections == 1, "a body that was read to its end leaves its connection to others"
            finished = [end for _, end in here.history().find_events(CallFinished)]
        assert [end.ok for end in finished] == [True, True]
        assert finished[0].first_byte_s is not None

    run(main)


def test_a_reader_that_stops_ends_it_upstream(tmp_path: Path) -> None:
    async def main() -> None:
        async with streaming(tmp_path) as (server, here):
            assert await words(server, here, stops_after=2) == ["w0", "w1"]
            await asyncio.wait_for(server.ended_by_client.wait(), WITHIN_S)

    run(main)


def test_a_cut_ends_it_upstream_and_the_sdk_takes_the_part_for_the_whole(tmp_path: Path) -> None:
    async def main() -> None:
        async with streaming(tmp_path, inject("cut", "model", after_events=2)) as (server, here):
            assert await words(server, here) == ["w0", "w1"]
            await asyncio.wait_for(server.ended_by_client.wait(), WITHIN_S)
            (met,) = (e.evidence for _, e in here.history().find_events(FaultWitnessed))
        assert met == "the answer ended after 2 events, without [DONE]"

    run(main)


def test_a_connection_that_ends_too_early_is_the_clients_own_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with streaming(tmp_path, stops_after=2) as (server, here):
            with pytest.raises(httpx.RemoteProtocolError, match="peer closed connection"):
                await words(server, here)
            (end,) = (e for _, e in here.history().find_events(CallFinished))
        assert (end.ok, end.status, end.error) == (False, 200, "closed")

    run(main)


def test_a_stream_that_the_lab_itself_cut_is_no_experiment(tmp_path: Path) -> None:
    async def main() -> None:
        async with streaming(tmp_path) as (server, here):
            with pytest.raises(httpx.RemoteProtocolError):
                await words(server, here, on_first=lambda: drop_all(here))
            (end,) = (e for _, e in here.history().find_events(CallFinished))
            (cut,) = (e for _, e in here.history().find_events(CallDisturbed))
        assert (end.ok, end.error) == (False, "closed")
        assert "when the clean proxies went away under it" in cut.why

    run(main)


def drop_all(here: Bench) -> None:
    """Deletes the clean proxies, as a restart of Toxiproxy does."""
    for name in here.toxiproxy.proxies():
        here.toxiproxy.destroy(name)


def sent(server: Server, *, streams: bool) -> bytes | str:
    """The body over a kept connection, or the failure."""
    found: list[bytes | str] = []

    async def main() -> None:
        server.read = asyncio.Semaphore(1000)
        async with server.up() as port:
            way = SocketFactory().make_pooled_transport(TLS)
            request = httpx.Request("GET", f"http://127.0.0.1:{port}/")
            try:
                reply = await fetch_reply(way, request, within_s=WITHIN_S, streams=streams)
                assert (reply.stream is not None) is streams
                whole = reply if reply.stream is None else await gather_body(reply, reply.stream, most=2**30)
                found.append(whole.body)
            except Failure as failure:
                found.append(failure.kind)
            await way.aclose()

    run(main)
    return found[0]


@pytest.mark.parametrize("streams", [True, False], ids=["in parts", "whole"])
def test_a_packed_stream_is_unpacked_as_it_comes(streams: bool) -> None:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    plain = [*map(event, range(3))]
    parts = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in plain]
    whole = Server([*parts, packer.flush()], header=b"Content-Encoding: gzip\r\n")
    assert sent(whole, streams=streams) == b"".join(plain)
    assert sent(Server(parts, header=b"Content-Encoding: gzip\r\n"), streams=streams) == "garbled"
    assert sent(Server(plain, header=b"Content-Encoding: gzip\r\n"), streams=streams) == "garbled"


def test_a_bomb_is_unpacked_in_small_parts() -> None:
    bomb = gzip.compress(b"data: " + b"x" * 10_000_000 + b"\n\n")
    assert len(sent(Server([bomb], header=b"Content-Encoding: gzip\r\n"), streams=True)) == 10_000_008
    assert sent(Server([bomb], header=b"Content-Encoding: gzip\r\n"), streams=False) == "too_large"
