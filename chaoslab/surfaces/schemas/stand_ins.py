"""A stand-in for a service, made of its schema: it keeps what is created, and answers functions, HTTP and MCP alike.

Its file, `service.json`, holds all that it knows: the operations with a sample of each reply, and the first items of
each collection. Change them there. The agent of a scenario that names no other makes the calls of the prompt, as a
careful client would.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import httpx

from chaoslab.seams.protocols import mcp
from chaoslab.seams.services.app import AppRequest
from chaoslab.seams.services.effects import EFFECT, SAFE
from chaoslab.surfaces.schemas._operations import MADE, inner_of, list_in
from chaoslab.surfaces.schemas._state import CallRefused, ServiceState, Tools, filled, sent_of

_NO_METHOD = -32601
Reply = tuple[int, Any, dict[str, str]]


def as_http(service: ServiceState) -> Callable[[AppRequest], Reply]:
    data, operations = service.data, service.operations
    routes = [(re.compile(re.sub(r"\\{(.*?)\\}", "([^/]+)", re.escape(of["path"]))), name)
              for name, of in sorted(operations.items(), key=lambda pair: pair[1]["path"].count("{"))]  # fmt: skip

    def app(request: AppRequest) -> Reply:
        path = request.path.removeprefix(data["base"]).rstrip("/") or "/"
        found = [(name, match) for form, name in routes if (match := form.fullmatch(path))]
        function, match = next((each for each in found if operations[each[0]]["method"] == request.method), ("", None))
        if match is None:
            return _json(405 if found else 404, {"error": f"there is no {request.method} {request.path}"})
        of, places = operations[function], {"header": request.headers, "query": request.query}
        if data["auth"] and not of["open"] and not any(name in places[place] for place, name in data["auth"]):
            return _json(401, {"error": "there is no credential"})
        is_form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        body = dict(parse_qsl(request.text)) if is_form else request.json
        given = dict(zip(re.findall(r"\{(.*?)\}", of["path"]), match.groups(), strict=True))
        try:
            status, value = of["status"], service.done(function, {**places, "path": given, "body": body or {}})
        except CallRefused as error:
            status, value = error.status, {"error": str(error)}
        return _json(status, value, effect=of["writes"] or request.method in SAFE)

    return app


def as_mcp(service: ServiceState) -> Callable[[AppRequest], Reply]:
    by_tool = {of["tool"]: (name, of) for name, of in service.operations.items()}
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": service.data["name"], "version": "0"}}

    def called(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        name, of = by_tool[tool]
        own = {mine: arguments[its] for mine, (_, its) in of["places"].items() if its in arguments}
        try:
            return mcp.result(service.call(name, own), of["returns"])
        except CallRefused as error:
            return mcp.refused(tool, str(error))

    def app(request: AppRequest) -> Reply:
        asked = request.json if request.method == "POST" else None
        if not isinstance(asked, dict):
            return _json(405, None)
        method, params = asked.get("method"), asked.get("params") or {}
        tool, said = str(params.get("name")), {"jsonrpc": "2.0", "id": asked.get("id")}
        if "id" not in asked:
            return _json(202, None)
        if method == mcp.CALL and tool in by_tool:
            result = called(tool, params.get("arguments") or {})
            return _json(200, {**said, "result": result}, effect=by_tool[tool][1]["writes"])
        answers = {
            "initialize": {"protocolVersion": params.get("protocolVersion"), **about},
            mcp.LIST: {"tools": [_tool(of) for _, of in by_tool.values()]},
            mcp.CALL: mcp.refused(tool, "there is no such tool"),
            "ping": {},
        }
        if method in answers:
            return _json(200, {**said, "result": answers[method]})
        return _json(200, {**said, "error": {"code": _NO_METHOD, "message": f"there is no method {method}"}})

    return app


def _json(status: int, value: Any, *, effect: bool = True) -> Reply:
    """A reply. `effect`: False says that the request changed nothing, which its method does not tell."""
    headers = {} if effect else {EFFECT: "none"}
    if value is None:
        return status, None, headers
    return status, json.dumps(value, ensure_ascii=False).encode(), {"Content-Type": "application/json", **headers}


def _tool(of: Mapping[str, Any]) -> dict[str, Any]:
    notes = {"readOnlyHint": not of["writes"], "idempotentHint": of["idempotent"]}
    names = {mine: own for mine, (_, own) in of["places"].items()}
    schema = of["parameters"]
    given = {"type": "object", "properties": {names[mine]: each for mine, each in schema["properties"].items()},
             "required": [names[mine] for mine in schema["required"]]}  # fmt: skip
    found = {"name": of["tool"], "description": of["says"], "inputSchema": given, "annotations": notes}
    return {**found, "outputSchema": of["returns"]} if of["returns"] else found


TRIES, TIMEOUT_S = 3, 20.0
"""The attempts at a call, and the most seconds that one over HTTP waits."""
AGAIN = frozenset({408, 425, 429})
"""The statuses below 500 after which a call is made again."""


def walked(data: Mapping[str, Any], scenario: str, tools: Tools) -> str:
    """Makes the calls of a scenario one after the other, and returns the answer. `data`: of the stand-in."""
    made: dict[str, Any] = {}
    steps = data["scenarios"][scenario]["steps"]
    for step in steps:
        name, of = step["call"], data["operations"][step["call"]]
        given = {
            each: made[value[MADE]] if isinstance(value, dict) and MADE in value else value
            for each, value in step["arguments"].items()
        }
        reply = _tried(data["operations"], name, given, tools)
        if of["does"] == "create":
            id_ = data["holds"][of["of"]]["id"]
            made[name] = inner_of(reply, id_).get(id_)
    return f"Done: {len(steps)} calls."


def _tried(operations: Mapping[str, Any], name: str, given: Mapping[str, Any], tools: Tools) -> Any:
    """Makes a call up to TRIES times. If nobody knows whether a thing was made, it is looked for in the list."""
    of = operations[name]
    lists = next((each for each, its in operations.items() if its["does"] == "list" and its["of"] == of["of"]), "")
    looks = of["does"] == "create" and lists and "idempotency_key" not in given
    path = {each: value for each, value in given.items() if of["places"][each][0] == "path"}

    def listed() -> list[Any]:
        return list_in(_tried(operations, lists, path, tools)) if looks else []

    before = listed()
    for attempt in range(1, TRIES + 1):
        try:
            return tools[name](**given)
        except Exception as error:
            refused = isinstance(error, CallRefused)
            if refused and of["does"] == "remove" and attempt > 1:
                return None  # the attempt before has done it
            if refused or attempt == TRIES:
                raise
        if new := [each for each in listed() if each not in before]:
            return new[-1]
    raise AssertionError


def over_http(data: Mapping[str, Any]) -> Tools:
    """Functions that ask the service at its address, by name."""
    return {name: partial(_asked_for, data, of) for name, of in data["operations"].items()}


def _asked_for(data: Mapping[str, Any], of: Mapping[str, Any], /, **given: Any) -> Any:
    sent = sent_of(of, given)
    for place, own in data["auth"][:1]:
        sent[place][own] = "chaos=1" if own == "cookie" else "Bearer stand-in"
    url = f"{data['scheme']}://{data['host']}{data['base']}"
    if data["protocol"] == "mcp":
        params = {"name": of["tool"], "arguments": {**sent["path"], **sent["query"], **sent["body"]}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": mcp.CALL, "params": params}
        result = _asked("POST", f"{url}/mcp", json=asked)["result"]
        if result.get("isError"):
            raise CallRefused(400, str(mcp.meaning(result)))
        return mcp.meaning(result)
    fields = {own: str(value) for own, value in sent["header"].items()}
    url += filled(of["path"], sent["path"])
    return _asked(of["method"], url, params=sent["query"], json=sent["body"] or None, headers=fields)


def _asked(method: str, url: str, **more: Any) -> Any:
    reply = httpx.request(method, url, timeout=TIMEOUT_S, **more)
    if 400 <= reply.status_code < 500 and reply.status_code not in AGAIN:
        raise CallRefused(reply.status_code, reply.text[:200])
    reply.raise_for_status()
    return reply.json() if reply.content else None


class Service(ServiceState):
    """The stand-in. `begin` and `fresh` bring it into its first state, so a trial finds nothing of the one before."""

    def begin(self, scenario: str, agent: Callable[[str], Any] | None, tools: Tools | None) -> Callable[[str], Any]:
        """Begins anew, and returns the agent, or if there is none, one that makes the scenario's calls. `tools`: the
        stand-ins by name; None: it asks over HTTP."""
        self.clear()
        asked = tools or over_http(self.data)
        return agent or (lambda _: walked(self.data, scenario, asked))

    def fresh(self) -> Callable[[Any], Any]:
        """Begins anew, and returns the service as an application for `services=`."""
        self.clear()
        return as_mcp(self) if self.data["protocol"] == "mcp" else as_http(self)
