"""The command `chaoslab tools`: serves the tools over HTTP, each on its own port, until stopped."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import refuse
from chaoslab.base.interrupts import Flag
from chaoslab.config.part_version import digests
from chaoslab.config.settings import DEFAULT_NOW, load
from chaoslab.config.topology import SERVICES, Ports
from chaoslab.flask_tools.ledger import Folders
from chaoslab.flask_tools.service_module import ServiceModule, moment
from chaoslab.record.runs import Run

if TYPE_CHECKING:
    from flask import Flask


def run(options: argparse.Namespace) -> int:
    """Serves until a signal; returns 2 for invalid input."""
    names = list(dict.fromkeys(options.services or SERVICES))
    try:
        moment(options.now)
    except ValueError:
        print(f"--now {options.now[:60]} should be a moment like {DEFAULT_NOW}", file=sys.stderr)
        return 2
    try:
        chosen = load()
        Run.prepare(options.logs)
        modules = {name: ServiceModule.load(name, chosen) for name in names}
    except (LookupError, ValueError, OSError) as error:
        return refuse(error)
    # Late, since Flask takes most of the start, and a wrong setting is told before.
    from chaoslab.flask_tools.app import app_of  # and with it Flask

    runs = Folders(options.logs, options.now)
    version = digests(chosen)
    apps = {name: app_of(module, runs, digests=version) for name, module in modules.items()}
    for name, module in modules.items():
        for warning in module.warnings:
            print(f"{name}: {warning}", file=sys.stderr)
    if options.verbose:
        from chaoslab.flask_tools.serving import print_request

        for app in apps.values():
            app.after_request(print_request)
    servers = _bind(apps, modules, options.host, Ports(options.base_port))
    if servers is None:
        return 2
    # Not an event: the handler of a signal could come while the main thread holds its lock.
    ended = Flag()
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
    for server in servers:  # requests at work are finished; the sockets, also idle ones, end with the process
        server.task_dispatcher.shutdown(timeout=1)
    for app in apps.values():
        app.extensions["ledger"].close()
    return 0


def _bind(apps: dict[str, Flask], modules: dict[str, ServiceModule], host: str, ports: Ports) -> list[Any] | None:
    """A listening server for each application; None, after an error message, if a port is not available."""
    from chaoslab.flask_tools.serving import listen

    servers: list[Any] = []
    for name, app in apps.items():
        try:
            servers.append(listen(app, modules[name], host=host, port=ports.service(name)))
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
