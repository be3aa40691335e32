"""The types of a campaign's file. `load` checks what they cannot."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from chaoslab.scenarios.drawn_spec import Strict
from chaoslab.scenarios.spec import Level, Name, Seconds, Text


def _parse_number_text(value: Any) -> Any:
    from chaoslab.campaigns.bounds import parse_number

    return parse_number(value) if isinstance(value, str) else value


def _format_number(value: Any) -> Any:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:.15g}" if plain else value


Words = Annotated[list[Text], Field(min_length=1, max_length=1000)]
"""A program and its arguments."""
Stated = Annotated[str, BeforeValidator(_format_number), Field(min_length=1, max_length=200)]
"""A number or a text with one."""
Some = Annotated[Seconds, Field(gt=0)]


class ProbeSpec(Strict):
    """One look at the steady state: `http` (an address), `sql` (a file of SQLite, with `query`), `command` or
    `measure` (of the campaign's runs).

    `of`: what of it counts. http: status or seconds; command: code or output, whose first number counts. `expect`: the
    bound that must hold. `tolerance`: the distance from a value that still counts as equal, or a share of it. `within`:
    the longest that it may take.
    """

    name: Name
    http: Text | None = None
    sql: Text | None = None
    query: Text | None = None
    command: Words | None = None
    measure: Text | None = None
    of: Literal["status", "seconds", "code", "output"] | None = None
    expect: Stated | None = None
    tolerance: Stated = "0"
    within: Some = 5.0


class StepSpec(Strict):
    """One experiment: a scenario file or a folder of them, or a command, such as a gateway with its plan.

    `levels`: the levels of chaos that a scenario is run at, rising until it fails. `for`: the time after which a
    command is ended. `undo`: commands that take the step back; they run whatever became of it.
    """

    scenario: Text | None = None
    trials: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    levels: list[Level] = Field(default_factory=list, max_length=100)
    command: Words | None = None
    lasts: Some | None = Field(default=None, alias="for")
    undo: list[Words] = Field(default_factory=list)


class CampaignBudget(Strict):
    """The most that all steps together may take: trials, seconds of real time, dollars."""

    trials: Annotated[int, Field(ge=1)] | None = None
    seconds: Some | None = None
    dollars: Annotated[float, Field(gt=0)] | None = None


class ObjectiveSpec(Strict):
    """The objective of `slo_burn`: at least `share` of the calls succeed `within` a time."""

    share: Annotated[float, BeforeValidator(_parse_number_text), Field(gt=0, lt=1)]
    within: Some = 31_536_000.0


class NotifySpec(Strict):
    """News of begin, breach and end go to a command, as JSON at its standard input, or are posted to an address."""

    command: Words | None = None
    webhook: Annotated[str, Field(pattern=r"^https?://[^\s/]+")] | None = None


class CampaignSpec(Strict):
    """A campaign: steps, when they run, what must hold meanwhile, what ends them, and what takes them back."""

    chaoslab: Literal[1] = 1
    campaign: Name
    description: str = ""
    steps: list[StepSpec] = Field(min_length=1, max_length=1000)
    every: Some | None = None
    cron: Text | None = None
    at: list[Text] = Field(default_factory=list)
    rounds: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    steady: list[ProbeSpec] = Field(default_factory=list)
    stop: list[Text] = Field(default_factory=list)
    slo: ObjectiveSpec | None = None
    limits: dict[str, Any] = Field(default_factory=dict)
    budget: CampaignBudget = Field(default_factory=CampaignBudget)
    rollback: list[Words] = Field(default_factory=list)
    toxiproxy: Text | None = None
    notify: NotifySpec | None = None
    look: Some = 2.0
    lease: Some = 10.0
    recover: Seconds = 30.0


PARTS: dict[str, type[Strict]] = {
    "steps": StepSpec, "steady": ProbeSpec, "budget": CampaignBudget, "slo": ObjectiveSpec, "notify": NotifySpec
}  # fmt: skip
"""The types of the mappings below a campaign's keys."""
KEYS = {
    "campaign": "The campaign's name, which its folder has too.",
    "description": "What it is for, in a sentence.",
    "steps": "The experiments, in order: scenarios, folders of them, commands.",
    "every": "The time between the beginnings of two rounds of the steps.",
    "cron": "The moments of rounds as cron has them, in UTC, as in 0 9 * * 1-5 (extra campaigns).",
    "at": "The moments of rounds, as in [2026-06-01T09:00:00Z].",
    "rounds": "The most rounds; with every and cron no end by default.",
    "steady": "Probes that must hold before, during and after.",
    "stop": "Conditions that end it at once, as in error_rate > 0.2 over 60s.",
    "slo": "The objective of the measure slo_burn.",
    "limits": "The blast radius: share, targets, tenants, at_once, faults, opens, until, hosts, shadow.",
    "budget": "The most trials, seconds and dollars.",
    "rollback": "Commands that take everything back, at the end and before a broken-off campaign goes on.",
    "toxiproxy": "A Toxiproxy whose lanes are deleted by the rollback.",
    "notify": "Who is notified: a command or a webhook.",
    "look": "The time between two looks at the probes.",
    "lease": "The time after which all faults end if the campaign's process is gone.",
    "recover": "The longest time until the steady state is back after a rollback.",
}
"""The meaning of each key, for the reference."""
