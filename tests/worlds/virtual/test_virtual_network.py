"""A blocking socket on the virtual network meets resets, ends and refusals as on loopback: the same stories."""

import contextlib
import errno
import io
import select as real_select
import socket
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest

from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.machine.machine import STARTS_S
from chaoslab.worlds.virtual.network import _sockets as sockets
from chaoslab.worlds.virtual.network._sockets import VirtualSocket
from chaoslab.worlds.virtual.network.network import TRIP_S, WINDOW_BYTES, Network, NetworkEnd
from chaoslab.worlds.virtual.world import World
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

SOON_S = 0.02
"""Longer than anything is on its way."""
RST_ON_CLOSE = struct.pack("ii", 1, 0)


class Other(Protocol):
    """The other end of the socket under test."""

    def say(self, data: bytes) -> None: ...
    def end(self) -> None: ...
    def close(self) -> None: ...
    def reset(self) -> None: ...


def nobody(end: NetworkEnd) -> None:
    """Says nothing to who comes."""


class Real:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def say(self, data: bytes) -> None:
        self._sock.sendall(data)

    def end(self) -> None:
        self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._sock.close()

    def reset(self) -> None:
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self._sock.close()


class Virtual:
    def __init__(self, end: NetworkEnd) -> None:
        self.say, self.end, self.close, self.reset = end.write, end.end_stream, end.close, end.reset


Pause = Callable[[], None]
Story = Callable[[Any, Other, Pause], Iterator[Any]]


