"""Several event loops share one thread of the process, and each keeps to its own."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from datetime import UTC, datetime

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
