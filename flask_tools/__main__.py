"""`python -m flask_tools [SERVICE ...]`: serves the tools over HTTP, each on its own port, until told to stop."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

from chaoslab.base import extras
from chaoslab.base.commandline import Parser, host, open_streams, whole
from chaoslab.config.settings import DEFAULT_NOW, load
from chaoslab.config.topology import BASE_PORT, SERVICES, Ports
from flask_tools.app import Desk, create_app
from flask_tools.service_module import moment


def main(arguments: list[str] | None = None) -> int:
    """Serves until a signal; 2 when what was asked for cannot be."""
    if arguments is None:
        open_streams()
    parser = Parser(prog="python -m flask_tools", description="Serve the tools over HTTP.")
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"any of {', '.join(SERVICES)}; none: all")
    parser.add_argument("--host", type=host, default="127.0.0.1")
    parser.add_argument(
        "--base-port", type=whole(1024, 60000), default=BASE_PORT, help="the first port (default: %(default)s)"
    )
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="where runs are (default: %(default)s)")
    parser.add_argument("--now", default=DEFAULT_NOW, help="what to call now (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print a line for each request")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")
    options = parser.parse_args(arguments)
    try:
        extras.check("python -m flask_tools", "tools")
    except extras.Incomplete as error:
        print(error, file=sys.stderr)
        return 2
    names = list(dict.fromkeys(options.services or SERVICES))
    try:
        moment(options.now)
    except ValueError:
        print(f"--now {options.now[:60]} should be a moment like {DEFAULT_NOW}", file=sys.stderr)
        return 2
    try:
        chosen = load()
        apps = {name: create_app(name, logs=options.logs, now=options.now, settings=chosen) for name in names}
    except (LookupError, ValueError) as error:
        print(error.args[0], file=sys.stderr)
        return 2
    for name in names:
        for warning in Desk.load(name).warnings:
            print(f"{name}: {warning}", file=sys.stderr)
    if options.verbose:
        for app in apps.values():
            app.after_request(_say)
    servers = _bind(apps, options.host, Ports(options.base_port))
    if servers is None:
        return 2
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if options.lifeline:
        from chaoslab.base.lifeline import end_with_stdin

        end_with_stdin()
    threads = [threading.Thread(target=server.run, daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    ports = ", ".join(f"{name} on {Ports(options.base_port).service(name)}" for name in names)
    print(f"ready: {ports}", flush=True)
    ended.wait()
    for server in servers:  # what is being worked on is finished; the sockets, also idle ones, end with the process
        server.task_dispatcher.shutdown(timeout=1)
    for app in apps.values():
        app.extensions["ledger"].close()
    return 0


def _say(response: Any) -> Any:
    """One line for whoever follows `docker compose logs`; health checks are not news."""
    from flask import request

    if request.path != "/health":
        trial = request.headers.get("X-Trial", "no trial")
        again = " (again)" if response.headers.get("Idempotency-Replayed") else ""
        print(f"{request.method} {request.path} {response.status_code}{again}  {trial}"[:300], flush=True)
    return response


def _bind(apps: dict[str, Any], host: str, ports: Ports) -> list[Any] | None:
    """A listening server for each application; None, and one line said, when a port cannot be had."""
    from flask_tools.serving import listen

    servers: list[Any] = []
    for name, app in apps.items():
        try:
            servers.append(listen(app, host=host, port=ports.service(name)))
        except (OSError, OverflowError) as error:
            for server in servers:
                server.close()
            print(
                f"{name} cannot listen on {host}:{ports.service(name)} ({error}): "
                f"end what uses it, or choose other ports with BASE_PORT (--base-port)",
                file=sys.stderr,
            )
            return None
    return servers


if __name__ == "__main__":
    sys.exit(main())
