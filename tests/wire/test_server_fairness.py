"""One connection keeps neither the API nor the others waiting, however it is disturbed, nor fills stderr."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.base.clock import system
from tests import warm
from tests.seams.lab_parts import eventually
from tests.wire.wire_parts import DEADLINE_S, dial, echo, process, read_exactly, upstream

SOON_S = 1.0
"""The server's own time for an answer, which takes it a few milliseconds. Where what asks is starved, it works at the
stream for as long as that has data; where the machine is busy, it does not work meanwhile."""
FILES = 120
RST_ON_CLOSE = struct.pack("ii", 1, 0)

CRUMBS: dict[str, list[dict[str, Any]]] = {
    "1 byte": [{"type": "slicer", "attributes": {"average_size": 1}}],
    "10 bytes, jittery": [{"type": "slicer", "attributes": {"average_size": 10, "size_variation": 5}}],
    "1 byte, then late": [
        {"type": "slicer", "attributes": {"average_size": 1}},
        {"type": "latency", "attributes": {"latency": 5, "jitter": 5}},
    ],
    "1 byte, then narrow": [
        {"type": "slicer", "attributes": {"average_size": 1}},
        {"type": "bandwidth", "attributes": {"rate": 1_000_000}},
    ],
    "through 300 toxics": [{"type": "limit_data", "name": f"t{n}", "attributes": {"bytes": 2**62}} for n in range(300)],
}


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> str:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return str(request.param)


def pour_or_echo(connection: socket.socket) -> None:
    """A first `p` asks for a stream without an end, anything else for itself."""
    data = connection.recv(1)
    while data == b"p":
        connection.sendall(bytes(1_000_000))
    connection.sendall(data)
    echo(connection)


@contextlib.contextmanager
def drained(listen: str) -> Iterator[threading.Event]:
    """Somebody asks for the stream and reads it; set once something of it has come."""
    flows = threading.Event()

    def drain() -> None:
        with contextlib.suppress(OSError):
            while connection.recv(1_000_000):
                flows.set()

    with dial(listen) as connection:
        connection.sendall(b"p")
        reader = threading.Thread(target=drain)
        reader.start()
        try:
            yield flows
        finally:
            connection.shutdown(socket.SHUT_RDWR)
            reader.join(DEADLINE_S)


def make(client: httpx.Client, name: str, address: str) -> str:
    body = {"name": name, "upstream": address, "listen": "127.0.0.1:0"}
    listen: str = client.post("/proxies", json=body).raise_for_status().json()["listen"]
    return listen


def worked_s(pid: int, act: Callable[[], object]) -> float:
    """The seconds for which a process works meanwhile; where none are told, the seconds that pass."""
    began = _count_seconds(pid)
    act()
    return _count_seconds(pid) - began


def _count_seconds(pid: int) -> float:
    return cpu_ticks(pid) / 100 if Path("/proc/self/stat").exists() else system.monotonic()


@pytest.mark.parametrize("name", CRUMBS)
def test_a_stream_in_crumbs_holds_up_neither_a_neighbour_nor_the_api(loop: str, name: str) -> None:
    with (
        upstream(pour_or_echo) as address,
        process(loop) as (url, server),
        httpx.Client(base_url=url, timeout=DEADLINE_S) as client,
    ):
        busy, quiet = make(client, "busy", address), make(client, "quiet", address)
        for toxic in CRUMBS[name]:
            client.post("/proxies/busy/toxics", json=toxic).raise_for_status()
        with dial(quiet) as neighbour, drained(busy) as flows:
            assert flows.wait(DEADLINE_S)

            def exchange() -> None:
                neighbour.sendall(b".")
                read_exactly(neighbour, 1)

            pid = warm.child(server.pid)
            for _ in range(5):
                assert worked_s(pid, exchange) < SOON_S
                assert worked_s(pid, lambda: client.get("/version").raise_for_status()) < SOON_S
            path = f"/proxies/busy/toxics/{CRUMBS[name][0].get('name', 'slicer_downstream')}"
            assert worked_s(pid, lambda: client.delete(path).raise_for_status()) < SOON_S
            assert worked_s(pid, lambda: client.delete("/proxies/busy").raise_for_status()) < SOON_S


def test_nothing_is_written_to_a_socket_that_is_gone(loop: str) -> None:
    """asyncio would say "socket.send() raised exception." of each slice."""
    with upstream(pour_or_echo) as address, process(loop) as (url, server), httpx.Client(base_url=url) as client:
        busy = make(client, "busy", address)
        client.post("/proxies/busy/toxics", json=CRUMBS["1 byte"][0]).raise_for_status()
        for _ in range(5):
            with dial(busy) as connection:
                connection.sendall(b"p")
                assert connection.recv(1000)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        client.delete("/proxies/busy").raise_for_status()
        server.terminate()
        assert server.stderr is not None
        assert server.stderr.read() == b""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the processor's time is read from /proc")
def test_without_files_left_new_connections_wait_and_it_is_said_once(loop: str) -> None:
    with (
        upstream(echo) as address,
        process(loop, files=FILES) as (url, server),
        httpx.Client(base_url=url, timeout=DEADLINE_S) as client,
        contextlib.ExitStack() as stack,
    ):
        listen = make(client, "p", address)
        before = cpu_ticks(server.pid)
        waiting = [stack.enter_context(dial(listen)) for _ in range(FILES)]
        for connection in waiting:
            connection.sendall(b".")
        assert waiting[0].recv(1) == b"."
        for _ in range(3):  # over fresh connections
            assert httpx.get(f"{url}/version", timeout=DEADLINE_S).status_code == 200
        waiting[-1].settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting[-1].recv(1)
        for connection in waiting[:-1]:
            connection.close()
        waiting[-1].settimeout(DEADLINE_S)
        assert waiting[-1].recv(1) == b"."
        assert cpu_ticks(server.pid) - before < 200
        server.terminate()
        assert server.stderr is not None
        said = server.stderr.read().decode()
    assert said.startswith("toxiproxy: too many open files: new connections wait")
    assert said.count("\n") == 1


def test_a_proxy_that_dials_itself_leaves_files_to_the_api(loop: str) -> None:
    with process(loop, files=FILES) as (url, server), httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        listen = make(client, "snake", "127.0.0.1:9")
        client.patch("/proxies/snake", json={"listen": listen, "upstream": listen}).raise_for_status()
        with dial(listen):
            eventually(lambda: files_of(server.pid) > FILES // 2)
            for _ in range(3):
                assert httpx.get(f"{url}/version", timeout=DEADLINE_S).status_code == 200
            client.delete("/proxies/snake").raise_for_status()
        eventually(lambda: files_of(server.pid) < 30)


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the kernel does not count a connection's segments")
def test_slices_that_are_a_fraction_of_a_millisecond_apart_leave_apart(loop: str) -> None:
    """20 kB in slices of 50 to 150 bytes, 200 µs apart: about 200.

    The kernel counts them as they come, since a reader would find several at once when it is late. Nagle's algorithm
    would join those of all transfers but the first, until the reader's delayed acknowledgement comes: 2 would be left.
    """

    def give(connection: socket.socket) -> None:
        while connection.recv(1):
            connection.sendall(bytes(20_000))

    with upstream(give) as address, process(loop) as (url, _), httpx.Client(base_url=url) as client:
        listen = make(client, "p", address)
        attributes = {"average_size": 100, "size_variation": 50, "delay": 200}
        client.post("/proxies/p/toxics", json={"type": "slicer", "attributes": attributes}).raise_for_status()
        with dial(listen) as connection:
            came = []
            for _ in range(5):
                before = segments_with_data(connection)
                connection.sendall(b".")
                read_exactly(connection, 20_000)
                came.append(segments_with_data(connection) - before)
    assert 120 < max(came[1:]) < 410


def segments_with_data(connection: socket.socket) -> int:
    """The number of those that came in: `tcpi_data_segs_in` of the kernel's `struct tcp_info`."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("I", info, 152)[0])


def files_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def cpu_ticks(pid: int) -> int:
    """Hundredths of a second of processor time."""
    values = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(values[11]) + int(values[12])
