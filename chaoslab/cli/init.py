"""`chaoslab init`: a small project to begin with."""

from __future__ import annotations

import argparse

from chaoslab.base.commandline import path

HELP = "write a project with an agent, a scenario, a test and a CI file, ready for chaoslab test"
EXAMPLE = "chaoslab init my-agent"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=path, help="where to write it")
    parser.add_argument("--agent", metavar="MODULE:NAME", help="your own agent, in place of the example's")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.base.commandline import refuse

    extras.check("chaoslab init", "scenarios")
    from chaoslab.execution.scenarios.new_project import write

    try:
        made = write(options.folder, options.agent)
    except ValueError as error:
        return refuse(error)
    except OSError as error:
        return refuse(OSError(f"{error.filename or options.folder} cannot be written: {error.strerror or error}"))
    for written in made:
        print(written)
    print(f"next: cd {options.folder}; chaoslab test" + ("; pytest" if options.agent is None else ""))
    return 0
