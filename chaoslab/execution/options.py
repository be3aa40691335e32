"""The options of `run` and `run_many`: the only place where their names, types, defaults and meanings stand. The
signatures and the help of `run` and `run_many`, the keys of scenario files and the checks of the plug-in for pytest are
made from `RunOptions`. A new option is a field of it, and is read as `options.<name>` of the trial's `AgentCase`."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.parsers import SECONDS_MAX, find_closest, parse_moment
from chaoslab.core.limits import parse_limits
from chaoslab.core.plan import Injection
from chaoslab.execution.spec import REAL_LIMIT_S
from chaoslab.seams.functions.seam import CALLS_MAX
from chaoslab.seams.services.seam import MODELS_MAX

NUMBER_MAX = 2**63 - 1
"""The largest whole number, as on the command line."""
OPTIONS_SENTENCE = "The options are the fields of `chaoslab.execution.options.RunOptions`."
"""The sentence of a docstring in whose place the help has the meaning of each option."""
P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")


def check_number(name: str, value: Any, *, whole: bool = False, least: int = 1) -> None:
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not is_number or not (least <= value <= NUMBER_MAX if whole else 0 < value <= SECONDS_MAX):
        seconds = f"a number of seconds above 0, up to {SECONDS_MAX} (ten years)"
        expected = f"a whole number from {least} to {NUMBER_MAX}" if whole else seconds
        raise ValueError(f"{name} is {repr_one_line(value)}: it should be {expected}")


def check_settle_time(name: str, value: Any) -> None:
    if value not in (None, 0):
        check_number(name, value)


KEEP = ("all", "failed")


def check_choice(choices: Sequence[str], name: str, value: Any) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {repr_one_line(value)}: it should be {' or '.join(map(repr, choices))}")


def check_folder(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} is {repr_one_line(value)}: it should be a folder, as in 'logs'")
    if value is not None and (not str(value) or "\0" in str(value)):
        raise ValueError(f"{name} is {repr_one_line(value)}: it should be a folder, as in 'logs'")


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {repr_one_line(value)}: it should be True or False")


def check_moment(name: str, value: Any) -> None:
    if value is not None:
        if not isinstance(value, str):
            raise TypeError(f"{name} is {repr_one_line(value)}: it should be a text such as '2026-12-31T23:59:58Z'")
        try:
            if parse_moment(value) and value == "now":
                raise ValueError("a moment that is the same in each run, such as 2026-06-01T09:00:00Z")
        except ValueError as error:
            message = str(error).removesuffix(", or now")
            raise ValueError(f"{name} is {repr_one_line(value)}: it should be {message}") from None


def check_memory_limit(name: str, value: Any) -> None:
    if value is not None:
        check_number(name, value, whole=True)


def check_name_list(name: str, value: Any) -> None:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if value is not None and not (
        is_list and all(isinstance(entry, str) and any(map(str.isalnum, entry)) for entry in value)
    ):
        raise TypeError(
            f"{name} is {repr_one_line(value)}: it should be a list of names such as ['x-shop-pass', '-csrf']"
        )


def check_limits(_: str, value: Any) -> None:
    if value is not None:
        try:
            parse_limits(value)
        except LookupError as error:
            raise ValueError(error.args[0]) from None


def check_call_order(name: str, value: Any) -> None:
    if value in ("asked", "seeded") or (isinstance(value, Mapping) and all(map(_is_valid_call_order, value.items()))):
        return
    raise ValueError(
        f"{name} is {repr_one_line(value)}: it should be 'asked', 'seeded', or calls in their order by the "
        f"moment's number, "
        "as in {1: ['b', 'a']}"
    )


def _is_valid_call_order(entry: tuple[Any, Any]) -> bool:
    number, calls = entry
    if type(number) is not int or number < 1 or isinstance(calls, str) or not isinstance(calls, Sequence):
        return False
    return all(isinstance(call, str) for call in calls) and len(set(calls)) == len(calls)


def make_option_field(
    default: Any,
    says: str,
    *,
    group: str,
    key: str = "",
    choices: tuple[str, ...] = (),
    check: Callable[[str, Any], None] | None = None,
) -> Any:
    """A field of `RunOptions`.

    `says`: its meaning, for the help. `group`: the heading under which the help has it. `key`: its meaning as a key of
    scenario files, which are without it if there is none; the key is called like the option, without a final `_s`.
    `choices`: the only values that a file takes. `check`: raises an error of one line for a value that alone is
    wrong.
    """
    metadata = {"says": says, "group": group, "key": key, "choices": choices, "check": check}
    return field(default=default, metadata=metadata)


AGENT, WORLD, RESULT = "The agent and its functions:", "The faults and the world:", "The expected result:"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` and `run_many`, as they were given."""

    tools: Sequence[Any] | Mapping[str, Any] | None = make_option_field(
        (),
        "the functions that change the world. Each call of one is an effect.",
        group=AGENT,
        key="The agent's functions with effects, each as module:name; a mapping names them.",
    )
    reads: Sequence[Any] | Mapping[str, Any] | None = make_option_field(
        (),
        "the functions that do not. Both lists take functions (sync or async), bound methods, tools of a framework "
        "that the lab knows (such as LangChain), other objects with one function in them, and `mcp_tool`. A mapping "
        'names them, as in `tools={"refund": Refund.run}`. The arguments of a class\'s method without parameters are '
        "the fields of its object. Calls with the same `idempotency_key` argument count as one effect.",
        group=AGENT,
        key="The agent's functions without effects, each as module:name; a mapping names them.",
    )
    ignore: Sequence[str] | None = make_option_field(
        None,
        "names of parameters that are no arguments of a request, beside those that a framework fills in.",
        group=AGENT,
    )
    raises: str | Mapping[str, Any] | None = make_option_field(
        None,
        'the exceptions by which a tool\'s caller learns of a fault: "httpx", "httpx2", "requests", "aiohttp", '
        '"urllib", or classes by kind ("timed_out", "refused", "reset", "closed", "dns", "untrusted", '
        '"status"), or one of these for each tool by its name. By default they are Python\'s own, and `ToolError` for '
        "a status.",
        group=AGENT,
    )
    isolate: str | None = make_option_field(
        None,
        '"fork" runs each trial in a process of its own, a copy of this one, so that nothing of a trial is left '
        "to the next.",
        group=AGENT,
        choices=("fork",),
        key="fork: each trial runs in a process of its own, so that nothing of it is left to the next.",
    )
    files: str | Path | None = make_option_field(
        None,
        "a folder of which each trial gets a copy, as its current directory and in the variable CHAOSLAB_FILES. "
        'What the agent creates, changes, moves and deletes there are effects, as in {"effect": "delete build/app.o"}, '
        "and a subprocess runs in real time while the clock stands still. In virtual time it implies isolate.",
        group=AGENT,
        check=check_folder,
        key="A folder beside the file: each trial works in a copy of it, and what it does there are effects.",
    )
    memory_mb: int | None = make_option_field(
        None,
        'the memory in MiB that a trial may take beyond what this process has, with isolate="fork" on Linux. '
        "What would take more raises MemoryError where it asks for it.",
        group=AGENT,
        check=check_memory_limit,
        key="The memory in MiB that a trial may take beyond what the process has, with isolate: fork on Linux.",
    )
    services: Mapping[str, Any] | None = make_option_field(
        None,
        "applications by host name, served on the virtual network at http://<name> and https://<name>, or at "
        'the port of a name such as "localhost:11434": WSGI, ASGI 3, or a function from a request (`method`, `path`, '
        "`query`, `headers`, `json`, `text`, `body`) to a dict, a text, (status, body) or (status, body, headers). "
        "Faults hit the requests to them, whatever client makes them. A request's tool is its method and path, as in "
        '"POST /orders", and its arguments are the fields of its JSON or form and `query`. One with an unsafe method '
        "and a reply of 2xx is an effect; those with one idempotency key, as a header or an argument, are one effect. "
        'A reply\'s header `X-Lab-Effect` states other effects: "none", or JSON such as {"effect": "order_placed", '
        '"item": "tea"}.',
        group=AGENT,
        key="Applications (WSGI or ASGI) that the agent asks over HTTP, by host: {shop.test: shop:app}.",
    )
    upstreams: Mapping[str, str] | None = make_option_field(
        None,
        'addresses of services by name, for world="local". They stand behind a gateway on loopback, and the '
        'agent finds its address in the environment: `CRM_URL` for "crm", and for "model" (or "openai", "anthropic", '
        '"groq", "gemini") the variables in which the providers\' SDKs look. Faults hit the requests as at '
        "`services`.",
        group=AGENT,
        key="Services that answer in real time behind a gateway, by name: {crm: http://127.0.0.1:9000}.",
    )
    proxy: bool = make_option_field(
        False,
        "True leads the agent to `upstreams` by the variables of a proxy (HTTP_PROXY and the like), if its "
        "addresses are fixed.",
        group=AGENT,
        check=check_flag,
        key="true: upstreams are asked at their own addresses, over a proxy in the environment.",
    )
    models: Sequence[str] | None = make_option_field(
        None,
        "the services that speak a model's API (OpenAI, Anthropic, Gemini). Their requests are no effects, and "
        "their tokens and dollars are counted. Faults of the context hit them, and errors come in the provider's own "
        "form. `lab.offline_model()`, `lab.scripted(…)` and `lab.recorded(…)` are known without being named.",
        group=AGENT,
        key="The names of the services and upstreams that speak a model's API.",
    )
    resume_with: Any = make_option_field(
        None,
        "the callable that goes on when a fault has killed the agent's process (`agent_dies`). It is called like "
        "`agent`, with the same prompt, and finds what the agent has kept: a file, a database, a framework's "
        "checkpoints. It may be the agent itself.",
        group=AGENT,
        key="What goes on when the agent's process was killed, as module:name. It may be the agent itself.",
    )
    resumes: int = make_option_field(
        1,
        "the most times that `resume_with` is called in a trial. An agent that is killed once more stays dead.",
        group=AGENT,
        check=partial(check_number, whole=True, least=0),
        key="The most times that resume_with is called in a trial.",
    )
    faults: Sequence[Injection] | None = make_option_field(
        (),
        "see `inject`.",
        group=WORLD,
        key="The faults, each with its target, its triggers and its parameters.",
    )
    limits: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = make_option_field(
        None,
        'the limits to all faults, one mapping or several: `share` of the requests (0.1 or "10%"), `targets`, '
        "`tenants` (patterns of values by header), `at_once` and `faults` (the most at a time, and of one trial), "
        "`opens` and `until` (moments), `lease` and `lever` (files that end faults in real time), `shadow` (nothing is "
        "hit). A fault beyond them is held back, which the log tells.",
        group=WORLD,
        check=check_limits,
        key="The limits to all faults: share, targets, tenants, at_once, faults, opens, until, lease, lever, shadow.",
    )
    seed: int = make_option_field(
        1,
        "the seed of the faults' dice.",
        group=WORLD,
        key="The seed of all dice.",
        check=partial(check_number, whole=True, least=0),
    )
    world: str = make_option_field(
        "virtual",
        '"virtual" (a clock that jumps; no real input or output) or "local" (this process, in real time).',
        group=WORLD,
        key="virtual: a clock that jumps, and no network; local: real time.",
    )
    now: str | None = make_option_field(
        None,
        "the moment at which each trial begins by its wall clock, in virtual time, as in "
        '"2026-12-31T23:59:58Z" or "2026-10-25T02:59:30+02:00". The local time zone is the machine\'s own.',
        group=WORLD,
        key="The moment at which each trial begins by its wall clock, as in 2026-12-31T23:59:58Z.",
        check=check_moment,
    )
    order: str | Mapping[int, Sequence[str]] = make_option_field(
        "asked",
        "the order in which calls begin that are made at the same moment, such as the tool calls of one "
        'message: "asked", as they were made, or "seeded", drawn by named dice in virtual time, another one in each '
        "trial. The log tells it, and the same seed draws the same. The twin has the order of asking. "
        '{1: ["b", "a"]} states the order at the first moment at which several are made.',
        group=WORLD,
        check=check_call_order,
        key="The order of calls that are made at the same moment: asked, seeded (drawn by dice), or {1: [b, a]}.",
    )
    timeout_s: float = make_option_field(
        30.0,
        "the caller's timeout for an attempt that a fault delays. A client of a service has its own.",
        group=WORLD,
        key="The deadline of a call, in seconds or as a duration such as 90s, 5min or 2h.",
        check=check_number,
    )
    deadline_s: float = make_option_field(
        3600.0,
        "the longest duration of the trial, without the waits between turns. Real time is checked when a "
        "function is called, so in the local world an agent that swallows SystemExit is not ended.",
        group=WORLD,
        key="The deadline of a trial, in seconds or as a duration such as 90s, 5min or 2h.",
        check=check_number,
    )
    elsewhere: str = make_option_field(
        "refuse",
        'what becomes of a host that is no service: "refuse" ends the trial, "unreachable" is a name that is '
        "not found, with a warning. The telemetry of some SDKs is unreachable in any case.",
        group=WORLD,
        choices=("refuse", "unreachable"),
        key="The fate of a host that is no service. refuse: the trial ends; unreachable: its name is not found.",
    )
    settle_s: float | None = make_option_field(
        None,
        "the longest time that what is under way at the answer may go on, since an effect may land late: 60 "
        "seconds by default, 30 of real time in the local world, which waits for calls alone. It is no part of "
        "`Trial.seconds`; what is not over then is named in `Trial.warnings`.",
        group=WORLD,
        check=check_settle_time,
        key="The longest time that what is under way at the answer may go on, in seconds or as a duration; 0: none.",
    )
    model_calls_max: int = make_option_field(
        MODELS_MAX,
        "the most requests to models in one trial. More end it as hung.",
        group=WORLD,
        check=partial(check_number, whole=True),
        key="The most requests to models in one trial. More end it as hung.",
    )
    calls_max: int = make_option_field(
        CALLS_MAX,
        "the most calls, or requests to services, without a wait in virtual time. More count as an endless loop.",
        group=WORLD,
        check=partial(check_number, whole=True),
        key="The most calls without a wait in virtual time. More count as an endless loop.",
    )
    real_limit_s: float = make_option_field(
        REAL_LIMIT_S,
        "the most seconds of real time for a trial, in the local world beyond its deadline. A trial that "
        "goes on is ended from outside, as hung, with the stack where it was. Only a process of its own can be ended: "
        "with `isolate`, or in a command.",
        group=WORLD,
        check=check_number,
        key="The most real time for a trial, in the local world beyond its deadline. Then it is ended as hung.",
    )
    logs: str | Path | None = make_option_field(
        None,
        "a folder for the run's logs, which `chaoslab show` and `summary` read.",
        group=WORLD,
        check=check_folder,
    )
    keep: str = make_option_field(
        "all",
        'the stories in the logs: "all", or "failed": of a trial that ended well there are the beginning, '
        "effects, answer and counts of calls and faults.",
        group=WORLD,
        check=partial(check_choice, KEEP),
    )
    secret_names: Sequence[str] | None = make_option_field(
        None,
        "further names of headers and fields whose values are masked in logs and in print, beside those of the "
        "setting SECRET_NAMES; a name after a minus is spared.",
        group=WORLD,
        check=check_name_list,
        key="Further names of headers and fields whose values are masked; a name after a minus is spared.",
    )
    effects: Sequence[Mapping[str, Any]] | None = make_option_field(
        None,
        "exactly the effects that should happen, as in `Trial.effects`, those of services too.",
        group=RESULT,
        key="The effects of a right trial, in place of the twin's.",
    )
    facts: Sequence[str | Sequence[str]] | None = make_option_field(
        None,
        "texts, or lists of spellings, that the answer must show.",
        group=RESULT,
        key="What the answer must say, in place of the twin's: texts, each with its other spellings.",
    )
    state: Callable[[], Any] | None = make_option_field(
        None,
        "a function without parameters that returns the state of the agent's world, such as the orders of a shop "
        "or the rows of a table. It is read before and after each trial, outside of faults. An end state other than "
        "the twin's is harm; if the place is as it was before, something was not done.",
        group=RESULT,
        key="A function, as module:name, that returns the state of the agent's world; it is compared with the twin's.",
    )
    judge: str | Callable[[Any], str] | None = make_option_field(
        None,
        'who is asked about an answer of which nothing certain tells: "model", the one that JUDGE_URL '
        "and JUDGE_MODEL name in the environment, or a function from a question (`prompt`, `answer`, `undone`, "
        '`reference`, `done`) to "right", "wrong", "admits it", "passes over it" or "unclear". Its word counts.',
        group=RESULT,
        key="Who is asked about answers of which nothing certain tells: model, or a function as module:name.",
    )
    says: Any = make_option_field(
        None,
        "the reading of an answer, whose words decide nothing else: a function from the answer to values, or "
        'patterns, as in {"refund": {"done": "refunded", "undone": "could not|failed"}, "total": r"total is (\\d+)"}. '
        "A key that is the name of an effect tells if it was done (True, False, a number of times, None: it does not "
        "say) and is compared with the ledger; "
        'the key "*" tells it of all effects at once, as in {"*": {"undone": "could not", "unsure": "may have"}}; '
        '"unsure" (the word, or a pattern) is for an answer that cannot tell, which is right after a call that failed; '
        "all others are compared with those of the twin's answer.",
        group=RESULT,
        key="The reading of an answer: patterns by effect (* is all) or value, or module:name of a function.",
    )
    undoes: Mapping[str, str] | None = make_option_field(
        None,
        'the effects that take others back, as in {"refund": "charge"}: a charge that is refunded is none, if '
        "both agree in the arguments that they share.",
        group=RESULT,
        key="The effects that take others back: {refund: charge}.",
    )
    idempotent: Sequence[str] | None = make_option_field(
        None,
        "the effects that count once however often they are repeated with the same arguments, such as setting a "
        "temperature.",
        group=RESULT,
        key="The effects that count once however often they are repeated.",
    )
    wishes: int = make_option_field(
        1,
        "how often the user wants what equal turns of a conversation ask for, or an event that `event_twice` "
        "repeats. A webhook, a queue or an impatient user that repeats itself wants nothing new, so it is to be done "
        "once, unless this is 2 or more: then the twin is asked again too, and `effects` without turns count so often.",
        group=RESULT,
        check=partial(check_number, whole=True),
        key="How often the user wants what equal turns or event_twice ask for; once: the same event came again.",
    )
    ordered: bool = make_option_field(
        False,
        "True if the effects must happen in the order of the right ones, such as a backup before a write.",
        group=RESULT,
        key="true: the effects must happen in the order of the right ones.",
        check=check_flag,
    )
    anyway: bool = make_option_field(
        False,
        "True runs the trials though the trial without faults is no baseline: it fails, admits a failure, "
        "repeats an effect, or differs from one run to the next.",
        group=RESULT,
        key="true: the trials run though the trial without faults is no baseline.",
        check=check_flag,
    )
    twin: bool | None = make_option_field(
        None,
        "True compares the trial with a run of it without faults. By default that is so in the virtual world if "
        "no `effects` are given.",
        group=RESULT,
    )

    def check_values(self) -> None:
        """Checks each value that can be wrong alone. Raises ValueError, TypeError: one is wrong; the message is one
        line."""
        for option_field in fields(RunOptions):
            if option_field.metadata["check"] is not None:
                option_field.metadata["check"](option_field.name, getattr(self, option_field.name))


