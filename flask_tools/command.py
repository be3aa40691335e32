"""The command `chaoslab tools`: serves the tools over HTTP, each on its own port, until stopped."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import print_error
from chaoslab.base.interrupts import Flag
from chaoslab.config.part_version import compute_version_digests
from chaoslab.config.settings import DEFAULT_NOW, load_settings
from chaoslab.config.topology import SERVICES, Ports
from chaoslab.flask_tools.ledger import FolderRunStore
from chaoslab.flask_tools.service_module import ServiceModule, parse_moment
from chaoslab.record.runs import Run

if TYPE_CHECKING:
    from flask import Flask


def serve_tools(options: argparse.Namespace) -> int:
    """Serves until a signal; returns 2 for invalid input."""
    names = list(dict.fromkeys(options.services or SERVICES))
    try:
        parse_moment(options.now)
    except ValueError:
        print(f"--now {options.now[:60]} should be a moment like {DEFAULT_NOW}", file=sys.stderr)
        return 2
    try:
        chosen = load_settings()
        Run.prepare_logs_folder(options.logs)
        modules = {name: ServiceModule.load(name) for name in names}
    except (LookupError, ValueError, OSError) as error:
        return print_error(error)
    # Late, since Flask takes most of the start, and a wrong setting is told before.
    from chaoslab.flask_tools.app import make_app  # and with it Flask

    runs = FolderRunStore(options.logs, options.now)
    version = compute_version_digests(chosen)
    apps = {name: make_app(module, runs, digests=version) for name, module in modules.items()}
    for name, module in modules.items():
        for warning in module.warnings:
            print(f"{name}: {warning}", file=sys.stderr)
    if options.verbose:
        from chaoslab.flask_tools.serving import print_request

        for app in apps.values():
            app.after_request(print_request)
    servers = _bind_servers(apps, modules, options.host, Ports(options.base_port))
    if servers is None:
        return 2
    # Not an event: the handler of a signal could come while the main thread holds its lock.
    ended = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if options.lifeline:
        from chaoslab.base.lifeline import terminate_on_stdin_end

        terminate_on_stdin_end()
    threads = [threading.Thread(target=server.run, daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    ports = ", ".join(f"{name} on {Ports(options.base_port).get_service_port(name)}" for name in names)
    print(f"ready: {ports}", flush=True)
    ended.wait()
    for server in servers:  # requests at work are finished; the sockets, also idle ones, end with the process
        server.task_dispatcher.shutdown(timeout=1)
    for app in apps.values():
        app.extensions["ledger"].close()
    return 0


def _bind_servers(
    apps: dict[str, Flask], modules: dict[str, ServiceModule], host: str, ports: Ports
) -> list[Any] | None:
    """A listening server for each application; None, after an error message, if a port is not available."""
    from chaoslab.flask_tools.serving import open_server

    servers: list[Any] = []
    for name, app in apps.items():
        try:
            servers.append(open_server(app, modules[name], host=host, port=ports.get_service_port(name)))
        except (OSError, OverflowError) as error:
            print(
                f"{name} cannot listen on {host}:{ports.get_service_port(name)} ({error}): "
                f"end what uses it, or choose other ports with BASE_PORT (--base-port)",
                file=sys.stderr,
            )
            return None
    return servers
