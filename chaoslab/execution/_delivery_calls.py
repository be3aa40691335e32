"""The callers in the check of faults: a function is called, a service and a model are asked over HTTP, files are
touched and commands run. Each makes as many calls as a cell says, in a trial of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chaoslab.analysis.measures.delivery import DeliveryCell
from chaoslab.base.clock import system
from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.core.conversation import turns
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.machine import COMMANDS, DELETE, MOVE, READ, WRITE
from chaoslab.core.plan import Injection
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import Trial, run_numbered_trials
from chaoslab.model.app import Answered
from chaoslab.model.formats.common import Format
from chaoslab.model.offline import OfflineModel

TIMEOUT_S = 2.0
STEP_S = 0.1
QUESTIONS = {False: "Order 17 teas.", True: "Thanks."}
"""Streamed or not → a request that the offline model answers in few words, and in a whole answer with a number."""
WHOLE_OF_STREAMED = 7
"""The whole answers for each streamed one, which takes twice as long, of a fault that is met in both."""
ANSWERS_MAX = 1_000
"""The most answers of the model that a trial remembers: some faults make each request another."""
SHOP, MODEL = "shop.test", "api.openai.com"
ORDER = {
    "order": 17, "name": "Tea", "amount": 12.5, "due": "2026-06-01", "paid": True, "customer": "ann@shop.test",
    "lines": [{"item": "tea", "count": 2, "price": 4.0}, {"item": "cup", "count": 1, "price": 4.5}], "total": 12.5,
}  # fmt: skip
TEXT = "the text of a file"
"""An argument of the function, for faults that need one."""
OPTIONS = {"currency": "EUR", "lines": True}
ASKED = json.dumps({"note": "for the customer", "options": OPTIONS}).encode()
"""The arguments of a call, for a fault that changes them."""
CHANGED = "changed.txt"
"""A file that is changed since its trial began."""
LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
LIST_ANSWER = b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "price", "description": "Price"}]}}'
"""A request for the list of tools in MCP, and the answer."""
CALLERS: Mapping[str, int] = {"concurrency_limit": 2}
"""The callers at once, each in a thread of its own, of a fault that a caller alone never meets."""
BUSY_S = 0.01
"""The seconds of a call that has to overlap with others."""
CLOCK_FAULTS = frozenset({"clock_skew"})
"""The faults that only a target meets that asks for the time."""


def _run_check_trial(agent: Callable[[str], object], cell: DeliveryCell, fault: Injection, **world: Any) -> Trial:
    prompt = turns("check", "check the rest") if get_trait(load_fault(cell.fault), "of_turns") else "check"
    arguments = RunArguments(
        # The bounds on runaway agents are off, since a check makes thousands of calls on purpose; who is killed goes
        # on.
        agent,
        prompt,
        faults=[fault],
        seed=cell.seed,
        twin=False,
        timeout_s=TIMEOUT_S,
        deadline_s=SECONDS_MAX,
        calls_max=10**9,
        model_calls_max=10**9,
        settle_s=0,
        resume_with=agent,
        resumes=10**9,
        **world,
    )
    (trial,) = run_numbered_trials(arguments, range(1))
    return trial


def _run_function_trial(cell: DeliveryCell, fault: Injection) -> Trial:
    at_work = _choose_target_call_hook(cell)

    reads = count(1)
    has_text = bool(get_trait(load_fault(cell.fault), "of_machine"))

    def get_order(order: int, options: Mapping[str, Any] | None = None, text: str = "") -> dict[str, Any]:  # noqa: ARG001
        at_work()
        return {**ORDER, "order": order, **({"text": text, "reads": next(reads)} if text else {})}

    def make_calls(numbers: Iterable[int]) -> None:
        for number in numbers:
            _sleep_sometimes(number)
            with suppress(Exception):
                get_order(number % 7, OPTIONS, *([TEXT] if has_text else []))

    return _run_check_trial(_make_agent(cell, make_calls), cell, fault, reads=[get_order])


def _run_service_trial(cell: DeliveryCell, fault: Injection) -> Trial:
    at_work = _choose_target_call_hook(cell)

    def answer_order_lookup(environ: Any, start_response: Any) -> list[bytes]:
        at_work()
        body = _encode_order(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def stream_order(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return [f"data: {json.dumps(line)}\n\n".encode() for line in ORDER.items()]

    def serve_tool_list(_: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(LIST_ANSWER)))])
        return [LIST_ANSWER]

    def send_calls(numbers: Iterable[int]) -> None:
        list_request = ("POST", "/mcp", LIST) if lists else None
        method, body = ("POST", ASKED) if get_trait(load_fault(cell.fault), "corrupts") == "call" else ("GET", None)
        _send_requests(
            SHOP,
            numbers,
            lambda number: list_request or (method, f"/orders/{number % 7}", body),
            tls=_needs_tls(cell),
        )

    lists = get_trait(load_fault(cell.fault), "of_listing")
    streams = load_fault(cell.fault).layer == "stream"
    return _run_check_trial(
        _make_agent(cell, send_calls),
        cell,
        fault,
        services={SHOP: serve_tool_list if lists else stream_order if streams else answer_order_lookup},
    )


@cache
def _encode_order(path: str) -> bytes:
    """The shop's answer, which is spelt once: the check asks for the same few orders for ever."""
    return json.dumps({**ORDER, "order": int(path.rpartition("/")[2])}).encode()


