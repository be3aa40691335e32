"""The proxy between a client on standard input and output and a server over streamable HTTP, with the SDK on both."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chaoslab.cli import main
from chaoslab.core.events import CallFinished, Effect, FaultWitnessed
from chaoslab.core.exchange import Reply
from tests import warm
from tests.gateway.parts import history
from tests.gateway.test_mcp_proxy import ASKED, session
from tests.seams.lab_parts import Heard, said, site
from tests.waiting import DEADLINE_S, HUNG_S

SERVER = """
import socket, sys, uvicorn
from mcp.server.mcpserver import MCPServer
server = MCPServer("shop")
@server.tool()
def refund(order: int) -> str:
    return f"refunded {order}"
@server.tool()
def price(order: int) -> dict[str, int]:
    return {"order": order, "price": 30}
line = socket.create_server(("127.0.0.1", 0))
print(line.getsockname()[1], flush=True)
app = server.streamable_http_app(json_response=sys.argv[1] == "json")
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[line])
"""


@pytest.fixture(scope="module", params=["json", "events"])
def url(request: Any) -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", SERVER, request.param], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        server.terminate()


def test_calls_meet_the_faults_and_everything_else_passes(url: str, tmp_path: Path) -> None:
    fault = {"fault": "reset_peer", "target": "refund", "calls": [1], "attempts": [1]}
    first, second = asyncio.run(session(tmp_path, [fault], ["refund"] * 2, ["--url", url]))
    assert (first, second[:2]) == ((-32000, "Connection closed"), (False, "refunded 17"))
    told = history(tmp_path)
    assert [event.fault for _, event in told.find_events(FaultWitnessed)] == ["reset_peer"]
    assert [event.ok for _, event in told.find_events(CallFinished)] == [False, True]
    assert [event.content for _, event in told.find_events(Effect)][-1] == {"order": 17}


def test_an_error_of_the_way_is_the_calls_error(url: str, tmp_path: Path) -> None:
    """Here a session that was never begun. A call before the end of the client's lines is answered."""
    command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), "--url", url]
    lines = b'[garbage\n{"id": 7, "method": 3}\n' + json.dumps(ASKED).encode() + b"\n"
    done = subprocess.run(command, input=lines, capture_output=True, timeout=HUNG_S, check=True)
    errors = {answer["id"]: answer["error"]["message"] for answer in map(json.loads, done.stdout.splitlines())}
    # The second is in the server's own words.
    assert errors == {7: "this is no message of MCP", ASKED["id"]: "Bad Request: Missing session ID"}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--fault", "lost:refund", "--", "true"], "--fault lost:refund: no fault is called 'lost'"),
        (["--", "no-such-command"], "the command 'no-such-command' is not found: give its path"),
        ([], "chaoslab mcp needs a server: --url http://127.0.0.1:3000/mcp, or -- and its command"),
        (["--url", "http://127.0.0.1:1/mcp", "--", "true"], "chaoslab mcp needs a server"),
        (["--url", "127.0.0.1:1"], "--url '127.0.0.1:1' should be an address, as in http://127.0.0.1:3000/mcp"),
        (["--header", "A: b", "--", "true"], "--header goes with --url: a command has no headers"),
        (["--session", "one", "--no-logs", "--", "true"], "--session goes without --no-logs: the proxies of a session"),
        (["--url", "http://127.0.0.1:1/mcp", "--header", "sk-1"], "--header '…' should be a name and a value, as in"),
        (["--url", "http://127.0.0.1:1/mcp", "--effects", "{}"], "--effects should be a list, as in"),
        (["--url", "http://127.0.0.1:1/mcp"], "the upstream server (http://127.0.0.1:1/mcp) cannot be reached"),
    ],
)
def test_a_mistake_is_one_line(options: list[str], line: str, capsys: Any) -> None:
    assert main(["mcp", *options]) == 2
    told = capsys.readouterr().err
    assert (told.startswith(line), told.count("\n")) == (True, 1)


def echo(asked: Heard) -> Reply:
    """The answer of a server that tells the fields of a call's request."""
    if not asked.path.endswith("/"):  # as servers do whose application is mounted
        return Reply(307, {"Location": f"{asked.path}/"}, b"")
    text = f"refunded for {asked.headers['x-shop']} {asked.headers['accept']}"
    return said({"jsonrpc": "2.0", "id": asked.json["id"], "result": {"content": [{"type": "text", "text": text}]}})


