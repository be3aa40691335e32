"""A stand-in for a service, made of its schema: it keeps what is created, and answers functions, HTTP and MCP alike.

Its file, `service.json`, holds all that it knows: the operations with a sample of each reply, and the first items of
each collection. Change them there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import httpx

from chaoslab.base.files import json_of
from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.schemas.operations import ONE
from chaoslab.surfaces.schemas.samples import next_id

TRIES, TIMEOUT_S = 3, 20.0
"""The attempts at a call of the agent that makes the calls of a scenario, and the most seconds that it waits over HTTP."""
MADE = "made by"
"""The key of an argument that is the id of what a call before made."""
KINDS = {"string": str, "integer": int, "number": int | float, "boolean": bool, "array": list, "object": dict}
SIZES, PAGES = ("limit", "per_page", "page_size", "pagesize", "max_results"), ("page", "offset", "skip")
CURSORS = ("cursor", "after", "page_token", "pagetoken", "starting_after")
"""Names of query parameters, in small letters, by what they say of a list."""
_NO_METHOD = -32601
Sent = dict[str, Any]
Tools = Mapping[str, Callable[..., Any]]


class Refused(LookupError):
    """The stand-in's refusal of a call. `status`: as HTTP has it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"{status} {why}")
        self.status = status


class Service:
    """The stand-in. `begin` and `fresh` bring it into its first state, so a trial finds nothing of the one before."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data, self._operations, self._holds = data, data["operations"], data["holds"]
        self._routes = sorted(
            ((re.compile(re.sub(r"\\{(.*?)\\}", r"([^/]+)", re.escape(of["path"]))), name)
             for name, of in self._operations.items()),
            key=lambda route: self._operations[route[1]]["path"].count("{"),
        )  # fmt: skip
        self._clear()

    @classmethod
    def read(cls, path: Path) -> Service:
        """The stand-in of a file.

        Raises:
            ValueError: it cannot be read, or is not as `from-openapi` and `from-mcp` write it.
        """
        try:
            return cls(json_of(path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not as chaoslab from-openapi writes it ({error})") from None

    def _clear(self) -> None:
        self._items: dict[str, list[Any]] = {}
        self._first: dict[str, list[Any]] = {}
        self._made: list[str] = []
        self._known: dict[tuple[str, str], Any] = {}

    def begin(self, scenario: str, agent: Callable[[str], Any] | None, tools: Tools | None) -> Callable[[str], Any]:
        """Begins anew, and returns the agent, or if there is none, one that makes the scenario's calls. `tools`: the
        stand-ins by name; None: it asks over HTTP."""
        self._clear()
        asked = tools or {name: lambda name=name, **given: self._over_http(name, given) for name in self._operations}
        return agent or (lambda _: self._walked(self._data["scenarios"][scenario], asked))

    def fresh(self) -> Callable[[Any], Any]:
        """Begins anew, and returns the service as an application for `services=`."""
        self._clear()
        return lambda request: self._rpc(request) if self._data["protocol"] == "mcp" else self._http(request)

    def state(self) -> dict[str, Any]:
        """The collections that have changed since the beginning, by their paths."""
        return deepcopy({path: now for path, now in sorted(self._items.items()) if now != self._first[path]})

    def tools(self) -> list[dict[str, Any]]:
        """The tools, each with name, description, and its parameters as a JSON schema."""
        return [{"name": name, "description": of["says"], "parameters": of["parameters"]}
                for name, of in self._operations.items()]  # fmt: skip

    def call(self, function: str, arguments: Mapping[str, Any]) -> Any:
        """The reply to a call of a function. An argument that is None is one that was not given.

        Raises:
            Refused: there is no such thing, or an argument is missing or of the wrong type.
        """
        sent: Sent = {"path": {}, "query": {}, "header": {}, "body": {}}
        of = self._operations[function]
        for name, value in arguments.items():
            if value is not None and name in of["places"]:
                place, own = of["places"][name]
                if own:
                    sent[place][own] = value
                else:
                    sent["body"] = value
        return self._done(function, sent)

    # The work itself.

    def _done(self, function: str, sent: Sent) -> Any:
        of = self._operations[function]
        self._check(of, sent)
        key = next((str(value) for name, value in sent["header"].items() if name.lower() == "idempotency-key"), "")
        if key and (function, key) in self._known:
            return deepcopy(self._known[function, key])
        reply = self._reply(of, sent)
        if key:
            self._known[function, key] = reply
        return deepcopy(reply)

    def _check(self, of: Mapping[str, Any], sent: Sent) -> None:
        schema = of["parameters"]
        for name, (place, own) in of["places"].items():
            there = sent[place] if isinstance(sent[place], dict) else {}
            given = (own in there or (place == "header" and own.lower() in there)) if own else bool(sent[place])
            if name in schema["required"] and not given:
                raise Refused(400, f"{own or 'a body'} is missing")
            kind = KINDS.get(schema["properties"][name].get("type"), object)
            value = there.get(own)
            wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object))
            if place == "body" and own and value is not None and wrong:
                raise Refused(400, f"{own} should be of type {schema['properties'][name]['type']}")

    def _reply(self, of: Mapping[str, Any], sent: Sent) -> Any:
        path, like, held = of["path"], of["reply"], self._holds.get(of["of"])
        body = sent["body"] if isinstance(sent["body"], dict) else {}
        above = self._above(path, sent["path"], own=of["does"] in ONE and of["of"] != path)
        if held is None:
            given = {**sent["path"], **sent["query"], **body}
            if isinstance(above, dict) and isinstance(like, dict) and like and like.keys() <= above.keys():
                return {name: above[name] for name in like}
            same = like.items() if isinstance(like, dict) else ()
            return {name: given.get(name, value) for name, value in same} if same else like
        place, id_ = _filled(of["of"], sent["path"]), held["id"]
        items = self._of(place, held["items"])
        if of["does"] == "list":
            return _listed(like, items, sent["query"])
        if of["does"] == "create":
            own = {name: value for name, value in sent["path"].items() if name in held["new"]}
            last = items[-1][id_] if items else held["items"][-1][id_]
            item = {**deepcopy(held["new"]), **own, **body, id_: next_id(last, len(self._made))}
            self._made.append(f"{place}/{item[id_]}")
            items.append(item)
            return _shaped(like, item, id_)
        name = of["path"].rpartition("{")[2].rstrip("}")
        item = self._item(items, id_, sent["path"].get(name), path)
        if of["does"] == "remove":
            items.remove(item)
        elif of["does"] in ("replace", "update"):
            kept = {**held["new"], id_: item[id_]} if of["does"] == "replace" and id_ else item
            changed = {**kept, **body, **({id_: item[id_]} if id_ else {})}
            item.clear()
            item.update(changed)
        return _shaped(like, item, id_)

    def _above(self, path: str, given: Mapping[str, Any], *, own: bool) -> Any:
        """The last thing in whose path this one stands; None if none is known. `own`: the path is an item's, which is
        none above itself.

        Raises:
            Refused: there is no such thing.
        """
        found = None
        parts = path.split("/")
        for end in range(2, len(parts) + (0 if own else 1)):
            template, last = "/".join(parts[: end - 1]), parts[end - 1]
            held = self._holds.get(template)
            if held and held["id"] and last.startswith("{"):
                items = self._of(_filled(template, given), held["items"])
                found = self._item(items, held["id"], given.get(last[1:-1]), template)
        return found

    def _of(self, place: str, first: list[Any]) -> list[Any]:
        """The items of a collection. In something that was made in this trial, it is empty at first."""
        if place not in self._items:
            new = any(place.startswith(f"{made}/") for made in self._made)
            self._first[place] = [] if new else first
            self._items[place] = deepcopy(self._first[place])
        return self._items[place]

    def _item(self, items: list[Any], id_: str, wanted: Any, path: str) -> Any:
        found = next((each for each in items if not id_ or str(each.get(id_)) == str(wanted)), None)
        if found is None:
            raise Refused(404, f"there is no {wanted!r:.80} in {path}")
        return found

    # Over HTTP, and as an MCP server.

    def _http(self, request: Any) -> tuple[int, Any, dict[str, str]]:
        """The reply to a request of `services=`."""
        path = request.path.removeprefix(self._data["base"]).rstrip("/") or "/"
        routes = [(name, match) for form, name in self._routes if (match := form.fullmatch(path))]
        found = next((each for each in routes if self._operations[each[0]]["method"] == request.method), None)
        if found is None:
            return _json(405 if routes else 404, {"error": f"there is no {request.method} {request.path}"})
        function, match = found
        of = self._operations[function]
        places = {"header": request.headers, "query": request.query}
        if (
            self._data["auth"]
            and not of["open"]
            and not any(name in places[place] for place, name in self._data["auth"])
        ):
            return _json(401, {"error": "there is no credential"})
        is_form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        body = dict(parse_qsl(request.text)) if is_form else request.json
        names = re.findall(r"\{(.*?)\}", of["path"])
        sent = {"path": dict(zip(names, match.groups(), strict=True)), "query": request.query, "header": request.headers,
                "body": {} if body is None else body}  # fmt: skip
        try:
            status, value = of["status"], self._done(function, sent)
        except Refused as error:
            status, value = error.status, {"error": str(error)}
        reads = not of["writes"] and request.method not in ("GET", "HEAD", "OPTIONS")
        return _json(status, value, {"X-Lab-Effect": "none"} if reads else {})

    def _rpc(self, request: Any) -> tuple[int, Any, dict[str, str]]:
        """The answer to a message of MCP over streamable HTTP."""
        asked = request.json if request.method == "POST" else None
        if not isinstance(asked, dict):
            return _json(405, None)
        method, params = asked.get("method"), asked.get("params") or {}
        if "id" not in asked:
            return _json(202, None)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        reads = any(of["tool"] == params.get("name") and not of["writes"] for of in self._operations.values())
        if method == "initialize":
            answer["result"] = {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                                "serverInfo": {"name": self._data["name"], "version": "0"}}  # fmt: skip
        elif method == mcp.LIST:
            answer["result"] = {"tools": [_tool(of) for of in self._operations.values()]}
        elif method == mcp.CALL:
            answer["result"] = self._called(str(params.get("name")), params.get("arguments") or {})
        elif method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": _NO_METHOD, "message": f"there is no method {method}"}
        return _json(200, answer, {"X-Lab-Effect": "none"} if method == mcp.CALL and reads else {})

    def _called(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function = next((name for name, of in self._operations.items() if of["tool"] == tool), None)
        if function is None:
            return mcp.refused(tool, "there is no such tool")
        of = self._operations[function]
        own = {mine: arguments[name] for mine, (_, name) in of["places"].items() if name in arguments}
        try:
            return mcp.result(self.call(function, own), of["returns"])
        except Refused as error:
            return mcp.refused(tool, str(error))

    # The agent that makes the calls of a scenario.

    def _walked(self, scenario: Mapping[str, Any], tools: Tools) -> str:
        made: dict[str, Any] = {}
        for step in scenario["steps"]:
            given = {
                name: made[value[MADE]] if isinstance(value, dict) and MADE in value else value
                for name, value in step["arguments"].items()
            }
            name, of = step["call"], self._operations[step["call"]]
            reply = self._tried(name, given, tools)
            if of["does"] == "create":
                id_ = self._holds[of["of"]]["id"]
                inner = [reply, *(each for each in reply.values() if isinstance(each, dict))]
                made[name] = next((each[id_] for each in inner if id_ in each), None)
        return f"Done: {len(scenario['steps'])} calls."

    def _tried(self, name: str, given: Mapping[str, Any], tools: Tools) -> Any:
        """Makes a call up to TRIES times. If nobody knows whether a thing was made, it is looked for in the list."""
        of = self._operations[name]
        lists = next(
            (each for each, its in self._operations.items() if (its["does"], its["of"]) == ("list", of["of"])), ""
        )
        looks = of["does"] == "create" and lists in tools and "idempotency_key" not in given
        path = {each: value for each, value in given.items() if of["places"][each][0] == "path"}
        before = _list_of(self._tried(lists, path, tools)) if looks else []
        for attempt in range(1, TRIES + 1):
            try:
                return tools[name](**given)
            except Exception as error:
                refused = isinstance(error, Refused)
                if refused and of["does"] == "remove" and attempt > 1:
                    return None  # the attempt before has done it
                if refused or attempt == TRIES:
                    raise
            if looks:
                new = [each for each in _list_of(self._tried(lists, path, tools)) if each not in before]
                if new:
                    return new[-1]
        raise AssertionError

    def _over_http(self, name: str, given: Mapping[str, Any]) -> Any:
        of, data = self._operations[name], self._data
        sent: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "body": {}}
        whole = None
        for each, value in given.items():
            place, own = of["places"][each]
            if own:
                sent[place][own] = value
            else:
                whole = value
        for place, own in data["auth"][:1]:
            sent[place][own] = "chaos=1" if own == "cookie" else "Bearer stand-in"
        url = f"{data['scheme']}://{data['host']}{data['base']}"
        if data["protocol"] == "mcp":
            params = {"name": of["tool"], "arguments": {of["places"][each][1]: value for each, value in given.items()}}
            asked = {"jsonrpc": "2.0", "id": 1, "method": mcp.CALL, "params": params}
            result = _asked("POST", f"{url}/mcp", json=asked)["result"]
            if result.get("isError"):
                raise Refused(400, str(mcp.meaning(result)))
            return mcp.meaning(result)
        body = whole if whole is not None else sent["body"] or None
        fields = {own: str(value) for own, value in sent["header"].items()}
        return _asked(
            of["method"], url + _filled(of["path"], sent["path"]), params=sent["query"], json=body, headers=fields
        )


def _asked(method: str, url: str, **more: Any) -> Any:
    reply = httpx.request(method, url, timeout=TIMEOUT_S, **more)
    if 400 <= reply.status_code < 500 and reply.status_code not in (408, 425, 429):
        raise Refused(reply.status_code, reply.text[:200])
    reply.raise_for_status()
    return reply.json() if reply.content else None


def _json(status: int, value: Any, headers: Mapping[str, str] | None = None) -> tuple[int, Any, dict[str, str]]:
    if value is None:
        return status, None, dict(headers or {})
    return (
        status,
        json.dumps(value, ensure_ascii=False).encode(),
        {"Content-Type": "application/json", **(headers or {})},
    )


def _tool(of: Mapping[str, Any]) -> dict[str, Any]:
    notes = {"readOnlyHint": not of["writes"], "idempotentHint": of["idempotent"]}
    names = {mine: own for mine, (_, own) in of["places"].items()}
    schema = of["parameters"]
    given = {"type": "object", "properties": {names[mine]: each for mine, each in schema["properties"].items()},
             "required": [names[mine] for mine in schema["required"]]}  # fmt: skip
    found = {"name": of["tool"], "description": of["says"], "inputSchema": given, "annotations": notes}
    return {**found, "outputSchema": of["returns"]} if of["returns"] else found


def _filled(path: str, given: Mapping[str, Any]) -> str:
    return re.sub(r"\{(.*?)\}", lambda found: quote(str(given.get(found[1], "")), safe=""), path)


def _shaped(like: Any, item: dict[str, Any], id_: str) -> Any:
    """A reply like the sample, with the item's values: the sample itself, or a field of it, is the item."""
    if not isinstance(like, dict) or not like:
        return like if like is None else item
    inner = next((name for name, each in like.items() if isinstance(each, dict) and id_ in each), None)
    if id_ and id_ not in like and inner:
        return {**like, inner: _shaped(like[inner], item, id_)}
    return {name: item.get(name, value) for name, value in like.items()}


