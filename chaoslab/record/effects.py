"""The effects of trials, and the attempts that had them."""

from collections.abc import Callable, Iterable

from chaoslab.core.events import AttemptEvent, Effect
from chaoslab.record.lines import Record

AttemptPlace = tuple[str, int, int]
"""An attempt of one trial: (target, request, attempt)."""


def find_distinct_effects(pairs: Iterable[tuple[Record, Effect]]) -> list[tuple[Record, Effect]]:
    """The effects in their order; lines of a trial with the same request id are one effect."""
    effects: dict[tuple[str | None, str, str | int], tuple[Record, Effect]] = {}
    for nth, pair in enumerate(pairs):
        record, effect = pair
        effects.setdefault((record.trial, effect.target, effect.request_id or nth), pair)
    return list(effects.values())


def make_attempt_finder(calls: Iterable[AttemptEvent]) -> Callable[[Effect], AttemptPlace | None]:
    """A function that gives the attempt that had an effect, None if the log does not tell. `calls`: the beginnings or
    ends of all attempts of the trial. A seam notes the number of the request; of a service's own ledger the id tells,
    by its first attempt."""
    by_id: dict[tuple[str, str], AttemptPlace] = {}
    for call in calls:
        by_id.setdefault((call.target, call.request_id), (call.target, call.request, call.attempt))

    def find_attempt(effect: Effect) -> AttemptPlace | None:
        if effect.request is not None and effect.attempt is not None:
            return effect.target, effect.request, effect.attempt
        return by_id.get((effect.target, effect.request_id))

    return find_attempt
