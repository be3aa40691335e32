"""Chance: the global `random`, the system's entropy (and with it uuid4 and `secrets`), and numpy's global generator.

Each world draws from its own streams, made at first use. The process's generators are never seeded, since other threads
draw from them. A generator with a seed of its own (`random.Random(7)`) is left alone.

The streams are those of a trial (run seed and trial), so trials of one run are independent. Labels that frameworks
give to runs, messages and requests (`ids.py`) are the run's, equal in all its trials: they decide nothing, and no trial
needs a twin of its own because of them.
"""

import functools
import os
import random
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patch

if TYPE_CHECKING:
    from chaoslab.worlds.virtual.machine.context import Computer

NUMPY = "numpy.random.mtrand"
LATER = (NUMPY,)
DRAWN = ("number_random", "entropy_random", "numpy_random")
"""The streams from which programs draw what may decide something."""
real_urandom, real_seed = os.urandom, random.Random.seed
real_candidate_names: Callable[[], Any] = tempfile._get_candidate_names  # type: ignore[attr-defined]


class WorldChance:
    """The chance of one world. `number_random` and `entropy_random` are separate, so that an additional id changes no
    jitter."""

    def __init__(self, world: "Computer") -> None:
        # Of run seed and trial: a twin, a pair in a comparison, a replay and each variation of a trial draw alike. The
        # labels are the run's and count as no chance, since frameworks name things by them.
        self._dice, self._labels = world.dice, world.labels

    @property
    def has_drawn(self) -> bool:
        """True if anything was drawn but labels: a stream is made at its first draw."""
        return not vars(self).keys().isdisjoint(DRAWN)

    @functools.cached_property
    def label_random(self) -> random.Random:
        return self._labels.make_generator()

    @functools.cached_property
    def number_random(self) -> random.Random:
        return self._dice("random").make_generator()

    @functools.cached_property
    def entropy_random(self) -> random.Random:
        return self._dice("entropy").make_generator()

    @functools.cached_property
    def numpy_random(self) -> Any:
        """A `numpy.random.RandomState`."""
        return sys.modules[NUMPY].RandomState(self._dice("numpy").make_generator().getrandbits(32))

    @functools.cached_property
    def temp_file_names(self) -> Any:
        """The names of temporary files: tempfile keeps one sequence through the life of the process."""
        sequence = tempfile._RandomNameSequence()  # type: ignore[attr-defined]
        sequence._rng, sequence._rng_pid = self.label_random, os.getpid()  # else it seeds one of its own
        return sequence


def get_world_chance(world: "Computer") -> WorldChance:
    chance = world.kept.get("chance")
    if chance is None:
        chance = world.kept["chance"] = WorldChance(world)
    return cast(WorldChance, chance)


def has_world_drawn_chance(world: "Computer") -> bool:
    """True if a program of the world has drawn chance of its own."""
    chance: WorldChance | None = world.kept.get("chance")
    return chance is not None and chance.has_drawn


def urandom(size: int, /) -> bytes:
    world = here.world
    return real_urandom(size) if world is None else get_world_chance(world).entropy_random.randbytes(size)


def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    """`random.Random.seed`: without a seed the real one asks the system."""
    world = here.world
    if a is None and world is not None:
        a = get_world_chance(world).entropy_random.getrandbits(256)
    real_seed(self, a, version)


def get_temp_name_candidates() -> Any:
    world = here.world
    return real_candidate_names() if world is None else get_world_chance(world).temp_file_names


def _wrap_random_method(real: Callable[..., Any], stream: Callable[[WorldChance], Any]) -> Callable[..., Any]:
    """A function that calls the same method of the world's own generator, or the real one outside."""
    name = real.__name__

    def draw_or_call_real(*args: Any, **kwargs: Any) -> Any:
        world = here.world
        return (real if world is None else getattr(stream(get_world_chance(world)), name))(*args, **kwargs)

    return draw_or_call_real


def _wrap_entropy_source(real: Callable[..., bytes]) -> Callable[..., bytes]:
    """A fake for another source of entropy; the first argument of all is the size."""

    def read_entropy(size: int, *args: Any, **kwargs: Any) -> bytes:
        return real(size, *args, **kwargs) if here.world is None else urandom(size)

    return read_entropy


def patches() -> Iterable[Patch]:
    for name, real in list(vars(random).items()):
        if getattr(real, "__self__", None) is random._inst:
            yield Patch(random, name, _wrap_random_method(real, lambda chance: chance.number_random), everywhere=True)
    yield Patch(random.Random, "seed", seed)
    yield Patch(tempfile, "_get_candidate_names", get_temp_name_candidates)
    yield Patch(os, "urandom", urandom, everywhere=True)
    if hasattr(os, "getrandom"):
        yield Patch(os, "getrandom", _wrap_entropy_source(os.getrandom), everywhere=True)
    yield Patch(ssl, "RAND_bytes", _wrap_entropy_source(ssl.RAND_bytes), everywhere=True)
    if (numpy := sys.modules.get(NUMPY)) is not None:
        for name, real in list(vars(numpy).items()):
            if getattr(real, "__self__", None) is vars(numpy).get("_rand", numpy) or name == "seed":
                yield Patch(numpy, name, _wrap_random_method(real, lambda chance: chance.numpy_random), everywhere=True)
