"""Connections through the embedded proxy: what toxics do to live ones, and how connections open, stall and end."""

import asyncio
import contextlib
import json
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.wire.server import proxy
from chaoslab.wire.server.process import choose_loop_factory
from chaoslab.wire.server.proxy import Proxy
from tests.waiting import eventually
from tests.wire.wire_parts import DEADLINE_S, black_hole, dial, echo, embedded, read_exactly, upstream


class Lab:
    """A server, an echoing upstream, and the proxy `p` between them."""

    def __init__(self, client: httpx.Client, listen: str) -> None:
        self.client = client
        self.listen = listen

    def add(
        self, kind: str, *, stream: str = "downstream", toxicity: float = 1.0, name: str = "t", **attributes: int
    ) -> None:
        body = {"name": name, "type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
        self.client.post("/proxies/p/toxics", json=body).raise_for_status()

    def patch(self, *, name: str = "t", toxicity: float | None = None, **attributes: int) -> None:
        body: dict[str, Any] = {"attributes": attributes} | ({} if toxicity is None else {"toxicity": toxicity})
        self.client.patch(f"/proxies/p/toxics/{name}", json=body).raise_for_status()

    def remove(self, name: str = "t") -> None:
        self.client.delete(f"/proxies/p/toxics/{name}").raise_for_status()


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def every_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these stories is the same on either event loop."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    monkeypatch.setattr(sys.modules[__name__], "LOOP", request.param)


LOOP = "asyncio"


@contextlib.contextmanager
def lab_over(address: str, *, seed: int = 1) -> Iterator[Lab]:
    with embedded(seed=seed, loop=LOOP) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        body = {"name": "p", "upstream": address, "listen": "127.0.0.1:0"}
        yield Lab(client, client.post("/proxies", json=body).json()["listen"])


@pytest.fixture
def lab() -> Iterator[Lab]:
    with upstream(echo) as address, lab_over(address) as lab:
        yield lab


def ask(connection: socket.socket, data: bytes = b"ping") -> float:
    """Seconds until the echo is there."""
    start = system.monotonic()
    connection.sendall(data)
    assert read_exactly(connection, len(data)) == data
    return system.monotonic() - start


def is_late_by(connection: socket.socket, least_s: float, most_s: float) -> None:
    """Asks until an answer comes before `most_s`, so that a busy machine is not taken for a toxic; none may come before
    `least_s`."""

    def in_time() -> bool:
        took_s = ask(connection)
        assert took_s >= least_s
        return took_s < most_s

    eventually(in_time)


def test_without_toxics_bytes_pass_both_ways_and_the_end_with_them(lab: Lab) -> None:
    data = bytes(n % 251 for n in range(1_000_000))
    with dial(lab.listen) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        assert read_exactly(connection, len(data)) == data
        sender.join()
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_latency_comes_goes_and_changes_on_a_live_connection(lab: Lab) -> None:
    with dial(lab.listen) as connection:
        is_late_by(connection, 0.0, 0.05)
        lab.add("latency", latency=80)
        is_late_by(connection, 0.079, 0.2)
        lab.patch(latency=40)
        is_late_by(connection, 0.039, 0.079)
        lab.add("latency", name="second", stream="upstream", latency=40)
        is_late_by(connection, 0.078, 0.2)
        lab.remove()
        lab.remove("second")
        is_late_by(connection, 0.0, 0.039)


def test_a_changed_toxic_lets_one_chunk_go_and_not_the_whole_flood(lab: Lab) -> None:
    lab.add("bandwidth", rate=1)
    with dial(lab.listen) as connection:
        connection.sendall(bytes(200_000))
        assert connection.recv(1)
        lab.patch(rate=0)
        got = 0
        while got < 30_000:
            got += len(connection.recv(65536))
        connection.settimeout(0.09)
        with contextlib.suppress(TimeoutError):
            while got < 100_000:
                got += len(connection.recv(65536))
        assert got < 32 * 1024


@pytest.mark.parametrize("late", ["first", "second"])
@pytest.mark.parametrize(
    ("first", "second", "is_slow"), [("slow_close", "limit_data", False), ("limit_data", "slow_close", True)]
)
def test_toxics_act_in_the_order_of_adding_whichever_begins_later(
    lab: Lab, first: str, second: str, late: str, *, is_slow: bool
) -> None:
    """slow_close delays the end that limit_data makes only if it stands behind it."""
    with dial(lab.listen) as connection:
        ask(connection)
        for name, kind in (("first", first), ("second", second)):
            lab.add(kind, name=name, toxicity=0.0 if name == late else 1.0)
            lab.patch(name=name, **({"bytes": 100} if kind == "limit_data" else {"delay": 100 if is_slow else 60_000}))
        lab.patch(name=late, toxicity=1.0)
        start = system.monotonic()
        connection.sendall(bytes(100))
        assert read_exactly(connection, 100) == bytes(100)
        assert connection.recv(1) == b""
        assert not is_slow or system.monotonic() - start >= 0.099


def test_reset_peer_really_sends_a_reset(lab: Lab) -> None:
    lab.add("reset_peer", timeout=20)
    with dial(lab.listen) as connection:
        connection.sendall(b"hello")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_a_slicer_with_default_attributes_and_a_negative_rate_crash_nothing(lab: Lab) -> None:
    lab.add("slicer", name="a")
    lab.add("slicer", name="b", average_size=1, size_variation=1000)
    with dial(lab.listen) as connection:
        ask(connection)
        lab.add("bandwidth", name="c", rate=-1)
        lab.add("latency", name="d", latency=1, jitter=2**63 - 1)
        connection.sendall(b"stuck")
        lab.client.post("/reset").raise_for_status()
        assert read_exactly(connection, 5) == b"stuck"
        ask(connection)


@pytest.mark.parametrize(
    ("kind", "attributes", "least_mb", "most_mb"),
    [("bandwidth", {"rate": 0}, 0.3, 16), ("latency", {"latency": 60_000}, 32, 64)],
)
def test_a_sender_is_stalled_by_what_a_toxic_holds_back(
    kind: str, attributes: dict[str, int], least_mb: float, most_mb: float
) -> None:
    """A latency holds as much as a fast stream needs, others hardly more than sockets do: a write times out."""
    poured = [0]
    stopped = threading.Event()

    def pour(connection: socket.socket) -> None:
        connection.settimeout(0.3)
        while not stopped.is_set():
            try:
                poured[0] += connection.send(bytes(1_000_000))
            except TimeoutError:  # on a busy machine nothing may be taken for as long
                if poured[0] >= least_mb * 1e6:
                    stopped.set()

    with upstream(pour) as address, lab_over(address) as lab:
        lab.add(kind, **attributes)  # type: ignore[arg-type]
        with dial(lab.listen):
            assert stopped.wait(DEADLINE_S)
            assert poured[0] < most_mb * 1.1e6


def test_an_upstream_that_is_down_accepts_and_then_ends() -> None:
    with lab_over("127.0.0.1:9") as lab, dial(lab.listen) as connection:
        assert connection.recv(1) == b""


@pytest.mark.parametrize("address", ["nowhere", "nowhere:http", ""])
def test_an_upstream_that_cannot_be_dialled_ends_the_connection(lab: Lab, address: str) -> None:
    lab.client.patch("/proxies/p", json={"upstream": address}).raise_for_status()
    with dial(lab.listen) as connection:
        assert connection.recv(1) == b""


def test_dialling_a_black_hole_is_given_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy.DIAL_TIMEOUT_S == 10.0
    monkeypatch.setattr(proxy, "DIAL_TIMEOUT_S", 0.05)
    with black_hole() as address:
        lab.client.patch("/proxies/p", json={"upstream": address}).raise_for_status()
        with dial(lab.listen) as connection:
            assert connection.recv(1) == b""


@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("turns", range(6))
def test_a_move_drops_a_connection_however_far_its_accepting_has_come(turns: int) -> None:
    async def moved() -> None:
        proxy = Proxy("p", listen="127.0.0.1:0", upstream="127.0.0.1:9", dice=Dice("test"))
        await proxy.start()
        with black_hole() as address, dial(proxy.listen) as connection, contextlib.ExitStack() as stack:
            stack.callback(proxy.stop)
            proxy.upstream = address
            for _ in range(turns):
                await asyncio.sleep(0)
            proxy.stop()
            await proxy.start()
            connection.setblocking(False)
            with contextlib.suppress(ConnectionResetError):
                async with asyncio.timeout(DEADLINE_S):
                    assert await asyncio.get_running_loop().sock_recv(connection, 1) == b""

    with asyncio.Runner(loop_factory=choose_loop_factory(LOOP)) as runner:
        runner.run(moved())


@pytest.mark.parametrize("method", ["disable", "delete", "move"])
def test_disabling_deleting_or_moving_a_proxy_ends_its_connections(lab: Lab, method: str) -> None:
    with dial(lab.listen) as connection:
        ask(connection)
        if method == "delete":
            lab.client.delete("/proxies/p").raise_for_status()
        else:
            change = {"enabled": False} if method == "disable" else {"upstream": "127.0.0.1:9"}
            lab.client.patch("/proxies/p", json=change).raise_for_status()
        assert connection.recv(1) == b""
    if method != "move":
        with pytest.raises(ConnectionRefusedError):
            dial(lab.listen)


def test_when_either_side_goes_the_other_is_told() -> None:
    ended = threading.Event()
    go = threading.Event()

    def wait_for_the_end(connection: socket.socket) -> None:
        if connection.recv(1) == b"x":
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
            ended.set()
        else:
            assert go.wait(DEADLINE_S)

    with upstream(wait_for_the_end) as address, lab_over(address) as lab:
        with dial(lab.listen) as connection:
            connection.sendall(b"x")
        assert ended.wait(DEADLINE_S)
        with dial(lab.listen) as connection:
            connection.sendall(b"y")
            go.set()
            assert connection.recv(1) == b""


def test_stopping_the_server_ends_every_connection() -> None:
    with upstream(echo) as address, contextlib.ExitStack() as stack:
        with lab_over(address) as lab:
            lab.add("latency", latency=60_000, stream="upstream")
            connections = [stack.enter_context(dial(lab.listen)) for _ in range(20)]
            for connection in connections:
                connection.sendall(b"on its way")
            assert json.loads(lab.client.get("/proxies").text)
        for connection in connections:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""


@pytest.mark.parametrize(("upstream", "address"), [("a:80", ("a", 80)), (":80", ("localhost", 80))])
def test_an_upstream_without_a_host_is_on_this_computer(upstream: str, address: tuple[str, int]) -> None:
    async def story() -> None:
        assert Proxy("p", listen="127.0.0.1:0", upstream=upstream, dice=Dice("test")).upstream_address == address

    asyncio.run(story())
