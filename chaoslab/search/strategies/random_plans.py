"""Plans by dice: two to four faults at calls of the trial without faults. They end when many in a row show no failure
of a new kind."""

from collections.abc import Iterator

from chaoslab.base.dice import Dice
from chaoslab.search.map import alike
from chaoslab.search.variation import Known, Probe, Site, Variation

BATCH, IN_VAIN = 50, 100
"""The plans of one round, and those in a row that show nothing new before it ends."""
FAULTS = (2, 3, 4)


def batches(known: Known) -> Iterator[list[Variation]]:
    cells = [(site, probe) for site in known.calm.sites for probe in known.probes.get(site.target, ())]
    if len({site for site, _ in cells}) < FAULTS[0]:
        return
    n = vain = 0
    shown = len(alike([*known.tried.values()]))
    while vain < IN_VAIN:
        drawn = [_plan(Dice(known.seed, "plans", number), cells) for number in range(n, n + BATCH)]
        n += BATCH
        new = [each for each in {each.key: each for each in drawn}.values() if known.of(each) is None]
        if not new:
            return
        yield new
        before, shown = shown, len(alike([*known.tried.values()]))
        vain = 0 if shown > before else vain + len(new)


def _plan(dice: Dice, cells: list[tuple[Site, Probe]]) -> Variation:
    chosen: dict[Site, Probe] = {}
    for n in range(dice("size").pick(FAULTS)):
        site, probe = dice(n).pick(cells)
        chosen.setdefault(site, probe)
    return Variation(tuple(probe.at(site) for site, probe in sorted(chosen.items())))
