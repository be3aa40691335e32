"""Ready-made injections: chaos by level, which is one number for how often a call meets a fault, whatever it is, over
families of faults; and networks by quality, on which every call is late, and some fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.registry import list_family_plugins, suggest_name
from chaoslab.core.fault import GROUP, get_trait, load_fault
from chaoslab.core.inject import inject
from chaoslab.core.plan import Choice, Injection

NETWORKS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "good": (),
    "moderate": (("reset_peer", 0.01),),
    "poor": (("reset_peer", 0.03), ("timeout", 0.02)),
    "degrading": (),
    "spiky": (),
    "production": (("rate_limit", 0.03), ("server_error", 0.01), ("timeout_before_effect", 0.01)),
}
"""The faults of each network beside its delay, with the chance that a call meets them."""
WITHOUT_DELAY = ("production",)
"""The networks whose calls are not late."""


def network(quality: str, target: str | Sequence[str]) -> tuple[Injection, ...]:
    """Injections for `faults=`, by which every call of the target goes over a network of this quality:
    `faults=lab.network("poor", "crm.test")`.

    `quality`: "good" (30 to 70 ms), "moderate" (0.1 to 0.5 s, and 1 % are reset), "poor" (2 s on average, exponential;
    3 % are reset and 2 % never answered), "degrading" (0.1 s, and 0.2 s more with each call) or "spiky" (0.1 s, and 5 s
    for a tenth of them). The delays are the presets of the fault `delay`. All are round numbers that the lab chose to
    be told apart easily, and none was measured: state those of a real line with `inject`. `target` is that of `inject`.

    "production" is a model's API as it was measured in February 2026: 5 % of the calls failed, 60 % of these by rate
    limits (Datadog, State of AI Engineering 2026). So 3 % are refused with 429; the lab's choice for the other 2 % is
    half errors of the server, half no answer. It has no delay.

    Raises:
        ValueError: no such quality, or no target.
    """
    if not isinstance(quality, str) or quality not in NETWORKS:
        raise ValueError(f"the network is {repr_one_line(quality)}: {suggest_name(str(quality), NETWORKS)}")
    target_text = target if isinstance(target, str) else ", ".join(map(str, target))
    named = f"{quality} network, {{}} on {target_text}"
    late = () if quality in WITHOUT_DELAY else (inject("delay", target, name=named.format("delay"), preset=quality),)
    injections = (inject(fault, target, name=named.format(fault), chance=chance) for fault, chance in NETWORKS[quality])
    return (*late, *injections)


LEVEL_MAX = 10
LEVELS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""The levels of `chaoslab stress` if none are named, which a chart has in any case."""
FAMILIES = ("network", "tool", "meaning", "model", "stream", "context")
"""The families whose faults a level may draw."""
NAMED = "level "
"""The beginning of the name of each injection of a level."""
USUAL = ("network", "tool", "meaning")


def level_to_chance(value: float) -> float:
    """The chance that a call meets a fault at a level: 10 % × level."""
    # Rounded, since 0.7 / 10 is 0.06999999999999999.
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
        raise ValueError(f"the level is {repr_one_line(value)}: it should be a number from 0 to {LEVEL_MAX}")
    family_names = [families] if isinstance(families, str) else list(families)
    for name in family_names:
        if name not in FAMILIES:
            raise ValueError(f"families has {repr_one_line(name)}: {suggest_name(str(name), FAMILIES)}")
    if not family_names or len(set(family_names)) < len(family_names):
        raise ValueError(f"families is {repr_one_line(families)}: it should name one or more, each once")
    targets = (target,) if isinstance(target, str) else tuple(target)
    if not targets or not all(isinstance(entry, str) and entry for entry in targets):
        raise ValueError(
            f"the level has the target {repr_one_line(target)}: it should be the name of a function or service"
        )
    # Each family is rolled by itself: with 1 - (1 - p)^(1/n) each, n of them make p together.
    chance = round(1 - (1 - level_to_chance(value)) ** (1 / len(family_names)), 6)
    return tuple(
        injection
        for name in family_names
        if chance
        for injection in _build_family_injections(name, targets, chance, of_bytes=of_bytes)
    )


def _build_family_injections(
    name: str, targets: tuple[str, ...], chance: float, *, of_bytes: bool
) -> Iterator[Injection]:
    """The injections that share this chance. A fault that refuses connections has one of its own, since it is decided
    on before there is a request; each fault has the same part of the chance."""
    # the faults of a family that a level draws from: all but those that decide by themselves when they act
    faults = ((fault, load_fault(fault)) for fault in list_family_plugins(GROUP, name))
    choices = tuple(
        Choice(fault)
        for fault, cls in faults
        if not get_trait(cls, "conditional") and (of_bytes or not get_trait(cls, "of_bytes"))
    )
    alone = [choice for choice in choices if get_trait(load_fault(choice.fault), "refuses")]
    groups = [(f"{NAMED}{name}", tuple(choice for choice in choices if choice not in alone))]
    groups += [(f"{NAMED}{name} ({choice.fault})", (choice,)) for choice in alone]
    for named, group in groups:
        share = 1 - (1 - chance) ** (len(group) / len(choices)) if alone else chance
        yield Injection(f"{named} on {', '.join(targets)}", group, targets, round(share, 7))
