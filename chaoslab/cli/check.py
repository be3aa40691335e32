"""`chaoslab check`: scenario files and files of settings, validated and not run."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from chaoslab.base.commandline import add_json_option, parse_nonempty, print_json
from chaoslab.base.terminal import clean_text

HELP = "validate scenario files, or the settings in a .env, without running anything"
EXAMPLE = "chaoslab check tests/chaos"
ENV = ".env"
COMPOSE = "compose"
"""The world of the containers, of which one checks the settings."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", type=parse_nonempty, nargs="*", metavar="FILE", help="scenario files, folders of them, or a .env"
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of scenario files, for editors")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.commandline import print_error

    if len(options.files) == 1 and Path(options.files[0]).name == ENV and not options.json:
        return _check_and_print_settings(Path(options.files[0]))
    from chaoslab.scenarios.files import find_scenario_files
    from chaoslab.scenarios.lab_agent import LAB
    from chaoslab.scenarios.load import ScenarioErrors, load_file_scenarios
    from chaoslab.scenarios.scenario import list_module_folders
    from chaoslab.scenarios.schema import build_schema
    from chaoslab.scenarios.sources import explain_missing_module

    if options.schema:
        print(json.dumps(build_schema(), indent=2))
        return 0
    try:
        paths = find_scenario_files([Path(name) for name in options.files])
    except LookupError as error:
        return print_error(error)
    wrong = 0
    checked = []
    for path in paths:
        names: list[str] = []
        lines: list[str] = []
        try:
            scenarios = load_file_scenarios(path)
            names = [scenario.name for scenario in scenarios]
            dotted = dict.fromkeys(
                dotted_name
                for scenario in scenarios
                for dotted_name in scenario.spec.dotted_names
                if dotted_name != LAB
            )
            lines = [
                f"{path}: {dotted_name}: {reason}"
                for dotted_name in dotted
                if (reason := explain_missing_module(dotted_name, list_module_folders(path.parent)))
            ]
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


def _check_and_print_settings(path: Path) -> int:
    """Checks the settings that a run would have from this file and the environment: names, values, the world and the
    file of prompts."""
    from chaoslab.config import settings
    from chaoslab.config.scenario import check_world_supports_plan, plan_from_settings

    notes: list[str] = []
    lines = settings.find_wrong_lines(path)
    if not lines:
        try:
            chosen = settings.load_settings(env_file=path)
            # A copy of .env.example names the default world, so another one is a note here and no error.
            if settings.read_variable("STOPPER") and chosen.world != COMPOSE:
                if settings.find_value_origin("WORLD", env_file=path) != "default":
                    notes.append(f"WORLD={chosen.world} is not used: containers are WORLD={COMPOSE}")
                chosen = replace(chosen, world=COMPOSE)
            check_world_supports_plan(chosen, plan_from_settings(chosen))
            if chosen.prompts:
                from chaoslab.agent import prompts

                # A file of prompts that is wrong would end the run after the lab is up.
                prompts.load_prompts(Path(chosen.prompts))
        except settings.SettingError as error:
            lines = [str(error)]
    if lines:
        print(*map(clean_text, lines), sep="\n", file=sys.stderr)
        return 2
    sources = f"{path.name} and the environment" if path.exists() else f"the environment; there is no {path.name}"
    print(*notes, f"nothing is wrong with the settings of {sources}", sep="\n")
    return 0
