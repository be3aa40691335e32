"""A proxy between an MCP client and a server on standard input and output: calls of tools meet faults, all else passes.

A message is a line of JSON-RPC. A call of a tool is a call of a function whose work is done by the server, so the seam
of functions numbers it, tells its stories and notes it. A client that cancels a call, or leaves, ends its waiting: a
fault that holds it back is met then. What no fault changes passes byte by byte, and calls keep their order unless a
fault holds one back.
"""

import json
import re
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
from chaoslab.base.child_group import ENDING_S, ChildGroup, forward_signals
from chaoslab.base.clock import SystemClock, system
from chaoslab.core.events import Event
from chaoslab.core.plan import Plan
from chaoslab.execution.upstreams import GRACE_S
from chaoslab.record.history import History
from chaoslab.reports.gate import BY_ITSELF
from chaoslab.seams.adapters.mcp import CLOSED, HIDDEN
from chaoslab.seams.functions.mcp_result import LaterResult, ResultForm, ToolResult
from chaoslab.seams.functions.native_errors import NativeErrors
from chaoslab.seams.functions.seam import FunctionSeam
from chaoslab.seams.functions.wrapped import Returned, ReturnedFactory, WrappedFunction
from chaoslab.seams.protocols import mcp
from chaoslab.seams.services.effects import make_unfinished_task_effect
from chaoslab.surfaces import sessions
from chaoslab.surfaces.gateway import (
    judge_and_report_run,
    make_prompt_start_event,
    open_live_log,
    write_trial_and_run_end,
)

WAIT_S = 60.0
"""The longest time for which a fault holds a call back, in seconds; clients of MCP give up about then."""
LOOK_S = 0.05
"""The time between two looks if a call waits still, in seconds."""
PROMPT = "all calls of tools"
ONE_RUN = "if its client starts the server anew to try again, --session NAME has the tries judged as one run"
_FIELD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
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
    def parse_line(cls, text: bytes) -> "McpLine":
        try:
            value = json.loads(text)
        # JSON that is nested too deep raises RecursionError, which is no ValueError.
        except (ValueError, RecursionError):
            value = None
        return cls(text, _dict_or_empty(value))


@dataclass(frozen=True)
class PendingCall:
    """A call that is under way: the client's line, the call that it is, and the inbox of what comes for it.
    `on_its_way` is set when it has been sent to the server, or is held back, or is over."""

    line: McpLine
    call: mcp.McpToolCall | None = None
    inbox: SimpleQueue[McpLine | CallEnd] = field(default_factory=SimpleQueue)
    on_its_way: threading.Event = field(default_factory=threading.Event)


class InterruptibleClock(SystemClock):
    """The machine's time. A wait ends as soon as something comes into the inbox of the call in its thread."""

    def __init__(self) -> None:
        self._call = threading.local()

    def set_current_call(self, call: PendingCall) -> None:
        """Begins a call in this thread."""
        self._call.asked = call

    def sleep(self, delay_s: float) -> None:
        pending: PendingCall = self._call.asked
        pending.on_its_way.set()
        with suppress(Empty):
            pending.inbox.get(timeout=delay_s)
            raise GivenUp


