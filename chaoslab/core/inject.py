"""Faults as Python code states them: `inject("latency", "message", chance=0.3, delay_s=2.0)`, and the list of all
faults that its help ends with, made when it is read."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.base.registry import list_plugins, suggest_name
from chaoslab.core import triggers
from chaoslab.core.fault import GROUP, Fault, get_trait, load_fault, register_given_fault
from chaoslab.core.machine import TARGETS
from chaoslab.core.plan import Choice, Injection, check_after_references

WIDTH = 100


def render_fault_list() -> str:
    """Each fault with its parameters, its layer and its description; for a plug-in that cannot be used, the reason."""
    lines = []
    for name in list_plugins(GROUP):
        try:
            fault = load_fault(name)
        except LookupError as error:
            lines += [name, *_wrap_indented(str(error.args[0]))]
            continue
        parameters = ", ".join(
            _render_parameter(entry, _list_literal_options(fault, entry.name)) for entry in fields(fault)
        )
        about = (inspect.getdoc(fault) or "").partition("\n\n")[0]
        lines += [f"{name}({parameters}), of the layer {fault.layer}", *_wrap_indented(about)]
    return "\n".join(lines)


def _render_parameter(parameter: Field[Any], options: tuple[Any, ...]) -> str:
    """The name and the default, followed by the other options of a Literal."""
    if parameter.default is MISSING:
        return parameter.name
    rest = (option for option in options if option != parameter.default)
    return f"{parameter.name}={' | '.join(map(repr, (parameter.default, *rest)))}"


def _list_literal_options(fault: type[Fault], parameter: str) -> tuple[Any, ...]:
    try:
        hint = get_type_hints(fault).get(parameter)
    except BaseException as error:  # noqa: BLE001 - annotations are code, which may be a plug-in's
        reraise_unless_foreign(error)
        return ()
    return get_args(hint) if get_origin(hint) is Literal else ()


def _wrap_indented(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="    ", subsequent_indent="    ")


class FaultListDocstring(str):
    """A docstring that ends with the list of faults. The faults are loaded when it is read."""

    __slots__ = ()

    def __str__(self) -> str:
        return (
            f"{inspect.cleandoc(str.__str__(self))}\n\n"
            f"The faults, with their parameters and defaults:\n\n{render_fault_list()}\n"
        )

    def expandtabs(self, tabsize: int = 8) -> str:  # type: ignore[override]
        """The text with the list; `inspect.getdoc`, and so `help`, calls this first."""
        return str(self).expandtabs(tabsize)


NUMBER_MAX = 10**15
"""The largest value of a limit or a factor."""
TRIGGERS = (
    "name",
    "chance",
    "calls",
    "attempts",
    "every",
    "after_calls",
    "max_times",
    "on_turn",
    "between_turns",
    "window_s",
    "persistence",
    "tool",
    "changes",
    "when",
    "after",
)
"""The parameters of `inject` that are no fault's own."""
LISTING = "tools/list"
"""The name of an MCP server's list of tools, where it is a target of its own."""
SURELY = 0.85
"""The likeness to a trigger's name above which it was meant, though the fault has no such parameter."""
Parameter = bool | int | float | str


ENGINE_ALONE = "is done by a container's engine: use `chaoslab lab WORLD=compose`, with FAULTS"
"""The refusal of a fault of containers in a world without any."""
STDIO_ALONE = "stands between the lines of an MCP server's standard output: use `chaoslab mcp`"


def explain_where_fault_works(fault: str) -> str:
    """The one place where a fault exists, in words, after its name; empty if it is not bound to one."""
    kind = load_fault(fault)
    return ENGINE_ALONE if get_trait(kind, "of_container") else STDIO_ALONE if get_trait(kind, "of_stdio") else ""


OF_AGENT = (
    "kills the agent's process, and something should go on: give resume_with=, in virtual time, or use chaoslab exec "
    "with --resume-with"
)
"""The refusal of a fault that kills the agent where nothing would go on."""


OF_USER = "is done by whoever asks the agent: use it in lab.run, in a scenario, or as chaoslab exec --fault event_twice"
"""The refusal of a fault of the user where nobody is asked again."""


