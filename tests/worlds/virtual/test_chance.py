"""Chance depends on a world's seed and on nothing else, and no world's draws move anybody else's."""

import os
import random
import secrets
import ssl
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import choice as choice_bound_elsewhere
from random import random as bound_elsewhere
from typing import Any

import numpy
import numpy.random.mtrand as mtrand
import pytest

from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.patch_parts import in_each, run, take_out, world

SYSTEM = (os, "urandom")
CASES: list[tuple[str, Callable[[], Any], tuple[Any, str]]] = [
    ("random", lambda: random.random(), (random, "random")),
    ("bound elsewhere", lambda: bound_elsewhere(), (random, "random")),
    ("uniform", lambda: random.uniform(0, 1e9), (random, "uniform")),
    ("choice", lambda: choice_bound_elsewhere(range(10**12)), (random, "choice")),
    ("getrandbits", lambda: random.getrandbits(64), (random, "getrandbits")),
    ("shuffle", lambda: shuffled(), (random, "shuffle")),
    ("sample", lambda: random.sample(range(10**9), 3), (random, "sample")),
    ("unseeded", lambda: random.Random().random(), (random.Random, "seed")),
    ("seeded with nothing", lambda: (random.seed(), random.random()), (random.Random, "seed")),
    ("SystemRandom", lambda: random.SystemRandom().random(), SYSTEM),
    ("urandom", lambda: os.urandom(8), SYSTEM),
    ("getrandom", lambda: os.getrandom(8, os.GRND_NONBLOCK), (os, "getrandom")),
    ("RAND_bytes", lambda: ssl.RAND_bytes(8), (ssl, "RAND_bytes")),
    ("token", lambda: secrets.token_hex(), SYSTEM),
    ("secret choice", lambda: secrets.choice(range(10**12)), SYSTEM),
    ("below", lambda: secrets.randbelow(10**12), SYSTEM),
    ("uuid4", lambda: uuid.uuid4(), SYSTEM),
    ("temporary file", lambda: tempfile.mktemp(), (tempfile, "_get_candidate_names")),
    ("numpy", lambda: numpy.random.random(), (mtrand, "random")),
    ("numpy normal", lambda: list(numpy.random.normal(size=3)), (mtrand, "normal")),
    ("numpy unseeded", lambda: numpy.random.default_rng().random(), SYSTEM),
]
REMEDIES = {f"{getattr(holder, '__name__', holder)}.{name}": (holder, name) for *_, (holder, name) in CASES}


def shuffled() -> list[int]:
    cards = list(range(52))
    random.shuffle(cards)
    return cards


def draw_all(seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """In a world of each seed: each draw in a world of its own, since one may move the next."""
    with Patches():
        return [{name: world(seed).run_program(draw) for name, draw, _ in CASES} for seed in seeds]


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    return draw_all((7, 7, 8))


@pytest.mark.parametrize("name", [name for name, *_ in CASES])
def test_each_draw_repeats_with_the_seed(name: str, drawn: list[dict[str, Any]]) -> None:
    first, again, other = (found[name] for found in drawn)
    assert first == again != other


@pytest.mark.parametrize("remedy", REMEDIES)
def test_without_its_remedy_no_draw_repeats(remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out(monkeypatch, REMEDIES[remedy])
    first, again = draw_all((7, 7))
    for name, _, needed in CASES:
        assert needed != REMEDIES[remedy] or first[name] != again[name], name


def test_a_generator_with_a_seed_of_its_own_is_left_alone() -> None:
    assert run(lambda: random.Random(3).random()) == random.Random(3).random()


def test_a_world_may_seed_its_own_chance() -> None:
    def drawn() -> tuple[float, float]:
        random.seed(3)
        numpy.random.seed(3)
        return random.random(), numpy.random.random()

    assert in_each(drawn, 7, 8) == [(random.Random(3).random(), numpy.random.RandomState(3).random())] * 2


def test_state_can_be_put_back_within_a_world() -> None:
    def drawn() -> tuple[float, float]:
        state = random.getstate()
        first = random.random()
        random.setstate(state)
        return first, random.random()

    first, again = run(drawn)
    assert first == again


@contextmanager
def unmoved() -> Iterator[None]:
    before, of_numpy = random.getstate(), numpy.random.get_state()[1].tobytes()  # type: ignore[index]
    yield
    assert random.getstate() == before
    assert numpy.random.get_state()[1].tobytes() == of_numpy  # type: ignore[index]


def test_the_processs_own_chance_is_neither_drawn_from_nor_seeded() -> None:
    def work() -> None:
        random.seed(1)
        numpy.random.seed(1)
        random.random()
        numpy.random.random()

    with unmoved():
        run(work)


def test_a_thread_beside_the_world_draws_what_it_would_have_drawn() -> None:
    numbers = random.Random(5)
    expected = [numbers.random() for _ in range(100)]
    random.seed(5)
    found: list[float] = []

    def beside() -> None:
        found.extend(random.random() for _ in range(100))

    with Patches():
        real = threading.Thread(target=beside)
        real.start()
        world().run_program(lambda: [random.random() for _ in range(1000)])
        real.join()
    assert found == expected


def test_one_id_more_moves_no_jitter() -> None:
    assert run(lambda: random.random()) == run(lambda: (uuid.uuid4(), random.random())[1])
