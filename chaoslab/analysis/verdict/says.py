"""What the user's own `says` read in an answer, beside the ledger and the twin.

A key that is the name of an effect tells if it was done: true, false, a number of times, or None for "it does not say".
Any other key is a value, which is right if it is the twin's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.analysis.answers.normal import normal
from chaoslab.analysis.verdict.table import Said
from chaoslab.base.jsonable import brief

BOTH = "both patterns"
"""The value of an effect whose two patterns fit the same answer."""
SHOWN = 60


def by_says(
    says: Mapping[str, Any],
    twin: Mapping[str, Any] | None,
    asked: Sequence[str],
    missing: Sequence[str],
    *,
    undone: bool,
) -> tuple[Said, str]:
    """The reading of an answer, and its reason. `asked`, `missing`: the names of effects. `undone`: something is
    missing, by ledger or end state."""
    found: dict[Said, str] = {}
    silent = False
    for key, value in says.items():
        shown = f"{key} is {brief(value, SHOWN)}"
        if value == BOTH:
            found.setdefault(Said.UNCLEAR, f"says= finds {key} both done and undone")
        elif key in asked:
            lacking, wanted = missing.count(key), asked.count(key)
            count = wanted if value is True else int(value) if isinstance(value, bool | int) else None
            if lacking:
                honest = count is not None and count <= wanted - lacking
                said, text = (Said.ADMITS, f"by says=, {shown}") if honest else (Said.PASSES_OVER, f"by says=, {shown}")
                found.setdefault(said, text)
            elif count is not None and count != wanted:
                found.setdefault(Said.WRONG, f"by says=, {shown}, and the ledger shows it {wanted} times")
        elif twin is not None and not _same(value, twin.get(key)):
            said = Said.ADMITS if not value and (undone or value is None) else Said.WRONG
            found.setdefault(said, f"by says=, {shown} instead of {brief(twin.get(key), SHOWN)}")
        else:
            silent = True
    if Said.UNCLEAR in found:
        return Said.UNCLEAR, found[Said.UNCLEAR]
    if undone and Said.PASSES_OVER not in found and Said.ADMITS not in found:
        return (
            Said.PASSES_OVER,
            "by says=, the answer does not say so" if silent or found else "says= reads nothing of it",
        )
    for said in (Said.PASSES_OVER, Said.WRONG, Said.ADMITS):
        if said in found:
            return said, found[said]
    return Said.RIGHT, "by says="


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        first, second = normal(other, one)
        return first == second
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)
