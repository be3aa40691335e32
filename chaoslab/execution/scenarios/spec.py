"""The types of a scenario's file. Cross-checks with faults and assertions are in `load`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from chaoslab.analysis.judge import Outcome

VERSION = 1
DOTTED = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|min|m|h|d)")


def seconds_of(value: Any) -> Any:
    """A duration such as "90s", "1.5h" or 2, in seconds.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, str):
        match = _TIME.fullmatch(value.strip())
        if match is None:
            raise ValueError("it should be a duration, as in 90s, 5min or 2h")
        return float(match[1]) * _UNITS[match[2]]
    return value


Seconds = Annotated[float, BeforeValidator(seconds_of), Field(ge=0, le=31_536_000)]
Dotted = Annotated[str, Field(pattern=DOTTED)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.,()'-]{0,99}$")]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Turn(_Strict):
    """One turn of a conversation: a text, or an answer that depends on what the agent said last.

    `say`: the user's text. `reply`: patterns with texts; the first that is found in the agent's last answer is said.
    `after`: the time that passes first.
    """

    say: Text | None = None
    reply: dict[str, Text] | None = None
    after: Seconds = 0.0
    expect: list[Any] = Field(default_factory=list)


class FaultSpec(BaseModel):
    """One source of faults, as `lab.inject` takes it."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)
    fault: str
    target: str | list[str]

    def arguments(self) -> dict[str, Any]:
        """The triggers and parameters."""
        return dict(self.model_extra or {})


class Variant(_Strict):
    """The same scenario with other values."""

    name: Name
    faults: list[FaultSpec] | None = None
    prompt: Text | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    chaos_level: Annotated[float, Field(ge=0, le=2)] | None = None


class ScenarioSpec(_Strict):
    """A scenario: an agent, its world, its faults, and what must hold.

    `agent`: its callable as module:name, or `fresh`: a function that makes a new agent for each trial. `tools` and
    `reads`: functions with and without effects. `services`: applications by host name. `state`: a function that
    returns the state of the agent's world. `prompt` or `turns`: the user's words. `expect`: assertions. `effects`,
    `facts`: the right result. `accept`: the outcomes that pass. `pass_rate`: the least share of trials that pass.
    """

    chaoslab: Literal[1] = 1
    name: Name
    description: str = ""
    agent: Dotted | None = None
    fresh: Dotted | None = None
    tools: list[Dotted] = Field(default_factory=list)
    reads: list[Dotted] = Field(default_factory=list)
    services: dict[str, Dotted] = Field(default_factory=dict)
    models: list[str] = Field(default_factory=list)
    state: Dotted | None = None
    prompt: Text | None = None
    turns: list[Text | Turn] = Field(default_factory=list)
    faults: list[FaultSpec] = Field(default_factory=list)
    chaos_level: Annotated[float, Field(ge=0, le=2)] = 0.0
    families: list[str] = Field(default_factory=list)
    variants: list[Variant] = Field(default_factory=list)
    expect: list[Any] = Field(default_factory=list)
    effects: list[dict[str, Any]] | None = None
    facts: list[str | list[str]] = Field(default_factory=list)
    accept: list[Outcome] = Field(default_factory=lambda: [Outcome.CORRECT, Outcome.DEGRADED], strict=False)
    pass_rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    trials: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    world: Literal["virtual", "local"] = "virtual"
    timeout: Seconds = 30.0
    deadline: Seconds = 3600.0
