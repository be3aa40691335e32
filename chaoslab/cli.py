"""The command `chaoslab`: the composition root. Each command loads what it uses when it runs, and nothing before."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from chaoslab import __version__
from chaoslab.base import extras
from chaoslab.base.commandline import Parser, host, interrupted, open_streams, port, whole
from chaoslab.execution.launch import CHARTS, refuse


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 not what was asked for (--min-correct, --fail-on, replay), 2 bad input, 3 the lab broke, 130 interrupted."""
    if arguments is None:
        open_streams()
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return interrupted()
    except extras.Incomplete as error:
        return refuse(error)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or error.filename:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is tried again at the end
        return refuse(OSError(error.errno, f"what this command prints cannot be written ({error.strerror}): make room"))
    finally:
        if arguments is None:  # a program of its own, which has nothing left that Ctrl-C could spare anybody
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="chaoslab", description="A chaos lab for LLM agents.")
    parser.add_argument("--version", action="version", version=f"chaoslab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser(
        "lab", help="run the whole lab as the settings say: services, proxies, model, agent, charts"
    )
    lab.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    _add_gate(lab)
    lab.set_defaults(command=_lab)

    run = commands.add_parser("run", help="the same, with the settings of a sweep as options")
    run.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    run.add_argument("--world", help="local, compose or virtual (WORLD)")
    run.add_argument("--prompts", help="a JSON file of prompts (PROMPTS)")
    run.add_argument("--trials", help="so many in all (TRIALS)")
    run.add_argument("--seed", help="of all dice (SEED)")
    run.add_argument("--jobs", help="processes of a virtual run (JOBS)")
    _add_gate(run)
    run.set_defaults(command=_run)

    replay = commands.add_parser("replay", help="run a run again from its log, in virtual time: is it the same?")
    replay.add_argument("run", nargs="?", default="latest", help="a run's name or folder (default: latest)")
    replay.add_argument(
        "--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6; may be given again"
    )
    replay.set_defaults(command=_replay)

    show = commands.add_parser("show", help="trials as stories: calls, faults, retries, effects, answer")
    show.add_argument("run", nargs="?", default="latest", help="a run's name or folder (default: latest)")
    show.add_argument("--prompt", type=whole(1, 1_000_000), help="only the prompt of this number, counted from 1")
    show.add_argument(
        "--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6; may be given again"
    )
    show.add_argument("--failed", action="store_true", help="only trials that are neither correct nor unknown")
    show.add_argument(
        "--outcome", action="append", default=[], metavar="NAME", help="only harm, wrong, failed …; may be given again"
    )
    show.add_argument("--stages", action="store_true", help="each stage of a fault in a line of its own")
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
    charts.add_argument(
        "--out",
        type=Path,
        help=f"where to (default: logs/<run>/charts, and {CHARTS} for the latest run or several runs)",
    )
    charts.set_defaults(command=_charts)

    toxiproxy = commands.add_parser("toxiproxy", help="serve an embedded, API-compatible Toxiproxy")
    # With one dash too, as toxiproxy-server has them, so that the one can be put in the other's place.
    toxiproxy.add_argument("--host", "-host", type=host, default="127.0.0.1", help="(default: %(default)s)")
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
    model.add_argument("--host", type=host, default="127.0.0.1", help="(default: %(default)s)")
    model.add_argument("--port", type=port, default=5007, help="(default: %(default)s)")
    model.add_argument("--lifeline", action="store_true", help="end when stdin closes")
    model.set_defaults(command=_model)

    env = commands.add_parser("settings", help="print .env.example: every setting, its meaning and default")
    env.add_argument("--markdown", action="store_true", help="the table of the README instead")
    env.set_defaults(command=_settings)
    return parser


