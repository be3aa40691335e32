"""A copy of the user's folder in which one trial works, and the effects that it has there."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from chaoslab.base.identity import hash_value
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.snapshots import Entry, compare_snapshots, take_snapshot
from chaoslab.config.settings import set_variables
from chaoslab.core.events import FILES, Effect

VARIABLE = "CHAOSLAB_FILES"
"""The variable with the path of the copy."""


def parse_folder(value: str | os.PathLike[str], *, option: str = "files") -> Path:
    """The folder of that name. Raises ValueError: it is none, or this platform has no locks of files."""
    folder = Path(value).resolve()
    if not folder.is_dir():
        raise ValueError(f"{option} is {repr_one_line(str(value))}: it should be a folder that is there")
    if folder == Path(folder.anchor) or Path(tempfile.gettempdir()).resolve().is_relative_to(folder):
        raise ValueError(
            f"{option} is {repr_one_line(str(value))}: name the project's own folder, of which a copy is made"
        )
    if os.name != "posix":
        raise ValueError(f"{option} needs Linux or macOS, where a trial has a process of its own")
    take_snapshot(folder)
    return folder


@dataclass(frozen=True)
class Workspace:
    """The copy of a folder. `before`: what was in it when the trial began."""

    folder: Path
    before: Mapping[str, Entry]
    source: Path

    def list_effects(self) -> list[Effect]:
        """The effects so far, by path: one for each file that was created, changed, moved or deleted."""
        return [
            Effect(
                target=FILES, tool=change.verb, request_id="", effect=f"{change.verb} {change.what}",
                content=dict(change.content), reply={}, fingerprint="",
            )
            for change in compare_snapshots(self.before, take_snapshot(self.folder))
        ]  # fmt: skip

    @property
    def is_source_changed(self) -> bool:
        """True if something has changed the folder itself, rather than its copy."""
        return take_snapshot(self.source) != self.before


@contextmanager
def open_workspace(source: Path, *, enters: bool = True) -> Iterator[Workspace]:
    """A context with a copy of the folder, which is the current directory meanwhile if it `enters`. It has the same
    path in each trial, so that a path among arguments is no difference; a lock keeps trials of several processes apart.
    Raises OSError: no copy can be made."""
    import fcntl  # no such locks on Windows, where `parse_folder` refuses

    home = Path(tempfile.gettempdir()).resolve() / f"chaoslab-files-{os.getuid()}" / hash_value([str(source)])
    home.parent.mkdir(mode=0o700, exist_ok=True)
    if home.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{home.parent} is another user's: name another folder in TMPDIR")
    home.mkdir(exist_ok=True)
    folder, current = home / source.name, Path.cwd()
    with (home / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_tree(folder)  # a trial that was killed leaves it
        shutil.copytree(source, folder, symlinks=True, ignore=_list_special_files)
        workspace = Workspace(folder, take_snapshot(folder), source)
        os.chdir(folder if enters else current)
        try:
            with set_variables({VARIABLE: str(folder)}):
                yield workspace
        finally:
            os.chdir(current)
            _remove_tree(folder)


def _list_special_files(parent: str, names: list[str]) -> list[str]:
    """The names of what holds no bytes, such as a pipe."""
    modes = {name: Path(parent, name).lstat().st_mode for name in names}
    return [
        name for name, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
    ]


def _remove_tree(folder: Path) -> None:
    """Removes a folder, also one whose files may not be written."""

    def unlock_and_remove(remove: object, path: str, _: object) -> None:  # noqa: ARG001
        with suppress(OSError):
            os.chmod(Path(path).parent, 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    if folder.exists():
        shutil.rmtree(folder, onerror=unlock_and_remove)
