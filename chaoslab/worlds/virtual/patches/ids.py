"""Ids that contain the time: UUIDs of versions 1, 6 and 7 from the standard library, uuid_utils and langgraph's
checkpoints; and those of version 4 by which frameworks name their runs, messages and requests.

uuid_utils is Rust code that asks no Python for time or chance; LangChain's uuid7 comes from it. langgraph's checkpoints
remember the last id beyond a trial. The layout is that of RFC 9562, from the world's wall clock and its labels
(`chance.py`). Any other UUID of version 4 is drawn from the trial's own chance.
"""

import contextlib
import importlib
import sys
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patch, chance

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.machine.context import Computer

real_uuid4 = uuid.uuid4
RUST, CHECKPOINTS = "uuid_utils._uuid_utils", "langgraph.checkpoint.base.id"
LATER = (RUST, CHECKPOINTS)
# The network card's address in every world; its first byte is odd, as in an address made up without a card.
NODE = 0x0123456789AB
# The number of 100 ns ticks from the epoch of UUIDs, 1582-10-15, to 1970.
TICKS_1582 = 0x01B21DD213814000
NAMING = frozenset(
    {
        "agents",
        "anthropic",
        "autogen_agentchat",
        "autogen_core",
        "cohere",
        "crewai",
        "google",
        "groq",
        "langchain",
        "langchain_classic",
        "langchain_core",
        "langgraph",
        "langgraph_prebuilt",
        "langsmith",
        "llama_index",
        "mcp",
        "openai",
        "opentelemetry",
        "pydantic_ai",
        "smolagents",
    }
)
"""The packages whose own UUIDs only name things."""
# The counter of version 7 has 42 bits here, as in the standard library (RFC 9562, method 1).
_COUNTER = 1 << 42
# The variant of RFC 9562: the two highest bits of the second half are 10.
_VARIANT = 0x8000 << 48


