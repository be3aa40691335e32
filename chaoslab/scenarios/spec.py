"""The types of a scenario's file. `load` checks them against the faults and assertions there are."""

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
from chaoslab.execution.options import RunOptions, key_of, keys
from chaoslab.execution.spec import INVALID_RATE, REAL_LIMIT_S
from chaoslab.scenarios.drawn_spec import ChoicesSpec, RangeSpec, Strict, form, one_or_choices

VERSION = 1
DOTTED = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"


def _seconds(value: Any) -> Any:
    """The seconds of a duration such as "90s" or "1.5h"; numbers are seconds."""
    if not isinstance(value, str):
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return parsers.duration(value)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _alone(value: list[str]) -> str | list[str]:
    return value[0] if len(value) == 1 else value


def _said(value: Any) -> Any:
    return {"say": value} if isinstance(value, str) else value


def _no_range(value: Any) -> Any:
    if isinstance(value, Mapping):
        raise ValueError("a level, as in 0.5, or {choices: [0, 0.5]}")
    return value


def _level(value: float) -> float:
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
    float, BeforeValidator(_seconds), Field(ge=0, le=31_536_000), WithJsonSchema(DURATION, mode="validation")
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
    Discriminator(form),
]
DrawnLimit = Annotated[
    Annotated[Limit, Tag("one")] | Annotated[NumberRange, Tag("range")] | Annotated[NumberChoices, Tag("choices")],
    Discriminator(form),
]
Dotted = Annotated[str, Field(pattern=DOTTED)]
ToolName = Annotated[str, Field(pattern=r"^[\w.:/-]{1,100}$")]
Functions = Annotated[
    Annotated[list[Dotted], Tag("a list")] | Annotated[dict[ToolName, Dotted], Tag("names")],
    Discriminator(lambda value: "names" if isinstance(value, Mapping) else "a list"),
]
Name = Annotated[str, Field(pattern=r"^[\w][\w .,()'+-]{0,99}$")]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Texts = Annotated[list[str], BeforeValidator(_listed), PlainSerializer(_alone), Field(min_length=1, max_length=100)]
Level = Annotated[float, BeforeValidator(_no_range), AfterValidator(_level), WithJsonSchema(A_LEVEL)]


class LevelChoices(ChoicesSpec[Level]):
    """A choice of levels: each trial draws one of its own."""


DrawnLevel = Annotated[
    Annotated[Level, Tag("one")] | Annotated[LevelChoices, Tag("choices")], Discriminator(one_or_choices)
]
Family = Literal["network", "tool", "meaning", "model", "stream", "context"]
OutcomeName = Literal[
    "correct", "degraded", "wrong", "false_success", "harm", "failed", "hung", "unknown", "invalid", "unfinished"
]


class TurnSpec(Strict):
    """One turn of a conversation: a text, or an answer that depends on what the agent said last.

    `say`: the user's words. `reply`: words by pattern; the first pattern that is found in the agent's last answer
    counts. `after`: the time that passes before it. `expect`: assertions about this turn.
    """

    say: Text | None = None
    reply: dict[str, Text] | None = None
    after: DrawnSeconds = 0.0
    expect: list[Any] = Field(default_factory=list)


Turn = Annotated[TurnSpec, BeforeValidator(_said)]


class OperationSpec(Strict):
    """One call without an agent: `tool` is the name of one of the tools or reads, `args` are its arguments.

    `after`: the time that passes before it. `expect`: assertions about this call.
    """

    tool: Text
    args: dict[str, Any] = Field(default_factory=dict)
    after: DrawnSeconds = 0.0
    expect: list[Any] = Field(default_factory=list)


class CommandSpec(Strict):
    """A program and its arguments as the agent. `{prompt}` in a word stands for the prompt, which comes at the standard
    input too."""

    command: list[Text] = Field(min_length=1, max_length=1000)


class AnswerSpec(Strict):
    """One answer of the scripted user: `say`, if the pattern `when` is found in the agent's last answer."""

    when: Text
    say: Text


def _of_agent(value: Any) -> str:
    return "a command" if isinstance(value, dict | CommandSpec) else "a name"


AgentName = Annotated[str, Field(pattern=rf"^lab$|{DOTTED}")]
Agent = Annotated[
    Annotated[AgentName, Tag("a name")] | Annotated[CommandSpec, Tag("a command")], Discriminator(_of_agent)
]


class FaultSpec(BaseModel):
    """One source of faults: the arguments of `lab.inject`."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)
    fault: str
    target: Texts

    @property
    def arguments(self) -> dict[str, Any]:
        """The triggers and the fault's own parameters."""
        return dict(self.model_extra or {})


class BudgetSpec(Strict):
    """The limits of a trial: tokens, calls and seconds within it, dollars over the whole run.

    `mode`: "hard" refuses each call beyond a limit, "soft" only logs it.
    """

    tokens: DrawnLimit | None = None
    dollars: Annotated[float, Field(gt=0, le=10**9)] | None = None
    calls: DrawnLimit | None = None
    seconds: DrawnSeconds | None = None
    mode: Literal["hard", "soft"] = "hard"

    @property
    def limits(self) -> dict[str, Any]:
        """The limits by the names that the fault `budget` has for them."""
        return {"tokens": self.tokens, "cost_usd": self.dollars, "calls_max": self.calls, "seconds": self.seconds}


class SloSpec(Strict):
    """An objective over all trials: at least `share` of the calls of `tool` (a name or a pattern) succeed `within` a
    time."""

    share: Annotated[float, Field(ge=0, le=1)]
    within: Seconds = 31_536_000.0
    tool: Annotated[str, Field(min_length=1)] = "*"


