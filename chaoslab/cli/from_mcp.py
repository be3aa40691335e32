"""`chaoslab from-mcp`: a fake for an MCP server, and scenarios with it, from the list of its tools."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import parse_nonempty, seed
from chaoslab.cli import _projects

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import PersonalDataMasker, Project

HELP = "write a fake MCP server, with state, and scenarios, from its list of tools"
EXAMPLE = "chaoslab from-mcp --out chaos -- python server.py"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="+",
        type=parse_nonempty,
        metavar="FILE|URL|COMMAND",
        help="a .json file with the result of tools/list, an address, as in http://127.0.0.1:3000/mcp, or after -- the "
        "server's command and its arguments, which is run",
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="FIELD",
        help="a header for each request to an address, as in 'Authorization: Bearer …'; never logged",
    )
    parser.add_argument("--seed", type=seed, default=1, help="seed of values without an example (%(default)s)")
    _projects.add_options(parser)


def run(options: argparse.Namespace) -> int:
    source_text = " ".join(options.source)

    def make_project(personal: PersonalDataMasker) -> tuple[Project, list[str]]:
        from chaoslab.base import extras
        from chaoslab.surfaces.mcp_proxy import parse_header_fields
        from chaoslab.surfaces.schemas.mcp_tools import make_api, read_tools, request_tools
        from chaoslab.surfaces.schemas.writing import build_project, describe_operation_counts

        first = Path(options.source[0])
        # One word that ends in .json is a file; a server's command may have such a word too.
        if len(options.source) == 1 and first.suffix == ".json":
            name, tools = first.stem, read_tools(first)
        else:
            extras.require_extras("asking a server", "mcp")
            name, tools = request_tools(options.source, parse_header_fields(options.header))
        api = make_api(name or "server", tools, source_text, personal=personal, seed=options.seed)
        return build_project(api, most=options.most, personal=personal), describe_operation_counts(api)

    return _projects.write_project(options, source_text, make_project)
