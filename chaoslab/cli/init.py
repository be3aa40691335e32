"""`chaoslab init`: a small project to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from chaoslab.base.commandline import filled, path

HELP = "write a project with an agent, a scenario, a test and a CI file, ready for chaoslab test"
EXAMPLE = "chaoslab init --agent shop.agent:answer --prompt 'Refund order 17.'"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=path, nargs="?", default=Path(), help="where to write it; here")
    parser.add_argument("--agent", metavar="MODULE:NAME", help="your own agent, whose tools are found in its source")
    parser.add_argument("--prompt", metavar="TEXT", type=filled, help="the words for your agent")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras
    from chaoslab.base.commandline import refuse

    extras.check("chaoslab init", "scenarios")
    from chaoslab.execution.scenarios.new_project import PROMPT, repository, write
    from chaoslab.execution.scenarios.scenario import folders_of
    from chaoslab.execution.scenarios.sources import lost

    if options.prompt and not options.agent:
        return refuse(ValueError("--prompt is what your own agent is asked: name it with --agent"))
    try:
        made = write(options.folder, options.agent, options.prompt or PROMPT)
    except (ValueError, LookupError, SyntaxError) as error:
        return refuse(error)
    except OSError as error:
        return refuse(OSError(f"{error.filename or options.folder} cannot be written: {error.strerror or error}"))
    for written in made:
        print(written)
    if repository() is None:
        print(f"note: set the variable CHAOSLAB of your repository for {made[-1]}: the address of chaoslab's, for pip")
    if options.agent is None:
        print(f"next: {'' if options.folder == Path() else f'cd {options.folder}; '}chaoslab test; pytest")
        return 0
    where = "" if options.folder == Path() else f" {options.folder}"
    tested = any(each.name == "test_chaos.py" for each in made)
    if why := lost(options.agent, folders_of(options.folder)):
        print(f"note: {options.agent}: {why}")
    elif not tested:
        print(f"note: no tool was found in the source of {options.agent}: name them in {made[0]}, with a fault at one")
    if not options.prompt:
        print(f"note: write in {made[0]} what your agent is asked; it says {PROMPT!r}")
    print(f"next: chaoslab test{where}" + (f"; python -m pytest{where}" if tested else ""))
    return 0
