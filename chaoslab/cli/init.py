"""`chaoslab init`: a small project to begin with."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from chaoslab.base.commandline import parse_nonempty, path

HELP = "write a project with an agent, a scenario, a test and a CI file, ready for chaoslab test"
SKILL = "skills/chaoslab/SKILL.md"
EXAMPLE = "chaoslab init --agent shop.agent:answer --prompt 'Refund order 17.'"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=path, nargs="?", help="where to write it; here by default")
    parser.add_argument("--agent", metavar="MODULE:NAME", help="your own agent, whose tools are found in its source")
    parser.add_argument("--plugin", metavar="NAME", help="a package with a fault, an assertion and an adapter instead")
    parser.add_argument("--skill", action="store_true", help=f"{SKILL} too, a page for coding agents; alone: only it")
    parser.add_argument("--prompt", metavar="TEXT", type=parse_nonempty, help="the words for your agent")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.commandline import refuse
    from chaoslab.scenarios import new_plugin
    from chaoslab.scenarios.agent_tools import find_tools
    from chaoslab.scenarios.new_project import PROMPT, find_repository, read_skill_page, render_files, write_files
    from chaoslab.scenarios.scenario import module_folders
    from chaoslab.scenarios.sources import explain_lost

    if options.prompt and not options.agent:
        return refuse(ValueError("--prompt is what your own agent is asked: name it with --agent"))
    if options.plugin and options.agent:
        return refuse(ValueError("--plugin and --agent write two different things: say one of them"))
    folder = options.folder or Path(options.plugin or "")
    try:
        if options.plugin is not None:
            contents = dict(new_plugin.render_files(folder, options.plugin))
        elif options.skill and options.agent is None and options.folder is None:
            contents = {}
        else:
            contents = dict(render_files(folder, options.agent, options.prompt or PROMPT))
        if options.skill:
            contents = {folder / SKILL: read_skill_page(), **contents}
        written_paths = write_files(contents, folder)
    except (ValueError, LookupError, SyntaxError) as error:
        return refuse(error)
    except OSError as error:
        return refuse(OSError(f"{error.filename or folder} cannot be written: {error.strerror or error}"))
    for written in written_paths:
        print(written)
    if written_paths == [folder / SKILL]:
        return 0
    if find_spec("pytest") is None and any(written_path.name.startswith("test_") for written_path in written_paths):
        print("note: pytest is not installed here, and runs the tests above: pip install pytest")
    if options.plugin:
        print(f"next: pip install -e {folder}; pytest {folder}")
        return 0
    if written_paths[-1].suffix != ".yml":
        print("note: the CI job of .github/workflows/chaos.yml, which is there already, stays as it is")
    elif find_repository() is None:
        print(
            f"note: set the variable CHAOSLAB of your repository for {written_paths[-1]}: the address of "
            f"chaoslab's, for pip"
        )
    if options.agent is None:
        print(f"next: {'' if folder == Path() else f'cd {folder}; '}chaoslab test; pytest")
        return 0
    folder_argument = "" if folder == Path() else f" {folder}"
    tested = any(written_path.name.startswith("test_") for written_path in written_paths)
    if lost_reason := explain_lost(options.agent, module_folders(folder)):
        print(f"note: {options.agent}: {lost_reason}")
    elif not tested:
        print(
            f"note: no tool was found in the source of {options.agent}: name them in {written_paths[0]}, with a "
            f"fault at one"
        )
    # Tools that are made at run time do not stand in the source.
    for written_path in find_tools(options.agent, module_folders(folder)).unseen:
        print(f"note: the tools of {written_path} are not in the source: name them in {written_paths[0]}")
    if any(written_path.name.endswith("_model.py") for written_path in written_paths):
        print(f"note: check the arguments in {written_paths[1]}: they were guessed")
    if not options.prompt:
        print(f"note: write in {written_paths[0]} what your agent is asked; it says {PROMPT!r}")
    print(f"next: chaoslab test{folder_argument}" + (f"; python -m pytest{folder_argument}" if tested else ""))
    return 0
