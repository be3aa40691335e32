"""`chaoslab agent`: the lab's agent alone."""

import argparse
import gc
from pathlib import Path

from chaoslab.base.commandline import host, path
from chaoslab.base.garbage import no_garbage

HELP = "work through the prompts on a lab whose other parts are running"
EXAMPLE = "chaoslab agent --prompts mine.json"
NEEDS = ("agent", "tools")
HOSTS = ("tools", "model", "proxy", "manager")
"""The parts of the lab that may be on other hosts."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", help="the run to write to (default: a new one)")
    which.add_argument("--new-run", default="", metavar="NAME", help="the name of the new run (default: its moment)")
    parser.add_argument("--logs", type=path, default=Path("logs"), help="where runs are (default: %(default)s)")
    parser.add_argument(
        "--state", type=path, default=Path("state/state.db"), help="shared state (default: %(default)s)"
    )
    parser.add_argument("--config", type=path, help="a JSON file (default: the lab's own agent/config.json)")
    parser.add_argument("--prompts", type=path, help="a JSON file of prompts (default: PROMPTS)")
    for host_part in HOSTS:
        parser.add_argument(
            f"--{host_part}-host",
            type=host,
            help=f"where the lab's {host_part} listen{'s' if host_part != 'tools' else ''} (default: as configured)",
        )
    parser.add_argument("--report", action="store_true", help="at its end write report and charts, as `chaoslab lab`")
    parser.add_argument(
        "--charts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with --report, draw the charts (default: drawn)",
    )
    parser.add_argument("--last", default="", metavar="LINE", help="print this line at the end")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.agent.asked import AskedAgent

    agent_request = AskedAgent.build(
        options, {f"{host_part}_host": getattr(options, f"{host_part}_host") for host_part in HOSTS}
    )
    code, folder = 2, None
    if agent_request is not None:
        with no_garbage():
            from chaoslab.agent import command
            from chaoslab.lab.twins import open_twins
        gc.freeze()  # what is loaded stays
        code, folder = command.run(options, agent_request, open_twins)
    if options.report and folder is not None:
        from chaoslab.lab.launch import report_end
        from chaoslab.reports.gate import Gate

        code = report_end(folder, code, gate=Gate(), drawn=options.charts)
    if options.last:
        print(f"\n{options.last}", flush=True)
    return code
