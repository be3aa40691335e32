"""The fields of an experiment that are filled in: dose, deadline, what to look at, kind, limits and stop conditions."""

from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Any

from chaoslab.base.durations import duration
from chaoslab.search.planning.cells import ONCE, Cell, dose_of
from chaoslab.search.planning.design import Design, DesignQuestion, at_target


class Dose:
    """The informative edge: between the largest known safe dose and the smallest known unsafe one."""

    def of(self, design: Design, known: DesignQuestion) -> Iterator[tuple[str, Any, str]]:
        name = dose_of(design.fault)
        if not name or name in design.params or design.params.get("preset"):
            return
        seen = known.evidence.range(known.subject, design.cell)
        if seen.next is not None and seen.ends != (None, None):
            yield "params", {name: seen.next}, f"{seen}; halfway is {duration(seen.next)}"
        elif seen.edge is not None:
            yield "params", {name: round(seen.edge, 3)}, f"{seen}, which is known within 15 %"


LEAST_S = 1.0


class Duration:
    """The mean of the past trials at the target, and three standard deviations and the fault's own time more."""

    def of(self, design: Design, known: DesignQuestion) -> Iterator[tuple[str, Any, str]]:
        rows = [*at_target(known.evidence, known.subject, design.target)]
        count = sum(each.timed for each in rows)
        if count < 2:
            return
        mean = sum(each.seconds for each in rows) / count
        spread = sqrt(max(0.0, sum(each.squares for each in rows) / count - mean * mean))
        dose_s = design.cell.dose or 0.0
        value = round(max(LEAST_S, mean + 3 * spread) + dose_s, 1)
        more = f", and the fault takes {duration(dose_s)}" if dose_s else ""
        yield "deadline_s", value, f"{count} past trials took {duration(mean)} ± {duration(spread)}{more}"


class Monitoring:
    """The calls of the target and its effects, and the targets whose calls failed with it before."""

    def of(self, design: Design, known: DesignQuestion) -> Iterator[tuple[str, Any, str]]:
        failed, seen = Counter[str](), Counter[str]()
        for each in at_target(known.evidence, known.subject, design.target):
            for other, (lost, all_) in each.affected.items():
                failed[other] += lost
                seen[other] += all_
        others = [(name, count) for name, count in failed.most_common() if count]
        effects = ["its effects"] if known.evidence.changes(known.subject, design.target) else []
        watch = (f"calls of {design.target}", *effects, *(f"calls of {name}" for name, _ in others))
        said = ", ".join(f"those of {name} failed with it {count} of {seen[name]} times" for name, count in others)
        yield "watch", watch, said or "no other target is known to fail with it"


class Pattern:
    """A fault that was survived when it came once is tried again as one that stays; else once is enough."""

    def of(self, design: Design, known: DesignQuestion) -> Iterator[tuple[str, Any, str]]:
        once = known.evidence.cells.get((known.subject, Cell.of(design.target, design.fault, design.params).key))
        if once is not None and once.weight and not once.bad:
            yield "how", "always", f"once was survived {once.weight:.0f} times, so a retry may be what saves it"
        elif once is not None and once.bad:
            yield "how", ONCE, f"a known pattern: once broke it {once.bad:.0f} of {once.weight:.0f} times"
        else:
            yield "how", ONCE, "nothing is known: the mildest kind comes first"


RISKY = 0.3
"""The risk from which on an experiment is held to a part of the traffic."""


class Safety:
    """At most a tenth of the traffic and one fault at a time where the risk is high; an end with the first harm."""

    def of(self, design: Design, known: DesignQuestion) -> Iterator[tuple[str, Any, str]]:  # noqa: ARG002
        if known.risk.value >= RISKY:
            yield "limits", {"share": 0.1, "at_once": 1}, f"the risk is {known.risk.value:.2f}, {RISKY} or more"
        yield "stop", ("harm > 0",), f"the chance of harm is {known.risk.harm:.0%}"