def said_then_reset(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    other.say(b"abc")
    other.reset()
    pause()
    for _ in range(3):
        yield sock.recv, 10
    yield sock.send, b"x"


def ended_then_reset(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    other.say(b"abc")
    other.end()
    pause()
    yield sock.send, b"never read"
    pause()
    other.close()
    pause()
    for _ in range(3):
        yield sock.recv, 10
    yield sock.send, b"x"


def closed_under_a_writer(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    other.close()
    pause()
    yield sock.send, b"1"
    pause()
    yield sock.recv, 10
    yield sock.send, b"2"
    yield sock.send, b"3"


def reset_under_a_writer(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    other.reset()
    pause()
    yield sock.send, b"1"
    yield sock.send, b"2"
    yield sock.recv, 10


def closed_unread(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    yield sock.send, b"never read"
    pause()
    other.close()
    pause()
    yield sock.recv, 10
    yield sock.recv, 10


def half_closed(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    sock.shutdown(socket.SHUT_WR)
    pause()
    other.say(b"still")
    other.end()
    pause()
    yield sock.recv, 10
    yield sock.recv, 10
    yield sock.send, b"x"


def silent(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:  # noqa: ARG001
    sock.settimeout(SOON_S)
    yield sock.recv, 10
    sock.setblocking(False)
    yield sock.recv, 10


def deaf(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    other.say(b"abc")
    pause()
    sock.settimeout(SOON_S)
    sock.shutdown(socket.SHUT_RD)
    for _ in range(3):
        yield sock.recv, 10
    yield sock.send, b"x"


def over(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    del other, pause
    sock.settimeout(SOON_S)
    sock.shutdown(socket.SHUT_RDWR)
    yield sock.recv, 10
    yield sock.send, b"x"


def gone(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    del other, pause
    sock.close()
    yield sock.recv, 10
    yield sock.send, b"x"
    yield sock.connect, ("127.0.0.1", 9)
    yield lambda _: sock.fileno(), None


def in_files(sock: Any, other: Other, pause: Pause) -> Iterator[Any]:
    for mode, size in (("rwb", None), ("rb", 4), ("r", None)):
        other.say(b"one\ntwo\n")
        pause()
        with sock.makefile(mode, size) as file:
            yield file.readline, -1
            yield file.readline, -1
            if "w" in mode:
                yield file.write, b"abc"
    for mode, size, words in (("wb", 2, b"abc"), ("w", None, "abc")):
        with sock.makefile(mode, size) as file:
            yield file.write, words


STORIES: list[Story] = [
    said_then_reset, ended_then_reset, closed_under_a_writer, reset_under_a_writer, closed_unread, half_closed, silent,
    deaf, over, gone, in_files,
]  # fmt: skip


def met(steps: Iterator[Any]) -> list[str]:
    """The outcome of each step: what it gave, or the error's name."""
    found = []
    for call, argument in steps:
        try:
            found.append(repr(call(argument)))
        except OSError as error:
            found.append(type(error).__name__)
    return found


def over_loopback(story: Story) -> list[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        accepted, _ = listener.accept()
        with contextlib.closing(accepted):
            return met(story(sock, Real(accepted), lambda: _nothing_for(SOON_S)))


def _nothing_for(seconds: float) -> None:
    """Loopback has no way to ask whether a reset has arrived."""
    first, second = socket.socketpair()
    with first, second, contextlib.suppress(TimeoutError):
        first.settimeout(seconds)
        first.recv(1)


def new_world() -> World:
    return World(1, now=datetime(2026, 6, 1, tzinfo=UTC))


def virtually(story: Story) -> list[str]:
    world = new_world()

    def first() -> list[str]:
        accepted: list[NetworkEnd] = []
        with VirtualSocket() as sock:
            sock.connect(world.network.listen("127.0.0.1", 0, accepted.append))
            return met(story(sock, Virtual(accepted[0]), lambda: world.machine.sleep(SOON_S)))

    return world.run_program(first)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_socket_meets_the_same_on_either_network(story: Story) -> None:
    assert virtually(story) == over_loopback(story)


def test_nobody_listening_refuses_and_a_stranger_is_not_covered() -> None:
    world = new_world()

    def first() -> list[str]:
        network, found = world.network, []
        gone = network.listen("gone", 80, nobody)
        network.stop_listening("gone", 80)
        for address in (gone, ("127.0.0.1", 9), ("203.0.113.1", 80)):
            try:
                VirtualSocket().connect(address)
            except (OSError, Unsupported) as error:
                found.append(type(error).__name__)
        world.ended_by = None
        return found

    assert world.run_program(first) == ["ConnectionRefusedError", "ConnectionRefusedError", "Unsupported"]


def dialled(make: Callable[[], Any], wait: Callable[..., Any], there: Any, gone: Any) -> list[Any]:
    """Dials without waiting: the connection, or its failure, shows by waiting to write."""
    found = []
    for address in (there, gone):
        with make() as sock:
            sock.setblocking(False)
            found.append(sock.connect_ex(address))
            found.append(wait([], [sock], [], 5.0) == ([], [sock], []))
            found += [sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for _ in range(2)]
            if address is there:
                found += [sock.connect_ex(address) for _ in range(2)]
                found.append(sock.send(b"x"))
        with make() as sock:
            sock.setblocking(False)
            with pytest.raises(BlockingIOError) as begun:
                sock.connect(address)
            wait([], [sock], [], 5.0)
            found += [begun.value.errno, sock.connect_ex(address)]
    return found


def test_a_connection_that_nobody_waits_for_comes_about_on_either_network() -> None:
    world = new_world()
    with socket.create_server(("127.0.0.1", 0)) as there, socket.create_server(("127.0.0.1", 0)) as gone:
        places = there.getsockname(), gone.getsockname()
        gone.close()
        over_loopback = dialled(socket.socket, real_select.select, *places)
    met_virtually = world.run_program(
        lambda: dialled(VirtualSocket, sockets.select, world.network.listen("127.0.0.1", 0, nobody), ("127.0.0.1", 9))
    )
    assert met_virtually == over_loopback


def test_a_connection_that_is_still_on_its_way_is_neither_made_twice_nor_left_open() -> None:
    world, accepted = new_world(), list[NetworkEnd]()

    def first() -> list[Any]:
        there = world.network.listen("127.0.0.1", 0, accepted.append)
        with VirtualSocket() as sock:
            sock.setblocking(False)
            codes = [sock.connect_ex(there), sock.connect_ex(there)]
            at_once = sockets.select([sock], [sock], [], 0)
            with pytest.raises(BlockingIOError):
                sock.send(b"x")
        with VirtualSocket() as slow:
            slow.settimeout(TRIP_S)
            codes.append(slow.connect_ex(there))
        world.machine.sleep(1)
        return [codes, at_once, [end.ended for end in accepted]]

    codes = [errno.EINPROGRESS, errno.EALREADY, errno.EAGAIN]
    assert world.run_program(first) == [codes, ([], [], []), [True, True]]


@pytest.mark.parametrize(
    ("waits", "ends", "met"),
    [
        (lambda sock: sock.recv(10), lambda sock: sock.shutdown(socket.SHUT_RD), b""),
        (lambda sock: sock.send(b"never gone"), lambda sock: sock.shutdown(socket.SHUT_WR), "[Errno 32] Broken pipe"),
        (lambda sock: sock.recv(10), lambda sock: sock.close(), "[Errno 9] Bad file descriptor"),
    ],
    ids=["the reading is ended", "the writing is ended", "the socket is closed"],
)
def test_a_thread_that_waits_is_told_when_another(
    waits: Callable[[VirtualSocket], Any], ends: Callable[[VirtualSocket], None], met: Any
) -> None:
    world = new_world()

    def first() -> tuple[Any, float]:
        sock = VirtualSocket()
        sock.connect(world.network.listen("127.0.0.1", 0, nobody))
        sock.send(bytes(WINDOW_BYTES + 1))
        world.machine.schedule_after(5.0, ends, sock)
        began = world.machine.now
        try:
            found: Any = waits(sock)
        except OSError as error:
            found = str(error)
        return found, world.machine.now - began

    found, took_s = world.run_program(first)
    assert found == met
    assert took_s == pytest.approx(5.0)


def test_a_socket_of_an_earlier_world_has_one_number_of_another_range() -> None:
    with new_world().enter_world():
        own, other = VirtualSocket(), VirtualSocket()
    with new_world().enter_world():
        new = VirtualSocket()
        assert [each.fileno() - sockets.FIRST_FD for each in (own, other, new, own, other)] == [-1, -2, 1, -1, -2]


def test_waits_that_are_over_leave_nothing_behind() -> None:
    world = new_world()

    def first() -> int:
        sock = VirtualSocket()
        sock.connect(world.network.listen("127.0.0.1", 0, nobody))
        sock.settimeout(0.001)
        for _ in range(100):
            with contextlib.suppress(TimeoutError):
                sock.recv(10)
            sockets.select([sock], [], [], 0.001)
        return len(sock._waiters)

    assert world.run_program(first) == 0


def test_a_port_that_is_left_to_the_network_is_one_that_nobody_has() -> None:
    network = new_world().network
    chosen = [network.listen("127.0.0.1", port, nobody) for port in range(32770, 32780)]
    addresses = [network.listen("127.0.0.1", 0, nobody) for _ in range(50)]
    assert addresses[0] == ("127.0.0.1", 32768)  # where Linux begins too
    assert len({*chosen, *addresses}) == 60


def test_where_somebody_listens_nobody_else_can_until_he_is_gone() -> None:
    network = new_world().network
    for name in ("127.0.0.1", "search"):
        network.listen(name, 80, nobody)
    with pytest.raises(OSError, match="in use: localhost:80") as taken:
        network.listen("localhost", 80, nobody)
    assert taken.value.errno == errno.EADDRINUSE
    network.stop_listening("localhost", 80)
    network.listen("127.0.0.1", 80, nobody)


def test_a_writer_waits_when_the_window_is_full_and_goes_on_a_trip_after_there_is_room() -> None:
    world = new_world()

    def first() -> tuple[int, float]:
        accepted: list[NetworkEnd] = []
        sock = VirtualSocket()
        sock.connect(world.network.listen("127.0.0.1", 0, accepted.append))
        (reader,) = accepted
        sock.send(bytes(WINDOW_BYTES))
        sock.send(b"and one more")
        world.machine.schedule_after(5.0, lambda: [reader.receive_bytes() for _ in range(40)])
        began = world.machine.now
        sock.send(b"waits")
        return sum(1 for _ in iter(reader.receive_bytes, b"")), world.machine.now - began

    left, waited_s = world.run_program(first)
    assert left == 0
    assert waited_s == pytest.approx(5.0 + TRIP_S)


def test_bytes_and_their_end_keep_their_order_and_take_one_trip() -> None:
    world = new_world()
    heard: list[tuple[float, bytes | str]] = []

    class Ear:
        def __init__(self, end: NetworkEnd) -> None:
            self.end, end.receiver = end, self

        def handle_arrival(self) -> None:
            now = round((world.machine.now - STARTS_S) / TRIP_S, 3)
            while data := self.end.receive_bytes():
                heard.append((now, data))
            if self.end.ended:
                heard.append((now, "end"))

        def handle_reset(self, error: OSError) -> None:
            raise AssertionError(error)

        def handle_write_room(self) -> None:
            pass

    def first() -> None:
        sock = VirtualSocket()
        sock.connect(world.network.listen("127.0.0.1", 0, Ear))
        for word in (b"1", b"2"):
            sock.send(word)
        world.machine.sleep(TRIP_S)
        sock.send(b"3")
        sock.close()
        world.machine.sleep(1)

    world.run_program(first)
    assert heard == [(3.0, b"12"), (4.0, b"3"), (4.0, "end")]  # what is sent at one moment travels together


def test_every_name_has_an_address_of_its_own_and_keeps_it() -> None:
    network = new_world().network
    hosts = [f"host{n}" for n in range(300)]
    addresses = [network.listen(host, 80, nobody)[0] for host in hosts]
    assert addresses[:2] == ["10.77.0.2", "10.77.0.3"]
    assert addresses[248:250] == ["10.77.0.250", "10.77.1.1"]
    assert len(set(addresses)) == 300
    assert network.listen("host7", 81, nobody) == (addresses[7], 81)
    assert [network.find_name(address) for address in addresses] == hosts
    assert [network.find_address(host) for host in ("localhost", "host0", "10.0.0.9", "::1", "nobody")] == [
        "127.0.0.1", "10.77.0.2", "10.0.0.9", "::1", None,
    ]  # fmt: skip
    assert (network.find_name("127.0.0.1"), network.find_name("10.0.0.9")) == ("localhost", "10.0.0.9")
    assert network.format_address(("10.77.0.2", 80)) == "host0:80"


def test_a_name_is_looked_up_as_by_the_system_and_a_strangers_is_not_found() -> None:
    network = new_world().network
    place, _ = network.listen("search", 80, nobody)

    def found(host: str | bytes | None, port: Any) -> tuple[Any, ...]:
        ((family, kind, protocol, canonical, address),) = network.resolve_host(host, port)
        assert (family, kind, protocol, canonical) == (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return address  # type: ignore[no-any-return]

    assert [found("search", 80), found(b"search", "80"), found("search", None), found("search", "")] == [
        (place, 80), (place, 80), (place, 0), (place, 0),
    ]  # fmt: skip
    assert [found(None, 1), found("", 1), found("10.9.8.7", 1)] == [("127.0.0.1", 1)] * 2 + [("10.9.8.7", 1)]
    with pytest.raises(LookupError, match="stranger"):
        network.resolve_host("stranger", 80)


def test_who_has_left_is_known_by_name_and_listens_no_more() -> None:
    network = new_world().network
    search, plain = network.listen("search", 80, nobody), network.listen("10.0.0.9", 80, nobody)
    assert [network.is_known_host(host) for host in ("search", "10.0.0.9", "localhost", "10.0.0.8", "stranger")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert (network.is_listening(search), network.is_listening((search[0], 81))) == (True, False)
    for host in ("search", "10.0.0.9", "stranger"):
        network.stop_listening(host, 80)
    assert (network.is_listening(search), network.is_listening(plain)) == (False, False)
    assert (network.is_known_host("search"), network.is_known_host("10.0.0.9")) == (True, False)


class Diary:
    """The events that an end tells of, and their times: in trips since the world began."""

    def __init__(self, world: World, end: NetworkEnd) -> None:
        self.world, self.end, self.told = world, end, list[tuple[str, float]]()
        end.receiver = self

    def _tell(self, what: str) -> None:
        self.told.append((what, round((self.world.machine.now - STARTS_S) / TRIP_S, 3)))

    def handle_arrival(self) -> None:
        self._tell("arrived")

    def handle_reset(self, error: OSError) -> None:
        self._tell(type(error).__name__)

    def handle_write_room(self) -> None:
        self._tell("drained")


def connected(world: World) -> tuple[NetworkEnd, NetworkEnd]:
    """Both ends of a connection, the caller's first; two trips and a half after it was dialled."""
    ends: list[Any] = []
    accepted: list[NetworkEnd] = []
    world.network.open_connection(world.network.listen("127.0.0.1", 0, accepted.append), ends.append)
    world.machine.sleep(2.5 * TRIP_S)
    return ends[0], accepted[0]


def test_a_connection_takes_two_trips_and_knows_both_addresses() -> None:
    world = new_world()

    def first() -> list[Any]:
        there = world.network.listen("127.0.0.1", 0, nobody)
        met: list[Any] = []
        world.network.open_connection(there, lambda end: met.append((end, world.machine.now)))
        world.network.open_connection(("127.0.0.1", 9), lambda end: met.append((end, world.machine.now)))
        world.machine.sleep(1)
        (ours, at), (refusal, refused_at) = met
        assert [round((moment - STARTS_S) / TRIP_S, 3) for moment in (at, refused_at)] == [2, 2]
        assert (ours.peer_address, ours.peer.address, ours.peer.peer_address) == (there, there, ours.address)
        assert ours.peer.peer is ours
        return [type(refusal), refusal.errno]

    assert world.run_program(first) == [ConnectionRefusedError, errno.ECONNREFUSED]


def test_an_end_is_full_beyond_the_window_and_says_how_much_waits() -> None:
    world = new_world()

    def first() -> list[Any]:
        ours, theirs = connected(world)
        diary = Diary(world, ours)
        ours.write(bytes(1024 * 1024))
        states: list[Any] = [(ours.is_full, ours.bytes_beyond_window)]
        ours.write(b"abc")
        states.append((ours.is_full, ours.bytes_beyond_window))
        world.machine.sleep(2.5 * TRIP_S)
        states.append(
            ([len(theirs.receive_bytes(2)), len(theirs.receive_bytes(1))], ours.is_full, ours.bytes_beyond_window)
        )
        rest = len(theirs.receive_bytes(2 * WINDOW_BYTES)), theirs.receive_bytes(), theirs.receive_bytes()
        states.append((rest, ours.is_full, ours.bytes_beyond_window, theirs.has_readable_data()))
        world.machine.sleep(2.5 * TRIP_S)
        return [*states, diary.told]

    assert world.run_program(first) == [
        (False, 0),
        (True, 3),
        ([2, 1], False, 0),
        ((WINDOW_BYTES, b"", b""), False, 0, False),
        [("drained", 6.0)],  # once, a trip after there was room again
    ]


def test_what_is_there_to_be_read_is_taken_in_bites_of_at_most_64_kilobytes() -> None:
    world = new_world()

    def first() -> list[int]:
        ours, theirs = connected(world)
        ours.write(bytes(65536 + 10))
        assert not theirs.has_readable_data()
        world.machine.sleep(2.5 * TRIP_S)
        assert theirs.has_readable_data()
        return [len(theirs.receive_bytes()), len(theirs.receive_bytes()), len(theirs.receive_bytes())]

    assert world.run_program(first) == [65536, 10, 0]


def test_an_end_of_the_stream_is_told_once_and_nothing_is_written_after_it() -> None:
    world = new_world()

    def first() -> list[Any]:
        ours, theirs = connected(world)
        diary = Diary(world, theirs)
        ours.write(b"")
        ours.write(b"last")
        ours.end_stream()
        ours.end_stream()
        with pytest.raises(BrokenPipeError):
            ours.write(b"more")
        world.machine.sleep(2.5 * TRIP_S)
        ours.close()
        ours.close()
        world.machine.sleep(2.5 * TRIP_S)
        return [diary.told, theirs.ended, theirs.receive_bytes(), theirs.receive_bytes(), theirs.has_readable_data()]

    assert world.run_program(first) == [[("arrived", 3.5), ("arrived", 3.5)], True, b"last", b"", True]


def test_a_reset_is_heard_once_by_the_other_end_alone() -> None:
    world = new_world()

    def first() -> list[Any]:
        ours, theirs = connected(world)
        mine, yours = Diary(world, ours), Diary(world, theirs)
        theirs.write(b"x")
        ours.reset()
        ours.reset()
        ours.close()
        world.machine.sleep(3 * TRIP_S)
        with pytest.raises(ConnectionResetError):
            theirs.receive_bytes()
        with pytest.raises(BrokenPipeError):
            theirs.write(b"y")
        return [mine.told, yours.told, ours.has_readable_data(), theirs.receive_bytes()]

    assert world.run_program(first) == [[], [("ConnectionResetError", 3.5)], False, b""]


def test_an_end_that_is_left_behind_is_over_for_whoever_holds_it() -> None:
    world = new_world()

    def first() -> NetworkEnd:
        ours, theirs = connected(world)
        ours.write(b"unread")
        world.machine.sleep(2.5 * TRIP_S)
        diary = Diary(world, theirs)
        theirs.end_without_peer()
        theirs.machine.schedule_after(0.0, theirs._deliver_arrived, b"late")
        world.machine.sleep(1)
        assert diary.told == []
        return theirs

    end = world.run_program(first)
    assert (end.has_readable_data(), end.receive_bytes(), end.ended) == (True, b"", True)
    with pytest.raises(BrokenPipeError):
        end.write(b"x")


@pytest.mark.parametrize("way", ["close", "reset"])
def test_an_end_that_is_closed_keeps_nobody_but_a_writer_who_waits_for_room(way: str) -> None:
    world = new_world()

    def first() -> list[list[Any]]:
        kept = list[list[Any]]()
        for size in (3, WINDOW_BYTES + 3):
            ours, theirs = connected(world)
            diary = Diary(world, ours)
            ours.watcher = Watching()
            ours.write(bytes(size))
            getattr(ours, way)()
            world.machine.sleep(2.5 * TRIP_S)
            told = [ours.receiver is diary, ours.watcher]
            theirs.receive_bytes(size)
            world.machine.sleep(2.5 * TRIP_S)
            kept.append([*told, [what for what, _ in diary.told]])
        return kept

    assert world.run_program(first) == [[False, None, []], [True, None, ["drained"]]]


class Watching:
    """A watcher that is told how a connection ended."""

    def handle_send(self) -> None: ...
    def handle_read(self, data: bytes) -> None: ...
    def handle_timeout(self) -> None: ...
    def handle_end(self, how: str) -> None: ...


def test_a_socket_tells_if_it_blocks_and_makes_files_with_and_without_a_buffer() -> None:
    with World(1, now=datetime(2026, 6, 1, tzinfo=UTC)).enter_world():
        sock = socket.socket()
        told = [sock.getblocking()]
        for timeout_s in (0.0, 2.0, None):
            sock.settimeout(timeout_s)
            told.append(sock.getblocking())
            assert sock.timeout == sock.gettimeout() == timeout_s
        assert sock.getsockname() == ("0.0.0.0", 0)
        of_default = socket.socket(-1, -1, -1)
        assert (of_default.family, of_default.type) == (sock.family, sock.type) == (socket.AF_INET, socket.SOCK_STREAM)
        assert socket.socket(socket.AF_INET6).family == socket.AF_INET6
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE, 4) == struct.pack("i", socket.SOCK_STREAM)
        sock.bind(("127.0.0.1", 0))
        asks: list[Callable[[], object]] = [lambda: sock.bind(("127.0.0.1", 80)), sock.listen]
        for ask in asks:
            with pytest.raises(Unsupported, match=r"^a socket that listens .*serve it with services=\{…\}"):
                ask()
        with sock.makefile("rb", buffering=0) as bare, sock.makefile("rb") as buffered, sock.makefile("r") as text:
            kinds = [type(file) for file in (bare, buffered, text)]
        sock.close()
    assert told == [True, False, True, True]
    assert kinds == [socket.SocketIO, io.BufferedReader, io.TextIOWrapper]


def network(*places: tuple[str, int]) -> Network:
    made = new_world().network
    for host, port in places:
        made.listen(host, port, nobody)
    return made


def test_the_gate_of_a_host_is_that_of_https_or_of_another_port_but_not_that_of_http() -> None:
    there = network(("a", 80), ("a", 8080), ("a", 443), ("a", 7), ("b", 80), ("c", 9), ("c", 8))
    gates: dict[Any, Any] = {}
    held: dict[Any, Any] = there.gates
    for host, port in (("a", 80), ("a", 8080), ("a", 443), ("a", 7), ("b", 80), ("c", 9), ("c", 8)):
        gates[host, port] = held[there.find_address(host), port] = object()
    assert there.find_connection_gate("a") is gates["a", 443]
    assert there.find_connection_gate("b") is None
    assert there.find_connection_gate("c") is gates["c", 9]
    assert there.find_connection_gate("nobody") is None


def test_a_network_may_listen_as_another_does_and_knows_names_and_addresses() -> None:
    first, second = network(("a", 80)), network(("b", 81))
    address = first.listen("10.1.2.3", 5, nobody)
    second.copy_listeners(first)
    assert (second.is_listening(address), second.is_known_host("10.1.2.3"), second.is_known_host("10.1.2.4")) == (
        True,
        True,
        False,
    )
    assert first.heard == {("10.77.0.2", 80), ("10.1.2.3", 5)}
    assert second.heard == {("10.77.0.2", 81), ("10.77.0.2", 80), ("10.1.2.3", 5)}
    assert [first.is_known_host(name) for name in ("a", "b", "localhost", "127.0.0.1")] == [True, False, True, True]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_lookup_that_a_fault_fails_takes_a_trip_and_is_told_and_an_address_needs_none(hidden: bool) -> None:
    told, asked = list[str](), list[str]()

    def gate(step: str) -> Any:
        asked.append(step)
        return (lambda: told.append(step)) if hidden else None

    there = new_world()

    def first() -> list[Any]:
        address = there.network.listen("shop", 80, nobody)
        there.network.gates[address] = gate
        began = there.machine.now
        assert socket.getaddrinfo(address[0], 80)[0][4] == address
        assert asked == []
        try:
            found: Any = socket.getaddrinfo("shop", 80)[0][4] == address
        except socket.gaierror as error:
            found = error.errno, error.strerror
        return [found, asked, told, round((there.machine.now - began) / TRIP_S)]

    failed = [(socket.EAI_NONAME, "Name or service not known"), ["lookup"], ["lookup"], 1]
    assert there.run_program(first) == (failed if hidden else [True, ["lookup"], [], 0])