def _list_of(reply: Any) -> list[Any]:
    if isinstance(reply, dict):
        return next((each for each in reply.values() if isinstance(each, list)), [])
    return reply if isinstance(reply, list) else []


def _listed(like: Any, items: list[Any], query: Mapping[str, Any]) -> Any:
    """A list's reply with the items that the query asks for: those whose fields of these names have these values, and
    of them one page."""
    asked = {name.lower(): value for name, value in query.items()}
    kept = [
        each for each in items
        if all(_same(each[name], value) for name, value in query.items() if isinstance(each.get(name), str | int | float))
    ]  # fmt: skip
    size = next((int(asked[name]) for name in SIZES if str(asked.get(name, "")).isdigit()), len(items))
    begin = next((int(asked[name]) for name in PAGES if str(asked.get(name, "")).isdigit()), 0)
    begin = max(begin - 1, 0) * max(size, 1) if "page" in asked else begin
    page = [] if any(asked.get(name) for name in CURSORS) else kept[begin : begin + size]
    form = _list_of(like)[:1]
    shaped = [_shaped(form[0] if form else {}, each, "") for each in page]
    if not isinstance(like, dict):
        return shaped
    field = next((name for name, each in like.items() if isinstance(each, list)), "items")
    more = begin + size < len(kept)
    about = {
        name: len(kept) if isinstance(value, int) and re.search(r"total|count", name.lower())
        else more if isinstance(value, bool) else None if re.match(r"next", name.lower()) else value
        for name, value in like.items()
    }  # fmt: skip
    return {**about, field: shaped}


def _same(value: Any, asked: Any) -> bool:
    return str(value).lower() == str(asked).lower()
