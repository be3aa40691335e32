"""Named dice: a draw depends on its names and on nothing that was drawn before. With a shared stream every draw would
depend on all earlier ones. Then taking one fault out of a plan would change all others, and no failure could be shrunk.
Here the seed and the names are hashed, and the hash seeds the draw."""

from __future__ import annotations

import _random
import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def draw_uniform(*names: object) -> float:
    """The number in [0, 1) that `Dice(*names).uniform()` gives first: most dice are thrown once."""
    return _random.Random(_make_seed(names)).random()


def _make_seed(names: Sequence[object]) -> int:
    # A sign that no name has, so that ("a", "b") and ("ab",) are different dice.
    text = "\x1f".join(map(str, names))
    # surrogatepass: a name may come from a file or a model, with half a surrogate pair in it.
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")


class Dice:
    """Draws under one name; `dice("latency", 3)` is the dice of a longer name."""

    __slots__ = ("_bare", "_name")

    def __init__(self, *names: object) -> None:
        """Makes the dice of these names. The first is the seed."""
        self._name = names
        self._bare: _random.Random | None = None

    def __call__(self, *names: object) -> Dice:
        return Dice(*self._name, *names)

    def make_generator(self) -> random.Random:
        """A new random generator under this name, for code that is not ours. It always begins in the same state."""
        return random.Random(_make_seed(self._name))

    def uniform(self) -> float:
        """The next number in [0, 1) under this name."""
        # as `make_generator`, without the cost of other distributions: most dice are thrown once
        if self._bare is None:
            self._bare = _random.Random(_make_seed(self._name))
        return self._bare.random()

    def draw_between(self, low: float, high: float) -> float:
        return low + (high - low) * self.uniform()

    def draw_bool(self, chance: float) -> bool:
        """True with the given chance (0–1); never at 0, always at 1."""
        return self.uniform() < chance

    def pick(self, options: Sequence[T], weights: Sequence[float] | None = None) -> T:
        """One of the options, by weight (equal by default)."""
        if not options:
            raise ValueError("nothing to pick from")
        if weights is None:
            weights = [1.0] * len(options)
        point = self.uniform() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            point -= weight
            if point < 0:
                return option
        # Rounding may leave a rest behind the last one.
        return options[-1]
