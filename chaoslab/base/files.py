"""Reads files that a user names: regular ones, of a bounded size, in UTF-8. JSON must be such that every parser reads
the same."""

import errno
import json
import math
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

BYTES_MAX = 16 * 1024 * 1024
DEPTH_MAX = 50
"""The most levels of a JSON value."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN = re.compile(
    r'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")(?P<key>\s*+:)?|(?P<open>[\[{])|(?P<close>[\]}])'
    r"|(?P<number>-?(?:NaN|Infinity|[0-9][0-9.eE+-]*+))"
)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A context with a file beside `path` that takes its place at the end, so that nobody reads a part of it. Raises
    OSError: it could not be written, or what is there is a device or a pipe; the error names `path`, and what is there
    is unchanged."""
    if path.exists():
        _require_regular_file(path, path.stat().st_mode, "replaced")
    # Each writer has a draft of its own, two threads of one process too.
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.part")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if error.filename is None or str(error.filename) == str(draft):  # a write names no file
            error.filename = str(path)
            del error.filename2  # that of a rename; one that is set to None is shown, as "-> None"
        raise
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


class Unreadable(ValueError):
    """A file cannot be read. The text continues a line after the file's name: "is not UTF-8 text (byte 7)". `missing`:
    there is no such file."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


def load_bytes(path: Path) -> bytes:
    """The bytes of a regular file of up to `BYTES_MAX`. Raises Unreadable: it is no regular file, is larger, or the
    system cannot read it."""
    if "\0" in str(path):
        raise Unreadable("cannot be read: its name has a NUL character in it")
    with translate_errors(), open_regular(path) as file:
        # One byte more than allowed shows a larger file, and a size that grew since it was asked for.
        data = file.read(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise Unreadable(f"is larger than {BYTES_MAX // 1024**2} MiB, the most that is read")
    return data


@contextmanager
def translate_errors() -> Iterator[None]:
    """A context in which an OSError is raised as Unreadable, in the words of the system."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).removesuffix(".")
        raise Unreadable(f"cannot be read: {reason}", missing=isinstance(error, FileNotFoundError)) from None


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open for reading. Raises OSError: it is no regular file, or the system cannot read it."""
    _require_regular_file(path, path.stat().st_mode)
    # If it has become a pipe since, opening must not wait for its other end.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    try:
        # Once more, of what was opened: the name may stand for something else by now.
        _require_regular_file(path, os.fstat(file.fileno()).st_mode)
    except OSError:
        file.close()
        raise
    return file


def _require_regular_file(path: Path, mode: int, action: str = "read") -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are {action}", str(path))


def load_text(path: Path) -> str:
    """The text of a file in UTF-8, with `\\n` at the end of each line, and without a byte order mark. Raises
    Unreadable: as `read`, or it is not UTF-8."""
    data = load_bytes(path)
    # Where there is no byte order mark, UTF-16 shows by a zero byte in its first character.
    if data.startswith(_UTF_16) or b"\0" in (data[:1], data[1:2]):
        raise Unreadable("is UTF-16 text: save it as UTF-8")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 text (byte {error.start})") from None


def read_json(path: Path) -> Any:
    """The value of a JSON file. Raises Unreadable: as `load_text`, or it is no JSON, or has a name twice in an object,
    NaN or Infinity, a number beyond 1.8e308, half a surrogate pair, or more than `DEPTH_MAX` levels."""
    return parse_json(load_text(path))


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises Unreadable: as `read_json`."""
    try:
        value = json.loads(text, parse_int=_parse_json_integer)
    except json.JSONDecodeError as error:
        raise Unreadable(f"is not JSON: {error}") from None
    except RecursionError:
        raise Unreadable(f"is nested deeper than {DEPTH_MAX} levels") from None
    _require_portable_json(text)
    return value


def _parse_json_integer(digits: str) -> int:
    """The number, or 0 if it has over 1000 digits, which `_require_portable_json` refuses. Python reads only 4300."""
    return int(digits) if len(digits) <= 1000 else 0


def _require_portable_json(text: str) -> None:
    """Raises Unreadable for JSON that Python reads and other parsers may not."""
    names: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        wrong = ""
        if kind == "open":
            names.append(set())
            wrong = f"is nested deeper than {DEPTH_MAX} levels" if len(names) > DEPTH_MAX else ""
        elif kind == "close":
            names.pop()
        elif kind == "number":
            wrong = _describe_bad_number(token["number"])
        else:
            name = token["text"]
            if half := _find_lone_surrogate(name):
                wrong = f"has half a surrogate pair in it ({half})"
            elif kind == "key":
                # Read, since one name may be spelt in two ways, with escapes and without.
                name = json.loads(name)
                wrong = f"has {json.dumps(name[:60])} twice in one object" if name in names[-1] else ""
                names[-1].add(name)
        if wrong:
            line, column = text.count("\n", 0, token.start()) + 1, token.start() - text.rfind("\n", 0, token.start())
            raise Unreadable(f"{wrong}: line {line} column {column}")


def _describe_bad_number(number: str) -> str:
    if not number[-1].isdigit():
        return f"has {number} in it, which is no JSON"
    return f"has a number beyond 1.8e308 in it ({number[:20]})" if math.isinf(float(number)) else ""


def _find_lone_surrogate(text: str) -> str:
    """The escape in a JSON text that is one half of a surrogate pair without the other; empty if there is none."""
    if "\\u" not in text:
        return ""
    try:
        json.loads(text).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):04x}"
    return ""
