"""The check of pieces: an answer that meets a fault is read byte by byte, with the moment of each piece, and the fault
compares it with what its page says. A whole answer, a stream of events and one of lines are tried, of text in which
characters have several bytes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from chaoslab.base.clock import system
from chaoslab.core.events import FaultInjected, FaultScheduled
from chaoslab.core.exchange import Arrival
from chaoslab.core.fault import Fault, load_fault
from chaoslab.core.inject import inject
from chaoslab.core.plan import Injection
from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import Trial, run_numbered_trials

HOST = "pieces.test"
TEXTS = [f"Das Café Nr. {number}, 北京 🌍" for number in range(6)]
KINDS: Mapping[str, tuple[str, str]] = {
    "a whole answer": ("application/json", ""), "a stream of events": ("text/event-stream", "data: {}\n\n"),
    "a stream of lines": ("application/x-ndjson", "{}\n"),
}  # fmt: skip
"""The kind of an answer → its type, and the form of a part; empty: it has none."""
PATIENCE_S = 60.0
"""The seconds for which a client waits for the next piece."""


def describe_piece_mismatch(fault: str, seed: int) -> str | None:
    """The first difference, in words, between what arrives and what the fault's page says; empty if there is none, None
    if the page says nothing of pieces. Raises LookupError: no fault of that name."""
    kind = load_fault(fault)
    if getattr(kind, "describe_deviation", Fault.describe_deviation) is Fault.describe_deviation:
        return None
    was_compared = False
    for name, (content_type, form) in KINDS.items():
        trial = _run_service_trial(content_type, form, [inject(fault, HOST)], seed)
        if not any(trial.history.find_events(FaultInjected)):
            continue  # a fault of streams has nothing to do with a whole answer
        was_compared = True
        fault_instance = kind(**next(event.params for _, event in trial.history.find_events(FaultScheduled)))
        # The same request without the fault: a fault's page speaks of the bytes that would have come.
        undisturbed = b"".join(
            piece for _, piece in _parse_received_pieces(_run_service_trial(content_type, form, [], seed))[0]
        )
        pieces, ended_s, error = _parse_received_pieces(trial)
        difference = fault_instance.describe_deviation(
            Arrival(undisturbed, len(TEXTS) if form else 1, pieces, ended_s, error)
        )
        if difference:
            return f"of {name}, {difference}"
    return "" if was_compared else "it met no answer"


def _parse_received_pieces(trial: Trial) -> tuple[list[tuple[float, bytes]], float, str | None]:
    if trial.error is not None:
        raise RuntimeError(f"the check of pieces failed: {trial.error!r}") from trial.error
    pieces, ended_s, error = json.loads(trial.answer)
    return [(at_s, bytes.fromhex(piece)) for at_s, piece in pieces], ended_s, error


def _run_service_trial(content_type: str, form: str, faults: list[Injection], seed: int) -> Trial:
    def answer_request(_: Any) -> tuple[int, Any, dict[str, str]]:
        def iterate_parts() -> Iterator[str]:
            for text in TEXTS:
                yield form.format(json.dumps({"text": text}, ensure_ascii=False))

        body = iterate_parts() if form else json.dumps(TEXTS, ensure_ascii=False).encode()
        return 200, body, {"Content-Type": content_type}

    arguments = RunArguments(
        _request_timed_pieces,
        "check",
        faults=faults,
        seed=seed,
        # Nothing is compared with it: another trial would only ask once more.
        twin=False,
        services={HOST: answer_request},
        # Ten times as long: only the client's own patience may end a wait, since the fault's page speaks of the client.
        deadline_s=10 * PATIENCE_S,
        settle_s=0,
    )
    (trial,) = run_numbered_trials(arguments, range(1))
    return trial


def _request_timed_pieces(_: str) -> str:
    """Asks once. Returns the pieces with their moments, the moment of the end, and its kind, as JSON."""
    began_s, pieces, error = system.monotonic(), list[tuple[float, str]](), None
    try:
        # A bare socket, since an HTTP client would join the pieces and hide the moment of each.
        with socket.create_connection((HOST, 80), timeout=PATIENCE_S) as connection:
            # Without "close" the service would keep the connection, and the end of its answer would never show as an
            # end.
            connection.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            while piece := connection.recv(65536):
                pieces.append((round(system.monotonic() - began_s, 6), piece.hex()))
    except TimeoutError:
        error = "timed_out"
    # A bare socket has no other way to end early.
    except OSError:
        error = "reset"
    return json.dumps([pieces, round(system.monotonic() - began_s, 6), error])
