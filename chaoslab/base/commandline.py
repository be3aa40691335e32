"""The command line's base: every command reports mistakes in one line and in the same words."""

import argparse
import codecs
import contextlib
import errno
import io
import os
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

from chaoslab.base import parsers
from chaoslab.base.terminal import clean_text

T = TypeVar("T")
RUN_HELP = (
    "a run: its name or the beginning of it, its folder, latest, or latest~1 for the one before (default: latest)"
)
"""The help of every command's argument for a run."""
FORMAT = 2
"""The version of the JSON that commands print. An addition does not change it."""
GATE_FAILED, LAB_DOWN, PROVES_NOTHING, INTERRUPTED = 1, 3, 4, 130
"""Exit codes of a command that runs trials, beside 0 and 2; `cli.main` describes them."""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a full disk, which is nothing that the user typed."""


def choose_failed_write_exit_code(error: OSError) -> int:
    """The exit code of a command that could not write what was asked for."""
    return LAB_DOWN if error.errno in NO_ROOM else 2


def get_interrupt_exit_code() -> int:
    """The exit code after a handled interrupt. Without this call, Python could end by the signal instead.

    If an interrupt passes through the execution of a text (`exec`), CPython notes it as unhandled, and `python -m` goes
    by that note at its end, even if the interrupt was handled. Making a namedtuple executes a text, as many imports do.
    The next text clears the note.
    """
    namedtuple("Handled", ())
    return INTERRUPTED


def print_error(error: Exception, *, code: int = 2) -> int:
    """Prints the error in one line and returns the exit code."""
    # Of a SyntaxError the text alone names the file and the line.
    message = error.args[0] if error.args and not isinstance(error, SyntaxError) else error
    if isinstance(error, OSError) and error.args:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.args[-1]
    with contextlib.suppress(OSError):
        print(clean_text(str(message)), file=sys.stderr)
    return code


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")


def print_json(**parts: Any) -> None:
    """Prints one JSON document: these members, and the version of the format as `chaoslab`."""
    import json

    # allow_nan: NaN is no JSON, and most parsers refuse it.
    print_document(json.dumps({"chaoslab": FORMAT, **parts}, ensure_ascii=False, indent=2, allow_nan=False))


def print_document(text: str) -> None:
    """Prints a text that a program is to read, such as JSON, alone on standard output."""
    for descriptor in _kept_stdout:
        sys.stdout.flush()
        os.dup2(descriptor, 1)
    print(text.removesuffix("\n"), flush=True)
    for _ in _kept_stdout:  # an agent may print at the end of the process too
        os.dup2(2, 1)


_kept_stdout: list[int] = []
"""The descriptor of standard output, in a process that `keep_stdout_for_document` was called in."""


def keep_stdout_for_document() -> None:
    """Sends all that this process and its children print from now on to standard error, but for the text of
    `print_document`: a user's agent may print too, which would make it no JSON."""
    sys.stdout.flush()
    _kept_stdout.append(os.dup(1))
    os.dup2(2, 1)


def make_streams_safe() -> None:
    """Makes printing safe, at a program's start: no missing character or reader makes it fail. A character that the
    terminal's encoding lacks is replaced by the nearest one. Text for a pipe whose reader is gone, or for a stream that
    was closed before the program began, goes to the null device."""
    with contextlib.suppress(OSError):
        for number in range(3):  # else the next file opened would get this stream's number
            if not _is_descriptor_open(number):
                # Inheritable, as standard streams are: a child would have none else.
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = _make_safe_stream(sys.stdout), _make_safe_stream(sys.stderr)


def _is_descriptor_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _make_safe_stream(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, _Stream):
        return stream
    encoding, by_line, at_once = stream.encoding, stream.line_buffering, stream.write_through
    # Detached, since two wrappers of one buffer would both flush and close it.
    return _Stream(stream.detach(), encoding, NEAREST, line_buffering=by_line, write_through=at_once)


