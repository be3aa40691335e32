"""Reads the tools of an MCP server: from a file of its list, by its command, or at its address."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from chaoslab.base.dice import Dice
from chaoslab.base.files import Unreadable, read_json
from chaoslab.config.settings import copy_environment
from chaoslab.scenarios.agent_tools import READS
from chaoslab.scenarios.command_agent import check_command_exists
from chaoslab.seams.gateway.routes import ensure_reachable, parse_route
from chaoslab.surfaces.projects import PersonalDataMasker
from chaoslab.surfaces.schemas._operations import ONE, Api, Operation
from chaoslab.surfaces.schemas._samples import Schemas

ANSWER_S, PAGES_MAX = 20.0, 100
"""The most seconds that a server has for the list of its tools, and the most pages of it."""
VERBS = {
    **dict.fromkeys(("create", "add", "new", "open", "place", "insert", "book", "send", "post"), "create"),
    **dict.fromkeys(("list", "search", "find", "query"), "list"),
    **dict.fromkeys(("get", "read", "fetch", "show", "retrieve", "describe"), "read"),
    **dict.fromkeys(("update", "edit", "patch", "change", "set", "modify"), "update"),
    **dict.fromkeys(("delete", "remove", "destroy"), "remove"),
}
"""The effect of a tool on things of its kind, by the verb of its name."""


def read_tools(path: Path) -> list[Any]:
    """The tools of a file: the result of tools/list, or its array alone. Raises ValueError: it has none; the line names
    the file."""
    try:
        data = read_json(path)
    except Unreadable as error:
        raise ValueError(f"{path} {error}") from None
    for key in ("result", "tools"):
        data = data.get(key, data) if isinstance(data, dict) else data
    if not isinstance(data, list):
        raise ValueError(f'{path}: it is no list of tools, as tools/list gives it: {{"tools": [...]}}')
    return data


def request_tools(source: Sequence[str], fields: Mapping[str, str]) -> tuple[str, list[Any]]:
    """The name and the tools of a server, by the SDK's client. `source`: its address, or its command. `fields`: headers
    for an address. Raises ValueError, LookupError, OSError: it cannot be asked, or gives no answer."""
    from mcp import MCPError
    from pydantic import ValidationError

    try:
        return asyncio.run(_fetch_tool_list(source, fields))
    # The SDK's client runs in a task group, so an error comes alone or in a group of it. Not `except*`, which puts what
    # is raised in it into a group too.
    except (MCPError, TimeoutError, ValidationError, ExceptionGroup) as raised:
        causes = [*_flatten_exception_group(raised)]
        error = next(
            (cause for cause in causes if isinstance(cause, MCPError | TimeoutError | ValidationError)), causes[0]
        )
        if isinstance(error, MCPError):
            raise ValueError(
                f"it refuses the list of its tools: {' '.join(error.error.message.split())[:200]}"
            ) from None
        if isinstance(error, TimeoutError):
            raise ValueError(f"it gave no list of its tools within {ANSWER_S:g} s") from None
        if isinstance(error, ValidationError):
            raise ValueError("its list of tools is none of MCP") from None
        raise error from None


async def _fetch_tool_list(source: Sequence[str], fields: Mapping[str, str]) -> tuple[str, list[Any]]:
    from mcp import Client, StdioServerParameters

    async with AsyncExitStack() as stack:
        if source[0].startswith(("http://", "https://")):
            from mcp.client.streamable_http import streamable_http_client

            from chaoslab.surfaces.mcp_remote import make_http_client

            server_route = parse_route(f"server={source[0]}")
            ensure_reachable(server_route)
            http = await stack.enter_async_context(make_http_client(fields, near=server_route.is_local))
            server: Any = streamable_http_client(source[0], http_client=http, max_sse_event_size=None)
        else:
            check_command_exists(source)
            server = StdioServerParameters(command=source[0], args=list(source[1:]), env=dict(copy_environment()))
        tools: list[Any] = []
        # One time for connecting and for all pages.
        async with asyncio.timeout(ANSWER_S), Client(server) as client:
            cursor = None
            # A server may give one cursor for ever.
            for _ in range(PAGES_MAX):
                page = await client.list_tools(cursor=cursor)
                tools += (tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in page.tools)
                if not (cursor := page.next_cursor):
                    break
            return client.server_info.name if client.server_info else "", tools


def _flatten_exception_group(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for part in error.exceptions:
        yield from _flatten_exception_group(part)


def make_api(name: str, tools: Sequence[Any], source: str, *, personal: PersonalDataMasker, seed: int) -> Api:
    """The service whose tools these are. `source`: where they come from, for errors. Raises ValueError: there are none,
    or a schema cannot be used."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server"
    api = Api(personal.mask_text(name), f"{slug[:60]}.test", "mcp", scheme="http")
    for tool in tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            # Words of any case: getOrder, get_order and GETOrder are alike.
            try:
                api.operations.append(_make_operation(tool, source, api.lacking, personal, seed))
            except (TypeError, AttributeError, KeyError) as error:
                raise ValueError(f"{source}: the schema of {tool['name'][:60]!r} is none ({error})") from None
    if not api.operations:
        raise ValueError(f"{source}: there are no tools in its list")
    api.add_collections()
    return api


