"""`chaoslab completion`: completes commands, options and their values in a shell. The candidates come from the parsers
of the commands. The shell's script asks this command for them."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, cast

from chaoslab.base.commandline import Parser

HELP = "print the script by which a shell completes commands, options, runs and faults"
EXAMPLE = 'eval "$(chaoslab completion bash)"'

_BASH = """\
_chaoslab() {
    local IFS=$'\\n'
    COMPREPLY=($(chaoslab completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    case "${COMPREPLY[0]}" in *=|*/) compopt -o nospace ;; esac
}
complete -o default -F _chaoslab chaoslab
"""
_ZSH = """\
#compdef chaoslab
_chaoslab() {
    local -a found
    found=("${(@f)$(chaoslab completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -z "${found[1]}" ]]; then
        _files
    else
        compadd -S '' -- ${(M)found:#*[=/]}
        compadd -- ${found:#*[=/]}
    fi
}
compdef _chaoslab chaoslab
"""
_FISH = """\
function __chaoslab
    set -l words (commandline -opc) (commandline -ct)
    set -l found (chaoslab completion fish -- $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        string join \\n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c chaoslab -f -a '(__chaoslab)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="bash, zsh or fish")
    parser.add_argument(
        "words", nargs="*", default=[], metavar="WORD", help="after --: list what completes the last of these"
    )


def run(options: argparse.Namespace) -> int:
    if options.words:
        print(*candidates(options.words), sep="\n")
    else:
        print(SCRIPTS[options.shell], end="")
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """The completions of the last word, sorted; the words before it are complete. Empty if a file name may follow. bash
    parts `--seed=1` at the sign, so a word "=" joins its neighbours."""
    from chaoslab.cli import COMMANDS

    *before, word = words
    if not before:
        return _beginning(word, [*COMMANDS, "--help", "--version"])
    if before[0] not in COMMANDS:
        return []
    parser = Parser(prog="chaoslab")
    cast(Any, import_module(f"chaoslab.cli.{before[0].replace('-', '_')}")).arguments(parser)
    if word == "=" or before[-1] == "=":
        option = before[-1] if word == "=" else before[-2]
        given = "" if word == "=" else word
        return _beginning(given, _values(_option(parser, option), given))
    if word.startswith("--") and "=" in word:
        option, _, given = word.partition("=")
        return [f"{option}={each}" for each in _beginning(given, _values(_option(parser, option), given))]
    return _beginning(word, _next(parser, before[1:], word))


def _beginning(word: str, texts: Sequence[str]) -> list[str]:
    return sorted({text for text in texts if text.startswith(word)})


def _next(parser: argparse.ArgumentParser, before: Sequence[str], word: str) -> list[str]:
    """All that may stand at the place of the word."""
    waiting: argparse.Action | None = None
    plain, only_plain = 0, False
    for each in before:
        if waiting is not None and each != "=":
            waiting = None
        elif each == "--":
            only_plain = True
        elif each.startswith("-") and not only_plain:
            found = _option(parser, each.partition("=")[0])
            waiting = found if found is not None and found.nargs is None and "=" not in each else None
        elif each != "=":
            plain += 1
    if waiting is not None:
        return _values(waiting, word)
    if word.startswith("-") and not only_plain:
        return [name for name in _options(parser) if name not in before or _repeats(parser, name)]
    places = [action for action in parser._actions if not action.option_strings]
    if not places:
        return []
    place = places[min(plain, len(places) - 1)]
    return _values(place, word) if plain < len(places) or place.nargs in ("*", "+") else []


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def _option(parser: argparse.ArgumentParser, name: str) -> argparse.Action | None:
    return parser._option_string_actions.get(name)


def _repeats(parser: argparse.ArgumentParser, name: str) -> bool:
    return isinstance(_option(parser, name), argparse._AppendAction)


def _values(action: argparse.Action | None, word: str) -> list[str]:
    """The values of an argument: its choices, or names that are found by its name in the help."""
    if action is None:
        return []
    if action.choices is not None:
        return [str(each) for each in action.choices]
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    look = _BY_NAME.get(metavar.partition(":")[0]) or _BY_NAME.get(action.dest)
    return list(look(word)) if look else []


def _runs(word: str) -> Iterator[str]:
    """The runs in logs/, and `latest`."""
    if os.path.isdir("logs"):
        yield from (entry.name for entry in os.scandir("logs") if entry.is_dir() and entry.name[:1] != ".")
    if "/" in word:
        yield from _paths(word, ())


def _faults(_: str) -> Sequence[str]:
    from chaoslab.base.registry import names

    return names("faults")


def _checked_faults(word: str) -> Sequence[str]:
    return ["check", *_faults(word)]


def _settings(word: str) -> Sequence[str]:
    from dataclasses import fields

    from chaoslab.config.settings import Settings

    return [f"{each.name.upper()}={word.partition('=')[2]}" for each in fields(Settings)]


def _scenarios(word: str) -> Iterator[str]:
    return _paths(word, (".chaos.yaml", ".chaos.yml", ".chaos.json", ".chaos.toml"))


def _outcomes(_: str) -> Sequence[str]:
    from chaoslab.analysis.verdict.table import Outcome

    return [str(each) for each in Outcome]


def _paths(word: str, ends: tuple[str, ...]) -> Iterator[str]:
    """Folders, with a slash at the end, and files with one of these ends."""
    folder = word[: word.rfind("/") + 1]
    if not os.path.isdir(folder or "."):
        return
    for entry in os.scandir(folder or "."):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield f"{folder}{entry.name}/"
        elif entry.name.endswith(ends):
            yield f"{folder}{entry.name}"


_BY_NAME: dict[str, Callable[[str], Sequence[str] | Iterator[str]]] = {
    "RUN": _runs, "run": _runs, "FAULT": _faults, "what": _checked_faults, "SCENARIO": _scenarios, "files": _scenarios,
    "NAME=value": _settings, "outcome": _outcomes,
}  # fmt: skip
"""Finders of values, by the argument's name in the help, else by its destination."""
