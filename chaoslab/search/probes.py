"""The faults that a search tries at a target, with the parameters that decide something there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import get_args, get_type_hints

from chaoslab.base.registry import list_plugins
from chaoslab.core.fault import GROUP, get_trait, load_fault
from chaoslab.core.machine import TARGETS
from chaoslab.core.plan import Injection
from chaoslab.search.variation import Probe, Site

ASIDE = ("budget", "concurrency_limit", "lost_field", "renamed_parameter", "runaway_guard", "stale_approval")
"""Faults that limit a whole trial instead of breaking one call, and those that say little without their parameters."""
DIRECTIONS = ("upstream", "downstream")
"""The two directions of a connection: what is lost upstream was not done, what is lost downstream was."""


def find_applicable_probes(
    targets: Sequence[str], checked: Callable[[Injection], object], faults: Sequence[str] = ()
) -> tuple[dict[str, list[Probe]], dict[str, dict[str, str]]]:
    """The probes by target, and why others do not apply, by target and fault. `checked` raises ValueError or
    LookupError, with one line, for an injection that cannot hit its target. `faults`: the only ones; by default all
    that there are.
    """
    fault_names = list(faults) or [
        name for name in list_plugins(GROUP) if name not in ASIDE and not get_trait(load_fault(name), "of_user")
    ]
    # Once for all targets: the types of a fault's parameters are read from its annotations.
    probes = {fault: [*_iterate_fault_probes(fault)] for fault in fault_names}
    apply: dict[str, list[Probe]] = {}
    inapplicable: dict[str, dict[str, str]] = {}
    for target in targets:
        apply[target], inapplicable[target] = [], {}
        for fault in fault_names:
            if not faults and target not in TARGETS and get_trait(load_fault(fault), "of_machine"):
                inapplicable[target][fault] = "it breaks files and commands: name it to have it tried at a function"
                continue
            for probe in probes[fault]:
                try:
                    checked(probe.make_injection(Site(target, 1)))
                except (ValueError, LookupError) as error:
                    inapplicable[target][probe.label] = str(error.args[0])
                else:
                    apply[target].append(probe)
    return apply, inapplicable


def _iterate_fault_probes(fault: str) -> Iterator[Probe]:
    cls = load_fault(fault)
    both = "stream" in {option.name for option in fields(cls)} and not get_trait(cls, "delays")
    moments = get_args(get_type_hints(cls).get("moment"))
    if moments:
        yield from (Probe(fault, (("moment", option),)) for option in moments)
    elif both:
        yield from (Probe(fault, (("stream", option),)) for option in DIRECTIONS)
    else:
        yield Probe(fault)
