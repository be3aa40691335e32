"""The proxy between an MCP client and a server on standard input and output, with the MCP SDK on both sides."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.core.events import (
    CallFinished,
    Effect,
    FaultInjected,
    FaultWitnessed,
    PromptFinished,
    RunFinished,
)
from chaoslab.record.history import History
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.gateway import make_prompt_start_event, open_live_log, parse_plan
from chaoslab.surfaces.mcp_proxy import Ask, InterruptibleClock, McpProxy, ProxySession
from chaoslab.surfaces.sessions import find_fault_that_ended_call
from tests import warm
from tests.gateway.parts import history
from tests.measure_parts import calls, uninjected
from tests.seams.lab_parts import eventually
from tests.sure import sure
from tests.waiting import DEADLINE_S, HUNG_S, IMPATIENT_S

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
PLAIN = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("refund", "price")]
    result = {
        "initialize": {"capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}},
        "tools/list": {"tools": tools},
        "tools/call": {"content": [{"type": "text", "text": "refunded 17"}]},
    }[message["method"]]
    if message["method"] == "initialize":
        result["protocolVersion"] = message["params"]["protocolVersion"]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""A server without the SDK, which takes most of a second to load."""
LOCAL = ["--", sys.executable, "-c", PLAIN]


async def session(
    logs: Path,
    faults: list[dict[str, Any]],
    tools: list[str],
    server: list[str] = LOCAL,
    *,
    patience_s: float = HUNG_S,
) -> list[Any]:
    """The outcomes of these calls of tools, over the proxy in front of this server."""
    from mcp import ClientSession, MCPError, StdioServerParameters
    from mcp.client.stdio import stdio_client

    given = [word for fault in faults for word in ("--fault", json.dumps(fault))]
    command = ["-m", "chaoslab", "mcp", "--logs", str(logs), *given, *server]
    found: list[Any] = []
    proxy = StdioServerParameters(command=warm.python(), args=command, env=dict(os.environ))
    # Told, since the SDK's default is what stderr was when it was loaded, be it that of a test which captured it.
    errors = sure(sys.__stderr__)
    async with stdio_client(proxy, errlog=errors) as (reads, writes), ClientSession(reads, writes) as line:
        await line.initialize()
        names = [tool.name for tool in (await line.list_tools()).tools]
        assert names == ["refund", "price"]
        for name in tools:
            try:
                result: Any = await line.call_tool(name, {"order": 17}, read_timeout_seconds=patience_s)
                found.append((bool(result.is_error), result.content[0].text, result.structured_content))
            except MCPError as error:
                found.append((error.code, error.message))
    return found


def test_a_client_that_starts_its_server_anew_for_each_try_is_one_run(tmp_path: Path) -> None:
    faults = [{"fault": "lost_reply", "target": "refund", "calls": [1]}]
    server = ["--session", "one", *LOCAL]
    lost = asyncio.run(session(tmp_path, faults, ["refund"], server, patience_s=IMPATIENT_S))
    again = asyncio.run(session(tmp_path, faults, ["refund", "price"], server))
    assert (len(lost), again[0][1]) == (1, "refunded 17")
    (run,) = {path.resolve() for path in tmp_path.iterdir() if path.is_dir()}
    told = History.read(run)
    attempts = [(call.tool, call.request, call.attempt, call.ok) for _, call in told.find_events(CallFinished)]
    assert attempts == [("refund", 1, 1, False), ("refund", 1, 2, True), ("price", 1, 1, True)]
    assert len(list(told.find_events(PromptFinished))) == len(list(told.find_events(RunFinished))) == 1
    verdict = judge_trial(told, told.trials[0])
    assert (verdict.outcome, verdict.why) == ("harm", "refund took effect twice: its first reply was lost")


def test_proxies_of_other_sessions_or_servers_and_without_a_session_are_runs_of_their_own(tmp_path: Path) -> None:
    for more in ([], ["--session", "one"], ["--session", "two"]):
        asyncio.run(session(tmp_path, [], ["refund"], [*more, *LOCAL]))
    asyncio.run(session(tmp_path, [], ["refund"], ["--session", "one", *LOCAL[:-1], PLAIN + "#"]))
    runs = {path.resolve() for path in tmp_path.iterdir() if path.is_dir()}
    assert len(runs) == 4
    for run in runs:
        shutil.rmtree(run)
    asyncio.run(session(tmp_path, [], ["refund"], ["--session", "one", *LOCAL]))  # its run is gone: a new one
    assert len({path.resolve() for path in tmp_path.iterdir() if path.is_dir()}) == 1


