"""The injections of a scenario: its faults, its level of chaos and its budget, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from chaoslab.base.registry import did_you_mean
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.inject import check
from chaoslab.core.levels import FAMILIES, USUAL, level
from chaoslab.core.plan import Injection, check_cascades
from chaoslab.scenarios.drawn_spec import FIXED, DrawnFault, ListSpace, Space, Spaces, space_of, space_or_value
from chaoslab.scenarios.lab_agent import LAB
from chaoslab.scenarios.scenario import BUDGET, names_of

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import FaultSpec, ScenarioSpec

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
            made = self._injection(each, n)
            if made is None:
                continue
            if any(made.name == other.name for other in found):
                self.say(("faults", n), f"'{made.name}' stands here twice: give one of them another name (name: …)")
            found.append(made)
            self._places[made.name] = n
        return tuple(found)

    def _injection(self, given: FaultSpec, n: int) -> Injection | None:
        """The injection; None if it cannot be made, the reason for which is told."""
        try:
            of = DrawnFault(given.fault, given.target, self._arguments(given, n))
            of.check()
            return self._made(of)
        except (LookupError, ValueError, TypeError) as error:
            self.say(("faults", n, self._named(given, error)), str(error))
            return None

    def _named(self, given: FaultSpec, error: Exception) -> str:
        """The key of a fault that an error is about; empty if it names none."""
        if isinstance(error, LookupError):
            return "fault"
        keys = ["fault", "target", *given.arguments]
        return max((key for key in keys if re.search(rf"\b{re.escape(key)}\b", str(error))), key=len, default="")

    def check_places(self, injections: Sequence[Injection], names: Sequence[str] | None, *, turns: int) -> None:
        """Checks that the faults have a target and a turn to hit. `names`: all that may be hit; None if only an import
        would tell. `turns`: the most of the conversation."""
        spec = self.spec
        services, functions = [*spec.services, *spec.upstreams], [*spec.tools, *spec.reads]
        what = "service" if not functions else "tool or service" if services else "tool"
        if names == [] and spec.faults:
            self.say(("faults",), "there is nothing to hit: give tools, reads or services", of_key=True)
        missed = [
            (n, target)
            for n, each in enumerate(spec.faults)
            for target in (each.target if names else ())
            if not any(fnmatchcase(name, target) for name in names or ())
        ]
        for n, target in missed:
            self.say(("faults", n, "target"), f"no {what} is called '{target}': {did_you_mean(target, names or ())}")
        for made in injections:
            n = self._places[made.name]
            try:
                if names and not services and n not in dict(missed):
                    mortal = spec.resume_with is not None or not spec.resumes
                    check([_without_after(made)], names, turns=turns, functions=names, mortal=mortal)
                else:
                    made.check(turns=turns)
            except (LookupError, ValueError) as error:
                self.say(("faults", n), str(error.args[0]))

    def check_cascades(self, injections: Sequence[Injection]) -> None:
        """Checks that each `after` names another injection that can hit first."""
        left = list(injections)
        while True:
            try:
                return check_cascades(left)
            except ValueError as error:
                name, n = next((name, n) for name, n in self._places.items() if str(error).startswith(f"'{name}'"))
                self.say(("faults", n, "after"), str(error))
                left = [_without_after(each) if each.name == name else each for each in left]

    def _arguments(self, given: FaultSpec, n: int) -> dict[str, Any]:
        """The fault's arguments, ranges and choices as spaces, without those that are wrong, each of which is told."""
        found = {}
        for key, value in given.arguments.items():
            try:
                space = space_of(value)
                if space is not None and key in FIXED:
                    raise ValueError(f"{key} is the same in all trials: give it one value")
                if space is not None and key in NUMBERS:
                    space = _of_lists(space)
            except ValueError as error:
                self.say(("faults", n, key), f"{key} of {given.fault}: {error}")
                continue
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
            *names_of(spec, self.objects),
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


def _without_after(injection: Injection) -> Injection:
    """The same without its trigger `after`, which depends on other injections."""
    return replace(injection, triggers={key: each for key, each in injection.triggers.items() if key != "after"})


def _of_lists(space: Space) -> Space:
    """The same with lists of one number in place of numbers."""
    if isinstance(space, ListSpace) or any(isinstance(end, list) for end in space.ends):
        return space
    return ListSpace((space,))
