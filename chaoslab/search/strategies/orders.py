"""Orders of calls that were made at the same moment: one swap at a time, then orders that dice draw."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from chaoslab.base.dice import Dice
from chaoslab.search.variation import Known, Variation

DRAWN = 100
"""The orders that are drawn by dice."""


def batches(known: Known) -> Iterator[list[Variation]]:
    asked = Variation(order=())
    yield [asked]
    told = known.of(asked)
    if told is None or not told.moments:
        return
    swaps = []
    for moment, calls in enumerate(told.moments, 1):
        for one, other in combinations(range(len(calls)), 2):
            names = list(calls)
            names[one], names[other] = names[other], names[one]
            swaps.append(Variation(order=((moment, tuple(names)),)))
    yield swaps
    drawn = [Variation(order=_drawn(Dice(known.seed, "orders", n), told.moments)) for n in range(DRAWN)]
    yield drawn


def _drawn(dice: Dice, moments: Sequence[Sequence[str]]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    return tuple(
        (moment, tuple(sorted(calls, key=lambda name, moment=moment: dice(moment, name).uniform())))  # type: ignore[misc]
        for moment, calls in enumerate(moments, 1)
    )
