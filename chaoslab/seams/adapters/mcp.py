"""MCP: the tools of a server in this process, and those that a client session calls, whatever its transport."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from chaoslab.seams.adapters import Adapter, is_a, of_schema
from chaoslab.seams.functions import code_swap, mcp_result
from chaoslab.seams.functions.mcp_result import ToolResult
from chaoslab.seams.functions.native_errors import KINDS, NativeErrors
from chaoslab.seams.functions.seam import Wrapping
from chaoslab.seams.services.mcp import only_reads

TIMED_OUT, CLOSED = -32001, -32000
"""The SDK's codes for a request without an answer in time, and for a connection that is over."""


@dataclass(frozen=True)
class McpTool:
    """A tool of an MCP server as a client calls it; see `mcp_tool`."""

    name: str


def mcp_tool(name: str) -> McpTool:
    """A tool of an MCP server, by its name, for `tools=` or `reads=` of `run`. Calls of it by any client session of the
    MCP SDK in this process meet the faults, whatever the transport. Example: `lab.run(agent, prompt,
    tools=[lab.mcp_tool("refund")])`.

    Raises:
        TypeError: the name is no text. ImportError: the MCP SDK is not installed.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"mcp_tool was given {name!r}: it should be the tool's name, as in 'refund'")
    _session()
    return McpTool(name)


def read_by_clients(reads: Iterable[Any]) -> list[str]:
    """The names of tools that `mcp_tool` made, among the functions that only read."""
    return [tool.name for tool in reads if isinstance(tool, McpTool)]


class Mcp(Adapter):
    """The MCP SDK: a tool is one that `mcp_tool` names, or a server's `Tool` with its function."""

    tools = "an MCP tool"

    def recognises(self, thing: Any) -> bool:
        return isinstance(thing, McpTool) or is_a(thing, "mcp.server", "Tool") or is_a(thing, "fastmcp", "FunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [_session().call_tool if isinstance(tool, McpTool) else tool.fn]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return None if isinstance(tool, McpTool) else of_schema(tool.parameters)

    @contextmanager
    def swapped(self, tool: Any, wrapping: Wrapping) -> Iterator[None]:
        if not isinstance(tool, McpTool):
            notes = tool.annotations.model_dump(by_alias=True) if tool.annotations is not None else {}
            if notes.get("readOnlyHint"):
                wrapping = replace(wrapping, effect=False)
            with super().swapped(tool, wrapping):
                yield
            return
        reads: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        session = _session()
        with (
            code_swap.swapped(session.list_tools, lambda real: _listing(reads, real)),
            code_swap.swapped(session.call_tool, lambda real: _of_session(wrapping, tool.name, real, reads)),
        ):
            yield

    def is_async_only(self, tool: Any) -> bool:
        return False if isinstance(tool, McpTool) else super().is_async_only(tool)


def _session() -> Any:
    try:
        return importlib.import_module("mcp.client.session").ClientSession
    except ImportError:
        raise ImportError("mcp_tool needs the MCP SDK, which is not installed: pip install mcp") from None


def _listing(reads: WeakKeyDictionary[Any, set[str]], real: Callable[..., Any]) -> Callable[..., Any]:
    """The stand-in of `ClientSession.list_tools`, which keeps the tools that only read, by session."""

    async def list_tools(session: Any, *args: Any, **kwargs: Any) -> Any:
        listed = await real(session, *args, **kwargs)
        tools = listed.model_dump(mode="json", by_alias=True)["tools"]
        reads.setdefault(session, set()).update(str(tool["name"]) for tool in tools if only_reads(tool))
        return listed

    return list_tools


def _of_session(
    wrapping: Wrapping, name: str, real: Callable[..., Any], reads: Mapping[Any, set[str]]
) -> Callable[..., Any]:
    """The stand-in of `ClientSession.call_tool`: calls of the tool go through the seam, all others as before. `reads`:
    the tools of each session that only read."""

    async def call(lab_session: Any, lab_rest: Mapping[str, Any], **arguments: Any) -> Any:
        return await real(lab_session, name, arguments, **lab_rest)

    hidden = frozenset({"lab_session", "lab_rest"})
    errors = McpErrors({}, _refused)
    lead = wrapping.stand_in(name, call, hidden, errors=errors, returned=McpReturned, served=True)
    reading = replace(wrapping, effect=False).stand_in(name, call, hidden, errors=errors, returned=McpReturned)

    async def call_tool(session: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("name", "arguments", "read_timeout_seconds", "progress_callback"), args, strict=False))
        rest = {**given, **kwargs}
        if rest.get("name") != name:
            return await real(session, *args, **kwargs)
        del rest["name"]
        arguments = rest.pop("arguments", None) or {}
        way = reading if name in reads.get(session, ()) else lead
        return await way(lab_session=session, lab_rest=rest, **arguments)

    return call_tool


class McpReturned(ToolResult):
    """A tool's result as an MCP client gets it: an object of the SDK's."""

    def __init__(self, result: Any) -> None:
        super().__init__(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        self.__dict__["result"] = result

    @classmethod
    def made_of(cls, value: Any) -> McpReturned:
        return cls(_result(ToolResult.made_of(value).native))

    @property
    def native(self) -> Any:
        return self.__dict__["result"]

    def with_value(self, value: Any) -> McpReturned:
        return McpReturned(type(self.native).model_validate(self.changed(value)))


class McpErrors(NativeErrors):
    """The way in which an MCP client learns of a fault: an error of the protocol, or a result that says it is one."""

    def failed(self, name: str, kind: str) -> Exception:
        said = KINDS.get(kind, (OSError, kind))[1]
        code = TIMED_OUT if kind == "timed_out" else CLOSED
        return _error(code, f"{name}: {said}" if code == TIMED_OUT else "Connection closed")

    def text(self, said: str) -> Any:
        return _result(mcp_result.said(said))


def _refused(name: str, status: int, message: str) -> Any:
    return _result(mcp_result.refused(name, status, message))


def _result(data: Mapping[str, Any]) -> Any:
    return _types().CallToolResult.model_validate(data)


def _error(code: int, message: str) -> Exception:
    exceptions, types = importlib.import_module("mcp.shared.exceptions"), _types()
    if hasattr(exceptions, "MCPError"):
        error: Exception = exceptions.MCPError(code, message)
    else:
        error = exceptions.McpError(types.ErrorData(code=code, message=message))
    return error


def _types() -> Any:
    return importlib.import_module("mcp.types")
