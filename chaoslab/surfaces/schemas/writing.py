"""Writes a service that is known by its schema as a project: scenarios, a module of fakes, and what they know."""

import json
import re
from collections.abc import Mapping
from typing import Any

from chaoslab.scenarios.spec import make_scenario_name
from chaoslab.scenarios.writing import render_scenario_text
from chaoslab.surfaces.projects import (
    MODULE,
    PersonalDataMasker,
    Project,
    name_tool_functions,
    render_function,
    render_module,
    render_signature,
)
from chaoslab.surfaces.schemas._operations import MADE, ONE, Api, Operation, find_item_in_reply

KNOWN, STEPS_MAX, OVER_HTTP = "service.json", 12, "over_http"
PROMPT_MAX = 19_000
"""The most characters of all calls in a prompt, of which a scenario takes 20,000."""
FAULTS = ("server_error", "lost_reply", "rate_limit")
RANK = {"list": 0, "create": 1, "read": 2, "update": 3, "replace": 4, "do": 5, "remove": 6}
_TAKEN = {"AGENT", "Path", "Service", "lab", "service", "app", "state", "globals", "locals"}
HEAD = '''\
"""A fake for {name}, made of its schema. What it knows and holds is in service.json."""

from pathlib import Path

import chaoslab as lab
from chaoslab.surfaces.schemas.stand_ins import Service

AGENT = None
"""Your own agent, called with the prompt. While it is None, the calls of each scenario are made one after the other."""
service = Service.read(Path(__file__).with_name("service.json"))
app = lab.fresh(service.fresh)
state = service.state
'''
COMMENT = """\
# Of the schema of {name}.
# `chaoslab test` runs it with the calls of the prompt; name your own agent in stand_ins.py, and word its prompt.
# The fake keeps what is created, changed and removed. What an operation does to other things, no schema tells.
"""
UNKNOWABLE = """\
# Nothing tells whether {name} was done (no Idempotency-Key, no list), so lost_reply would leave any agent in doubt.
"""


def build_project(api: Api, *, most: int, personal: PersonalDataMasker) -> Project:
    """The project of a service. `most`: scenario files at most, one for each part of its paths."""
    project = Project(lacking=api.lacking)
    names = name_tool_functions([operation.tool for operation in api.operations], _TAKEN)
    # Two operations of one name: tools of a module need one each.
    while len(names) < len(api.operations):  # two operations of one name
        for number, operation in enumerate(api.operations):
            if operation.tool in {earlier.tool for earlier in api.operations[:number]}:
                operation.tool = f"{operation.tool}_2"
        names = name_tool_functions([operation.tool for operation in api.operations], _TAKEN)
    named = {names[operation.tool]: operation for operation in api.operations}
    parts: dict[str, dict[str, Operation]] = {}
    for name, operation in named.items():
        parts.setdefault(_make_scenario_name(operation.path), {})[name] = operation
    scenarios: dict[str, dict[str, Any]] = {}
    for group, group_operations in [*parts.items()][:most]:
        # Its function would take another's place in the module.
        name = group if group not in (OVER_HTTP, *_TAKEN, *named) else f"{group}_calls"
        steps = _make_scenario_steps(api, group_operations, project.lacking, group)
        if not steps["steps"]:  # no call is short enough
            continue
        scenarios[name] = steps
        project.files[f"{name}.chaos.yaml"] = _render_scenario(api, name, scenarios[name], named)
    if len(parts) > most:
        left_count = sum(len(group_operations) for group_operations in [*parts.values()][most:])
        project.lacking.append(f"{left_count} more operations are in no scenario: --most {most} are written")
    if scenarios:
        # That with the most writes: over HTTP the lost replies matter.
        scenarios[OVER_HTTP] = max(
            scenarios.values(), key=lambda entry: sum(named[s["call"]].writes for s in entry["steps"])
        )
        project.files[f"{OVER_HTTP}.chaos.yaml"] = _render_scenario(api, OVER_HTTP, scenarios[OVER_HTTP], named)
    texts = [_render_function(name, entry) for name, entry in named.items()]
    for name in scenarios:
        tools = "None" if name == OVER_HTTP else "globals()"
        texts.append(f"def {name}():\n    return service.begin({name!r}, AGENT, {tools})\n")
    project.files[f"{MODULE}.py"] = render_module(HEAD.format(name=_to_one_line(api.name)), texts)
    project.files[KNOWN] = json.dumps({
        "name": api.name, "host": api.host, "scheme": api.scheme, "base": api.base, "protocol": api.protocol,
        "auth": api.auth, "operations": {name: entry.fake_specification for name, entry in named.items()},
        "holds": api.holds,
        "scenarios": scenarios,
    }, indent=1, ensure_ascii=False) + "\n"  # fmt: skip
    project.masked = personal.masked_counts
    return project


