"""Several event loops share one thread of the process, and each keeps to its own."""

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.network._loop import Future, Task, settle_future
from chaoslab.worlds.virtual.network.network import NetworkEnd
from chaoslab.worlds.virtual.world import World
from tests.worlds.virtual.patch_parts import in_place, named

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def test_a_generator_that_is_left_is_ended_by_the_loop_it_began_in() -> None:
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))
    ended_in: list[asyncio.AbstractEventLoop] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended_in.append(asyncio.get_running_loop())

    async def main() -> None:
        other = world.create_loop()
        world.machine.start_thread(other.run_until_stopped, name="another loop")
        await asyncio.sleep(1)  # the other one has begun meanwhile
        async for _ in numbers():
            break
        gc.collect()
        await asyncio.sleep(1)
        assert ended_in == [asyncio.get_running_loop()]
        other.call_soon_threadsafe(other.stop)
        await asyncio.sleep(1)
        assert other.is_closed()

    world.run_program_async(main)


def test_what_still_comes_for_a_loop_that_is_closed_is_lost_on_it_and_disturbs_nobody() -> None:
    """As after `asyncio.run` of a program that left a connection open, a thread at work and a call under way."""
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))
    accepted: list[NetworkEnd] = []

    def first() -> list[bool]:
        address = world.network.listen("127.0.0.1", 0, accepted.append)
        loop = world.create_loop()

        async def program() -> None:
            await loop.create_connection(asyncio.Protocol, *address)
            loop.run_in_executor(None, world.machine.sleep, 1)
            dialling = loop.create_task(loop.create_connection(asyncio.Protocol, *address))
            await asyncio.sleep(0)
            dialling.cancel()

        loop.run_until_complete(program())
        loop.close()
        accepted[0].write(b"too late")
        world.machine.sleep(2)
        accepted[0].close()
        world.machine.sleep(1)
        return [end.ended for end in accepted]

    assert world.run_program(first) == [False, True], "the call that was given up was hung up"


NO_SOCKET: Any = None
REFUSED: list[tuple[str, Callable[[asyncio.AbstractEventLoop], Any], str]] = [
    ("open_unix_connection", lambda _: asyncio.open_unix_connection("/tmp/x"), "a Unix socket"),
    ("start_unix_server", lambda _: asyncio.start_unix_server(print, "/tmp/x"), "a Unix socket"),
    ("datagrams", lambda it: it.create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 9)), "datagrams"),
    ("sock_accept", lambda it: it.sock_accept(NO_SOCKET), "a loop's sock_accept"),
    ("sock_recv", lambda it: it.sock_recv(NO_SOCKET, 1), "a loop's sock_recv"),
    ("sock_recv_into", lambda it: it.sock_recv_into(NO_SOCKET, bytearray(1)), "a loop's sock_recv_into"),
    ("sock_recvfrom", lambda it: it.sock_recvfrom(NO_SOCKET, 1), "a loop's sock_recvfrom"),
    ("sock_recvfrom_into", lambda it: it.sock_recvfrom_into(NO_SOCKET, bytearray()), "a loop's sock_recvfrom_into"),
    ("sock_sendall", lambda it: it.sock_sendall(NO_SOCKET, b""), "a loop's sock_sendall"),
    ("sock_sendto", lambda it: it.sock_sendto(NO_SOCKET, b"", ("127.0.0.1", 9)), "a loop's sock_sendto"),
    ("sock_sendfile", lambda it: it.sock_sendfile(NO_SOCKET, NO_SOCKET), "a loop's sock_sendfile"),
    ("sendfile", lambda it: it.sendfile(NO_SOCKET, NO_SOCKET), "a loop's sendfile"),
    ("connect_accepted_socket", lambda it: it.connect_accepted_socket(asyncio.Protocol, NO_SOCKET), "a server of this"),
    ("create_server", lambda it: it.create_server(asyncio.Protocol, sock=socket.socket()), "a server of this kind"),
    ("connect_read_pipe", lambda it: it.connect_read_pipe(asyncio.Protocol, NO_SOCKET), "a pipe"),
    ("connect_write_pipe", lambda it: it.connect_write_pipe(asyncio.BaseProtocol, NO_SOCKET), "a pipe"),
    ("subprocess", lambda _: asyncio.create_subprocess_exec("true"), "a subprocess"),
    ("shell", lambda _: asyncio.create_subprocess_shell("true"), "a subprocess"),
    ("add_reader", lambda it: it.add_reader(0, print), "waiting for a file with add_reader"),
    ("add_writer", lambda it: it.add_writer(1, print), "waiting for a file with add_writer"),
]