@dataclass(frozen=True)
class RunArguments(RunOptions):
    """The arguments of `run`."""

    agent: Any = field(
        metadata={
            "says": "a callable that takes the prompt and returns the answer, sync or async, or a framework's agent: a "
            "LangChain Runnable (called by `invoke`, or by `ainvoke` if a tool is async only), or an `Agent` of OpenAI "
            "Agents or of Pydantic AI (by their `run`).",
            "group": AGENT,
        }
    )
    prompt: Any = field(
        metadata={
            "says": "what the agent is called with, or a conversation (`lab.turns`), whose turns it is called with.",
            "group": AGENT,
        }
    )


@dataclass(frozen=True)
class RunManyArguments(RunArguments):
    """The arguments of `run_many`."""

    trials: int = field(kw_only=True)
    jobs: int = field(default=1, kw_only=True)


def get_scenario_key(option: Field[Any]) -> str:
    """The option's key in scenario files, whether they have it or not."""
    return option.name.removesuffix("_s")


def iterate_scenario_options() -> Iterator[Field[Any]]:
    """The options that scenario files have too."""
    return (option_field for option_field in fields(RunOptions) if option_field.metadata["key"])


def accept_fields_as_arguments(arguments: Callable[P, A]) -> Callable[[Callable[[A], R]], Callable[P, R]]:
    """Gives a function that takes one object of arguments the signature and the help of the object's class: it is
    called with the arguments themselves."""
    signature = inspect.signature(arguments)
    options = {parameter.name for parameter in fields(RunOptions)}
    # Inherited fields come first in a dataclass; in the signature the agent and the prompt do.
    parameters = sorted(
        signature.parameters.values(), key=lambda parameter: (parameter.kind, parameter.name in options)
    )
    signature = signature.replace(parameters=parameters)

    def decorate(function: Callable[[A], R]) -> Callable[P, R]:
        name = function.__name__

        @wraps(function)
        def call_with_argument_object(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                unknown = next((keyword for keyword in kwargs if keyword not in signature.parameters), "")
                near = find_closest(unknown, signature.parameters) if unknown else ""
                place = "" if repr(unknown) in str(error) else f" for {unknown!r}"
                raise TypeError(f"{name}() {error}{f'. Did you mean {near!r}{place}?' if near else ''}") from None
            return function(arguments(*args, **kwargs))

        of_function = inspect.signature(function).return_annotation
        call_with_argument_object.__signature__ = signature.replace(return_annotation=of_function)  # type: ignore[attr-defined]
        call_with_argument_object.__doc__ = inspect.cleandoc(function.__doc__ or "").replace(
            OPTIONS_SENTENCE, render_options_help()
        )
        return call_with_argument_object

    return decorate


def render_options_help() -> str:
    """The options with their meanings, under their headings, as the docstring of `run` has them."""
    argument_fields = fields(RunArguments)
    groups: dict[str, list[str]] = {AGENT: [], WORLD: [], RESULT: []}
    for option_field in (*argument_fields[len(fields(RunOptions)) :], *argument_fields[: len(fields(RunOptions))]):
        text = f"`{option_field.name}`: {option_field.metadata['says']}"
        wrapped = textwrap.wrap(text, 112, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)
        groups[option_field.metadata["group"]].append(textwrap.indent("\n".join(wrapped), " " * 4))
    return "\n\n".join("\n".join((f"{heading}\n", *lines)) for heading, lines in groups.items())
