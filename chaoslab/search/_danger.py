"""The order in which faults are tried: what does harm most often first, what nobody can notice last."""

from enum import IntEnum
from functools import cache

from chaoslab.core.fault import get_trait, load_fault
from chaoslab.search.variation import TriedVariation


class Danger(IntEnum):
    """The danger of a fault at a call, greatest first. UNCLEAR: of a call that acts, its caller cannot know what was
    done, or it is done twice. ERROR: the caller is told. LATE: it waits. CONTENT: the reply is wrong, cut or empty.
    UNNOTICEABLE: nobody can tell it from the right exchange, or it is an oddity of the model."""

    UNCLEAR = 0
    ERROR = 1
    LATE = 2
    CONTENT = 3
    UNNOTICEABLE = 4


@cache
def is_unnoticeable_fault(fault: str) -> bool:
    """True if nobody could tell it from the right exchange: its reply is whole and of the right form, or it is an
    oddity of the model."""
    cls = load_fault(fault)
    if get_trait(cls, "breaks_form") or get_trait(cls, "evident") or not get_trait(cls, "corrupts"):
        return False
    return get_trait(cls, "leaves") not in ("nothing", "part") or bool(get_trait(cls, "of_model"))


@cache
def _rank_danger(fault: str) -> Danger:
    cls = load_fault(fault)
    if is_unnoticeable_fault(fault):
        return Danger.UNNOTICEABLE
    if get_trait(cls, "of_effect") or get_trait(cls, "unanswered"):
        return Danger.UNCLEAR
    if get_trait(cls, "delays") or get_trait(cls, "dose"):
        return Danger.LATE
    return Danger.CONTENT if get_trait(cls, "leaves") or get_trait(cls, "corrupts") else Danger.ERROR


def rank_danger(fault: str, *, acts: bool = True) -> Danger:
    """The danger of a fault at a call. `acts`: the call changes something."""
    rank = _rank_danger(fault)
    return Danger.ERROR if rank is Danger.UNCLEAR and not acts else rank


@cache
def is_tried_first(fault: str) -> bool:
    """True if a search tries it before others of its danger."""
    return _rank_danger(fault) is Danger.UNCLEAR or bool(get_trait(load_fault(fault), "common"))


def rank_fault_dangers(tried: TriedVariation) -> tuple[int, ...]:
    """The danger of each fault of a trial, the greatest first, which is the order of the likeliest too."""
    return tuple(sorted(_rank_danger(injection.choices[0].fault) for injection in tried.variation.injections))