@pytest.mark.parametrize(("do", "what"), named(REFUSED))
def test_what_a_loop_cannot_do_ends_the_trial_though_the_program_went_on(
    do: Callable[[asyncio.AbstractEventLoop], Any], what: str
) -> None:
    async def agent() -> str:
        with suppress(BaseException):
            await do(asyncio.get_running_loop())
        return "on it goes"

    with pytest.raises(Unsupported) as refused:
        World(1, now=datetime(2026, 6, 1, tzinfo=UTC)).run_program_async(agent)
    assert str(refused.value).startswith(what)
    assert "(in test_virtual_loops.py, line " in str(refused.value)


def test_a_handler_of_signals_is_taken_and_given_back_as_asyncio_does() -> None:
    """No signal comes in a world, but many a program asks for them when it starts."""

    async def story() -> list[Any]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, print, "never")
        return [
            loop.remove_signal_handler(signal.SIGTERM),
            loop.remove_signal_handler(signal.SIGTERM),
            loop.remove_reader(0),
            loop.remove_writer(1),
        ]

    before = signal.getsignal(signal.SIGTERM)
    assert World(1, now=datetime(2026, 6, 1, tzinfo=UTC)).run_program_async(story) == [True, False, False, False]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_loop_does_the_rest_as_asyncio_does() -> None:
    failed: list[Any] = []

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failed.append(context))
        assert await loop.getnameinfo(("127.0.0.1", 80)) == ("127.0.0.1", "80")
        with pytest.raises(TypeError, match=r"^transport 3 is not supported by start_tls\(\)$"):
            await loop.start_tls(3, asyncio.Protocol(), None)
        done, left = loop.create_future(), loop.create_future()
        left.cancel()
        for future in (done, left):
            settle_future(future, None, StopIteration())
        with pytest.raises(RuntimeError, match=r"^the thread raised StopIteration$"):
            await done
        begun, bare = loop.create_task(asyncio.sleep(1)), Future(loop=loop)
        assert loop.describe_waits()[-1] == f"{begun.get_name()} has not begun"
        assert hash(bare) == hash(bare) != hash(Future(loop=loop))
        asked: list[Any] = []

        def factory(of: Any, coro: Any, **more: Any) -> Any:
            asked.append(more)
            return Task(coro, loop=of, **more)

        loop.set_task_factory(factory)
        made = loop.create_task(asyncio.sleep(1))
        assert len(asked) == 1
        assert int(made.get_name().removeprefix("Task-")) == int(begun.get_name().removeprefix("Task-")) + 1
        await asyncio.gather(begun, made)
        other = world.create_loop()
        other.close()
        with pytest.raises(RuntimeError, match=r"^Event loop is closed$"):
            other.call_soon(print)

    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))
    world.run_program_async(main)
    assert failed == []


def test_a_connection_that_its_caller_gave_up_while_it_was_made_is_closed() -> None:
    world, accepted = World(1, now=datetime(2026, 6, 1, tzinfo=UTC)), list[NetworkEnd]()

    async def main() -> list[bool]:
        address = world.network.listen("127.0.0.1", 0, accepted.append)
        dialling = asyncio.create_task(asyncio.open_connection(*address))
        await asyncio.sleep(0)
        dialling.cancel()
        _, writer = await asyncio.open_connection(*address)
        await asyncio.sleep(1)
        ended = [end.ended for end in accepted]
        writer.close()
        return ended

    assert world.run_program_async(main) == [True, False]
