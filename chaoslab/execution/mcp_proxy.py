"""A proxy between an MCP client and a server on standard input and output: calls of tools meet faults, all else passes.

A message is a line of JSON-RPC. A call of a tool is a call of a function whose work is done by the server, so the seam
of functions numbers it, tells its stories and notes it. A client that cancels a call, or leaves, ends its waiting: a
fault that holds it back is met then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from chaoslab.base.boundary import Through
from chaoslab.base.clock import SystemClock, system
from chaoslab.core.plan import Plan
from chaoslab.execution.gateway import GRACE_S, finished, live
from chaoslab.seams.adapters.mcp import CLOSED
from chaoslab.seams.functions import mcp_result
from chaoslab.seams.functions.mcp_result import ToolResult
from chaoslab.seams.functions.native_errors import NativeErrors
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import WrappedFunction
from chaoslab.seams.services.mcp import only_reads

WAIT_S = 60.0
"""The longest time for which a fault holds a call back, in seconds; clients of MCP give up about then."""
PROMPT = "all calls of tools"
Message = dict[str, Any]


class Silence(Exception):
    """An answer that never comes."""


class GivenUp(Through):
    """The end of a call that its client waits for no more."""


class End(Enum):
    """An event that ends a call without the server's answer: its client has cancelled it, the client has closed its
    end, or the server has."""

    CANCELLED = "cancelled"
    LEFT = "left"
    CLOSED = "closed"


Inbox = SimpleQueue[Message | End]
"""The messages for one call that is under way."""


class Patience(SystemClock):
    """The machine's time. A wait ends as soon as something comes into the inbox of the call in its thread."""

    def __init__(self) -> None:
        self._call = threading.local()

    def begin(self, inbox: Inbox) -> None:
        """Begins a call in this thread."""
        self._call.inbox = inbox

    def sleep(self, delay_s: float) -> None:
        with suppress(Empty):
            self._call.inbox.get(timeout=delay_s)
            raise GivenUp


