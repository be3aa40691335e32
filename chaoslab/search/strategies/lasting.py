"""Each fault at every attempt of a target, from its first call until the trial ends: what retries cannot outlast."""

from collections.abc import Iterator

from chaoslab.search.strategies.singles import adapt_to_timeouts
from chaoslab.search.variation import Known, Variation


def batches(knowledge: Known) -> Iterator[list[Variation]]:
    for site in knowledge.calm.first_sites:
        knowledge.settle_timeouts(site.target)
    variations = [
        Variation((adapted.at(site, lasts=True),))
        for site in knowledge.calm.first_sites
        for probe in knowledge.probes.get(site.target, ())
        for adapted in adapt_to_timeouts(knowledge, probe, site.target)
    ]
    if variations:
        yield variations
