"""The effects are these, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.assertions import Assertion, Miss, Seen
from chaoslab.analysis.verdict import ledger


@dataclass(frozen=True)
class EffectsEqual(Assertion):
    """The effects are exactly these, in any order: mappings as in `effects` of `lab.run`."""

    effects: Sequence[Mapping[str, Any]]
    example = "{effects: [{effect: refund, order: 17}]}"

    def check(self, seen: Seen) -> Miss | None:
        found = ledger.compare(list(self.effects), seen.effects())
        if not found:
            return None
        lines = [line for finding in found for line in finding.lines]
        return Miss("; ".join(finding.text for finding in found), tuple(lines))