@pytest.mark.parametrize(("tries", "told"), [(1, "tool_error on refund"), (2, "")])
def test_a_fault_that_ended_a_call_is_named_unless_it_was_made_again(tmp_path: Path, tries: int, told: str) -> None:
    fault = {"fault": "tool_error", "target": "refund", "attempts": [1], "status": 503}
    asyncio.run(session(tmp_path, [fault], ["refund"] * tries))
    assert find_fault_that_ended_call(history(tmp_path)) == told


def test_calls_meet_the_faults_and_everything_else_passes(tmp_path: Path) -> None:
    faults: list[dict[str, Any]] = [
        {"fault": "tool_error", "target": "refund", "calls": [1], "attempts": [1], "status": 503},
        {"fault": "reset_peer", "target": "refund", "calls": [1], "attempts": [2]},
        {"fault": "wrong_value", "target": "price", "calls": [1], "attempts": [1]},
    ]
    server = ["--", sys.executable, "-c", SERVER]
    found = asyncio.run(session(tmp_path, faults, ["refund", "refund", "refund", "price", "price"], server))
    assert found[0][:2] == (True, "Error executing tool refund: 503 Service Unavailable")
    assert found[1] == (-32000, "Connection closed")
    assert found[2][:2] == (False, "refunded 17")
    assert found[3][0] is False
    assert found[3][2] != {"order": 17, "price": 30}
    assert found[4][2] == {"order": 17, "price": 30}
    told = history(tmp_path)
    assert [event.fault for _, event in told.find_events(FaultWitnessed)] == ["tool_error", "reset_peer", "wrong_value"]
    assert [event.ok for _, event in told.find_events(CallFinished)] == [False, False, True, True, True]
    assert [(event.effect, event.content) for _, event in told.find_events(Effect)][-1] == ("refund", {"order": 17})
    assert {event.effect for _, event in told.find_events(Effect)} == {"refund"}


def test_a_lost_reply_is_met_by_a_client_that_waits_no_longer(tmp_path: Path) -> None:
    lost = {"fault": "lost_reply", "target": "refund"}
    (found,) = asyncio.run(session(tmp_path, [lost], ["refund"], patience_s=IMPATIENT_S))
    assert "imed out" in found[1]
    told = history(tmp_path)
    ((_, met),) = told.find_events(FaultWitnessed)
    assert (met.fault, met.evidence.startswith("the work was done, no answer within ")) == ("lost_reply", True)
    assert [(event.ok, event.error) for _, event in told.find_events(CallFinished)] == [(False, "cancelled")]
    assert [event.effect for _, event in told.find_events(Effect)] == ["refund"]
    assert (calls(told).failed, uninjected(told)) == (1, [])


ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "refund", "arguments": {"order": 17}}}
CANCELS = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}


