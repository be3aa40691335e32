"""The place of the shared state, checked before anything starts."""

import errno
from pathlib import Path

from chaoslab.base.files import open_regular

# The first 16 bytes of each file of SQLite, by which a user's own file is told from the lab's.
BEGINNING = b"SQLite format 3\0"
OWN_NAME = "state.db"
"""The usual name. A file of this name is the lab's, and is made anew if something wrote over it."""


def check_state_file(path: Path) -> None:
    """Checks that the shared state can be kept in this file, whose folder is made. Raises OSError: it cannot; its
    `filename` names what is in the way."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "it should be a folder: rename it", str(path.parent)) from None
    # Before its content is read: one that something wrote over is made anew, and only its name says that it is the
    # lab's.
    if path.name == OWN_NAME or not path.exists():
        return
    # A pipe of this name would wait for ever, and a device fill the memory.
    with open_regular(path) as file:
        begins = file.read(len(BEGINNING))
    # SQLite leaves an empty file until its first write.
    if begins and begins != BEGINNING:
        raise FileExistsError(errno.EEXIST, "this is no state of the lab: name another file", str(path))
