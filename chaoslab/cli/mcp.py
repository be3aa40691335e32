"""`chaoslab mcp`: faults between any MCP client and any server on standard input and output."""

import argparse

from chaoslab.base.commandline import refuse
from chaoslab.cli import gateway

HELP = "stand between an MCP client and a server, as the server's command, and break the calls of its tools"
EXAMPLE = "chaoslab mcp --fault lost_reply:refund -- python server.py"


def arguments(parser: argparse.ArgumentParser) -> None:
    gateway.add_plan_options(parser, "TOOL", "refund")
    parser.add_argument("--url", help="a server over streamable HTTP, as in http://127.0.0.1:3000/mcp")
    parser.add_argument(
        "--header", action="append", default=[], metavar="FIELD",
        help="a header of each request to --url, as in 'Authorization: Bearer …'; it is never written down",
    )  # fmt: skip
    parser.add_argument(
        "--session", metavar="NAME",
        help="proxies of one name are one run, for a client that starts its server anew for each try "
        "(default: that of the chaoslab exec it runs in)",
    )  # fmt: skip
    gateway.add_statement_options(
        parser, fact="a text that the arguments of the client's calls must show", like="refund"
    )
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="after --: the server's command and its arguments")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.config.settings import inherited
    from chaoslab.scenarios.command_agent import check_command
    from chaoslab.surfaces import mcp_proxy, sessions
    from chaoslab.surfaces.gateway import parse_effects, parse_plan

    try:
        if bool(options.url) == bool(options.words):
            raise ValueError("chaoslab mcp needs a server: --url http://127.0.0.1:3000/mcp, or -- and its command")
        if options.header and not options.url:
            raise ValueError("--header goes with --url: a command has no headers")
        plan = parse_plan(options.fault, options.plan, options.seed, None)
        name = options.session or inherited().get(sessions.VARIABLE, "")
        session = mcp_proxy.ProxySession(
            plan, options.logs, options.fact, parse_effects(options.effects), name and sessions.check_name(name)
        )
        if options.url:
            extras.check("--url", "mcp")
            from chaoslab.surfaces import mcp_remote

            return mcp_remote.run(options.url, mcp_proxy.parse_header_fields(options.header), session)
        check_command(options.words)
        return mcp_proxy.run(options.words, session)
    except (ValueError, TypeError, LookupError, OSError) as error:
        return refuse(error)
