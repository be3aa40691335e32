"""One toxic, three carriers: each script is heard alike over the virtual network, the embedded server and the real one.

Over the virtual network to the very bit, as the toxics' own arithmetic says. Over loopback every byte and every end,
and times within `TOLERANCE_S`, which is less than what any two scripts differ by; the real server but for what is
listed as a difference.
"""

import asyncio
import contextlib
import math
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.wire import toxics
from chaoslab.wire.server.end import AttachedToxic
from chaoslab.worlds.virtual.network.lanes import Lane
from chaoslab.worlds.virtual.network.network import TRIP_S
from chaoslab.worlds.virtual.world import World
from tests.wire.toxic_cases import SCRIPTS
from tests.wire.toxic_differences import listed
from tests.wire.toxic_scripts import (
    Address,
    Close,
    Heard,
    Patch,
    Put,
    Say,
    Script,
    Server,
    Step,
    Stream,
    Take,
    differences,
    marks,
    play,
    words,
)
from tests.wire.wire_parts import play as run
from tests.wire.wire_parts import process, real

AT_ONCE = (100, 40, 40, 20, 20, 10)  # what went otherwise than it should is played again, with less going on beside it
STAGGER_S = 0.02
EXACT_S = 1e-8  # what floats lose, counted from another zero

Play = tuple[Heard, Heard]


class Virtual:
    """The virtual network as the carrier: a lane before each upstream, all in a thread of their own, as in a trial."""

    def __init__(self, world: World) -> None:
        self._network, self.loop = world.network, world.create_loop()
        self._lanes: dict[str, Lane] = {}
        world.machine.start_thread(self.loop.run_until_stopped, name="toxiproxy")

    @contextlib.asynccontextmanager
    async def proxied(self, upstream: Address) -> AsyncIterator[tuple[str, Address]]:
        name = f"p{len(self._lanes) + 1}"
        lane = self._lanes[name] = Lane(self._network, self.loop, upstream=upstream, dice=Dice(1, name))
        try:
            yield name, lane.address
        finally:
            lane.close_lane()

    async def put(self, proxy: str, stream: Stream, put: Put) -> None:
        toxic = toxics.load_toxic(put.type)(**put.attributes)
        attached = AttachedToxic(put.name, put.type, stream, put.toxicity, toxic)
        self.loop.call_soon_threadsafe(self._lanes[proxy].attach_toxic, attached)

    async def patch(self, proxy: str, patch: Patch) -> None:
        toxic = self._toxic(proxy, patch.name)
        toxicity = toxic.toxicity if patch.toxicity is None else patch.toxicity
        attributes = replace(toxic.toxic, **patch.attributes)
        change = self._lanes[proxy].change_toxic
        self.loop.call_soon_threadsafe(lambda: change(toxic, attributes=attributes, toxicity=toxicity))

    async def take(self, proxy: str, take: Take) -> None:
        self.loop.call_soon_threadsafe(self._lanes[proxy].detach_toxic, self._toxic(proxy, take.name))

    def _toxic(self, proxy: str, name: str) -> AttachedToxic:
        return next(toxic for toxic in self._lanes[proxy].toxics if toxic.name == name)


def played_virtually(scripts: Sequence[Script]) -> list[Play]:
    """All at once, in one world."""
    world = World(1, now=datetime(2026, 6, 1, tzinfo=UTC))

    async def main() -> list[Play]:
        carrier = Virtual(world)
        heard = await asyncio.gather(*(play(carrier, script) for script in scripts))
        carrier.loop.call_soon_threadsafe(carrier.loop.stop)
        await asyncio.sleep(1)
        return heard

    return world.run_program_async(main)


@cache
def virtually() -> dict[str, Play]:
    """The play of each script, by its name."""
    return dict(zip((script.name for script in SCRIPTS), played_virtually(SCRIPTS), strict=True))


def reckoned(script: Script) -> Play:
    """The bytes and times that a script without changes on the way must give.

    The toxics alone, with no loop, no network and no proxy.
    """
    forth = [(Timed((at_ms / 1000) + TRIP_S, item), who) for at_ms, step in script.steps for who, item in said(step)]
    feeds = {who: [timed for timed, speaker in forth if speaker == who] for who in ("here", "there")}
    through = {who: flow(script, who, feeds[who]) for who in feeds}
    first, second = sorted(feeds, key=lambda who: stop(through[who]).at)
    over = stop(through[first]).at
    if over < math.inf:  # that end is lost with it, and the other one learns of it through its own toxics
        heard_so_far = [timed for timed in feeds[second] if timed.at <= over]
        through[second] = flow(script, second, [*heard_so_far, Timed(over, Signal.END)])
    rude = stop(through[first]).item is Signal.RESET
    return ear(script, through["there"], rude=rude), ear(script, through["here"], rude=rude)  # each hears the other


