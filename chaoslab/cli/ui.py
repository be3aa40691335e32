"""`chaoslab ui`: pages over runs, on loopback."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import webbrowser
from pathlib import Path

from chaoslab.base.commandline import host, path, port, refuse

HELP = "show the runs of a folder in the browser, also while they happen"
EXAMPLE = "chaoslab ui logs"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", nargs="?", type=path, default=Path("logs"), help="where runs are (default: %(default)s)"
    )
    parser.add_argument("--port", type=port, default=8300, help="0 is any free one (default: %(default)s)")
    parser.add_argument("--host", type=host, default="127.0.0.1", help="where it listens (default: %(default)s)")
    parser.add_argument("--no-open", action="store_true", help="open no browser")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras

    extras.check("chaoslab ui", "ui")
    from chaoslab.proxy_manager.figures import Figures
    from chaoslab.surfaces.ui.reader import Reader
    from chaoslab.surfaces.ui.server import DOOR, bound, serve

    if options.logs.exists() and not options.logs.is_dir():
        return refuse(LookupError(f"{options.logs}: this is a file; name the folder that the runs are in"))
    try:
        held = bound(options.host, options.port)
    except OSError as error:
        said = f"{options.host}:{options.port} cannot be listened at ({error.strerror}): give another --port"
        return refuse(OSError(said))
    token, figures = secrets.token_urlsafe(16), Figures(options.logs)
    address = f"http://127.0.0.1:{held.getsockname()[1]}{DOOR}{token}"
    print(address, flush=True)
    if not options.no_open:
        webbrowser.open(address)
    with Reader(options.logs) as reader:
        asyncio.run(serve(held, reader, token=token, metrics=lambda runs: figures.text(runs, lanes=0)))
    return 0
