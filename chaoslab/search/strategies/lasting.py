"""Each fault at every attempt of a target, from its first call until the trial ends: what retries cannot outlast."""

from collections.abc import Iterator

from chaoslab.search.strategies.singles import adapt_delays_to_timeouts
from chaoslab.search.variation import SearchKnowledge, Variation


def batches(knowledge: SearchKnowledge) -> Iterator[list[Variation]]:
    for site in knowledge.calm.first_site_per_target:
        knowledge.freeze_timeouts(site.target)
    variations = [
        Variation((adapted.make_injection(site, lasts=True),))
        for site in knowledge.calm.first_site_per_target
        for probe in knowledge.probes.get(site.target, ())
        for adapted in adapt_delays_to_timeouts(knowledge, probe, site.target)
    ]
    if variations:
        yield variations
