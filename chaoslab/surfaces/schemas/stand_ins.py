"""A fake for a service, made of its schema: it keeps what is created, and answers functions, HTTP and MCP alike.

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
from chaoslab.surfaces.schemas._operations import MADE, find_item_in_reply, find_list_items
from chaoslab.surfaces.schemas._state import CallRefused, ServiceState, Tools, fill_path, split_arguments_by_place

_NO_METHOD = -32601
Reply = tuple[int, Any, dict[str, str]]


def make_http_app(service: ServiceState) -> Callable[[AppRequest], Reply]:
    data, operations = service.data, service.operations
    routes = [
        (re.compile(re.sub(r"\\{(.*?)\\}", "([^/]+)", re.escape(operation["path"]))), name)
        # Fixed paths before those with ids: /orders/latest before /orders/{id}.
        for name, operation in sorted(operations.items(), key=lambda pair: pair[1]["path"].count("{"))
    ]

    def answer_request(request: AppRequest) -> Reply:
        # A client may add a slash.
        path = request.path.removeprefix(data["base"]).rstrip("/") or "/"
        matches = [(name, match) for form, name in routes if (match := form.fullmatch(path))]
        function, match = next(
            (entry for entry in matches if operations[entry[0]]["method"] == request.method), ("", None)
        )
        if match is None:
            return _make_json_reply(405 if matches else 404, {"error": f"there is no {request.method} {request.path}"})
        operation, places = operations[function], {"header": request.headers, "query": request.query}
        if (
            data["auth"]
            and not operation["open"]
            and not any(name in places[location] for location, name in data["auth"])
        ):
            return _make_json_reply(401, {"error": "there is no credential"})
        is_form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        body = dict(parse_qsl(request.text)) if is_form else request.json
        path_values = dict(zip(re.findall(r"\{(.*?)\}", operation["path"]), match.groups(), strict=True))
        try:
            status, value = (
                operation["status"],
                service.answer_request(function, {**places, "path": path_values, "body": body or {}}),
            )
        except CallRefused as error:
            status, value = error.status, {"error": str(error)}
        # The method of a POST that only reads does not tell that it had no effect.
        return _make_json_reply(status, value, effect=operation["writes"] or request.method in SAFE)

    return answer_request


def make_mcp_app(service: ServiceState) -> Callable[[AppRequest], Reply]:
    by_tool = {operation["tool"]: (name, operation) for name, operation in service.operations.items()}
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": service.data["name"], "version": "0"}}

    def call_tool(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        name, operation = by_tool[tool]
        arguments_by_name = {mine: arguments[its] for mine, (_, its) in operation["places"].items() if its in arguments}
        try:
            return mcp.make_tool_result(service.call(name, arguments_by_name), operation["returns"])
        except CallRefused as error:
            return mcp.make_error_result(tool, str(error))

    def answer_request(request: AppRequest) -> Reply:
        message = request.json if request.method == "POST" else None
        if not isinstance(message, dict):
            return _make_json_reply(405, None)
        method, params = message.get("method"), message.get("params") or {}
        tool, envelope = str(params.get("name")), {"jsonrpc": "2.0", "id": message.get("id")}
        if "id" not in message:
            return _make_json_reply(202, None)
        if method == mcp.CALL and tool in by_tool:
            result = call_tool(tool, params.get("arguments") or {})
            return _make_json_reply(200, {**envelope, "result": result}, effect=by_tool[tool][1]["writes"])
        answers = {
            "initialize": {"protocolVersion": params.get("protocolVersion"), **about},
            mcp.LIST: {"tools": [_describe_tool(of) for _, of in by_tool.values()]},
            mcp.CALL: mcp.make_error_result(tool, "there is no such tool"),
            "ping": {},
        }
        if method in answers:
            return _make_json_reply(200, {**envelope, "result": answers[method]})
        return _make_json_reply(
            200, {**envelope, "error": {"code": _NO_METHOD, "message": f"there is no method {method}"}}
        )

    return answer_request


def _make_json_reply(status: int, value: Any, *, effect: bool = True) -> Reply:
    """A reply. `effect`: False says that the request changed nothing, which its method does not tell."""
    headers = {} if effect else {EFFECT: "none"}
    if value is None:
        return status, None, headers
    return status, json.dumps(value, ensure_ascii=False).encode(), {"Content-Type": "application/json", **headers}


def _describe_tool(operation: Mapping[str, Any]) -> dict[str, Any]:
    notes = {"readOnlyHint": not operation["writes"], "idempotentHint": operation["idempotent"]}
    names = {mine: wire_name for mine, (_, wire_name) in operation["places"].items()}
    schema = operation["parameters"]
    input_schema = {
        "type": "object",
        "properties": {names[mine]: property_schema for mine, property_schema in schema["properties"].items()},
        "required": [names[mine] for mine in schema["required"]],
    }
    tool_data = {
        "name": operation["tool"],
        "description": operation["says"],
        "inputSchema": input_schema,
        "annotations": notes,
    }
    return {**tool_data, "outputSchema": operation["returns"]} if operation["returns"] else tool_data


TRIES, TIMEOUT_S = 3, 20.0
"""The attempts at a call, and the most seconds that one over HTTP waits."""
AGAIN = frozenset({408, 425, 429})
"""The statuses below 500 after which a call is made again."""


def run_scenario_calls(data: Mapping[str, Any], scenario: str, tools: Tools) -> str:
    """Makes the calls of a scenario one after the other, and returns the answer. `data`: of the fake."""
    created_ids: dict[str, Any] = {}
    steps = data["scenarios"][scenario]["steps"]
    for step in steps:
        name, operation = step["call"], data["operations"][step["call"]]
        arguments = {
            argument: created_ids[value[MADE]] if isinstance(value, dict) and MADE in value else value
            for argument, value in step["arguments"].items()
        }
        reply = _call_with_retries(data["operations"], name, arguments, tools)
        if operation["does"] == "create":
            id_ = data["holds"][operation["of"]]["id"]
            created_ids[name] = find_item_in_reply(reply, id_).get(id_)
    return f"Done: {len(steps)} calls."


def _call_with_retries(operations: Mapping[str, Any], name: str, arguments: Mapping[str, Any], tools: Tools) -> Any:
    """Makes a call up to TRIES times. If nobody knows whether a thing was made, it is looked for in the list."""
    operation = operations[name]
    lists = next(
        (entry for entry, its in operations.items() if its["does"] == "list" and its["of"] == operation["of"]), ""
    )
    # With a key, asking again is safe.
    looks = operation["does"] == "create" and lists and "idempotency_key" not in arguments
    path = {entry: value for entry, value in arguments.items() if operation["places"][entry][0] == "path"}

    def list_items() -> list[Any]:
        return find_list_items(_call_with_retries(operations, lists, path, tools)) if looks else []

    # What was there before is not what this call has made.
    before = list_items()
    for attempt in range(1, TRIES + 1):
        try:
            return tools[name](**arguments)
        except Exception as error:
            refused = isinstance(error, CallRefused)
            # The thing is gone: the attempt before has done it.
            if refused and operation["does"] == "remove" and attempt > 1:
                return None  # the attempt before has done it
            if refused or attempt == TRIES:
                raise
        if new := [entry for entry in list_items() if entry not in before]:
            return new[-1]
    raise AssertionError


def make_http_tools(data: Mapping[str, Any]) -> Tools:
    """Functions that ask the service at its address, by name."""
    return {name: partial(_call_over_http, data, operation) for name, operation in data["operations"].items()}


# Positional, since an argument may be called data.
def _call_over_http(data: Mapping[str, Any], operation: Mapping[str, Any], /, **arguments: Any) -> Any:
    sent = split_arguments_by_place(operation, arguments)
    for location, wire_name in data["auth"][:1]:
        sent[location][wire_name] = "chaos=1" if wire_name == "cookie" else "Bearer fake"
    url = f"{data['scheme']}://{data['host']}{data['base']}"
    if data["protocol"] == "mcp":
        params = {"name": operation["tool"], "arguments": {**sent["path"], **sent["query"], **sent["body"]}}
        message = {"jsonrpc": "2.0", "id": 1, "method": mcp.CALL, "params": params}
        result = _send_request("POST", f"{url}/mcp", json=message)["result"]
        if result.get("isError"):
            raise CallRefused(400, str(mcp.get_result_value(result)))
        return mcp.get_result_value(result)
    fields = {wire_name: str(value) for wire_name, value in sent["header"].items()}
    url += fill_path(operation["path"], sent["path"])
    return _send_request(operation["method"], url, params=sent["query"], json=sent["body"] or None, headers=fields)


def _send_request(method: str, url: str, **options: Any) -> Any:
    reply = httpx.request(method, url, timeout=TIMEOUT_S, **options)
    # The service has said why: another attempt would hear the same.
    if 400 <= reply.status_code < 500 and reply.status_code not in AGAIN:
        raise CallRefused(reply.status_code, reply.text[:200])
    reply.raise_for_status()
    return reply.json() if reply.content else None


class Service(ServiceState):
    """The fake. `begin` and `fresh` bring it into its first state, so a trial finds nothing of the one before."""

    def begin(self, scenario: str, agent: Callable[[str], Any] | None, tools: Tools | None) -> Callable[[str], Any]:
        """Begins anew, and returns the agent, or if there is none, one that makes the scenario's calls. `tools`: the
        fakes by name; None: it asks over HTTP."""
        self.reset_state()
        tools_used = tools or make_http_tools(self.data)
        return agent or (lambda _: run_scenario_calls(self.data, scenario, tools_used))

    def fresh(self) -> Callable[[Any], Any]:
        """Begins anew, and returns the service as an application for `services=`."""
        self.reset_state()
        return make_mcp_app(self) if self.data["protocol"] == "mcp" else make_http_app(self)
