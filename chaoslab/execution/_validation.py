"""Checks the arguments of `run` and `run_many` before anything starts; each error is one line."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, cast

from chaoslab.base.identity import canonical
from chaoslab.base.jsonable import repr_one_line, to_jsonable
from chaoslab.base.registry import suggest_name
from chaoslab.core.machine import TARGETS
from chaoslab.core.plan import Injection
from chaoslab.execution.agents.functions import (
    Fresh,
    NamedTool,
    check_application,
    explain_call_misfit,
    get_function_name,
    unwrap_tool,
)
from chaoslab.execution.forked import can_fork
from chaoslab.execution.upstreams import check_no_doubled_paths, is_model_route
from chaoslab.model.app import ModelApp
from chaoslab.seams import adapters
from chaoslab.seams.adapters.mcp import McpTool
from chaoslab.seams.functions import native_errors
from chaoslab.seams.functions.inside import (
    find_unpassed_parameters,
    get_tool_name,
    is_neither_function_nor_class,
    list_entry_methods,
)
from chaoslab.seams.gateway.routes import GatewayRoute, parse_routes
from chaoslab.seams.services.app import parse_host_and_ports

HOST = re.compile(r"[a-z0-9_][a-z0-9_.-]*(:[0-9]{1,5})?")
"""Host names, with or without a port, in lower case only, since clients fold a name before they look it up."""


def require_list(option: str, value: Any, example: str) -> list[Any]:
    """The value as a list; None gives an empty one. Texts, sets and tools of a framework are refused: iterating over
    them yields letters, fields, or an arbitrary order."""
    is_other_kind = isinstance(value, str | bytes | Mapping | Set) or _is_tool(value)
    if value is not None and (is_other_kind or not isinstance(value, Iterable)):
        raise TypeError(f"{option} is {repr_one_line(value)}: it should be a list, as in {example}")
    return [] if value is None else list(value)


def parse_tool_list(option: str, value: Any) -> list[Any]:
    """The tools; those of a mapping under its names."""
    if isinstance(value, Mapping):
        return _parse_named_tools(option, value)
    tools = require_list(option, value, f"[{get_function_name(value) if _is_function(value) else 'refund'}]")
    for function in tools:
        _check_is_tool(option, function)
    return tools


def _parse_named_tools(option: str, value: Mapping[Any, Any]) -> list[Any]:
    for name, tool in value.items():
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"{option} has {repr_one_line(name)} as a name: it should be a text, as in {{'refund': refund}}"
            )
        _check_is_tool(option, tool)
        if isinstance(tool, McpTool) and tool.name != name:
            raise ValueError(f"{option} has mcp_tool('{tool.name}') as '{name}': it has its name already")
        same_tool_name = next((known_name for known_name, known_tool in value.items() if known_tool == tool), name)
        if same_tool_name != name:
            raise ValueError(
                f"{option} has one function as '{same_tool_name}' and '{name}': each name needs a function of its own"
            )
    return [NamedTool(name, tool) for name, tool in value.items()]


def _check_is_tool(option: str, value: Any) -> None:
    """Raises TypeError if it cannot be told which function the agent calls by this."""
    is_class = isinstance(value, type)
    if _is_tool(value) or (
        callable(value) and not is_class and not (is_neither_function_nor_class(value) and list_entry_methods(value))
    ):
        return
    holder_name = value.__name__ if is_class else "tool"
    suggested_name = (
        re.sub(r"(?<!^)(?=[A-Z])", "_", value.__name__).lower() if is_class else get_tool_name(value) or "refund"
    )
    example = (
        f"as in {option}={{'{suggested_name}': "
        f"{holder_name}.{next((method for method in list_entry_methods(value) if method != '__call__'), 'run')}}}"
    )
    if is_class:
        raise TypeError(
            f"{option} has the class {holder_name} in it: give the function that does its work, under the "
            f"tool's name, {example}"
        )
    kinds = ", ".join(adapter.tools for adapter in adapters.load_adapters() if adapter.tools)
    call_hint = ", or tool.__call__ if the agent calls the object itself" if callable(value) else ""
    raise TypeError(
        f"{option} has {repr_one_line(value)} in it: it should be a function, or a framework's tool ({kinds}); of "
        f"another framework, give the function that its tool calls, {example}{call_hint}"
    )


def _is_function(value: Any) -> bool:
    return callable(value) or _is_tool(value)


def _is_tool(value: Any) -> bool:
    return adapters.find_tool_adapter(value) is not None


def parse_services(value: Any) -> dict[str, Any]:
    """The services by name: a host, or a host and a port."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(
            f"services is {repr_one_line(value)}: it should be applications by host name, as in {{'bank': app}}"
        )
    services_by_name = dict(value or {})
    owners: dict[tuple[str, int], str] = {}
    for name, app in services_by_name.items():
        _check_service_name(name)
        application = app.make() if isinstance(app, Fresh) else app
        check_application(application, name)
        host, ports = parse_host_and_ports(name)
        for port in ports:
            owner = owners.setdefault((host, port), name)
            if owner != name:
                raise ValueError(f"services has two at {host}:{port}: '{owner}' and '{name}'; leave one of them out")
    return services_by_name


