"""`chaoslab init`: a small project to begin with."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from chaoslab.base.commandline import parse_nonempty, parse_path

HELP = "write a project with an agent, a scenario, a test and a CI file, ready for chaoslab test"
SKILL = "skills/chaoslab/SKILL.md"
EXAMPLE = "chaoslab init --agent shop.agent:answer --prompt 'Refund order 17.'"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=parse_path, nargs="?", help="where to write it (default: here)")
    parser.add_argument("--agent", metavar="MODULE:NAME", help="your own agent; its tools are read from its source")
    parser.add_argument("--skill", action="store_true", help=f"also write {SKILL}, for coding agents; alone: only that")
    parser.add_argument("--prompt", metavar="TEXT", type=parse_nonempty, help="the prompt for your agent")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.commandline import print_error
    from chaoslab.scenarios.agent_tools import find_tools
    from chaoslab.scenarios.new_project import PROMPT, find_install_address, read_skill_page, render_files, write_files
    from chaoslab.scenarios.scenario import list_module_folders
    from chaoslab.scenarios.sources import explain_missing_module

    if options.prompt and not options.agent:
        return print_error(ValueError("--prompt is what your own agent is asked: name it with --agent"))
    folder = options.folder or Path()
    for words in (str(folder), options.agent or ""):
        if name := _guess_agent_name(words, folder=words != options.agent):
            return print_error(ValueError(f"{words}: did you mean --agent {name}?"))
    try:
        if options.skill and options.agent is None and options.folder is None:
            contents = {}
        else:
            contents = dict(render_files(folder, options.agent, options.prompt or PROMPT))
        if options.skill:
            contents = {folder / SKILL: read_skill_page(), **contents}
        written_paths = write_files(contents, folder)
    except (ValueError, LookupError, SyntaxError) as error:
        return print_error(error)
    except OSError as error:
        return print_error(OSError(f"{error.filename or folder} cannot be written: {error.strerror or error}"))
    for written in written_paths:
        print(written)
    if written_paths == [folder / SKILL]:
        return 0
    if find_spec("pytest") is None and any(written_path.name.startswith("test_") for written_path in written_paths):
        print("note: pytest is not installed here, and runs the tests above: pip install pytest")
    if written_paths[-1].suffix != ".yml":
        print("note: the CI job of .github/workflows/chaos.yml, which is there already, stays as it is")
    elif find_install_address() is None:
        print(
            f"note: {written_paths[-1]} needs the variable CHAOSLAB of your repository: git+https:// and the address "
            f"that pip installs chaoslab from"
        )
    if options.agent is None:
        print(f"next: {'' if folder == Path() else f'cd {folder}; '}chaoslab test; pytest")
        return 0
    folder_argument = "" if folder == Path() else f" {folder}"
    tested = any(written_path.name.startswith("test_") for written_path in written_paths)
    if lost_reason := explain_missing_module(options.agent, list_module_folders(folder)):
        print(f"note: {options.agent}: {lost_reason}")
    elif not tested:
        print(
            f"note: no tool was found in the source of {options.agent}: name them in {written_paths[0]}, with a "
            f"fault at one"
        )
    # Tools that are made at run time do not stand in the source.
    for unseen in find_tools(options.agent, list_module_folders(folder)).unseen:
        print(f"note: {unseen} in {written_paths[0]}")
    if any(written_path.name.endswith("_model.py") for written_path in written_paths):
        print(f"note: check the arguments in {written_paths[1]}: they were guessed")
    if not options.prompt:
        print(f"note: write in {written_paths[0]} what your agent is asked; it says {PROMPT!r}")
    print(f"next: chaoslab test{folder_argument}" + (f"; python -m pytest{folder_argument}" if tested else ""))
    return 0


def _guess_agent_name(words: str, *, folder: bool) -> str:
    """The module:name that was meant by a file of Python, or, where a folder should stand, by module:name; empty if
    none was."""
    path, _, name = words.partition(":")
    if path.endswith(".py") or (folder and name.isidentifier()):
        return f"{'.'.join(Path(path.removesuffix('.py')).parts).strip('./')}:{name or 'NAME'}"
    return ""
