"""A proxy between an MCP client and a server on standard input and output: calls of tools meet faults, all else passes.

A message is a line of JSON-RPC. A call of a tool is a call of a function whose work is done by the server, so the seam
of functions numbers it, tells its stories and notes it. A client that cancels a call, or leaves, ends its waiting: a
fault that holds it back is met then. What no fault changes passes byte by byte, and calls keep their order unless a
fault holds one back.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from chaoslab.base.boundary import Through
from chaoslab.base.clock import SystemClock, system
from chaoslab.core.plan import Plan
from chaoslab.execution.upstreams import GRACE_S
from chaoslab.reports.gate import BY_ITSELF
from chaoslab.seams.adapters.mcp import CLOSED, HIDDEN
from chaoslab.seams.functions.mcp_result import ResultForm, ToolResult
from chaoslab.seams.functions.native_errors import NativeErrors
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import Form, Returned, WrappedFunction
from chaoslab.seams.protocols import mcp
from chaoslab.surfaces.gateway import finished, judge_run, live, trial_of

WAIT_S = 60.0
"""The longest time for which a fault holds a call back, in seconds; clients of MCP give up about then."""
PROMPT = "all calls of tools"
Message = dict[str, Any]
Ask = Callable[[bytes], None]
"""Writes a message to the server."""


class Silence(Exception):
    """An answer that never comes."""


class GivenUp(Through):
    """The end of a call that its client waits for no more."""


class CallEnd(Enum):
    """An event that ends a call without the server's answer: its client has cancelled it, the client has closed its
    end, or the server has."""

    CANCELLED = "cancelled"
    LEFT = "left"
    CLOSED = "closed"


@dataclass(frozen=True)
class McpLine:
    """A line with its message; the message is empty if it is none that the proxy needs to know."""

    text: bytes
    message: Message

    @classmethod
    def of(cls, text: bytes) -> "McpLine":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        return cls(text, _object(value))


@dataclass(frozen=True)
class PendingCall:
    """A call that is under way: the client's line, and the inbox of what comes for it. `on_its_way` is set when it has
    been sent to the server, or is held back, or is over."""

    line: McpLine
    inbox: SimpleQueue[McpLine | CallEnd] = field(default_factory=SimpleQueue)
    on_its_way: threading.Event = field(default_factory=threading.Event)


class Patience(SystemClock):
    """The machine's time. A wait ends as soon as something comes into the inbox of the call in its thread."""

    def __init__(self) -> None:
        self._call = threading.local()

    def begin(self, call: PendingCall) -> None:
        """Begins a call in this thread."""
        self._call.asked = call

    def sleep(self, delay_s: float) -> None:
        asked: PendingCall = self._call.asked
        asked.on_its_way.set()
        with suppress(Empty):
            asked.inbox.get(timeout=delay_s)
            raise GivenUp


