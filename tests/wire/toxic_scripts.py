"""A script of one connection through a proxy, played on a server of either kind with both ends in our hands, and two plays compared.

Times in scripts are milliseconds from the connect. "There" is the end that receives the stream a script is about, "here" the one
that sends it, so that one script serves both streams.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

DEADLINE_S = 20.0
TOLERANCE_S = 0.09  # scripts move in steps of 100 ms and more, so that a real difference is unmistakable
MARKS = 8  # the times compared: the first byte, each eighth, the end

Stream = Literal["downstream", "upstream"]
End = Literal["FIN", "RST", "open"]


@dataclass(frozen=True)
class Put:
    """A toxic hangs itself on the stream (or on the opposite one)."""

    type: str
    attributes: dict[str, int]
    name: str = "t"
    toxicity: float = 1.0
    opposite: bool = False


@dataclass(frozen=True)
class Patch:
    attributes: dict[str, int]
    name: str = "t"
    toxicity: float | None = None


@dataclass(frozen=True)
class Take:
    """The toxic is removed."""

    name: str = "t"


@dataclass(frozen=True)
class Say:
    """So many bytes are sent."""

    who: Literal["here", "there"]
    size: int


@dataclass(frozen=True)
class Close:
    """An end is through with sending."""

    who: Literal["here", "there"]


Step = Put | Patch | Take | Say | Close


@dataclass(frozen=True)
class Script:
    """`before` hangs on the proxy when the connection is made; then the steps, and a last look at `until_ms`."""

    name: str
    stream: Stream
    before: tuple[Put, ...]
    steps: tuple[tuple[int, Step], ...]
    until_ms: int


class Peer(asyncio.Protocol):
    """One end in our hands: it notes what comes when, and how it ends."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.connected = asyncio.Event()
        self.heard: list[tuple[float, bytes]] = []
        self.end: tuple[float, End] | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connected.set()

    def data_received(self, data: bytes) -> None:
        self.heard.append((self._loop.time(), data))

    def eof_received(self) -> bool:
        self.end = self.end or (self._loop.time(), "FIN")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionResetError):
            self.end = self.end or (self._loop.time(), "RST")

    def say(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(OSError):
                self.transport.write_eof()


@dataclass(frozen=True)
class Heard:
    """What one end had heard at the last look."""

    data: bytes
    marks_s: tuple[float, ...]
    end: End
    end_s: float


@dataclass
class Server:
    """A server under test, and what tells scripts on it apart."""

    client: httpx.AsyncClient
    played: int = field(default=0)

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        response = await self.client.request(method, path, json=body)
        response.raise_for_status()
        return response.json() if response.content else None


async def play(server: Server, script: Script) -> tuple[Heard, Heard]:
    """What was heard here and there."""
    loop = asyncio.get_running_loop()
    here, there = Peer(), Peer()
    dialler, dialled = (there, here) if script.stream == "downstream" else (here, there)
    listener = await loop.create_server(lambda: dialled, "127.0.0.1", 0)
    async with proxied(server, listener) as (name, port):
        for toxic in script.before:
            await act(server, name, script, toxic, here, there)
        await loop.create_connection(lambda: dialler, "127.0.0.1", port)
        async with asyncio.timeout(DEADLINE_S):
            await dialled.connected.wait()
        began = loop.time()
        for at_ms, step in script.steps:
            await until(began + at_ms / 1000)
            await act(server, name, script, step, here, there)
        await until(began + script.until_ms / 1000)
        result = heard(here, began), heard(there, began)
        for peer in (here, there):
            if peer.transport is not None:
                peer.transport.abort()
    return result


@contextlib.asynccontextmanager
async def proxied(server: Server, listener: asyncio.Server) -> AsyncIterator[tuple[str, int]]:
    """A proxy in front of the listener: its name and port."""
    server.played += 1
    name = f"p{server.played}"
    address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    made = await server.api("POST", "/proxies", {"name": name, "upstream": address, "listen": "127.0.0.1:0"})
    try:
        yield name, int(made["listen"].rpartition(":")[2])
    finally:
        listener.close()
        await server.api("DELETE", f"/proxies/{name}")


async def until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - asyncio.get_running_loop().time()))


async def act(server: Server, proxy: str, script: Script, step: Step, here: Peer, there: Peer) -> None:
    toxics = f"/proxies/{proxy}/toxics"
    match step:
        case Put(type, attributes, name, toxicity, opposite):
            other = "upstream" if script.stream == "downstream" else "downstream"
            stream = other if opposite else script.stream
            body = {"name": name, "type": type, "stream": stream, "toxicity": toxicity, "attributes": attributes}
            await server.api("POST", toxics, body)
        case Patch(attributes, name, toxicity):
            change = {"attributes": attributes} | ({} if toxicity is None else {"toxicity": toxicity})
            await server.api("PATCH", f"{toxics}/{name}", change)
        case Take(name):
            await server.api("DELETE", f"{toxics}/{name}")
        case Say("here", size):
            here.say(bytes(n % 251 for n in range(size)))
        case Say("there", size):
            there.say(bytes(n % 239 for n in range(size)))
        case Close(who):
            (here if who == "here" else there).close()


def heard(peer: Peer, began: float) -> Heard:
    data = b"".join(piece for _, piece in peer.heard)
    end_s, end = peer.end or (began, "open")
    return Heard(data, marks(peer.heard, len(data), began), end, end_s - began)


def marks(pieces: Sequence[tuple[float, bytes]], total: int, began: float) -> tuple[float, ...]:
    """When the first byte was there, and each eighth of all."""
    found: list[float] = []
    got = 0
    for at, piece in pieces:
        got += len(piece)
        while len(found) <= MARKS and got >= max(1, total * len(found) / MARKS):
            found.append(at - began)
    return tuple(found)


def differences(one: tuple[Heard, Heard], other: tuple[Heard, Heard]) -> dict[str, str]:
    """Where two plays differ, e.g. `there.end`, and how."""
    found: dict[str, str] = {}
    for who, a, b in zip(("here", "there"), one, other, strict=True):
        if a.data != b.data:
            found[f"{who}.bytes"] = f"{len(a.data)} against {len(b.data)}"
        elif any(abs(x - y) > TOLERANCE_S for x, y in zip(a.marks_s, b.marks_s, strict=True)):
            found[f"{who}.times"] = f"{spell(a.marks_s)} against {spell(b.marks_s)}"
        if a.end != b.end:
            found[f"{who}.end"] = f"{a.end} at {a.end_s:.2f} against {b.end} at {b.end_s:.2f}"
        elif abs(a.end_s - b.end_s) > TOLERANCE_S:
            found[f"{who}.end_time"] = f"{a.end_s:.2f} against {b.end_s:.2f}"
    return found


def spell(times_s: Sequence[float]) -> str:
    return " ".join(f"{time_s:.2f}" for time_s in times_s)
