"""Two agents, or one with and without a mitigation, on the same cells of a map: which closed, which opened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.search import causes
from chaoslab.search.contrast import SelfFailure
from chaoslab.search.variation import Site, TriedVariation


@dataclass(frozen=True)
class ProofChange:
    """One variation before and after."""

    before: TriedVariation
    after: TriedVariation

    @property
    def outcome_change(self) -> str:
        """closed, opened, failing (before and after), well, or open: nothing can be said of one of them."""
        if self.before.is_inconclusive or self.after.is_inconclusive:
            return "open"
        if self.before.failed:
            return "failing" if self.after.failed else "closed"
        return "opened" if self.after.failed else "well"

    def __str__(self) -> str:
        outcomes = f"{self.before.outcome} → {self.after.outcome}"
        reason = self.after.why if self.outcome_change == "opened" else self.before.why
        return f"{causes.describe_variation(self.before.variation)}: {outcomes} ({reason})"


@dataclass(frozen=True)
class NewCall:
    """A call that the agent made only after the change. `tried`: the faults that were tried at it, `of` those that
    apply. `failures`: the causes of those at which it failed. `open`: the trials of which nothing can be said."""

    site: Site
    tried: int
    of: int
    failures: tuple[str, ...] = ()
    open: int = 0

    @property
    def survives_all_faults(self) -> bool:
        """Every fault was tried at it, and none was seen to fail."""
        return self.tried == self.of and not self.failures

    def __str__(self) -> str:
        failed = f": {'; '.join(self.failures)}" if self.failures else ", none fails" if self.tried else ""
        open_text = f", {self.open} open" if self.open else ""
        return f"{self.site}, {self.tried} of {self.of} faults tried{open_text}{failed}"


@dataclass
class Cost:
    """The cost of a trial without faults and of all trials together: calls, seconds of the world, tokens."""

    calls: int
    seconds: float
    tokens: int

    @classmethod
    def sum_trial_costs(cls, tried: Sequence[TriedVariation]) -> "Cost":
        return cls(
            sum(len(trial.made) for trial in tried),
            round(sum(trial.seconds for trial in tried), 3),
            sum(trial.tokens for trial in tried),
        )


@dataclass(repr=False)
class Proof:
    """The changes from one map to another. `what`: what differs, in words. `new`: the calls that only the changed agent
    makes. `refused`: why the changed agent could not be tried at all; empty if it could. `by_itself`: the failures that
    the changed agent alone has without faults."""

    what: str
    changes: list[ProofChange] = field(default_factory=list)
    new: list[NewCall] = field(default_factory=list)
    refused: str = ""
    by_itself: Sequence[SelfFailure] = ()

    def list_changes_of_kind(self, name: str) -> list[ProofChange]:
        return [change for change in self.changes if change.outcome_change == name]

    @property
    def holds(self) -> bool:
        """It closes a failure and opens none, at the calls that are new and without faults neither, and no more is
        open than could be."""
        return self._closes_and_opens_none and not self.unproven_reason

    @property
    def _closes_and_opens_none(self) -> bool:
        closes = bool(self.list_changes_of_kind("closed")) and not self.list_changes_of_kind("opened")
        opens = self.by_itself or not all(call.survives_all_faults for call in self.new)
        return not self.refused and closes and not opens

    @property
    def unproven_reason(self) -> str:
        """The reason why it would hold and proves nothing; empty if it holds, or fails."""
        # One that was open before is no worse for the change.
        open_count = sum(not change.before.is_inconclusive for change in self.list_changes_of_kind("open"))
        open_count += sum(call.open for call in self.new)
        trial_count = len(self.changes) + sum(call.tried for call in self.new)
        if not self._closes_and_opens_none or open_count <= OPEN_MAX * trial_count:
            return ""
        return f"{open_count} of {trial_count} trials are open only after the change"

    def __str__(self) -> str:
        return "\n".join(self.describe_in_words())

    __repr__ = __str__

    @property
    def costs_before_and_after(self) -> tuple[Cost, Cost]:
        """Before and after."""
        return Cost.sum_trial_costs([change.before for change in self.changes]), Cost.sum_trial_costs(
            [change.after for change in self.changes]
        )

    def describe_in_words(self, most: int = 5) -> Iterator[str]:
        """The proof in lines."""
        if self.refused:
            yield f"{self.what}: it cannot be tried: {self.refused}"
            return
        counts = {
            name: len(self.list_changes_of_kind(name)) for name in ("closed", "opened", "failing", "well", "open")
        }
        yield (
            f"{self.what}: {counts['closed']} closed, {counts['opened']} opened, {counts['failing']} still failing, "
            f"{counts['well']} well before and after"
            + (f"; nothing can be said of {counts['open']}" if counts["open"] else "")
        )
        before, after = self.costs_before_and_after
        tokens = f", {before.tokens} → {after.tokens} tokens" if before.tokens or after.tokens else ""
        yield f"  it costs {before.calls} → {after.calls} calls, {before.seconds:g} → {after.seconds:g} s{tokens}"
        for name in ("opened", "failing", "closed"):
            changes = self.list_changes_of_kind(name)
            for change in changes[:most]:
                yield f"  {name}: {change}"
            if len(changes) > most:
                yield f"  … and {len(changes) - most} more {name}"
        yield from (f"  after the change it {failure}" for failure in self.by_itself)
        for call in sorted(self.new, key=lambda change: change.survives_all_faults)[:most]:
            yield f"  new call: {call}"
        if len(self.new) > most:
            yield f"  … and {len(self.new) - most} more new calls"
        if self.unproven_reason:
            yield f"  this proves nothing: {self.unproven_reason}"

    def to_json_data(self) -> dict[str, Any]:
        """The proof as JSON values."""
        before, after = self.costs_before_and_after
        cells: list[Mapping[str, Any]] = [
            {
                "change": row.outcome_change, "faults": causes.describe_variation(row.before.variation),
                "before": row.before.outcome,
                "after": row.after.outcome, "why_before": row.before.why, "why_after": row.after.why,
            }
            for row in self.changes
        ]  # fmt: skip
        return {
            "what": self.what, "holds": self.holds, "refused": self.refused, "unproven": self.unproven_reason,
            "by_itself": [vars(failure) for failure in self.by_itself], "cost_before": vars(before),
            "cost_after": vars(after), "cells": cells,
            "new_calls": [{**vars(row), "site": str(row.site)} for row in self.new],
        }  # fmt: skip
