"""The order in which faults are tried: what does harm most often first, what nobody can notice last."""

from enum import IntEnum
from functools import cache

from chaoslab.core.fault import load, trait
from chaoslab.search.variation import Tried


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
def unnoticeable(fault: str) -> bool:
    """True if nobody could tell it from the right exchange: its reply is whole and of the right form, or it is an
    oddity of the model."""
    cls = load(fault)
    if trait(cls, "breaks_form") or trait(cls, "evident") or not trait(cls, "corrupts"):
        return False
    return trait(cls, "leaves") not in ("nothing", "part") or bool(trait(cls, "of_model"))


@cache
def _rank_danger(fault: str) -> Danger:
    cls = load(fault)
    if unnoticeable(fault):
        return Danger.UNNOTICEABLE
    if trait(cls, "of_effect") or trait(cls, "unanswered"):
        return Danger.UNCLEAR
    if trait(cls, "delays") or trait(cls, "dose"):
        return Danger.LATE
    return Danger.CONTENT if trait(cls, "leaves") or trait(cls, "corrupts") else Danger.ERROR


def rank_danger(fault: str, *, acts: bool = True) -> Danger:
    """The danger of a fault at a call. `acts`: the call changes something."""
    rank = _rank_danger(fault)
    return Danger.ERROR if rank is Danger.UNCLEAR and not acts else rank


@cache
def comes_first(fault: str) -> bool:
    """True if a search tries it before others of its danger."""
    return _rank_danger(fault) is Danger.UNCLEAR or bool(trait(load(fault), "common"))


def rank_likelihood(tried: Tried) -> tuple[int, ...]:
    """The danger of each fault of a trial, the greatest first, which is the order of the likeliest too."""
    return tuple(sorted(_rank_danger(injection.choices[0].fault) for injection in tried.variation.injections))