class RpcError(Exception):
    """A server's error in place of a result."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        self.error = error


class Errors(NativeErrors):
    """The way in which the client learns of a fault: silence, an error of the protocol, or a result that is one."""

    def failed(self, name: str, kind: str) -> Exception:  # noqa: ARG002
        return Silence() if kind == "timed_out" else RpcError({"code": CLOSED, "message": "Connection closed"})

    def text(self, said: str) -> Any:
        return mcp_result.said(said)


class Proxy:
    """The messages between a client and a server. `patience` is the clock of `seam`. `tell` writes a message to the
    client, `ask` one to the server."""

    def __init__(
        self, seam: FunctionSeam, patience: Patience, tell: Callable[[bytes], None], ask: Callable[[bytes], None]
    ) -> None:
        self._seam, self._patience, self._tell, self._ask = seam, patience, tell, ask
        self._calls: dict[str, tuple[threading.Thread, Inbox]] = {}
        self._waiting: dict[str, Inbox] = {}
        self._tools: dict[str, Callable[..., Any]] = {}
        self._reads: set[str] = set()

    def from_client(self, line: bytes) -> None:
        """Takes a line of the client's."""
        message = _parsed(line)
        params = message.get("params")
        if message.get("method") == "tools/call" and "id" in message and isinstance(params, dict):
            inbox: Inbox = SimpleQueue()
            thread = threading.Thread(target=self._call, args=(message, params, inbox), daemon=True)
            self._calls[_key(message["id"])] = thread, inbox
            thread.start()
            return
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            call = self._calls.get(_key(params.get("requestId")))
            if call is not None:
                call[1].put(End.CANCELLED)
        self._ask(line)

    def left(self) -> None:
        """Notes that the client has closed its end. It may still read what the server answers."""
        for _, inbox in [*self._calls.values()]:
            inbox.put(End.LEFT)

    def closed(self) -> None:
        """Ends the calls that are under way, since the server has closed its end."""
        under_way = [*self._calls.values()]
        for _, inbox in under_way:
            inbox.put(End.CLOSED)
        for thread, _ in under_way:
            thread.join(GRACE_S)

    def from_server(self, line: bytes) -> None:
        """Takes a line of the server's."""
        message = _parsed(line)
        waiting = self._waiting.pop(_key(message["id"]), None) if "id" in message and "method" not in message else None
        if waiting is not None:
            waiting.put(message)
            return
        result = message.get("result")
        for tool in result.get("tools", ()) if isinstance(result, dict) else ():
            if only_reads(tool):
                self._reads.add(str(tool["name"]))
        self._tell(line)

    def _call(self, message: Message, params: Message, inbox: Inbox) -> None:
        """Answers a call of a tool through the seam."""
        self._patience.begin(inbox)
        name, arguments = str(params.get("name")), params.get("arguments")
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            given = arguments if isinstance(arguments, dict) else {}
            answer["result"] = self._tool(name)(lab_message=message, lab_inbox=inbox, **given)
        except (Silence, GivenUp):
            return
        except RpcError as error:
            answer["error"] = error.error
        finally:
            self._calls.pop(_key(message["id"]), None)
        self._tell(json.dumps(answer, ensure_ascii=False).encode() + b"\n")

    def _tool(self, name: str) -> Callable[..., Any]:
        if name not in self._tools:

            def call(lab_message: Message, lab_inbox: Inbox, **arguments: Any) -> Any:
                params = {**lab_message["params"], "arguments": arguments}
                return self._asked({**lab_message, "params": params}, lab_inbox)

            effect, hidden = name not in self._reads, frozenset({"lab_message", "lab_inbox"})
            tool = WrappedFunction(name, call, effect, hidden, Errors({}, mcp_result.refused), ToolResult)
            self._tools[name] = self._seam.stand_in(tool)
        return self._tools[name]

    def _asked(self, message: Message, inbox: Inbox) -> Any:
        """The server's result for a message."""
        self._waiting[_key(message["id"])] = inbox
        self._ask(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        answer = inbox.get()
        left = answer is End.LEFT
        if left:
            answer = inbox.get()
            inbox.put(End.LEFT)  # a fault may hold the answer back, and nobody waits for it
        if answer is End.CANCELLED or (answer is End.CLOSED and left):
            raise GivenUp
        if isinstance(answer, End):
            raise RpcError({"code": CLOSED, "message": "Connection closed"})
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer.get("result", {})


def _parsed(line: bytes) -> Message:
    """The message in a line; an empty one if there is none that the proxy needs to know."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _key(identity: Any) -> str:
    return json.dumps(identity)


def run(command: Sequence[str], plan: Plan, *, logs: Path) -> int:
    """Runs the server's command behind the proxy until one of them closes its end. Returns the server's exit code.

    Raises:
        OSError: the command cannot be run, or the logs cannot be written.
    """
    with (
        live(plan, logs=logs, settings={"SERVER": " ".join(command)}, prompt=PROMPT) as book,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        patience = Patience()
        seam = FunctionSeam(plan, timeout_s=WAIT_S, clock=patience)
        seam.begin(book)
        proxy = Proxy(seam, patience, _writer(sys.stdout.buffer), _writer(server.stdin))
        threading.Thread(target=_client, args=(proxy, server.stdin), daemon=True).start()
        _lines(server.stdout, proxy.from_server)
        proxy.closed()
        code = server.wait()
        seam.book = None
        seconds = system.monotonic() - book.origin
        finished(book, prompt=PROMPT, answer="the connection was closed", seconds=seconds)
    return code if code >= 0 else 128 - code


def _client(proxy: Proxy, server: IO[bytes]) -> None:
    """Takes the client's lines until it closes its end, which ends the server too. Not from `sys.stdin`, whose lock the
    interpreter wants at its end."""
    with open(0, "rb", closefd=False) as lines:
        _lines(lines, proxy.from_client)
    proxy.left()
    with suppress(OSError):
        server.close()


def _writer(stream: IO[bytes]) -> Callable[[bytes], None]:
    """A function that writes whole lines, from any thread. What nobody reads any more is lost."""
    lock = threading.Lock()

    def write(line: bytes) -> None:
        with lock, suppress(OSError, ValueError):
            stream.write(line)
            stream.flush()

    return write


def _lines(stream: IO[bytes], take: Callable[[bytes], None]) -> None:
    for line in stream:
        take(line)
