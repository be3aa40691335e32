"""A stand-in as an application of `services=`: over HTTP, or as an MCP server over streamable HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from chaoslab.seams.protocols import mcp
from chaoslab.seams.services.app import Request
from chaoslab.seams.services.effects import EFFECT, SAFE
from chaoslab.surfaces.schemas.state import Refused, State

_NO_METHOD = -32601
Reply = tuple[int, Any, dict[str, str]]


def as_http(service: State) -> Callable[[Request], Reply]:
    data, operations = service.data, service.operations
    routes = [(re.compile(re.sub(r"\\{(.*?)\\}", "([^/]+)", re.escape(of["path"]))), name)
              for name, of in sorted(operations.items(), key=lambda pair: pair[1]["path"].count("{"))]  # fmt: skip

    def app(request: Request) -> Reply:
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
        except Refused as error:
            status, value = error.status, {"error": str(error)}
        return _json(status, value, effect=of["writes"] or request.method in SAFE)

    return app


def as_mcp(service: State) -> Callable[[Request], Reply]:
    by_tool = {of["tool"]: (name, of) for name, of in service.operations.items()}
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": service.data["name"], "version": "0"}}

    def called(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        name, of = by_tool[tool]
        own = {mine: arguments[its] for mine, (_, its) in of["places"].items() if its in arguments}
        try:
            return mcp.result(service.call(name, own), of["returns"])
        except Refused as error:
            return mcp.refused(tool, str(error))

    def app(request: Request) -> Reply:
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
