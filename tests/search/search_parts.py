"""A made-up agent for strategies: a function tells what came of each variation, without any trial."""

from collections.abc import Callable, Mapping, Sequence

from chaoslab.core.plan import Injection
from chaoslab.search import strategies
from chaoslab.search.variation import Made, Order, Probe, SearchKnowledge, Site, TriedVariation, Variation

A, B, C = Site("a", 1), Site("b", 1), Site("c", 1)
ERROR, RESET = Probe("exception"), Probe("rate_limit")
PROBES = {name: [ERROR, RESET] for name in ("a", "b", "c")}
Came = Callable[[Variation], TriedVariation]


def at(*sites: Site, probe: Probe = ERROR, order: Order | None = None) -> Variation:
    return Variation(tuple(probe.make_injection(site) for site in sites), order)


def tried(
    variation: Variation,
    outcome: str = "correct",
    *,
    sites: Sequence[Site] = (A, B, C),
    number: int = 0,
    by: str = "singles",
    effects: Mapping[Site, int] | None = None,
    moments: Sequence[tuple[str, ...]] = (),
    world: str = "",
) -> TriedVariation:
    hit = {injection.name for injection in variation.injections}
    made = tuple(Made(site, effects=(effects or {}).get(site, 0)) for site in sites)
    failed = outcome not in ("correct", "degraded", "unknown", "invalid")
    return TriedVariation(
        number, variation, by, outcome, failed, outcome, outcome, tuple(hit), made, tuple(moments), world
    )


def searched(
    came: Came, by: Sequence[str], probes: Mapping[str, Sequence[Probe]] = PROBES, *, seed: int = 1
) -> tuple[SearchKnowledge, list[Variation]]:
    """The knowledge after these strategies, and what they asked for, in order."""
    known, asked = SearchKnowledge(came(Variation()), probes, seed=seed), list[Variation]()
    for name in by:
        for batch in strategies.load_strategy(name)(known):
            for variation in {each.key: each for each in batch if known.find_trial(each) is None}.values():
                asked.append(variation)
                known.add_trial(came(variation))
    return known, asked


def places(variation: Variation) -> list[str]:
    return [place(injection) for injection in variation.injections]


def place(injection: Injection) -> str:
    return f"{injection.targets[0]} {injection.calls[0]}/{injection.triggers.get('attempts', [1])[0]}"
