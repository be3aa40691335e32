"""`chaoslab model`: the offline model as a server, or one that follows a script."""

import argparse
import signal
import sys
from collections.abc import Callable

from chaoslab.base.commandline import host, path, port, refuse
from chaoslab.config import settings

HELP = "serve the offline model, or one that follows a script, in all formats of models' APIs"
EXAMPLE = "chaoslab model --port 5007"
NEEDS = ("tools",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", type=host, default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument("--port", type=port, default=5007, help="(default: %(default)s)")
    parser.add_argument(
        "--script", type=path, metavar="FILE",
        help='what it says instead: a JSON list such as [{"call": "refund", "arguments": {"order": 17}}, "Done."]; an '
        "equal request gets its step again",
    )  # fmt: skip
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    try:
        chosen = settings.load()
    except settings.SettingError as error:
        return refuse(error)
    from chaoslab.base import files
    from chaoslab.config.part_version import digests
    from chaoslab.model import endpoint, script

    token_s = chosen.model_token_ms / 1000
    try:
        model = script.script_from_json(files.read_json(options.script)) if options.script else None
    except (files.Unreadable, ValueError, TypeError) as error:
        return refuse(ValueError(f"{options.script} {error}" if isinstance(error, files.Unreadable) else str(error)))
    if model is not None:
        model.token_s, model.host = token_s, str(options.script)
        model.warn = lambda warning: print(f"warning: {warning}", file=sys.stderr, flush=True)

    def ready(port: int, stop: Callable[[], None]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop())
        if options.lifeline:
            from chaoslab.base.lifeline import end_with_stdin

            end_with_stdin()
        print(f"ready: model on {options.host}:{port}", flush=True)

    try:
        endpoint.serve(
            host=options.host, port=options.port, ready=ready, token_s=token_s, model=model, digests=digests(chosen)
        )
    except (OSError, ValueError) as error:  # waitress raises it for a host without an address
        message = f"model cannot listen on {options.host}:{options.port} ({error})"
        return refuse(ValueError(f"{message}: end what uses it, or choose another with --host or --port"))
    return 0
