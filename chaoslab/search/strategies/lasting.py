"""Each fault at every attempt of a target, from its first call until the trial ends: what retries cannot outlast."""

from collections.abc import Iterator

from chaoslab.search.strategies.singles import of_timeout
from chaoslab.search.variation import Known, Variation


def batches(known: Known) -> Iterator[list[Variation]]:
    for site in known.calm.first_sites:
        known.settle_timeouts(site.target)
    found = [
        Variation((each.at(site, lasts=True),))
        for site in known.calm.first_sites
        for probe in known.probes.get(site.target, ())
        for each in of_timeout(known, probe, site.target)
    ]
    if found:
        yield found
