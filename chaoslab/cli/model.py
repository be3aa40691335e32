"""`chaoslab model`: the offline model as a server, or one that follows a script."""

import argparse
import signal
import sys
from collections.abc import Callable

from chaoslab.base.commandline import parse_host, parse_path, port, print_error
from chaoslab.base.interrupts import restore_signal_handlers
from chaoslab.config import settings

HELP = "serve the offline model, or a scripted one, in the API formats of all providers"
EXAMPLE = "chaoslab model --port 5007"
NEEDS = ("tools",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", type=parse_host, default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument("--port", type=port, default=5007, help="(default: %(default)s)")
    parser.add_argument(
        "--script",
        type=parse_path,
        metavar="FILE",
        help='its replies: a JSON list such as [{"call": "refund", "arguments": {"order": 17}}, "Done."]; an '
        "equal request gets the same step",
    )
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    try:
        chosen = settings.load_settings()
    except settings.SettingError as error:
        return print_error(error)
    from chaoslab.base import files
    from chaoslab.config.part_version import compute_version_digests
    from chaoslab.model import endpoint, script

    token_s = chosen.model_token_ms / 1000
    try:
        model = script.script_from_json(files.read_json(options.script)) if options.script else None
    except (files.Unreadable, ValueError, TypeError) as error:
        return print_error(
            ValueError(f"{options.script} {error}" if isinstance(error, files.Unreadable) else str(error))
        )
    if model is not None:
        model.token_s, model.host = token_s, str(options.script)
        model.warn = lambda warning: print(f"warning: {warning}", file=sys.stderr, flush=True)

    def announce_ready(port: int, stop: Callable[[], None]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop())
        if options.lifeline:
            from chaoslab.base.lifeline import terminate_on_stdin_end

            terminate_on_stdin_end()
        print(f"ready: model on {options.host}:{port}", flush=True)

    try:
        with restore_signal_handlers():
            endpoint.serve_endpoint(
                host=options.host,
                port=options.port,
                ready=announce_ready,
                token_s=token_s,
                model=model,
                digests=compute_version_digests(chosen),
            )
    except (OSError, ValueError) as error:  # waitress raises it for a host without an address
        message = f"model cannot listen on {options.host}:{options.port} ({error})"
        return print_error(ValueError(f"{message}: end what uses it, or choose another with --host or --port"))
    return 0
