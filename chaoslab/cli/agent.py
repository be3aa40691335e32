"""`chaoslab agent`: the lab's agent alone."""

import argparse
import gc
from pathlib import Path

from chaoslab.base.commandline import parse_host, parse_path
from chaoslab.base.garbage import pause_collector
from chaoslab.cli._runs_written import add_logs_option

HELP = "run the lab's agent on the prompts; the other parts must be running"
EXAMPLE = "chaoslab agent --prompts mine.json"
NEEDS = ("agent", "tools")
HOSTS = ("tools", "model", "proxy", "manager")
"""The parts of the lab that may be on other hosts."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="settings, as in .env.example")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", help="the run to write to (default: a new one)")
    which.add_argument("--new-run", default="", metavar="NAME", help="the name of the new run (default: its moment)")
    add_logs_option(parser)
    parser.add_argument(
        "--state", type=parse_path, default=Path("state/state.db"), help="shared state (default: %(default)s)"
    )
    parser.add_argument("--config", type=parse_path, help="a JSON file (default: the lab's own agent/config.json)")
    parser.add_argument("--prompts", type=parse_path, help="a JSON file of prompts (default: PROMPTS)")
    for host_part in HOSTS:
        parser.add_argument(
            f"--{host_part}-host",
            type=parse_host,
            help=f"where the lab's {host_part} listen{'s' if host_part != 'tools' else ''} (default: as configured)",
        )
    parser.add_argument("--report", action="store_true", help="write report and charts at the end, like `chaoslab lab`")
    parser.add_argument(
        "--charts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with --report: draw the charts (default: yes)",
    )
    parser.add_argument("--last", default="", metavar="LINE", help="print this line at the end")
    parser.add_argument("--lifeline", action="store_true", help="end when stdin closes")


def run(options: argparse.Namespace) -> int:
    from chaoslab.agent.asked import AgentInput

    agent_request = AgentInput.read_input(
        options, {f"{host_part}_host": getattr(options, f"{host_part}_host") for host_part in HOSTS}
    )
    code, folder = 2, None
    if agent_request is not None:
        with pause_collector():
            from chaoslab.agent import command
            from chaoslab.lab.twins import open_twin_maker
        gc.freeze()  # what is loaded stays
        code, folder = command.run_agent(options, agent_request, open_twin_maker)
    if options.report and folder is not None:
        from chaoslab.lab.launch import print_end_report
        from chaoslab.reports.gate import Gate

        code = print_end_report(folder, code, gate=Gate(), drawn=options.charts)
    if options.last:
        print(f"\n{options.last}", flush=True)
    return code
