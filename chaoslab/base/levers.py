"""Files that end faults: a lever that is pulled, and a lease that its holder renews. All parts in real time watch them.
A lever is pulled when its file is there; the file says who pulled it and why. A lease is in force while its file was
touched lately, so it ends by itself with the process that touched it, kill -9 included."""

import os
from collections.abc import Callable
from pathlib import Path

from chaoslab.base.clock import Clock, format_iso, system
from chaoslab.base.files import Unreadable, load_bytes, replace_file


def get_user_stop_file() -> Path:
    """The lever of this user. Where the home is closed to this process, as to a part in a container that is root's no
    more, there is none: what cannot be looked at was not pulled by whoever it belongs to."""
    try:
        home = Path.home()
    except RuntimeError:  # nobody with a name
        home = Path()
    # A path at which nothing ever is, so that it counts as not pulled.
    return home / ".chaoslab" / "stop" if os.access(home, os.X_OK) else Path("/no home/stop")


LEVER = get_user_stop_file()
"""The lever of this user on this machine, which every part watches, whatever its plan says."""
# Absolute from the start, since a program may change the folder later.
LAB = Path("state", "chaoslab-stop").absolute()
"""The lever of the lab in this folder. Its parts in containers see it, since they share `state`, and no user's home."""
SAID_MAX = 200
out_of_time: list[Callable[[], bool]] = []
"""Asks if this thread lives in a time of its own. A world brings the question."""


def is_in_real_time() -> bool:
    """True if this thread lives in the time of the machine, by which leases end."""
    return not any(asks() for asks in out_of_time)


def write_stop_file(lever: Path, reason: str, *, clock: Clock = system) -> None:
    """Pulls a lever: no part that watches it makes a fault any more. Raises OSError: the file cannot be written."""
    lever.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(lever) as draft:
        draft.write_text(f"{reason}\nsince {format_iso(clock.utc())}\n", encoding="utf-8")


def remove_stop_file(lever: Path) -> bool:
    """Releases a lever. Returns False if it was not pulled. Raises OSError: the file cannot be removed."""
    try:
        lever.unlink()
    except FileNotFoundError:
        return False
    return True


def describe_pulled_lever() -> str:
    """The lever that every part watches and somebody pulled, with the words; empty if none is."""
    return next((f"lever {lever}: {reason}" for lever in (LEVER, LAB) if (reason := read_stop_reason(lever))), "")


def read_stop_reason(lever: Path) -> str:
    """The words of whoever pulled the lever; empty if nobody did. A lever that cannot be read counts as pulled."""
    try:
        os.stat(lever)  # most are not there, which costs less to see so
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        pass  # `read` has the words
    try:
        text = load_bytes(lever).decode("utf-8", "replace")
    except Unreadable as error:
        return "" if error.missing else f"it {error}"
    return text.partition("\n")[0][:SAID_MAX].strip() or "it is pulled"


def renew_lease(lease: Path, *, clock: Clock = system) -> None:
    """Renews a lease, or begins it. Raises OSError: the file cannot be written."""
    lease.touch()
    # By the lab's clock, which `is_lease_expired` holds it against, and not by that of the file system.
    now = clock.utc().timestamp()
    os.utime(lease, (now, now))


def is_lease_expired(lease: Path, lease_s: float, *, clock: Clock = system) -> bool:
    """True if nobody has renewed the lease for so many seconds, or if there is none."""
    try:
        # The wall clock, since a file's time is by it.
        return clock.utc().timestamp() - lease.stat().st_mtime > lease_s
    except OSError:
        return True


def reserve_fault(tally: Path, count_max: int) -> bool:
    """Counts one fault in a tally that several processes share: a byte of the file each. Returns False beyond
    `count_max`, or if the file cannot be written."""
    try:
        number = os.open(tally, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError:
        return False
    try:
        os.write(number, b".")
        return os.lseek(number, 0, os.SEEK_CUR) <= count_max  # its own byte's place, since each is appended at the end
    except OSError:
        return False
    finally:
        os.close(number)
