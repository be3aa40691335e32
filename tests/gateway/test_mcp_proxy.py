"""The proxy between an MCP client and a server on standard input and output, with the MCP SDK on both sides."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chaoslab.cli import main
from chaoslab.core.events import CallFinished, Effect, FaultWitnessed
from tests.gateway.parts import history

SERVER = """
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer("shop")
@server.tool()
def refund(order: int) -> str:
    return f"refunded {order}"
@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def price(order: int) -> dict[str, int]:
    return {"order": order, "price": 30}
server.run("stdio")
"""


async def _session(logs: Path, faults: list[dict[str, Any]], calls: list[str]) -> list[Any]:
    from mcp import ClientSession, MCPError, StdioServerParameters
    from mcp.client.stdio import stdio_client

    given = [word for fault in faults for word in ("--fault", json.dumps(fault))]
    command = ["-m", "chaoslab", "mcp", "--logs", str(logs), *given, "--", sys.executable, "-c", SERVER]
    found: list[Any] = []
    server = StdioServerParameters(command=sys.executable, args=command)
    async with stdio_client(server) as (reads, writes), ClientSession(reads, writes) as session:
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        assert names == ["refund", "price"]
        for name in calls:
            try:
                result: Any = await session.call_tool(name, {"order": 17}, read_timeout_seconds=3)
                found.append((bool(result.is_error), result.content[0].text, result.structured_content))
            except MCPError as error:
                found.append((error.code, error.message))
    return found


def test_calls_meet_the_faults_and_everything_else_passes(tmp_path: Path) -> None:
    faults: list[dict[str, Any]] = [
        {"fault": "tool_error", "target": "refund", "calls": [1], "attempts": [1], "status": 503},
        {"fault": "reset_peer", "target": "refund", "calls": [1], "attempts": [2]},
        {"fault": "wrong_value", "target": "price", "calls": [1], "attempts": [1]},
    ]
    found = asyncio.run(_session(tmp_path, faults, ["refund", "refund", "refund", "price", "price"]))
    assert found[0][:2] == (True, "Error executing tool refund: 503 Service Unavailable")
    assert found[1] == (-32000, "Connection closed")
    assert found[2][:2] == (False, "refunded 17")
    assert found[3][0] is False
    assert found[3][2] != {"order": 17, "price": 30}
    assert found[4][2] == {"order": 17, "price": 30}
    told = history(tmp_path)
    assert [event.fault for _, event in told.of(FaultWitnessed)] == ["tool_error", "reset_peer", "wrong_value"]
    assert [event.ok for _, event in told.of(CallFinished)] == [False, False, True, True, True]
    assert [(event.effect, event.content) for _, event in told.of(Effect)][-1] == ("refund", {"order": 17})
    assert {event.effect for _, event in told.of(Effect)} == {"refund"}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--fault", "lost:refund", "--", "true"], "--fault lost:refund: no fault is called 'lost'"),
        (["--", "no-such-command"], "the command 'no-such-command' is not found: give its path"),
    ],
)
def test_a_mistake_is_one_line(options: list[str], line: str, capsys: Any) -> None:
    assert main(["mcp", *options]) == 2
    told = capsys.readouterr().err
    assert (told.startswith(line), told.count("\n")) == (True, 1)


def test_a_server_that_ends_ends_the_proxy_though_its_client_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chaoslab", "mcp", "--logs", str(tmp_path), "--", sys.executable, "-c", "exit(5)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.wait(30) == 5
