"""The strategies of an exploration, one file each, in the order of `ORDER`. A strategy is a function `batches(known)`:
a generator of lists of variations. When it is advanced, all of the last list were tried, and `known` holds what came of
them; those that were tried before are not run again."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import cast

from chaoslab.search.variation import SearchKnowledge, Variation

Batches = Callable[[SearchKnowledge], Iterator[list[Variation]]]
ORDER = ("singles", "lasting", "born", "pairs", "orders", "random_plans")
"""Single faults, those that last, those at calls that faults brought up, pairs, orders of parallel calls, and dice."""


def load_strategy(name: str) -> Batches:
    """The strategy of this name."""
    return cast(Batches, import_module(f"{__name__}.{name}").batches)
