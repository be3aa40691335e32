"""The part of an answer that a program took is read from its bytes, and told when they are whole or over."""

from types import SimpleNamespace
from typing import Any

import pytest

from chaoslab.core.fault import BrokenFault
from chaoslab.seams.services.line import ClientEnd
from chaoslab.worlds.virtual.network import _client_side as client_side
from chaoslab.worlds.virtual.network._client_side import ClientSide

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n"
BARE = b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nok"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Program:
    """A program's end of a connection, with requests under way; `seen` is what is told of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
        self.seen: list[tuple[int, ClientEnd]] = []
        self.machine = SimpleNamespace(now=1.0, lapsed_at=-1.0, schedule_now=lambda _, error: self.raised.append(error))
        self.raised: list[Any] = []
        self.closed: list[str] = []
        self.left = False
        client = SimpleNamespace(machine=self.machine, has_readable_data=lambda: self.left)
        end = SimpleNamespace(
            peer=client, machine=self.machine, reset=lambda: self.closed.append("reset"),
            close=lambda: self.closed.append("close"),
        )  # fmt: skip
        outages = SimpleNamespace(
            add_connection=lambda *_: None, remove_connection=lambda *_: self.closed.append("over")
        )
        seam: Any = SimpleNamespace(outages=outages, turns=None, book=None, models={})
        self.waited: list[int] = []
        monkeypatch.setattr(client_side, "make_service_attempt", lambda *call: self._attempt(call[2]))
        self.side = ClientSide(end, seam, "shop", lambda *_: None)  # type: ignore[arg-type]
        for method in methods:
            self.side.build_attempt(SimpleNamespace(method=method.encode(), target=b"/", headers=[]), b"")  # type: ignore[arg-type]

    def _attempt(self, request: Any) -> Any:
        number = self.count = getattr(self, "count", 0) + 1

        def ended(seen: ClientEnd) -> None:
            self.seen.append((number, seen))
            if request.target == "/broken":
                raise BrokenFault("it fails")

        attempt: Any = SimpleNamespace(
            request=request, name="shop", began_s=0.5, waited_s=None, handle_client_end=ended
        )

        def waited() -> None:
            self.waited.append(number)
            attempt.waited_s = 0.2

        attempt.note_client_timeout = waited
        return attempt

    def takes(self, data: bytes, size: int) -> Any:
        for begin in range(0, len(data), size):
            self.side.handle_read(data[begin : begin + size])
        return self


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("method", "data", "over", "error", "status", "body"),
    [
        ("GET", OK, "", None, 200, b"ok"), ("GET", CHUNKS, "", None, 200, b"ok!"),
        ("GET", OK[:-1], "closed", "closed", 200, b"o"),
        ("GET", OK[:-1], "reset", "reset", 200, b"o"), ("GET", OK[:-1], "left", "left", 200, b"o"),
        ("GET", OK[:20], "left", "left", None, b""), ("GET", b"", "closed", "closed", None, b""),
        ("GET", CHUNKS[:-7], "closed", "closed", 200, b"ok!"), ("GET", BARE, "closed", None, 200, b"ok"),
        ("GET", BARE, "reset", "reset", 200, b"ok"), ("HEAD", OK[:-2], "", None, 200, b""),
        ("HEAD", CHUNKS[: CHUNKS.index(b"2\r\nok")], "", None, 200, b""),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", "", None, 204, b""),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "", None, 304, b""),
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\n" + OK, "", None, 200, b"ok"),
        ("GET", CHUNKS.replace(b"2\r\nok", b"x\r\nok"), "", "garbled", 200, b""),
        ("GET", OK.replace(b"Content-Length: 2", b"Content-Length: 0")[:-2], "", None, 200, b""),
        ("HEAD", b"HTTP/1.1 2000 OK\r\nX-A: 1\r\n\r\n", "", "garbled", None, b""),
        ("HEAD", b"HTTP/1.1 204 No\r\nX-A: 1\r\n\r\n", "", None, 204, b""),
    ],
)  # fmt: skip
def test_an_answer_is_told_when_it_is_whole_or_over(
    method: str, data: bytes, over: str, error: str | None, status: int | None, body: bytes, size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    program = Program(monkeypatch, method).takes(data, size)
    if over:
        assert program.seen == []
        program.side.handle_end(over)
    ((_, seen),) = program.seen
    assert (seen.error, seen.answer and seen.answer[0], seen.answer[2] if seen.answer else b"") == (error, status, body)
    if error is None:
        assert seen.bytes == len(data)
    program.side.handle_end("closed")
    assert len(program.seen) == 1


@pytest.mark.parametrize("size", [1, 10_000])
def test_the_bytes_of_answers_that_follow_each_other_are_told_apart(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    later = b"HTTP/1.1 100 Continue\r\n\r\n" + OK.replace(b"ok", b"no")
    program = Program(monkeypatch, *["GET"] * 5).takes(OK + CHUNKS + later + BARE, size)
    assert [(number, seen.bytes, seen.answer[2]) for number, seen in program.seen] == [
        (1, len(OK), b"ok"), (2, len(CHUNKS), b"ok!"), (3, len(later), b"no"),
    ]  # fmt: skip
    program.side.handle_end("closed")
    assert [(seen.error, seen.bytes) for _, seen in program.seen[3:]] == [(None, len(BARE)), ("closed", 0)]
    assert program.closed == ["over"]
    program.side.build_attempt(SimpleNamespace(method=b"GET", target=b"/", headers=[]), b"")
    assert program.seen[-1][1].error == "closed"  # nothing comes over it any more


def test_a_stream_is_told_with_its_times_and_a_wait_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, "GET").takes(EVENTS + b"9\r\ndata: a\n\n\r\n", 1000)
    program.machine.now = 4.0
    program.side.handle_timeout()
    program.side.end_exchange_as_hang_up()
    ((_, seen),) = program.seen
    assert (seen.error, seen.waited, seen.gave_up, program.waited) == ("left", True, True, [1])
    assert seen.streamed is not None
    assert (seen.streamed.first_byte_s, seen.streamed.silence_s, seen.streamed.size) == (0.5, 3.0, 9)
    assert seen.streamed.ended == "timed_out"


def test_a_stream_without_a_length_began_with_its_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, "GET")
    for now_s, part in (
        (1.0, EVENTS.replace(b"Transfer-Encoding: chunked\r\n", b"")),
        (2.0, b"data: a\n\n"),
        (4.0, b"x"),
    ):
        program.machine.now = now_s
        program.side.handle_read(part)
    program.side.handle_end("closed")
    ((_, seen),) = program.seen
    assert seen.streamed is not None
    assert (seen.streamed.first_byte_s, seen.streamed.last_byte_s, seen.streamed.size) == (1.5, 3.5, 10)


@pytest.mark.parametrize(("now_s", "left", "waited"), [(1.0, False, False), (2.0, False, True), (2.0, True, False)])
def test_one_who_leaves_waited_if_time_passed_and_nothing_was_there(
    now_s: float, left: bool, waited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(monkeypatch, "GET").takes(OK[:-1], 1000)
    program.machine.now, program.left = now_s, left
    program.side.handle_end("left")
    ((_, seen),) = program.seen
    assert (seen.waited, seen.gave_up) == (waited, False)
    program.machine.lapsed_at = now_s
    later = Program(monkeypatch, "GET")
    later.machine.lapsed_at = 1.0
    later.side.handle_end("left")
    assert later.seen[0][1].gave_up


def test_a_process_that_dies_resets_what_is_under_way_and_closes_what_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, idle = Program(monkeypatch, "GET"), Program(monkeypatch)
    busy.side.break_connection()
    idle.side.break_connection()
    idle.side.end_exchange_as_hang_up()
    assert (busy.closed, idle.closed) == (["reset"], ["close"])


def test_a_fault_that_is_broken_ends_the_run_and_not_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    program.side.build_attempt(SimpleNamespace(method=b"GET", target=b"/broken", headers=[]), b"")  # type: ignore[arg-type]
    program.side.handle_read(OK)
    assert [str(error) for error in program.raised] == ["it fails"]
