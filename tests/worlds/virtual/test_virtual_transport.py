"""A protocol is told the same over the virtual network as over loopback: the same stories on either."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from chaoslab.worlds.virtual.network._transport import VirtualTransport
from chaoslab.worlds.virtual.world import World
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

DEADLINE_S = 10.0
BULK = 24 * 1024 * 1024
"""More than any buffer of loopback takes."""
RST_ON_CLOSE = struct.pack("ii", 1, 0)


class Ear(asyncio.Protocol):
    """Writes down all that it is told. `stays`: an end of the other side's stream is not the end of its own."""

    def __init__(self, *, stays: bool = False, deaf: bool = False) -> None:
        self.told: list[str] = []
        self.data = bytearray()
        self.transport: asyncio.Transport
        self._stays, self._deaf = stays, deaf
        self._news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self._deaf:  # in a turn of its own: asyncio of Python 3.11.2 begins to read after this call all the same
            asyncio.get_running_loop().call_soon(transport.pause_reading)
        self._note("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self._note("data")

    def eof_received(self) -> bool:
        self._note("eof")
        return self._stays

    def connection_lost(self, exc: Exception | None) -> None:
        self._note(f"lost {type(exc).__name__}")

    def pause_writing(self) -> None:
        self._note("pause")

    def resume_writing(self) -> None:
        self._note("resume")

    def _note(self, what: str) -> None:
        if not self.told or what != "data" or self.told[-1] != "data":  # how data is cut is nobody's promise
            self.told.append(what)
        self._news.set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not true():
                self._news.clear()
                await self._news.wait()

    async def hears(self, what: str) -> None:
        await self.until(lambda: what in self.told)

    async def has(self, size: int) -> None:
        await self.until(lambda: len(self.data) >= size)

    def rude(self) -> None:
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)


Story = Callable[[Ear, Ear], Awaitable[None]]


async def told(story: Story, client: dict[str, bool], server: dict[str, bool]) -> dict[str, Any]:
    """A story of two ends of one connection: what each was told, and what it got."""
    loop = asyncio.get_running_loop()
    here, there = Ear(**client), Ear(**server)
    listener = await loop.create_server(lambda: there, "127.0.0.1", 0)
    await loop.create_connection(lambda: here, *listener.sockets[0].getsockname())
    await there.hears("made")
    await story(here, there)
    result = {"client": (tuple(here.told), bytes(here.data)), "server": (tuple(there.told), bytes(there.data))}
    for end in (here, there):
        if not end.told[-1].startswith("lost"):
            end.transport.abort()
            await end.until(lambda end=end: end.told[-1].startswith("lost"))  # type: ignore[misc]
    listener.close()
    return result


def virtually(work: Callable[[], Any]) -> Any:
    return World(1, now=datetime(2026, 6, 1, tzinfo=UTC)).run_program_async(work)


async def half_close(here: Ear, there: Ear) -> None:
    here.transport.write(b"question")
    here.transport.write_eof()
    await there.hears("eof")
    there.transport.writelines([b"ans", b"wer"])
    there.transport.close()
    await here.hears("lost NoneType")
    await there.hears("lost NoneType")


async def end_of_both(here: Ear, there: Ear) -> None:
    here.transport.write(b"bye")
    here.transport.close()
    await there.hears("lost NoneType")
    await here.hears("lost NoneType")


async def closed_with_unread_data(here: Ear, there: Ear) -> None:
    """`there` is deaf; the first data makes its kernel's buffer unread, the second proves that it has arrived."""
    here.transport.write(b"never read")
    await arrived(there)
    there.transport.close()
    await here.hears("lost ConnectionResetError")


async def written_to_one_who_is_gone(here: Ear, there: Ear) -> None:
    there.transport.close()
    await here.hears("eof")
    async with asyncio.timeout(DEADLINE_S):
        while (
            "lost BrokenPipeError" not in here.told
        ):  # the first one is answered with a reset, which the second one meets
            here.transport.write(b"x")
            await asyncio.sleep(0.001)


async def reset(here: Ear, there: Ear) -> None:
    there.transport.write(b"last words")
    there.rude()
    there.transport.abort()
    await here.hears("lost ConnectionResetError")


async def reset_unheard(here: Ear, there: Ear) -> None:
    """`here` is deaf when it happens, and hears it when it listens again, after what was said before."""
    there.transport.write(b"last words")
    there.rude()
    there.transport.abort()
    await there.hears("lost NoneType")
    await asyncio.sleep(0.01)
    assert here.told == ["made"]
    here.transport.resume_reading()
    await here.hears("lost ConnectionResetError")


