"""Networks by their quality: injections that make every call as late as it would be on such a line, and some fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaoslab.base.jsonable import shown
from chaoslab.base.registry import did_you_mean
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection

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
        raise ValueError(f"the network is {shown(quality)}: {did_you_mean(str(quality), NETWORKS)}")
    where = target if isinstance(target, str) else ", ".join(map(str, target))
    named = f"{quality} network, {{}} on {where}"
    late = () if quality in WITHOUT_DELAY else (inject("delay", target, name=named.format("delay"), preset=quality),)
    others = (inject(fault, target, name=named.format(fault), chance=chance) for fault, chance in NETWORKS[quality])
    return (*late, *others)
