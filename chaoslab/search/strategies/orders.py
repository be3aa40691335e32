"""Orders of calls that were made at the same moment: one swap at a time, then orders that dice draw."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from chaoslab.base.dice import Dice
from chaoslab.search.variation import SearchKnowledge, Variation

DRAWN = 100
"""The orders that are drawn by dice."""


def batches(knowledge: SearchKnowledge) -> Iterator[list[Variation]]:
    unordered = Variation(order=())
    yield [unordered]
    trial = knowledge.find_trial(unordered)
    if trial is None or not trial.moments:
        return
    swaps = []
    for moment, calls in enumerate(trial.moments, 1):
        for first, second in combinations(range(len(calls)), 2):
            names = list(calls)
            names[first], names[second] = names[second], names[first]
            swaps.append(Variation(order=((moment, tuple(names)),)))
    yield swaps
    drawn = [Variation(order=_draw_order(Dice(knowledge.seed, "orders", n), trial.moments)) for n in range(DRAWN)]
    yield drawn


def _draw_order(dice: Dice, moments: Sequence[Sequence[str]]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    return tuple(
        (moment, tuple(sorted(calls, key=lambda name, moment=moment: dice(moment, name).uniform())))  # type: ignore[misc]
        for moment, calls in enumerate(moments, 1)
    )