def inject(
    fault: str | Fault,
    target: str | Sequence[str],
    *,
    name: str | None = None,
    chance: float = 1.0,
    calls: Sequence[int] | int | float = (),
    attempts: Sequence[int] | None = None,
    every: int | None = None,
    after_calls: int | None = None,
    max_times: int | None = None,
    on_turn: Sequence[int] | int | None = None,
    between_turns: bool | None = None,
    window_s: Sequence[float] | None = None,
    persistence: str | None = None,
    tool: str | None = None,
    changes: bool | None = None,
    when: str | None = None,
    after: str | Sequence[Any] | None = None,
    **params: Parameter,
) -> Injection:
    """One source of faults for a trial. `fault` is a name, or an object of a class that derives from
    `chaoslab.plugins.Fault`. `target` is the name of a function or service, a pattern such as "get_*", or
    several of these. `name` names the dice, "<fault> on <target>" by default. `params` are the fault's own (listed
    below), in seconds where they end in `_s`.

    The fault hits an attempt if all triggers hold that are given:

        `chance` (0–1): rolled for each attempt. Alone, 0 switches the injection off.
        `calls`: the requests to the target with these numbers, from 1: their first attempts, unless `attempts` names
            others. A trial in which a fault with no other trigger cannot hit them is invalid.
        `attempts`: these attempts of a request; 2 is its first retry.
        `every`: each nth request to the target.
        `after_calls`: all requests to the target but the first n.
        `max_times`: at most n hits in a trial.
        `on_turn`: in these turns of a conversation. `between_turns`: the first request of each turn but the first.
        `window_s`: from the first to before the second of two moments, in seconds since the trial began.
        `persistence`: "once", "burst 3" (three hits in a row), "for_s 2.5" (all attempts for 2.5 s after a hit) or
            "for_good" (all attempts after a hit).
        `tool`: the calls of this tool, or of those that match a pattern.
        `changes`: the calls that may change something, by an unsafe method or a tool that does not only read.
        `when`: the calls whose arguments fulfil a condition, as in 'amount > 100 and currency == "EUR"'.
        `after`: once the injection of this name has hit; ["name", 3]: once it has hit three times.

    Raises:
        LookupError: no such fault. ValueError, TypeError: a parameter or a value that it does not take, or triggers
            that can never hold together.
    """
    if not isinstance(fault, str):
        if not isinstance(fault, Fault):
            raise TypeError(
                f"fault is {repr_one_line(fault)}: it should be the name of a fault, as in 'latency', or a Fault"
            )
        if params:
            raise TypeError(f"{type(fault).__name__}(…) has its parameters already, and {next(iter(params))} is given")
        fault, params = register_given_fault(fault)
    parameters = {f.name: f for f in fields(load_fault(fault))}
    trigger_arguments = {
        "attempts": attempts, "every": every, "after_calls": after_calls, "max_times": max_times, "on_turn": on_turn,
        "between_turns": between_turns, "window_s": window_s, "persistence": persistence, "tool": tool,
        "changes": changes, "when": when, "after": after,
    }  # fmt: skip
    trigger_values: dict[str, Any] = {key: value for key, value in trigger_arguments.items() if value is not None}
    trigger_values.update(
        {key: params.pop(key) for key in [*params] if key not in parameters and key in triggers.list_trigger_names()}
    )
    kind: Any = load_fault(fault)
    hints = _read_type_hints(kind) if params else {}
    bounds = get_trait(load_fault(fault), "bounds")
    for key, value in params.items():
        if key not in parameters:
            near = get_close_matches(key, TRIGGERS, n=1, cutoff=SURELY)
            hint = (
                f"did you mean '{near[0]}'?"
                if near
                else suggest_name(key, parameters)
                if parameters
                else _hint_no_parameters(key)
            )
            raise ValueError(f"{fault} has no parameter '{key}': {hint}")
        if wrong := _explain_bad_value(parameters[key], hints[key], value, bounds.get(key)):
            raise ValueError(f"{key} of {fault} is {repr_one_line(value)}: it should be {wrong}")
    if params.get("preset") and (beside_preset := sorted(params.keys() - {"preset"})):
        raise ValueError(
            f"{fault} has preset {repr_one_line(params['preset'])} and {beside_preset[0]}: a preset sets all "
            f"others, leave one out"
        )
    targets = (target,) if isinstance(target, str) else tuple(target) if isinstance(target, Iterable) else ()
    if not targets or not all(isinstance(entry, str) and entry and entry.isprintable() for entry in targets):
        raise ValueError(
            f"{fault} has the target {repr_one_line(target)}: it should be the name of a function or service"
        )
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name of {fault} on {targets[0]} is {repr_one_line(name)}: it should be a text")
    if name and not name.isprintable():
        raise ValueError(f"name of {fault} on {targets[0]} is {repr_one_line(name)}: it should be a text of one line")
    name, suffix = name or f"{fault} on {', '.join(targets)}", f" of {fault} on {targets[0]}"
    numbers = triggers.parse_trigger("calls", calls, where=suffix).value if calls != () else ()
    rolled = triggers.parse_trigger("chance", chance, where=suffix).value
    checked = {
        key: triggers.parse_trigger(key, value, where=suffix).value_as_json for key, value in trigger_values.items()
    }
    injection = Injection(name, (Choice(fault, 1.0, params),), targets, rolled, numbers, checked)
    injection.check()
    return injection


