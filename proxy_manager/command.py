"""The command `chaoslab manager`: serves every run that an agent opens in the shared state, until stopped."""

from __future__ import annotations

import argparse
import signal
import sqlite3
import sys
import threading

from chaoslab.base.clock import system
from chaoslab.base.commandline import refuse
from chaoslab.config import settings
from chaoslab.config.settings import SettingError
from chaoslab.config.topology import BASE_PORT, MODEL, SERVICES, Ports
from chaoslab.proxy_manager.arming import Places
from chaoslab.proxy_manager.manager import Manager
from chaoslab.proxy_manager.status import server
from chaoslab.record.log import LogLost
from chaoslab.record.runs import Run
from chaoslab.wire import state_place
from chaoslab.wire.client import ToxiproxyClient

LAST_WORDS_S = 2.0
"""The time that a manager whose loop has failed still answers health checks."""


def run(options: argparse.Namespace) -> int:
    """Runs the command. Returns 0 if stopped, 2 if it cannot begin, 3 if its loop failed."""
    try:
        chosen = settings.load()
        state_place.check(options.state)
        Run.prepare(options.logs)
    except (SettingError, OSError) as error:
        return refuse(error)
    ports = Ports(chosen.base_port or BASE_PORT)
    places = Places(
        options.bind_host, options.dial_host, {t: ports.proxy(t) for t in (*SERVICES, MODEL)}, ports.refused
    )
    toxiproxy = ToxiproxyClient(chosen.toxiproxy_url or f"http://127.0.0.1:{ports.toxiproxy}")
    name = str(ports.manager)
    manager = Manager(
        state=options.state, logs=options.logs, toxiproxy=toxiproxy, places=places, clock=system, name=name
    )
    if options.verbose:
        manager.tell = lambda line: print(line, flush=True)
    try:
        http = server(manager, host=options.host, port=ports.manager)
    except OSError as error:
        print(
            f"the proxy manager cannot listen on {options.host}:{ports.manager} ({error}): set BASE_PORT",
            file=sys.stderr,
        )
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: manager.stopping.set())
    if options.lifeline:
        from chaoslab.base.lifeline import end_with_stdin

        end_with_stdin()
    threading.Thread(target=http.serve_forever, daemon=True).start()
    print(f"ready: proxy manager on {ports.manager}", flush=True)
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
