"""`chaoslab from-mcp`: a stand-in for an MCP server, and scenarios with it, from the list of its tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import filled, seed
from chaoslab.cli import _projects

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import Personal, Project

HELP = "write a stand-in for an MCP server, with state, and scenarios, from the list of its tools"
EXAMPLE = "chaoslab from-mcp --out chaos -- python server.py"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="+", type=filled, metavar="FILE|URL|COMMAND",
        help="a .json file with the result of tools/list, an address, as in http://127.0.0.1:3000/mcp, or after -- the "
        "server's command and its arguments, which is run",
    )  # fmt: skip
    parser.add_argument(
        "--header", action="append", default=[], metavar="FIELD",
        help="a header of each request to an address, as in 'Authorization: Bearer …'; it is never written down",
    )  # fmt: skip
    parser.add_argument("--seed", type=seed, default=1, help="of the values that no example gives (%(default)s)")
    _projects.arguments(parser)


def run(options: argparse.Namespace) -> int:
    shown = " ".join(options.source)

    def make(personal: Personal) -> tuple[Project, list[str]]:
        from chaoslab.base import extras
        from chaoslab.surfaces.mcp_proxy import fields_of
        from chaoslab.surfaces.schemas.mcp_tools import api_of, listed_by, listed_in
        from chaoslab.surfaces.schemas.writing import api_lines, project_of

        first = Path(options.source[0])
        if len(options.source) == 1 and first.suffix == ".json":
            name, tools = first.stem, listed_in(first)
        else:
            extras.check("asking a server", "mcp")
            name, tools = listed_by(options.source, fields_of(options.header))
        api = api_of(name or "server", tools, shown, personal=personal, seed=options.seed)
        return project_of(api, most=options.most, personal=personal), api_lines(api)

    return _projects.written(options, shown, make)
