"""`chaoslab toxiproxy`: the embedded Toxiproxy as a server."""

import argparse
import contextlib

from chaoslab import __version__
from chaoslab.base.commandline import parse_host, parse_path, port, print_error, seed
from chaoslab.base.interrupts import SIGNALS

HELP = "serve an embedded, API-compatible Toxiproxy"
EXAMPLE = "chaoslab toxiproxy --port 8474 --seed 1"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options also with one dash, like toxiproxy-server, so that either program can replace the other."""
    parser.add_argument("--host", "-host", type=parse_host, default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument("--port", "-port", type=port, default=8474, help="(default: %(default)s)")
    parser.add_argument("--config", "-config", type=parse_path, help="a JSON file of proxies, as for /populate")
    parser.add_argument("--seed", "-seed", type=seed, help="seed of its dice (default: random)")
    parser.add_argument("--version", "-version", action="store_true", help="print the emulated version and its own")
    parser.add_argument("--loop", choices=("auto", "asyncio", "uvloop"), default="auto", help="(default: %(default)s)")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    import asyncio

    from chaoslab.wire import server
    from chaoslab.wire.server.process import choose_loop_factory, raise_open_file_limit

    def print_ready(host: str, port: int) -> None:
        loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
        print(f"ready: toxiproxy on {host}:{port} ({loop})", flush=True)

    if options.version:
        from chaoslab.wire.server.rest import VERSION

        print(f"toxiproxy-server version {VERSION} (embedded in chaoslab {__version__})")
        return 0

    async def serve() -> None:
        task = asyncio.ensure_future(
            server.serve(
                host=options.host,
                port=options.port,
                config=options.config,
                seed=options.seed,
                ready=print_ready,
            )
        )
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            # By the loop: a handler of Python's would run only when it wakes.
            loop.add_signal_handler(number, task.cancel)
        if options.lifeline:
            from chaoslab.base.lifeline import terminate_on_stdin_end

            terminate_on_stdin_end()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        finally:
            for number in SIGNALS:  # a closed uvloop would go on hearing them
                loop.remove_signal_handler(number)

    try:
        # A proxy has two files for each connection, and systems begin with 1024.
        raise_open_file_limit()
        with asyncio.Runner(loop_factory=choose_loop_factory(options.loop)) as runner:
            runner.run(serve())
    except (OSError, ValueError) as error:
        return print_error(error)
    return 0
