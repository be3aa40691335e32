"""The injections of a scenario: its faults, its level of chaos and its budget, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from chaoslab.base.registry import did_you_mean
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.levels import FAMILIES, USUAL, level
from chaoslab.core.plan import Injection, check_cascades
from chaoslab.execution.scenarios.lab_agent import LAB
from chaoslab.execution.scenarios.scenario import BUDGET, name_of
from chaoslab.execution.scenarios.spaces import FIXED, DrawnFault, Listed, Space, Spaces, space_of, space_or_value

if TYPE_CHECKING:
    from chaoslab.execution.scenarios.spec import FaultSpec, ScenarioSpec

NUMBERS = ("calls", "attempts", "on_turn")
"""The triggers that are lists of numbers: one that is drawn becomes a list of one."""


class FaultChecks:
    """The injections of one scenario. `say(path, text, of_key=…)` notes an error. `drawn`: the faults of which each
    trial draws a parameter, by the injection's name. `levels`: the injections of each level that a trial may draw."""

    def __init__(self, spec: ScenarioSpec, objects: Mapping[str, Any], say: Callable[..., None]) -> None:
        self.spec, self.objects, self.say = spec, objects, say
        self.drawn: dict[str, DrawnFault] = {}
        self.levels: dict[float, tuple[Injection, ...]] = {}
        self._places: dict[str, int] = {}

    def injections(self, given: Sequence[FaultSpec]) -> tuple[Injection, ...]:
        found: list[Injection] = []
        for n, each in enumerate(given):
            arguments = self._arguments(each, n)
            if arguments is None:
                continue
            try:
                of = DrawnFault(each.fault, each.target, arguments)
                of.check()
                made = self._made(of)
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
            self._places[made.name] = n
        return tuple(found)

    def check_places(self, injections: Sequence[Injection], *, turns: int) -> None:
        """Checks that the faults have a target and a turn to hit. The name of a tool is only known when it is imported,
        so targets are checked where there are services alone. `turns`: the most of the conversation."""
        spec = self.spec
        services = [*spec.services, *spec.upstreams]
        for made in injections:
            n = self._places[made.name]
            for target in made.targets if services and not (spec.tools or spec.reads) else ():
                if not any(fnmatchcase(name, target) for name in services):
                    self.say(
                        ("faults", n, "target"), f"no service is called '{target}': {did_you_mean(target, services)}"
                    )
            try:
                made.check(turns=turns)
            except ValueError as error:
                self.say(("faults", n), str(error))

    def check_cascades(self, injections: Sequence[Injection]) -> None:
        """Checks that each `after` names another injection that can hit first."""
        try:
            check_cascades(injections)
        except ValueError as error:
            n = next(n for name, n in self._places.items() if str(error).startswith(f"'{name}'"))
            self.say(("faults", n, "after"), str(error))

    def _arguments(self, given: FaultSpec, n: int) -> dict[str, Any] | None:
        """The fault's arguments, ranges and choices as spaces; None if one of them is wrong."""
        found = {}
        for key, value in given.arguments.items():
            try:
                space = space_of(value)
                if space is not None and key in FIXED:
                    raise ValueError(f"{key} is the same in all trials: give it one value")
                if space is not None and key in NUMBERS and not (key == "calls" and given.fault == BUDGET):
                    space = _of_lists(space)
            except ValueError as error:
                self.say(("faults", n, key), f"{key} of {given.fault}: {error}")
                return None
            found[key] = space or value
        return found

    def _made(self, of: DrawnFault, name: str = "") -> Injection:
        made, values = of.made(None, name)
        if values:
            self.drawn[made.name] = of
        return made

    def budget(self) -> tuple[Injection, ...]:
        spec = self.spec
        if spec.budget is None:
            return ()
        limits = {name: space_or_value(each) for name, each in spec.budget.limits.items() if each is not None}
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
        return (self._made(DrawnFault("budget", "*", params), BUDGET),)

    def level(self) -> tuple[Injection, ...]:
        """The injections of the level; of the highest one if each trial draws its own."""
        found = space_or_value(self.spec.chaos_level)
        if not isinstance(found, Space):
            return self._level(found)
        self.levels = {value: self._level(value) for value in sorted(set(found.ends))}
        return self.levels[max(self.levels)]

    def spaces(self, waits: Mapping[int, Space]) -> Spaces:
        """All that each trial draws. `waits`: the time before a turn, by its number."""
        level = space_or_value(self.spec.chaos_level)
        return Spaces(self.drawn, level if isinstance(level, Space) else None, self.levels, waits)

    def _level(self, value: float) -> tuple[Injection, ...]:
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


def _of_lists(space: Space) -> Space:
    """The same with lists of one number in place of numbers."""
    if isinstance(space, Listed) or any(isinstance(end, list) for end in space.ends):
        return space
    return Listed((space,))