def check_services_resettable(injections: Iterable[Injection], services: Mapping[str, Any]) -> None:
    """Checks that a service which is to lose its state can be made anew."""
    for injection in injections:
        if not any(choice.params.get("state") == "lost" for choice in injection.choices):
            continue
        for name, app in services.items():
            if injection.covers(name) and not isinstance(app, Fresh):
                raise ValueError(
                    f"'{injection.name}' has state='lost', and the service {name} cannot be made anew: give a function "
                    f"that makes it, as in services={{'{name}': lab.fresh(make)}}"
                )


def _check_service_name(name: Any) -> None:
    text = name if isinstance(name, str) else ""
    if HOST.fullmatch(text):
        port = text.partition(":")[2]
        if port and not 1 <= int(port) <= 65535:
            raise ValueError(f"services has the name {repr_one_line(name)}: its port should be from 1 to 65535")
        return
    host = re.sub(r"^[a-z]+://|[/?#].*$", "", text.strip().lower(), flags=re.DOTALL)
    instead = host if HOST.fullmatch(host) else "bank"
    raise ValueError(
        f"services has the name {repr_one_line(name)}: it should be a host name alone, in small letters, as in "
        f"'{instead}'"
    )


def check_elsewhere_option(value: Any, world: str) -> None:
    if value not in ("refuse", "unreachable"):
        raise ValueError(
            f"elsewhere is {repr_one_line(value)}: it should be 'refuse' (a host that is no service ends the trial) or "
            "'unreachable' (its name is not found)"
        )
    if value != "refuse" and world != "virtual":
        raise ValueError("elsewhere is about the virtual network: it needs world='virtual'")


def parse_model_services(value: Any, services: Mapping[str, Any]) -> tuple[str, ...]:
    """The services that speak a model's API: those named, and those that are the lab's own models."""
    model_names = require_list("models", value, "['api.openai.com']")
    for name in model_names:
        if not isinstance(name, str) or name not in services:
            hint = suggest_name(str(name), services) if services else "there are no services"
            raise LookupError(f"models names {repr_one_line(name)}, which is no service: {hint}")
    for name, app in services.items():
        if isinstance(app, ModelApp):
            same_model_names = [other_name for other_name, other_app in services.items() if other_app is app]
            if len(same_model_names) > 1:
                raise ValueError(
                    f"services has one model as '{same_model_names[0]}' and '{same_model_names[1]}': each needs "
                    f"an object of its own"
                )
            app.check_can_answer_for(name)
    return tuple(name for name, app in services.items() if name in model_names or _is_model_service(app))


