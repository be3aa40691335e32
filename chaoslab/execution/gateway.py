"""A gateway on loopback, put together: its plan, its run folder, its listener and its threads."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from chaoslab.base.clock import iso, system
from chaoslab.base.identity import nth
from chaoslab.core import events
from chaoslab.core.events import Event
from chaoslab.core.inject import check, inject
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Injection, Plan
from chaoslab.core.service_spec import ErrorReply
from chaoslab.model import formats
from chaoslab.model.prices import cost_usd
from chaoslab.record.log import Log
from chaoslab.record.runs import Run
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.gateway.connection import Gateway
from chaoslab.seams.gateway.routes import Route
from chaoslab.seams.service import ServiceSeam, refuses
from chaoslab.seams.service_model import ModelHost

MODELS = ("model", "openai", "anthropic", "groq", "gemini")
"""The names of routes whose services speak a model's API."""
UPSTREAM_S = 120.0
"""The longest silence of a service, by default, in seconds."""
HANG_S = 600.0
"""The longest time for which a client that does not give up waits for an answer that never comes, in seconds."""


class LiveLog(TrialLog):
    """The log of a trial in real time. Each event is written when it is noted; the newest are kept for the plan."""

    def __init__(self, run: Run, log: Log) -> None:
        super().__init__(nth(run.name, 0, 1), began=system.utc())
        self._log = log

    def note(self, noted: Event) -> None:
        self._log.write(noted, trial=self.key)


@dataclass(frozen=True)
class Running:
    """A gateway that answers. `address`: its own, as in "http://127.0.0.1:8888"."""

    address: str
    run: Run
    log: Log
    book: LiveLog
    plan: Plan
    seam: ServiceSeam

    def url(self, route: str) -> str:
        """The address under which a program asks for a route's service."""
        return f"{self.address}/{route}"


def plan_of(faults: Sequence[str], file: Path | None, seed: int | None, routes: Mapping[str, Route]) -> Plan:
    """The plan from `--fault` options, a file, or both. A fault is "name:route", or JSON as in
    {"fault": "latency", "target": "crm", "delay_s": 2}; a file holds a list of such objects, or {"seed": …, "faults":
    […]}.

    Raises:
        ValueError, LookupError, TypeError: one of them is wrong; OSError: the file cannot be read.
    """
    given: list[tuple[str, Any]] = [(f"--fault {text[:60]}", _of_text(text)) for text in faults]
    if file is not None:
        read = _of_file(file)
        if isinstance(read, Mapping):
            seed = read.get("seed") if seed is None else seed
            read = read.get("faults", [])
        if not isinstance(read, list):
            raise ValueError(f"{file} should hold a list of faults, or an object with seed and faults")
        given += [(f"{file}, fault {number}", each) for number, each in enumerate(read, 1)]
    injections = [_injection(where, each) for where, each in given]
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ValueError(f"the seed is {seed!r}: it should be a whole number from 0")
    checked = check(injections, list(routes), models=[name for name in routes if _of_model(routes[name])])
    for injection in checked:
        if refuses(injection):
            raise ValueError(
                f"'{injection.name}' refuses connections, and a gateway has taken one before it knows the route: "
                "use reset_peer"
            )
    return Plan(1 if seed is None else seed, checked)


def _of_text(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"--fault {text[:60]} is no JSON: {error}") from None
    fault, colon, target = text.partition(":")
    if not colon or not target:
        raise ValueError(f"--fault {text[:60]} should be a fault and a route, as in lost_reply:crm, or JSON")
    return {"fault": fault, "target": target}


def _of_file(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None


def _injection(where: str, given: Any) -> Injection:
    like = '{"fault": "latency", "target": "crm", "delay_s": 2}'
    if not isinstance(given, Mapping) or not {"fault", "target"} <= given.keys():
        raise ValueError(f"{where} should be as in {like}")
    try:
        signature(inject).bind(**given)
        return inject(**given)
    except (ValueError, TypeError, LookupError) as error:
        raise type(error)(f"{where}: {error.args[0] if error.args else error}") from None


def _of_model(route: Route) -> bool:
    return route.name in MODELS or formats.known_host(route.host)


def _model() -> ModelHost:
    def errors_of(path: str, headers: Mapping[str, str]) -> Mapping[int, ErrorReply]:
        return formats.shape_of(path, headers).errors

    return ModelHost(formats.format_of, errors_of)


@contextmanager
def gateway(
    routes: Mapping[str, Route],
    plan: Plan,
    *,
    logs: Path,
    started: events.PromptStarted,
    port: int = 0,
    timeout_s: float = UPSTREAM_S,
    secrets: Sequence[str] = (),
) -> Iterator[Running]:
    """A context with a gateway that answers on loopback. `port` of 0 takes any free one.

    Raises:
        OSError: the port is taken, or the logs cannot be written.
    """
    listener = _listening(port)
    with listener:
        now = iso(system.utc())
        run = Run.create(logs, now=now)
        with run.log("info", secrets=secrets) as log:
            log.write(
                events.RunStarted(
                    seed=plan.seed,
                    settings={f"ROUTE_{name.upper()}": route.url for name, route in routes.items()},
                    plan=plan.to_json(),
                    prompts=1,
                    now=now,
                    model="",
                    world="local",
                    code={"log": str(events.VERSION)},
                )
            )
            run.make_latest()
            book = LiveLog(run, log)
            models = {name: _model() for name, route in routes.items() if _of_model(route)}
            seam = ServiceSeam(plan, timeout_s=HANG_S, models=models, price=cost_usd)
            log.write(started, trial=book.key)
            seam.begin(book, TrialMemory(plan, book.key))
            shared = Gateway(routes, seam, threading.Lock(), timeout_s, log.hide)
            threading.Thread(target=_accept, args=(listener, shared), name="gateway", daemon=True).start()
            host, taken = listener.getsockname()[:2]
            try:
                yield Running(f"http://{host}:{taken}", run, log, book, plan, seam)
            finally:
                with suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
                with shared.lock:
                    seam.end()


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)}: choose another --port", f"port {port}") from None
    return listener


def _accept(listener: socket.socket, shared: Gateway) -> None:
    """Serves each connection in a thread of its own, until the listener is closed."""
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=shared.serve, args=(line,), daemon=True).start()


def finished(running: Running, status: str, answer: str, error: str, seconds: float, prompt: str) -> None:
    """Writes the end of the trial and of the run."""
    began = running.book.began
    kind = "none" if status == "ok" else "agent"
    running.log.write(
        events.PromptAttempt(
            prompt_index=1, prompt=prompt, response=answer, status=status, start_time=iso(began),
            end_time=iso(system.utc()), duration_s=round(seconds, 6), error_type=kind, prompt_attempt=1,
            error=error[:2000],
        ),
        trial=running.book.key,
    )  # fmt: skip
    running.log.write(
        events.PromptFinished(
            prompt_index=1, prompt=prompt, status="ok" if status == "ok" else "failed", answer=answer, attempts=1,
            duration_s=round(seconds, 6), error_type=kind,
        ),
        trial=running.book.key,
    )  # fmt: skip
    ended(running, processed=1, succeeded=int(status == "ok"), reason="done")


def ended(running: Running, *, processed: int, succeeded: int, reason: str) -> None:
    """Writes the end of the run."""
    duration_s = round(system.monotonic() - running.run.origin, 6)
    running.log.write(
        events.RunFinished(received=1, processed=processed, succeeded=succeeded, duration_s=duration_s, reason=reason)
    )