def _run_model_trial(cell: DeliveryCell, fault: Injection) -> Trial:
    def send_calls(numbers: Iterable[int]) -> None:
        def build_request(number: int) -> tuple[str, str, bytes | None]:
            return "POST", "/v1/chat/completions", bodies[number % len(bodies)]

        _send_requests(MODEL, numbers, build_request, tls=_needs_tls(cell))

    fault_class = load_fault(cell.fault)
    has_whole_answers = fault_class.layer != "stream"
    streams = not has_whole_answers or get_trait(fault_class, "of_model")
    stream_choices = [False] * WHOLE_OF_STREAMED * has_whole_answers + [True] * streams
    is_long = fault_class.layer == "context"
    bodies = [
        _build_chat_request(stream=stream, tools=tools, long=is_long)
        for stream in stream_choices
        for tools in (True, False)
    ]
    return _run_check_trial(
        _make_agent(cell, send_calls), cell, fault, services={MODEL: _RememberingModel(_choose_target_call_hook(cell))}
    )


def _make_agent(cell: DeliveryCell, calling: Callable[[Iterable[int]], None]) -> Callable[[str], None]:
    """An agent that makes the calls of a cell, by as many callers as its fault needs. One that is killed goes on with
    the next call."""
    callers = CALLERS.get(cell.fault, 1)
    remaining_numbers = iter(range(cell.calls - (callers - 1) * (cell.calls // callers)))

    # All its lives share one iterator: an agent that was killed goes on with the next call, and repeats none.
    def agent(_: str) -> None:
        threads = [threading.Thread(target=calling, args=(range(cell.calls // callers),)) for _ in range(callers - 1)]
        for thread in threads:
            thread.start()
        calling(remaining_numbers)
        for thread in threads:
            thread.join()

    return agent


def _choose_target_call_hook(cell: DeliveryCell) -> Callable[[], object]:
    """The function that a target calls at each call: nothing but what the fault needs."""
    if cell.fault in CALLERS:
        return partial(system.sleep, BUSY_S)
    return system.utc if cell.fault in CLOCK_FAULTS else lambda: None


def _needs_tls(cell: DeliveryCell) -> bool:
    """True if the fault is met in the handshake of TLS, which takes a client of https."""
    return bool(get_trait(load_fault(cell.fault), "refuses_at") == "handshake")


class _RememberingModel(OfflineModel):
    """The offline model, which works out the answer to each request once: the check sends the same few for ever."""

    def __init__(self, at_work: Callable[[], object]) -> None:
        super().__init__()
        self._at_work = at_work
        self._answers: dict[tuple[str, bytes], Answered] = {}

    def _answer_request(self, shape: Format, method: str, environ: Mapping[str, Any], body: bytes) -> Answered:
        self._at_work()
        key = environ["PATH_INFO"], body
        answer = self._answers.get(key)
        if answer is None:
            status, fields, parts = super()._answer_request(shape, method, environ, body)
            answer = status, fields, tuple(parts)
            if len(self._answers) < ANSWERS_MAX:
                self._answers[key] = answer
        return answer


def _write_test_file(_: int) -> None:
    with open("written.txt", "w") as file:
        file.write(TEXT)


MACHINE_CALLS: Mapping[str, Callable[[int], object]] = {
    # A file that the agent has changed, which a fault can make stale.
    READ: lambda _: shutil.copyfile(CHANGED, os.devnull), WRITE: _write_test_file,
    # Files that are not there: a call of a trial is one all the same.
    DELETE: lambda number: os.remove(f"{number}.txt"), MOVE: lambda number: os.rename(f"{number}.txt", "moved.txt"),
    COMMANDS: lambda _: subprocess.run(["/bin/echo", "done"], capture_output=True, timeout=TIMEOUT_S, check=True),
}  # fmt: skip
"""A call of each target of the agent's own machine."""


def _run_machine_trial(cell: DeliveryCell, fault: Injection) -> Trial:
    def make_calls(numbers: Iterable[int]) -> None:
        with suppress(OSError):  # it is a call, too
            Path(CHANGED).write_text("changed since")
        for number in numbers:
            _sleep_sometimes(number)
            with suppress(Exception):
                MACHINE_CALLS[fault.targets[number % len(fault.targets)]](number)

    with TemporaryDirectory(prefix="chaoslab-") as folder:
        Path(folder, CHANGED).write_text("as it was")
        return _run_check_trial(_make_agent(cell, make_calls), cell, fault, files=folder)


Seam = tuple[Callable[[DeliveryCell, Injection], Trial], Sequence[str]]
"""A function that makes a cell's calls, and the targets of these."""
SEAMS: Mapping[str, Seam] = {
    "function": (_run_function_trial, ["get_order"]), "service": (_run_service_trial, [SHOP]),
    "model": (_run_model_trial, [MODEL]),
}  # fmt: skip


def get_fault_seams(fault: str) -> Mapping[str, Seam]:
    """The seams at which a fault is tried; the agent's own machine is one for its own faults alone."""
    targets = get_trait(load_fault(fault), "of_machine")
    return {**SEAMS, "machine": (_run_machine_trial, targets)} if targets else SEAMS


def _sleep_sometimes(number: int) -> None:
    """Lets time pass now and then, which some faults count."""
    if number % 10 == 0:
        system.sleep(STEP_S)


def _send_requests(
    host: str, numbers: Iterable[int], request: Callable[[int], tuple[str, str, bytes | None]], *, tls: bool
) -> None:
    """Sends so many requests over one connection, or the next if one is lost."""
    context = ssl.create_default_context() if tls else None
    connection: socket.socket | None = None
    for number in numbers:
        _sleep_sometimes(number)
        try:
            if connection is None:
                connection = socket.create_connection((host, 443 if tls else 80), timeout=TIMEOUT_S)
                if context is not None:
                    connection = context.wrap_socket(connection, server_hostname=host)
            connection.sendall(_encode_request(host, *request(number)))
            is_reusable = _read_http_answer(connection)
        except OSError:  # whatever it was, the fault's witness says if it was the fault
            is_reusable = False
        if connection is not None and not is_reusable:
            connection.close()
            connection = None


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)")


@cache
def _encode_request(host: str, method: str, path: str, body: bytes | None) -> bytes:
    """A request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Accept: */*"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


def _read_http_answer(connection: socket.socket) -> bool:
    """Reads an answer to its end; True if the connection may be asked again. A client of the standard library takes as
    long for its headers as all of the lab does for the call. Raises OSError: the connection failed, or nothing came in
    time."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (received := connection.recv(65536)):
            return False
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    fields = head.lower() + b"\r\n"
    length = _LENGTH.search(fields)
    # An answer with neither ends with its connection (RFC 9112, 6.3), which cannot be used again.
    if length is None and b"\r\ntransfer-encoding: chunked" not in fields:
        while connection.recv(65536):
            pass
        return False
    # Enough for an end of chunks: no body of the check holds these bytes itself.
    while len(body) < int(length[1]) if length else not body.endswith(b"0\r\n\r\n"):
        if not (received := connection.recv(65536)):
            return False
        body += received
    return b"\r\nconnection: close" not in fields


def _build_chat_request(*, stream: bool, tools: bool, long: bool) -> bytes:
    """A request to a model. With `tools`, it is to make a call. A long conversation holds two results of a tool."""
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"type": "function", "function": {"name": "current_weather", "parameters": parameters}}

    def build_tool_exchange(call_id: str, warmth: float) -> list[dict[str, Any]]:
        function = {"name": "current_weather", "arguments": '{"city": "Oslo"}'}
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": json.dumps({"temp": warmth})},
        ]

    system = {"role": "system", "content": "You are a helpful assistant."}
    question = {"role": "user", "content": "How warm is it in Paris?" if tools else QUESTIONS[stream]}
    earlier_messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Is Zürich a city? Never guess."},
        {"role": "assistant", "content": "Zürich is a city in Switzerland."},
        {"role": "user", "content": "How warm is it in Oslo, and now?"},
        *build_tool_exchange("c1", 21.5),
        *build_tool_exchange("c2", 19.0),
        {"role": "assistant", "content": "21.5 degrees in Oslo, and 19 now."},
    ]
    messages = [system, *(earlier_messages if long else ()), question]
    tool_fields = {"tools": [tool]} if tools else {}
    return json.dumps(
        {"model": "gpt-5", "messages": messages, "stream": stream, **tool_fields}, ensure_ascii=False
    ).encode()
