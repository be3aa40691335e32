"""Reads the tools of an MCP server: from a file of its list, by its command, or at its address."""

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.base.files import Unreadable, json_of
from chaoslab.scenarios.agent_tools import READS
from chaoslab.scenarios.command_agent import check_command
from chaoslab.seams.gateway.routes import check_reached, route
from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.mcp_proxy import McpLine, writer
from chaoslab.surfaces.mcp_remote import Remote
from chaoslab.surfaces.projects import Personal
from chaoslab.surfaces.schemas._operations import ONE, Api, Operation
from chaoslab.surfaces.schemas._samples import Schemas

ANSWER_S, PAGES_MAX = 20.0, 100
"""The most seconds that a server has for an answer, and the most pages of its list."""
_VERSION = "2025-06-18"
VERBS = {
    **dict.fromkeys(("create", "add", "new", "open", "place", "insert", "book", "send", "post"), "create"),
    **dict.fromkeys(("list", "search", "find", "query"), "list"),
    **dict.fromkeys(("get", "read", "fetch", "show", "retrieve", "describe"), "read"),
    **dict.fromkeys(("update", "edit", "patch", "change", "set", "modify"), "update"),
    **dict.fromkeys(("delete", "remove", "destroy"), "remove"),
}
"""The effect of a tool on things of its kind, by the verb of its name."""
Ask = Callable[[str, dict[str, Any]], Any]


def listed_in(path: Path) -> list[Any]:
    """The tools of a file: the result of tools/list, or its array alone. Raises ValueError: it has none; the line names
    the file."""
    try:
        data = json_of(path)
    except Unreadable as error:
        raise ValueError(f"{path} {error}") from None
    for key in ("result", "tools"):
        data = data.get(key, data) if isinstance(data, dict) else data
    if not isinstance(data, list):
        raise ValueError(f'{path}: it is no list of tools, as tools/list gives it: {{"tools": [...]}}')
    return data


def listed_by(source: Sequence[str], fields: Mapping[str, str]) -> tuple[str, list[Any]]:
    """The name and the tools of a server. `source`: its address, or its command. `fields`: headers for an address.
    Raises ValueError, LookupError, OSError: it cannot be asked, or gives no answer."""
    with _at(source[0], fields) if source[0].startswith(("http://", "https://")) else _run(source) as ask:
        about = ask("initialize", {"protocolVersion": _VERSION, "capabilities": {},
                                   "clientInfo": {"name": "chaoslab", "version": "0"}})  # fmt: skip
        tools: list[Any] = []
        params: dict[str, Any] = {}
        for _ in range(PAGES_MAX):
            page = ask(mcp.LIST, params)
            tools += page["tools"] if isinstance(page.get("tools"), list) else []
            if not (cursor := page.get("nextCursor")):
                break
            params = {"cursor": cursor}
    info = about.get("serverInfo")
    return str(info.get("name") if isinstance(info, dict) else ""), tools


def _asking(send: Callable[[bytes], None], come: SimpleQueue[bytes | None]) -> Ask:
    """A function that asks, and returns the result. `come`: the server's lines, and None once it has ended."""
    number = 0

    def ask(method: str, params: dict[str, Any]) -> Any:
        nonlocal number
        number += 1
        send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
        while True:
            try:
                text = come.get(timeout=ANSWER_S)
            except Empty:
                raise ValueError(f"it gave no answer to {method} within {ANSWER_S:g} s") from None
            if text is None:
                raise ValueError(f"it ended before it answered {method}")
            said = McpLine.of(text).message
            if said.get("id") == number and "method" not in said:
                break
        if not isinstance(result := said.get("result"), dict):
            error = said.get("error")
            words = error.get("message") if isinstance(error, dict) else said
            raise ValueError(f"it refuses {method}: {' '.join(str(words).split())[:200]}")
        if method == "initialize":
            send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return result

    return ask


@contextmanager
def _at(url: str, fields: Mapping[str, str]) -> Iterator[Ask]:
    where = route(f"server={url}")
    check_reached(where)
    come: SimpleQueue[bytes | None] = SimpleQueue()
    remote = Remote(url, fields, come.put, near=where.near)
    yield _asking(remote.ask, come)
    remote.end()


