"""`chaoslab from-openapi`: a fake for a service, and scenarios with it, from its OpenAPI document."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from chaoslab.base.commandline import parse_path, seed
from chaoslab.cli import _projects

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import PersonalDataMasker, Project

HELP = "write a fake service, with state, and scenarios, from its OpenAPI document"
EXAMPLE = "chaoslab from-openapi openapi.yaml --out chaos"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "document", type=parse_path, metavar="FILE", help="OpenAPI 3.0, 3.1 or Swagger 2, as JSON or YAML"
    )
    parser.add_argument("--seed", type=seed, default=1, help="seed of values without an example (%(default)s)")
    _projects.add_options(parser)


def run(options: argparse.Namespace) -> int:
    def make_project(personal: PersonalDataMasker) -> tuple[Project, list[str]]:
        from chaoslab.surfaces.schemas.openapi import read_api
        from chaoslab.surfaces.schemas.writing import build_project, describe_operation_counts

        api = read_api(options.document, personal=personal, seed=options.seed)
        return build_project(api, most=options.most, personal=personal), describe_operation_counts(api)

    return _projects.write_project(options, str(options.document), make_project)
