"""Each fault at each attempt of the trial without faults. Delays come second, since the first round tells when a caller
gives up: each is tried on both sides of that."""

from collections.abc import Iterator, Sequence

from chaoslab.core.fault import load, trait
from chaoslab.core.plan import Injection
from chaoslab.search.variation import Known, Probe, Site, Variation

AROUND = (0.5, 1.5)
"""The doses of a delay, as shares of the timeout of its caller: one that it waits for, one that it does not."""


def batches(known: Known) -> Iterator[list[Variation]]:
    yield from at_sites(known, [((), site) for site in known.calm.sites])


def at_sites(known: Known, places: Sequence[tuple[tuple[Injection, ...], Site]]) -> Iterator[list[Variation]]:
    """Each fault at each of these attempts, beside the injections that bring it up."""

    for delays in (False, True):
        found = [
            Variation((*before, each.at(site)))
            for before, site in places
            for probe in known.probes.get(site.target, ())
            if bool(trait(load(probe.fault), "dose")) is delays
            for each in of_timeout(known, probe, site.target)
        ]
        if found:
            yield found


def of_timeout(known: Known, probe: Probe, target: str) -> list[Probe]:
    """A delay on both sides of the timeout of the target's caller; as it is if none is known. So is any other fault."""
    timeout_s, dose = known.timeout_s(target), trait(load(probe.fault), "dose")
    if timeout_s is None or not dose:
        return [probe]
    return [Probe(probe.fault, (*probe.params, (dose, round(timeout_s * share, 3)))) for share in AROUND]