async def reset_met_by_a_writer(here: Ear, there: Ear) -> None:
    there.rude()
    there.transport.abort()
    await there.hears("lost NoneType")
    async with asyncio.timeout(DEADLINE_S):
        while len(here.told) == 1:
            here.transport.write(b"x")
            await asyncio.sleep(0.001)


async def aborted(here: Ear, there: Ear) -> None:
    here.transport.write(b"out already")
    await there.has(11)
    here.transport.abort()
    await there.hears("lost NoneType")
    await here.hears("lost NoneType")


async def window(here: Ear, there: Ear) -> None:
    """`there` is deaf until the writer has been told to wait."""
    here.transport.write(bytes(BULK))
    assert here.told == ["made", "pause"]
    there.transport.resume_reading()
    await here.hears("resume")
    await there.has(BULK)


async def closed_while_the_reader_is_slow(here: Ear, there: Ear) -> None:
    here.transport.write(bytes(BULK))
    here.transport.close()
    await asyncio.sleep(0.01)
    assert "lost NoneType" not in here.told
    there.transport.resume_reading()
    await there.hears("lost NoneType")
    await here.hears("lost NoneType")


async def reset_while_writing(here: Ear, there: Ear) -> None:
    here.transport.write(bytes(BULK))
    await arrived(there)
    there.transport.close()
    await here.until(lambda: here.told[-1].startswith("lost"))


async def end_unheard(here: Ear, there: Ear) -> None:
    """The end comes after the data, and both wait until somebody listens."""
    there.transport.write(b"data")
    there.transport.close()
    await there.hears("lost NoneType")
    await asyncio.sleep(0.01)
    assert here.told == ["made"]
    here.transport.resume_reading()
    await here.hears("lost NoneType")


async def words_after_the_end(here: Ear, there: Ear) -> None:
    here.transport.write_eof()
    with pytest.raises(RuntimeError, match="after write_eof"):
        here.transport.write(b"x")
    here.transport.close()
    here.transport.close()
    there.transport.write(b"x")
    await there.hears("lost NoneType")
    await here.hears("lost NoneType")
    there.transport.write(b"x")


async def arrived(deaf: Ear) -> None:
    """Returns when something is there for one who does not listen."""
    sock = deaf.transport.get_extra_info("socket")
    if hasattr(sock, "_sock"):  # asyncio's
        async with asyncio.timeout(DEADLINE_S):
            while True:
                with contextlib.suppress(BlockingIOError):
                    if sock._sock.recv(1, socket.MSG_PEEK):
                        return
                await asyncio.sleep(0.001)
    await asyncio.sleep(0.001)


STAYS, DEAF = {"stays": True}, {"deaf": True}
STORIES: list[tuple[Story, dict[str, bool], dict[str, bool]]] = [
    (half_close, {}, STAYS),
    (end_of_both, {}, {}),
    (closed_with_unread_data, {}, DEAF),
    (written_to_one_who_is_gone, STAYS, {}),
    (reset, {}, {}),
    (reset_unheard, DEAF, {}),
    (reset_met_by_a_writer, DEAF, {}),
    (aborted, {}, {}),
    (window, {}, DEAF),
    (closed_while_the_reader_is_slow, {}, DEAF),
    (reset_while_writing, DEAF, DEAF),
    (end_unheard, DEAF, {}),
    (words_after_the_end, {}, {}),
]


@pytest.mark.parametrize(("story", "client", "server"), STORIES, ids=[story[0].__name__ for story in STORIES])
def test_a_protocol_is_told_the_same_over_either_network(
    story: Story, client: dict[str, bool], server: dict[str, bool]
) -> None:
    over_loopback = asyncio.run(told(story, client, server))
    assert virtually(lambda: told(story, client, server)) == over_loopback


def test_a_listener_that_goes_away_refuses_who_comes_and_keeps_who_is_there() -> None:
    async def story() -> tuple[list[str], bytearray]:
        loop = asyncio.get_running_loop()
        here, there = Ear(), Ear()
        listener = await loop.create_server(lambda: there, "127.0.0.1", 0)
        address = listener.sockets[0].getsockname()
        await loop.create_connection(lambda: here, *address)
        await there.hears("made")
        assert listener.is_serving()
        listener.close()
        assert (listener.is_serving(), list(listener.sockets)) == (False, [])
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Ear, *address)
        there.transport.write(b"still here")
        await here.has(10)
        there.transport.close()
        await here.hears("lost NoneType")
        return here.told, here.data

    assert virtually(story) == asyncio.run(story())


