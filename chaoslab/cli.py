"""The command `chaoslab`: the composition root. Each command loads what it uses when it runs, and nothing before."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab import __version__
from chaoslab.commandline import Parser, port, whole

if TYPE_CHECKING:
    from chaoslab.settings import Settings

LOGS, STATE, CHARTS = Path("logs"), Path("state/state.db"), Path("charts")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 2 bad input, 3 the lab broke, 130 interrupted."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `chaoslab show latest | head`
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or error.filename:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is tried again at the end
        return _refuse(
            OSError(error.errno, f"what this command prints cannot be written ({error.strerror}): make room")
        )
    finally:
        if arguments is None:  # a program of its own, which has nothing left that Ctrl-C could spare anybody
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="chaoslab", description="A chaos lab for LLM agents.")
    parser.add_argument("--version", action="version", version=f"chaoslab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", help="run the whole lab on loopback: services, proxies, model, agent, charts")
    lab.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    lab.set_defaults(command=_lab)

    show = commands.add_parser("show", help="one prompt's story: calls, faults, retries, effects, answer")
    show.add_argument("run", nargs="?", default="latest", help="a run's name or folder (default: latest)")
    show.add_argument("--prompt", type=whole(1, 1_000_000), help="only the prompt of this number, counted from 1")
    show.set_defaults(command=_show)

    summary = commands.add_parser("summary", help="a run's figures in a table")
    summary.add_argument("run", nargs="?", default="latest", help="a run's name or folder (default: latest)")
    summary.set_defaults(command=_summary)

    report = commands.add_parser("report", help="a run's figures and charts, as `chaoslab lab` leaves them")
    report.add_argument("run", nargs="?", default="latest", help="a run's name or folder (default: latest)")
    report.add_argument("--program", help="how the user calls this command here")
    report.set_defaults(command=_report)

    charts = commands.add_parser("charts", help="draw a run's charts, or lay several runs over each other")
    charts.add_argument("runs", nargs="*", metavar="RUN", help="names or folders (default: latest)")
    charts.add_argument("--out", type=Path, default=CHARTS, help="where to (default: %(default)s)")
    charts.set_defaults(command=_charts)

    toxiproxy = commands.add_parser("toxiproxy", help="serve an embedded, API-compatible Toxiproxy")
    # With one dash too, as toxiproxy-server has them, so that the one can be put in the other's place.
    toxiproxy.add_argument("--host", "-host", default="127.0.0.1", help="(default: %(default)s)")
    toxiproxy.add_argument("--port", "-port", type=port, default=8474, help="(default: %(default)s)")
    toxiproxy.add_argument("--config", "-config", type=Path, help="a JSON file of proxies, as for /populate")
    toxiproxy.add_argument(
        "--seed", "-seed", type=whole(0, 2**63 - 1), help="equal seeds give equal draws (default: any)"
    )
    toxiproxy.add_argument("--proxy-metrics", "-proxy-metrics", action="store_true", help="bytes by proxy at /metrics")
    toxiproxy.add_argument(
        "--runtime-metrics", "-runtime-metrics", action="store_true", help="this process at /metrics"
    )
    toxiproxy.add_argument("--version", "-version", action="store_true", help="what it stands for, and what it is")
    toxiproxy.add_argument(
        "--loop", choices=("auto", "asyncio", "uvloop"), default="auto", help="(default: %(default)s)"
    )
    toxiproxy.add_argument("--lifeline", action="store_true", help="end when stdin closes")
    toxiproxy.set_defaults(command=_toxiproxy)

    model = commands.add_parser("model", help="serve the offline model, Groq- and OpenAI-compatible")
    model.add_argument("--host", default="127.0.0.1", help="(default: %(default)s)")
    model.add_argument("--port", type=port, default=5007, help="(default: %(default)s)")
    model.add_argument("--lifeline", action="store_true", help="end when stdin closes")
    model.set_defaults(command=_model)

    env = commands.add_parser("settings", help="print .env.example: every setting, its meaning and default")
    env.add_argument("--markdown", action="store_true", help="the table of the README instead")
    env.set_defaults(command=_settings)
    return parser


def _lab(options: argparse.Namespace) -> int:
    from chaoslab import settings
    from chaoslab.clock import system
    from chaoslab.runs import Run
    from chaoslab.scenario import from_settings
    from chaoslab.topology import Ports
    from chaoslab.worlds.local import INTERRUPTED, LAB_DOWN, Local, WorldError, free_ports, interrupted_once

    try:
        chosen = settings.load(options.settings)
        from_settings(chosen)
        _check_places()
        _check_agent(chosen, options.settings)
        _check_toxiproxy(chosen.toxiproxy_url)
        importlib.import_module("flask_tools.app").check(chosen)
        _check_state()
        ports = free_ports(chosen.base_port, system)
        _check_state()
        run = Run.create(LOGS, now=chosen.now)
    except (settings.SettingError, WorldError, OSError) as error:
        return _refuse(error)
    if chosen.base_port is None and ports != Ports():
        print(f"some port from {Ports().base} on is taken: this lab starts at {ports.base}")
    chosen = chosen.override({"BASE_PORT": str(ports.base)})
    environment = settings.child_environment(chosen)
    code = 0
    try:
        with interrupted_once(), Local(ports, LOGS, STATE, run.folder, environment, system) as world:
            world.start(
                now=chosen.now,
                toxiproxy=not chosen.toxiproxy_url,
                model=not (chosen.groq_api_key or chosen.model_url),
            )
            print(f"run {run.name}: the lab is up, status at http://127.0.0.1:{ports.manager}/status", flush=True)
            code = world.run_agent(("--run", run.name))
    except WorldError as error:
        return _refuse(error, code=LAB_DOWN)
    except KeyboardInterrupt:
        code = INTERRUPTED
    return _close(run.folder, code)


def _check_places() -> None:
    """Raises NotADirectoryError, IsADirectoryError: something else stands where the lab will write."""
    for folder in (LOGS, STATE.parent, CHARTS):
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it should be a folder: rename it", str(folder))
    if STATE.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it should be a file: delete it", str(STATE))


def _check_state() -> None:
    """Opens the shared state as the manager will.

    Raises:
        WorldError: it cannot be used.
    """
    import sqlite3

    from chaoslab.wire.control import Control, explain
    from chaoslab.worlds.local import WorldError

    try:
        Control.fresh(STATE).close()
    except sqlite3.Error as error:
        raise WorldError(explain(STATE, error)) from error


def _check_agent(chosen: Settings, given: Sequence[str]) -> None:
    """Reads what the agent will read and asks the model that it will ask, so that a mistake is said before anything is started.

    Raises:
        SettingError: as the agent's own.
    """
    reader = importlib.import_module("agent.prompts")
    reader.load(Path(chosen.prompts) if chosen.prompts else reader.FILE)
    importlib.import_module("agent.config").load()
    importlib.import_module("agent.model").check(chosen, given)


def _check_toxiproxy(url: str) -> None:
    """Raises SettingError: a Toxiproxy was named and none answers there."""
    from chaoslab.settings import SettingError
    from chaoslab.wire.client import ToxiproxyClient, ToxiproxyError

    if not url:
        return
    with ToxiproxyClient(url, read_timeout_s=5.0) as toxiproxy:
        try:
            toxiproxy.version()
        except ToxiproxyError as error:
            raise SettingError(
                f"TOXIPROXY_URL={url} is no Toxiproxy: {error}; leave it empty for the embedded one"
            ) from None


def _close(folder: Path, code: int, *, program: str | None = None) -> int:
    """What a run leaves for a person: its figures, its pictures, and where they are."""
    from chaoslab.events import RunStarted
    from chaoslab.history import History

    try:
        history = History.read(folder)
    except FileNotFoundError:
        return code
    if history.first(RunStarted) is None:
        return code
    from chaoslab.reports import summary

    print("\n" + summary.render(history), flush=True)
    from chaoslab.reports import charts

    print(f"\nlogs    {folder}/  (also {LOGS}/latest)")
    try:
        drawn = charts.save(charts.draw(history), CHARTS)
    except OSError as error:  # the run is over and counts all the same
        print(
            f"cannot draw into {error.filename2 or error.filename or CHARTS}: {error.strerror or error}",
            file=sys.stderr,
        )
        return code or 2
    print("charts  " + "\n        ".join(str(path) for path in drawn))
    print(f"next    {program or _called()} show latest --prompt 1")
    return code


def _called() -> str:
    """This command as the user may type it again from here."""
    program = Path(sys.argv[0])
    return "python -m chaoslab" if program.name == "__main__.py" else str(program)


def _show(options: argparse.Namespace) -> int:
    from chaoslab.reports import folder, show

    try:
        print(show.render(folder.read(options.run), prompt=options.prompt))
    except LookupError as error:
        return _refuse(error)
    return 0


def _summary(options: argparse.Namespace) -> int:
    from chaoslab.reports import folder, summary

    try:
        print(summary.render(folder.read(options.run)))
    except LookupError as error:
        return _refuse(error)
    return 0


def _report(options: argparse.Namespace) -> int:
    from chaoslab.reports.folder import find

    try:
        folder = find(options.run)
    except LookupError as error:
        return _refuse(error)
    return _close(folder.parent / folder.resolve().name, 0, program=options.program)


def _charts(options: argparse.Namespace) -> int:
    from chaoslab.reports import charts

    return charts.main([*options.runs, "--out", str(options.out)])


def _toxiproxy(options: argparse.Namespace) -> int:
    import asyncio

    from chaoslab.wire import server
    from chaoslab.wire.server.process import allow_many_files, loop_factory

    def ready(host: str, port: int) -> None:
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
                proxy_metrics=options.proxy_metrics,
                runtime_metrics=options.runtime_metrics,
                ready=ready,
            )
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        if options.lifeline:
            from chaoslab.lifeline import end_with_stdin

            end_with_stdin()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    try:
        allow_many_files()
        with asyncio.Runner(loop_factory=loop_factory(options.loop)) as runner:
            runner.run(serve())
    except (OSError, ValueError) as error:
        return _refuse(error)
    return 0


def _model(options: argparse.Namespace) -> int:
    from chaoslab.model import endpoint

    def ready(port: int, stop: Callable[[], None]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop())
        if options.lifeline:
            from chaoslab.lifeline import end_with_stdin

            end_with_stdin()
        print(f"ready: model on {options.host}:{port}", flush=True)

    try:
        endpoint.serve(host=options.host, port=options.port, ready=ready)
    except (OSError, ValueError) as error:  # waitress says so of a host that has no address
        said = f"model cannot listen on {options.host}:{options.port} ({error})"
        return _refuse(ValueError(f"{said}: end what uses it, or choose another with --host or --port"))
    return 0


def _settings(options: argparse.Namespace) -> int:
    from chaoslab.settings import example, table

    print(table() if options.markdown else example(), end="")
    return 0


def _refuse(error: Exception, *, code: int = 2) -> int:
    """One line, and the exit code."""
    said = error.args[0] if error.args else error
    if isinstance(error, OSError) and error.args:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.args[-1]
    print(said, file=sys.stderr)
    return code
