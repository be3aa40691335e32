"""A comparison of two sides in words and as JSON values."""

from collections.abc import Iterator
from typing import Any

from chaoslab.base.jsonable import line
from chaoslab.search.comparing import PROMPTS_LEAST, ComparedFigure, Figures, count_trials
from chaoslab.search.pairs import BETTER, FEW, LEAST, OPEN, POWER, WORSE

PROMPT, PROMPTS = 60, 12
"""The most characters of a prompt, and the most prompts that are shown."""


class Comparison(Figures):
    """The comparison of two sides; prints as lines."""

    def in_words(self, most: int = 5) -> list[str]:
        """The comparison in lines. `most`: the most pairs that are named as worse, as better and as open."""
        parts = (_head(self), _power(self), _prompts(self), _parts(self), self.notes, _pairs(self, most))
        return [each for part in parts for each in part]

    @property
    def why_open(self) -> str:
        """The reason why it is open, with the numbers; empty if it is not."""
        if self.verdict != OPEN:
            return ""
        if self.nothing or not self.stated:
            return self.nothing or "nothing is known of any pair"
        told = [f"{each.shares.open} of {len(self.pairs)} pairs are open ({each.words})" for each in self.open]
        return f"{'; '.join(told)}, and {self.open_max:.0%} may be"

    def data(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return {
            "verdict": self.verdict, "alpha": self.alpha, "open_max": self.open_max, "pairs": len(self.pairs),
            "why_open": self.why_open, "worse": self.count(WORSE), "better": self.count(BETTER),
            "open": self.count(OPEN),
            "figures": {each.name: figure_data(each) for each in self.stated},
            "outcomes": self.outcomes,
            "harm": {"base": self.harmed[0], "new": self.harmed[1]},
            "costs": {each.amount: {"base": each.base, "new": each.new} for each in self.costs},
            "notes": self.notes,
            "changed": [
                {"trial": each.number, "change": each.change, "base": each.base.plain(), "new": each.new.plain(),
                 "differs": each.differs, "cause": each.cause}
                for each in self.pairs if each.change
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.in_words())

    __repr__ = __str__


def figure_data(figure: ComparedFigure) -> dict[str, Any]:
    """A figure as JSON values."""
    interval = figure.interval
    return {
        **figure.shares._asdict(), "worse": figure.count(WORSE), "better": figure.count(BETTER),
        "change": figure.change, "interval": [interval.low, interval.high],
        "evidence": {"worse": figure.evidence(WORSE), "better": figure.evidence(BETTER), "decides": 2 / figure.alpha},
        "needed": figure.needed, "detectable": figure.detectable,
        "prompts": [{"prompt": prompt, **shares._asdict()} for prompt, shares in figure.by_prompt.items()],
    }  # fmt: skip


def figure_text(figure: ComparedFigure) -> str:
    """A figure in one line: both shares, the open pairs, and the change with its interval."""
    judged, open_, base, new = figure.shares
    text = f"{figure.words} {base} → {new} of {judged} pairs" + (f", {open_} open" if open_ else "")
    if figure.change is None:
        return text
    low, high = figure.interval.low, figure.interval.high
    within = "within" if not figure.open else "with the open ones within"
    return f"{text}; change {figure.change:+.1%}, {within} {low:+.1%} to {high:+.1%}"


def _head(found: Comparison) -> Iterator[str]:
    why = found.why_open or "; ".join(map(figure_text, found.stated)) or "no pair was tried"
    yield f"{found.verdict}: {why}"
    if found.why_open:
        yield from map(figure_text, found.stated)
    if not found.stated:
        return
    evidence = [f"{each.words}: {each.evidence(WORSE):.3g} for worse, {each.evidence(BETTER):.3g} for better"
                for each in found.stated]  # fmt: skip
    over = f", the mean over {found.prompts} prompts," if found.prompts > 1 else ""
    yield (
        f"{found.count(WORSE)} pairs became worse, {found.count(BETTER)} better, {found.count(OPEN)} open; evidence "
        f"{'; '.join(evidence)} ({2 / found.alpha:g} decides)"
    )
    yield f"each change{over} and its {1 - found.alpha:.0%} interval hold whenever they are looked at"


def _power(found: Comparison) -> Iterator[str]:
    if found.verdict == FEW:
        least = f"one prompt or {PROMPTS_LEAST}, and " if 1 < found.prompts < PROMPTS_LEAST else ""
        yield f"a verdict needs {least}{LEAST} pairs; these are {len(found.pairs)}"
    if found.verdict in (WORSE, BETTER):
        return
    for figure in found.stated:
        judged = figure.shares.judged
        if figure.needed:
            seen = f"a fall as large as this is shown within {figure.needed} pairs"
            yield f"{figure.words}: {seen} with a chance of {POWER}"
        if (share := figure.detectable) is not None:
            seen = f"{judged} pairs show {share:.1%} of them worse, none better"
            yield f"{figure.words}: {seen}, with a chance of {POWER}"


def _prompts(found: Comparison) -> Iterator[str]:
    for figure in found.stated if found.prompts > 1 else ():
        rows = sorted(figure.by_prompt.items(), key=lambda row: row[1].new - row[1].base)
        for prompt, (judged, open_, base, new) in rows[:PROMPTS]:
            beside = f", {open_} open" if open_ else ""
            yield f"  {line(prompt, PROMPT)!r}: {figure.words} {base} → {new} of {judged}{beside}"
        if len(rows) > PROMPTS:
            yield f"  … and {len(rows) - PROMPTS} more prompts"


def _parts(found: Comparison) -> Iterator[str]:
    moved = [f"{name} {one} → {other}" for name, (one, other) in found.outcomes.items() if one != other]
    if moved:
        yield f"outcomes: {', '.join(moved)}"
    if any(found.harmed):
        yield f"harm: {found.harmed[0]} on the base, {found.harmed[1]} on the new side"
    for each in found.costs:
        if each.base != each.new:
            yield f"{each.amount} a trial, median: {each.base:.4g}{each.unit} → {each.new:.4g}{each.unit}"


def _pairs(found: Comparison, most: int) -> Iterator[str]:
    for change in (WORSE, BETTER, OPEN):
        shown, others = count_trials(found.pairs, change, most)
        for each in shown:
            why = each.base.why if change == BETTER or each.new.well else each.new.why
            yield f"  {change}: trial {each.number}: {each.base.outcome} → {each.new.outcome} ({why})"
            if each.differs:
                yield f"    first difference: {each.differs}"
            if each.cause:
                yield f"    cause: {each.cause}"
        if others:
            yield f"  … and {others} more {change}"
