"""An MCP server at an address, for the proxy of `mcp_proxy.py`. The way there is the official SDK's own transport."""

import asyncio
import json
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import JSONRPCRequest, jsonrpc_message_adapter

from chaoslab.seams.gateway.routes import CONNECT_S, ensure_reachable, parse_route
from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.mcp_proxy import LOOK_S, WAIT_S, McpProxy, ProxySession, forward_client_lines

_FAILED, _NO_MESSAGE = -32000, -32600
"""The codes for an error that a server did not word itself, and for a line that is no message."""
Line = tuple[bytes, threading.Event]
"""A line of the client's, and an event that is set when it has been sent."""
_OLD = frozenset({404, 405})
"""The answers of a server that knows HTTP+SSE alone, the transport of 2024-11-05."""


class _Guarded(httpx2.AsyncByteStream):
    """A body that ends where the connection breaks, which the SDK takes for an answer that is not whole."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(httpx2.TransportError):
            async for chunk in self._stream:
                yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Client(httpx2.AsyncClient):
    """A client whose broken connections are answers: one that is raised would end the SDK's whole transport."""

    statuses: list[int]

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            reason = f"the server at {request.url} gave no answer: {str(error) or type(error).__name__}"
            error_message = {"jsonrpc": "2.0", "id": None, "error": {"code": _FAILED, "message": reason}}
            return httpx2.Response(502, json=error_message, request=request)
        response.stream = _Guarded(response.stream)
        # Not of a GET: a server without a stream of its own may answer 405 to that.
        if request.method == "POST":
            self.statuses.append(response.status_code)
        return response


def make_http_client(fields: Mapping[str, str], *, near: bool) -> _Client:
    """A client for one server, with any number of connections. `fields`: headers of each request. `near`: it is on this
    machine, so no proxy of the environment is asked."""
    # A stream may be silent for as long as it likes, and each call under way has one.
    timeout, limits = httpx2.Timeout(CONNECT_S, read=None, pool=None), httpx2.Limits(max_connections=None)
    client = _Client(headers=fields, timeout=timeout, limits=limits, trust_env=not near)
    client.statuses = []
    return client