def said(step: Step) -> Iterator[tuple[str, bytes | Signal]]:
    if isinstance(step, Say):
        yield step.who, words(step.who, step.size)
    elif isinstance(step, Close):
        yield step.who, Signal.END


def flow(script: Script, who: str, feed: Sequence[Timed]) -> list[Timed]:
    """The pieces that leave the toxics on the way from this end."""
    chain = Pipeline()
    for put in script.before:
        if put.opposite == (who == "there") and put.toxicity:
            chain.add(put.name, toxics.load_toxic(put.type)(**put.attributes).pipe(Dice(1), TRIP_S), TRIP_S)
    return [Timed(*item) for item in run(chain, feed)]


def stop(out: Sequence[Timed]) -> Timed:
    return next((timed for timed in out if isinstance(timed.item, Signal)), Timed(math.inf, Signal.END))


def ear(script: Script, out: Sequence[Timed], *, rude: bool) -> Heard:
    """The pieces that arrive at the other end, one trip later."""
    last, end = stop(out)
    until_s = script.until_ms / 1000 - TRIP_S
    pieces = [(at + TRIP_S, item) for at, item in out if isinstance(item, bytes) and at <= min(last, until_s)]
    data = b"".join(item for _, item in pieces)
    if last > until_s:
        return Heard(data, marks(pieces, len(data), 0.0), "open", 0.0)
    return Heard(data, marks(pieces, len(data), 0.0), "RST" if rude or end is Signal.RESET else "FIN", last + TRIP_S)


STEADY = [script for script in SCRIPTS if not any(isinstance(step, Put | Patch | Take) for _, step in script.steps)]


@pytest.mark.parametrize("script", STEADY, ids=lambda script: script.name)
def test_the_virtual_network_delivers_to_the_bit_what_the_toxics_say(script: Script) -> None:
    for heard, wanted in zip(virtually()[script.name], reckoned(script), strict=True):
        assert (heard.data, heard.end) == (wanted.data, wanted.end)
        assert heard.marks_s == pytest.approx(wanted.marks_s, abs=EXACT_S)
        assert heard.end_s == pytest.approx(wanted.end_s, abs=EXACT_S)


@contextlib.contextmanager
def processes() -> Iterator[list[int]]:
    """The ports of the embedded server and of the real one, if it is here.

    Each is a process, so that neither shares an interpreter with the script.
    """
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(process("auto"))[0]]
        if shutil.which("toxiproxy-server") is not None:
            urls.append(stack.enter_context(real()))
        yield [int(url.rpartition(":")[2]) for url in urls]


async def over_loopback(ports: Sequence[int], scripts: Sequence[Script], at_once: int) -> list[tuple[Play, ...]]:
    """The plays of each script, played on all servers at the same time."""
    gate = asyncio.Semaphore(at_once)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(contextlib.closing(Server(("127.0.0.1", port)))) for port in ports]

        async def one(number: int, script: Script) -> tuple[Play, ...]:
            await asyncio.sleep(STAGGER_S * (number % at_once))  # or all would change their toxics at one moment
            async with gate:
                try:
                    return tuple(await asyncio.gather(*(play(server, script) for server in servers)))
                except ConnectionResetError:  # in a pause of this process, before it had heard that it was connected
                    return ()

        return await asyncio.gather(*(one(number, script) for number, script in enumerate(scripts)))


def complaints(script: Script, plays: Sequence[Play]) -> list[str]:
    """The differences from what should be heard: on the embedded server, and then, if it is here, on the real one."""
    if not plays:
        return [f"{script.name}: reset before it was connected"]
    found = []
    if unlike := differences(virtually()[script.name], plays[0]):
        found.append(f"{script.name}: virtual against embedded: {unlike}")
    if len(plays) > 1 and frozenset(unlike := differences(plays[0], plays[1])) != listed(script):
        found.append(f"{script.name}: embedded against real: {unlike or 'alike'}, listed: {sorted(listed(script))}")
    return found


def test_every_script_is_heard_alike_over_all_carriers_and_every_listed_difference_is_still_there() -> None:
    left, wrong = list(SCRIPTS), ["not played"]
    with processes() as ports:
        for at_once in AT_ONCE:
            heard = asyncio.run(over_loopback(ports, left, at_once))
            told = [complaints(script, plays) for script, plays in zip(left, heard, strict=True)]
            left = [script for script, lines in zip(left, told, strict=True) if lines]
            wrong = [line for lines in told for line in lines]
            if not left:
                break
    assert not wrong, "\n".join(wrong)
    if len(ports) < 2:
        pytest.skip(
            "toxiproxy-server is not on PATH: the virtual network and the embedded server were compared, and are alike"
        )
