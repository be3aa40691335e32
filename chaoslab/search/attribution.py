"""The part of a plan that brought its failure about: Shapley values over injections, or over the calls that they hit.

A coalition's worth is 1 if the trial with these injections alone fails alike, else 0, so the values add up to 1 (L. S.
Shapley, A value for n-person games, 1953). Up to `EXACT` players they are exact; above, the mean over permutations that
dice draw (J. Castro et al., Computers & Operations Research 36, 2009), with a 95 % interval (normal approximation).
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial, sqrt
from statistics import fmean, pstdev

from chaoslab.base.dice import Dice
from chaoslab.core.plan import Injection
from chaoslab.search.variation import Variation, site_of

EXACT = 8
"""The most players whose values are exact: 256 coalitions."""
PERMUTATIONS = 100
MOST = 40
"""The most injections whose shares are told: more take thousands of trials."""
Z = 1.96


@dataclass(frozen=True)
class Share:
    """A player's share of a failure, from 0 to 1. `low`, `high`: the 95 % interval; the value itself if it is exact."""

    name: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = "" if self.low == self.high else f" ({self.low:.0%}–{self.high:.0%})"
        return f"{self.name}: {self.value:.0%}{interval}"


Ask = Generator[Variation, bool, list[Share]]


def share_over_injections(failing: Variation, *, seed: int = 0) -> Ask:
    """The share of each injection. It yields variations, and is sent True for one that fails alike."""
    players = [
        (f"{injection.choices[0].fault} at {site_of(injection)}", (injection,)) for injection in failing.injections
    ]
    return (yield from _compute_shares(failing, players, seed))


def share_over_calls(failing: Variation, *, seed: int = 0) -> Ask:
    """The share of each call, with all faults that hit it."""
    calls: dict[str, list[Injection]] = {}
    for injection in failing.injections:
        site = site_of(injection)
        calls.setdefault(f"{site.target} {site.request}", []).append(injection)
    return (
        yield from _compute_shares(failing, [(name, tuple(injections)) for name, injections in calls.items()], seed)
    )


def _compute_shares(failing: Variation, players: Sequence[tuple[str, tuple[Injection, ...]]], seed: int) -> Ask:
    worths: dict[frozenset[int], bool] = {frozenset(): False, frozenset(range(len(players))): True}

    def worth(coalition: frozenset[int]) -> Generator[Variation, bool, float]:
        if coalition not in worths:
            chosen_ones = [injection for n in coalition for injection in players[n][1]]
            injections = tuple(injection for injection in failing.injections if injection in chosen_ones)
            worths[coalition] = yield replace(failing, injections=injections)
        return float(worths[coalition])

    size, shares = len(players), list[Share]()
    if size <= EXACT:
        for player in range(size):
            rest, value = [n for n in range(size) if n != player], 0.0
            for count in range(size):
                # Shapley's weight: the share of all orders in which the player comes right after these others.
                weight = factorial(count) * factorial(size - count - 1) / factorial(size)
                for chosen in combinations(rest, count):
                    without = frozenset(chosen)
                    value += weight * ((yield from worth(without | {player})) - (yield from worth(without)))
            shares.append(Share(players[player][0], value, value, value))
        return _sort_shares(shares)
    gains: list[list[float]] = [[] for _ in players]
    for number in range(PERMUTATIONS):
        dice, before = Dice(seed, "permutations", number), frozenset[int]()
        # Beyond a few players all subsets are too many trials: random orders estimate the same value.
        for player in sorted(range(size), key=lambda n: dice(n).uniform()):
            gain = (yield from worth(before | {player})) - (yield from worth(before))
            gains[player].append(gain)
            before |= {player}
    for (name, _), player_gains in zip(players, gains, strict=True):
        mean, half = fmean(player_gains), Z * pstdev(player_gains) / sqrt(len(player_gains))
        shares.append(Share(name, mean, mean - half, mean + half))
    return _sort_shares(shares)


def _sort_shares(shares: list[Share]) -> list[Share]:
    return sorted(shares, key=lambda share: -share.value)
