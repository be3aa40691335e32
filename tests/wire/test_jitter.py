"""Jitter over a kept connection, one exchange after the other: each delay is a uniform draw of its own.

So it is on the real server.
"""

import asyncio
import contextlib
import math
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Timed
from chaoslab.wire.server.end import AttachedToxic
from chaoslab.wire.toxics.latency import Latency
from chaoslab.worlds.virtual.network.lanes import Lane
from chaoslab.worlds.virtual.network.network import TRIP_S
from chaoslab.worlds.virtual.world import World
from tests.wire.wire_parts import dial, echo, live, process, read_exactly, real, upstream

JITTERS = ((10, 10), (20, 18), (5, 20))
CRITICAL = 1.95  # of Kolmogorov and Smirnov at 1 in 1,000: times sqrt(1/n), or sqrt(1/n + 1/m) of two samples
TRIES = 8  # a machine that is busy adds delays of its own; a server that spreads them otherwise fails each time


def analytic(latency_s: float, jitter_s: float, delay_s: float) -> float:
    """The share of delays up to that: uniform in latency ± jitter, and never below 0."""
    if delay_s < 0:
        return 0.0
    return min(1.0, max(0.0, (delay_s - latency_s + jitter_s) / (2 * jitter_s)))


def distance(sample: Sequence[float], share: Callable[[float], float]) -> float:
    """The greatest difference between a sample's share up to a value and the share that is due; ties count once."""
    values, worst = sorted(sample), 0.0
    for number, value in enumerate(values):
        if number + 1 < len(values) and values[number + 1] == value:
            continue
        worst = max(worst, abs((number + 1) / len(values) - share(value)))
    return worst


def share_of(sample: Sequence[float]) -> Callable[[float], float]:
    values = sorted(sample)
    return lambda value: sum(one <= value for one in values) / len(values)


@pytest.mark.parametrize(("latency", "jitter"), JITTERS)
@pytest.mark.parametrize("think_s", [0.0, 0.000_3, 0.02])
def test_the_delays_of_one_exchange_after_the_other_are_uniform(latency: int, jitter: int, think_s: float) -> None:
    pipe, now, delays = live(Latency(latency=latency, jitter=jitter), think_s), 0.0, []
    for _ in range(4000):
        pipe.feed(Timed(now, b"x"))
        due = pipe.find_next_due()
        assert due is not None
        assert len(pipe.poll(due)) == 1
        delays.append(due - now)
        now = due + think_s
    off = distance(delays, lambda delay_s: analytic(latency / 1000, jitter / 1000, delay_s + 1e-9))
    assert off < CRITICAL / math.sqrt(len(delays))


def test_who_asks_again_just_before_the_answer_was_due_gets_a_draw_of_its_own() -> None:
    """A timer may ring half a millisecond early, and on loopback the next answer is there before that has passed."""
    pipe, now, delays = live(Latency(latency=10, jitter=10)), 0.0, []
    for _ in range(4000):
        pipe.feed(Timed(now, b"x"))
        due = pipe.find_next_due()
        assert due is not None
        delays.append(due - now)
        pipe.poll(due)
        now = max(now, due - 0.000_5)
    off = distance(delays, lambda delay_s: analytic(0.01, 0.01, delay_s + 1e-9))
    assert (
        off < CRITICAL / math.sqrt(len(delays)) + 0.05
    )  # what waits for the one before is late by that half millisecond


def test_equal_dice_draw_alike() -> None:
    def delays(*names: object) -> list[float]:
        pipe, found = live(Latency(latency=10, jitter=10), *names), []
        for number in range(50):
            pipe.feed(Timed(float(number), b"x"))
            due = pipe.find_next_due()
            assert due is not None
            pipe.poll(due)
            found.append(due - number)
        return found

    assert delays("seed") == delays("seed") != delays("another")


@pytest.mark.parametrize(("latency", "jitter"), JITTERS)
def test_the_delays_in_virtual_time_are_uniform_to_the_bit(latency: int, jitter: int) -> None:
    """Over the virtual network: four trips of each exchange take no chance."""
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))
    exchanges = 1500

    async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async def main() -> list[float]:
        server = await asyncio.start_server(echoing, "127.0.0.1", 9000)
        loop = world.create_loop()
        world.machine.start_thread(loop.run_until_stopped, name="toxiproxy")
        lane = Lane(world.network, loop, upstream=("127.0.0.1", 9000), dice=Dice(1, "lane"))
        late = AttachedToxic("t", "latency", "downstream", 1.0, Latency(latency=latency, jitter=jitter))
        loop.call_soon_threadsafe(lane.attach_toxic, late)
        reader, writer = await asyncio.open_connection(*lane.address)
        found = []
        for _ in range(exchanges):
            began = asyncio.get_running_loop().time()
            writer.write(b".")
            assert await reader.readexactly(1)
            found.append(asyncio.get_running_loop().time() - began - 4 * TRIP_S)
        writer.close()
        lane.close_lane()
        server.close()
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.sleep(1)
        return found

    delays = world.run_program_async(main)
    off = distance(delays, lambda delay_s: analytic(latency / 1000, jitter / 1000, delay_s + 1e-9))
    assert off < CRITICAL / math.sqrt(exchanges)


def trips(url: str, address: str, *, latency: int, jitter: int, connections: int, each: int) -> list[float]:
    """Seconds of so many exchanges, one after the other on each of several connections."""
    body = {"name": "p", "upstream": address, "listen": "127.0.0.1:0"}
    toxic = {"type": "latency", "attributes": {"latency": latency, "jitter": jitter}}

    def one(connection: socket.socket) -> list[float]:
        found = []
        for _ in range(each):
            began = system.monotonic()
            connection.sendall(b".")
            read_exactly(connection, 1)
            found.append(system.monotonic() - began)
        return found

    with httpx.Client(base_url=url) as client, contextlib.ExitStack() as stack:
        listen = client.post("/proxies", json=body).raise_for_status().json()["listen"]
        stack.callback(lambda: client.delete("/proxies/p"))
        client.post("/proxies/p/toxics", json=toxic).raise_for_status()
        sockets = [stack.enter_context(dial(listen)) for _ in range(connections)]
        with ThreadPoolExecutor(connections) as pool:
            return [trip for some in pool.map(one, sockets) for trip in some]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_round_trips_are_spread_as_through_the_real_server(loop: str) -> None:
    """A few hundred of each, measured at the same time."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    with upstream(echo) as address, real() as model, process(loop) as (own, _), ThreadPoolExecutor(2) as both:
        off = 1.0
        for _ in range(TRIES):
            measure = lambda url: trips(url, address, latency=10, jitter=10, connections=4, each=100)  # noqa: E731
            theirs, ours = both.map(measure, (model, own))
            off = distance(ours, share_of(theirs))
            if off < CRITICAL * math.sqrt(1 / len(ours) + 1 / len(theirs)):
                return
    pytest.fail(f"the distributions are {off:.2f} apart")