def _is_model_service(service: Any) -> bool:
    return is_model_route(service) if isinstance(service, GatewayRoute) else isinstance(service, ModelApp)


def parse_upstreams(value: Any, world: str, *, isolate: bool) -> dict[str, GatewayRoute]:
    """The services behind a gateway, by name."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(
            f"upstreams is {repr_one_line(value)}: it should be addresses by name, as in {{'crm': 'http://…'}}"
        )
    addresses = dict(value or {})
    if not addresses:
        return {}
    if world != "local":
        raise ValueError("upstreams are services of real time: they need world='local'")
    if isolate:
        raise ValueError("upstreams stand behind a gateway of this process: leave isolate= out")
    gateway_routes = parse_routes(f"{name}={url}" for name, url in addresses.items())
    check_no_doubled_paths(gateway_routes)
    return gateway_routes


def parse_effects(value: Any, tools: Mapping[str, Any], *, of_services: bool = False) -> list[Mapping[str, Any]]:
    """The stated effects in the form of a call's arguments. `tools`: the functions with effects, by name.
    `of_services`: there are services, whose effects may have any name."""
    example = "{'effect': 'refund', 'order': 17}"
    is_single = isinstance(value, Mapping) and "effect" in value
    effect_list = require_list("effects", value, f"[{repr_one_line(value) if is_single else example}]")
    for effect in effect_list:
        if not isinstance(effect, Mapping) or "effect" not in effect:
            raise TypeError(
                f"effects has {repr_one_line(effect)} in it: it should be as in {example}, with the name of a tool"
            )
        if effect["effect"] not in tools and of_services and isinstance(effect["effect"], str):
            continue
        if effect["effect"] not in tools:
            hint = suggest_name(str(effect["effect"]), tools) if tools else "there are no tools"
            raise LookupError(f"effects names {repr_one_line(effect['effect'])}, which is no tool: {hint}")
        parameters = _list_parameters(tools[effect["effect"]])
        for name in effect:
            if parameters and name not in ("effect", *parameters):
                hint = suggest_name(str(name), parameters)
                raise LookupError(f"effects has {repr_one_line(name)}, no parameter of {effect['effect']}: {hint}")
    return [{name: _normalize_effect_value(effect, value) for name, value in effect.items()} for effect in effect_list]


def check_effect_names(option: str, names: Iterable[Any], tools: Sequence[str], *, of_services: bool) -> None:
    """Checks names of effects: those of tools, and requests such as "POST /orders" if there are services."""
    for name in names:
        if name not in tools and not (of_services and isinstance(name, str) and " /" in name):
            raise LookupError(
                f"{option} has {repr_one_line(name)}: no tool with effects is called so: "
                f"{suggest_name(str(name), tools)}"
            )


def _normalize_effect_value(effect: Any, value: Any) -> Any:
    """The value in the form of a call's arguments. A list is a choice of values; any other collection is one value."""
    choices = [to_jsonable(choice, depth=1) for choice in (value if isinstance(value, list) else [value])]
    _check_encodable(f"effects has {repr_one_line(effect)} in it", choices)
    return choices if isinstance(value, list | tuple | Set) else choices[0]


def _check_encodable(subject: str, value: Any) -> None:
    """Raises ValueError if the value holds text that cannot be encoded."""
    try:
        canonical(value).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{subject}, with half a surrogate pair ({error.object[error.start]!r}): it should be text"
        ) from None


def _list_parameters(tool: Any) -> list[str]:
    """The names of the tool's arguments; empty if only a call would show them."""
    tool = unwrap_tool(tool)
    try:
        parameters = [] if _is_tool(tool) else list(inspect.signature(tool).parameters.values())
    except (TypeError, ValueError):  # some functions written in C
        return []
    is_open = any(parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) for parameter in parameters)
    filled_in = find_unpassed_parameters(tool)
    return [] if is_open else [parameter.name for parameter in parameters if parameter.name not in filled_in]


