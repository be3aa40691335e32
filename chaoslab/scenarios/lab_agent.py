"""The door to the lab's own agent for a scenario with `agent: lab`. It is named here and loaded when such a scenario is
read, since the library imports nothing of the lab."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from chaoslab.core.plan import Injection
    from chaoslab.execution.exploring import SearchSession
    from chaoslab.execution.trial import Trial
    from chaoslab.scenarios.scenario import Scenario
    from chaoslab.scenarios.spec import ScenarioSpec

LAB = "lab"
"""The agent's name in a scenario."""
Say = Callable[..., None]
"""Tells what is wrong: the path, and the text."""


class LabAgent(Protocol):
    """The module `chaoslab.lab.scenario_agent`. `TARGETS`: the services that its faults may hit."""

    TARGETS: Sequence[str]

    def check(self, spec: ScenarioSpec, say: Say) -> None:
        """Tells the keys that do not go with the lab's agent."""

    def check_faults(self, injections: Sequence[Injection], say: Say, *, turns: int) -> None:
        """Tells the faults that its services cannot meet in a conversation of so many turns."""

    def trials(
        self, scenario: Scenario, numbers: Sequence[int], *, seed: int, jobs: int, logs: Path | None, apart: bool,
        keep: str = "all",
    ) -> Generator[Trial, None, None]:  # fmt: skip
        """The trials with these numbers, from 0."""

    def session(
        self, scenario: Scenario, *, seed: int, jobs: int, fails: Callable[[Trial], str]
    ) -> AbstractContextManager[SearchSession]:
        """A context with the trials of a search, without the scenario's faults."""


def lab_agent() -> LabAgent:
    return cast("LabAgent", import_module("chaoslab.lab.scenario_agent"))
