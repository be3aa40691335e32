"""MCP: the tools of a server in this process, and those that a client session calls, whatever its transport."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from chaoslab.seams.adapters import Adapter, is_a, of_schema
from chaoslab.seams.functions import code_swap
from chaoslab.seams.functions.mcp_result import ResultForm, ToolResult
from chaoslab.seams.functions.native_errors import KINDS, NativeErrors
from chaoslab.seams.functions.seam import Wrapping
from chaoslab.seams.functions.wrapped import Returned
from chaoslab.seams.protocols import mcp

# The parameter of a fake that holds what is no argument. No tool has one of this name.
HIDDEN = "\0lab"
Listed = WeakKeyDictionary[Any, dict[str, Any]]
"""The tools of each session's list, by name, as the server describes them."""
# The SDK's codes for a request without an answer in time, and for a connection that is over.
TIMED_OUT, CLOSED = -32001, -32000


@dataclass(frozen=True)
class McpTool:
    """A tool of an MCP server as a client calls it; see `mcp_tool`."""

    name: str


def mcp_tool(name: str) -> McpTool:
    """A tool of an MCP server, by its name, for `tools=` or `reads=` of `run`. Calls of it by any client session of the
    MCP SDK in this process meet the faults, whatever the transport. "tools/list" is the list of tools itself, for the
    fault `tool_list`. Example: `lab.run(agent, prompt, tools=[lab.mcp_tool("refund")])`.

    Raises:
        TypeError: the name is no text. ImportError: the MCP SDK is not installed.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"mcp_tool was given {name!r}: it should be the tool's name, as in 'refund'")
    # Here, so that a missing SDK is told where the tool is named and not in the middle of a trial.
    _import_session_class()
    return McpTool(name)


def list_read_only_mcp_names(reads: Iterable[Any]) -> list[str]:
    """The names of tools that `mcp_tool` made, among the functions that only read."""
    return [tool.name for tool in reads if isinstance(tool, McpTool)]


class Mcp(Adapter):
    """The MCP SDK: a tool is one that `mcp_tool` names, or a server's `Tool` with its function."""

    tools = "an MCP tool"

    def recognises(self, thing: Any) -> bool:
        return isinstance(thing, McpTool) or is_a(thing, "mcp.server", "Tool") or is_a(thing, "fastmcp", "FunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        # Of a session the class's method: sessions are made while the agent runs.
        return [_import_session_class().call_tool if isinstance(tool, McpTool) else tool.fn]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return None if isinstance(tool, McpTool) else of_schema(tool.parameters)

    @contextmanager
    def swapped(self, tool: Any, wrapping: Wrapping) -> Iterator[None]:
        if not isinstance(tool, McpTool):
            # The server's own word for it, as in its list of tools.
            notes = tool.annotations.model_dump(by_alias=True) if tool.annotations is not None else {}
            if notes.get("readOnlyHint"):
                wrapping = replace(wrapping, effect=False)
            with super().swapped(tool, wrapping):
                yield
            return
        # Weak, as a session may end before its trial.
        listed: Listed = WeakKeyDictionary()
        session = _import_session_class()
        if tool.name == mcp.LIST:
            with code_swap.swap_code(session.list_tools, lambda real: _wrap_list_tools_as_tool(wrapping, real)):
                yield
            return
        with (
            code_swap.swap_code(session.list_tools, lambda real: _wrap_list_tools_to_record(listed, real)),
            code_swap.swap_code(session.call_tool, lambda real: _wrap_call_tool(wrapping, tool.name, real, listed)),
        ):
            yield

    def is_async_only(self, tool: Any) -> bool:
        return False if isinstance(tool, McpTool) else super().is_async_only(tool)


def _import_session_class() -> Any:
    try:
        return importlib.import_module("mcp.client.session").ClientSession
    except ImportError:
        raise ImportError("mcp_tool needs the MCP SDK, which is not installed: pip install mcp") from None


def _wrap_list_tools_to_record(listed: Listed, real: Callable[..., Any]) -> Callable[..., Any]:
    """The fake of `ClientSession.list_tools`, which keeps what a session's list says of each tool."""

    async def list_tools(session: Any, *args: Any, **kwargs: Any) -> Any:
        listing = await real(session, *args, **kwargs)
        tools = listing.model_dump(mode="json", by_alias=True)["tools"]
        listed.setdefault(session, {}).update({str(tool["name"]): tool for tool in tools})
        return listing

    return list_tools


def _wrap_list_tools_as_tool(wrapping: Wrapping, real: Callable[..., Any]) -> Callable[..., Any]:
    """The fake of `ClientSession.list_tools` if the list itself is a tool of the trial's."""

    async def list_real_tools(**arguments: Any) -> Any:
        session, args, kwargs, cursor = arguments.pop(HIDDEN)
        if cursor and not arguments:  # a fault has left it out
            return await real(session)
        return await real(session, *args, **kwargs)

    reading = replace(wrapping, effect=False)
    lead = reading.make_fake_function(
        mcp.LIST, list_real_tools, frozenset({HIDDEN}), errors=McpErrors({}, _make_error_result), returned=ListReturned
    )

    async def list_tools(session: Any, *args: Any, **kwargs: Any) -> Any:
        # The SDK's versions take the position in three ways.
        position = kwargs.get("params") or kwargs.get("cursor") or next(iter(args), None)
        cursor = position if isinstance(position, str) else getattr(position, "cursor", None)
        return await lead(**({"cursor": cursor} if cursor else {}), **{HIDDEN: (session, args, kwargs, cursor)})

    return list_tools


def _wrap_call_tool(wrapping: Wrapping, name: str, real: Callable[..., Any], listed: Listed) -> Callable[..., Any]:
    """The fake of `ClientSession.call_tool`: calls of the tool go through the seam, all others as before. A result
    that a fault has changed is checked as the session checks a server's."""

    async def call_real_tool(**arguments: Any) -> Any:
        session, rest, results = arguments.pop(HIDDEN)
        # Kept, to tell the server's own result from one that a fault has made.
        results.append(await real(session, name, arguments, **rest))
        return results[-1]

    hidden, errors = frozenset({HIDDEN}), McpErrors({}, _make_error_result)

    def find_output_schema() -> Any:
        # Of any session's list: the schema is the tool's.
        return next((tools[name].get("outputSchema") for tools in listed.values() if name in tools), None)

    form = ResultForm(McpReturned, find_output_schema)
    lead = wrapping.make_fake_function(name, call_real_tool, hidden, errors=errors, returned=form, served=True)
    reading = replace(wrapping, effect=False).make_fake_function(
        name, call_real_tool, hidden, errors=errors, returned=form
    )

    async def call_tool(session: Any, *args: Any, **kwargs: Any) -> Any:
        # By name, as the session's parameters are in all versions of the SDK.
        positional = dict(zip(("name", "arguments", "read_timeout_seconds", "progress_callback"), args, strict=False))
        rest = {**positional, **kwargs}
        # All tools of a session go through this method.
        if rest.get("name") != name:
            return await real(session, *args, **kwargs)
        del rest["name"]
        arguments, results = rest.pop("arguments", None) or {}, list[Any]()
        function = reading if mcp.is_read_only_tool(listed.get(session, {}).get(name)) else lead
        result = await function(**{**arguments, HIDDEN: (session, rest, results)})
        if not any(returned is result for returned in results) and isinstance(result, _import_types().CallToolResult):
            # checks a result by the tool's output schema, as the session does
            # Private in some versions; a changed result that the session would refuse must be refused here too.
            check = getattr(session, "validate_tool_result", None) or getattr(session, "_validate_tool_result", None)
            if check is not None and not getattr(result, "is_error", getattr(result, "isError", False)):
                await check(name, result)
        return result

    return call_tool


class McpReturned(ToolResult):
    """A tool's result as an MCP client gets it: an object of the SDK's."""

    def __init__(self, result: Any, schema: Any = None) -> None:
        # By alias, as it is on the wire; without what is not set, as a server sends it.
        super().__init__(result.model_dump(mode="json", by_alias=True, exclude_none=True), schema)
        self.__dict__["result"] = result

    @classmethod
    def from_data(cls, data: Mapping[str, Any], schema: Any = None) -> McpReturned:
        return cls(_make_result(data), schema)

    @property
    def native_result(self) -> Any:
        return self.__dict__["result"]


class ListReturned(Returned):
    """A list of tools as an MCP client gets it. Its value is the list in JSON."""

    protocol = mcp.NAME

    def __init__(self, result: Any) -> None:
        super().__init__(result.model_dump(mode="json", by_alias=True, exclude_none=True)["tools"])
        self.__dict__["result"] = result

    @property
    def native_result(self) -> Any:
        return self.__dict__["result"]

    def with_value(self, value: Any) -> ListReturned:
        data = self.native_result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return ListReturned(type(self.native_result).model_validate(mcp.replace_listed_tools(data, value)))


class McpErrors(NativeErrors):
    """The way in which an MCP client learns of a fault: an error of the protocol, or a result that says it is one."""

    def make_failure(self, name: str, kind: str) -> Exception:
        description = KINDS.get(kind, (OSError, kind))[1]
        code = TIMED_OUT if kind == "timed_out" else CLOSED
        # The SDK words the end of a connection so, whatever the tool.
        message = f"{name}: {description}" if code == TIMED_OUT else "Connection closed"
        exceptions, types = importlib.import_module("mcp.shared.exceptions"), _import_types()
        # Its name changed with version 2.
        if hasattr(exceptions, "MCPError"):
            error: Exception = exceptions.MCPError(code, message)
        else:
            error = exceptions.McpError(types.ErrorData(code=code, message=message))
        return error

    def make_text_reply(self, content: str) -> Any:
        return _make_result(mcp.make_text_result(content))


def _make_error_result(name: str, status: int, message: str) -> Any:
    return _make_result(mcp.make_error_result(name, f"{status} {message}"))


def _make_result(data: Mapping[str, Any]) -> Any:
    return _import_types().CallToolResult.model_validate(data)


def _import_types() -> Any:
    return importlib.import_module("mcp.types")
