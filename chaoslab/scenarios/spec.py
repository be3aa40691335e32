"""The types of a scenario's file. `load` checks them against the faults and assertions there are."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    WithJsonSchema,
    create_model,
)

from chaoslab.base import parsers
from chaoslab.core.levels import LEVEL_MAX, is_level
from chaoslab.execution.options import RunOptions, get_scenario_key, iterate_scenario_options
from chaoslab.execution.spec import INVALID_RATE, REAL_LIMIT_S
from chaoslab.scenarios.drawn_spec import ChoicesSpec, RangeSpec, Strict, tag_one_or_choices, tag_one_range_or_choices

VERSION = 1
DOTTED = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"


def _parse_seconds(value: Any) -> Any:
    """The seconds of a duration such as "90s" or "1.5h"; numbers are seconds."""
    if not isinstance(value, str):
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return parsers.parse_duration(value)


def _wrap_in_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _unwrap_single(value: list[str]) -> str | list[str]:
    return value[0] if len(value) == 1 else value


def _wrap_in_turn(value: Any) -> Any:
    return {"say": value} if isinstance(value, str) else value


def _refuse_range(value: Any) -> Any:
    if isinstance(value, Mapping):
        raise ValueError("a level, as in 0.5, or {choices: [0, 0.5]}")
    return value


def _check_level(value: float) -> float:
    if not is_level(value):
        raise ValueError(f"a number from 0 to {LEVEL_MAX}")
    return value


A_LEVEL = {"type": "number", "minimum": 0, "maximum": LEVEL_MAX}
DURATION = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\d+(\.\d+)? ?(ms|s|min|m|h|d)$"},
    ],
    "description": "seconds, or a duration such as 90s, 5min or 2h",
}
Seconds = Annotated[
    float, BeforeValidator(_parse_seconds), Field(ge=0, le=31_536_000), WithJsonSchema(DURATION, mode="validation")
]
Limit = Annotated[int, Field(ge=1, le=10**15)]


class TimeRange(RangeSpec[Seconds]):
    """A range of times: each trial draws one of its own."""


class TimeChoices(ChoicesSpec[Seconds]):
    """A choice of times: each trial draws one of its own."""


class NumberRange(RangeSpec[Limit]):
    """A range of whole numbers: each trial draws one of its own."""


class NumberChoices(ChoicesSpec[Limit]):
    """A choice of numbers: each trial draws one of its own."""


DrawnSeconds = Annotated[
    Annotated[Seconds, Tag("one")] | Annotated[TimeRange, Tag("range")] | Annotated[TimeChoices, Tag("choices")],
    Discriminator(tag_one_range_or_choices),
]
DrawnLimit = Annotated[
    Annotated[Limit, Tag("one")] | Annotated[NumberRange, Tag("range")] | Annotated[NumberChoices, Tag("choices")],
    Discriminator(tag_one_range_or_choices),
]
Dotted = Annotated[str, Field(pattern=DOTTED)]
ToolName = Annotated[str, Field(pattern=r"^[\w.:/-]{1,100}$")]
Functions = Annotated[
    Annotated[list[Dotted], Tag("a list")] | Annotated[dict[ToolName, Dotted], Tag("names")],
    Discriminator(lambda value: "names" if isinstance(value, Mapping) else "a list"),
]
Name = Annotated[str, Field(pattern=r"^[\w][\w .,()'+-]{0,99}$")]


def make_scenario_name(text: str, length_max: int = 80) -> str:
    """A name that a scenario may have, from the title of a document."""
    name = " ".join(re.sub(r"[^\w .,()'+-]", " ", text).split()).lstrip(" .,()'+-")
    return name[:length_max].rstrip() or "service"


Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Texts = Annotated[
    list[str], BeforeValidator(_wrap_in_list), PlainSerializer(_unwrap_single), Field(min_length=1, max_length=100)
]
Level = Annotated[float, BeforeValidator(_refuse_range), AfterValidator(_check_level), WithJsonSchema(A_LEVEL)]


class LevelChoices(ChoicesSpec[Level]):
    """A choice of levels: each trial draws one of its own."""


DrawnLevel = Annotated[
    Annotated[Level, Tag("one")] | Annotated[LevelChoices, Tag("choices")], Discriminator(tag_one_or_choices)
]
Family = Literal["network", "tool", "meaning", "model", "stream", "context"]
OutcomeName = Literal["correct", "degraded", "wrong", "undone", "false_success", "harm", "failed", "hung"]


class TurnSpec(Strict):
    """One turn of a conversation: a text, or an answer that depends on what the agent said last."""

    say: Text | None = Field(None, description="The user's words.")
    reply: dict[str, Text] | None = Field(
        None,
        description="In place of say: words by pattern. The first pattern found in the agent's last answer counts.",
    )
    after: DrawnSeconds = Field(0.0, description="The time that passes before the turn, in seconds or as a duration.")
    expect: list[Any] = Field(default_factory=list, description="The assertions about this turn.")


Turn = Annotated[TurnSpec, BeforeValidator(_wrap_in_turn)]


class OperationSpec(Strict):
    """One call without an agent."""

    tool: Text = Field(description="The name of one of the tools or reads.")
    args: dict[str, Any] = Field(default_factory=dict, description="Its arguments by name.")
    after: DrawnSeconds = Field(0.0, description="The time that passes before the call, in seconds or as a duration.")
    expect: list[Any] = Field(default_factory=list, description="The assertions about this call.")


class ResumeSpec(Strict):
    """A program that goes on."""

    command: list[Text] = Field(
        min_length=1,
        max_length=1000,
        description="A program and its arguments. {prompt} stands for the prompt, which is at the standard input too.",
    )


class CommandSpec(ResumeSpec):
    """A program as the agent."""

    reset: Text | None = Field(
        None,
        description="A shell's command that is run before each trial, so that services and what is kept begin anew.",
    )


class AnswerSpec(Strict):
    """One answer of the scripted user."""

    when: Text = Field(description="A pattern (a regular expression) that is looked for in the agent's last answer.")
    say: Text = Field(description="The user's words if it is found.")


def _classify_agent_spec(value: Any) -> str:
    return "a command" if isinstance(value, dict | ResumeSpec) else "a name"


AgentName = Annotated[str, Field(pattern=rf"^lab$|{DOTTED}")]
Agent = Annotated[
    Annotated[AgentName, Tag("a name")] | Annotated[CommandSpec, Tag("a command")], Discriminator(_classify_agent_spec)
]
Resume = Annotated[
    Annotated[Dotted, Tag("a name")] | Annotated[ResumeSpec, Tag("a command")], Discriminator(_classify_agent_spec)
]


class FaultSpec(BaseModel):
    """One source of faults: the arguments of `lab.inject`."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)
    fault: str = Field(
        description="The fault's name; chaoslab faults NAME tells of its parameters, which stand beside it."
    )
    target: Texts = Field(
        description="A tool, service or model, a pattern of names such as order_*, or a list of these."
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """The triggers and the fault's own parameters."""
        return dict(self.model_extra or {})


class BudgetSpec(Strict):
    """The limits of a trial, and of the whole run."""

    tokens: DrawnLimit | None = Field(None, description="The most tokens of a trial.")
    dollars: Annotated[float, Field(gt=0, le=10**9)] | None = Field(
        None, description="The most dollars of the whole run."
    )
    calls: DrawnLimit | None = Field(None, description="The most calls of a trial.")
    seconds: DrawnSeconds | None = Field(None, description="The longest time of a trial, in seconds or as a duration.")
    mode: Literal["hard", "soft"] = Field(
        "hard", description="hard refuses each call beyond a limit, soft only logs it."
    )

    @property
    def limits(self) -> dict[str, Any]:
        """The limits by the names that the fault `budget` has for them."""
        return {"tokens": self.tokens, "cost_usd": self.dollars, "calls_max": self.calls, "seconds": self.seconds}


class SloSpec(Strict):
    """An objective over the calls of all trials."""

    share: Annotated[float, Field(ge=0, le=1)] = Field(description="The least share of good calls, from 0 to 1.")
    within: Seconds = Field(31_536_000.0, description="A good call succeeds in this time, in seconds or as a duration.")
    tool: Annotated[str, Field(min_length=1)] = Field("*", description="The tool or service, or a pattern of names.")


class ExploreSpec(Strict):
    """The exploration of this scenario by `chaoslab explore`."""

    trials: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(None, description="The most trials.")
    seconds: Seconds | None = Field(None, description="The most seconds of real time.")
    tries: list[str] = Field(default_factory=list, description="The only faults to try.")
    by: list[Literal["singles", "lasting", "born", "pairs", "orders", "random_plans"]] = Field(
        default_factory=list, description="The strategies, of singles, lasting, born, pairs, orders and random_plans."
    )

    @property
    def stated_arguments(self) -> dict[str, Any]:
        """The arguments of `lab.explore` that are stated."""
        return {name: value for name, value in self.model_dump().items() if value}


Order = Literal["asked", "seeded"] | dict[Annotated[int, Field(ge=1)], list[str]]


def _add_run_options(spec: "type[ScenarioSpec]") -> "type[ScenarioSpec]":
    """Adds the options of `run` that have a key and are not read by the checks of scenarios in a way of their own."""
    types = get_type_hints(RunOptions)
    extra_fields: dict[str, Any] = {}
    for option_field in iterate_scenario_options():
        if (key := get_scenario_key(option_field)) not in spec.model_fields:
            choices = option_field.metadata["choices"]
            of_time = Seconds if option_field.name.endswith("_s") else types[option_field.name]
            extra_fields[key] = (Literal.__getitem__(choices) if choices else of_time, option_field.default)
    return create_model(spec.__name__, __base__=spec, __module__=__name__, __doc__=spec.__doc__, **extra_fields)


@_add_run_options
class ScenarioSpec(Strict):
    """A scenario: an agent, its world, its faults, and what must hold."""

    chaoslab: Literal[1] = Field(1, description="The version of the format.")
    name: Name = Field(description="The scenario's name, by which -k and the reports know it.")
    description: str = Field("", description="What the scenario is for, in a sentence.")
    agent: Agent | None = Field(
        None,
        description="The agent: module:name of a callable, {command: [program, argument …]}, or lab for the lab's own.",
    )
    fresh: Dotted | None = Field(
        None, description="In place of agent: a function, as module:name, that makes a new agent for each trial."
    )
    tools: Functions = Field(default_factory=list)
    reads: Functions = Field(default_factory=list)
    services: dict[str, Dotted] = Field(default_factory=dict)
    upstreams: dict[str, Text] = Field(default_factory=dict)
    models: list[str] = Field(default_factory=list)
    files: Text | None = None
    resume_with: Resume | None = None
    resumes: Annotated[int, Field(ge=0, le=1000)] = 1
    state: Dotted | None = None
    judge: Annotated[str, Field(pattern=rf"^model$|{DOTTED}")] | None = None
    says: Dotted | dict[str, Any] | None = None
    prompt: Text | None = Field(None, description="The user's words.")
    turns: list[Turn] = Field(
        default_factory=list,
        max_length=1000,
        description="In place of prompt: the user's words, turn by turn. The turns share the agent's memory.",
    )
    user: list[AnswerSpec] = Field(
        default_factory=list,
        max_length=100,
        description="A scripted user, who answers the agent by pattern until none is found.",
    )
    turns_max: Annotated[int, Field(ge=2, le=1000)] = Field(
        10, description="The most turns of a conversation with a scripted user."
    )
    operations: list[OperationSpec] = Field(
        default_factory=list,
        max_length=1000,
        description="In place of an agent: calls of tools and reads, made one after the other.",
    )
    faults: list[FaultSpec] = Field(default_factory=list)
    chaos_level: DrawnLevel = Field(
        0,
        description="One number for many faults: from 0 to 10. A call meets a fault with a chance of 10 % × the level.",
    )
    families: list[Family] = Field(
        default_factory=list,
        description="The families of faults that chaos_level draws from; all that fit the targets by default.",
    )
    budget: BudgetSpec | None = Field(None, description="The limits of a trial.")
    slo: list[SloSpec] = Field(default_factory=list, description="Objectives over the calls of all trials.")
    variants: list[Any] | dict[str, list[Any]] = Field(
        default_factory=list,
        description="The same scenario with other values: a list of named sets of keys, or lists of values by key.",
    )
    explore: ExploreSpec | None = Field(
        None, description="How chaoslab explore goes about it: its budget and what it tries."
    )
    expect: list[Any] = Field(default_factory=list, description="The assertions about each trial.")
    effects: list[dict[str, Any]] | None = None
    facts: list[Texts] = Field(default_factory=list)
    accept: list[OutcomeName] = Field(
        default=["correct", "degraded"], min_length=1, description="The outcomes that pass."
    )
    pass_rate: Annotated[float, Field(ge=0, le=1)] = Field(
        1.0, description="The least share of trials that must pass, from 0 to 1."
    )
    invalid_rate: Annotated[float, Field(ge=0, le=1)] = Field(
        INVALID_RATE,
        description="The largest share of trials that may be open (unknown, undone, invalid), from 0 to 1.",
    )
    found: str = Field(
        "",
        description="The failure that chaoslab explore saved this file for: said to be fixed when the scenario passes.",
    )
    folder: str = Field(
        "", description="Where its modules are sought first, from the file's own folder, which it is by default."
    )
    order: Order = "asked"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    trials: Annotated[int, Field(ge=1, le=1_000_000)] = Field(10, description="The number of trials.")
    world: Literal["virtual", "local"] = "virtual"
    timeout: Seconds = 30.0
    deadline: Seconds = 3600.0
    real_limit: Seconds = REAL_LIMIT_S

    @property
    def judge_function_name(self) -> str | None:
        """The name of the function that is the judge, if one is."""
        return None if self.judge == "model" else self.judge

    @property
    def dotted_names(self) -> list[str]:
        """All names of the form module:name."""
        says_name = self.says if isinstance(self.says, str) else None
        agent, resume = (name if isinstance(name, str) else None for name in (self.agent, self.resume_with))
        names = (agent, self.fresh, resume, self.state, says_name, self.judge_function_name)
        functions = [dotted for _, _, _, dotted in self.function_entries]
        return [*filter(None, names), *functions, *self.services.values()]

    @property
    def function_entries(self) -> list[tuple[str, str | int, str, str]]:
        """Its tools and reads: the key of each, its place below it, the name that it is given ("": its own), and
        module:name."""
        entries: list[tuple[str, str | int, str, str]] = []
        for key, names in (("tools", self.tools), ("reads", self.reads)):
            if isinstance(names, dict):
                entries += [(key, name, name, dotted) for name, dotted in names.items()]
            else:
                entries += [(key, n, "", dotted) for n, dotted in enumerate(names)]
        return entries


def collect_key_meanings(spec: type[BaseModel]) -> dict[str, str]:
    """The meaning of each key, for the JSON Schema and the reference: that of an option of `run` is the option's."""
    option_meanings = (
        {get_scenario_key(option_field): option_field.metadata["key"] for option_field in iterate_scenario_options()}
        if spec is ScenarioSpec
        else {}
    )
    return option_meanings | {
        name: field_info.description for name, field_info in spec.model_fields.items() if field_info.description
    }


PARTS: dict[str, type[BaseModel]] = {
    "faults": FaultSpec, "turns": TurnSpec, "user": AnswerSpec, "operations": OperationSpec, "budget": BudgetSpec,
    "slo": SloSpec, "agent": CommandSpec, "resume_with": ResumeSpec,
    "explore": ExploreSpec,
}  # fmt: skip
"""The types of the mappings below a scenario's keys."""
DRAWN = ("after", "tokens", "calls", "seconds", "chaos_level")
"""The keys whose value each trial may draw, beside those of a fault."""
TAGGED = {
    "agent": ("a name", "a command"),
    "resume_with": ("a name", "a command"),
    **dict.fromkeys(("tools", "reads"), ("a list", "names")),
    **dict.fromkeys(DRAWN, ("one", "range", "choices")),
}
"""The keys whose values are of several types, and the tags of these in an error's location."""
ITS_OWN = ("chaoslab", "name", "description", "variants", "folder", "found", "explore")
"""The keys that a variant does not replace."""
INSTEAD = (("agent", "fresh"), ("prompt", "turns"))
"""Keys of which a scenario has one."""