def _to_one_line(text: str) -> str:
    # What would end the docstring that it stands in, or its line.
    return re.sub(r'[\x00-\x1f\x7f-\x9f\u2028\u2029"\\]', " ", text)[:80].strip() or "a service"


def _make_scenario_name(path: str) -> str:
    """The part of the paths that an operation belongs to, as the name of a scenario."""
    # Parts such as /api/v1 say nothing.
    fixed = [segment for segment in path.split("/") if not re.fullmatch(r"|\{.*|api|v\d+", segment)]
    name = re.sub(r"\W+", "_", fixed[0] if fixed else "root", flags=re.ASCII).strip("_").lower()
    return f"part_{name}" if not name or not name.isidentifier() else name


def _render_function(name: str, operation: Operation) -> str:
    return render_function(
        name,
        render_signature(operation.properties, operation.required),
        operation.says,
        f"service.call({name!r}, locals())",
    )


def _make_scenario_steps(
    api: Api, group_operations: Mapping[str, Operation], lacking: list[str], group: str
) -> dict[str, Any]:
    """The calls of a scenario, each operation once: what is made is read, changed and removed again."""

    def make_sort_key(pair: tuple[str, Operation]) -> tuple[bool, int, int]:
        depth, removes = pair[1].path.count("{") - (pair[1].does in ONE), pair[1].does == "remove"
        # Removed last, and what is within something before it.
        return removes, -depth if removes else depth, RANK[pair[1].does]

    steps, spelt, length = list[dict[str, Any]](), list[str](), 0
    created: dict[str, str] = {}
    path_values: dict[str, Any] = {}
    chosen = sorted(group_operations.items(), key=make_sort_key)
    for name, operation in chosen[:STEPS_MAX]:
        arguments = {}
        for parameter, (location, wire) in operation.places.items():
            value = operation.arguments[parameter]
            if location == "path":
                value = _choose_id(api, operation.path, wire, created, path_values.setdefault(wire, value))
            if parameter in operation.required or (location == "body" and value is not None):
                arguments[parameter] = value
            elif parameter == "idempotency_key":
                arguments[parameter] = f"{name} 1"
        call = f"{name}({', '.join(f'{key}={_render_argument(value)}' for key, value in arguments.items())})"
        if (length := length + len(call)) > PROMPT_MAX:
            # It is left out, and the next ones may have room.
            length -= len(call)
            lacking.append(
                f"{operation.method} {operation.path}: its example is too long for a scenario; it has a fake"
            )
            continue
        id_ = api.holds[operation.of]["id"] if operation.does == "create" else ""
        # A reply without a form is the item itself.
        if id_ and (operation.reply == {} or id_ in find_item_in_reply(operation.reply, id_)):
            created[operation.of] = name
        elif id_:
            lacking.append(f"{operation.method} {operation.path}: its reply does not tell the id of what it made")
        steps.append({"call": name, "arguments": arguments})
        spelt.append(call)
    if len(chosen) > STEPS_MAX:
        lacking.append(f"{group}: {len(chosen) - STEPS_MAX} operations are in no scenario; they have fakes")
    return {"prompt": "Call one after the other: " + "; ".join(spelt) + ".", "steps": steps}


def _render_argument(value: Any) -> str:
    is_made = isinstance(value, dict) and MADE in value
    return f"<the id from {value[MADE]}>" if is_made else json.dumps(value, ensure_ascii=False)


