"""Every byte arrives once, in order and in time through any chain of lossless toxics, rebuilt or not."""

from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.wire.toxics import Toxic
from chaoslab.wire.toxics.bandwidth import Bandwidth
from chaoslab.wire.toxics.latency import Latency
from chaoslab.wire.toxics.limit_data import LimitData
from chaoslab.wire.toxics.noop import Noop
from chaoslab.wire.toxics.reset_peer import ResetPeer
from chaoslab.wire.toxics.slicer import Slicer
from chaoslab.wire.toxics.slow_close import SlowClose
from chaoslab.wire.toxics.timeout import Timeout

any_int = st.integers(-(2**63), 2**63 - 1)
small = st.integers(-5, 3000)
LOSSLESS = st.one_of(
    st.builds(Latency, latency=small, jitter=small),
    st.builds(Bandwidth, rate=st.integers(-1, 3)),
    st.builds(Slicer, average_size=small, size_variation=small | any_int, delay=small | any_int),
    st.builds(SlowClose, delay=small | any_int),
    st.builds(Noop),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("feed"), st.integers(1, 3000)),
        st.tuples(st.just("wait"), st.floats(0, 2)),
        st.tuples(st.just("put"), st.integers(0, 3), LOSSLESS),
        st.tuples(st.just("take"), st.integers(0, 3)),
    ),
    max_size=25,
)
Step = tuple[str, float] | tuple[str, int, Toxic]


@given(steps=STEPS)
def test_every_byte_arrives_once_in_order_and_time_never_falls(steps: list[Step]) -> None:
    chain, now, sent, out = Pipeline(), 0.0, 0, []
    data = bytes(n % 251 for n in range(100_000))
    for step in steps:
        key = str(step[1])
        if step[0] == "feed":
            size = int(step[1])
            chain.feed(Timed(now, data[sent : sent + size]))
            sent += size
        elif step[0] == "wait":
            now += step[1]
            out += chain.poll(now)
        elif len(step) == 3:
            before = chain.get(key) if key in chain.keys else None
            pipe = step[2].pipe(Dice("test", key), now, before=before)
            if before is None:
                chain.add(key, pipe, now)
            else:
                chain.replace(key, pipe, now)
        elif key in chain.keys:
            chain.remove(key, now)
        arrived = sum(len(timed.item) for timed in out if isinstance(timed.item, bytes))
        assert chain.held_bytes == sent - arrived
    chain.feed(Timed(now, Signal.END))
    out += chain.release_all_items(now)
    assert b"".join(timed.item for timed in out if isinstance(timed.item, bytes)) == data[:sent]
    assert out[-1] == Timed(now, Signal.END)
    assert [timed.at for timed in out] == sorted(timed.at for timed in out)


ANY = st.one_of(
    LOSSLESS, st.builds(Timeout, timeout=small), st.builds(LimitData, bytes=small), st.builds(ResetPeer, timeout=small)
)
FEEDS = st.lists(st.tuples(st.floats(0, 2), st.integers(1, 3000)), max_size=12)


@given(toxics=st.lists(ANY, min_size=1, max_size=4), feeds=FEEDS, most=st.integers(1, 40), turns=st.integers(1, 5))
def test_however_little_is_taken_at_once_the_same_comes_out_at_the_same_moments(
    toxics: list[Toxic], feeds: list[tuple[float, int]], most: int, turns: int
) -> None:
    """One chain is polled whenever it asks, the other is late and takes a few pieces a few times between two feeds."""
    prompt, slow = (chain_of(toxics) for _ in range(2))
    now, wanted, out = 0.0, [], []
    for number, (wait_s, size) in enumerate(feeds):
        now += wait_s
        while (wake := prompt.find_next_due()) is not None and wake <= now:
            wanted += prompt.poll(wake)
        for _ in range(turns):
            out += slow.poll(now, most)
        for chain in (prompt, slow):
            chain.feed(Timed(now, bytes([number]) * size))
    for chain, found in ((prompt, wanted), (slow, out)):
        chain.feed(Timed(now + 1, Signal.END))
        while (wake := chain.find_next_due()) is not None:
            found += chain.poll(wake if chain is prompt else 1e30, 2**63 if chain is prompt else most)
    assert out == wanted


def chain_of(toxics: list[Toxic]) -> Pipeline:
    chain = Pipeline()
    for number, toxic in enumerate(toxics):
        chain.add(str(number), toxic.pipe(Dice("test", number), 0.0), 0.0)
    return chain
