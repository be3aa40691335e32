"""An MCP server at an address, over streamable HTTP, for the proxy of `mcp_proxy.py`: a message is a POST.

Its answer is JSON, or comes in a stream of events, with what the server asks meanwhile. What the server says by itself
comes in a stream of its own, if it offers one.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx

from chaoslab.core.stream import EVENT_STREAM, Events, data_of
from chaoslab.seams.gateway.routes import CONNECT_S, check_reached, route
from chaoslab.surfaces.mcp_proxy import WAIT_S, McpLine, McpProxy, ProxySession, client_lines

_SESSION, _VERSION = "mcp-session-id", "mcp-protocol-version"
_FIELD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FAILED = -32000
"""The protocol's code for an error that a server did not word itself."""


class Remote:
    """The server. `take` is given each message of its as a line."""

    def __init__(self, url: str, fields: Mapping[str, str], take: Callable[[bytes], None], *, near: bool) -> None:
        """`fields`: further ones of each request. `near`: it is on this machine, so no proxy of the environment is
        asked."""
        self._url, self._take = url, take
        timeout = httpx.Timeout(CONNECT_S, read=None)
        self._client = httpx.Client(headers=fields, timeout=timeout, trust_env=not near, follow_redirects=True)
        self._own: dict[str, str] = {}
        """The fields of the session, once the server has begun one."""
        self._under_way: list[threading.Thread] = []

    def ask(self, text: bytes) -> None:
        """Sends a line. One without an answer has been taken when this returns, so they keep their order."""
        line = McpLine.of(text)
        if "id" in line.message and "method" in line.message:
            thread = threading.Thread(target=self._post, args=(line,), daemon=True)
            self._under_way = [each for each in self._under_way if each.is_alive()] + [thread]
            thread.start()
        else:
            self._post(line)

    def end(self) -> None:
        """Waits for the answers to what was asked, and ends the session."""
        for thread in self._under_way:
            thread.join(WAIT_S)
        if _SESSION in self._own:
            with suppress(httpx.HTTPError):
                self._client.delete(self._url, headers=self._own)
        self._client.close()

    def _post(self, line: McpLine) -> None:
        asked, answered = line.message, False
        fields = {**self._own, "content-type": "application/json", "accept": f"application/json, {EVENT_STREAM}"}
        try:
            with self._client.stream("POST", self._url, content=line.text.strip(), headers=fields) as reply:
                if reply.status_code >= 400:
                    raise httpx.HTTPError(f"status {reply.status_code} {reply.reason_phrase}")
                if asked.get("method") == "initialize" and _SESSION in reply.headers:
                    self._own[_SESSION] = reply.headers[_SESSION]
                for text in _messages(reply):
                    said = McpLine.of(text)
                    if said.message.get("id") == asked.get("id") and "method" not in said.message:
                        answered = True
                        self._begun(asked, said.message)
                    self._take(text + b"\n")
            if answered or "id" not in asked or "method" not in asked:
                return
            why = "it ended without an answer"
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
        if "id" in asked and "method" in asked and not answered:
            error_ = {"code": _FAILED, "message": f"the server at {self._url} gave no answer: {why}"}
            self._take(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error_}).encode() + b"\n")

    def _begun(self, asked: dict[str, Any], said: dict[str, Any]) -> None:
        """Takes the answer to the first message, which tells the protocol's version, and listens from then on."""
        result = said.get("result")
        if asked.get("method") == "initialize" and isinstance(result, dict):
            self._own[_VERSION] = str(result.get("protocolVersion", ""))
            threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        """Takes what the server says by itself; most offer no stream for that."""
        fields = {**self._own, "accept": EVENT_STREAM}
        with suppress(httpx.HTTPError, RuntimeError), self._client.stream("GET", self._url, headers=fields) as reply:
            if reply.status_code == 200:
                for text in _messages(reply):
                    self._take(text + b"\n")


def _messages(reply: httpx.Response) -> Any:
    """The messages in an answer, each as it is, in one line."""
    if not reply.headers.get("content-type", "").startswith(EVENT_STREAM):
        if body := reply.read().strip():
            yield body.replace(b"\r", b"").replace(b"\n", b" ")
        return
    events = Events()
    for part in reply.iter_bytes():
        for event in events.feed(part):
            if data := data_of(event):
                yield data.replace(b"\n", b" ")


def fields_of(texts: Sequence[str]) -> dict[str, str]:
    """Header fields from texts such as "Authorization: Bearer …". Raises ValueError: one is none; its value is not
    shown."""
    found = {}
    for text in texts:
        name, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not _FIELD.fullmatch(name) or not value.isprintable() or not value.isascii():
            shown = name[:40] if colon else "…"
            raise ValueError(f"--header {shown!r} should be a name and a value, as in 'Authorization: Bearer …'")
        found[name] = value
    return found


def run(url: str, fields: Mapping[str, str], session: ProxySession) -> int:
    """Stands between the client on standard input and output and the server, until the client closes its end. `fields`:
    those of each request, beside the protocol's own; their values are never written down. Raises ValueError: it is no
    address. LookupError: nothing answers there. OSError: the logs cannot be written."""
    try:
        where = route(f"server={url}")
    except ValueError:
        raise ValueError(f"--url {url[:80]!r} should be an address, as in http://127.0.0.1:3000/mcp") from None
    check_reached(where)

    def serve(proxied: Callable[[Callable[[bytes], None]], McpProxy]) -> int:
        remote = Remote(url, fields, lambda text: proxy.from_server(text), near=where.near)
        proxy = proxied(remote.ask)
        client_lines(proxy)
        remote.end()
        return 0

    values = fields.values()
    return session.run(url, serve, secrets=[*values, *(value.rpartition(" ")[2] for value in values)])
