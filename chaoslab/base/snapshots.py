"""Snapshots of a folder, and the changes from one to the next."""

import difflib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaoslab.base.files import open_regular

FILES_MAX = 20_000
"""The most files of a folder."""
TEXT_MAX = 128 * 1024
"""The most bytes of a file whose text is kept, so that a change of it has a diff."""
DIFF_MAX = 20_000
"""The most characters of a diff."""
LINES_MAX = 20
"""The most lines that are shown of a file that was deleted."""
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""The folders that tools make anew, which are no part of a snapshot."""
WHOLE = frozenset({".git"})
"""The folders that are one entry: their files differ from one run to the next by moments alone."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file. `digest`: of its bytes; of a link, its target. `text`: None if it is long, or no text."""

    digest: str
    size: int = 0
    executable: bool = False
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one file. `verb`: create, change, move or delete. `what`: its path, of a move both. `content`: the
    difference, as a diff or a digest."""

    verb: str
    what: str
    content: Mapping[str, Any]


def take_snapshot(folder: Path) -> dict[str, Entry]:
    """Each file by its path within the folder, in order. Links are not followed. Raises ValueError: the folder has more
    than FILES_MAX files."""
    snapshot = dict[str, Entry]()
    for path in _list_files(folder):
        if len(snapshot) == FILES_MAX:
            raise ValueError(f"{folder} has more than {FILES_MAX} files: name a smaller folder")
        if (entry := _read_entry(path)) is not None:
            snapshot[path.relative_to(folder).as_posix()] = entry
    return dict(sorted(snapshot.items()))


def _list_files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        alone = [name for name in folders if name in WHOLE or Path(parent, name).is_symlink()]
        folders[:] = [name for name in folders if name not in CACHES and name not in alone]
        yield from (Path(parent, name) for name in (*files, *alone))


def _read_entry(path: Path) -> Entry | None:
    """The entry of a file; None for what holds no bytes, such as a pipe, and for what has gone meanwhile."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Entry(f"a link to {path.readlink()}")
        if stat.S_ISDIR(status.st_mode):
            return Entry("a folder")
        if not stat.S_ISREG(status.st_mode):
            return None
        with open_regular(path) as file:
            digest, content = hashlib.sha256(), b""
            while chunk := file.read(TEXT_MAX):
                digest.update(chunk)
                content = content or chunk
        text = _decode_text(content) if status.st_size <= TEXT_MAX else None
    except FileNotFoundError:
        return None
    except PermissionError:
        return Entry("a file that cannot be read")
    return Entry(digest.hexdigest(), status.st_size, bool(status.st_mode & stat.S_IXUSR), text)


def _decode_text(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def compare_snapshots(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[Change]:
    """The changes, by path. A file that stands elsewhere with the same bytes was created there and moved."""
    sources: dict[str, list[str]] = {}
    for path, entry in before.items():
        if path not in after and entry.size:
            sources.setdefault(entry.digest, []).append(path)
    changes, moved = list[Change](), set[str]()
    for path, entry in after.items():
        old = before.get(path)
        if old is None:
            changes.append(Change("create", path, _describe_difference(None, entry)))
            if candidates := sources.get(entry.digest):
                moved.add(source := candidates.pop(0))
                changes.append(Change("move", f"{source} to {path}", {}))
        elif (old.digest, old.executable) != (entry.digest, entry.executable):
            changes.append(Change("change", path, _describe_difference(old, entry)))
    for path, entry in before.items():
        if path not in after and path not in moved:
            changes.append(Change("delete", path, _describe_deletion(entry)))
    return sorted(changes, key=lambda change: (change.what, change.verb))


def _describe_difference(old: Entry | None, new: Entry) -> dict[str, Any]:
    """The difference in content; a digest where no whole diff tells it."""
    content: dict[str, Any] = {}
    if old is None or old.digest != new.digest:
        diff = None if new.text is None else _diff_texts("" if old is None else old.text, new.text)
        if diff is not None:
            content["diff"] = diff[:DIFF_MAX]
        if diff is None or len(diff) > DIFF_MAX:
            content["sha256"] = new.digest
    if new.executable is not (old is not None and old.executable):
        content["executable"] = new.executable
    return content


def _diff_texts(old: str | None, new: str) -> str | None:
    """The lines that go and come, with their places; None if the old text is not known."""
    if old is None:
        return None
    return "".join([*difflib.unified_diff(_split_lines(old), _split_lines(new), n=0)][2:]).removesuffix("\n")


def _split_lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return lines if text.endswith("\n") or not lines else [*lines[:-1], f"{lines[-1]}\n\\ no end of line\n"]


def _describe_deletion(old: Entry) -> dict[str, Any]:
    if old.text is None:
        return {"bytes": old.size}
    lines = old.text.splitlines()
    more = [f"… {len(lines) - LINES_MAX} lines more"] if len(lines) > LINES_MAX else []
    return {"diff": "\n".join([*(f"-{text}" for text in lines[:LINES_MAX]), *more])}