def parse_facts(value: Any) -> list[list[str]]:
    """The stated facts, each as a list of its spellings."""
    fact_list = []
    for fact in require_list("facts", value, f"[{repr_one_line(value)}]" if isinstance(value, str) else "['30']"):
        spellings = [fact] if isinstance(fact, str) else list(fact) if isinstance(fact, list | tuple) else []
        if not spellings or not all(isinstance(spelling, str) and spelling.strip() for spelling in spellings):
            raise TypeError(
                f"facts has {repr_one_line(fact)} in it: it should be a text, as in '30', or a list of spellings, as "
                "in ['30', 'thirty']"
            )
        _check_encodable(f"facts has {repr_one_line(fact)} in it", spellings)
        fact_list.append(spellings)
    return fact_list


def parse_ignored_parameters(value: Any, functions: Sequence[Any]) -> frozenset[str]:
    """The parameters that are no arguments of a request."""
    parameters = sorted({name for function in functions for name in _list_all_parameters(function)})
    ignored_names = require_list(
        "ignore", value, f"[{repr_one_line(value)}]" if isinstance(value, str) else "['context']"
    )
    for name in ignored_names:
        if name not in parameters:
            hint = suggest_name(str(name), parameters) if parameters else "no tool has parameters"
            raise LookupError(f"ignore has {repr_one_line(name)} in it, which is no parameter of a tool: {hint}")
    return frozenset(ignored_names)


def _list_all_parameters(tool: Any) -> list[str]:
    """The names of all parameters of the tool's functions, of those too that are filled in."""
    tool = unwrap_tool(tool)
    adapter = adapters.find_tool_adapter(tool)
    parameters: list[str] = []
    for function in [tool] if adapter is None else adapter.functions(tool):
        with suppress(TypeError, ValueError):  # some functions written in C
            parameters += inspect.signature(function).parameters
    return parameters


def check_raises_option(value: Any, names: Sequence[str]) -> None:
    """Checks the exceptions by which the callers of the tools with these names learn of faults."""
    if isinstance(value, Mapping):
        kinds = (*native_errors.KINDS, native_errors.STATUS)
        for name in () if any(kind in value for kind in kinds) else value:
            if name not in names:
                raise LookupError(f"raises names {repr_one_line(name)}: {suggest_name(str(name), [*names, *kinds])}")
    for name in names or [""]:
        native_errors.choose_tool_errors(value, name)


def parse_isolate_option(value: Any) -> bool:
    """True if each trial is to run in a process of its own."""
    if value not in (None, "fork"):
        raise ValueError(
            f"isolate is {repr_one_line(value)}: it should be 'fork' (each trial in a child process) or None"
        )
    if value and not can_fork():
        raise ValueError("isolate is 'fork', and this platform cannot fork: use agent=lab.fresh(make)")
    return value is not None


def collect_target_names(
    tools: Sequence[Any], reads: Sequence[Any], services: Mapping[str, Any], *, machine: bool = False
) -> list[str]:
    """The names that a fault can be aimed at. `machine`: also the files and commands of a trial."""
    names = [*(get_function_name(function) for function in (*tools, *reads)), *services, *(TARGETS if machine else ())]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"two of tools, reads and services are called '{name}': each needs a name of its own, as in "
                "tools={'refund': Refund.run, 'order': Order.run}"
            )
    return names


def check_state_function(function: Any) -> Callable[[], Any] | None:
    """The function that reads the world's state. Raises TypeError: it cannot be called without arguments."""
    if function is None:
        return None
    if not callable(function):
        raise TypeError(
            f"state is {repr_one_line(function)}: it should be a function that returns the state, as in lambda: orders"
        )
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"state is {repr_one_line(function)}, which is async: it should be a plain function")
    if misfit_reason := explain_call_misfit(function):
        raise TypeError(
            f"state is {repr_one_line(function)}, which cannot be called without arguments ({misfit_reason})"
        )
    return cast(Callable[[], Any], function)
