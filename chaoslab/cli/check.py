"""`chaoslab check`: scenario files, validated and not run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from chaoslab.base.commandline import as_json, filled, print_json

HELP = "scenario files: tell what is wrong with them, without running anything"
EXAMPLE = "chaoslab check tests/chaos"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=filled, nargs="*", metavar="FILE", help="scenario files, or folders of them")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of scenario files, for editors")
    as_json(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.base.commandline import refuse

    extras.check("chaoslab check", "scenarios")
    from chaoslab.execution.scenarios.files import found
    from chaoslab.execution.scenarios.lab_agent import LAB
    from chaoslab.execution.scenarios.load import ScenarioErrors, load
    from chaoslab.execution.scenarios.scenario import folders_of
    from chaoslab.execution.scenarios.schema import schema
    from chaoslab.execution.scenarios.sources import lost

    if options.schema:
        print(json.dumps(schema(), indent=2))
        return 0
    try:
        paths = found([Path(name) for name in options.files])
    except LookupError as error:
        return refuse(error)
    wrong = 0
    checked = []
    for path in paths:
        names: list[str] = []
        lines: list[str] = []
        try:
            scenarios = load(path)
            names = [each.name for each in scenarios]
            dotted = dict.fromkeys(one for each in scenarios for one in each.spec.dotted if one != LAB)
            lines = [f"{path}: {one}: {why}" for one in dotted if (why := lost(one, folders_of(path.parent)))]
        except ScenarioErrors as error:
            lines = list(error.lines)
        wrong += bool(lines)
        checked.append({"file": str(path), "scenarios": names, "errors": lines})
        if options.json:
            continue
        if lines:
            print(*lines, sep="\n", file=sys.stderr)
        else:
            print(f"{path}: {', '.join(map(repr, names))}: nothing is wrong with it")
    if options.json:
        print_json(files=checked)
    return 2 if wrong else 0
