"""Each fault at each attempt of the trial without faults, the most dangerous first. Delays come after errors, which
tell when a caller gives up: each is tried on both sides of that."""

from collections.abc import Iterator, Sequence
from itertools import product
from operator import itemgetter

from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.plan import Injection
from chaoslab.search._danger import Danger, is_tried_first, rank_danger
from chaoslab.search.variation import Probe, SearchKnowledge, Site, Variation

AROUND = (0.5, 1.5)
"""The doses of a delay, as shares of each timeout of its caller: one that it waits for, one that it does not."""
LATE_S = (1.0, 10.0, 60.0, 600.0)
"""The doses of a delay where no caller gives up, in seconds."""


def batches(knowledge: SearchKnowledge) -> Iterator[list[Variation]]:
    yield from batch_faults_at_sites(knowledge, [((), site) for site in knowledge.calm.attempt_sites])


def batch_faults_at_sites(
    knowledge: SearchKnowledge, places: Sequence[tuple[tuple[Injection, ...], Site]]
) -> Iterator[list[Variation]]:
    """Each fault at each of these attempts, beside the injections that bring it up; the most dangerous first, the
    common ones of all kinds before the others, and each at every call before the next."""
    stages = ((Danger.UNCLEAR, Danger.ERROR), (Danger.LATE,), (Danger.CONTENT, Danger.UNNOTICEABLE))
    for first, stage in product((True, False), stages):
        for target in {site.target for _, site in places} if Danger.LATE in stage else ():
            knowledge.freeze_timeouts(target)
        ranked = [
            (
                (rank_danger(probe.fault, acts=acts), rank_danger(probe.fault), adapted.label, not acts),
                adapted,
                before,
                site,
            )
            for before, site in places
            for acts in [site in knowledge.sites_with_effects]
            for probe in knowledge.probes.get(site.target, ())
            if is_tried_first(probe.fault) is first and rank_danger(probe.fault, acts=acts) in stage
            for adapted in adapt_delays_to_timeouts(knowledge, probe, site.target)
        ]
        if ranked:
            yield [
                Variation((*before, adapted.make_injection(site)))
                for _, adapted, before, site in sorted(ranked, key=itemgetter(0))
            ]


def adapt_delays_to_timeouts(knowledge: SearchKnowledge, probe: Probe, target: str) -> list[Probe]:
    """A delay on both sides of each timeout of the target's callers, or of several lengths if none gives up. Any other
    fault as it is."""
    dose = get_trait(load_fault(probe.fault), "dose")
    if not dose:
        return [probe]
    timeouts_s = knowledge.get_timeouts_s(target)
    doses = {round(timeout_s * share, 3) for timeout_s in timeouts_s for share in AROUND} or LATE_S
    return [
        Probe(probe.fault, (*probe.params, (dose, dose_s))) for dose_s in sorted(doses) if dose_s <= knowledge.longest_s
    ]
