"""An exchange that no fault hits is the same at the gateway as without it, for the service and for its client. So is
the end of an answer that the service breaks off, whatever hits it."""

import gzip
import io
import socket
import struct
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chaoslab.core.events import CallFinished, Effect
from tests.gateway.parts import history, standing
from tests.waiting import DEADLINE_S

EXCHANGES = 300
CERTAIN = 32_000
"""The bytes of a body that a reset cannot overtake, since they fit in the window of a fresh connection. How many more
arrive is a matter of chance, without the gateway too."""
HERE = b"AUTHORITY"
"""The place of a service's own address in what it says."""
OF_ONE_LINE = {b"connection", b"transfer-encoding", b"host", b"content-length"}
"""Fields of one connection, and of framings: a body whose length nobody stated comes in chunks from the gateway."""
Fields = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Case:
    """One exchange. `sent`, `told`: the bodies, each a text and how often it comes; `half`: the client ends its
    direction with its request; `early`: the service answers before it has read the body; `end`: its end of the
    connection, after half of its body if it is "cut" or "reset"."""

    method: bytes = b"GET"
    path: bytes = b"/x"
    fields: tuple[tuple[bytes, bytes], ...] = ()
    sent: tuple[bytes, int] = (b"", 1)
    chunked: bool = False
    old: bool = False
    half: bool = False
    status: int = 200
    reason: bytes = b"OK"
    said: tuple[tuple[bytes, bytes], ...] = ()
    told: tuple[bytes, int] = (b"answer", 1)
    framing: str = "length"
    packed: bool = False
    early: bool = False
    end: str = "whole"

    @property
    def body(self) -> bytes:
        return self.sent[0] * self.sent[1]

    @property
    def answer(self) -> bytes:
        body = self.told[0] * self.told[1]
        return gzip.compress(body, mtime=0) if self.packed else body

    @property
    def bodiless(self) -> bool:
        return self.status in (204, 304) or self.method == b"HEAD"

    def request(self, port: int, prefix: bytes) -> bytes:
        fields = [*self.fields, (b"Connection", b"close")]
        if not self.old:
            fields.append((b"Host", b"127.0.0.1:%d" % port))
        if self.chunked:
            fields.append((b"Transfer-Encoding", b"chunked"))
        elif self.body:
            fields.append((b"Content-Length", b"%d" % len(self.body)))
        head = b"%s %s%s HTTP/1.%d\r\n" % (self.method, prefix, self.path, not self.old)
        return head + spelt(fields) + (chunks(self.body) + b"0\r\n\r\n" if self.chunked else self.body)

    def reply(self, port: int) -> bytes:
        body = self.answer
        fields = [(name, value.replace(HERE, b"127.0.0.1:%d" % port)) for name, value in self.said]
        if self.packed:
            fields.append((b"Content-Encoding", b"gzip"))
        if self.framing == "length" and self.status != 204:
            fields.append((b"Content-Length", b"%d" % len(body)))
        elif self.framing == "chunked" and self.status != 204:
            fields.append((b"Transfer-Encoding", b"chunked"))
        if self.end != "whole":
            body = body[: len(body) // 2]
        if self.framing == "chunked":
            body = chunks(body) + (b"0\r\n\r\n" if self.end == "whole" else b"")
        return b"HTTP/1.1 %d %s\r\n" % (self.status, self.reason) + spelt(fields) + (b"" if self.bodiless else body)


def spelt(fields: Fields) -> bytes:
    return b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n"


def chunks(body: bytes) -> bytes:
    half = len(body) // 2
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (body[:half], body[half:]) if each)


def head_of(reader: Any) -> tuple[bytes, dict[bytes, bytes], Fields]:
    """The first line, all fields by name, and those that mean something beyond one connection."""
    first, fields = reader.readline().strip(), []
    while (text := reader.readline()).strip():
        name, _, value = text.partition(b":")
        fields.append((name, value.strip()))
    said = {name.lower(): value for name, value in fields}
    return first, said, [field for field in fields if field[0].lower() not in OF_ONE_LINE]


def body_of(reader: Any, said: dict[bytes, bytes], *, endless: bool) -> tuple[bytes, bool]:
    """The body, and True if it came whole. `endless`: one whose length is not stated ends with its connection."""
    if b"chunked" in said.get(b"transfer-encoding", b""):
        body = b""
        while (size := reader.readline()) and (count := int(size, 16)):
            body += reader.read(count)
            reader.readline()
        return body, bool(size)
    if b"content-length" in said:
        length = int(said[b"content-length"])
        body = reader.read(length)
        return body, len(body) == length
    return (reader.read() if endless else b""), True


