"""The metrics at /metrics in Prometheus's text format: bytes through each proxy, counted when a connection closes, and
this process."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from chaoslab.base.clock import system
from chaoslab.wire.server._spelling import sample

if TYPE_CHECKING:
    from chaoslab.wire.server.end import ProxyEnd

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
PROC = Path("/proc/self")
STARTED_S = system.utc().timestamp()
HANDED_ON = (
    "close", "write_eof", "abort", "is_closing", "pause_reading", "resume_reading", "is_reading", "get_extra_info",
    "get_protocol", "set_protocol", "get_write_buffer_size", "get_write_buffer_limits", "set_write_buffer_limits",
)  # fmt: skip
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """One metric: its name, help and type, and a value for each set of labels."""

    name: str
    help: str
    kind: str
    samples: Mapping[Labels, float]

    def __str__(self) -> str:
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        for labels, value in sorted(self.samples.items()):
            pairs = ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in labels)
            lines.append(f"{self.name}{{{pairs}}} {sample(value)}" if pairs else f"{self.name} {sample(value)}")
        return "\n".join(lines) + "\n"


class Meters:
    """The bytes of one proxy since it was made. They go with it: a lab makes a proxy for each poisoned call."""

    def __init__(self) -> None:
        self._received: dict[Labels, float] = defaultdict(float)
        self._sent: dict[Labels, float] = defaultdict(float)

    def count(self, end: ProxyEnd, *, proxy: str, listener: str, upstream: str) -> asyncio.Protocol:
        """The end of a connection with its bytes counted, which are added when it closes."""

        def labels(direction: str) -> Labels:
            named = {"direction": direction, "listener": listener, "proxy": proxy, "upstream": upstream}
            return tuple(named.items())

        def closed(received: int, sent: int) -> None:
            if end.peer.transport is not None:  # else the other side was never reached
                self._received[labels(end.direction)] += received
                self._sent[labels(end.peer.direction)] += sent

        return _Counted(end, closed)

    @staticmethod
    def families(of_proxies: Sequence[Meters]) -> Iterator[Family]:
        for name in ("received", "sent"):
            totals = {labels: count for each in of_proxies for labels, count in getattr(each, f"_{name}").items()}
            if totals:
                yield Family(f"toxiproxy_proxy_{name}_bytes_total", "", "counter", totals)


class _Counted(asyncio.Protocol):
    """A protocol between a socket and an end that counts bytes."""

    def __init__(self, end: ProxyEnd, closed: Callable[[int, int], None]) -> None:
        self._end = end
        self._closed = closed
        self._received = 0
        self._out: _CountedOut | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out = _CountedOut(cast(asyncio.Transport, transport))  # uvloop's is of another class
        self._end.connection_made(self._out)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        self._end.data_received(data)

    def eof_received(self) -> bool | None:
        return self._end.eof_received()

    def pause_writing(self) -> None:
        self._end.pause_writing()

    def resume_writing(self) -> None:
        self._end.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.connection_lost(exc)
        assert self._out is not None
        self._closed(self._received, self._out.sent)


class _CountedOut(asyncio.Transport):
    """A transport that counts the bytes written to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self.sent = 0
        self._write = transport.write
        for name in HANDED_ON:
            setattr(self, name, getattr(transport, name))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += len(data)
        self._write(data)


def handler() -> Iterator[Family]:
    """The real server's metrics of its own /metrics handler, which has no errors here."""
    about = "Total number of internal errors encountered by the promhttp metric handler."
    none: dict[Labels, float] = {(("cause", cause),): 0.0 for cause in ("encoding", "gathering")}
    yield Family("promhttp_metric_handler_errors_total", about, "counter", none)


def process() -> Iterator[Family]:
    """The metrics of this process, under the names of Prometheus's client for Python."""
    version = {
        "implementation": platform.python_implementation(),
        "major": str(sys.version_info.major),
        "minor": str(sys.version_info.minor),
        "patchlevel": str(sys.version_info.micro),
        "version": platform.python_version(),
    }
    yield Family("python_info", "Python platform information", "gauge", {tuple(version.items()): 1.0})
    collections: dict[Labels, float] = {
        (("generation", str(age)),): float(one["collections"]) for age, one in enumerate(gc.get_stats())
    }
    about = "Number of times this generation was collected"
    yield Family("python_gc_collections_total", about, "counter", collections)
    times = os.times()
    single: dict[str, tuple[str, str, float]] = {
        "cpu_seconds_total": ("counter", "Total user and system CPU time spent in seconds.", times.user + times.system),
        "start_time_seconds": ("gauge", "Start time of the process since unix epoch in seconds.", STARTED_S),
    }
    if PROC.is_dir():
        pages = [float(one) for one in (PROC / "statm").read_text().split()[:2]]
        page = os.sysconf("SC_PAGE_SIZE")
        fds = len(os.listdir(PROC / "fd")) - 1  # without the one that lists them
        single["virtual_memory_bytes"] = ("gauge", "Virtual memory size in bytes.", pages[0] * page)
        single["resident_memory_bytes"] = ("gauge", "Resident memory size in bytes.", pages[1] * page)
        single["open_fds"] = ("gauge", "Number of open file descriptors.", fds)
    for name, (kind, about, value) in single.items():
        yield Family(f"process_{name}", about, kind, {(): value})


def render(families: Iterable[Family]) -> str:
    return "".join(str(family) for family in sorted(families, key=lambda family: family.name))
