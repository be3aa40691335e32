"""The injections of a scenario: its faults, its level of chaos and its budget, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from chaoslab.base.registry import suggest_name
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.inject import check_injections
from chaoslab.core.levels import FAMILIES, USUAL, level
from chaoslab.core.plan import Injection, check_after_references
from chaoslab.scenarios.drawn_spec import (
    FIXED,
    DrawnFault,
    ListSpace,
    Space,
    TrialDrawSpaces,
    parse_space_or_value,
    parse_value_space,
)
from chaoslab.scenarios.lab_agent import LAB
from chaoslab.scenarios.scenario import BUDGET, collect_function_names

if TYPE_CHECKING:
    from chaoslab.scenarios.spec import FaultSpec, ScenarioSpec

LIST_TRIGGERS = ("calls", "attempts", "on_turn")
"""The triggers that are lists of numbers: one that is drawn becomes a list of one."""


class FaultChecks:
    """The injections of one scenario. `say(path, text)` notes an error. `drawn`: the faults of which each
    trial draws a parameter, by the injection's name. `levels`: the injections of each level that a trial may draw."""

    def __init__(self, spec: ScenarioSpec, objects: Mapping[str, Any], say: Callable[..., None]) -> None:
        self.spec, self.objects, self.say = spec, objects, say
        self.drawn: dict[str, DrawnFault] = {}
        self.levels: dict[float, tuple[Injection, ...]] = {}
        self._places: dict[str, int] = {}

    def build_injections(self, specs: Sequence[FaultSpec]) -> tuple[Injection, ...]:
        injections: list[Injection] = []
        for n, spec in enumerate(specs):
            injection = self._build_injection(spec, n)
            if injection is None:
                continue
            if any(injection.name == earlier.name for earlier in injections):
                self.say(
                    ("faults", n), f"'{injection.name}' stands here twice: give one of them another name (name: …)"
                )
            injections.append(injection)
            self._places[injection.name] = n
        return tuple(injections)

    def _build_injection(self, spec: FaultSpec, n: int) -> Injection | None:
        """The injection; None if it cannot be made, the reason for which is told."""
        try:
            drawn_fault = DrawnFault(spec.fault, spec.target, self._build_arguments(spec, n))
            drawn_fault.check_all_values()
            return self._make_injection(drawn_fault)
        except (LookupError, ValueError, TypeError) as error:
            self.say(("faults", n, self._find_wrong_key(spec, error)), str(error))
            return None

    def _find_wrong_key(self, spec: FaultSpec, error: Exception) -> str:
        """The key of a fault that an error is about; empty if it names none."""
        if isinstance(error, LookupError):
            return "fault"
        keys = ["fault", "target", *spec.arguments]
        return max((key for key in keys if re.search(rf"\b{re.escape(key)}\b", str(error))), key=len, default="")

    def check_targets(self, injections: Sequence[Injection], names: Sequence[str] | None, *, turns: int) -> None:
        """Checks that the faults have a target and a turn to hit. `names`: all that may be hit; None if only an import
        would tell. `turns`: the most of the conversation."""
        spec = self.spec
        services, functions = [*spec.services, *spec.upstreams], [*spec.tools, *spec.reads]
        noun = "service" if not functions else "tool or service" if services else "tool"
        if names == [] and spec.faults:
            self.say(("faults",), "there is nothing to hit: give tools, reads or services")
        missed = [
            (n, target)
            for n, spec_item in enumerate(spec.faults)
            for target in (spec_item.target if names else ())
            if not any(fnmatchcase(name, target) for name in names or ())
        ]
        for n, target in missed:
            self.say(("faults", n, "target"), f"no {noun} is called '{target}': {suggest_name(target, names or ())}")
        for injection in injections:
            n = self._places[injection.name]
            try:
                if names and not services and n not in dict(missed):
                    mortal = spec.resume_with is not None or not spec.resumes
                    check_injections(
                        [_drop_after_trigger(injection)], names, turns=turns, functions=names, mortal=mortal, user=None
                    )
                else:
                    injection.check(turns=turns)
            except (LookupError, ValueError) as error:
                self.say(("faults", n), str(error.args[0]))

    def check_after_triggers(self, injections: Sequence[Injection]) -> None:
        """Checks that each `after` names another injection that can hit first."""
        remaining = list(injections)
        while True:
            try:
                return check_after_references(remaining)
            except ValueError as error:
                name, n = next((name, n) for name, n in self._places.items() if str(error).startswith(f"'{name}'"))
                self.say(("faults", n, "after"), str(error))
                remaining = [
                    _drop_after_trigger(injection) if injection.name == name else injection for injection in remaining
                ]

    def _build_arguments(self, spec: FaultSpec, n: int) -> dict[str, Any]:
        """The fault's arguments, ranges and choices as spaces, without those that are wrong, each of which is told."""
        arguments = {}
        for key, value in spec.arguments.items():
            try:
                space = parse_value_space(value)
                if space is not None and key in FIXED:
                    raise ValueError(f"{key} is the same in all trials: give it one value")
                if space is not None and key in LIST_TRIGGERS:
                    space = _to_list_space(space)
            except ValueError as error:
                self.say(("faults", n, key), f"{key} of {spec.fault}: {error}")
                continue
            arguments[key] = space or value
        return arguments

    def _make_injection(self, drawn_fault: DrawnFault, name: str = "") -> Injection:
        injection, values = drawn_fault.make_injection(None, name)
        if values:
            self.drawn[injection.name] = drawn_fault
        return injection

    def build_budget_injections(self) -> tuple[Injection, ...]:
        spec = self.spec
        if spec.budget is None:
            return ()
        limits = {name: parse_space_or_value(limit) for name, limit in spec.budget.limits.items() if limit is not None}
        if not limits:
            self.say(("budget",), "a budget has tokens, dollars, calls or seconds, as in budget: {tokens: 20000}")
            return ()
        services = (*spec.services, *spec.upstreams)
        if not (spec.tools or spec.reads or services or spec.agent == LAB):
            self.say(("budget",), "there is nothing to spend it on: give tools, reads or services")
        unit = next((name for name in ("tokens", "dollars") if getattr(spec.budget, name)), "")
        if unit and not services and spec.agent != LAB:
            self.say(("budget", unit), f"only models use {unit}, and services has none")
        params: dict[str, Any] = {**limits, "mode": spec.budget.mode}
        return (self._make_injection(DrawnFault("budget", "*", params), BUDGET),)

    def build_level_injections(self) -> tuple[Injection, ...]:
        """The injections of the level; of the highest one if each trial draws its own."""
        level_value = parse_space_or_value(self.spec.chaos_level)
        if not isinstance(level_value, Space):
            return self._build_injections_at_level(level_value)
        self.levels = {
            value: self._build_injections_at_level(value) for value in sorted(set(level_value.values_to_check))
        }
        return self.levels[max(self.levels)]

    def collect_value_spaces(self, waits: Mapping[int, Space]) -> TrialDrawSpaces:
        """All that each trial draws. `waits`: the time before a turn, by its number."""
        level = parse_space_or_value(self.spec.chaos_level)
        return TrialDrawSpaces(self.drawn, level if isinstance(level, Space) else None, self.levels, waits)

    def _build_injections_at_level(self, value: float) -> tuple[Injection, ...]:
        if not value:
            return ()
        spec, path = self.spec, ("chaos_level",)
        is_lab = spec.agent == LAB
        models = {MODEL} if is_lab else set(spec.models)
        names = [
            *collect_function_names(spec, self.objects),
            *(n for n in (*spec.services, *spec.upstreams, *(SERVICES if is_lab else ())) if n not in models),
        ]
        usable = USUAL if not models else FAMILIES
        families: list[str] = list(spec.families or usable)
        model_families = [family for family in families if family in ("model", "stream", "context")]
        if model_families and not models:
            self.say(path, f"{model_families[0]} faults are of models, and models names none")
            return ()
        other_families = [family for family in families if family not in model_families]
        injections: tuple[Injection, ...] = ()
        if other_families and names:
            injections += level(value, names, families=other_families, of_bytes=not (spec.tools or spec.reads))
        if model_families:
            injections += level(value, sorted(models), families=model_families, of_bytes=True)
        if not injections:
            self.say(path, "there is nothing to hit: give tools, reads or services")
        return injections


def _drop_after_trigger(injection: Injection) -> Injection:
    """The same without its trigger `after`, which depends on other injections."""
    return replace(injection, triggers={key: trigger for key, trigger in injection.triggers.items() if key != "after"})


def _to_list_space(space: Space) -> Space:
    """The same with lists of one number in place of numbers."""
    if isinstance(space, ListSpace) or any(isinstance(end, list) for end in space.values_to_check):
        return space
    return ListSpace((space,))