class _Stream(io.TextIOWrapper):
    """A text stream whose reader may go: `chaoslab show | head -1` ends as if all had been read. All that is written is
    cleaned (`terminal.clean`), since most of it has foreign words in it."""

    def write(self, text: str) -> int:
        self.write_uncleaned(clean_text(text))
        return len(text)

    def write_uncleaned(self, text: str) -> int:
        """Writes the lab's own text, which may steer the terminal."""
        try:
            return super().write(text)
        except BrokenPipeError:
            self._redirect_to_null()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._redirect_to_null()

    def _redirect_to_null(self) -> None:
        """Sends this and all later text to the null device, with what is still buffered."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # Else Python's own flush at the end of the process would meet the broken pipe once more.
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


class Steering:
    """A stream for the lab's own text, which may steer the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.write: Callable[[str], int] = stream.write_uncleaned if isinstance(stream, _Stream) else stream.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


NEAREST = "chaoslab.nearest"
_NEAREST = {
    "–": "-", "·": "|", "→": "->", "…": "...", "×": "x", "≥": ">=", "≤": "<=", "±": "+-", "’": "'", "“": '"',
    "”": '"',
}  # fmt: skip


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # a stream for writing decodes nothing
    return "".join(_NEAREST.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error(NEAREST, _replace_unencodable)


class Help(argparse.HelpFormatter):
    """Help in lines of at most 80 columns, whatever the terminal's width. The example is one line, if it fits."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{**given, "width": 80})


class Parser(argparse.ArgumentParser):
    """argparse without the usage text, which would bury the mistake; `--help` still has it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {_describe_mistake(message, self.prog)}\n")


def _describe_mistake(message: str, program: str) -> str:
    """A message of argparse's with the nearest of the words to choose from, if it lists them. The commands are too many
    for one."""
    import re

    from chaoslab.base.former import COMMANDS

    match = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message, re.DOTALL)
    near = parsers.find_closest(match[1], re.findall(r"[\w-]+", match[2])) if match else ""
    if match and message.startswith("argument COMMAND:"):
        hint = COMMANDS.get(match[1]) or (f"did you mean '{near}'?" if near else "")
        return f"no command is called '{match[1][:60]}'{f': {hint}' if hint else ''} (chaoslab --all lists them)"
    return f"{message}{f'; did you mean {near}' if near else ''}; see {program} --help"


def fill_defaults(options: argparse.Namespace, defaults: Mapping[str, object]) -> list[str]:
    """Gives these options their defaults where they were not given, and returns those that were, as in "--wait-s". The
    parser has None as their default, so that one that is given with the value of its default counts as given."""
    names_given = [name for name in defaults if getattr(options, name) is not None]
    vars(options).update({name: default for name, default in defaults.items() if name not in names_given})
    return [f"--{name.replace('_', '-')}" for name in names_given]


def make_argument_type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """The type of an argument whose text a parser of settings reads, for `add_argument(type=…)`."""

    def parse_argument(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            shown_text = text[:60] if text.strip() else repr(text[:60])
            raise argparse.ArgumentTypeError(f"{shown_text} should be {error}") from None

    return parse_argument


def make_integer_type(low: int, high: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number within bounds."""
    return make_argument_type(parsers.make_integer_parser(low, high))


seed = make_integer_type(0, 2**63 - 1)
"""The type of an argument that is a seed."""
seconds = make_argument_type(parsers.parse_seconds)
"""The type of an argument that is a time in seconds, more than none."""
port = make_integer_type(0, 65535)
"""The type of an argument that is a port. 0: any free one."""


@make_argument_type
def parse_seconds(text: str) -> float:
    """The type of an argument that is a time in seconds, none included."""
    return parsers.parse_bounded_number(
        text, 0.0, parsers.SECONDS_MAX, f"a number from 0 to {parsers.SECONDS_MAX} (ten years)"
    )


@make_argument_type
def parse_host(text: str) -> str:
    """The type of an argument that is a host; `{service}` in it stands for the name of one."""
    parsers.parse_host(text.replace("{service}", "service"))
    return text


def parse_nonempty(text: str) -> str:
    """The type of an argument that is any text but an empty one, such as an unset variable of a shell leaves."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: give a value, or leave it out")
    return text


def parse_path(text: str) -> Path:
    """The type of an argument that is a path. An empty text is none: it would stand for the current folder."""
    return Path(parse_nonempty(text))
