"""A connection between two ends, told one by one what happens to them: openings, drops and draws, without a socket."""

import asyncio
from typing import cast

import pytest

from chaoslab.base.dice import Dice
from chaoslab.wire.server.end import AttachedToxic
from chaoslab.wire.server.proxy import ProxiedConnections, ProxyConnection, make_worker_timer
from chaoslab.wire.toxics.noop import Noop
from tests.told import Story, told_by


class Wire(asyncio.Transport):
    """A transport that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False
        self.written = b""

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def write_eof(self) -> None:
        pass

    def close(self) -> None:
        pass

    def get_protocol(self) -> asyncio.BaseProtocol:
        return asyncio.Protocol()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass


class Upstreamless(ProxiedConnections):
    """A proxy that nobody listens for, and whose upstream cannot be dialled.

    `asked`: how many dials there were at each try.
    """

    def __init__(self) -> None:
        super().__init__(Dice("test"), make_worker_timer())
        self.asked: list[int] = []

    @property
    def upstream_address(self) -> tuple[str, int]:
        self.asked.append(self.pending_dials.count)
        raise OSError("nobody is there")

    @property
    def connections(self) -> set[ProxyConnection]:
        return set(self._links)

    def accept(self, *, seed: int = 1, since: int = 0) -> tuple[ProxyConnection, Wire]:
        link, wire = ProxyConnection(self, Dice(seed), since=since), Wire()
        link.client.connection_made(wire)
        return link, wire

    def open(self, *, seed: int = 1) -> tuple[ProxyConnection, Wire, Wire]:
        link, wire = self.accept(seed=seed)
        return link, wire, reached(link)


def reached(link: ProxyConnection) -> Wire:
    """The upstream is there."""
    wire = Wire()
    link.server.connection_made(wire)
    return wire


def noop(name: str, *, stream: str = "downstream", toxicity: float = 1.0) -> AttachedToxic:
    return AttachedToxic(name, "noop", stream, toxicity, Noop())


@told_by
def told(story: Story) -> None:
    async def with_it() -> None:
        await story(Upstreamless())

    asyncio.run(with_it())


async def a_few_turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@told
async def test_a_dial_counts_until_it_is_through(proxy: Upstreamless) -> None:
    proxy.accept()
    await a_few_turns()
    assert proxy.asked == [1]
    assert proxy.pending_dials.count == 0


@pytest.mark.parametrize("end", ["lost", "dropped"])
@told
async def test_nobody_is_dialled_for_who_has_gone(proxy: Upstreamless, *, end: str) -> None:
    link, wire = proxy.accept()
    if end == "lost":
        link.client.connection_lost(None)
    else:
        proxy.drop_connections()
        assert wire.aborted
    await a_few_turns()
    assert proxy.asked == []


@pytest.mark.parametrize("end", ["lost", "dropped"])
@told
async def test_an_upstream_that_is_reached_after_all_is_left_again(proxy: Upstreamless, *, end: str) -> None:
    """A dial that is called off may have come through in the same turn."""

    link, _ = proxy.accept()
    if end == "lost":
        link.client.connection_lost(None)
    else:
        proxy.drop_connections()
    assert reached(link).aborted
    assert not link.open


@told
async def test_who_was_accepted_before_a_drop_is_dropped_and_forgotten(proxy: Upstreamless) -> None:
    proxy.drop_connections()
    link, wire = proxy.accept(since=0)
    await a_few_turns()
    assert wire.aborted
    assert proxy.asked == []
    link.client.connection_lost(None)
    assert proxy.connections == set()


@told
async def test_it_is_over_when_both_ends_are_lost_or_the_only_one(proxy: Upstreamless) -> None:
    alone, _ = proxy.accept()
    assert proxy.connections == {alone}
    alone.client.connection_lost(None)
    assert proxy.connections == set()
    for first, second in (("client", "server"), ("server", "client")):
        link, _, _ = proxy.open()
        getattr(link, first).connection_lost(None)
        assert proxy.connections == {link}
        getattr(link, second).connection_lost(None)
        assert proxy.connections == set()


@told
async def test_a_client_that_goes_as_soon_as_the_upstream_is_there_calls_off_no_dial(proxy: Upstreamless) -> None:
    """Its data is still to be delivered, and a dial that is called off closes its socket."""

    before = asyncio.all_tasks()
    link, _ = proxy.accept()
    (dial,) = asyncio.all_tasks() - before
    reached(link)
    link.client.connection_lost(None)
    assert cast("asyncio.Task[None]", dial).cancelling() == 0


@told
async def test_a_drop_stops_both_ends_at_once(proxy: Upstreamless) -> None:
    link, client, server = proxy.open()
    link.client.data_received(b"through")
    link.server.data_received(b"back")
    proxy.drop_connections()
    link.client.data_received(b"too late")
    link.server.data_received(b"too late")
    assert (server.written, client.written) == (b"through", b"back")
    assert client.aborted
    assert server.aborted


@pytest.mark.parametrize("seed", range(8))
@told
async def test_a_toxic_that_comes_during_the_dial_is_drawn_once_when_it_is_through(
    proxy: Upstreamless, *, seed: int
) -> None:
    link, _ = proxy.accept(seed=seed)
    proxy.attach_toxic(noop("t", toxicity=0.5))
    assert not link.server.has_pipe("t")
    reached(link)
    assert link.server.has_pipe("t") == Dice(seed, "t").draw_bool(0.5)


@pytest.mark.parametrize("seed", range(8))
@told
async def test_a_toxicity_of_1_takes_no_draw(proxy: Upstreamless, *, seed: int) -> None:
    toxic, dice = noop("t"), Dice(seed, "t")
    proxy.attach_toxic(toxic)
    link, _, _ = proxy.open(seed=seed)
    assert link.server.has_pipe("t")
    for _ in range(3):
        proxy.change_toxic(toxic, attributes=Noop(), toxicity=0.5)
        assert link.server.has_pipe("t") == dice.draw_bool(0.5)


@told
async def test_a_toxic_that_is_taken_out_during_the_dial_is_never_seen(proxy: Upstreamless) -> None:
    link, _ = proxy.accept()
    toxic = noop("t")
    proxy.attach_toxic(toxic)
    proxy.detach_toxic(toxic)
    reached(link)
    assert not link.server.has_pipe("t")


@pytest.mark.parametrize("stream", ["upstream", "Downstream"])
@told
async def test_a_toxic_acts_on_what_flows_its_way_and_on_nothing_else(proxy: Upstreamless, *, stream: str) -> None:
    link, _, _ = proxy.open()
    proxy.attach_toxic(noop("t", stream=stream))
    assert (link.client.has_pipe("t"), link.server.has_pipe("t")) == (stream == "upstream", stream == "Downstream")