inject.__doc__ = FaultListDocstring(inject.__doc__ or "")


def _hint_no_parameters(key: str) -> str:
    """The hint for a fault without parameters, with the trigger that may have been meant."""
    near = get_close_matches(key, TRIGGERS, n=1)
    return f"it has none; did you mean the trigger '{near[0]}'?" if near else "it has none"


@cache
def _read_type_hints(kind: type) -> dict[str, Any]:
    """The types of a fault's parameters, which take a millisecond to find."""
    return get_type_hints(kind)


def _explain_bad_value(parameter: Field[Any], hint: Any, value: Any, bounds: tuple[float, float] | None = None) -> str:
    """The values that the parameter takes, in words; empty if this is one of them."""
    if get_origin(hint) is Literal:
        options = get_args(hint)
        return "" if value in options else " or ".join(repr(option) for option in options)
    if hint is str:
        return "" if isinstance(value, str) else "a text"
    if hint is bool:
        return "" if isinstance(value, bool) else "True or False"
    default = parameter.default if parameter.default is not MISSING else 0
    # A default below 0 stands for a value that is left to chance.
    low = min(0, default) if isinstance(default, int | float) else 0
    kinds = (int,) if hint is int else (int, float)
    a_number = f"a {'whole ' if hint is int else ''}number"
    if bounds:
        low, high = bounds
        fits = not isinstance(value, bool) and isinstance(value, kinds) and low <= value <= high
        return "" if fits else f"{a_number} from {low:.12g} to {high:.12g}"
    # Not `value < low`, which NaN would pass.
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= low:
        return f"{a_number}, {low:g} or more"
    high = SECONDS_MAX if parameter.name.endswith("_s") else NUMBER_MAX
    return "" if value <= high else f"{a_number} from {low:g} to {high}"


def explain_fault_unfit_for_model(fault: str, model: str) -> str:
    """The line by which a fault of tools' answers or arguments is refused at a model."""
    if get_trait(load_fault(fault), "corrupts") == "call":
        return f"{fault} works on the arguments of tools, and {model} is a model: inject missing_arguments"
    return f"{fault} works on the answers of tools, and {model} is a model: inject confabulation or garbled_answer"


def _explain_fault_unfit_at_target(fault: str, target: str, *, is_function: bool) -> str:
    """The line by which a fault of the agent's own machine is refused elsewhere, or another fault there; empty if it
    fits."""
    known: Sequence[str] = get_trait(load_fault(fault), "of_machine")
    if target in TARGETS and target not in known:
        others = ", ".join(name for name in list_plugins(GROUP) if target in get_trait(load_fault(name), "of_machine"))
        return f"{fault} is none of the faults of {target}, which are {others}"
    if known and not is_function:
        return f"{fault} breaks the agent's own files or commands, and {target} is a service: aim it at a function"
    return ""


