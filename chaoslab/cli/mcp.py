"""`chaoslab mcp`: faults between any MCP client and any server on standard input and output."""

import argparse
from pathlib import Path

from chaoslab.base.commandline import print_error
from chaoslab.cli import gateway
from chaoslab.cli._runs_written import open_logs_or_temp_folder

HELP = "inject faults into the tool calls between an MCP client and its server"
EXAMPLE = "chaoslab mcp --fault lost_reply:refund -- python server.py"


def arguments(parser: argparse.ArgumentParser) -> None:
    gateway.add_plan_options(parser, "TOOL", "refund")
    parser.add_argument("--url", help="a server over streamable HTTP, as in http://127.0.0.1:3000/mcp")
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="FIELD",
        help="a header for each request to --url, as in 'Authorization: Bearer …'; never logged",
    )
    parser.add_argument(
        "--session",
        metavar="NAME",
        help="proxies with the same name share one run, for a client that restarts its server for each try "
        "(default: the surrounding chaoslab exec)",
    )
    gateway.add_expectation_options(
        parser, fact="a text that the arguments of the client's calls must contain", like="refund"
    )
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="after --: the server's command and its arguments")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.config.settings import copy_environment
    from chaoslab.scenarios.command_agent import check_command_exists
    from chaoslab.surfaces import mcp_proxy, sessions
    from chaoslab.surfaces.gateway import parse_effects_option, parse_plan

    try:
        if bool(options.url) == bool(options.words):
            raise ValueError("chaoslab mcp needs a server: --url http://127.0.0.1:3000/mcp, or -- and its command")
        if options.header and not options.url:
            raise ValueError("--header goes with --url: a command has no headers")
        plan = parse_plan(options.fault, options.plan, options.seed, None)
        if options.session and options.logs is None:
            raise ValueError("--session goes without --no-logs: the proxies of a session share their log")
        if options.url:
            extras.require_extras("--url", "mcp")
        name, logs = options.session or "", options.logs
        if not name and logs is not None and (name := copy_environment().get(sessions.VARIABLE, "")):
            # Beside the run of `chaoslab exec`, which looks for them there.
            logs = Path(copy_environment().get(sessions.LOGS, logs))
        with open_logs_or_temp_folder(logs) as folder:
            session = mcp_proxy.ProxySession(
                plan,
                folder,
                options.fact,
                parse_effects_option(options.effects),
                name and sessions.check_session_name(name),
                kept=logs is not None,
            )
            if options.url:
                from chaoslab.surfaces import mcp_remote

                return mcp_remote.run_http_proxy(options.url, mcp_proxy.parse_header_fields(options.header), session)
            check_command_exists(options.words)
            return mcp_proxy.run_stdio_proxy(options.words, session)
    except (ValueError, TypeError, LookupError, OSError) as error:
        return print_error(error)
