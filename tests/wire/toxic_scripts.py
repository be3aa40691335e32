"""A script of one connection through a proxy, played on a server of either kind, and two plays compared.

Both ends are in our hands.

Times in scripts are milliseconds from the connect. "There" is the end that receives the stream a script is about,
"here" the one that sends it, so that one script serves both streams.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

DEADLINE_S = 20.0
TOLERANCE_S = 0.09  # scripts move in steps of 100 ms and more, so that a real difference is unmistakable
MARKS = 8  # the times compared: the first byte, each eighth, the end

Stream = Literal["downstream", "upstream"]
End = Literal["FIN", "RST", "open"]
Address = tuple[str, int]


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

    def stream_of(self, put: Put) -> Stream:
        """On which way this toxic hangs."""
        if not put.opposite:
            return self.stream
        return "upstream" if self.stream == "downstream" else "downstream"


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
    """The bytes and end that one end had heard at the last look."""

    data: bytes
    marks_s: tuple[float, ...]
    end: End
    end_s: float


class Carrier(Protocol):
    """Carries the connection of a script, and lets toxics come, change and go on the way."""

    def proxied(self, upstream: Address) -> contextlib.AbstractAsyncContextManager[tuple[str, Address]]:
        """A proxy in front of the upstream: its name, and where it listens."""

    async def put(self, proxy: str, stream: Stream, put: Put) -> None: ...
    async def patch(self, proxy: str, patch: Patch) -> None: ...
    async def take(self, proxy: str, take: Take) -> None: ...


@dataclass
class Server:
    """A server of either kind as the carrier, by its API.

    Its connections are kept, and carry one request at a time. A client of httpx takes longer for a request than the
    servers do.
    """

    address: Address
    played: int = field(default=0)
    _free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def api(self, method: str, path: str, body: Any = None) -> Any:
        async with asyncio.timeout(DEADLINE_S):
            line = self._free.pop() if self._free else await asyncio.open_connection(*self.address)
            reader, writer = line
            data = b"" if body is None else json.dumps(body).encode()
            head = f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)
            said = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = re.search(r"^content-length: (\d+)", said, re.MULTILINE)
            told = await reader.readexactly(int(length[1]) if length else 0)
        assert said.split()[1].startswith("2"), said + told.decode()
        assert "transfer-encoding" not in said
        self._free.append(line)
        return json.loads(told) if told else None

    def close(self) -> None:
        """Closes the connections."""
        for _, writer in self._free:
            writer.close()

    @contextlib.asynccontextmanager
    async def proxied(self, upstream: Address) -> AsyncIterator[tuple[str, Address]]:
        self.played += 1
        name = f"p{self.played}"
        wish = {"name": name, "upstream": f"{upstream[0]}:{upstream[1]}", "listen": "127.0.0.1:0"}
        made = await self.api("POST", "/proxies", wish)
        try:
            yield name, ("127.0.0.1", int(made["listen"].rpartition(":")[2]))
        finally:
            await self.api("DELETE", f"/proxies/{name}")

    async def put(self, proxy: str, stream: Stream, put: Put) -> None:
        body = {
            "name": put.name,
            "type": put.type,
            "stream": stream,
            "toxicity": put.toxicity,
            "attributes": put.attributes,
        }
        await self.api("POST", f"/proxies/{proxy}/toxics", body)

    async def patch(self, proxy: str, patch: Patch) -> None:
        change = {"attributes": patch.attributes} | ({} if patch.toxicity is None else {"toxicity": patch.toxicity})
        await self.api("PATCH", f"/proxies/{proxy}/toxics/{patch.name}", change)

    async def take(self, proxy: str, take: Take) -> None:
        await self.api("DELETE", f"/proxies/{proxy}/toxics/{take.name}")


async def play(carrier: Carrier, script: Script) -> tuple[Heard, Heard]:
    """Plays the script and returns what was heard here and there."""
    loop = asyncio.get_running_loop()
    here, there = Peer(), Peer()
    dialler, dialled = (there, here) if script.stream == "downstream" else (here, there)
    listener = await loop.create_server(lambda: dialled, "127.0.0.1", 0)
    async with carrier.proxied(listener.sockets[0].getsockname()) as (name, (host, port)):
        for toxic in script.before:
            await act(carrier, name, script, toxic, here, there)
        await loop.create_connection(lambda: dialler, host, port)
        async with asyncio.timeout(DEADLINE_S):
            await dialled.connected.wait()
        began = loop.time()
        for at_ms, step in script.steps:
            await until(began + at_ms / 1000)
            await act(carrier, name, script, step, here, there)
        await until(began + script.until_ms / 1000)
        result = heard(here, began), heard(there, began)
        for peer in (here, there):
            if peer.transport is not None:
                peer.transport.abort()
    listener.close()
    return result


async def until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - asyncio.get_running_loop().time()))


async def act(carrier: Carrier, proxy: str, script: Script, step: Step, here: Peer, there: Peer) -> None:
    match step:
        case Put():
            await carrier.put(proxy, script.stream_of(step), step)
        case Patch():
            await carrier.patch(proxy, step)
        case Take():
            await carrier.take(proxy, step)
        case Say("here", size):
            here.say(words("here", size))
        case Say("there", size):
            there.say(words("there", size))
        case Close(who):
            (here if who == "here" else there).close()


def words(who: str, size: int) -> bytes:
    """`size` bytes for this end to send; each end has its own."""
    again = bytes(range(251 if who == "here" else 239))
    return (again * (size // len(again) + 1))[:size]


def heard(peer: Peer, began: float) -> Heard:
    data = b"".join(piece for _, piece in peer.heard)
    end_s, end = peer.end or (began, "open")
    return Heard(data, marks(peer.heard, len(data), began), end, end_s - began)


def marks(pieces: Sequence[tuple[float, bytes]], total: int, began: float) -> tuple[float, ...]:
    """The moments of the first byte and of each eighth of all bytes."""
    found: list[float] = []
    got = 0
    for at, piece in pieces:
        got += len(piece)
        while len(found) <= MARKS and got >= max(1, total * len(found) / MARKS):
            found.append(at - began)
    return tuple(found)


def differences(one: tuple[Heard, Heard], other: tuple[Heard, Heard]) -> dict[str, str]:
    """The places at which two plays differ, e.g. `there.end`, and how."""
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
