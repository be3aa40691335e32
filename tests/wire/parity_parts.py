"""The same requests to two servers, and what must be equal in the answers: all but the time, ids and free ports."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from tests.wire.wire_parts import dial

PORT = re.compile(rb"(127\.0\.0\.1:|\[::1\]:)([0-9]{5})")
NO_JSON = re.compile(rb'(bad request body: )(?:invalid character|unexpected EOF|no JSON: )(?:[^"\\]|\\.)*')
OWN_WORDS = {"Date", "X-Toxiproxy-Request-Id"}


@dataclass(frozen=True)
class Ask:
    """One request, byte by byte; `raw` in place of all else."""

    method: str
    target: str
    body: bytes | str = b""
    headers: tuple[tuple[str, str], ...] = ()
    raw: bytes = b""

    def __bytes__(self) -> bytes:
        if self.raw:
            return self.raw
        body = self.body if isinstance(self.body, bytes) else self.body.encode()
        lines = [
            f"{self.method} {self.target} HTTP/1.1",
            "Host: x",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if body or self.method in ("POST", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(frozen=True)
class Answer:
    """The answer, with its free ports named in the order of their appearance."""

    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def told(self) -> Answer:
        """The same without the words for a body that is no JSON, which each server has of its own."""
        return replace(self, body=NO_JSON.sub(rb"\1no JSON", self.body))


@dataclass
class Side:
    """One server, over a connection that is kept while the server keeps it."""

    url: str
    _socket: socket.socket | None = None

    def ask(self, ask: Ask) -> Answer:
        if self._socket is None:
            self._socket = dial(self.url.removeprefix("http://"))
        self._socket.sendall(bytes(ask))
        with http.client.HTTPResponse(self._socket, method=ask.method) as reply:
            reply.begin()
            body = reply.read()
            if reply.will_close:
                self.close()
            return self._answer(reply, body)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _answer(self, reply: http.client.HTTPResponse, body: bytes) -> Answer:
        ports: dict[bytes, bytes] = {}
        named = PORT.sub(lambda port: port[1] + ports.setdefault(port[2], b"port%d" % len(ports)), body)
        headers = []
        for name, value in reply.headers.items():
            shown = value
            if name in OWN_WORDS:
                shown = re.sub("[0-9a-v]", "_", value) if name != "Date" else "now"
            elif name == "Content-Length" and value == str(len(body)):
                shown = "the body's"
            headers.append((name, shown))
        return Answer(f"{reply.version} {reply.status} {reply.reason}", tuple(headers), named)


def get(target: str) -> Ask:
    return Ask("GET", target)


def post(target: str, body: bytes | str = b"") -> Ask:
    return Ask("POST", target, body)


def patch(target: str, body: bytes | str = b"") -> Ask:
    return Ask("PATCH", target, body)


def delete(target: str) -> Ask:
    return Ask("DELETE", target)


PROXY = '{"name":"p","upstream":"127.0.0.1:9","listen":"127.0.0.1:0"}'
PARKED = '"listen":"127.0.0.1:0","enabled":false'


def fresh(side: Side) -> None:
    """Nothing but the proxy `p`, and what has a name that no path can have."""
    for name in json.loads(side.ask(get("/proxies")).body):
        side.ask(delete("/proxies/" + quote(name, safe="")))
    side.ask(post("/proxies", PROXY))


def differing(sides: Sequence[Side], asks: Iterable[Ask]) -> list[str]:
    """Each request that was not answered alike, with both answers."""
    found = []
    for ask in asks:
        answers = [side.ask(ask).told for side in sides]
        if len(set(answers)) != 1:
            found.append("\n  ".join([str(bytes(ask)), *map(str, answers)]))
    return found
