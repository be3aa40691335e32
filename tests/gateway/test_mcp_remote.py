"""The proxy between a client on standard input and output and a server over streamable HTTP, with the SDK on both."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
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
    assert [event.fault for _, event in told.of(FaultWitnessed)] == ["reset_peer"]
    assert [event.ok for _, event in told.of(CallFinished)] == [False, True]
    assert [event.content for _, event in told.of(Effect)][-1] == {"order": 17}


def test_an_error_of_the_way_is_the_calls_error(url: str, tmp_path: Path) -> None:
    """Here a session that was never begun. A call before the end of the client's lines is answered."""
    command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), "--url", url]
    done = subprocess.run(
        command, input=json.dumps(ASKED).encode() + b"\n", capture_output=True, timeout=60, check=True
    )
    said = json.loads(done.stdout)["error"]["message"]
    assert said.startswith(f"the server at {url} gave no answer: status 4")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--fault", "lost:refund", "--", "true"], "--fault lost:refund: no fault is called 'lost'"),
        (["--", "no-such-command"], "the command 'no-such-command' is not found: give its path"),
        ([], "chaoslab mcp needs a server: --url http://127.0.0.1:3000/mcp, or -- and its command"),
        (["--url", "http://127.0.0.1:1/mcp", "--", "true"], "chaoslab mcp needs a server"),
        (["--url", "127.0.0.1:1"], "--url '127.0.0.1:1' should be an address, as in http://127.0.0.1:3000/mcp"),
        (["--header", "A: b", "--", "true"], "--header goes with --url: a command has no headers"),
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