def _make_operation(
    tool: dict[str, Any], source: str, lacking: list[str], personal: PersonalDataMasker, seed: int
) -> Operation:
    name, notes = tool["name"], tool["annotations"] if isinstance(tool.get("annotations"), dict) else {}
    name_words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)] or ["tool"]
    schemas = Schemas(tool.get("inputSchema") or {}, f"{source}: {name}", personal, Dice(seed, name), lacking)
    schema = schemas.flatten_schema(schemas.root, name)
    properties: dict[str, Any] = schema.get("properties") or {}
    reads = notes.get("readOnlyHint") is True
    if not notes:
        reads = bool(READS.match("_".join(name_words)))
        lacking.append(
            f"{name}: it has no annotations: by its name it {'only reads' if reads else 'changes something'}"
        )
    verb = next((VERBS[word] for word in name_words if word in VERBS), "do")
    # The plural of the list and the singular of the rest are one thing.
    thing = "_".join(word.rstrip("s") or word for word in name_words if word not in VERBS) or "thing"
    # Where the name and the annotations differ, the name is not believed.
    if reads != (verb in ("list", "read")) or (notes.get("destructiveHint") is False and verb in ("update", "remove")):
        verb = "do"
    names = [*dict.fromkeys([*(schema.get("required") or ()), *properties])]
    id_names = (f"{thing}_id", "id", thing, f"{thing}_number", "number", f"{thing}_name", "name", "key")
    key = next((word for want in id_names for word in names if word.lower() == want.lower()), "")
    # Without an argument that names it, no item can be meant.
    if verb in ONE and not key:
        verb = "do"
    if notes.get("destructiveHint") is True and verb == "do":
        lacking.append(f"{name}: it is destructive, and its name does not say what it changes")
    path = f"/{thing}/{{{key}}}" if verb in ONE else f"/{thing}"
    operation = Operation(name, personal.mask_text(str(tool.get("description") or tool.get("title") or name)), path,
                     writes=not reads, idempotent=not reads and notes.get("idempotentHint") is True,
                     does=verb, of="" if verb == "do" else f"/{thing}")  # fmt: skip
    sample = schemas.make_sample(schema, name, reply=False) if properties else {}
    for word, property_schema in properties.items():
        location = "path" if verb in ONE and word == key else "query" if reads else "body"
        needed = word in (schema.get("required") or ())
        value = sample.get(word) if isinstance(sample, dict) and (needed or "default" not in property_schema) else None
        operation.add_parameter(location, word, property_schema, value, required=needed)
    operation.reply = [] if verb == "list" else {}
    if isinstance(returns := tool.get("outputSchema"), dict):
        result = Schemas(returns, f"{source}: {name}", personal, Dice(seed, name), lacking)
        operation.returns = result.mask_example(returns, name)
        operation.reply = result.make_sample(result.flatten_schema(returns, name), thing, reply=True)
        if isinstance(operation.reply, dict) and list(operation.reply) == [
            "result"
        ]:  # the SDK's wrapping of what is no object
            operation.reply = operation.reply["result"]
    elif verb == "do":
        operation.reply = f"{name}: done"
    return operation
