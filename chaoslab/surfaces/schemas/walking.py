"""The agent of a scenario that names no other: it makes the calls of the prompt, as a careful client would."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx

from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.schemas.operations import MADE, inner_of, list_in
from chaoslab.surfaces.schemas.state import Refused, Tools, filled, sent_of

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
            refused = isinstance(error, Refused)
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
            raise Refused(400, str(mcp.meaning(result)))
        return mcp.meaning(result)
    fields = {own: str(value) for own, value in sent["header"].items()}
    url += filled(of["path"], sent["path"])
    return _asked(of["method"], url, params=sent["query"], json=sent["body"] or None, headers=fields)


def _asked(method: str, url: str, **more: Any) -> Any:
    reply = httpx.request(method, url, timeout=TIMEOUT_S, **more)
    if 400 <= reply.status_code < 500 and reply.status_code not in AGAIN:
        raise Refused(reply.status_code, reply.text[:200])
    reply.raise_for_status()
    return reply.json() if reply.content else None