class ExploreSpec(Strict):
    """The exploration of this scenario by `chaoslab explore`: its budget in trials and in seconds, the only faults to
    try, and the strategies."""

    trials: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seconds: Seconds | None = None
    tries: list[str] = Field(default_factory=list)
    by: list[Literal["singles", "lasting", "born", "pairs", "orders", "random_plans"]] = Field(default_factory=list)

    @property
    def budget(self) -> dict[str, Any]:
        """The arguments of `lab.explore` that are stated."""
        return {name: value for name, value in self.model_dump().items() if value}


Order = Literal["asked", "seeded"] | dict[Annotated[int, Field(ge=1)], list[str]]


def _with_options(spec: "type[ScenarioSpec]") -> "type[ScenarioSpec]":
    """Adds the options of `run` that have a key and are not read by the checks of scenarios in a way of their own."""
    types = get_type_hints(RunOptions)
    more: dict[str, Any] = {}
    for each in keys():
        if (key := key_of(each)) not in spec.model_fields:
            choices = each.metadata["choices"]
            of_time = Seconds if each.name.endswith("_s") else types[each.name]
            more[key] = (Literal.__getitem__(choices) if choices else of_time, each.default)
    return create_model(spec.__name__, __base__=spec, __module__=__name__, __doc__=spec.__doc__, **more)


@_with_options
class ScenarioSpec(Strict):
    """A scenario: an agent, its world, its faults, and what must hold. `keys.py` tells what each key means."""

    chaoslab: Literal[1] = 1
    name: Name
    description: str = ""
    agent: Agent | None = None
    fresh: Dotted | None = None
    tools: Functions = Field(default_factory=list)
    reads: Functions = Field(default_factory=list)
    services: dict[str, Dotted] = Field(default_factory=dict)
    upstreams: dict[str, Text] = Field(default_factory=dict)
    models: list[str] = Field(default_factory=list)
    state: Dotted | None = None
    judge: Annotated[str, Field(pattern=rf"^model$|{DOTTED}")] | None = None
    says: Dotted | dict[str, Any] | None = None
    prompt: Text | None = None
    turns: list[Turn] = Field(default_factory=list, max_length=1000)
    user: list[AnswerSpec] = Field(default_factory=list, max_length=100)
    turns_max: Annotated[int, Field(ge=2, le=1000)] = 10
    operations: list[OperationSpec] = Field(default_factory=list, max_length=1000)
    faults: list[FaultSpec] = Field(default_factory=list)
    chaos_level: DrawnLevel = 0
    families: list[Family] = Field(default_factory=list)
    budget: BudgetSpec | None = None
    slo: list[SloSpec] = Field(default_factory=list)
    variants: list[Any] | dict[str, list[Any]] = Field(default_factory=list)
    explore: ExploreSpec | None = None
    expect: list[Any] = Field(default_factory=list)
    effects: list[dict[str, Any]] | None = None
    facts: list[Texts] = Field(default_factory=list)
    accept: list[OutcomeName] = Field(default=["correct", "degraded"], min_length=1)
    count_words: bool = False
    pass_rate: Annotated[float, Field(ge=0, le=1)] = 1.0
    invalid_rate: Annotated[float, Field(ge=0, le=1)] = INVALID_RATE
    found: str = ""
    folder: str = ""
    order: Order = "asked"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    trials: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    world: Literal["virtual", "local"] = "virtual"
    timeout: Seconds = 30.0
    deadline: Seconds = 3600.0
    real_limit: Seconds = REAL_LIMIT_S

    @property
    def judge_named(self) -> str | None:
        """The name of the function that is the judge, if one is."""
        return None if self.judge == "model" else self.judge

    @property
    def dotted(self) -> list[str]:
        """All names of the form module:name."""
        says = self.says if isinstance(self.says, str) else None
        one = (self.agent if isinstance(self.agent, str) else None, self.fresh, self.state, says, self.judge_named)
        functions = [dotted for _, _, _, dotted in self.functions]
        return [*filter(None, one), *functions, *self.services.values()]

    @property
    def functions(self) -> list[tuple[str, str | int, str, str]]:
        """Its tools and reads: the key of each, its place below it, the name that it is given ("": its own), and
        module:name."""
        found: list[tuple[str, str | int, str, str]] = []
        for key, given in (("tools", self.tools), ("reads", self.reads)):
            if isinstance(given, dict):
                found += [(key, name, name, dotted) for name, dotted in given.items()]
            else:
                found += [(key, n, "", dotted) for n, dotted in enumerate(given)]
        return found


PARTS: dict[str, type[Strict]] = {
    "agent": CommandSpec, "turns": TurnSpec, "user": AnswerSpec, "operations": OperationSpec, "budget": BudgetSpec,
    "slo": SloSpec, "explore": ExploreSpec,
}  # fmt: skip
"""The types of the mappings below a scenario's keys."""
DRAWN = ("after", "tokens", "calls", "seconds", "chaos_level")
"""The keys whose value each trial may draw, beside those of a fault."""
TAGGED = {
    "agent": ("a name", "a command"),
    **dict.fromkeys(("tools", "reads"), ("a list", "names")),
    **dict.fromkeys(DRAWN, ("one", "range", "choices")),
}
"""The keys whose values are of several types, and the tags of these in an error's location."""
ITS_OWN = ("chaoslab", "name", "description", "variants", "folder", "found", "explore")
"""The keys that a variant does not replace."""
INSTEAD = (("agent", "fresh"), ("prompt", "turns"))
"""Keys of which a scenario has one."""
