"""Two faults at two calls, led by what each did alone.

A pair can only find something new if the second call is still made under the first fault. Of the faults that their
caller sees as one kind at one call, one stands for all (`_seen_kinds`), so that there are few enough pairs to try all
of them. Pairs whose faults alone changed most come first, those of which one alone gave a wrong answer and did no harm
last. Then come some pairs of faults of one kind that led the trial another way. Before all pairs, the faults that were
survived alone are tried together, one at each call: if that fails in a new way, it is shrunk to the few that it takes,
in fewer trials than there are pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from chaoslab.core.plan import Injection
from chaoslab.search._seen_kinds import classify_what_caller_saw
from chaoslab.search.variation import NO_WAY_ON, SearchKnowledge, Site, TriedVariation, Variation, get_injection_site

BATCH = 64
"""The pairs of one round: the next is chosen by what came of them."""


FAILED = 100.0
FURTHER = 200
"""The most pairs of faults that are alike in kind to others that were paired, and led the trial another way."""


@dataclass(frozen=True)
class One:
    """A fault that stands for those of its kind at its call. `weight`: the size of what it changed, from 0."""

    tried: TriedVariation
    injection: Injection
    site: Site
    kind: str
    weight: float


Pair = tuple[One, One]


def batches(knowledge: SearchKnowledge) -> Iterator[list[Variation]]:
    survivors = _find_survived_faults(knowledge)
    strongest = {
        survivor.site: survivor
        for survivor in sorted(survivors, key=lambda survivor: survivor.weight)
        if not survivor.tried.failed
    }
    if len(strongest) > 2:
        yield [Variation(tuple(strongest[site].injection for site in sorted(strongest)))]
    for pairs in (list_pairs_by_kind(knowledge), _list_further_pairs_per_kind(survivors)):
        for begin in range(0, len(pairs), BATCH):
            yield [build_pair_variation(pair) for pair in pairs[begin : begin + BATCH]]


def list_pairs_by_kind(knowledge: SearchKnowledge) -> list[Pair]:
    """All pairs of calls with all pairs of kinds, those whose faults alone changed most first."""
    return _pair_survived_faults(_pick_first_fault_per_kind(_find_survived_faults(knowledge)))


def _list_further_pairs_per_kind(survivors: Sequence[One]) -> list[Pair]:
    """Further pairs of faults of one kind that led the trial another way, up to a number."""
    first = {*map(id, _pick_first_fault_per_kind(survivors))}
    return [pair for pair in _pair_survived_faults(survivors) if not first.issuperset(map(id, pair))][:FURTHER]


def _pick_first_fault_per_kind(survivors: Sequence[One]) -> list[One]:
    # Backwards, so that of each kind the first one stays in the dict, and then in the old order again.
    return [*{(survivor.site, survivor.kind): survivor for survivor in reversed(survivors)}.values()][::-1]


def build_pair_variation(pair: Pair) -> Variation:
    return Variation((pair[0].injection, pair[1].injection))


def _find_survived_faults(knowledge: SearchKnowledge) -> list[One]:
    """The faults that hit alone and did not end the trial, one for each way at each call."""
    survivors: dict[tuple[Site, str, str], One] = {}
    for tried, injection in knowledge.list_single_fault_trials():
        site = get_injection_site(injection)
        if tried.outcome in NO_WAY_ON or not tried.met or site not in knowledge.calm.attempt_sites:
            continue
        kind, weight = (
            classify_what_caller_saw(tried, injection),
            _measure_trial_change(knowledge.calm, tried) - FAILED * tried.failed,
        )
        survivors.setdefault((site, kind, tried.path_digest), One(tried, injection, site, kind, weight))
    order = {site: n for n, site in enumerate(knowledge.calm.attempt_sites)}
    return sorted(
        survivors.values(), key=lambda survivor: order[survivor.site]
    )  # causes read in the order of the calls


def _pair_survived_faults(survivors: Sequence[One]) -> list[Pair]:
    pairs = [
        (first, second)
        for first, second in combinations(survivors, 2)
        if first.site != second.site
        and (second.site in first.tried.attempt_sites or first.site in second.tried.attempt_sites)
    ]
    return sorted(pairs, key=lambda pair: -(pair[0].weight + pair[1].weight))  # stable: else in the order of the calls


def _measure_trial_change(calm: TriedVariation, tried: TriedVariation) -> float:
    """2 for another outcome or other effects, 1 for other calls, and a share of 1 for attempts that failed."""
    failed = sum(bool(call.error) for call in tried.made)
    return (
        2.0 * (tried.world != calm.world)
        + 1.0 * (tried.attempt_sites != calm.attempt_sites)
        + failed / (1 + len(tried.made))
    )
