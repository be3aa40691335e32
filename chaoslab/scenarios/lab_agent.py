"""The door to the lab's own agent for a scenario with `agent: lab`. It is an entry point, loaded when such a
scenario is read, since the library imports nothing of the lab."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from chaoslab.base.extras import Incomplete

if TYPE_CHECKING:
    from chaoslab.core.plan import Injection
    from chaoslab.execution.exploring import SearchSession
    from chaoslab.execution.trial import Trial
    from chaoslab.scenarios.scenario import Scenario
    from chaoslab.scenarios.spec import ScenarioSpec

GROUP = "chaoslab.agents"
"""The group of the entry point."""
LAB = "lab"
"""The agent's name in a scenario."""
Say = Callable[..., None]
"""Tells what is wrong: the path, and the text."""


class LabAgent(Protocol):
    """The module that the entry point names. `TARGETS`: the services that its faults may hit."""

    TARGETS: Sequence[str]

    def check_scenario(self, spec: ScenarioSpec, say: Say) -> None:
        """Tells the keys that do not go with the lab's agent."""

    def check_faults(self, injections: Sequence[Injection], say: Say, *, turns: int) -> None:
        """Tells the faults that its services cannot meet in a conversation of so many turns."""

    def run_trials(
        self,
        scenario: Scenario,
        numbers: Sequence[int],
        *,
        seed: int,
        jobs: int,
        logs: Path | None,
        apart: bool,
        keep: str = "all",
    ) -> Generator[Trial, None, None]:
        """The trials with these numbers, from 0."""

    def open_search_session(
        self, scenario: Scenario, *, seed: int, jobs: int, fails: Callable[[Trial], str]
    ) -> AbstractContextManager[SearchSession]:
        """A context with the trials of a search, without the scenario's faults."""


@cache
def load_lab_agent() -> LabAgent:
    """The lab's agent. Raises Incomplete: the package was installed without its entry point, as by an older version."""
    from importlib.metadata import entry_points  # 35 ms, which few commands need

    for point in entry_points(group=GROUP, name=LAB):
        return cast("LabAgent", point.load())
    raise Incomplete("'agent: lab' is not installed with this chaoslab: install it anew, as with pip install -e .")
