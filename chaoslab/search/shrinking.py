"""Shrinks a variation that fails to one that fails alike and of which no part can be left out.

Delta debugging (A. Zeller and R. Hildebrandt, Simplifying and isolating failure-inducing input, IEEE TSE 28(2), 2002):
`drop_needless_parts` is ddmin over injections and orders. Then each part is made plainer. The passes are generators
that yield a variation, are sent True if it fails alike, and return the last that does.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.plan import Choice, Injection
from chaoslab.search.variation import Variation

Pass = Generator[Variation, bool, Variation]
P = TypeVar("P")
HALVINGS = 8
"""The most times that a delay is halved."""


def shrink_by_all_passes(failing: Variation, moments: Sequence[Sequence[str]]) -> Pass:
    """All passes in turn. `moments`: the calls of each moment at which several were made, in the order of asking."""
    smallest = yield from drop_needless_parts(failing)
    smallest = yield from simplify_call_orders(smallest, moments)
    smallest = yield from simplify_faults(smallest)
    return (yield from drop_needless_parts(smallest))  # one that hits more may make another needless


def drop_needless_parts(failing: Variation) -> Pass:
    """Leaves out injections and orders."""
    chosen: list[Any] = [*failing.injections, *(failing.order or ())]

    def build_variation(chosen_parts: Sequence[Any]) -> Variation:
        injections = tuple(item for item in chosen_parts if isinstance(item, Injection))
        order = tuple(item for item in chosen_parts if not isinstance(item, Injection))
        return replace(failing, injections=injections, order=order or None)

    return build_variation((yield from _find_minimal_parts(chosen, build_variation)))


def iterate_without_each_part(variation: Variation) -> Iterator[Variation]:
    """The variation without each of its injections and orders."""
    for n in range(len(variation.injections)):
        yield replace(variation, injections=variation.injections[:n] + variation.injections[n + 1 :])
    for n in range(len(variation.order or ())):
        order = (variation.order or ())[:n] + (variation.order or ())[n + 1 :]
        yield replace(variation, order=order or None)


def _find_minimal_parts(
    parts: list[P], build: Callable[[Sequence[P]], Variation]
) -> Generator[Variation, bool, list[P]]:
    pieces = 2
    while len(parts) > 1:
        size = -(-len(parts) // pieces)  # rounded up
        chunks = [parts[begin : begin + size] for begin in range(0, len(parts), size)]
        without = [[item for chunk in chunks if chunk is not omitted for item in chunk] for omitted in chunks]
        # Of two chunks, each is what the other leaves.
        for fewer in [*chunks, *without] if len(chunks) > 2 else chunks:
            if (yield build(fewer)):
                parts, pieces = fewer, max(2, min(pieces - 1, len(fewer)))
                break
        else:
            if size == 1:
                break
            pieces = min(len(parts), pieces * 2)
    return parts


def simplify_call_orders(failing: Variation, moments: Sequence[Sequence[str]]) -> Pass:
    """Makes of each order one swap of two calls, if one is enough."""
    for entry in failing.order or ():
        moment, names = entry
        if moment > len(moments) or sorted(moments[moment - 1]) != sorted(names):
            continue
        call_names = list(moments[moment - 1])
        pairs = list(combinations(range(len(call_names)), 2))
        # Neighbours first: the least swap that is enough is the one to show.
        for first, second in sorted(pairs, key=lambda pair: pair[1] - pair[0]):
            swapped = list(call_names)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            if tuple(swapped) == names:
                break
            fewer = tuple((moment, tuple(swapped)) if step == entry else step for step in failing.order or ())
            if (yield replace(failing, order=fewer)):
                failing = replace(failing, order=fewer)
                break
    return failing


def simplify_faults(failing: Variation) -> Pass:
    """Leaves out triggers and parameters of each injection, and shortens delays."""
    for n in range(len(failing.injections)):
        for change in (_drop_triggers, _drop_params, _halve_dose):
            failing = yield from change(failing, n)
    return failing


def _replace_injection(failing: Variation, n: int, injection: Injection) -> Variation:
    injections = list(failing.injections)
    injections[n] = injection
    return replace(failing, injections=tuple(injections))


def _drop_triggers(failing: Variation, n: int) -> Pass:
    injection = failing.injections[n]
    for name in [*injection.triggers]:
        fewer = {key: value for key, value in injection.triggers.items() if key != name}
        candidate = replace(injection, triggers=fewer)
        if (yield _replace_injection(failing, n, candidate)):
            injection = candidate
    for number in injection.calls if len(injection.calls) > 1 else ():
        candidate = replace(injection, calls=tuple(call for call in injection.calls if call != number))
        if candidate.calls and (yield _replace_injection(failing, n, candidate)):
            injection = candidate
    return _replace_injection(failing, n, injection)


def _drop_params(failing: Variation, n: int) -> Pass:
    injection = failing.injections[n]
    if len(injection.choices) != 1:
        return failing
    for name in [*injection.choices[0].params]:
        params = {key: value for key, value in injection.choices[0].params.items() if key != name}
        candidate = replace(injection, choices=(replace(injection.choices[0], params=params),))
        if (yield _replace_injection(failing, n, candidate)):
            injection = candidate
    return _replace_injection(failing, n, injection)


def _halve_dose(failing: Variation, n: int) -> Pass:
    injection = failing.injections[n]
    (choice, *alternatives) = injection.choices
    name = get_trait(load_fault(choice.fault), "dose")
    value = choice.params.get(name)
    if alternatives or not isinstance(value, int | float):
        return failing
    for _ in range(HALVINGS):
        value = round(value / 2, 3)
        candidate = replace(injection, choices=(Choice(choice.fault, choice.weight, {**choice.params, name: value}),))
        if not value or not (yield _replace_injection(failing, n, candidate)):
            break
        injection = candidate
    return _replace_injection(failing, n, injection)
