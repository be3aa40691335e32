"""Two faults at two calls, led by what each did alone.

A pair can only find something new if the second call is still made under the first fault. Pairs of faults that were
survived alone come first, then those of which one alone gave a wrong answer and did no harm. Faults that lead a trial
along the same way at one call are alike: one stands for all. Before all pairs, the faults that were survived alone are
tried together, one at each call: if that fails in a new way, it is shrunk to the few that it takes, in fewer trials
than there are pairs. Pairs whose faults alone changed most come first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from chaoslab.core.plan import Injection
from chaoslab.search.variation import LOST, Known, Site, Tried, Variation, site_of

BATCH = 64
"""The pairs of one round: the next is chosen by what came of them."""


FAILED = 100.0


@dataclass(frozen=True)
class _One:
    tried: Tried
    injection: Injection
    site: Site
    weight: float
    """The size of what it changed, from 0."""


def batches(known: Known) -> Iterator[list[Variation]]:
    found: dict[tuple[Site, str], _One] = {}
    for tried, injection in known.singles():
        site = site_of(injection)
        if tried.outcome in LOST or tried.void or not tried.met or site not in known.calm.sites:
            continue
        weight = _changed(known.calm, tried) - FAILED * tried.failed
        found.setdefault((site, tried.path), _One(tried, injection, site, weight))
    most = {one.site: one for one in sorted(found.values(), key=lambda one: one.weight) if not one.tried.failed}
    if len(most) > 2:
        yield [Variation(tuple(most[site].injection for site in sorted(most)))]
    pairs = [
        (one, other)
        for one, other in combinations(found.values(), 2)
        if one.site != other.site and (other.site in one.tried.sites or one.site in other.tried.sites)
    ]
    pairs.sort(key=lambda pair: -(pair[0].weight + pair[1].weight))  # stable: else in the order of the calls
    for begin in range(0, len(pairs), BATCH):
        yield [Variation((one.injection, other.injection)) for one, other in pairs[begin : begin + BATCH]]


def _changed(calm: Tried, tried: Tried) -> float:
    """2 for another outcome or other effects, 1 for other calls, and a share of 1 for attempts that failed."""
    failed = sum(bool(made.error) for made in tried.made)
    return 2.0 * (tried.world != calm.world) + 1.0 * (tried.sites != calm.sites) + failed / (1 + len(tried.made))