@contextmanager
def lines_of(*messages: dict[str, Any]) -> Iterator[None]:
    """A context with these as this process's standard input."""
    with tempfile.TemporaryFile() as given:
        given.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        given.seek(0)
        before = os.dup(0)
        os.dup2(given.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_a_header_goes_with_each_request_and_is_never_written_down(tmp_path: Path, capsysbinary: Any) -> None:
    with site(echo) as server:
        given = ["--header", "X-Shop: Shop of-a-user-17", "--header", "accept: never", "--url", f"{server.url}/mcp"]
        with lines_of(ASKED):
            assert main(["mcp", "--logs", str(tmp_path), *given, "--effects", '[{"effect": "refund"}]']) == 0
    told = capsysbinary.readouterr()
    assert b"refunded for Shop of-a-user-17 application/json, text/event-stream" in told.out
    assert told.err.startswith(b"chaoslab: correct")
    log = (tmp_path / "latest" / "info.log").read_text()
    assert ("refunded for" in log, "of-a-user" in log) == (True, False)


# A server that is written by hand, for what the SDK's does not do by itself.

BEGINS = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}  # fmt: skip
BEGUN = {"jsonrpc": "2.0", "method": "notifications/initialized"}
TOLD = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "shop", "version": "1"}}


def answers(asked: Heard, result: Any = None) -> Reply:
    """The answer of a server with sessions."""
    if asked.method != "POST":
        return Reply(405, {}, b"")
    if "id" not in asked.json:
        return Reply(202, {}, b"")
    if asked.json["method"] == "initialize":
        return said({"jsonrpc": "2.0", "id": asked.json["id"], "result": TOLD}, 200, **{"Mcp-Session-Id": "s1"})
    return said({"jsonrpc": "2.0", "id": asked.json["id"], "result": result or {"content": []}})


def talk(
    url: str, logs: Path, *messages: dict[str, Any], at_once: bool = False
) -> tuple[list[dict[str, Any]], str]:  # fmt: skip
    """All that the proxy says to these messages of its client's, who closes its end behind the last one. It waits for
    each answer before it goes on, with `at_once` for that of its first message alone, as the protocol asks for."""
    command, pipe = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(logs)], subprocess.PIPE
    told = list[dict[str, Any]]()
    with subprocess.Popen([*command, "--url", f"{url}/mcp"], stdin=pipe, stdout=pipe, stderr=pipe) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        assert proxy.stderr is not None
        for message in messages:
            proxy.stdin.write(json.dumps(message).encode() + b"\n")
            proxy.stdin.flush()
            if message["method"] == "initialize" or ("id" in message and not at_once):
                while not told or told[-1].get("id") != message["id"]:
                    told.append(json.loads(proxy.stdout.readline()))
        proxy.stdin.close()
        told += map(json.loads, proxy.stdout)
        assert proxy.wait(HUNG_S) == 0
        return told, proxy.stderr.read().decode()


def test_an_event_may_be_larger_than_a_megabyte(tmp_path: Path) -> None:
    large = "x" * (3 * 1024 * 1024)

    def streamed(asked: Heard) -> Reply:
        whole = answers(asked, {"content": [{"type": "text", "text": large}]})
        if not whole.body:
            return whole
        return Reply(200, {"Content-Type": "text/event-stream"}, b"data: " + whole.body + b"\n\n")

    with site(streamed) as server:
        told, _ = talk(server.url, tmp_path, ASKED)
    assert told[0]["result"]["content"][0]["text"] == large


def test_each_message_has_the_headers_of_its_protocol(tmp_path: Path) -> None:
    version = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    schema = {"type": "object", "properties": {"order": {"type": "integer", "x-mcp-header": "Order"}}}
    wanted: Any = ASKED["params"]
    newer: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": version},
        {**ASKED, "id": 2, "params": {**wanted, **version}},
    ]

    def shop(asked: Heard) -> Reply:
        lists = asked.body and asked.json.get("method") == "tools/list"
        return answers(asked, {"tools": [{"name": "refund", "inputSchema": schema}]} if lists else None)

    with site(shop) as server:
        for messages in (newer, [BEGINS, BEGUN, ASKED]):
            talk(server.url, tmp_path, *messages)
    names = ("mcp-protocol-version", "mcp-method", "mcp-session-id", "mcp-name", "mcp-param-order")
    sent = [tuple(heard.headers.get(name) for name in names) for heard in server.heard if heard.method == "POST"]
    assert sent == [
        ("2026-07-28", "tools/list", None, None, None), ("2026-07-28", "tools/call", None, "refund", "17"),
        (None, None, None, None, None), *[("2025-11-25", None, "s1", None, None)] * 2,
    ]  # fmt: skip


def test_the_servers_own_error_passes_whatever_its_status(tmp_path: Path) -> None:
    error = {"code": -32602, "message": "no such order", "data": {"order": 17}}
    with site(lambda asked: said({"jsonrpc": "2.0", "id": asked.json["id"], "error": error}, 400)) as server:
        told, _ = talk(server.url, tmp_path, ASKED)
    assert told == [{"jsonrpc": "2.0", "id": 1, "error": error}]