class RpcError(Exception):
    """An error in place of a result. `line`: the server's, if it is its own."""

    def __init__(self, error: Any, line: McpLine | None = None) -> None:
        super().__init__(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        self.error, self.line = error, line


class McpErrors(NativeErrors):
    """The way in which the client learns of a fault: silence, an error of the protocol, or a result that is one."""

    def failed(self, name: str, kind: str) -> Exception:  # noqa: ARG002
        return Silence() if kind == "timed_out" else RpcError({"code": CLOSED, "message": "Connection closed"})

    def text(self, said: str) -> Any:
        return mcp.said(said)


class McpProxy:
    """The messages between a client and a server. `patience` is the clock of `seam`. `tell` writes a message to the
    client, `ask` one to the server. `said`: the arguments of all calls, as JSON."""

    def __init__(
        self, seam: FunctionSeam, patience: Patience, tell: Callable[[bytes], None], ask: Callable[[bytes], None]
    ) -> None:
        self._seam, self._patience, self._tell, self._ask = seam, patience, tell, ask
        self.said: list[str] = []
        self._calls: dict[str, tuple[threading.Thread, PendingCall]] = {}
        self._waiting: dict[str, PendingCall] = {}
        self._tools: dict[str, Callable[..., Any]] = {}
        self._listed: dict[str, Any] = {}
        self._lists = any(injection.of_listing for injection in seam.plan.candidates(mcp.LIST))

    def from_client(self, text: bytes) -> None:
        """Takes a line of the client's."""
        line = McpLine.of(text)
        method, params = line.message.get("method"), line.message.get("params")
        is_call = method == mcp.CALL and isinstance(params, dict)
        if is_call:
            self.said.append(json.dumps(_object(params).get("arguments"), ensure_ascii=False))
        if "id" in line.message and (is_call or (method == mcp.LIST and self._lists)):
            asked = PendingCall(line)
            thread = threading.Thread(target=self._call, args=(asked,), daemon=True)
            self._calls[_key(line.message["id"])] = thread, asked
            thread.start()
            asked.on_its_way.wait()
            return
        if method == "notifications/cancelled":
            call = self._calls.get(_key(_object(params).get("requestId")))
            if call is not None:
                call[1].inbox.put(CallEnd.CANCELLED)
        self._ask(text)

    def left(self) -> None:
        """Notes that the client has closed its end. It may still read what the server answers."""
        for _, asked in [*self._calls.values()]:
            asked.inbox.put(CallEnd.LEFT)

    def closed(self) -> None:
        """Ends the calls that are under way, since the server has closed its end."""
        under_way = [*self._calls.values()]
        for _, asked in under_way:
            asked.inbox.put(CallEnd.CLOSED)
        for thread, _ in under_way:
            thread.join(GRACE_S)

    def from_server(self, text: bytes) -> None:
        """Takes a line of the server's. The beginning of one, in which it died, is left out: an error follows."""
        line = McpLine.of(text)
        message = line.message
        if not message and not text.endswith(b"\n"):
            return
        self._listed.update({str(tool["name"]): tool for tool in mcp.tools_in(text)})
        waiting = self._waiting.pop(_key(message["id"]), None) if "id" in message and "method" not in message else None
        if waiting is not None:
            waiting.inbox.put(line)
        else:
            self._tell(text)

    def _call(self, asked: PendingCall) -> None:
        """Answers a call of a tool, or of the list of tools, through the seam."""
        self._patience.begin(asked)
        message, got = asked.line.message, list[McpLine]()
        params = _object(message.get("params"))
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            tool = self._tool(mcp.LIST if message["method"] == mcp.LIST else str(params.get("name")))
            result = tool(**{**_object(params.get("arguments")), HIDDEN: (asked, got)})
            own = next((line for line in got if line.message.get("result") is result), None)
            answer["result"] = result
        except (Silence, GivenUp):
            return
        except RpcError as error:
            own = error.line
            answer["error"] = error.error
        finally:
            self._calls.pop(_key(message["id"]), None)
            asked.on_its_way.set()
        self._tell(own.text if own is not None else _spelt(answer))

    def _tool(self, name: str) -> Callable[..., Any]:
        """The tool, or the list of tools, as the seam leads its calls."""
        if name not in self._tools:
            effect = name != mcp.LIST and not mcp.only_reads(self._listed.get(name))
            form: Form = ResultForm(ToolResult, lambda: (self._listed.get(name) or {}).get("outputSchema"))
            refused = McpErrors({}, lambda name, status, message: mcp.refused(name, f"{status} {message}"))
            form = ToolList if name == mcp.LIST else form
            once = mcp.may_be_repeated(self._listed.get(name))
            tool = WrappedFunction(name, self._asked, effect, frozenset({HIDDEN}), refused, form, keyed=once)
            self._tools[name] = self._seam.stand_in(tool)
        return self._tools[name]

    def _asked(self, /, **arguments: Any) -> Any:
        """The server's result for a call with these arguments, which may have any name."""
        asked, got = arguments.pop(HIDDEN)
        message = asked.line.message
        params = _object(message.get("params"))
        given = _object(params.get("arguments"))
        same = message["method"] == mcp.LIST or arguments == {key: given[key] for key in given if key != HIDDEN}
        self._waiting[_key(message["id"])] = asked
        self._ask(asked.line.text if same else _spelt({**message, "params": {**params, "arguments": arguments}}))
        asked.on_its_way.set()
        answer = asked.inbox.get()
        left = answer is CallEnd.LEFT
        if left:
            answer = asked.inbox.get()
            asked.inbox.put(CallEnd.LEFT)  # a fault may hold the answer back, and nobody waits for it
        if answer is CallEnd.CANCELLED or (answer is CallEnd.CLOSED and left):
            raise GivenUp
        if isinstance(answer, CallEnd):
            raise RpcError({"code": CLOSED, "message": "Connection closed"})
        result = answer.message.get("result")
        if not isinstance(result, dict):
            raise RpcError(answer.message.get("error", "the result is no object"), answer)
        got.append(answer)
        return result


class ToolList(Returned):
    """A list of tools as the server sends it. Its value is the list."""

    protocol = mcp.NAME

    def __init__(self, result: Any) -> None:
        super().__init__(result.get("tools") if isinstance(result, dict) else None)
        self.__dict__["result"] = result

    @property
    def native(self) -> Any:
        return self.__dict__["result"]

    def with_value(self, value: Any) -> "ToolList":
        return ToolList({**self.native, "tools": value})


def _spelt(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _object(value: Any) -> Message:
    return value if isinstance(value, dict) else {}


def _key(identity: Any) -> str:
    return json.dumps(identity)


@dataclass(frozen=True)
class ProxySession:
    """A session of a client with the server. `logs`: the folder of runs; `facts`, `effects`: the stated ones, as in
    `trial_of`. Without an answer of the client's, a fact is looked for in the arguments of its calls."""

    plan: Plan
    logs: Path
    facts: Sequence[str] = ()
    effects: Sequence[Mapping[str, Any]] | None = None

    def run(
        self, server: str, serve: Callable[[Callable[[Ask], McpProxy]], int], *, secrets: Sequence[str] = ()
    ) -> int:
        """Runs the session. `server`: in words; `serve` is given a function that makes the proxy, and returns the exit
        code once one of both has closed its end. Prints a verdict if anything was stated. Raises OSError: the command
        cannot be run, or the logs cannot be written."""
        started, patience = trial_of(PROMPT, self.facts, self.effects), Patience()
        seam = FunctionSeam(self.plan, timeout_s=WAIT_S, clock=patience)
        made: list[McpProxy] = []

        def proxy(ask: Ask) -> McpProxy:
            made.append(McpProxy(seam, patience, writer(sys.stdout.buffer), ask))
            return made[0]

        settings = {"SERVER": server}
        with live(self.plan, logs=self.logs, settings=settings, started=started, secrets=secrets) as book:
            seam.begin(book)
            code = serve(proxy)
            made[0].closed()
            seam.book = None
            answer = "\n".join(made[0].said) if self.facts else "the connection was closed"
            finished(book, prompt=PROMPT, answer=answer, seconds=system.monotonic() - book.origin)
        return judge_run(book, started, BY_ITSELF, code, logs=self.logs, passes=True)


def run(command: Sequence[str], session: ProxySession) -> int:
    """Runs the server's command behind the proxy until one of them closes its end. Returns the exit code: the server's,
    unless the verdict asks for another. Raises OSError: the command cannot be run, or the logs cannot be written."""

    def serve(proxied: Callable[[Ask], McpProxy]) -> int:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            stdin, proxy = server.stdin, proxied(writer(server.stdin))

            def client() -> None:
                client_lines(proxy)
                with suppress(OSError):
                    stdin.close()  # which ends the server too

            threading.Thread(target=client, daemon=True).start()
            for line in server.stdout:
                proxy.from_server(line)
            proxy.closed()
            code = server.wait()
        return code if code >= 0 else 128 - code

    return session.run(" ".join(command), serve)


def client_lines(proxy: McpProxy) -> None:
    """Takes the client's lines until it closes its end. Not from `sys.stdin`, whose lock the interpreter wants at its
    end."""
    with open(0, "rb", closefd=False) as lines:
        for line in lines:
            proxy.from_client(line)
    proxy.left()


def writer(stream: IO[bytes]) -> Callable[[bytes], None]:
    """A function that writes whole lines, from any thread. What nobody reads any more is lost."""
    lock = threading.Lock()

    def write(line: bytes) -> None:
        with lock, suppress(OSError, ValueError):
            stream.write(line)
            stream.flush()

    return write
