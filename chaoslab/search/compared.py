"""A comparison of two sides in words and as JSON values."""

from collections.abc import Iterator
from typing import Any

from chaoslab.analysis.measures.anytime import fewest
from chaoslab.analysis.measures.intervals import Interval
from chaoslab.base.jsonable import line
from chaoslab.search.comparing import Figures
from chaoslab.search.pairs import BETTER, FEW, LEAST, POWER, WORSE

PROMPT, PROMPTS = 60, 12
"""The most characters of a prompt, and the most prompts that are shown."""


class Comparison(Figures):
    """The comparison of two sides; prints as lines."""

    def in_words(self, most: int = 5) -> list[str]:
        """The comparison in lines. `most`: the most pairs that are named as worse, and as better."""
        parts = (_head(self), _power(self), _prompts(self), _parts(self), self.notes, _pairs(self, most))
        return [each for part in parts for each in part]

    def data(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        (e_worse, e_better), (more, less) = self.evidence, self.harm_evidence
        all_ = self.pass_all
        return {
            "verdict": self.verdict, "alpha": self.alpha, "pairs": len(self.pairs), "judged": len(self.judged),
            "worse": self.count(WORSE), "better": self.count(BETTER),
            "evidence": {"worse": e_worse, "better": e_better},
            "p": self.p, "interval": self.interval,
            "power": self.power, "needed": self.needed, "detectable": self.detectable,
            "outcomes": self.outcomes,
            "harm": {"base": self.harmed[0], "new": self.harmed[1], "evidence": {"more": more, "less": less}},
            "prompts": [{"prompt": prompt, "judged": n, "base": base, "new": new}
                        for prompt, (n, base, new) in self.by_prompt.items()],
            "costs": {each.amount: {"base": each.base, "new": each.new, "interval": _bounds(each.interval)}
                      for each in self.costs},
            "pass_all": None if all_ is None else {**vars(all_), "interval": _bounds(all_.interval)},
            "notes": self.notes,
            "changed": [
                {"trial": each.number, "change": each.change, "base": each.base.plain(), "new": each.new.plain(),
                 "differs": each.differs, "cause": each.cause}
                for each in self.pairs if each.change
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.in_words())


def _head(found: Figures) -> Iterator[str]:
    judged, (base, new) = len(found.judged), found.well
    first = f"{found.verdict}: {base} of {judged} pairs well on the base, {new} on the new side"
    if found.interval is not None:
        low, high = found.interval
        first += f"; change {(new - base) / judged:+.1%}, 95 % interval {low:+.1%} to {high:+.1%}"
    yield first
    e_worse, e_better = found.evidence
    counted = [found.count(change, counted=True) for change in (WORSE, BETTER)]
    each = f", of which each prompt counts once ({counted[0]} and {counted[1]})" if found.several else ""
    yield (
        f"{found.count(WORSE)} pairs became worse and {found.count(BETTER)} better{each}; evidence {e_worse:.3g} for "
        f"worse, {e_better:.3g} for better ({1 / found.alpha:g} decides, whenever it is looked at)"
    )
    if found.p is not None:
        alone = " and all were independent" if found.several else ""
        yield f"McNemar's exact p {found.p:.3g}, if {len(found.pairs)} pairs had been fixed beforehand{alone}"


def _power(found: Figures) -> Iterator[str]:
    unit = "prompts" if found.several else "pairs"
    if found.verdict == FEW:
        least = f"{fewest(found.alpha)} prompts and " if found.several else ""
        yield f"a verdict needs {least}{LEAST} judged pairs; {len(found.judged)} of {len(found.pairs)} could be judged"
    if found.decided:
        return
    if (chance := found.power) is not None:
        needed = f"about {found.needed} are needed for {POWER}" if found.needed else "a million would not do"
        yield f"a change as large as this is shown within {found.units} {unit} with a chance of {chance:.2f}; {needed}"
    least_share = found.detectable
    if least_share is not None:
        yield f"{found.units} {unit} would show {least_share:.1%} of them worse, none better, with a chance of {POWER}"


def _prompts(found: Figures) -> Iterator[str]:
    if not found.several:
        return
    rows = sorted(found.by_prompt.items(), key=lambda row: row[1][2] - row[1][1])
    for prompt, (n, base, new) in rows[:PROMPTS]:
        yield f"  {line(prompt, PROMPT)!r}: {base} of {n} → {new} of {n} well"
    if len(rows) > PROMPTS:
        yield f"  … and {len(rows) - PROMPTS} more prompts"


def _parts(found: Figures) -> Iterator[str]:
    moved = [f"{name} {one} → {other}" for name, (one, other) in found.outcomes.items() if one != other]
    if moved:
        yield f"outcomes: {', '.join(moved)}"
    if any(found.harmed):
        more, less = found.harm_evidence
        yield (
            f"harm: {found.harmed[0]} on the base, {found.harmed[1]} on the new side; evidence {more:.3g} for more, "
            f"{less:.3g} for less"
        )
    if open_ := len(found.pairs) - len(found.judged):
        yield f"{open_} pairs prove nothing"
    if (all_ := found.pass_all) is not None and all_.base != all_.new:
        yield (
            f"pass^{all_.k}: {all_.base:.3g} → {all_.new:.3g}, 95 % interval of the change "
            f"{all_.interval.low:+.2g} to {all_.interval.high:+.2g}"
        )
    for each in found.costs:
        name = "quality of recovery" if each.amount == "quality" else f"{each.amount} a trial"
        text = f"{name}: {each.base:.4g}{each.unit} → {each.new:.4g}{each.unit}"
        if each.interval is not None:
            low, high = each.interval.low, each.interval.high
            text += f"; change within {low:+.3g} to {high:+.3g}{each.unit} ({1 - found.alpha:.0%}, whenever looked at)"
        yield text


def _pairs(found: Figures, most: int) -> Iterator[str]:
    for change in (WORSE, BETTER):
        changed = [each for each in found.pairs if each.change == change]
        for each in changed[:most]:
            why = each.new.why if change == WORSE else each.base.why
            yield f"  {change}: trial {each.number}: {each.base.outcome} → {each.new.outcome} ({why})"
            if each.differs:
                yield f"    first difference: {each.differs}"
            if each.cause:
                yield f"    smallest cause: {each.cause}"
        if len(changed) > most:
            yield f"  … and {len(changed) - most} more {change}"


def _bounds(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
