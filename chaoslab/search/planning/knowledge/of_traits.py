"""The chances that the traits of a fault say of it."""

from __future__ import annotations

from chaoslab.search.planning.cells import traits_of
from chaoslab.search.planning.evidence import HARM


class OfTraits:
    """A fault in silence deceives; an error that nobody expects breaks; a short delay is survived. Harm is done where
    something is changed, by a repetition or by a wrong value."""

    def prior(self, fault: str, *, how: str, changes: bool, what: str) -> tuple[float, float] | None:
        found = traits_of(fault)
        if found is None:
            return None
        silent, value = bool(getattr(found, "corrupts", "")), getattr(found, "leaves", "") == "value"
        slow = bool(getattr(found, "delays", False) or getattr(found, "dose", ""))
        if what == HARM:
            return (0.2 if changes or silent or value else 0.12) * (0.5 if slow else 1.0), 0.5
        chance = 0.5 if silent or value else 0.15 if slow else 0.3
        return chance * (1.3 if how == "always" else 1.0), 2.0
