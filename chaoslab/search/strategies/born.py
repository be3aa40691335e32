"""Faults at the calls that a fault brought up: a retry, a fallback, another path.

What a fault brings up behind harm or a failure shows nothing new, and is left out. A call may be brought up by many
faults. It is explored once for each number of effects that the world has when it is made, beside the first faults that
bring it up, so a retry after work that was done is not taken for one after none.
"""

from collections.abc import Iterator

from chaoslab.search.strategies.singles import at_sites
from chaoslab.search.variation import NO_WAY_ON, Known, Site, Variation, lasting

DEPTH = 3
"""The most faults of one trial."""


def batches(known: Known) -> Iterator[list[Variation]]:
    done: set[tuple[Site, int]] = set()
    for depth in range(1, DEPTH):
        places = []
        for tried in [*known.tried.values()]:
            own = tried.variation
            if len(own.injections) != depth or own.order is not None or any(map(lasting, own.injections)):
                continue
            if tried.outcome in NO_WAY_ON:
                continue
            # the attempts that neither the trial without faults nor the trial with one fault less makes
            *before, _ = tried.variation.injections
            parent = known.of(Variation(tuple(before)))
            old = {*known.calm.sites, *(parent.sites if parent is not None else ())}
            for site in [site for site in tried.sites if site not in old]:
                # the number of effects in the world when this attempt began
                state = (site, next(made.effects for made in tried.made if made.site == site))
                if state not in done:
                    done.add(state)
                    places.append((tried.variation.injections, site))
        yield from at_sites(known, places)
