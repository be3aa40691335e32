"""`chaoslab from-openapi`: a stand-in for a service, and scenarios with it, from its OpenAPI document."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from chaoslab.base.commandline import path, seed
from chaoslab.cli import _projects

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import Personal, Project

HELP = "write a stand-in for a service, with state, and scenarios, from its OpenAPI document"
EXAMPLE = "chaoslab from-openapi openapi.yaml --out chaos"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", type=path, metavar="FILE", help="OpenAPI 3.0, 3.1 or Swagger 2, as JSON or YAML")
    parser.add_argument("--seed", type=seed, default=1, help="of the values that no example gives (%(default)s)")
    _projects.arguments(parser)


def run(options: argparse.Namespace) -> int:
    def make(personal: Personal) -> tuple[Project, list[str]]:
        from chaoslab.surfaces.schemas.openapi import read_api
        from chaoslab.surfaces.schemas.writing import build_project, describe_api

        api = read_api(options.document, personal=personal, seed=options.seed)
        return build_project(api, most=options.most, personal=personal), describe_api(api)

    return _projects.write_project(options, str(options.document), make)
