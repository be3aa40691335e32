"""`chaoslab ui`: pages over runs, on loopback."""

import argparse
import os
import secrets
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from chaoslab.base.commandline import parse_host, parse_path, port, print_error

HELP = "show runs in the browser, live or finished"
EXAMPLE = "chaoslab ui logs"
NEEDS = ("ui",)
NICE = 5
"""The pages give way to the runs that they show."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", nargs="?", type=parse_path, default=Path("logs"), help="where runs are (default: %(default)s)"
    )
    parser.add_argument("--port", type=port, default=8300, help="0: any free one (default: %(default)s)")
    parser.add_argument(
        "--host", type=parse_host, default="127.0.0.1", help="the address to listen on (default: %(default)s)"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


@contextmanager
def serve_in_child(logs: Path, stream: TextIO) -> Iterator[None]:
    """A context with the pages in a process of their own, at any free port. It prints their address first, and ends
    them last, also if it is killed."""
    # Standard input is its lifeline: it ends with this process, also if that is killed.
    command = [sys.executable, "-m", "chaoslab", "ui", str(logs), "--port", "0", "--no-open", "--lifeline"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    print(child.stdout.readline().decode().strip(), file=stream, flush=True)  # empty if it has said why not
    try:
        yield
    finally:
        child.stdin.close()
        child.wait()
        child.stdout.close()


def run(options: argparse.Namespace) -> int:
    import asyncio  # --help of all commands reads this file

    from chaoslab.surfaces.ui.reader import RunsReader
    from chaoslab.surfaces.ui.server import DOOR, open_socket, serve

    if options.logs.exists() and not options.logs.is_dir():
        return print_error(LookupError(f"{options.logs}: this is a file; name the folder that the runs are in"))
    try:
        listening_socket = open_socket(options.host, options.port)
    except OSError as error:
        message = f"{options.host}:{options.port} cannot be listened at ({error.strerror}): give another --port"
        return print_error(OSError(message))
    if options.lifeline:
        from chaoslab.base.lifeline import terminate_on_stdin_end

        terminate_on_stdin_end()
    # Windows has no nice.
    if hasattr(os, "nice"):
        os.nice(NICE)
    sys.setswitchinterval(0.001)  # whoever reads the logs gives way to whoever answers
    # 128 bits: nobody guesses it.
    token = secrets.token_urlsafe(16)
    address = f"http://127.0.0.1:{listening_socket.getsockname()[1]}{DOOR}{token}"
    print(address, flush=True)
    if not options.no_open:
        webbrowser.open(address)
    with RunsReader(options.logs) as reader:
        asyncio.run(serve(listening_socket, reader, token=token, metrics=_make_metrics_source(options.logs)))
    return 0


def _make_metrics_source(logs: Path) -> Callable[[list[str]], str]:
    """The text of /metrics, for the names of the runs under way. In a container without the proxy manager's files there
    is none: the manager beside it has them."""
    try:
        from chaoslab.proxy_manager.figures import RunMetrics
    except ModuleNotFoundError:
        return lambda _: ""
    figures = RunMetrics(logs)
    return lambda runs: figures.render_text(runs, lanes=0)
