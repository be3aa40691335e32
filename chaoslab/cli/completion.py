"""`chaoslab completion`: completes commands, options and their values in a shell, by argcomplete. The shell's script
starts this command with the line so far in its environment, and `complete` prints the candidates."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

HELP = "print the script by which a shell completes commands, options, runs and faults"
EXAMPLE = 'eval "$(chaoslab completion bash)"'


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["chaoslab"], shell=options.shell), end="")
    return 0


def complete(parser: Callable[[Sequence[str]], argparse.ArgumentParser]) -> None:
    """Prints what completes the line in COMP_LINE, and ends the process. `parser` makes the parser for the words before
    the one under the cursor, so a named command loads no other's file."""
    from argcomplete.finders import ExclusiveCompletionFinder
    from argcomplete.lexers import split_line

    from chaoslab.config.settings import inherited

    environment = inherited()
    _, _, _, line_words, _ = split_line(environment["COMP_LINE"], int(environment["COMP_POINT"]))
    finder = ExclusiveCompletionFinder()
    # Options only where one is begun: else they hide the values.
    finder(parser(line_words[1:]), always_complete_options=False, default_completer=_values)  # type: ignore[arg-type]


def _values(*, prefix: str, action: argparse.Action, **_: Any) -> Iterable[str]:
    """The values of an argument without choices: names that are found by its name in the help, else files."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return (_BY_NAME.get(metavar.partition(":")[0]) or _BY_NAME.get(action.dest) or _files)(prefix)


def _runs(word: str) -> Iterator[str]:
    """The runs in logs/, and `latest`."""
    if os.path.isdir("logs"):
        # Without the hidden ones; latest is among them.
        yield from (entry.name for entry in os.scandir("logs") if entry.is_dir() and entry.name[:1] != ".")
    if "/" in word:
        yield from _files(word, "a file of no such name")


def _faults(_: str) -> Sequence[str]:
    from chaoslab.base.registry import names

    return names("faults")


def _settings(word: str) -> Sequence[str]:
    from dataclasses import fields

    from chaoslab.config.settings import Settings

    return [f"{setting_field.name.upper()}={word.partition('=')[2]}" for setting_field in fields(Settings)]


def _outcomes(_: str) -> Sequence[str]:
    from chaoslab.analysis.verdict.table import Outcome

    return [str(outcome) for outcome in Outcome]


def _scenarios(word: str) -> Iterable[str]:
    return _files(word, "chaos.yaml", "chaos.yml", "chaos.json", "chaos.toml")


def _files(word: str, *ends: str) -> Iterable[str]:
    """Folders, and files with one of these ends; without any, all files."""
    from argcomplete.completers import FilesCompleter

    return FilesCompleter(ends)(word)


_BY_NAME: dict[str, Callable[[str], Iterable[str]]] = {
    "RUN": _runs, "run": _runs, "FAULT": _faults, "what": lambda word: ["check", *_faults(word)],
    "SCENARIO": _scenarios, "files": _scenarios, "NAME=value": _settings, "outcome": _outcomes,
}  # fmt: skip
"""Finders of values, by the argument's name in the help, else by its destination."""
