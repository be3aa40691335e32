"""Two faults at two calls, led by what each did alone.

A pair can only find something new if the second call is still made under the first fault. Of the faults that their
caller sees as one kind at one call, one stands for all (`_seen_kinds`), so that there are few enough pairs to try all
of them. Pairs whose faults alone changed most come first, those of which one alone gave a wrong answer and did no harm
last. Then come some pairs of faults of one kind that led the trial another way. Before all pairs, the faults that were
survived alone are tried together, one at each call: if that fails in a new way, it is shrunk to the few that it takes,
in fewer trials than there are pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from chaoslab.core.plan import Injection
from chaoslab.search._seen_kinds import seen_kind
from chaoslab.search.variation import NO_WAY_ON, Known, Site, Tried, Variation, site_of

BATCH = 64
"""The pairs of one round: the next is chosen by what came of them."""


FAILED = 100.0
FURTHER = 200
"""The most pairs of faults that are alike in kind to others that were paired, and led the trial another way."""


@dataclass(frozen=True)
class One:
    """A fault that stands for those of its kind at its call. `weight`: the size of what it changed, from 0."""

    tried: Tried
    injection: Injection
    site: Site
    kind: str
    weight: float


Pair = tuple[One, One]


def batches(known: Known) -> Iterator[list[Variation]]:
    found = _survived(known)
    most = {one.site: one for one in sorted(found, key=lambda one: one.weight) if not one.tried.failed}
    if len(most) > 2:
        yield [Variation(tuple(most[site].injection for site in sorted(most)))]
    for pairs in (by_kind(known), _by_way(found)):
        for begin in range(0, len(pairs), BATCH):
            yield [of_pair(pair) for pair in pairs[begin : begin + BATCH]]


def by_kind(known: Known) -> list[Pair]:
    """All pairs of calls with all pairs of kinds, those whose faults alone changed most first."""
    return _pairs(_first_of_kind(_survived(known)))


def _by_way(found: Sequence[One]) -> list[Pair]:
    """Further pairs of faults of one kind that led the trial another way, up to a number."""
    first = {*map(id, _first_of_kind(found))}
    return [pair for pair in _pairs(found) if not first.issuperset(map(id, pair))][:FURTHER]


def _first_of_kind(found: Sequence[One]) -> list[One]:
    return [*{(one.site, one.kind): one for one in reversed(found)}.values()][::-1]


def of_pair(pair: Pair) -> Variation:
    return Variation((pair[0].injection, pair[1].injection))


def _survived(known: Known) -> list[One]:
    """The faults that hit alone and did not end the trial, one for each way at each call."""
    found: dict[tuple[Site, str, str], One] = {}
    for tried, injection in known.singles():
        site = site_of(injection)
        if tried.outcome in NO_WAY_ON or not tried.met or site not in known.calm.sites:
            continue
        kind, weight = seen_kind(tried, injection), _changed(known.calm, tried) - FAILED * tried.failed
        found.setdefault((site, kind, tried.path), One(tried, injection, site, kind, weight))
    order = {site: n for n, site in enumerate(known.calm.sites)}
    return sorted(found.values(), key=lambda one: order[one.site])  # causes read in the order of the calls


def _pairs(found: Sequence[One]) -> list[Pair]:
    pairs = [
        (one, other)
        for one, other in combinations(found, 2)
        if one.site != other.site and (other.site in one.tried.sites or one.site in other.tried.sites)
    ]
    return sorted(pairs, key=lambda pair: -(pair[0].weight + pair[1].weight))  # stable: else in the order of the calls


def _changed(calm: Tried, tried: Tried) -> float:
    """2 for another outcome or other effects, 1 for other calls, and a share of 1 for attempts that failed."""
    failed = sum(bool(made.error) for made in tried.made)
    return 2.0 * (tried.world != calm.world) + 1.0 * (tried.sites != calm.sites) + failed / (1 + len(tried.made))