def test_a_second_listener_at_one_address_is_refused_as_on_loopback() -> None:
    async def story() -> tuple[int | None, int]:
        loop = asyncio.get_running_loop()
        first = await loop.create_server(Ear, "127.0.0.1", 0)
        _, port = first.sockets[0].getsockname()
        with pytest.raises(OSError, match="in use") as taken:
            await loop.create_server(Ear, "127.0.0.1", port)
        first.close()
        async with await loop.create_server(Ear, "127.0.0.1", port) as second:
            return taken.value.errno, len(second.sockets)

    assert virtually(story) == asyncio.run(story())


def test_who_listened_in_a_loop_that_is_closed_does_so_no_more() -> None:
    """As after `asyncio.run` of a program that left its server open, and begins again."""
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))

    async def listening() -> None:
        await asyncio.start_server(print, "127.0.0.1", 8000)

    def first() -> bool:
        for _ in range(2):
            loop = world.create_loop()
            loop.run_until_complete(listening())
            loop.close()
        return world.network.is_listening(("127.0.0.1", 8000))

    assert not world.run_program(first)


def test_streams_speak_over_the_virtual_network() -> None:
    """`asyncio.start_server` and `open_connection`, with a drain that waits for a slow reader."""

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper() * int(await reader.readline()))
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def ask(address: Any, n: int) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(f"echo {n}\n{n * 50}\n".encode())
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def main() -> list[bytes]:
        async with await asyncio.start_server(shout, "127.0.0.1", 0) as server:
            address = server.sockets[0].getsockname()
            return await asyncio.gather(*(ask(address, n) for n in range(100)))

    assert virtually(main) == [f"ECHO {n}\n".encode() * n * 50 for n in range(100)]


def test_a_transport_tells_how_it_is_and_a_server_serves_until_it_is_cancelled() -> None:
    async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await asyncio.sleep(60)

    async def main() -> list[bool]:
        server = await asyncio.start_server(deaf, "127.0.0.1", 0)
        assert server.get_loop() is asyncio.get_running_loop()
        serving, address = asyncio.create_task(server.serve_forever()), server.sockets[0].getsockname()
        _, writer = await asyncio.open_connection(*address)
        there: Any = writer.transport
        told = [there.is_reading()]
        there.pause_reading()
        told.append(there.is_reading())
        there.resume_reading()
        told += [there.is_reading(), there.get_write_buffer_size() == 0]
        there.write(bytes(BULK))
        assert 0 < there.get_write_buffer_size() <= BULK
        there.close()
        told.append(there.is_reading())
        assert not serving.done()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        return told

    assert virtually(main) == [True, False, True, True, False]


def test_a_drain_waits_as_long_as_the_reader_does() -> None:
    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()

        async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(30)
            got.append(len(await reader.read(-1)))
            writer.close()

        got: list[int] = []
        async with await asyncio.start_server(slowly, "127.0.0.1", 0, limit=1000) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            began = loop.time()
            writer.write(bytes(BULK))
            await writer.drain()
            waited_s = loop.time() - began
            low, high = writer.transport.get_write_buffer_limits()
            assert low <= high < BULK
            writer.write_eof()
            await reader.read()
            writer.close()
        return round(waited_s), got[0]

    assert virtually(main) == (30, BULK)


def test_a_writer_goes_on_once_there_is_room_and_a_closed_transport_hangs_up_then() -> None:
    told = list[str]()
    says: Any = lambda word: lambda *_: told.append(word)  # noqa: E731
    end: Any = SimpleNamespace(
        address=("a", 1), peer_address=("b", 2), is_full=True, write=says("sent"), close=says("closed")
    )
    protocol: Any = SimpleNamespace(
        pause_writing=says("pause"), resume_writing=says("resume"), connection_lost=says("lost")
    )
    loop: Any = SimpleNamespace(
        call_if_open=lambda call, *args: call(*args), call_soon=lambda call, *args: call(*args), is_closed=lambda: False
    )
    transport = VirtualTransport(loop, end, protocol, SimpleNamespace(rude=False, close=says("face")))
    for _ in range(2):
        transport.write(b"x")
        transport.handle_write_room()
    assert told == ["sent", "pause", "sent"]
    end.is_full = False
    transport.handle_write_room()
    transport.handle_write_room()
    assert told[3:] == ["resume"]
    end.is_full = True
    transport.write(b"x")
    transport.close()
    transport.write(b"x")
    assert told[4:] == ["sent", "pause"]
    end.is_full = False
    for _ in range(2):
        transport.handle_write_room()
    transport.abort()
    assert told[6:] == ["resume", "closed", "lost", "face"]
    assert end.receiver is None