def _choose_id(api: Api, path: str, name: str, created: Mapping[str, str], sample: Any) -> Any:
    """The id for a place in a path: of what a call before has made, or of an item that is there."""
    template = path.partition(f"/{{{name}}}")[0]
    if template in created:
        return {MADE: created[template]}
    collection = api.holds.get(template)
    return (
        collection["items"][-1][collection["id"]]
        if collection and collection["id"]
        else "1"
        if sample is None
        else sample
    )


def _can_verify_or_repeat(operation: Operation, operations: Mapping[str, Operation]) -> bool:
    """True if a client can find out whether a call without a reply was done, or may repeat it."""
    listed = any(candidate.does == "list" and candidate.of == operation.of for candidate in operations.values())
    return operation.idempotent or "idempotency_key" in operation.places or (operation.does == "create" and listed)


def _render_scenario(api: Api, name: str, entry: Mapping[str, Any], operations: Mapping[str, Operation]) -> str:
    """A scenario over the functions, or over HTTP. Its faults: the first read fails once, and the first write whose
    fate can be known loses its reply; if there is none, one is refused once."""
    http, calls = name == OVER_HTTP, [function_name["call"] for function_name in entry["steps"]]
    used = sorted(calls)
    writes = [function_name for function_name in calls if operations[function_name].writes]
    single = [
        function_name for function_name in used if function_name in writes and not operations[function_name].idempotent
    ]
    lost = next(
        (function_name for function_name in writes if _can_verify_or_repeat(operations[function_name], operations)), ""
    )
    doubtful = "" if lost or not writes else writes[0]
    read = next((function_name for function_name in calls if function_name not in writes), "")
    hits = [
        (fault, function_name)
        for fault, function_name in zip(FAULTS, (read, lost, doubtful), strict=True)
        if function_name
    ]
    data: dict[str, Any] = {
        "name": f"{make_scenario_name(api.name)} over HTTP" if http else name.replace("_", " "),
        "fresh": f"{MODULE}:{name}",
    }
    if http:
        data["services"] = {api.host: f"{MODULE}:app"}
    else:
        data["tools"] = [f"{MODULE}:{function_name}" for function_name in used if function_name in writes]
        data["reads"] = [f"{MODULE}:{function_name}" for function_name in used if function_name not in writes]
        data["idempotent"] = [
            function_name for function_name in used if function_name in writes and function_name not in single
        ]
    data |= {
        "state": f"{MODULE}:state",
        "prompt": entry["prompt"],
        "faults": [
            {
                "fault": fault,
                "target": api.host,
                "tool": _make_tool_pattern(api, operations[function_name]),
                "max_times": 1,
            }
            if http
            else {"fault": fault, "target": function_name, "calls": [1]}
            for fault, function_name in hits
        ],
        "expect": ["no_duplicate_effects"],
        "trials": 1,
    }
    if data.get("idempotent"):
        # What may be repeated is no harm if it is done twice.
        data["expect"] = [{"no_duplicate_effects": {"effect": function_name}} for function_name in single]
    comment = COMMENT.format(name=_to_one_line(api.name)) + (UNKNOWABLE.format(name=doubtful) if doubtful else "")
    if http:
        address = f"{api.scheme}://{api.host}{api.base}{'/mcp' if api.protocol == 'mcp' else ''}"
        comment += f"# It answers at {address}, whatever client asks.\n"
    return comment + render_scenario_text({k: v for k, v in data.items() if v}, ".yaml")


def _make_tool_pattern(api: Api, operation: Operation) -> str:
    """The tool of a request, as a fault selects it."""
    return (
        f"{operation.method} {api.base}{re.sub(r'{.*?}', '*', operation.path)}" if operation.method else operation.tool
    )


def describe_operation_counts(api: Api) -> list[str]:
    """The count of what was found, in a line."""
    writes, keeps = (
        sum(operation.writes for operation in api.operations),
        sum(operation.does != "do" for operation in api.operations),
    )
    state_text = f"{keeps} keep state in {len(api.holds)} collections"
    return [f"{len(api.operations)} operations: {writes} change something, {state_text}"]
