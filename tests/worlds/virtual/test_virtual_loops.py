"""Several event loops share one thread of the process, and each keeps to its own."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from chaoslab.worlds.virtual.network import End
from chaoslab.worlds.virtual.world import World


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
        other = world.loop()
        world.machine.start(other.serve, name="another loop")
        await asyncio.sleep(1)  # the other one has begun meanwhile
        async for _ in numbers():
            break
        gc.collect()
        await asyncio.sleep(1)
        assert ended_in == [asyncio.get_running_loop()]
        other.call_soon_threadsafe(other.stop)
        await asyncio.sleep(1)
        assert other.is_closed()

    world.run_async(main)


def test_what_still_comes_for_a_loop_that_is_closed_is_lost_on_it_and_disturbs_nobody() -> None:
    """As after `asyncio.run` of a program that left a connection open, a thread at work and a call under way."""
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))
    accepted: list[End] = []

    def first() -> list[bool]:
        address = world.network.listen("127.0.0.1", 0, accepted.append)
        loop = world.loop()

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

    assert world.run(first) == [False, True], "the call that was given up was hung up"
