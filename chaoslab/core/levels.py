"""Chaos by level: one number for how often a call meets a fault, whatever it is, over families of faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaoslab.base.jsonable import shown
from chaoslab.base.registry import did_you_mean, family
from chaoslab.core.fault import GROUP, load, trait
from chaoslab.core.plan import Choice, Injection

LEVEL_MAX = 10
LEVELS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""The levels of `chaoslab stress` if none are named, which a chart has in any case."""
FAMILIES = ("network", "tool", "meaning", "model", "stream", "context")
"""The families whose faults a level may draw."""
NAMED = "level "
"""The beginning of the name of each injection of a level."""
USUAL = ("network", "tool", "meaning")


def chance_of(value: float) -> float:
    """The chance that a call meets a fault at a level: 10 % × level."""
    return round(value / 10, 12)


def is_level(value: object) -> bool:
    """True for a number from 0 to 10."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LEVEL_MAX


def level(
    value: float, target: str | Sequence[str], *, families: Sequence[str] = USUAL, of_bytes: bool = False
) -> tuple[Injection, ...]:
    """Injections for `faults=`, by which a call of the target meets a fault with a chance of 10 % × level, at a level
    from 0 to 10: `faults=lab.level(1, "get_*")`.

    The chance is shared evenly among the families ("network", "tool", "meaning", "model", "stream", "context"), and
    each draws from all its faults alike, with their defaults. `target` is that of `inject`. The last three families are
    of models.
    `of_bytes`: faults of an answer's bytes too, which functions have none of.

    Raises:
        ValueError: no such level or family, or none.
    """
    if not is_level(value):
        raise ValueError(f"the level is {shown(value)}: it should be a number from 0 to {LEVEL_MAX}")
    asked = [families] if isinstance(families, str) else list(families)
    for name in asked:
        if name not in FAMILIES:
            raise ValueError(f"families has {shown(name)}: {did_you_mean(str(name), FAMILIES)}")
    if not asked or len(set(asked)) < len(asked):
        raise ValueError(f"families is {shown(families)}: it should name one or more, each once")
    targets = (target,) if isinstance(target, str) else tuple(target)
    if not targets or not all(isinstance(one, str) and one for one in targets):
        raise ValueError(f"the level has the target {shown(target)}: it should be the name of a function or service")
    chance = round(1 - (1 - chance_of(value)) ** (1 / len(asked)), 6)
    return tuple(each for name in asked if chance for each in _of_family(name, targets, chance, of_bytes=of_bytes))


def _of_family(name: str, targets: tuple[str, ...], chance: float, *, of_bytes: bool) -> Iterator[Injection]:
    """The injections that share this chance. A fault that refuses connections has one of its own, since it is decided
    on before there is a request; each fault has the same part of the chance."""
    # the faults of a family that a level draws from: all but those that decide by themselves when they act
    faults = ((fault, load(fault)) for fault in family(GROUP, name))
    choices = tuple(
        Choice(fault)
        for fault, cls in faults
        if not trait(cls, "conditional") and (of_bytes or not trait(cls, "of_bytes"))
    )
    alone = [choice for choice in choices if trait(load(choice.fault), "refuses")]
    groups = [(f"{NAMED}{name}", tuple(choice for choice in choices if choice not in alone))]
    groups += [(f"{NAMED}{name} ({choice.fault})", (choice,)) for choice in alone]
    for named, group in groups:
        part = 1 - (1 - chance) ** (len(group) / len(choices)) if alone else chance
        yield Injection(f"{named} on {', '.join(targets)}", group, targets, round(part, 7))