@contextmanager
def _run(command: Sequence[str]) -> Iterator[Ask]:
    check_command(command)
    come: SimpleQueue[bytes | None] = SimpleQueue()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        lines = server.stdout

        def read() -> None:
            for line in lines or ():
                come.put(line)
            come.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            yield _asking(writer(server.stdin), come)
        finally:
            server.kill()


def api_of(name: str, tools: Sequence[Any], source: str, *, personal: Personal, seed: int) -> Api:
    """The service whose tools these are. `source`: where they come from, for errors. Raises ValueError: there are none,
    or a schema cannot be used."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server"
    api = Api(personal.text(name), f"{slug[:60]}.test", "mcp", scheme="http")
    for tool in tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            try:
                api.operations.append(_operation(tool, source, api.lacking, personal, seed))
            except (TypeError, AttributeError, KeyError) as error:
                raise ValueError(f"{source}: the schema of {tool['name'][:60]!r} is none ({error})") from None
    if not api.operations:
        raise ValueError(f"{source}: there are no tools in its list")
    api.add_state()
    return api


def _operation(tool: dict[str, Any], source: str, lacking: list[str], personal: Personal, seed: int) -> Operation:
    name, notes = tool["name"], tool["annotations"] if isinstance(tool.get("annotations"), dict) else {}
    words = [each.lower() for each in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)] or ["tool"]
    given = Schemas(tool.get("inputSchema") or {}, f"{source}: {name}", personal, Dice(seed, name), lacking)
    schema = given.whole(given.root, name)
    properties: dict[str, Any] = schema.get("properties") or {}
    reads = notes.get("readOnlyHint") is True
    if not notes:
        reads = bool(READS.match("_".join(words)))
        lacking.append(
            f"{name}: it has no annotations: by its name it {'only reads' if reads else 'changes something'}"
        )
    verb = next((VERBS[each] for each in words if each in VERBS), "do")
    thing = "_".join(each.rstrip("s") or each for each in words if each not in VERBS) or "thing"
    if reads != (verb in ("list", "read")) or (notes.get("destructiveHint") is False and verb in ("update", "remove")):
        verb = "do"
    names = [*dict.fromkeys([*(schema.get("required") or ()), *properties])]
    wanted = (f"{thing}_id", "id", thing, f"{thing}_number", "number", f"{thing}_name", "name", "key")
    key = next((each for want in wanted for each in names if each.lower() == want.lower()), "")
    if verb in ONE and not key:
        verb = "do"
    if notes.get("destructiveHint") is True and verb == "do":
        lacking.append(f"{name}: it is destructive, and its name does not say what it changes")
    path = f"/{thing}/{{{key}}}" if verb in ONE else f"/{thing}"
    made = Operation(name, personal.text(str(tool.get("description") or tool.get("title") or name)), path,
                     writes=not reads, idempotent=not reads and notes.get("idempotentHint") is True,
                     does=verb, of="" if verb == "do" else f"/{thing}")  # fmt: skip
    sample = given.sample(schema, name, reply=False) if properties else {}
    for each, of in properties.items():
        place = "path" if verb in ONE and each == key else "query" if reads else "body"
        needed = each in (schema.get("required") or ())
        value = sample.get(each) if isinstance(sample, dict) and (needed or "default" not in of) else None
        made.add(place, each, of, value, required=needed)
    made.reply = [] if verb == "list" else {}
    if isinstance(returns := tool.get("outputSchema"), dict):
        result = Schemas(returns, f"{source}: {name}", personal, Dice(seed, name), lacking)
        made.returns = result.masked(returns, name)
        made.reply = result.sample(result.whole(returns, name), thing, reply=True)
        if isinstance(made.reply, dict) and list(made.reply) == ["result"]:  # the SDK's wrapping of what is no object
            made.reply = made.reply["result"]
    elif verb == "do":
        made.reply = f"{name}: done"
    return made
