"""Each fault at each attempt of the trial without faults. Delays come second, since the first round tells when a caller
gives up: each is tried on both sides of that."""

from collections.abc import Iterator, Sequence

from chaoslab.core.fault import load, trait
from chaoslab.core.plan import Injection
from chaoslab.search.probes import dosed
from chaoslab.search.variation import Known, Probe, Site, Variation


def batches(known: Known) -> Iterator[list[Variation]]:
    yield from at_sites(known, [((), site) for site in known.calm.sites])


def at_sites(known: Known, places: Sequence[tuple[tuple[Injection, ...], Site]]) -> Iterator[list[Variation]]:
    """Each fault at each of these attempts, beside the injections that bring it up."""

    def with_probe(before: tuple[Injection, ...], probe: Probe, site: Site) -> Variation:
        return Variation((*before, probe.at(site)))

    fixed = [
        with_probe(before, probe, site)
        for before, site in places
        for probe in known.probes.get(site.target, ())
        if not trait(load(probe.fault), "dose")
    ]
    if fixed:
        yield fixed
    delays = [
        with_probe(before, each, site)
        for before, site in places
        for probe in known.probes.get(site.target, ())
        if trait(load(probe.fault), "dose")
        for each in of_timeout(known, probe, site.target)
    ]
    if delays:
        yield delays


def of_timeout(known: Known, probe: Probe, target: str) -> list[Probe]:
    """A delay on both sides of the timeout of the target's caller; as it is if none is known."""
    timeout_s = known.timeout_s(target)
    return [probe] if timeout_s is None else dosed(probe, timeout_s)