def test_calls_by_the_hundred_wait_at_once(tmp_path: Path) -> None:
    all_here = threading.Barrier(130, timeout=DEADLINE_S)

    def waits(asked: Heard) -> Reply:
        all_here.wait()
        return answers(asked)

    with site(waits) as server:
        told, _ = talk(server.url, tmp_path, *({**ASKED, "id": number} for number in range(130)), at_once=True)
    assert sorted(each["id"] for each in told if "result" in each) == [*range(130)]


def test_a_call_that_was_cancelled_does_not_hold_the_end(tmp_path: Path) -> None:
    over, waited_in_vain = threading.Event(), list[bool]()

    def silent(asked: Heard) -> Reply:
        if asked.body and asked.json.get("method") == "tools/call":
            waited_in_vain.append(not over.wait(50))  # less than the minute for which calls are waited for
        return answers(asked)

    cancels = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with site(silent) as server:
        talk(server.url, tmp_path, BEGINS, BEGUN, ASKED, cancels, at_once=True)
        assert waited_in_vain == []
        over.set()


def test_a_session_that_the_server_has_forgotten_is_begun_anew(tmp_path: Path) -> None:
    def forgets(asked: Heard) -> Reply:
        if asked.body and asked.json.get("id") == 1:
            return Reply(404, {}, b"")
        return answers(asked)

    with site(forgets) as server:
        told, err = talk(server.url, tmp_path, BEGINS, BEGUN, ASKED, {**BEGINS, "id": 2}, BEGUN, {**ASKED, "id": 3})
    assert ("error" in told[1], [each["id"] for each in told[2:]], err) == (True, [2, 3], "")
    session = [
        (heard.json["method"] if heard.body else heard.method, heard.headers.get("mcp-session-id"))
        for heard in server.heard
        if heard.method != "GET"  # which comes beside the others
    ]
    begun = [("initialize", None), ("notifications/initialized", "s1"), ("tools/call", "s1"), ("DELETE", "s1")]
    assert session == begun * 2, "the first one is ended before the second begins"


def test_the_servers_own_stream_is_opened_again_where_it_was_cut(tmp_path: Path) -> None:
    pings = b'id: 7\nretry: 10\ndata: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n'
    opened, again = list[str | None](), threading.Event()

    def streams(asked: Heard) -> Reply:
        if asked.method == "GET":
            opened.append(asked.headers.get("last-event-id"))
            if len(opened) > 1:
                again.set()
                return Reply(405, {}, b"")
            return Reply(200, {"Content-Type": "text/event-stream"}, pings)
        if asked.body and asked.json.get("id") == 1:
            again.wait(DEADLINE_S)
        return answers(asked)

    with site(streams) as server:
        told, _ = talk(server.url, tmp_path, BEGINS, BEGUN, ASKED)
    assert (opened[:2], [each.get("method") for each in told].count("notifications/tools/list_changed")) == (
        [None, "7"], 1,
    )  # fmt: skip


def test_a_server_of_the_older_transport_is_told_as_one(tmp_path: Path) -> None:
    with site(lambda _: Reply(405, {}, b"")) as server:
        told, err = talk(server.url, tmp_path, BEGINS)
    assert "error" in told[0]
    assert "answers 405: if it speaks HTTP+SSE, the transport of 2024-11-05" in err


def test_a_connection_that_breaks_is_an_error_of_one_call(tmp_path: Path) -> None:
    def breaks(asked: Heard) -> Reply:
        if asked.json.get("id") == 1:
            raise ConnectionAbortedError
        return answers(asked)

    with site(breaks) as server:
        told, _ = talk(server.url, tmp_path, ASKED, {**ASKED, "id": 2})
    assert {each["id"]: "result" in each for each in told} == {1: False, 2: True}
    assert "gave no answer" in next(each["error"]["message"] for each in told if each["id"] == 1)


def test_a_signal_ends_the_session_and_its_verdict_is_written(tmp_path: Path) -> None:
    with site(answers) as server:
        given = ["--effects", '[{"effect": "refund", "order": 17}]', "--url", f"{server.url}/mcp"]
        command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), *given]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as proxy:
            assert proxy.stdin is not None
            assert proxy.stdout is not None
            for message in (BEGINS, ASKED):
                proxy.stdin.write(json.dumps(message).encode() + b"\n")
                proxy.stdin.flush()
                proxy.stdout.readline()
            proxy.send_signal(signal.SIGTERM)
            assert proxy.stderr is not None
            assert proxy.stderr.readline().startswith(b"chaoslab: correct")
    assert ("DELETE", "s1") in [(heard.method, heard.headers.get("mcp-session-id")) for heard in server.heard]
