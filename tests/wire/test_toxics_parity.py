"""The list of the embedded server's differences is the docs' list; what no script shows of it is shown here."""

import contextlib
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

import httpx
import pytest

from chaoslab.base.clock import system
from tests.wire.toxic_cases import SCRIPTS
from tests.wire.toxic_differences import DIFFERENCES
from tests.wire.wire_parts import DEADLINE_S, black_hole, dial, echo, embedded, read_exactly, real_with, upstream

DOCS = Path(__file__).parents[2] / "docs" / "toxiproxy.md"
PATIENCE_S = 1.5  # after which the API of the real server is taken for stuck; the embedded one is given more

FLAWS: set[str] = set()  # the differences that have a test of their own below
Test = TypeVar("Test", bound=Callable[..., None])


def shows(title: str) -> Callable[[Test], Test]:
    """Marks a test that fails when this difference has vanished."""
    FLAWS.add(title)
    return lambda test: test


def test_every_entry_of_the_list_names_a_script_or_has_a_test() -> None:
    for difference in DIFFERENCES:
        assert bool(difference.scripts) != (difference.title in FLAWS), difference.title
        for pattern, _ in difference.scripts:
            assert any(fnmatchcase(script.name, pattern) for script in SCRIPTS), pattern
    assert {difference.title for difference in DIFFERENCES} >= FLAWS


def test_the_list_is_the_one_in_the_docs() -> None:
    section = re.split(r"^#+ ", DOCS.read_text(encoding="utf-8").split("## On the wire\n")[1], flags=re.MULTILINE)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    assert [(row[0], row[3]) for row in rows[2:]] == [(difference.title, difference.why) for difference in DIFFERENCES]


# The flaws of the real server that no script can hear. Each test says what the embedded one does, too.


@dataclass(frozen=True)
class Bench:
    """A server to break, with the proxy `p` in front of an upstream."""

    client: httpx.Client
    listen: str
    patience_s: float

    def add(self, kind: str, *, toxicity: float = 1.0, **attributes: int) -> None:
        body = {"name": kind, "type": kind, "toxicity": toxicity, "attributes": attributes}
        self.client.post("/proxies/p/toxics", json=body).raise_for_status()

    def answers(self, method: str = "GET", path: str = "/version", body: Any = None) -> bool:
        """True if the API does so within its patience."""
        try:
            self.client.request(method, path, json=body, timeout=self.patience_s).raise_for_status()
        except httpx.TransportError:
            return False
        return True


@contextlib.contextmanager
def bench(server: str, address: str, *flags: str, seed: int = 1) -> Iterator[Bench]:
    started = embedded(seed=seed) if server == "embedded" else real_with("-seed", str(seed), *flags)
    with started as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        body = {"name": "p", "upstream": address, "listen": "127.0.0.1:0"}
        patience_s = DEADLINE_S if server == "embedded" else PATIENCE_S
        yield Bench(client, client.post("/proxies", json=body).json()["listen"], patience_s)


def pour(connection: socket.socket) -> None:
    while True:
        connection.sendall(bytes(1_000_000))


both = pytest.mark.parametrize("server", ["embedded", "real"])


@shows("A bad number")
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("bandwidth", {"rate": -1}),
        ("latency", {"latency": 1, "jitter": 2**63 - 1}),
        ("slicer", {"average_size": 1, "size_variation": 100}),
    ],
)
@both
def test_a_bad_number_ends_the_real_server_only(server: str, kind: str, attributes: dict[str, int]) -> None:
    with upstream(echo) as address, bench(server, address) as it:
        it.add(kind, **attributes)
        with dial(it.listen) as connection, contextlib.suppress(OSError):
            connection.settimeout(PATIENCE_S / 5)
            for _ in range(20):
                connection.sendall(bytes(1000))
                connection.recv(65536)
        assert it.answers() == (server == "embedded")


