"""The command `chaoslab`. Each subcommand is a file here with `HELP`, `arguments` and `run`. A command's file imports
its dependencies only when the command runs. If a command is named, only its own file is loaded."""

import argparse
import gc
import io
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from typing import Protocol, cast

from chaoslab import __version__
from chaoslab.base import extras
from chaoslab.base.commandline import (
    LAB_DOWN,
    NO_ROOM,
    Help,
    Parser,
    get_interrupt_exit_code,
    keep_stdout_for_document,
    make_streams_safe,
    print_error,
)

GROUPS = {
    "start": ("demo", "init", "lab"),
    "test": ("test", "explore", "stress", "faults"),
    "read": ("show", "report", "ui"),
    "change": ("compare", "gate"),
    "agents elsewhere": ("exec", "gateway", "mcp"),
}
"""The commands of `chaoslab --help`, by group."""
MORE = {
    "more tests": ("check", "shrink", "prove", "plan", "memory", "campaign", "stop", "sweep"),
    "more on runs": ("runs", "summary", "steer", "replay", "charts", "otlp"),
    "from what you have": ("from-openapi", "from-mcp"),
    "the lab's parts": ("agent", "tools", "manager", "model", "toxiproxy", "settings"),
}
"""Those that `chaoslab --all` adds."""
COMMANDS = tuple(name for names in (*GROUPS.values(), *MORE.values()) for name in names)
QUIET_LINES = 5
"""The most lines that a command prints with -q."""
FORMER = {"run": "lab"}
"""By a former name of a command, the name of today."""


