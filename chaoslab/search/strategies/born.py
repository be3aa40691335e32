"""Faults at the calls that a fault brought up: a retry, a fallback, another path.

What a fault brings up behind harm or a failure shows nothing new, and is left out. A call may be brought up by many
faults. It is explored once for each number of effects that the world has when it is made, beside the first faults that
bring it up, so a retry after work that was done is not taken for one after none.
"""

from collections.abc import Iterator

from chaoslab.search.strategies.singles import batch_faults_at_sites
from chaoslab.search.variation import NO_WAY_ON, SearchKnowledge, Site, Variation, is_lasting_injection

DEPTH = 3
"""The most faults of one trial."""


def batches(knowledge: SearchKnowledge) -> Iterator[list[Variation]]:
    tried_states: set[tuple[Site, int]] = set()
    for depth in range(1, DEPTH):
        places = []
        for tried in [*knowledge.tried.values()]:
            variation = tried.variation
            if (
                len(variation.injections) != depth
                or variation.order is not None
                or any(map(is_lasting_injection, variation.injections))
            ):
                continue
            if tried.outcome in NO_WAY_ON:
                continue
            # the attempts that neither the trial without faults nor the trial with one fault less makes
            *before, _ = tried.variation.injections
            parent = knowledge.find_trial(Variation(tuple(before)))
            old = {*knowledge.calm.attempt_sites, *(parent.attempt_sites if parent is not None else ())}
            for site in [site for site in tried.attempt_sites if site not in old]:
                # the number of effects in the world when this attempt began
                state = (site, next(call.effects for call in tried.made if call.site == site))
                if state not in tried_states:
                    tried_states.add(state)
                    places.append((tried.variation.injections, site))
        yield from batch_faults_at_sites(knowledge, places)
