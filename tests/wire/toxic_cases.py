"""The scripts that every carrier must play alike: toxics alone, in pairs, on both streams; put, changed and taken."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tests.wire.toxic_scripts import Close, Patch, Put, Say, Script, Step, Stream, Take

STREAMS: tuple[Stream, ...] = ("downstream", "upstream")
CHANGE_MS = 350  # toxics change between two words, at a moment that nothing else happens


@dataclass(frozen=True)
class Kind:
    """A toxic as the scripts use it: how, changed to what, and how many bytes show it."""

    type: str
    first: dict[str, int]
    second: dict[str, int]
    size: int = 2000
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.type


KINDS = (
    Kind("latency", {"latency": 200}, {"latency": 500}),
    Kind("bandwidth", {"rate": 100}, {"rate": 20}, size=20_000),
    Kind("bandwidth", {"rate": 0}, {"rate": 100}, size=20_000, label="standstill"),
    Kind("slow_close", {"delay": 200}, {"delay": 500}),
    Kind("timeout", {"timeout": 600}, {"timeout": 250}),
    Kind("timeout", {"timeout": 0}, {"timeout": 250}, label="silence"),
    Kind("reset_peer", {"timeout": 450}, {"timeout": 300}),
    Kind("slicer", {"average_size": 400, "delay": 40_000}, {"average_size": 400, "delay": 100_000}),
    Kind("limit_data", {"bytes": 3000}, {"bytes": 2500}),
    Kind("noop", {}, {}),
)
LOUD = tuple(kind for kind in KINDS if kind.type != "noop")
TALK_END_MS = 1300
UNTIL_MS = 1900


def talk(size: int) -> list[tuple[int, Step]]:
    """Two words one way, one the other, and the end."""
    return [(0, Say("here", size)), (200, Say("there", 300)), (500, Say("here", size)), (TALK_END_MS, Close("here"))]


def script(name: str, stream: Stream, before: tuple[Put, ...], size: int, *changes: tuple[int, Step]) -> Script:
    steps = sorted([*talk(size), *changes], key=lambda step: step[0])
    return Script(f"{name} {stream}", stream, before, tuple(steps), UNTIL_MS)


def alone() -> Iterator[Script]:
    for stream, kind in itertools.product(STREAMS, KINDS):
        put = Put(kind.type, kind.first)
        missed = Put(kind.type, kind.first, toxicity=0.0)
        plans: dict[str, tuple[tuple[Put, ...], tuple[Step, ...]]] = {
            "from the start": ((put,), ()),
            "added": ((), (put,)),
            "changed": ((put,), (Patch(kind.second),)),
            "removed": ((put,), (Take(),)),
            "missed": ((missed,), ()),
            "missed and removed": ((missed,), (Take(),)),
            "drawn again": ((missed,), (Patch({}, toxicity=1.0),)),
            "spared": ((put,), (Patch({}, toxicity=0.0),)),
        }
        for what, (before, steps) in plans.items():
            yield script(f"{kind.name} {what}", stream, before, kind.size, *((CHANGE_MS, step) for step in steps))


def pairs() -> Iterator[Script]:
    """Each behind each other, from the start on one stream or the other in turn; also the second added in mid-life."""
    for n, (a, b) in enumerate(itertools.permutations(KINDS, 2)):
        quiet = "noop" in (a.type, b.type)  # the one that only must not be in the way
        first, second = Put(a.type, a.first, name="a"), Put(b.type, b.first, name="b")
        yield script(f"{a.name} then {b.name}", STREAMS[n % 2], (first, second), size_of(a, b))
        if not quiet:
            yield script(f"{a.name}, later {b.name}", "upstream", (first,), size_of(a, b), (CHANGE_MS, second))


def opposites() -> Iterator[Script]:
    for a, b in itertools.combinations_with_replacement(LOUD, 2):
        first, second = Put(a.type, a.first, name="a"), Put(b.type, b.first, name="b", opposite=True)
        yield script(f"{a.name} against {b.name}", "downstream", (first, second), size_of(a, b))


def size_of(a: Kind, b: Kind) -> int:
    """Big enough for a narrow line to show, unless it would keep a slicer busy beyond the script's end."""
    return 2000 if "slicer" in (a.type, b.type) else max(a.size, b.size)


SCRIPTS = (*alone(), *pairs(), *opposites())