@shows("A huge delay")
@pytest.mark.parametrize("latency", [2**63 - 1, 2**63 // 10**6 + 1])
@both
def test_a_delay_of_centuries_lets_everything_pass_on_the_real_server_only(server: str, latency: int) -> None:
    with upstream(echo) as address, bench(server, address) as it:
        it.add("latency", latency=latency)
        with dial(it.listen) as connection:
            connection.sendall(b"x")
            assert passed(connection, DEADLINE_S if server == "real" else PATIENCE_S / 3) == (server == "real")


def passed(connection: socket.socket, within_s: float) -> bool:
    """True if a byte comes within that time."""
    connection.settimeout(within_s)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return False


@shows("The draw of another toxic")
@both
def test_a_toxic_draws_anew_for_another_that_is_added_on_the_real_server_only(server: str) -> None:
    """A latency of toxicity 0.5 hits some of 16 live connections, before and after a noop is added."""

    late_s = PATIENCE_S / 2

    def hit() -> list[bool]:
        took_s: dict[socket.socket, float] = {}
        for connection in connections:
            connection.sendall(b"x")
        sent_s = system.monotonic()
        while len(took_s) < len(connections):
            for connection in select.select(connections, (), (), DEADLINE_S)[0]:
                assert connection.recv(1) == b"x"
                took_s[connection] = system.monotonic() - sent_s
        hits = [took_s[connection] > late_s * 0.9 for connection in connections]
        assert any(hits)
        return hits

    with upstream(echo) as address, bench(server, address) as it, contextlib.ExitStack() as stack:
        it.add("latency", toxicity=0.5, latency=int(late_s * 1000))
        connections = [stack.enter_context(dial(it.listen)) for _ in range(16)]
        before = hit()
        it.add("noop")
        assert (hit() == before) == (server == "embedded")


@shows("An upstream that refuses")
@both
def test_an_upstream_that_refuses_resets_who_has_sent_something_on_the_real_server_only(server: str) -> None:
    def is_reset() -> bool:
        with dial(it.listen) as connection:
            try:
                connection.sendall(b"hello")
                return connection.recv(1) != b""
            except ConnectionError:
                return True

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens, nor can anybody else
        refusing = f"127.0.0.1:{taken.getsockname()[1]}"
        with bench(server, refusing) as it:
            assert any(is_reset() for _ in range(60)) == (server == "real")


@shows("A stalled reader")
@both
def test_a_stalled_reader_stops_changes_of_the_real_server_only(server: str) -> None:
    with upstream(pour) as address, bench(server, address) as it, dial(it.listen) as stalled:
        assert stalled.recv(1)
        it.add("latency", latency=1)
        full = threading.Event()
        full.wait(PATIENCE_S / 5)  # nothing tells when the last buffer is full
        assert it.answers("DELETE", "/proxies/p/toxics/latency") == (server == "embedded")


@shows("A black hole upstream")
@both
def test_a_black_hole_holds_up_the_other_connections_of_the_real_server_only(server: str) -> None:
    with upstream(echo) as address, black_hole() as hole, bench(server, hole) as it, dial(it.listen):
        threading.Event().wait(PATIENCE_S / 5)  # nothing tells when the dialling has begun
        assert it.answers("PATCH", "/proxies/p", {"upstream": address}) == (server == "embedded")


@shows("Jitter")
@both
def test_jitter_makes_a_stream_of_the_real_server_later_than_its_latency(server: str) -> None:
    """100 ± 80 ms on bytes that come every 5 ms: the mean should be that of 100 ms, on a machine as busy as it is."""

    def is_later() -> bool:
        with ThreadPoolExecutor(2) as both_at_once:
            lag_s, plain_s = both_at_once.map(partial(lag_of_a_stream, server), (80, 0))
        return lag_s - plain_s >= 0.035

    # Tried again, since a pause of the machine may hit one of the two alone.
    assert all(is_later() for _ in range(4)) == (server == "real")


def lag_of_a_stream(server: str, jitter: int) -> float:
    """The mean seconds for which a latency of 100 ms holds the bytes of ten connections."""

    def drip(connection: socket.socket) -> None:
        for _ in range(100):
            sent.setdefault(connection.getpeername()[1], []).append(system.monotonic())
            connection.sendall(b".")
            threading.Event().wait(0.005)
        connection.recv(1)

    def delays(connection: socket.socket, into: list[float]) -> None:
        into.extend([system.monotonic() for _ in range(100) if read_exactly(connection, 1)])

    sent: dict[int, list[float]] = {}
    with upstream(drip) as address, bench(server, address) as it, contextlib.ExitStack() as stack:
        it.add("latency", latency=100, jitter=jitter)
        connections = [stack.enter_context(dial(it.listen)) for _ in range(10)]
        heard: list[list[float]] = [[] for _ in connections]
        threads = [threading.Thread(target=delays, args=pair) for pair in zip(connections, heard, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        return mean(mean(one) for one in heard) - mean(mean(one) for one in sent.values())


@shows("The seed")
@both
def test_equal_seeds_draw_alike_on_the_embedded_server_only(server: str) -> None:
    def draws(seed: int) -> list[bool]:
        """For each of 30 connections, True if a toxic of toxicity 0.5 hits it."""
        with upstream(echo) as address, bench(server, address, seed=seed) as it:
            it.add("limit_data", toxicity=0.5, bytes=1)
            hits = []
            for _ in range(30):
                with dial(it.listen) as connection:
                    connection.sendall(b"ab")
                    try:
                        hits.append(read_exactly(connection, 2) != b"ab")
                    except (EOFError, ConnectionResetError):
                        hits.append(True)
            return hits

    first = draws(7)
    assert (first == draws(7)) == (server == "embedded")
    assert first != draws(8)
    assert 4 <= sum(first) <= 26


@shows("What limit_data leaves behind")
def test_limit_data_leaves_goroutines_behind() -> None:
    """The embedded one leaves nothing, as test_server_stress.py counts."""

    def goroutines() -> int:
        found = re.search(r"^go_goroutines (\d+)", it.client.get("/metrics").text, re.MULTILINE)
        assert found
        return int(found[1])

    with upstream(pour) as address, bench("real", address, "-runtime-metrics") as it:
        it.add("limit_data", bytes=1)
        before = goroutines()
        for _ in range(20):
            with dial(it.listen) as connection, contextlib.suppress(OSError):
                while connection.recv(100):
                    pass
        threading.Event().wait(PATIENCE_S / 3)  # time for all that would end
        assert goroutines() >= before + 20