class UuidGenerator:
    """The ids that one world has given out, so that they rise."""

    def __init__(self, world: "Computer") -> None:
        self._world, self._chance = world, chance.get_world_chance(world)
        self._last_ticks: dict[int, int] = {}
        self._last_ms = self._counter = -1

    def make_v1_or_v6(self, version: int, node: int | None, clock_seq: int | None, at_ns: int | None = None) -> int:
        """Versions 1 and 6. `at_ns`: the caller's own time since 1970, if it has one."""
        ticks = (self._world.time_ns() if at_ns is None else at_ns) // 100 + TICKS_1582
        if at_ns is None:
            # Rising, as the generators promise; but not with the caller's own time, which is its matter.
            ticks = self._last_ticks[version] = max(ticks, self._last_ticks.get(version, 0) + 1)
        if clock_seq is None:
            clock_seq = self._chance.label_random.getrandbits(14)
        if version == 1:
            # Version 1 has the low bits of the time first, version 6 the high ones, so that it sorts.
            moment = (ticks & 0xFFFFFFFF) << 96 | (ticks >> 32 & 0xFFFF) << 80 | (ticks >> 48 & 0xFFF) << 64
        else:
            moment = (ticks >> 12 & 0xFFFFFFFFFFFF) << 80 | (ticks & 0xFFF) << 64
        node = NODE if node is None else node
        return moment | version << 76 | _VARIANT | (clock_seq & 0x3FFF) << 48 | node & 0xFFFFFFFFFFFF

    def make_v4(self) -> int:
        return _build_v4(self._chance.entropy_random)

    def make_label_v4(self) -> int:
        """Version 4, of a framework that names something."""
        return _build_v4(self._chance.label_random)

    def make_v7(self, timestamp: int | None = None, nanos: int | None = None) -> int:
        """Version 7. A counter rises within a millisecond; with the caller's own time it starts at random."""
        bits = self._chance.label_random.getrandbits
        if timestamp is not None:
            ms, counter = timestamp * 1000 + (nanos or 0) // 1_000_000, bits(42)
        else:
            ms = max(self._world.time_ns() // 1_000_000, self._last_ms)
            # One bit less than the counter has, so that it has room to rise.
            counter = bits(41) if ms > self._last_ms else self._counter + 1
            if counter == _COUNTER:
                # It has run over: the next millisecond begins.
                ms, counter = ms + 1, bits(41)
            self._last_ms, self._counter = ms, counter
        counted = (counter >> 30) << 64 | (counter & (1 << 30) - 1) << 32
        return (ms & 0xFFFFFFFFFFFF) << 80 | 7 << 76 | _VARIANT | counted | bits(32)


def _build_v4(stream: Any) -> int:
    bits: int = stream.getrandbits(128)
    return bits & ~(0xF000 << 64 | 0xC000 << 48) | 4 << 76 | _VARIANT


def get_uuid_generator(world: "Computer") -> UuidGenerator:
    ids = world.kept.get("ids")
    if ids is None:
        ids = world.kept["ids"] = UuidGenerator(world)
    return cast(UuidGenerator, ids)


def _make_v1(ids: UuidGenerator, node: int | None = None, clock_seq: int | None = None) -> int:
    return ids.make_v1_or_v6(1, node, clock_seq)


def _make_v6(ids: UuidGenerator, node: int | None = None, clock_seq: int | None = None) -> int:
    return ids.make_v1_or_v6(6, node, clock_seq)


def _make_checkpoint_v6(ids: UuidGenerator, node: int | None = None, clock_seq: int | None = None) -> int:
    """Version 6 for checkpoints."""
    bits = ids._chance.label_random.getrandbits
    clock_seq = bits(14) if clock_seq is None else clock_seq
    # Checkpoints take a node by chance, where the standard library takes the computer's.
    return ids.make_v1_or_v6(6, bits(48) if node is None else node, clock_seq)


def _make_rust_v6(
    ids: UuidGenerator, node: int | None = None, timestamp: int | None = None, nanos: int | None = None
) -> int:
    # Seconds and nanoseconds apart, as Rust has them.
    return ids.make_v1_or_v6(6, node, None, None if timestamp is None else timestamp * 10**9 + (nanos or 0))


def _get_node(ids: UuidGenerator) -> int:  # noqa: ARG001
    return NODE


def _wrap_id_maker(
    real: Callable[..., Any], number: Callable[..., int], kind: Callable[[int], Any]
) -> Callable[..., Any]:
    """A function that makes an id in the world, or calls the real one outside."""

    def make_id(*args: Any, **kwargs: Any) -> Any:
        world = here.world
        return real(*args, **kwargs) if world is None else kind(number(get_uuid_generator(world), *args, **kwargs))

    make_id.__name__ = make_id.__qualname__ = real.__name__
    return make_id


def uuid4() -> uuid.UUID:
    """`uuid.uuid4`."""
    world = here.world
    # By the module that asks: the same function names things for a framework and decides something for a program.
    if world is None or sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] not in NAMING:
        return real_uuid4()  # from `os.urandom`, which is the world's
    return uuid.UUID(int=get_uuid_generator(world).make_label_v4())


def patches() -> Iterable[Patch]:
    with contextlib.suppress(ImportError):  # small; a later import of langchain then binds the fake
        importlib.import_module("uuid_utils")
    yield from _iterate_patches(
        uuid, lambda n: uuid.UUID(int=n), {"uuid1": _make_v1, "uuid6": _make_v6, "uuid7": UuidGenerator.make_v7}
    )
    yield from _iterate_patches(uuid, int, {"getnode": _get_node})
    yield Patch(uuid, "uuid4", uuid4, everywhere=True)
    if rust := sys.modules.get(RUST):
        kinds: dict[str, Callable[..., int]] = {
            "uuid1": _make_v1,
            "uuid4": UuidGenerator.make_v4,
            "uuid6": _make_rust_v6,
            "uuid7": UuidGenerator.make_v7,
        }
        yield from _iterate_patches(rust, lambda n: rust.UUID(int=n), kinds)
        yield from _iterate_patches(
            rust, int, {"_uuid4_int": UuidGenerator.make_v4, "_uuid7_int": UuidGenerator.make_v7, "getnode": _get_node}
        )
    if checkpoints := sys.modules.get(CHECKPOINTS):
        yield from _iterate_patches(checkpoints, lambda n: checkpoints.UUID(int=n), {"uuid6": _make_checkpoint_v6})


def _iterate_patches(
    module: Any, kind: Callable[[int], Any], numbers: dict[str, Callable[..., int]]
) -> Iterable[Patch]:
    for name, number in numbers.items():
        # uuid6 and uuid7 are new in Python 3.14.
        if (real := getattr(module, name, None)) is not None:
            yield Patch(module, name, _wrap_id_maker(real, number, kind), everywhere=True)
