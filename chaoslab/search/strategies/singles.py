"""Each fault at each attempt of the trial without faults, the most dangerous first. Delays come after errors, which
tell when a caller gives up: each is tried on both sides of that."""

from collections.abc import Iterator, Sequence
from itertools import product
from operator import itemgetter

from chaoslab.core.fault import load, trait
from chaoslab.core.plan import Injection
from chaoslab.search._danger import Danger, comes_first, danger
from chaoslab.search.variation import Known, Probe, Site, Variation

AROUND = (0.5, 1.5)
"""The doses of a delay, as shares of each timeout of its caller: one that it waits for, one that it does not."""
LATE_S = (1.0, 10.0, 60.0, 600.0)
"""The doses of a delay where no caller gives up, in seconds."""


def batches(known: Known) -> Iterator[list[Variation]]:
    yield from at_sites(known, [((), site) for site in known.calm.sites])


def at_sites(known: Known, places: Sequence[tuple[tuple[Injection, ...], Site]]) -> Iterator[list[Variation]]:
    """Each fault at each of these attempts, beside the injections that bring it up; the most dangerous first, the
    common ones of all kinds before the others, and each at every call before the next."""
    stages = ((Danger.UNCLEAR, Danger.ERROR), (Danger.LATE,), (Danger.CONTENT, Danger.UNNOTICEABLE))
    for first, stage in product((True, False), stages):
        for target in {site.target for _, site in places} if Danger.LATE in stage else ():
            known.settle_timeouts(target)
        found = [
            ((danger(probe.fault, acts=acts), danger(probe.fault), each.label, not acts), each, before, site)
            for before, site in places
            for acts in [site in known.acting]
            for probe in known.probes.get(site.target, ())
            if comes_first(probe.fault) is first and danger(probe.fault, acts=acts) in stage
            for each in of_timeout(known, probe, site.target)
        ]
        if found:
            yield [Variation((*before, each.at(site))) for _, each, before, site in sorted(found, key=itemgetter(0))]


def of_timeout(known: Known, probe: Probe, target: str) -> list[Probe]:
    """A delay on both sides of each timeout of the target's callers, or of several lengths if none gives up. Any other
    fault as it is."""
    dose = trait(load(probe.fault), "dose")
    if not dose:
        return [probe]
    timeouts_s = known.timeouts_s(target)
    doses = {round(timeout_s * share, 3) for timeout_s in timeouts_s for share in AROUND} or LATE_S
    return [
        Probe(probe.fault, (*probe.params, (dose, dose_s))) for dose_s in sorted(doses) if dose_s <= known.longest_s
    ]