class RpcError(Exception):
    """An error in place of a result. `line`: the server's, if it is its own."""

    def __init__(self, error: Any, line: McpLine | None = None) -> None:
        super().__init__(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        self.error, self.line = error, line


class McpErrors(NativeErrors):
    """The way in which the client learns of a fault: silence, an error of the protocol, or a result that is one."""

    def make_failure(self, name: str, kind: str) -> Exception:  # noqa: ARG002
        return Silence() if kind == "timed_out" else RpcError({"code": CLOSED, "message": "Connection closed"})

    def make_text_reply(self, message_text: str) -> Any:
        return mcp.make_text_result(message_text)


class McpProxy:
    """The messages between a client and a server. `patience` is the clock of `seam`. `tell` writes a message to the
    client, `ask` one to the server. `said`: the arguments of all calls, as JSON."""

    def __init__(
        self,
        seam: FunctionSeam,
        patience: InterruptibleClock,
        tell: Callable[[bytes], None],
        ask: Callable[[bytes], None],
    ) -> None:
        self._seam, self._patience, self._tell, self._ask = seam, patience, tell, ask
        self.said: list[str] = []
        self._calls: dict[str, tuple[threading.Thread, PendingCall]] = {}
        self._waiting: dict[str, PendingCall] = {}
        self._tools: dict[tuple[str, bool, bool], Callable[..., Any]] = {}
        self._listed: dict[str, Any] = {}
        self._tasks = mcp.Tasks()
        self._batches: dict[str, BatchAnswers] = {}
        plan = seam.plan
        self._led = {
            *([mcp.LIST] if any(injection.of_listing for injection in plan.find_candidates(mcp.LIST)) else []),
            *([mcp.BEGIN] if any(mcp.BEGIN in injection.targets for injection in plan.injections) else []),
        }
        """The methods beside calls of tools whose answers may meet a fault."""

    def handle_client_line(self, text: bytes) -> None:
        """Takes a line of the client's."""
        if text.lstrip().startswith(b"[") and (batch := _parse_batch(text)) is not None:
            self._handle_batch(batch)
            return
        line = McpLine.parse_line(text)
        method, params = line.message.get("method"), line.message.get("params")
        call = self._tasks.find_call_of_task_result(mcp.read_message(line.message))
        if method == mcp.CALL:
            self.said.append(json.dumps(_dict_or_empty(params).get("arguments"), ensure_ascii=False))
        if "id" in line.message and (isinstance(call, mcp.McpToolCall) or method in self._led):
            pending = PendingCall(line, call if isinstance(call, mcp.McpToolCall) else None)
            # A daemon: a call that waits for ever must not keep the process.
            thread = threading.Thread(target=self._answer_call, args=(pending,), daemon=True)
            # Before it starts, since it takes itself out at its end.
            self._calls[_encode_id(line.message["id"])] = thread, pending
            thread.start()
            # Calls keep their order, unless a fault holds one back.
            pending.on_its_way.wait()
            return
        if method == "notifications/cancelled":
            cancelled = self._calls.get(_encode_id(_dict_or_empty(params).get("requestId")))
            if cancelled is not None:
                cancelled[1].inbox.put(CallEnd.CANCELLED)
        self._ask(text)

    def _handle_batch(self, batch: Sequence[Message]) -> None:
        """Takes several messages of the client's that came as one (2025-03-26). The server gets one after the other,
        and the client all answers together."""
        ids = [_encode_id(message["id"]) for message in batch if "id" in message and "method" in message]
        answers = BatchAnswers({*ids})
        self._batches.update(dict.fromkeys(ids, answers))
        for message in batch:
            self.handle_client_line(_encode_message(message))

    @property
    def has_open_calls(self) -> bool:
        """True while a call waits for its answer."""
        return bool(self._calls)

    def handle_client_left(self) -> None:
        """Notes that the client has closed its end. It may still read what the server answers."""
        # A copy: calls end meanwhile.
        for _, pending in [*self._calls.values()]:
            pending.inbox.put(CallEnd.LEFT)

    def end_open_calls(self) -> None:
        """Ends the calls that are under way, since the server has closed its end."""
        # A copy: calls end meanwhile.
        under_way = [*self._calls.values()]
        for _, pending in under_way:
            pending.inbox.put(CallEnd.CLOSED)
        for thread, _ in under_way:
            # Each writes its end into the log, which is closed next.
            thread.join(GRACE_S)

    def handle_server_line(self, text: bytes) -> None:
        """Takes a line of the server's. The beginning of one, in which it died, is left out: an error follows."""
        line = McpLine.parse_line(text)
        message = line.message
        if not message and not text.endswith(b"\n"):
            return
        self._listed.update({str(tool["name"]): tool for tool in mcp.iterate_listed_tools(text)})
        self._tasks.record_reply(message)
        waiting = (
            self._waiting.pop(_encode_id(message["id"]), None) if "id" in message and "method" not in message else None
        )
        if waiting is not None:
            waiting.inbox.put(line)
        else:
            self._send_to_client(text, message)

    def _answer_call(self, pending: PendingCall) -> None:
        """Answers a call of a tool, a request for the list of tools, or the first of a session, through the seam."""
        self._patience.set_current_call(pending)
        message, call, answer_lines = pending.line.message, pending.call, list[McpLine]()
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            acts = call is not None and not self._tasks.asks_ended_task(call)
            tool = self._get_wrapped_tool(call.tool if call else message["method"], acts=acts, session=call is None)
            cursor = (
                {"cursor": at} if call is None and (at := _dict_or_empty(message.get("params")).get("cursor")) else {}
            )
            result = tool(**{**(call.arguments if call else cursor), HIDDEN: (pending, answer_lines)})
            if isinstance(result, LaterResult):
                self._tell(result.line.encode() + b"\n")
                result = result.sent
            # By identity: what no fault changed goes on byte by byte.
            server_line = next((line for line in answer_lines if line.message.get("result") is result), None)
            answer["result"] = result
        except (Silence, GivenUp) as error:
            if isinstance(error, GivenUp):
                self._send_to_client(None, message)
            return
        except RpcError as error:
            server_line = error.line
            answer["error"] = error.error
        finally:
            self._calls.pop(_encode_id(message["id"]), None)
            # Also where it was never sent, or the client's next line would wait for ever.
            pending.on_its_way.set()
        self._send_to_client(server_line.text if server_line is not None else _encode_message(answer), answer)

    def _send_to_client(self, text: bytes | None, message: Message) -> None:
        """Tells the client an answer, or another message. None: this one has no answer."""
        is_answer = text is None or ("id" in message and "method" not in message)
        if is_answer and (batch := self._batches.pop(_encode_id(message["id"]), None)) is not None:
            text = batch.add_answer(_encode_id(message["id"]), text)
        if text is not None:
            self._tell(text)

    def log_effects_of_open_tasks(self, note: Callable[[Event], object]) -> None:
        """Ends the session. `note` takes the effects of the tasks whose results nobody has asked for."""
        for call in self._tasks.list_unfinished_calls():
            if not mcp.is_read_only_tool(self._listed.get(call.tool)):
                note(make_unfinished_task_effect(call.tool, call.tool, call.arguments))

    def _get_wrapped_tool(self, name: str, *, acts: bool, session: bool) -> Callable[..., Any]:
        """The tool, or a method of the session, as the seam leads its calls. `acts`: a call may have an effect.
        `session`: it is a method."""
        key = name, acts, session
        if key not in self._tools:
            effect = acts and not mcp.is_read_only_tool(self._listed.get(name))
            form: ReturnedFactory = ResultForm(ToolResult, lambda: (self._listed.get(name) or {}).get("outputSchema"))
            refused = McpErrors({}, lambda name, status, message: mcp.make_error_result(name, f"{status} {message}"))
            form = SessionAnswer if session else form
            once = mcp.is_idempotent_tool(self._listed.get(name))
            tool = WrappedFunction(name, self._ask_server, effect, frozenset({HIDDEN}), refused, form, keyed=once)
            self._tools[key] = self._seam.make_fake_function(tool)
        return self._tools[key]

    # Positional, since a tool may have an argument that is called self.
    def _ask_server(self, /, **arguments: Any) -> Any:
        """The server's result for a call with these arguments, which may have any name."""
        pending, answer_lines = arguments.pop(HIDDEN)
        message, call = pending.line.message, pending.call
        params = _dict_or_empty(message.get("params"))
        if call is None:  # one of the session's own
            is_unchanged = arguments.get("cursor") == params.get("cursor")
            changed: Mapping[str, Any] = {**message, "params": {k: v for k, v in params.items() if k != "cursor"}}
        else:
            is_unchanged = arguments == {key: call.arguments[key] for key in call.arguments if key != HIDDEN}
            changed = call.build_body_with_arguments(arguments)
        # Before it is sent, since the answer may come at once.
        self._waiting[_encode_id(message["id"])] = pending
        self._ask(pending.line.text if is_unchanged else _encode_message(changed))
        pending.on_its_way.set()
        answer = pending.inbox.get()
        has_left = answer is CallEnd.LEFT
        if has_left:
            answer = pending.inbox.get()
            pending.inbox.put(CallEnd.LEFT)  # a fault may hold the answer back, and nobody waits for it
        if answer is CallEnd.CANCELLED or (answer is CallEnd.CLOSED and has_left):
            raise GivenUp
        if isinstance(answer, CallEnd):
            raise RpcError({"code": CLOSED, "message": "Connection closed"})
        result = answer.message.get("result")
        if not isinstance(result, dict):
            self._tasks.record_reply(answer.message, call)
            raise RpcError(answer.message.get("error", "the result is no object"), answer)
        self._tasks.record_reply(answer.message, call)
        answer_lines.append(answer)
        return result


class SessionAnswer(Returned):
    """The answer to a request of the session's own, as the server sends it. Its value is its list of tools, if any."""

    protocol = mcp.NAME

    def __init__(self, result: Any) -> None:
        super().__init__(result.get("tools") if isinstance(result, dict) else None)
        self.__dict__["result"] = result

    @property
    def native_result(self) -> Any:
        return self.__dict__["result"]

    def with_value(self, value: Any) -> "SessionAnswer":
        return SessionAnswer(mcp.replace_listed_tools(self.native_result, value))

    def with_preceding_line(self, line: str) -> "SessionAnswer":
        return SessionAnswer(LaterResult(self.native_result, line))


@dataclass
class BatchAnswers:
    """The answers to the messages of a batch. `open`: those that are to come."""

    open: set[str]
    lines: list[bytes] = field(default_factory=list)

    def add_answer(self, key: str, line: bytes | None) -> bytes | None:
        """Takes an answer; gives all as one line once none is open. None: this message has no answer."""
        self.open.discard(key)
        if line is not None:
            self.lines.append(line.strip())
        return b"[" + b",".join(self.lines) + b"]\n" if not self.open and self.lines else None


def _parse_batch(text: bytes) -> list[Message] | None:
    """The messages in a line with calls of tools among them; None if it is no such batch."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return None
    batch = mcp.read_batch(items) if isinstance(items, list) else None
    return None if batch is None or batch.part == "session" else items


def _encode_message(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _dict_or_empty(value: Any) -> Message:
    return value if isinstance(value, dict) else {}


def _encode_id(identity: Any) -> str:
    return json.dumps(identity)


class StopSignal:
    """The way in which a session ends when a signal asks for its end."""

    def __init__(self) -> None:
        self._by: Callable[[int], object] | None = None
        self._number: int | None = None

    @property
    def has_signal(self) -> bool:
        """True once a signal has come."""
        return self._number is not None

    def set_end_function(self, end: Callable[[int], object]) -> None:
        """Takes the function that ends it, which is given the signal's number; it may have come already."""
        self._by = end
        if self._number is not None:
            end(self._number)

    def handle_signal(self, number: int) -> None:
        """Takes a signal."""
        self._number = number
        if self._by is not None:
            self._by(number)


@dataclass(frozen=True)
class ProxySession:
    """A session of a client with the server. `logs`: the folder of runs; `facts`, `effects`: the stated ones, as in
    `trial_of`. Without an answer of the client's, a fact is looked for in the arguments of its calls. `name`: sessions
    of one name are one run; empty: it is a run of its own. `kept`: as in `judge_and_report_run`."""

    plan: Plan
    logs: Path
    facts: Sequence[str] = ()
    effects: Sequence[Mapping[str, Any]] | None = None
    name: str = ""
    kept: bool = True
    stop: StopSignal = field(default_factory=StopSignal)

    def run(
        self, server: str, serve: Callable[[Callable[[Ask], McpProxy]], int], *, secrets: Sequence[str] = ()
    ) -> int:
        """Runs the session. `server`: in words; `serve` is given a function that makes the proxy, and returns the exit
        code once one of both has closed its end. Prints a verdict if anything was stated. Raises OSError: the command
        cannot be run, or the logs cannot be written."""
        started, patience = make_prompt_start_event(PROMPT, self.facts, self.effects), InterruptibleClock()
        seam = FunctionSeam(self.plan, timeout_s=WAIT_S, clock=patience)
        key = self.name and sessions.make_session_key(self.name, server)
        resumed = sessions.resume_session_run(self.logs, key) if key else None
        proxies: list[McpProxy] = []

        def make_proxy(ask: Ask) -> McpProxy:
            proxies.append(McpProxy(seam, patience, make_line_writer(sys.stdout.buffer), ask))
            return proxies[0]

        settings = {"SERVER": server}
        with forward_signals(self.stop.handle_signal):  # until the verdict is told
            with open_live_log(
                self.plan, logs=self.logs, settings=settings, started=started, secrets=secrets, run=resumed
            ) as book:
                seam.begin_trial(book)
                if resumed is not None:
                    sessions.restore_call_counts(seam, book, History.read(resumed.folder))
                elif key:
                    sessions.register_session_run(self.logs, key, book.run)
                code = serve(make_proxy)
                proxies[0].end_open_calls()
                proxies[0].log_effects_of_open_tasks(book.note_event)
                # What comes from now on is no part of the trial.
                seam.book = None
                answer = "\n".join(proxies[0].said) if self.facts else "the connection was closed"
                write_trial_and_run_end(book, prompt=PROMPT, answer=answer, seconds=system.monotonic() - book.origin)
            if not key and (fault := sessions.find_fault_that_ended_call(History.read(book.run.folder))):
                print(f"chaoslab: {fault} ended a call: {ONE_RUN}", file=sys.stderr, flush=True)
            return judge_and_report_run(book, started, BY_ITSELF, code, kept=self.kept, passes=True)


def run_stdio_proxy(command: Sequence[str], session: ProxySession) -> int:
    """Runs the server's command behind the proxy until one of them closes its end, or a signal asks for the end, which
    the server gets too. Returns the exit code: the server's, unless the verdict asks for another; 0 if its client has
    left and it did not end by itself. Raises OSError: the command cannot be run, or the logs cannot be written."""

    def serve_session(proxied: Callable[[Ask], McpProxy]) -> int:
        with ChildGroup(command) as server:
            proxy, is_over, forsaken = proxied(make_line_writer(server.stdin)), threading.Event(), threading.Event()

            def forward_then_end_server() -> None:
                forward_client_lines(proxy)
                with suppress(OSError):
                    server.stdin.close()  # which ends most servers
                until_s = system.monotonic() + WAIT_S
                while proxy.has_open_calls and system.monotonic() < until_s and not is_over.wait(LOOK_S):
                    pass
                if not is_over.wait(ENDING_S):
                    forsaken.set()
                    server.end_without_waiting()

            threading.Thread(target=forward_then_end_server, daemon=True).start()
            session.stop.set_end_function(server.end_without_waiting)
            for line in server.stdout:
                proxy.handle_server_line(line)
            is_over.set()
            proxy.end_open_calls()
            code = server.wait()
        return code if code >= 0 else 0 if forsaken.is_set() and not session.stop.has_signal else 128 - code

    return session.run(" ".join(command), serve_session)


def forward_client_lines(proxy: McpProxy) -> None:
    """Takes the client's lines until it closes its end. Not from `sys.stdin`, whose lock the interpreter wants at its
    end."""
    with open(0, "rb", closefd=False) as lines:
        for line in lines:
            proxy.handle_client_line(line)
    proxy.handle_client_left()


def make_line_writer(stream: IO[bytes]) -> Callable[[bytes], None]:
    """A function that writes whole lines, from any thread. What nobody reads any more is lost."""
    lock = threading.Lock()

    def write_line(line: bytes) -> None:
        with lock, suppress(OSError, ValueError):
            stream.write(line)
            stream.flush()

    return write_line


def parse_header_fields(texts: Sequence[str]) -> dict[str, str]:
    """Header fields from texts such as "Authorization: Bearer …". Raises ValueError: one is none; its value is not
    shown."""
    header_fields = {}
    for text in texts:
        name, colon, value = (piece.strip() for piece in text.partition(":"))
        if not colon or not _FIELD.fullmatch(name) or not value.isprintable() or not value.isascii():
            name_shown = name[:40] if colon else "…"
            raise ValueError(f"--header {name_shown!r} should be a name and a value, as in 'Authorization: Bearer …'")
        header_fields[name] = value
    return header_fields
