"""The audit file of faults: who made which, where, when and why, a line of JSON each, over all runs that name the file.
A line is on the disk before its fault acts. If it cannot be written, the fault is not made and the run ends."""

import json
import os
import socket
from pathlib import Path
from typing import Any

from chaoslab.base.clock import Clock, format_iso, system
from chaoslab.core.events import AttemptEvent, Event, FaultHeldBack, FaultScheduled, FaultWitnessed
from chaoslab.record.log import LogLost

SAYS: dict[type[Event], str] = {FaultScheduled: "made", FaultWitnessed: "met", FaultHeldBack: "held back"}


class Audit:
    """Appends to an audit file. `run`: the run's folder; `why`: the reason in the user's words; `by`: who answers for
    it, by default the user of this process."""

    def __init__(self, path: Path, *, why: str = "", by: str = "", clock: Clock = system) -> None:
        """Opens the file. Raises OSError: it cannot be written."""
        self._path, self._clock, self.run = path, clock, ""
        # Unbuffered, so that a line is with the system before its fault acts.
        self._file = path.open("ab", buffering=0)
        self._said: dict[str, Any] = {
            "by": by or f"{_get_user_name()}@{socket.gethostname()}", "pid": os.getpid(), "why": why
        }  # fmt: skip

    def write_fault_line(self, event: Event) -> None:
        """Writes a line if the event is about a fault. Raises LogLost: it cannot be written."""
        action = SAYS.get(type(event))
        if action is None or not isinstance(event, AttemptEvent):
            return
        at = {"target": event.target, "request": event.request, "attempt": event.attempt}
        named = ("fault", "injection", "tool", "params", "evidence", "limit")
        of_event = {name: value for name in named if (value := getattr(event, name, None))}
        line = {"ts": format_iso(self._clock.utc()), "what": action, **of_event, **at, **self._said, "run": self.run}
        data = json.dumps(line, ensure_ascii=False, default=str).encode() + b"\n"
        try:
            # A raw file may take a part without an error, as on a disk that is almost full.
            if self._file.write(data) != len(data):
                raise OSError(0, "it is full")
        except OSError as error:
            raise LogLost(f"the audit {self._path} cannot be written ({error.strerror}), so no fault is made") from None

    def close(self) -> None:
        self._file.close()


def _get_user_name() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # on Windows, and in a container without the user's name
        return "unknown"