class Command(Protocol):
    """The content of a command's file. `EXAMPLE`: a line that a user may type. A file may also have `NEEDS`, the extras
    without which the command does not run. One that runs foreign code has `IS_APART`, or `is_apart` which tells it from
    the options: a child process is to carry it out."""

    HELP: str
    EXAMPLE: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the command's arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Runs the command and returns its exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command's exit code:

    | exit code | means |
    | --- | --- |
    | 0 | done, and what was asked for holds; for `stress`, the level at which the agent breaks is what was asked for |
    | 1 | it does not hold: --min-correct, --fail-on, a scenario of `test`, `explore` finds a failure, a new side of `compare` or `gate` that is worse, a `replay` that differs; where neither option is given, a trial of `exec` or `gateway` ends in harm, wrong or false_success |
    | 2 | something in a file or on the command line is wrong |
    | 3 | the lab failed |
    | 4 | nothing is proved: a fault that had to hit met nobody, all trials of a `lab` are invalid, one of `test`, `exec` or `gateway` is, damage that nobody injected hit one of a `lab`, no trial met a fault or faults were held back, or too few pairs of `compare` or `gate` were tried or too many are open |
    | 130 | Ctrl-C |

    `exec` ends with its command's own code if that is not 0 and the trial gives no code but 4.
    """  # noqa: E501 - a row of a table is one line
    if arguments is None:
        make_streams_safe()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run_for_exit_code(lambda: _parse_and_run(words, alone=arguments is None))
    finally:
        if arguments is None:  # a program of its own: nothing is left that Ctrl-C could interrupt
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            gc.freeze()  # else the collector walks through all libraries at the end, most of a second after LangChain


def _parse_and_run(words: Sequence[str], *, alone: bool) -> int:
    if words and words[0] in ("-h", "--help", "--all"):
        print(_render_overview(more="--all" in words))
        return 0
    options, unknown = _build_parser(words).parse_known_args(words)
    # argparse takes positionals after options only if asked for: intermixed.
    if unknown and not any(word.startswith("-") for word in unknown):  # such as a run's name after an option
        options, unknown = options.parser.parse_known_intermixed_args(words[1:])
    if unknown:  # reported by the command that does not know them
        options.parser.error(_describe_unknown_words(options, words, unknown))
    # A program of its own: in tests and from Python the caller is the process that would end.
    if alone and options.is_apart(options):
        from chaoslab.cli._apart import run_in_child

        return run_in_child(lambda: _run_for_exit_code(lambda: _run_apart(options)))
    return _run_parsed_command(options)


def _run_apart(options: argparse.Namespace) -> int:
    """Runs a command that runs foreign code, in the child process."""
    if getattr(options, "json", False):
        keep_stdout_for_document()
    return _run_parsed_command(options)


def _run_parsed_command(options: argparse.Namespace) -> int:
    if getattr(options, "quiet", False) and not getattr(options, "json", False):
        return _run_with_short_output(options)
    code: int = options.command(options)
    sys.stdout.flush()
    return code


def _run_with_short_output(options: argparse.Namespace) -> int:
    """Runs the command, and prints at most `QUIET_LINES` of its lines."""
    output = io.StringIO()
    try:
        with redirect_stdout(output):
            code: int = options.command(options)
    finally:
        lines = output.getvalue().splitlines()
        # GitHub reads lines that begin with "::", which put a message beside a file of the change.
        commands = [line for line in lines if line.startswith("::")]
        lines = [line for line in lines if line.strip() and not line.startswith("::")]
        if len(lines) > QUIET_LINES:
            lines[QUIET_LINES - 1 :] = [f"… {len(lines) - QUIET_LINES + 1} more lines without -q"]
        if lines or commands:
            print("\n".join([*lines, *commands]), flush=True)
    return code


def _run_for_exit_code(work: Callable[[], int]) -> int:
    """The exit code of the work, also where it was kept from its end."""
    try:
        return work()
    except KeyboardInterrupt:
        return get_interrupt_exit_code()
    except extras.Incomplete as error:
        return print_error(error)
    except ModuleNotFoundError as error:
        return print_error(extras.make_missing_core_error(error))
    except OSError as error:
        # With a name it is a file's trouble, which the command tells; without one it is standard output's.
        if error.errno not in NO_ROOM or error.filename:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes the rest once more at exit
        message = f"what this command prints cannot be written ({error.strerror}): make room"
        return print_error(OSError(error.errno, message), code=LAB_DOWN)


def _describe_unknown_words(options: argparse.Namespace, words: Sequence[str], unknown: Sequence[str]) -> str:
    """The message for unknown arguments. If the command takes settings, it names the settings that may have been
    meant."""
    if hasattr(options, "settings"):
        from chaoslab.config.effective import guess_meant_settings

        if meant := guess_meant_settings(words, unknown):
            named = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            phrase = "is given as the setting" if len(named) == 1 else "are given as the settings"
            return f"{' '.join(named)[:120]} {phrase} {meant}"
    from chaoslab.base import foreign, former

    replacements = foreign.OPTIONS | former.OPTIONS
    instead = (
        f": {replacements[word]}"
        for unknown_word in unknown
        if (word := unknown_word.partition("=")[0]) in replacements
    )
    return f"unrecognized arguments: {' '.join(unknown)}{next(instead, '')}"


def _run_command(name: str, command: Command, options: argparse.Namespace) -> int:
    if needed := getattr(command, "NEEDS", ()):
        extras.require_extras(f"chaoslab {name}", *needed)
    return command.run(options)


def _needs_child_process(command: Command, options: argparse.Namespace) -> bool:
    return command.is_apart(options) if hasattr(command, "is_apart") else getattr(command, "IS_APART", False)


def _render_overview(*, more: bool) -> str:
    """The help of `chaoslab` itself, in lines of at most 80 columns: the commands by group."""
    lines = ["usage: chaoslab COMMAND …", "", "A chaos lab for LLM agents."]
    for group, names in (GROUPS | MORE if more else GROUPS).items():
        lines += ["", f"{group}:"]
        for name in names:
            first, *rest = textwrap.wrap(_import_command(name).HELP, 64)
            lines += [f"  {name:<13} {first}", *(" " * 16 + line for line in rest)]
    ends = ["chaoslab COMMAND --help: its options", "chaoslab --version: the version"]
    return "\n".join([*lines, "", *([] if more else ["chaoslab --all: the other commands"]), *ends])


def _import_command(name: str) -> Command:
    return cast(Command, import_module(f"{__name__}.{FORMER.get(name, name).replace('-', '_')}"))


def _build_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(prog="chaoslab", formatter_class=Help)
    parser.add_argument("--version", action="version", version=f"chaoslab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    # A command that is named loads its own file alone: --help of one should come at once.
    for name in words[:1] if words and words[0] in (*COMMANDS, *FORMER) else COMMANDS:
        command = _import_command(name)
        its_own = commands.add_parser(
            name,
            help=command.HELP,
            description=f"{command.HELP[0].upper()}{command.HELP[1:]}.",
            epilog=f"Example: {command.EXAMPLE}",
            formatter_class=Help,
        )
        command.arguments(its_own)
        # The parser too, so that errors show the usage of this command.
        its_own.set_defaults(
            command=partial(_run_command, name, command),
            parser=its_own,
            is_apart=partial(_needs_child_process, command),
        )
    return parser
