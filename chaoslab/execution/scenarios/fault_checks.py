"""The injections of a scenario: its faults, its level of chaos and its budget, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.inject import inject
from chaoslab.core.levels import FAMILIES, USUAL, level
from chaoslab.core.plan import Injection
from chaoslab.execution.scenarios.lab_agent import LAB
from chaoslab.execution.scenarios.scenario import BUDGET, name_of
from chaoslab.execution.scenarios.spaces import FIXED, DrawnFault, Space, space_of

if TYPE_CHECKING:
    from chaoslab.execution.scenarios.spec import FaultSpec, ScenarioSpec

CHOICES_MAX = 100
"""The most values of a parameter that trials choose from."""


class FaultChecks:
    """The injections of one scenario. `say(path, text, of_key=…)` notes an error. `spaces`: the faults of which each
    trial draws a parameter, by the injection's name."""

    def __init__(self, spec: ScenarioSpec, objects: Mapping[str, Any], say: Callable[..., None]) -> None:
        self.spec, self.objects, self.say = spec, objects, say
        self.spaces: dict[str, DrawnFault] = {}

    def injections(self, given: Sequence[FaultSpec]) -> tuple[Injection, ...]:
        found: list[Injection] = []
        for n, each in enumerate(given):
            arguments = self._arguments(each, n)
            if arguments is None:
                continue
            spaces = {key: value for key, value in arguments.items() if isinstance(value, Space)}
            try:
                first = {key: space.ends[0] for key, space in spaces.items()}
                for key, value in [(key, value) for key, space in spaces.items() for value in space.ends]:
                    inject(each.fault, each.target, **{**arguments, **first, key: value})
                of = DrawnFault(each.fault, each.target, arguments)
                made, _ = of.made(None)
                if spaces:
                    self.spaces[made.name] = of
            except (LookupError, ValueError, TypeError) as error:
                keys = ["fault", "target", *each.arguments]
                named = max(
                    (key for key in keys if re.search(rf"\b{re.escape(key)}\b", str(error))), key=len, default=""
                )
                self.say(("faults", n, "fault" if isinstance(error, LookupError) else named), str(error))
                continue
            if any(made.name == other.name for other in found):
                self.say(("faults", n), f"'{made.name}' stands here twice: give one of them another name (name: …)")
            found.append(made)
        return tuple(found)

    def _arguments(self, given: FaultSpec, n: int) -> dict[str, Any] | None:
        """The fault's arguments, ranges and choices as spaces; None if one of them is wrong."""
        found = {}
        for key, value in given.arguments.items():
            try:
                space = space_of(value)
                if space is not None and key in FIXED:
                    raise ValueError(f"{key} is the same in all trials: give it one value")
                if space is not None and len(space.ends) > CHOICES_MAX:
                    raise ValueError(f"it has {len(space.ends)} choices: {CHOICES_MAX} at most")
            except ValueError as error:
                self.say(("faults", n, key), f"{key} of {given.fault}: {error}")
                return None
            found[key] = space or value
        return found

    def budget(self) -> tuple[Injection, ...]:
        spec = self.spec
        if spec.budget is None:
            return ()
        limits = {name: value for name, value in spec.budget.limits.items() if value is not None}
        if not limits:
            self.say(("budget",), "a budget has tokens, dollars, calls or seconds, as in budget: {tokens: 20000}")
            return ()
        services = (*spec.services, *spec.upstreams)
        if not (spec.tools or spec.reads or services or spec.agent == LAB):
            self.say(("budget",), "there is nothing to spend it on: give tools, reads or services", of_key=True)
        spent = next((name for name in ("tokens", "dollars") if getattr(spec.budget, name)), "")
        if spent and not services and spec.agent != LAB:
            self.say(("budget", spent), f"only models use {spent}, and services has none", of_key=True)
        params: dict[str, Any] = {**limits, "mode": spec.budget.mode}
        return (inject("budget", "*", name=BUDGET, **params),)

    def level(self, value: float) -> tuple[Injection, ...]:
        if not value:
            return ()
        spec, path = self.spec, ("chaos_level",)
        own = spec.agent == LAB
        models = {MODEL} if own else set(spec.models)
        names = [
            *(name_of(each, self.objects) for each in (*spec.tools, *spec.reads)),
            *(n for n in (*spec.services, *spec.upstreams, *(SERVICES if own else ())) if n not in models),
        ]
        usable = USUAL if not models else FAMILIES
        families: list[str] = list(spec.families or usable)
        of_model = [family for family in families if family in ("model", "stream", "context")]
        if of_model and not models:
            self.say(path, f"{of_model[0]} faults are of models, and models names none", of_key=True)
            return ()
        usual = [family for family in families if family not in of_model]
        found: tuple[Injection, ...] = ()
        if usual and names:
            found += level(value, names, families=usual, of_bytes=not (spec.tools or spec.reads))
        if of_model:
            found += level(value, sorted(models), families=of_model, of_bytes=True)
        if not found:
            self.say(path, "there is nothing to hit: give tools, reads or services", of_key=True)
        return found
