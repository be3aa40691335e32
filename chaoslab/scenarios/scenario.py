"""A scenario that was read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.assertions import Assertion
from chaoslab.analysis.assertions.calls import Slo
from chaoslab.core.conversation import Conversation
from chaoslab.core.plan import Injection
from chaoslab.scenarios.drawn_spec import TrialDrawSpaces

if TYPE_CHECKING:
    from chaoslab.execution.drawn import DrawnPlan
    from chaoslab.scenarios.spec import ScenarioSpec

BUDGET = "budget"
"""The name of the injection that holds a scenario to its budget."""


@dataclass(frozen=True)
class Scenario:
    """A checked scenario. `folder`: where its modules are sought first. `by_turn`: the assertions about one turn, by
    its number. `variant`: its name, if it is one. `objects`: those that Python gave, by the name that stands for
    them. `slo`: the shares of calls that must be good, over all trials. `spaces`: what each trial draws."""

    spec: ScenarioSpec
    injections: tuple[Injection, ...]
    expect: tuple[Assertion, ...]
    by_turn: Mapping[int, tuple[Assertion, ...]]
    prompt: str | Conversation
    file: str = ""
    folder: Path | None = None
    variant: str = ""
    objects: Mapping[str, Any] = field(default_factory=dict)
    slo: tuple[Slo, ...] = ()
    spaces: TrialDrawSpaces = field(default_factory=TrialDrawSpaces)

    @property
    def faults(self) -> tuple[Injection, ...]:
        """The injections but for the budget, which a trial may stay within."""
        return tuple(injection for injection in self.injections if injection.name != BUDGET)

    def draw_plan(self, seed: int, number: int) -> DrawnPlan:
        """The plan of the trial with this number, from 0."""
        return self.spaces.draw_plan(self.injections, seed=seed, number=number)

    @property
    def name(self) -> str:
        return f"{self.spec.name}, {self.variant}" if self.variant else self.spec.name

    @property
    def function_names(self) -> list[str]:
        """The names of its tools and reads in plans and logs."""
        return collect_function_names(self.spec, self.objects)


def list_module_folders(folder: Path | None) -> list[Path]:
    """The folders in which a scenario's modules are sought, the first one first: its own, and the current one."""
    return list(dict.fromkeys([(folder or Path()).resolve(), Path.cwd()]))


def collect_function_names(spec: ScenarioSpec, objects: Mapping[str, Any]) -> list[str]:
    """The names of the tools and reads in plans and logs."""
    return [given_name or get_logged_name(dotted, objects) for _, _, given_name, dotted in spec.function_entries]


def get_logged_name(dotted: str, objects: Mapping[str, Any]) -> str:
    """The name of a function in plans and logs: the last one of module:name, or its own if Python gave it."""
    if dotted in objects:
        from chaoslab.execution.agents.functions import get_function_name

        return get_function_name(objects[dotted])
    return dotted.rpartition(":")[2].rpartition(".")[2]
