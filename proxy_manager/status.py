"""The manager's HTTP interface: GET /health, GET /status, GET /metrics, POST /pause, POST /resume."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chaoslab.base.web_pages import refused
from chaoslab.proxy_manager.manager import Manager
from chaoslab.wire.server.metrics import CONTENT_TYPE


def server(manager: Manager, *, host: str, port: int) -> ThreadingHTTPServer:
    """A server that is bound and listens; the caller serves and closes it. Raises OSError: the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self._refused():
                return
            if self.path == "/health":
                health = manager.health()
                status = "trouble" if health.trouble else "recovering" if health.recovering else "ok"
                self._say(200 if status == "ok" else 503, {"status": status, **vars(health)})
            elif self.path == "/status":
                self._say(200 if manager.began.is_set() else 503, manager.status())
            elif self.path == "/metrics":
                self._send(200, CONTENT_TYPE, manager.metrics().encode())
            else:
                self._lost()

        def do_POST(self) -> None:
            if self._refused():
                return
            if self.path not in ("/pause", "/resume"):
                self._lost()
                return
            (manager.paused.set if self.path == "/pause" else manager.paused.clear)()
            self._say(200, {"paused": manager.paused.is_set()})

        def _refused(self) -> bool:
            """True if another site's page asks, which is told so."""
            why = refused(self.headers["Host"], self.headers["Origin"])
            if why:
                self._say(403, {"error": why})
            return bool(why)

        def _lost(self) -> None:
            known = {"GET": ("/health", "/status", "/metrics"), "POST": ("/pause", "/resume")}
            other = any(self.path in paths for paths in known.values())
            offered = ", ".join(f"{method} {path}" for method, paths in known.items() for path in paths)
            self._say(405 if other else 404, {"error": f"there is {offered}"})

        def _say(self, status: int, body: dict[str, Any]) -> None:
            self._send(status, "application/json", json.dumps(body, indent=2).encode() + b"\n")

        def _send(self, status: int, kind: str, data: bytes) -> None:
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

    return Server((host, port), Handler)
