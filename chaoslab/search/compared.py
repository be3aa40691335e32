"""A comparison of two sides in words and as JSON values."""

from collections.abc import Iterator
from typing import Any

from chaoslab.base.jsonable import to_one_line
from chaoslab.search.comparing import PROMPTS_LEAST, ComparedFigure, ComparedPairs, take_first_changed
from chaoslab.search.pairs import BETTER, FEW, LEAST, OPEN, POWER, WORSE

PROMPT, PROMPTS = 60, 12
"""The most characters of a prompt, and the most prompts that are shown."""


class Comparison(ComparedPairs):
    """The comparison of two sides; prints as lines."""

    def render_comparison_lines(self, most: int = 5) -> list[str]:
        """The comparison in lines. `most`: the most pairs that are named as worse, as better and as open."""
        parts = (
            _describe_verdict(self),
            _describe_detectable_change(self),
            _list_prompt_lines(self),
            _list_change_lines(self),
            self.notes,
            _list_pair_lines(self, most) if most else (),
        )
        return [text for section in parts for text in section]

    @property
    def open_reason(self) -> str:
        """The reason why it is open, with the numbers; empty if it is not."""
        if self.verdict != OPEN:
            return ""
        if self.proves_nothing_reason or not self.stated_figures:
            return self.proves_nothing_reason or "nothing is known of any pair"
        reasons = [
            f"{figure.shares.open} of {len(self.pairs)} pairs are open ({figure.figure_label})"
            for figure in self.figures_too_open
        ]
        return f"{'; '.join(reasons)}, and {self.open_max:.0%} may be"

    def to_json_values(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return {
            "verdict": self.verdict, "alpha": self.alpha, "open_max": self.open_max, "pairs": len(self.pairs),
            "why_open": self.open_reason, "worse": self.count_changed_pairs(WORSE),
            "better": self.count_changed_pairs(BETTER), "open": self.count_changed_pairs(OPEN),
            "figures": {item.name: figure_to_json(item) for item in self.stated_figures},
            "outcomes": self.side_counts_by_outcome,
            "harm": {"base": self.harm_counts[0], "new": self.harm_counts[1]},
            "costs": {item.amount: {"base": item.base, "new": item.new} for item in self.costs},
            "notes": self.notes,
            "changed": [
                {"trial": item.number, "change": item.change_kind, "base": item.base.to_json_values(),
                 "new": item.new.to_json_values(),
                 "differs": item.differs, "cause": item.cause}
                for item in self.pairs if item.change_kind
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self.render_comparison_lines())

    __repr__ = __str__


def figure_to_json(figure: ComparedFigure) -> dict[str, Any]:
    """A figure as JSON values."""
    interval = figure.interval
    return {
        **figure.shares._asdict(), "worse": figure.count_changed_pairs(WORSE),
        "better": figure.count_changed_pairs(BETTER),
        "change": figure.mean_change, "interval": [interval.low, interval.high],
        "evidence": {
            "worse": figure.compute_evidence(WORSE), "better": figure.compute_evidence(BETTER),
            "decides": 2 / figure.alpha,
        },
        "needed": figure.pairs_needed, "detectable": figure.detectable_change,
        "prompts": [{"prompt": prompt, **shares._asdict()} for prompt, shares in figure.shares_by_prompt.items()],
    }  # fmt: skip


def describe_figure(figure: ComparedFigure) -> str:
    """A figure in one line: both shares, the open pairs, and the change with its interval."""
    judged, open_, base, new = figure.shares
    text = f"{figure.figure_label} {base} → {new} of {judged} pairs" + (f", {open_} open" if open_ else "")
    if figure.mean_change is None:
        return text
    low, high = figure.interval.low, figure.interval.high
    within = "within" if not figure.has_too_many_open else "with the open ones within"
    return f"{text}; change {figure.mean_change:+.1%}, {within} {low:+.1%} to {high:+.1%}"


def _describe_verdict(result: Comparison) -> Iterator[str]:
    reason = result.open_reason or "; ".join(map(describe_figure, result.stated_figures)) or "no pair was tried"
    yield f"{result.verdict}: {reason}"
    if result.open_reason:
        yield from map(describe_figure, result.stated_figures)
    if not result.stated_figures:
        return
    evidence = [
        f"{figure.figure_label}: {figure.compute_evidence(WORSE):.3g} for worse, "
        f"{figure.compute_evidence(BETTER):.3g} for better"
        for figure in result.stated_figures
    ]
    scope = f", the mean over {result.prompt_count} prompts," if result.prompt_count > 1 else ""
    yield (
        f"{result.count_changed_pairs(WORSE)} pairs got worse, {result.count_changed_pairs(BETTER)} better, "
        f"{result.count_changed_pairs(OPEN)} open; evidence {'; '.join(evidence)} ({2 / result.alpha:g} decides)"
    )
    yield f"each change{scope} and its {1 - result.alpha:.0%} interval are valid at every look"


def _describe_detectable_change(result: Comparison) -> Iterator[str]:
    if result.verdict == FEW:
        prompts_needed = f"one prompt or {PROMPTS_LEAST}, and " if 1 < result.prompt_count < PROMPTS_LEAST else ""
        yield f"a verdict needs {prompts_needed}{LEAST} pairs; these are {len(result.pairs)}"
    if result.verdict in (WORSE, BETTER):
        return
    for figure in result.stated_figures:
        judged = figure.shares.judged
        if figure.pairs_needed:
            statement = f"a fall as large as this is shown within {figure.pairs_needed} pairs"
            yield f"{figure.figure_label}: {statement} with a chance of {POWER}"
        if (share := figure.detectable_change) is not None:
            statement = f"{judged} pairs would show {share:.1%} worse and none better"
            yield f"{figure.figure_label}: {statement}, with a chance of {POWER}"


def _list_prompt_lines(result: Comparison) -> Iterator[str]:
    for figure in result.stated_figures if result.prompt_count > 1 else ():
        rows = sorted(figure.shares_by_prompt.items(), key=lambda row: row[1].new - row[1].base)
        for prompt, (judged, open_, base, new) in rows[:PROMPTS]:
            beside = f", {open_} open" if open_ else ""
            yield f"  {to_one_line(prompt, PROMPT)!r}: {figure.figure_label} {base} → {new} of {judged}{beside}"
        if len(rows) > PROMPTS:
            yield f"  … and {len(rows) - PROMPTS} more prompts"


def _list_change_lines(result: Comparison) -> Iterator[str]:
    moved = [
        f"{name} {before} → {after}"
        for name, (before, after) in result.side_counts_by_outcome.items()
        if before != after
    ]
    if moved:
        yield f"outcomes: {', '.join(moved)}"
    if any(result.harm_counts):
        yield f"harm: {result.harm_counts[0]} on the base, {result.harm_counts[1]} on the new side"
    for cost in result.costs:
        if cost.base != cost.new:
            yield f"{cost.amount} a trial, median: {cost.base:.4g}{cost.unit} → {cost.new:.4g}{cost.unit}"


def _list_pair_lines(result: Comparison, pairs_max: int) -> Iterator[str]:
    for change in (WORSE, BETTER, OPEN):
        listed, rest = take_first_changed(result.pairs, change, pairs_max)
        for pair in listed:
            reason = pair.base.why if change == BETTER or pair.new.well else pair.new.why
            yield f"  {change}: trial {pair.number}: {pair.base.outcome} → {pair.new.outcome} ({reason})"
            if pair.differs:
                yield f"    first difference: {pair.differs}"
            if pair.cause:
                yield f"    cause: {pair.cause}"
        if rest:
            yield f"  … and {rest} more {change}"