class RemoteMcpServer:
    """The server. What it says goes to the proxy, line by line."""

    def __init__(self, url: str, fields: Mapping[str, str], *, near: bool) -> None:
        """`fields`: further ones of each request. `near`: it is on this machine, so no proxy of the environment is
        asked."""
        self._url, self._fields, self._near = url, fields, near
        self._version: str | None = None
        self._first: Any = None
        """The id of the request that began the session."""
        self._asked = dict[str, JSONRPCRequest]()
        self._headers = dict[str, Any]()
        """The headers that each tool takes from its arguments, as its schema says (2026-07-28)."""
        self._line: Any = None

    async def serve(self, proxied: Callable[[Callable[[bytes], None]], McpProxy], session: ProxySession) -> int:
        """Passes messages on until the client closes its end, or a signal asks for the end."""
        self._loop, self._lines = asyncio.get_running_loop(), asyncio.Queue[Line | None]()
        self._proxy, stopped = proxied(self._queue_line_and_wait), threading.Event()

        def end_line_queue() -> None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

        def handle_stop_signal(_: int) -> None:
            stopped.set()
            end_line_queue()

        def forward_then_end_queue() -> None:
            forward_client_lines(self._proxy)
            end_line_queue()

        session.stop.set_end_function(handle_stop_signal)
        threading.Thread(target=forward_then_end_queue, daemon=True).start()
        # The SDK's transports are entered and left by one task, as anyio asks for.
        async with AsyncExitStack() as self._stack:
            while (line := await self._lines.get()) is not None:
                text, sent = line
                await self._send_message(text)
                self._loop.call_soon(sent.set)
            until_s = self._loop.time() + WAIT_S
            while self._asked and self._loop.time() < until_s and not stopped.is_set():
                await asyncio.sleep(LOOK_S)
        # What came too late: who wrote it waits still.
        while not self._lines.empty():
            if (line := self._lines.get_nowait()) is not None:
                line[1].set()
        return 0

    def _queue_line_and_wait(self, text: bytes) -> None:
        """Takes a line of the client's, in any thread. It has been sent when this returns, so lines keep their
        order."""
        sent = threading.Event()
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._lines.put_nowait, (text, sent))
            # The loop may end before the line is sent.
            while not sent.wait(LOOK_S) and self._loop.is_running():
                pass

    async def _send_message(self, text: bytes) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:  # pydantic's
            await asyncio.to_thread(self._answer_invalid_line, text)
            return
        params = getattr(message, "params", None) or {}
        method = getattr(message, "method", "")
        if isinstance(message, JSONRPCRequest):
            if method == "initialize":
                # In a thread, as in `_forward_server_messages`.
                await asyncio.to_thread(self._fail_open_calls)
            self._asked[json.dumps(message.id)] = message
        elif method == "notifications/cancelled":
            self._asked.pop(json.dumps(params.get("requestId")), None)
        if self._line is None or method == "initialize":  # a session of its own, as after a 404
            await self._begin_session()
            self._first = getattr(message, "id", None)
        await self._line.send(
            SessionMessage(message, ClientMessageMetadata(headers=self._make_headers(method, params)))
        )

    def _make_headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The headers that a message has beside the transport's own."""
        version = (params.get("_meta") or {}).get(mcp.VERSION)
        if version is None:
            return {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version and method != "initialize" else {}
        stamped = {MCP_PROTOCOL_VERSION_HEADER: str(version), MCP_METHOD_HEADER: method}
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            stamped[MCP_NAME_HEADER] = encode_header_value(name)
            if method == mcp.CALL:
                stamped |= mcp_param_headers(self._headers.get(name, {}), params.get("arguments") or {})
        return stamped

    def _answer_invalid_line(self, text: bytes) -> None:
        """Answers a line that is no message of the protocol's."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict) and "method" in value and isinstance(value.get("id"), int | str):
            self._send_error(value["id"], _NO_MESSAGE, "this is no message of MCP")

    def _fail_open_calls(self) -> None:
        """Ends the calls of a session that its client leaves for a new one."""
        for request in [*self._asked.values()]:
            self._send_error(request.id, _FAILED, "the session was begun anew before the server answered")
        self._asked.clear()

    def _send_error(self, number: int | str, code: int, text: str) -> None:
        error_message = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}
        self._proxy.handle_server_line(json.dumps(error_message).encode() + b"\n")

    async def _begin_session(self) -> None:
        """Begins a session, in place of one that was begun before."""
        await self._stack.aclose()
        self._client = await self._stack.enter_async_context(make_http_client(self._fields, near=self._near))
        # No bound: an event's size is for the client to judge.
        transport = streamable_http_client(self._url, http_client=self._client, max_sse_event_size=None)
        reads, self._line = await self._stack.enter_async_context(transport)
        listening = asyncio.create_task(self._forward_server_messages(reads))
        self._stack.callback(listening.cancel)  # which is done before the transport ends

    async def _forward_server_messages(self, reads: Any) -> None:
        async for item in reads:
            if not isinstance(item, SessionMessage):
                continue
            # Unset fields stay away, so that nothing is made up that the server did not send.
            message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if "method" not in message:
                self._learn_session_details(message)
            # A server may send half of a surrogate pair, which goes on as it came.
            line = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
            # In a thread, since the proxy may ask the server itself, and waits for this loop then.
            await asyncio.to_thread(self._proxy.handle_server_line, line)

    def _learn_session_details(self, message: Mapping[str, Any]) -> None:
        """Takes what an answer tells of the session: its version, the tools' headers, or that there is none."""
        request, result = self._asked.pop(json.dumps(message.get("id")), None), message.get("result")
        if isinstance(result, dict) and request is not None and request.method == "initialize":
            self._version = str(result.get("protocolVersion", ""))
        for tool in result.get("tools") or () if isinstance(result, dict) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._headers[tool["name"]] = x_mcp_header_map(tool.get("inputSchema"))
        status = self._client.statuses[-1] if self._client.statuses else 200
        if "error" in message and message.get("id") == self._first and status in _OLD:
            hint = "if it speaks HTTP+SSE, the transport of 2024-11-05, give it streamable HTTP first"
            print(f"chaoslab: {self._url} answers {status}: {hint}", file=sys.stderr, flush=True)


def run_http_proxy(url: str, fields: Mapping[str, str], session: ProxySession) -> int:
    """Stands between the client on standard input and output and the server, until the client closes its end. `fields`:
    those of each request, beside the protocol's own; their values are never written down. Raises ValueError: it is no
    address. LookupError: nothing answers there. OSError: the logs cannot be written."""
    try:
        server_route = parse_route(f"server={url}")
    except ValueError:
        raise ValueError(f"--url {url[:80]!r} should be an address, as in http://127.0.0.1:3000/mcp") from None
    ensure_reachable(server_route)
    for name in ("mcp", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what they say is told to the client too

    def serve_session(proxied: Callable[[Callable[[bytes], None]], McpProxy]) -> int:
        return asyncio.run(RemoteMcpServer(url, fields, near=server_route.is_local).serve(proxied, session))

    values = fields.values()
    # The token alone too: it may stand somewhere without the word before it.
    return session.run(url, serve_session, secrets=[*values, *(value.rpartition(" ")[2] for value in values)])
