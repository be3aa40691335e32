"""The command `chaoslab manager`: serves every run that an agent opens in the shared state, until stopped. Over HTTP it
answers GET /health, GET /status, GET /metrics, POST /pause and POST /resume."""

import argparse
import json
import signal
import sqlite3
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chaoslab.base.clock import system
from chaoslab.base.commandline import print_error
from chaoslab.base.web_pages import find_refusal_reason
from chaoslab.config import settings
from chaoslab.config.part_version import compute_version_digests
from chaoslab.config.settings import SettingError
from chaoslab.config.topology import BASE_PORT, MODEL, SERVICES, Ports
from chaoslab.proxy_manager.arming import Places
from chaoslab.proxy_manager.manager import Manager
from chaoslab.record.log import LogLost
from chaoslab.record.runs import Run
from chaoslab.wire import state_place


def make_server(
    manager: Manager, *, host: str, port: int, version: Mapping[str, str] | None = None
) -> ThreadingHTTPServer:
    """A server that is bound and listens; the caller serves and closes it. `version`: the process's digests, for its
    /health. Raises OSError: the port is taken."""

    told = {"digests": {**version}} if version else {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._refuse_foreign_page():
                return
            if self.path == "/health":
                health = manager.health()
                status = "trouble" if health.trouble else "recovering" if health.recovering else "ok"
                self._send_json(200 if status == "ok" else 503, {"status": status, **vars(health), **told})
            elif self.path == "/status":
                self._send_json(200 if manager.began.is_set() else 503, manager.status())
            elif self.path == "/metrics":
                from chaoslab.base.prometheus import CONTENT_TYPE

                self._send_bytes(200, CONTENT_TYPE, manager.render_metrics().encode())
            else:
                self._answer_not_found()

        def do_POST(self) -> None:
            if self._refuse_foreign_page():
                return
            if self.path not in ("/pause", "/resume"):
                self._answer_not_found()
                return
            (manager.paused.set if self.path == "/pause" else manager.paused.clear)()
            self._send_json(200, {"paused": manager.paused.is_set()})

        def _refuse_foreign_page(self) -> bool:
            """True if another site's page asks, which is told so."""
            why = find_refusal_reason(self.headers["Host"], self.headers["Origin"])
            if why:
                self._send_json(403, {"error": why})
            return bool(why)

        def _answer_not_found(self) -> None:
            routes = {"GET": ("/health", "/status", "/metrics"), "POST": ("/pause", "/resume")}
            other = any(self.path in paths for paths in routes.values())
            offered = ", ".join(f"{method} {path}" for method, paths in routes.items() for path in paths)
            self._send_json(405 if other else 404, {"error": f"there is {offered}"})

        def _send_json(self, status: int, body: dict[str, Any]) -> None:
            self._send_bytes(status, "application/json", json.dumps(body, indent=2).encode() + b"\n")

        def _send_bytes(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
            """Does nothing: the manager's log is for faults, not for requests."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignores a client that does not wait for the answer; any other error is printed."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    # Bound here, so that a port that is taken is told before the manager begins.
    return Server((host, port), Handler)


LAST_WORDS_S = 2.0
# So that agents hear the reason from `health` and not a closed port.
"""The time that a manager whose loop has failed still answers health checks."""


def run_manager(options: argparse.Namespace) -> int:
    """Runs the command. Returns 0 if stopped, 2 if it cannot begin, 3 if its loop failed."""
    try:
        chosen = settings.load_settings()
        state_place.check_state_file(options.state)
        Run.prepare_logs_folder(options.logs)
    except (SettingError, OSError) as error:
        return print_error(error)
    ports = Ports(chosen.base_port or BASE_PORT)
    places = Places(
        options.bind_host,
        options.dial_host,
        {t: ports.get_proxy_port(t) for t in (*SERVICES, MODEL)},
        ports.refused_port,
    )
    from chaoslab.wire.toxiproxy_package import ToxiproxyServer  # loads requests

    toxiproxy = ToxiproxyServer(chosen.toxiproxy_url or f"http://127.0.0.1:{ports.toxiproxy_port}")
    name = str(ports.manager_port)
    manager = Manager(
        state=options.state, logs=options.logs, toxiproxy=toxiproxy, places=places, clock=system, name=name
    )
    if options.verbose:
        manager.tell = lambda line: print(line, flush=True)
    try:
        http = make_server(manager, host=options.host, port=ports.manager_port, version=compute_version_digests(chosen))
    except OSError as error:
        print(
            f"the proxy manager cannot listen on {options.host}:{ports.manager_port} ({error}): set BASE_PORT",
            file=sys.stderr,
        )
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        # A flag without a lock: the handler may come while the main thread holds one.
        signal.signal(number, lambda *_: manager.stopping.set())
    if options.lifeline:
        from chaoslab.base.lifeline import terminate_on_stdin_end

        terminate_on_stdin_end()
    threading.Thread(target=http.serve_forever, daemon=True).start()
    print(f"ready: proxy manager on {ports.manager_port}", flush=True)
    # In the main thread: SQLite's connection belongs to one.
    try:
        manager.serve()
    except (sqlite3.Error, LogLost, OSError) as error:
        print(f"the proxy manager cannot go on: {manager.broken or error}", file=sys.stderr, flush=True)
        manager.stopping.wait(LAST_WORDS_S)
        return 3
    finally:
        http.shutdown()
        http.server_close()
        toxiproxy.close()
    return 0
