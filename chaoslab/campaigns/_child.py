"""A step as a process of its own, so that whatever it does, the campaign goes on to take it back."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from chaoslab.base import files
from chaoslab.base.child_group import ChildGroup
from chaoslab.base.clock import system
from chaoslab.campaigns.load import RoundUnit
from chaoslab.config.settings import copy_environment

GRACE_S = 5.0
"""The time that a step has to end by itself once it was asked to."""
STAYS_S = 1.0
"""The same of one that stays, if it was not asked for long."""
LOOK_S = 0.05
LOGGED = frozenset({"exec", "explore", "gateway", "mcp", "stress", "test"})
"""The commands whose runs a campaign looks at: those that make faults and take `--logs`."""

LINGER_S = 60
"""The time without a request after which a gateway that a campaign has left ends by itself, in seconds."""


class StepUnderWay(Protocol):
    """A step under way. `group`: that of its processes; None if it has none of its own."""

    group: int | None

    def poll_exit_code(self) -> int | None:
        """Its exit code; None while it runs."""

    def end_and_wait(self) -> int | None:
        """Ends it, and returns its exit code; None if it stays and passes on what still comes."""


class Process:
    """A program and its own children, in a group. What it prints is appended to `output`. `stays`: it is in the path of
    traffic, so it outlives the campaign, and ends by itself once it is not asked any more. Raises OSError: it cannot be
    run."""

    def __init__(
        self, command: Sequence[str], *, folder: Path, variables: dict[str, str], output: Path, stays: bool = False
    ) -> None:
        self._stays = stays
        with output.open("ab") as file:
            self._made = ChildGroup(
                # DEVNULL, since a step that asks its user something would wait for ever.
                command,
                stdin=subprocess.DEVNULL,
                output=file,
                folder=folder,
                environment={**copy_environment(), **variables},
                grace_s=None if stays else GRACE_S,
            )
        self.group: int | None = self._made.process_group_id

    def poll_exit_code(self) -> int | None:
        code = self._made.poll_exit_code()
        if code is not None:
            # It has ended by itself, so what it leaves in the background may stay.
            self._made.detach_remaining_processes()
        return code

    def end_and_wait(self) -> int | None:
        until_s = system.monotonic() + (STAYS_S if self._stays else GRACE_S)
        self._made.send_signal(signal.SIGINT)
        while self.poll_exit_code() is None and system.monotonic() < until_s:
            system.sleep(LOOK_S)
        # Its children too, since those in the background hear no Ctrl-C.
        return None if self._stays and self.poll_exit_code() is None else self._made.kill_and_wait()


def list_group_pids(group: int, mark: str) -> list[int]:
    """The processes of a group that were begun with this text in their environment: a group's number may be another's
    after all of its own processes have ended. Empty where the system has no /proc."""
    members = []
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc/self/stat").exists() else ():
        with suppress(ValueError):  # it has ended meanwhile, or is another user's
            # The name in brackets may hold blanks and brackets itself, so the fields are counted from its last one.
            state, _, group_of = files.load_bytes(entry / "stat").rpartition(b")")[2].split()[:3]
            if int(group_of) == group and state != b"Z" and mark.encode() in files.load_bytes(entry / "environ"):
                members.append(int(entry.name))
    return members


def is_group_running(group: int, mark: str) -> bool:
    """True if `list_group_pids` finds a process; where it cannot, if there is a group with this number."""
    if Path("/proc/self/stat").exists():
        return bool(list_group_pids(group, mark))
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_process_group(group: int, mark: str) -> bool:
    """Ends the processes that `list_group_pids` finds, at first by SIGTERM. Returns False if some are there still."""
    until_s = system.monotonic() + GRACE_S
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in list_group_pids(group, mark):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        while list_group_pids(group, mark) and system.monotonic() < until_s:
            system.sleep(LOOK_S)
        until_s += GRACE_S
    return not list_group_pids(group, mark)


def build_unit_command(unit: RoundUnit, *, logs: Path, trials: int | None) -> list[str]:
    """The program of a unit. A command's own `chaoslab` is the one that runs, and any writes its runs to `logs`, unless
    it names another place: else no condition and no budget would know of its calls."""
    own_command = [sys.executable, "-m", "chaoslab"]
    step = unit.spec
    if step.command is not None:
        program, *arguments = step.command
        if (
            Path(program).name == "chaoslab"
            and arguments
            and arguments[0] in LOGGED
            and not _has_option("--logs", arguments)
        ):
            arguments[1:1] = ["--logs", str(logs)]
        if unit.is_gateway and not _has_option("--linger", arguments):
            arguments[1:1] = ["--linger", str(LINGER_S)]
        return [*own_command, *arguments] if program == "chaoslab" else [program, *arguments]
    level = ["--chaos-level", f"{unit.level:g}"] if unit.level is not None else []
    number = ["--trials", str(trials)] if trials is not None else []
    return [*own_command, "test", str(step.scenario), *level, *number, "--logs", str(logs), "--quiet"]


def _has_option(option: str, arguments: Sequence[str]) -> bool:
    """True if one of the words before `--`, behind which are those of another program, is this option."""
    own_arguments = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return any(word.partition("=")[0] == option for word in own_arguments)
