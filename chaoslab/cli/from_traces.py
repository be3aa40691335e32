"""`chaoslab from-traces`: scenarios from the traces of an agent in production."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from chaoslab.base.commandline import path
from chaoslab.cli import _projects

if TYPE_CHECKING:
    from chaoslab.surfaces.projects import Personal, Project

HELP = "write scenarios, with stand-ins for the tools, from the traces of an agent: OTLP, Phoenix, Langfuse"
EXAMPLE = "chaoslab from-traces traces.jsonl --out chaos"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", type=path, metavar="FILE|DIR", help="JSON or JSON lines, or a folder of them")
    _projects.arguments(parser)


def run(options: argparse.Namespace) -> int:
    def make(personal: Personal) -> tuple[Project, list[str]]:
        from chaoslab.surfaces.otel.calls import find_episodes
        from chaoslab.surfaces.otel.reading import read_spans
        from chaoslab.surfaces.otel.writing import build_project

        notes: list[str] = []
        project = build_project(find_episodes(read_spans(options.traces, notes)), most=options.most, personal=personal)
        scenarios = sum(name.endswith(".yaml") for name in project.files)
        if not scenarios:
            raise LookupError(f"no call of a tool has a reply: {project.lacking[0]}")
        coverage = f"{project.kept} of {project.calls} tool calls are in {scenarios} scenarios"
        return project, [*(f"note: {note}" for note in notes), coverage]

    return _projects.write_project(options, str(options.traces), make)