def _add_gate(command: argparse.ArgumentParser) -> None:
    """What a run must come to, else the exit code is 1."""

    def share(text: str) -> float:
        from chaoslab.reports import gate

        return gate.share(text)

    def outcomes(text: str) -> tuple[str, ...]:
        from chaoslab.reports import gate

        return gate.outcomes(text)

    command.add_argument(
        "--min-correct", type=share, metavar="SHARE", help="exit code 1 below this share of correct prompts, as in 0.9"
    )
    command.add_argument(
        "--fail-on",
        type=outcomes,
        default=(),
        metavar="OUTCOMES",
        help="exit code 1 if a prompt ends so: harm,wrong,failed,hung …",
    )


def _lab(options: argparse.Namespace) -> int:
    from chaoslab.execution.launch import start
    from chaoslab.reports.gate import Gate

    return start(options.settings, gate=Gate(options.min_correct, options.fail_on))


def _run(options: argparse.Namespace) -> int:
    from chaoslab.execution.launch import start
    from chaoslab.reports.gate import Gate

    named = {"WORLD": options.world, "TRIALS": options.trials, "SEED": options.seed, "JOBS": options.jobs}
    given = [f"{name}={value}" for name, value in (*named.items(), ("PROMPTS", options.prompts)) if value is not None]
    return start([*options.settings, *given], gate=Gate(options.min_correct, options.fail_on))


def _replay(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    extras.check("chaoslab replay", "virtual", "tools", "agent", install="lab")
    extras.check_parts()
    from chaoslab.config.settings import SettingError
    from chaoslab.execution.recorded_run import Unrepeatable
    from chaoslab.execution.replay import replay

    try:
        with heard_outside_imports():
            return replay(options.run, options.trial)
    except (LookupError, Unrepeatable, SettingError) as error:
        return refuse(error)


def _show(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            from chaoslab.reports import folder, show, trials

            wanted = trials.outcomes(options.outcome) | (set(trials.WORST_FIRST) if options.failed else set())
            history = folder.read(options.run)
            chosen = wanted if options.outcome or options.failed else None
            print(
                show.render(
                    history, prompt=options.prompt, trials=options.trial, outcomes=chosen, stages=options.stages
                )
            )
        for note in history.notes:
            print(f"note: {note}", file=sys.stderr)
    except LookupError as error:
        return refuse(error)
    return 0


def _summary(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            from chaoslab.reports import folder, summary

            print(summary.render(folder.read(options.run)))
    except LookupError as error:
        return refuse(error)
    return 0


def _report(options: argparse.Namespace) -> int:
    extras.check("chaoslab report", "charts")
    from chaoslab.execution.launch import leave
    from chaoslab.reports.folder import find

    try:
        folder = find(options.run)
    except LookupError as error:
        return refuse(error)
    return leave(folder.parent / folder.resolve().name, 0, program=options.program)


def _charts(options: argparse.Namespace) -> int:
    from chaoslab.reports import charts

    return charts.main([*options.runs, *(["--out", str(options.out)] if options.out else [])])


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
            from chaoslab.base.lifeline import end_with_stdin

            end_with_stdin()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    try:
        allow_many_files()
        with asyncio.Runner(loop_factory=loop_factory(options.loop)) as runner:
            runner.run(serve())
    except (OSError, ValueError) as error:
        return refuse(error)
    return 0


def _model(options: argparse.Namespace) -> int:
    extras.check("chaoslab model", "tools")
    from chaoslab.model import endpoint

    def ready(port: int, stop: Callable[[], None]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop())
        if options.lifeline:
            from chaoslab.base.lifeline import end_with_stdin

            end_with_stdin()
        print(f"ready: model on {options.host}:{port}", flush=True)

    try:
        endpoint.serve(host=options.host, port=options.port, ready=ready)
    except (OSError, ValueError) as error:  # waitress says so of a host that has no address
        said = f"model cannot listen on {options.host}:{options.port} ({error})"
        return refuse(ValueError(f"{said}: end what uses it, or choose another with --host or --port"))
    return 0


def _settings(options: argparse.Namespace) -> int:
    from chaoslab.config.settings import example, table

    print(table() if options.markdown else example(), end="")
    return 0
