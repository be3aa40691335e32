"""`chaoslab mcp`: faults between any MCP client and any server on standard input and output."""

from __future__ import annotations

import argparse
from pathlib import Path

from chaoslab.base.commandline import refuse

HELP = "stand between an MCP client and a server, as the server's command, and break the calls of its tools"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fault", action="append", default=[], metavar="FAULT:TOOL",
        help='a fault, as in lost_reply:refund, or JSON as in {"fault": "latency", "target": "refund", "delay_s": 2}',
    )  # fmt: skip
    parser.add_argument("--plan", type=Path, metavar="FILE", help="a JSON file with a list of faults")
    parser.add_argument("--seed", type=int, help="of all dice (default: the plan's, or 1)")
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="the folder of runs (default: %(default)s)")
    parser.add_argument("words", nargs="+", metavar="COMMAND", help="after --: the server's command and its arguments")


def run(options: argparse.Namespace) -> int:
    import shutil

    from chaoslab.execution import mcp_proxy
    from chaoslab.execution.gateway import plan_of

    try:
        plan = plan_of(options.fault, options.plan, options.seed, None)
        if shutil.which(options.words[0]) is None:
            raise LookupError(
                f"the command {options.words[0]!r} is not found: give its path, or see that PATH holds it"
            )
        return mcp_proxy.run(options.words, plan, logs=options.logs)
    except (ValueError, TypeError, LookupError, OSError) as error:
        return refuse(error)
