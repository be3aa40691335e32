"""Plans by dice: two to four faults at calls of the trial without faults. They end when many in a row show no failure
of a new kind."""

from collections.abc import Iterator

from chaoslab.base.dice import Dice
from chaoslab.search.map import group_alike_failures
from chaoslab.search.variation import Probe, SearchKnowledge, Site, Variation

BATCH, IN_VAIN = 50, 100
"""The plans of one round, and those in a row that show nothing new before it ends."""
FAULTS = (2, 3, 4)


def batches(knowledge: SearchKnowledge) -> Iterator[list[Variation]]:
    cells = [(site, probe) for site in knowledge.calm.attempt_sites for probe in knowledge.probes.get(site.target, ())]
    if len({site for site, _ in cells}) < FAULTS[0]:
        return
    n = vain = 0
    group_count = len(group_alike_failures([*knowledge.tried.values()]))
    while vain < IN_VAIN:
        drawn = [_draw_plan(Dice(knowledge.seed, "plans", number), cells) for number in range(n, n + BATCH)]
        n += BATCH
        new = [
            variation
            for variation in {variation.key: variation for variation in drawn}.values()
            if knowledge.find_trial(variation) is None
        ]
        if not new:
            return
        yield new
        before, group_count = group_count, len(group_alike_failures([*knowledge.tried.values()]))
        vain = 0 if group_count > before else vain + len(new)


def _draw_plan(dice: Dice, cells: list[tuple[Site, Probe]]) -> Variation:
    chosen: dict[Site, Probe] = {}
    for n in range(dice("size").pick(FAULTS)):
        site, probe = dice(n).pick(cells)
        chosen.setdefault(site, probe)
    return Variation(tuple(probe.make_injection(site) for site, probe in sorted(chosen.items())))
