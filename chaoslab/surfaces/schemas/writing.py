"""Writes a service that is known by its schema as a project: scenarios, a module of stand-ins, and what they know."""

import json
import re
from collections.abc import Mapping
from typing import Any

from chaoslab.scenarios.spec import name_of
from chaoslab.scenarios.writing import text_of
from chaoslab.surfaces.projects import MODULE, Personal, Project, function, function_names, module, signature
from chaoslab.surfaces.schemas._operations import MADE, ONE, Api, Operation, inner_of

KNOWN, STEPS_MAX, OVER_HTTP = "service.json", 12, "over_http"
PROMPT_MAX = 19_000
"""The most characters of all calls in a prompt, of which a scenario takes 20,000."""
FAULTS = ("server_error", "lost_reply", "rate_limit")
RANK = {"list": 0, "create": 1, "read": 2, "update": 3, "replace": 4, "do": 5, "remove": 6}
_TAKEN = {"AGENT", "Path", "Service", "lab", "service", "app", "state", "globals", "locals"}
HEAD = '''\
"""A stand-in for {name}, made of its schema. What it knows and holds is in service.json."""

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
# The stand-in keeps what is created, changed and removed. What an operation does to other things, no schema tells.
"""
UNKNOWABLE = """\
# Nothing tells whether {name} was done (no Idempotency-Key, no list), so lost_reply would leave any agent in doubt.
"""


def project_of(api: Api, *, most: int, personal: Personal) -> Project:
    """The project of a service. `most`: scenario files at most, one for each part of its paths."""
    made = Project(lacking=api.lacking)
    names = function_names([each.tool for each in api.operations], _TAKEN)
    while len(names) < len(api.operations):  # two operations of one name
        for number, each in enumerate(api.operations):
            if each.tool in {other.tool for other in api.operations[:number]}:
                each.tool = f"{each.tool}_2"
        names = function_names([each.tool for each in api.operations], _TAKEN)
    named = {names[each.tool]: each for each in api.operations}
    parts: dict[str, dict[str, Operation]] = {}
    for name, each in named.items():
        parts.setdefault(_part(each.path), {})[name] = each
    scenarios: dict[str, dict[str, Any]] = {}
    for part, its in [*parts.items()][:most]:
        name = part if part not in (OVER_HTTP, *_TAKEN, *named) else f"{part}_calls"
        steps = _steps(api, its, made.lacking, part)
        if not steps["steps"]:  # no call is short enough
            continue
        scenarios[name] = steps
        made.files[f"{name}.chaos.yaml"] = _scenario(api, name, scenarios[name], named)
    if len(parts) > most:
        left = sum(len(its) for its in [*parts.values()][most:])
        made.lacking.append(f"{left} more operations are in no scenario: --most {most} are written")
    if scenarios:
        scenarios[OVER_HTTP] = max(scenarios.values(), key=lambda of: sum(named[s["call"]].writes for s in of["steps"]))
        made.files[f"{OVER_HTTP}.chaos.yaml"] = _scenario(api, OVER_HTTP, scenarios[OVER_HTTP], named)
    texts = [_function(name, of) for name, of in named.items()]
    for name in scenarios:
        tools = "None" if name == OVER_HTTP else "globals()"
        texts.append(f"def {name}():\n    return service.begin({name!r}, AGENT, {tools})\n")
    made.files[f"{MODULE}.py"] = module(HEAD.format(name=_line(api.name)), texts)
    made.files[KNOWN] = json.dumps({
        "name": api.name, "host": api.host, "scheme": api.scheme, "base": api.base, "protocol": api.protocol,
        "auth": api.auth, "operations": {name: of.said for name, of in named.items()}, "holds": api.holds,
        "scenarios": scenarios,
    }, indent=1, ensure_ascii=False) + "\n"  # fmt: skip
    made.masked = personal.counts
    return made


def _line(text: str) -> str:
    return re.sub(r'[\x00-\x1f\x7f-\x9f\u2028\u2029"\\]', " ", text)[:80].strip() or "a service"


def _part(path: str) -> str:
    """The part of the paths that an operation belongs to, as the name of a scenario."""
    fixed = [each for each in path.split("/") if not re.fullmatch(r"|\{.*|api|v\d+", each)]
    name = re.sub(r"\W+", "_", fixed[0] if fixed else "root", flags=re.ASCII).strip("_").lower()
    return f"part_{name}" if not name or not name.isidentifier() else name


def _function(name: str, of: Operation) -> str:
    return function(name, signature(of.properties, of.required), of.says, f"service.call({name!r}, locals())")


def _steps(api: Api, its: Mapping[str, Operation], lacking: list[str], part: str) -> dict[str, Any]:
    """The calls of a scenario, each operation once: what is made is read, changed and removed again."""

    def order(pair: tuple[str, Operation]) -> tuple[bool, int, int]:
        depth, removes = pair[1].path.count("{") - (pair[1].does in ONE), pair[1].does == "remove"
        return removes, -depth if removes else depth, RANK[pair[1].does]

    steps, spelt, length = list[dict[str, Any]](), list[str](), 0
    made: dict[str, str] = {}
    known: dict[str, Any] = {}
    chosen = sorted(its.items(), key=order)
    for name, of in chosen[:STEPS_MAX]:
        given = {}
        for own, (place, wire) in of.places.items():
            value = of.arguments[own]
            if place == "path":
                value = _id_for(api, of.path, wire, made, known.setdefault(wire, value))
            if own in of.required or (place == "body" and value is not None):
                given[own] = value
            elif own == "idempotency_key":
                given[own] = f"{name} 1"
        call = f"{name}({', '.join(f'{key}={_spelt(value)}' for key, value in given.items())})"
        if (length := length + len(call)) > PROMPT_MAX:
            length -= len(call)
            lacking.append(f"{of.method} {of.path}: its example is too long for a scenario; it has a stand-in")
            continue
        id_ = api.holds[of.of]["id"] if of.does == "create" else ""
        if id_ and (of.reply == {} or id_ in inner_of(of.reply, id_)):
            made[of.of] = name
        elif id_:
            lacking.append(f"{of.method} {of.path}: its reply does not tell the id of what it made")
        steps.append({"call": name, "arguments": given})
        spelt.append(call)
    if len(chosen) > STEPS_MAX:
        lacking.append(f"{part}: {len(chosen) - STEPS_MAX} operations are in no scenario; they have stand-ins")
    return {"prompt": "Call one after the other: " + "; ".join(spelt) + ".", "steps": steps}


def _spelt(value: Any) -> str:
    is_made = isinstance(value, dict) and MADE in value
    return f"<the id from {value[MADE]}>" if is_made else json.dumps(value, ensure_ascii=False)


def _id_for(api: Api, path: str, name: str, made: Mapping[str, str], sample: Any) -> Any:
    """The id for a place in a path: of what a call before has made, or of an item that is there."""
    template = path.partition(f"/{{{name}}}")[0]
    if template in made:
        return {MADE: made[template]}
    held = api.holds.get(template)
    return held["items"][-1][held["id"]] if held and held["id"] else "1" if sample is None else sample


def _can_know(of: Operation, operations: Mapping[str, Operation]) -> bool:
    """True if a client can find out whether a call without a reply was done, or may repeat it."""
    listed = any(each.does == "list" and each.of == of.of for each in operations.values())
    return of.idempotent or "idempotency_key" in of.places or (of.does == "create" and listed)


def _scenario(api: Api, name: str, of: Mapping[str, Any], operations: Mapping[str, Operation]) -> str:
    """A scenario over the functions, or over HTTP. Its faults: the first read fails once, and the first write whose
    fate can be known loses its reply; if there is none, one is refused once."""
    http, calls = name == OVER_HTTP, [each["call"] for each in of["steps"]]
    used = sorted(calls)
    writes = [each for each in calls if operations[each].writes]
    single = [each for each in used if each in writes and not operations[each].idempotent]
    lost = next((each for each in writes if _can_know(operations[each], operations)), "")
    doubtful = "" if lost or not writes else writes[0]
    read = next((each for each in calls if each not in writes), "")
    hits = [(fault, each) for fault, each in zip(FAULTS, (read, lost, doubtful), strict=True) if each]
    data: dict[str, Any] = {
        "name": f"{name_of(api.name)} over HTTP" if http else name.replace("_", " "),
        "fresh": f"{MODULE}:{name}",
    }
    if http:
        data["services"] = {api.host: f"{MODULE}:app"}
    else:
        data["tools"] = [f"{MODULE}:{each}" for each in used if each in writes]
        data["reads"] = [f"{MODULE}:{each}" for each in used if each not in writes]
        data["idempotent"] = [each for each in used if each in writes and each not in single]
    data |= {"state": f"{MODULE}:state", "prompt": of["prompt"], "faults": [
        {"fault": fault, "target": api.host, "tool": _request(api, operations[each]), "max_times": 1} if http
        else {"fault": fault, "target": each, "calls": [1]} for fault, each in hits
    ], "expect": ["no_duplicate_effects"], "trials": 1}  # fmt: skip
    if data.get("idempotent"):
        data["expect"] = [{"no_duplicate_effects": {"effect": each}} for each in single]
    said = COMMENT.format(name=_line(api.name)) + (UNKNOWABLE.format(name=doubtful) if doubtful else "")
    if http:
        where = f"{api.scheme}://{api.host}{api.base}{'/mcp' if api.protocol == 'mcp' else ''}"
        said += f"# It answers at {where}, whatever client asks.\n"
    return said + text_of({k: v for k, v in data.items() if v}, ".yaml")


def _request(api: Api, of: Operation) -> str:
    """The tool of a request, as a fault selects it."""
    return f"{of.method} {api.base}{re.sub(r'{.*?}', '*', of.path)}" if of.method else of.tool


def api_lines(api: Api) -> list[str]:
    """The count of what was found, in a line."""
    writes, keeps = sum(each.writes for each in api.operations), sum(each.does != "do" for each in api.operations)
    kept = f"{keeps} keep state in {len(api.holds)} collections"
    return [f"{len(api.operations)} operations: {writes} change something, {kept}"]