class Service:
    """Answers one request on each connection, as the case says. `got`: the request as it read it."""

    def __init__(self) -> None:
        self.case, self.got = Case(), list[Any]()
        self.read = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        case = self.case
        with suppress(OSError), line, line.makefile("rb") as reader:
            first, said, fields = head_of(reader)
            body = b"" if case.early else body_of(reader, said, endless=False)[0]
            self.got.append((first.rpartition(b" ")[0], sorted(fields), body))
            self.read.set()
            line.sendall(case.reply(self.port))
            if case.early:
                line.shutdown(socket.SHUT_WR)  # as a server that lingers does
                while line.recv(1 << 16):
                    pass
            elif case.end == "reset" and not case.bodiless:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def exchange(case: Case, port: int, prefix: bytes) -> tuple[Any, ...]:
    """The answer as a client gets it, and how it ended."""
    heard, ended = b"", "closed"

    def send(line: socket.socket) -> None:
        with suppress(OSError):
            line.sendall(case.request(port, prefix))
            if case.half:
                line.shutdown(socket.SHUT_WR)

    with socket.create_connection(("127.0.0.1", port), 20) as line:
        sending = threading.Thread(target=send, args=(line,), daemon=True)
        sending.start()
        try:
            while part := line.recv(1 << 20):
                heard += part
        except ConnectionResetError:
            ended = "reset"
        sending.join()
    reader = io.BytesIO(heard)
    first, said, fields = head_of(reader)
    status = int(first.split(b" ")[1]) if first else 0
    bodiless = status in (204, 304) or case.method == b"HEAD"
    body, whole = (b"", True) if bodiless else body_of(reader, said, endless=True)
    if case.framing == "close" and case.end == "reset":
        whole = False
    back = b"http://127.0.0.1:%d%s" % (port, prefix)
    led = [(name, value.replace(back, b"http://" + HERE)) for name, value in fields]
    assert case.answer.startswith(body)
    return first, led, body[:CERTAIN] if ended == "reset" else body, whole, ended


SEED = 61
CHARACTERS = bytes({*range(0x21, 0x100)} - {0x7F})
NAMES = [b"X-Trace", b"x-a", b"Accept", b"Accept-Encoding", b"Cookie", b"Content-Type", b"User-Agent"]
ANSWERED = [b"X-Id", b"Server", b"Date", b"ETag", b"Content-Language", b"Cache-Control"]
LED = [(b"Location", b"http://AUTHORITY/next?a=1"), (b"Location", b"http://elsewhere.test/x"), (b"Location", b"next")]
# Cases that failed once, or that each seed is to have.
EXAMPLES = [
    Case(old=True),
    Case(method=b"POST", sent=(b"x", 20_000_000), status=413, early=True),
    Case(method=b"POST", sent=(b"x", 6_000_000), chunked=True, told=(b"y", 6_000_000)),
    Case(method=b"POST", fields=((b"Accept-Encoding", b"br"),), sent=(b"x", 1_000_000)),
    Case(method=b"POST", fields=((b"Accept-Encoding", b"br"),), sent=(b"x", 1_000_000), chunked=True),
    *(Case(told=(b"answer!!", 100_000), framing=each, end="reset") for each in ("close", "length", "chunked")),
]


def draw_case(dice: Random) -> Case:
    def value() -> bytes:
        return bytes(dice.choices(CHARACTERS, k=dice.randint(0, 12)))

    def body(size_min: int) -> tuple[bytes, int]:
        return dice.randbytes(dice.randint(size_min, 20)), dice.choice([1, 1, 100, 5_000, 20_000])

    names = dice.sample(NAMES, dice.randint(0, 4))
    return Case(
        method=dice.choice([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS"]),
        path=dice.choice([b"/x", b"/", b"/a//b/../c", b"/%7Eu/%e4?q=a+b&q=%20", b"/x;y=1,2"]),
        fields=tuple((name, value()) for name in names),
        sent=body(0),
        chunked=dice.random() < 0.5,
        half=dice.random() < 0.5,
        status=dice.choice([200, 201, 204, 206, 301, 304, 307, 400, 404, 413, 429, 500, 503]),
        reason=dice.choice([b"OK", b"", b"Not As Usual", b"Gr\xfc\xdfe"]),
        said=tuple(
            dice.choice(LED) if dice.random() < 0.5 else (dice.choice(ANSWERED), value())
            for _ in range(dice.randint(0, 4))
        ),
        told=body(1),
        framing=dice.choice(["length", "chunked", "close"]),
        packed=dice.random() < 0.5,
        early=dice.random() < 0.5,
        end=dice.choice(["whole", "whole", "cut", "reset"]),
    )


def test_exchanges_are_the_same_with_and_without_the_gateway() -> None:
    service, dice = Service(), Random(SEED)
    with tempfile.TemporaryDirectory() as logs, standing(Path(logs), [f"s=http://127.0.0.1:{service.port}"]) as running:
        port = int(running.address.rpartition(":")[2])
        for case in (*EXAMPLES, *(draw_case(dice) for _ in range(EXCHANGES))):
            service.case = case
            found = []
            for address, prefix in ((service.port, b""), (port, b"/s")):
                service.got, service.read = [], threading.Event()
                heard = exchange(case, address, prefix)
                assert service.read.wait(DEADLINE_S)
                found.append((heard, service.got))
            assert found[1] == found[0], case
    service.listener.shutdown(socket.SHUT_RDWR)
    service.listener.close()


@pytest.mark.parametrize("end", ["cut", "reset"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_answer_that_its_service_breaks_off_is_the_same_with_a_fault_on_it(
    framing: str, end: str, tmp_path: Path
) -> None:
    service, found = Service(), list[Any]()
    service.case = Case(method=b"POST", sent=(b"x", 9), told=(b"answer!!", 100), framing=framing, end=end)
    for name, faults in (("plain", ()), ("hit", ({"fault": "latency", "target": "s", "delay_s": 0.01},))):
        with standing(tmp_path / name, [f"s=http://127.0.0.1:{service.port}"], *faults) as running:
            heard = exchange(service.case, int(running.address.rpartition(":")[2]), b"/s")
        logged = history(tmp_path / name)
        (end_event,) = [event for _, event in logged.find_events(CallFinished)]
        effects = [event.effect for _, event in logged.find_events(Effect)]
        found.append((heard, end_event.error, end_event.status, end_event.reply, effects))
    assert found[1] == found[0]
    assert found[0][0][2:4] == (b"answer!!" * 50, False)
    service.listener.shutdown(socket.SHUT_RDWR)
    service.listener.close()