def check_injections(
    injections: Iterable[Injection],
    targets: Iterable[str],
    *,
    turns: int = 1,
    models: Iterable[str] = (),
    functions: Iterable[str] = (),
    objects: Iterable[str] = (),
    may_be: Iterable[str] = (),
    stdio: bool = False,
    mortal: bool = False,
    user: Collection[str] | None = (),
) -> tuple[Injection, ...]:
    """The injections, if each has a name of its own, targets that exist and triggers that can hold in a conversation of
    so many turns. `models`: the targets whose requests have messages, which faults of the context need. `functions`:
    the targets that return no stream, which faults of streams need. `objects`: the models whose calls have objects as
    arguments, where no text can be cut. `may_be`: the targets that are models if they are asked as such. `stdio`: the
    targets are tools of a server on standard output. `mortal`: the agent's process can be killed, and goes on.
    `user`: the faults that whoever asks the agent can do, None for all. Raises
    LookupError: a target does not exist. ValueError: two of one name, or one that can never hit."""
    names, present, has_messages, returns, maybe = set(), list(targets), set(models), set(functions), set(may_be)
    checked, no_texts = tuple(injections), tuple(objects)
    for injection in checked:
        if not isinstance(injection, Injection):
            raise ValueError(f"faults has {repr_one_line(injection)} in it: it should be lab.inject(fault, target, …)")
        for target in injection.targets:
            if target not in present and not any(fnmatchcase(name, target) for name in present):
                hint = suggest_name(target, present) if present else "there are none: give tools=, reads= or services="
                raise LookupError(f"'{injection.name}' has no function or service '{target}' to hit: {hint}")
        for choice in injection.choices:
            subject = "the messages that a model is sent" if injection.layer == "context" else "the answers of a model"
            needs_model = injection.layer == "context" or get_trait(load_fault(choice.fault), "of_model")
            for name in filter(injection.covers, present):
                if needs_model and name not in has_messages and name not in maybe:
                    fit = ", ".join(model for model in present if model in has_messages) or "a service that is one"
                    raise ValueError(f"{choice.fault} works on {subject}, and {name} is no model: aim it at {fit}")
        if all(get_trait(load_fault(choice.fault), "of_tools") for choice in injection.choices):
            aimed = [name for name in present if injection.covers(name)]
            for name in aimed:
                # A pattern that covers others too is meant for those.
                if name in has_messages and (name in injection.targets or has_messages.issuperset(aimed)):
                    raise ValueError(explain_fault_unfit_for_model(injection.choices[0].fault, name))
        for choice in injection.choices:
            medium = "a stream of events" if injection.layer == "stream" else "the bytes of an answer"
            needs_stream = injection.layer == "stream" or get_trait(load_fault(choice.fault), "of_bytes")
            for name in filter(injection.covers, returns if needs_stream else ()):
                raise ValueError(f"{choice.fault} works on {medium}, and {name} is a function: aim it at a service")
        if injection.of_listing:
            for name in filter(injection.covers, [name for name in present if name in returns | has_messages]):
                if name != LISTING:
                    subject = "model" if name in has_messages else "function"
                    raise ValueError(
                        f"{injection.choices[0].fault} works on an MCP server's list of tools, and {name} is a "
                        f"{subject}: "
                        f"aim it at the server, or at mcp_tool('{LISTING}')"
                    )
        for choice in injection.choices:
            kind = load_fault(choice.fault)
            if get_trait(kind, "of_agent") and not mortal:
                raise ValueError(f"{choice.fault} {OF_AGENT}")
            if get_trait(kind, "of_user") and user is not None and choice.fault not in user:
                raise ValueError(f"{choice.fault} {OF_USER}")
            if turns < 2 and (get_trait(kind, "of_turns") or choice.params.get("moment") == "between"):
                raise ValueError(f"{choice.fault} is about the next turn, and there is none: give lab.turns(…)")
            if (where := explain_where_fault_works(choice.fault)) and not (stdio and where == STDIO_ALONE):
                raise ValueError(f"{choice.fault} {where}")
            for name in filter(injection.covers, present):
                if refusal := _explain_fault_unfit_at_target(choice.fault, name, is_function=name in returns):
                    raise ValueError(refusal)
            for name in filter(injection.covers, returns if get_trait(kind, "of_process") else ()):
                raise ValueError(f"{choice.fault} stops a process, and {name} is a function: aim it at a service")
            for name in filter(injection.covers, no_texts if get_trait(kind, "of_text") else ()):
                raise ValueError(
                    f"{choice.fault} works on the text of arguments, and those of {name} are objects: inject "
                    "malformed_arguments"
                )
        if injection.name in names:
            raise ValueError(f"two injections are called '{injection.name}': give one of them another name=")
        names.add(injection.name)
        injection.check(turns=turns)
    check_after_references(checked)
    return checked
