"""A client that hangs up while its service is at work has no reply, whatever the service says afterwards."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoslab.core.events import CallFinished, Effect, FaultWitnessed, LabWarning
from chaoslab.seams.gateway import _connection
from chaoslab.surfaces import gateway
from tests.gateway.parts import Shop, history, shop, standing
from tests.measure_parts import uninjected
from tests.seams.lab_parts import eventually
from tests.waiting import DEADLINE_S, HUNG_S

POST = b"POST /crm/refunds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n" + b'{"order":1}'
GET = b"GET /crm/price HTTP/1.1\r\nHost: localhost\r\n\r\n"
ELSEWHERE = {"fault": "tool_error", "target": "crm", "calls": [99]}
"""A fault that could hit each request of its route, and hits none here."""


@pytest.fixture(params=[[], [ELSEWHERE]], ids=["no fault", "one elsewhere"])
def faults(request: pytest.FixtureRequest) -> Any:
    return request.param


@contextmanager
def slow() -> Iterator[tuple[Any, threading.Event]]:
    """A service that begins to work and waits for the event before it answers a POST."""
    go_on = threading.Event()

    class Slow(Shop):
        def do_POST(self) -> None:
            self.server.begun += 1
            go_on.wait(DEADLINE_S)
            super().do_POST()

    with shop() as server:
        server.RequestHandlerClass, server.begun = Slow, 0
        try:
            yield server, go_on
        finally:
            go_on.set()


def connected(running: Any) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(running.address.rpartition(":")[2])), 20)


def ends(logs: Path) -> list[tuple[Any, ...]]:
    return [(end.ok, end.status, end.error, end.via) for _, end in history(logs).find_events(CallFinished)]


@pytest.mark.parametrize("kept", [False, True], ids=["first", "kept"])
@pytest.mark.parametrize("faults", [[], [ELSEWHERE], [{"fault": "wrong_value", "target": "crm", "calls": [2]}]])
def test_its_call_timed_out_and_the_work_is_done_all_the_same(
    faults: list[dict[str, Any]], tmp_path: Path, *, kept: bool
) -> None:
    with slow() as (server, go_on), standing(tmp_path, [f"crm={server.url}"], *faults) as running:
        with connected(running) as line:
            if kept:
                line.sendall(GET)
                assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
            line.sendall(POST)
            eventually(lambda: server.begun == 1)
        eventually(lambda: len(ends(tmp_path)) == 1 + kept)
        assert ends(tmp_path)[-1] == (False, None, "timed_out", "service")
        assert [*history(tmp_path).find_events(Effect)] == []
        go_on.set()
        eventually(lambda: len([*history(tmp_path).find_events(Effect)]) == 1)
    assert len(ends(tmp_path)) == 1 + kept
    assert [event.content for _, event in history(tmp_path).find_events(Effect)] == [{"order": 1}]
    assert [*history(tmp_path).find_events(FaultWitnessed)] == []
    assert [(one.target, one.error, one.count) for one in uninjected(history(tmp_path))] == [("crm", "timed_out", 1)]


def test_one_that_asks_on_before_it_has_its_reply_has_not_left(faults: list[dict[str, Any]], tmp_path: Path) -> None:
    with slow() as (server, go_on), standing(tmp_path, [f"crm={server.url}"], *faults) as running:
        with connected(running) as line:
            line.sendall(POST + GET)
            eventually(lambda: server.begun == 1)
            go_on.set()
            data = b""
            while data.count(b"HTTP/1.1 200") < 2:
                data += line.recv(1 << 16)
        eventually(lambda: len(ends(tmp_path)) == 2)
    assert ends(tmp_path) == [(True, 200, None, "service")] * 2


@pytest.mark.parametrize("half", [False, True], ids=["whole", "half closed"])
def test_the_end_of_the_trial_cuts_the_call_of_one_that_still_waits(
    faults: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, half: bool
) -> None:
    monkeypatch.setattr(gateway, "GRACE_S", 0.01)
    monkeypatch.setattr(_connection, "LEFT_S", HUNG_S)
    with slow() as (server, _), standing(tmp_path, [f"crm={server.url}"], *faults) as running:
        line = connected(running)
        line.sendall(POST)
        eventually(lambda: server.begun == 1)
        if half:
            line.shutdown(socket.SHUT_WR)
            eventually(lambda: any(attempt.waited_s for attempt in running.shared.under_way))
        running.end_trial()
        line.close()
    assert [error for _, _, error, _ in ends(tmp_path)] == ["timed_out" if half else "open at the trial's end"]


def test_a_request_that_may_have_an_effect_yet_goes_on_after_the_answer(
    faults: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gateway, "GRACE_S", 0.01)
    with slow() as (server, go_on), standing(tmp_path, [f"crm={server.url}"], *faults) as running:
        with connected(running) as line:
            line.sendall(POST)
            eventually(lambda: server.begun == 1)
        running.end_trial(go_on.set, settle_s=20)
        assert running.shared.list_pending_requests() == []
    assert len([*history(tmp_path).find_events(Effect)]) == 1
    assert capsys.readouterr().err == ("chaoslab: waiting up to 20 s for crm 1.1 POST /refunds (Ctrl-C: no longer)\n")


def test_one_that_is_not_over_in_time_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gateway, "GRACE_S", 0.01)
    with slow() as (server, go_on), standing(tmp_path, [f"crm={server.url}"]) as running:
        with connected(running) as line, connected(running) as reader:
            line.sendall(POST)
            reader.sendall(b"GET /crm/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            eventually(lambda: server.begun == 1)
            running.end_trial(settle_s=0.02)
        go_on.set()
    said = "still under way after the answer, so what it does is not known: crm 1.1 POST /refunds"
    assert said in [event.message for _, event in history(tmp_path).find_events(LabWarning)]
    assert f"warning: {said}\n" in capsys.readouterr().err


def test_the_service_is_told_that_its_client_has_left(faults: list[dict[str, Any]], tmp_path: Path) -> None:
    """It calls its work off, as it would have without the gateway, so there is no effect."""
    begun, told = threading.Event(), threading.Event()

    def serve(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line:
            line.recv(1 << 16)
            begun.set()
            line.settimeout(DEADLINE_S)
            if line.recv(1 << 16) == b"":
                told.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with standing(tmp_path, [f"crm=http://127.0.0.1:{listener.getsockname()[1]}"], *faults) as running:
            with connected(running) as line:
                line.sendall(POST)
                assert begun.wait(DEADLINE_S)
            assert told.wait(DEADLINE_S)
            eventually(lambda: running.shared.list_pending_requests() == [])
    assert ends(tmp_path) == [(False, None, "timed_out", "service")]
    assert [*history(tmp_path).find_events(Effect)] == []


def test_one_that_ends_its_own_direction_has_its_answer(
    faults: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_connection, "LEFT_S", HUNG_S)
    with shop() as server, standing(tmp_path, [f"crm={server.url}"], *faults) as running:
        with connected(running) as line:
            line.sendall(POST + GET)
            line.shutdown(socket.SHUT_WR)
            data = b"".join(iter(lambda: line.recv(1 << 16), b""))
        assert data.count(b"HTTP/1.1 200") == 2
    assert [end[:3] for end in ends(tmp_path)] == [(True, 200, None)] * 2


def test_one_that_ends_its_own_direction_has_a_late_answer_too(tmp_path: Path) -> None:
    """Its call counts as one that timed out, since a program that ends looks the same."""
    with slow() as (server, go_on), standing(tmp_path, [f"crm={server.url}"]) as running, connected(running) as line:
        line.sendall(POST)
        line.shutdown(socket.SHUT_WR)
        eventually(lambda: len(ends(tmp_path)) == 1)
        go_on.set()
        assert b"".join(iter(lambda: line.recv(1 << 16), b"")).startswith(b"HTTP/1.1 200")
    assert [end[:3] for end in ends(tmp_path)] == [(False, None, "timed_out")]