@pytest.mark.parametrize(
    ("refunds", "fact", "verdict", "code"), [(1, "17", "correct", 0), (2, "17", "harm", 1), (1, "18", "unknown", 4)]
)
def test_what_was_stated_is_judged_at_the_end(
    refunds: int, fact: str, verdict: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(proxied: Callable[[Ask], McpProxy]) -> int:
        def answered(line: bytes) -> None:
            answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": mcp.make_text_result("done")}
            proxy.handle_server_line(json.dumps(answer).encode() + b"\n")

        proxy = proxied(answered)
        for number in range(refunds):
            proxy.handle_client_line(json.dumps({**ASKED, "id": number}).encode())
        return 0

    session = ProxySession(parse_plan([], None, 1, None), tmp_path, [fact], [{"effect": "refund", "order": 17}])
    assert (session.run("a shop", serve), capsys.readouterr().err.partition(" – ")[0]) == (code, f"chaoslab: {verdict}")


@dataclass
class Between:
    """A proxy between a client and a server that answer when the test says so. `told`: the messages to the client."""

    logs: Path
    proxy: McpProxy
    told: list[dict[str, Any]]
    asked: threading.Event

    def client(self, message: dict[str, Any]) -> None:
        self.proxy.handle_client_line(json.dumps(message).encode() + b"\n")

    def server(self, **answer: Any) -> None:
        self.asked.wait(DEADLINE_S)
        self.proxy.handle_server_line(json.dumps({"jsonrpc": "2.0", "id": 1, **answer}).encode() + b"\n")

    @property
    def end(self) -> tuple[Any, ...]:
        """The call's end and the faults that it met, once it is over."""
        eventually(lambda: any(True for _ in history(self.logs).find_events(CallFinished)))
        found = history(self.logs)
        ((_, end),) = found.find_events(CallFinished)
        return (
            end.ok,
            end.error,
            bool(found.given_up_attempts),
            [event.fault for _, event in found.find_events(FaultWitnessed)],
        )


@contextmanager
def between(logs: Path, *faults: str) -> Iterator[Between]:
    plan = parse_plan(faults, None, 1, None)
    with open_live_log(plan, logs=logs, settings={}, started=make_prompt_start_event("x", [], None)) as book:
        patience, told, asked = InterruptibleClock(), list[dict[str, Any]](), threading.Event()
        seam = FunctionSeam(plan, timeout_s=20, clock=patience)
        seam.begin_trial(book)
        proxy = McpProxy(seam, patience, lambda line: told.append(json.loads(line)), lambda _: asked.set())
        yield Between(logs, proxy, told, asked)
        proxy.end_open_calls()


RAW = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    print(line.strip(), file=sys.stderr, flush=True)
    name, number = (message.get("params") or {}).get("name"), json.dumps(message.get("id"))
    if name == "dies":
        sys.stdout.write('{"jsonrpc":"2.0","id":'), sys.stdout.flush(), os._exit(3)
    results = {"list": "[1]", "huge": '{"structuredContent":{"v":1e400}}'}
    results["emoji"] = '{"content":[{"type":"text","text":"\\\\ud83d"}]}'
    result = '{"tools":null}' if message["method"] == "tools/list" else results.get(name, '{"content":[]}')
    print('{"jsonrpc":"2.0", "id":%s,"result":%s}' % (number, result), flush=True)
"""


def raw(logs: Path, lines: list[bytes]) -> tuple[list[bytes], list[bytes], int]:
    """The answers to these lines, the lines that the server got, and the exit code, with and without the proxy alike.
    The client closes its end behind the last line."""
    server = [sys.executable, "-c", RAW]
    proxy = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(logs), "--", *server]
    found = []
    for command in (server, proxy):
        done = subprocess.run(command, input=b"".join(lines), capture_output=True, timeout=HUNG_S, check=False)
        got = [line for line in done.stderr.splitlines() if line.startswith(b"{")]
        found.append((sorted(done.stdout.splitlines()), got, done.returncode))
    assert found[0][1:] == found[1][1:]
    return found[1] if found[0][0] == found[1][0] else ([*found[0][0], b"but through the proxy", *found[1][0]], [], -1)


def asked(name: str, number: int = 1, arguments: str | None = "{}") -> bytes:
    given = f', "arguments": {arguments}' if arguments else ""
    return f'{{"jsonrpc":"2.0", "id": {number},"method":"tools/call","params":{{"name":"{name}"{given}}}}}\n'.encode()


LINES = (
    asked("emoji", 1), asked("huge", 2), asked("x", 3, None), asked("x", 4, '{"t": "cut \\ud83d"}'),
    asked("x", 5, '{"lab_message": 1, "lab_inbox": 2, "\\u0000lab": 3}'),
    asked("x", 6, '{"self": 1, "args": 2, "kwargs": 3}'), asked("x", 7, "[1]"), asked("list", 8),
    b'{"jsonrpc":"2.0","id":9,"method":"tools/list"}\n',
)  # fmt: skip


def test_without_a_fault_every_line_passes_byte_by_byte(tmp_path: Path) -> None:
    answers, got, code = raw(tmp_path, [*LINES])
    assert (len(answers), code) == (len(LINES), 0)
    assert got == [line.strip() for line in LINES]


def test_calls_keep_their_order_and_those_before_the_end_are_answered(tmp_path: Path) -> None:
    lines = [asked("x", number) for number in range(100)]
    answers, got, _ = raw(tmp_path, lines)
    assert got == [line.strip() for line in lines]
    assert len(answers) == 100


def test_the_half_line_of_a_dying_server_spoils_no_error(tmp_path: Path) -> None:
    command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), "--", sys.executable, "-c", RAW]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(asked("dies"))
        proxy.stdin.flush()
        assert json.loads(proxy.stdout.readline())["error"]["message"] == "Connection closed"
        proxy.stdin.close()
        assert proxy.wait(HUNG_S) == 3


def test_the_list_of_tools_may_be_a_target(tmp_path: Path) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with between(tmp_path, '{"fault": "tool_list", "target": "tools/list", "how": "renamed", "point": 0}') as there:
        there.client(listing)
        there.server(result={"tools": [{"name": "refund"}], "nextCursor": "2"})
        eventually(lambda: bool(there.told))
        assert there.told[0]["result"] == {"tools": [{"name": "refund_v2"}], "nextCursor": "2"}
        assert there.end == (True, None, False, ["tool_list"])


def test_a_call_is_under_way_until_it_is_answered(tmp_path: Path) -> None:
    with between(tmp_path) as there:
        there.client(ASKED)
        there.asked.wait(DEADLINE_S)
        assert there.proxy.has_open_calls
        there.server(result=mcp.make_text_result("refunded"))
        eventually(lambda: bool(there.told))
        assert not there.proxy.has_open_calls


@pytest.mark.parametrize("how", ["cancels", "leaves"])
@pytest.mark.parametrize("fault", ["lost_reply:refund", '{"fault": "latency", "target": "refund", "delay_s": 19}'])
def test_a_fault_that_holds_an_answer_back_is_met_when_its_client_goes(how: str, fault: str, tmp_path: Path) -> None:
    with between(tmp_path, fault) as there:
        there.client(ASKED)
        there.server(result=mcp.make_text_result("refunded"))
        eventually(lambda: any(True for _ in history(tmp_path).find_events(FaultInjected)))
        there.client(CANCELS) if how == "cancels" else there.proxy.handle_client_left()
        assert there.end == (False, "cancelled", False, ["lost_reply" if "latency" not in fault else "latency"])
        assert there.told == []


def test_a_call_that_its_client_cancels_while_the_server_is_at_work_is_given_up(tmp_path: Path) -> None:
    with between(tmp_path) as there:
        there.client(ASKED)
        there.asked.wait(DEADLINE_S)
        there.client(CANCELS)
        assert there.end == (False, "cancelled", True, [])
        there.server(result=mcp.make_text_result("refunded"))  # which nobody waits for
        assert there.told == []


def test_a_client_that_has_closed_its_end_may_still_read_the_answer(tmp_path: Path) -> None:
    with between(tmp_path) as there:
        there.client(ASKED)
        there.asked.wait(DEADLINE_S)
        there.proxy.handle_client_left()
        there.server(result=mcp.make_text_result("refunded"))
        assert there.end == (True, None, False, [])
        eventually(lambda: bool(there.told))
        assert [answer["result"] for answer in there.told] == [mcp.make_text_result("refunded")]


@pytest.mark.parametrize("left", [False, True])
def test_a_server_that_ends_has_failed_whoever_waits_for_it(tmp_path: Path, *, left: bool) -> None:
    with between(tmp_path) as there:
        there.client(ASKED)
        there.asked.wait(DEADLINE_S)
        if left:
            there.proxy.handle_client_left()
        there.proxy.end_open_calls()
        assert there.end == (
            (False, "cancelled", True, []) if left else (False, "RpcError: Connection closed", False, [])
        )
        assert [answer["error"]["message"] for answer in there.told] == ([] if left else ["Connection closed"])


def test_a_tool_whose_own_error_is_the_word_cancelled_has_failed(tmp_path: Path) -> None:
    with between(tmp_path) as there:
        there.client(ASKED)
        there.server(result={**mcp.make_text_result("cancelled"), "isError": True})
        assert there.end == (False, "'cancelled'", False, [])


def test_a_server_that_ends_ends_the_proxy_though_its_client_stays(tmp_path: Path) -> None:
    command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), "--", sys.executable, "-c", "exit(5)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.wait(HUNG_S) == 5


def test_a_batch_is_answered_in_one_line_and_each_of_its_calls_meets_the_faults(tmp_path: Path) -> None:
    batch = [{**ASKED, "id": number} for number in (1, 2)] + [{"jsonrpc": "2.0", "method": "notifications/x"}]
    lines = list[bytes]()
    plan = parse_plan(['{"fault": "tool_error", "target": "refund", "calls": [1]}'], None, 1, None)
    with open_live_log(plan, logs=tmp_path, settings={}, started=make_prompt_start_event("x", [], None)) as book:
        patience = InterruptibleClock()
        seam = FunctionSeam(plan, timeout_s=20, clock=patience)
        seam.begin_trial(book)

        def ask(line: bytes) -> None:
            message = json.loads(line)
            if "id" in message:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": mcp.make_text_result("refunded")}
                proxy.handle_server_line(json.dumps(answer).encode() + b"\n")

        proxy = McpProxy(seam, patience, lines.append, ask)
        proxy.handle_client_line(json.dumps(batch).encode() + b"\n")
        eventually(lambda: bool(lines))
        proxy.end_open_calls()
    (said,) = map(json.loads, lines)
    assert {each["id"]: each["result"].get("isError", False) for each in said} == {1: True, 2: False}


@pytest.mark.parametrize("faults", [[], ['{"fault": "latency", "target": "refund", "delay_s": 0.001}']])
@pytest.mark.parametrize(("asks", "failed"), [(1, False), (2, False), (1, True), (0, False)])
def test_the_effect_of_a_task_is_that_of_its_result(
    asks: int, faults: list[str], tmp_path: Path, *, failed: bool
) -> None:
    def serve(proxied: Callable[[Ask], McpProxy]) -> int:
        def answered(line: bytes) -> None:
            message = json.loads(line)
            task = {"taskId": "t1", "status": "working"}
            result = (
                {"task": task} if "name" in message["params"] else {**mcp.make_text_result("done"), "isError": failed}
            )
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            proxy.handle_server_line(json.dumps(answer).encode() + b"\n")

        proxy = proxied(answered)
        proxy.handle_client_line(json.dumps({**ASKED, "id": 0}).encode())
        eventually(lambda: any(True for _ in history(tmp_path).find_events(CallFinished)))
        for number in range(asks):
            asked = {"jsonrpc": "2.0", "id": number + 1, "method": "tasks/result", "params": {"taskId": "t1"}}
            proxy.handle_client_line(json.dumps(asked).encode())
            eventually(partial(ended, number + 2))
        return 0

    def ended(number: int) -> bool:
        return len([*history(tmp_path).find_events(CallFinished)]) == number

    session = ProxySession(parse_plan(faults, None, 1, None), tmp_path, [], [{"effect": "refund", "order": 17}])
    session.run("a shop", serve)
    found = history(tmp_path)
    assert [event.content for _, event in found.find_events(Effect)] == ([] if failed else [{"order": 17}])
    assert [event.ok for _, event in found.find_events(CallFinished)] == [True, *[not failed] * asks]


STUBBORN = """
import json, os, signal, subprocess, sys, time
if sys.argv[1] == "deaf":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"])
for line in sys.stdin:
    number = json.dumps(json.loads(line)["id"])
    text = '[{"type":"text","text":"%d %d"}]' % (os.getpid(), child.pid)
    print('{"jsonrpc":"2.0","id":%s,"result":{"content":%s}}' % (number, text), flush=True)
time.sleep(1000)
"""


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system has no /proc")
@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (signal.SIGTERM, "mild"), (signal.SIGINT, "mild"), (signal.SIGHUP, "mild"), (None, "mild"),
        (signal.SIGTERM, "deaf"), (signal.SIGKILL, "deaf"), (None, "deaf"),
    ],
)  # fmt: skip
def test_nothing_of_a_server_outlives_the_proxy_and_its_verdict_is_written(
    end: int | None, kind: str, tmp_path: Path
) -> None:
    stated = ["--effects", '[{"effect": "refund", "order": 17}]']
    server = [sys.executable, "-c", STUBBORN, kind]
    command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), *stated, "--", *server]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(json.dumps(ASKED).encode() + b"\n")
        proxy.stdin.flush()
        answer = json.loads(proxy.stdout.readline())
        pids = [int(number) for number in answer["result"]["content"][0]["text"].split()]
        if end is not None:
            proxy.send_signal(end)
            # Before the client leaves, since the server may be ended for that first where the signal is slow.
            eventually(lambda: all(map(is_gone, pids)))
        _, told = proxy.communicate(timeout=HUNG_S)
    eventually(lambda: all(map(is_gone, pids)))
    if end != signal.SIGKILL:
        assert b"chaoslab: correct" in told
        last = 9 if kind == "deaf" else end
        assert proxy.returncode == (0 if end is None else 128 + (last or 0))


def test_a_list_of_tools_may_come_in_two_pages_though_its_server_has_one(tmp_path: Path) -> None:
    asked = list[dict[str, Any]]()

    def pages(logs: Path) -> Iterator[dict[str, Any]]:
        plan = parse_plan(['{"fault": "tool_list", "target": "tools/list", "how": "paged"}'], None, 1, None)
        with open_live_log(plan, logs=logs, settings={}, started=make_prompt_start_event("x", [], None)) as book:
            patience, told = InterruptibleClock(), list[dict[str, Any]]()
            seam = FunctionSeam(plan, timeout_s=20, clock=patience)
            seam.begin_trial(book)

            def ask(line: bytes) -> None:
                asked.append(json.loads(line))
                answer = {"tools": [{"name": "refund"}, {"name": "price"}, {"name": "stock"}]}
                proxy.handle_server_line(
                    json.dumps({"jsonrpc": "2.0", "id": asked[-1]["id"], "result": answer}).encode()
                )

            proxy = McpProxy(seam, patience, lambda line: told.append(json.loads(line)), ask)
            cursor: dict[str, Any] = {}
            for number in (1, 2):
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": cursor}
                proxy.handle_client_line(json.dumps(message).encode())
                eventually(lambda of=number: len(told) == of)  # type: ignore[misc]
                cursor = {"cursor": told[-1]["result"].get("nextCursor")}
                yield told[-1]["result"]

    first, second = pages(tmp_path)
    assert [tool["name"] for page in (first, second) for tool in page["tools"]] == ["refund", "price", "stock"]
    assert ("nextCursor" in first, "nextCursor" in second) == (True, False)
    assert [message["params"] for message in asked] == [{}, {}]


@pytest.mark.parametrize(
    ("target", "how", "line"),
    [("initialize", "text", b"INFO: request handled in 12 ms"), ("refund", "blank", b"")],
)
def test_a_line_of_noise_stands_before_an_answer_that_passes_byte_by_byte(
    target: str, how: str, line: bytes, tmp_path: Path
) -> None:
    begins = b'{"jsonrpc":"2.0", "id": 1,"method":"initialize","params":{}}\n'
    fault = json.dumps({"fault": "stdout_noise", "target": target, "how": how})
    command = [warm.python(), "-m", "chaoslab", "mcp", "--logs", str(tmp_path), "--fault", fault, "--"]
    asks = asked("refund") if target == "refund" else begins
    done = subprocess.run([*command, sys.executable, "-c", RAW], input=asks, capture_output=True, check=True)
    assert done.stdout.split(b"\n") == [line, b'{"jsonrpc":"2.0", "id":1,"result":{"content":[]}}', b""]
    found = history(tmp_path)
    assert [(event.at.target, event.evidence) for _, event in found.find_events(FaultWitnessed)] == [
        (target, "the line stood before the answer")
    ]
    assert [effect.effect for _, effect in found.find_events(Effect)] == (["refund"] if target == "refund" else [])


def test_noise_is_refused_where_no_line_reaches_an_agent() -> None:
    def refund() -> None: ...

    with pytest.raises(ValueError, match=r"^stdout_noise stands between the lines of an MCP server's standard output"):
        lab.run(lambda _: "done", "x", tools=[refund], faults=[lab.inject("stdout_noise", "refund")])
