"""Two sides tried on the same trials, pair by pair, until it is shown which is worse."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist, fmean
from typing import Any

from chaoslab.analysis.measures.paired import difference, discordant_needed, e_value, mcnemar

ALPHA, POWER = 0.05, 0.9
WORSE, BETTER, SAME, FEW = "worse", "better", "no difference shown", "too few"
LEAST = 40
"""The judged pairs with which a change of 0.2 in the share would mostly have been shown."""


@dataclass(frozen=True)
class Side:
    """One trial of a pair. `well`: it passed; None if nothing can be concluded."""

    well: bool | None
    outcome: str
    why: str
    calls: int
    seconds: float
    tokens: int = 0
    harm: bool = False


@dataclass(frozen=True)
class Pair:
    """The same trial on both sides. `cluster`: the prompt that it asks; pairs of one prompt are not independent."""

    number: int
    base: Side
    new: Side
    cluster: str = ""

    @property
    def change(self) -> str:
        """worse, better, or empty: alike, or one of the two allows no conclusion."""
        if self.base.well is None or self.new.well is None or self.base.well == self.new.well:
            return ""
        return BETTER if self.new.well else WORSE


@dataclass
class Comparison:
    """All pairs so far. Where several prompts are asked, the evidence is that of each prompt's first discordant pair
    alone, since what differs at a prompt may differ at each repetition of it."""

    alpha: float = ALPHA
    pairs: list[Pair] = field(default_factory=list)

    def add(self, pair: Pair) -> None:
        self.pairs.append(pair)

    @property
    def judged(self) -> list[Pair]:
        return [each for each in self.pairs if each.base.well is not None and each.new.well is not None]

    @property
    def counted(self) -> list[Pair]:
        """The discordant pairs that are evidence."""
        found = [each for each in self.pairs if each.change]
        if len({each.cluster for each in self.pairs}) < 2:
            return found
        first: dict[str, Pair] = {}
        for each in found:
            first.setdefault(each.cluster, each)
        return [*first.values()]

    def count(self, change: str, *, counted: bool = False) -> int:
        return sum(each.change == change for each in (self.counted if counted else self.pairs))

    @property
    def evidence(self) -> tuple[float, float]:
        """The e-values for worse and for better."""
        worse, better = self.count(WORSE, counted=True), self.count(BETTER, counted=True)
        return e_value(worse, better), e_value(better, worse)

    @property
    def verdict(self) -> str:
        """worse, better, no difference shown, or too few."""
        worse, better = self.evidence
        if max(worse, better) >= 1 / self.alpha:
            return WORSE if worse > better else BETTER
        return SAME if len(self.judged) >= LEAST else FEW

    @property
    def decided(self) -> bool:
        """More pairs would not be looked at."""
        return self.verdict in (WORSE, BETTER)

    @property
    def p(self) -> float | None:
        """McNemar's exact p over all discordant pairs, for a number of pairs that was fixed beforehand."""
        return mcnemar(self.count(WORSE), self.count(BETTER))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the change in the share that is well."""
        judged = self.judged
        if not judged:
            return None
        base, new = (sum(bool(getattr(each, side).well) for each in judged) for side in ("base", "new"))
        return difference(base, new, self.count(WORSE), self.count(BETTER), len(judged))

    @property
    def needed(self) -> int | None:
        """The pairs that a test of fixed size would need to show a change as large as the one seen, with a power of
        0.9."""
        judged = len(self.judged)
        normal = NormalDist()
        z_alpha, z_power = normal.inv_cdf(1 - self.alpha / 2), normal.inv_cdf(POWER)
        if not judged:
            return None
        worse, better = self.count(WORSE) / judged, self.count(BETTER) / judged
        return discordant_needed(worse, better, z_alpha=z_alpha, z_power=z_power)

    def told(self, most: int = 5) -> list[str]:
        """The comparison in lines."""
        judged, worse, better = self.judged, self.count(WORSE), self.count(BETTER)
        base, new = (sum(bool(getattr(each, side).well) for each in judged) for side in ("base", "new"))
        lines = [f"{self.verdict}: {base} of {len(judged)} pairs well on the base, {new} on the new side"]
        if self.interval is not None:
            low, high = self.interval
            lines[0] += f"; change {(new - base) / len(judged):+.1%}, 95 % interval {low:+.1%} to {high:+.1%}"
        e_worse, e_better = self.evidence
        lines.append(
            f"{worse} pairs became worse and {better} better; evidence {e_worse:.3g} for worse, {e_better:.3g} for "
            f"better ({1 / self.alpha:g} decides, whenever it is looked at)"
        )
        if self.p is not None:
            lines.append(f"McNemar's exact p {self.p:.3g}, if {len(self.pairs)} pairs had been fixed beforehand")
        if not self.decided and self.needed is not None:
            lines.append(f"a change as large as this takes about {self.needed} pairs to show")
        harm = [sum(getattr(each, side).harm for each in judged) for side in ("base", "new")]
        if any(harm):
            lines.append(f"harm: {harm[0]} on the base, {harm[1]} on the new side")
        if open_ := len(self.pairs) - len(judged):
            lines.append(f"{open_} pairs prove nothing")
        for name, unit in (("calls", ""), ("seconds", " s"), ("tokens", "")):
            one, other = (fmean(getattr(getattr(each, side), name) for each in judged) if judged else 0.0
                          for side in ("base", "new"))  # fmt: skip
            if one or other:
                lines.append(f"{name} a trial: {one:.4g}{unit} → {other:.4g}{unit}")
        for change in (WORSE, BETTER):
            found = [each for each in self.pairs if each.change == change]
            for each in found[:most]:
                bad = each.new if change == WORSE else each.base
                lines.append(f"  {change}: trial {each.number}: {each.base.outcome} → {each.new.outcome} ({bad.why})")
            if len(found) > most:
                lines.append(f"  … and {len(found) - most} more {change}")
        return lines

    def data(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        e_worse, e_better = self.evidence
        return {
            "verdict": self.verdict, "alpha": self.alpha, "pairs": len(self.pairs), "judged": len(self.judged),
            "worse": self.count(WORSE), "better": self.count(BETTER),
            "evidence": {"worse": e_worse, "better": e_better},
            "p": self.p, "interval": self.interval, "needed": self.needed,
            "changed": [
                {"trial": each.number, "change": each.change, "base": vars(each.base), "new": vars(each.new)}
                for each in self.pairs if each.change
            ],
        }  # fmt: skip
