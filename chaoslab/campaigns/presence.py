"""The processes of a campaign that are there now. Its journal alone cannot tell: a killed process writes nothing any
more, and a gateway that was left ends by itself."""

import os
from dataclasses import dataclass
from pathlib import Path

from chaoslab.base import levers
from chaoslab.base.clock import Clock, system
from chaoslab.campaigns._child import is_group_running
from chaoslab.campaigns.journal import LEASE, LEVER, LIMITS, DoneUnit, JournalContents


@dataclass(frozen=True)
class Presence:
    """`runs`: the campaign's own process goes on. `gateways`: those in the path of traffic that no running step of it
    is. `faults_s`: the longest time for which they may make faults yet, in seconds; 0: they make none."""

    runs: bool
    gateways: tuple[DoneUnit, ...]
    faults_s: float


def is_process_alive(pid: int) -> bool:
    """True if there is a process with this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError) as error:
        return isinstance(error, PermissionError)  # it is there, and another user's
    return bool(pid)


def find_presence(folder: Path, story: JournalContents, lease_s: float, *, clock: Clock = system) -> Presence:
    """The processes of the campaign in a folder. `lease_s`: the time after which its lease has run out."""
    lapsed = levers.is_lease_expired(folder / f"{LEASE}.{story.starts}", lease_s, clock=clock)
    # By both: the number may be another process's by now, and a lease stays fresh for a while after a kill.
    runs = not story.ended and not lapsed and is_process_alive(story.pid)
    faultless = runs or lapsed or bool(levers.read_stop_reason(folder / LEVER))
    gateways = list_gateways_there(folder, story.gateways_left_running if runs else story.running_and_left_gateways)
    return Presence(runs, tuple(gateways), 0.0 if faultless else lease_s)


def list_gateways_there(folder: Path, units: list[DoneUnit]) -> list[DoneUnit]:
    """Those of a campaign's gateways whose processes are there."""
    mark = str(folder.absolute() / LIMITS)
    return [unit for unit in units if unit.group is not None and is_group_running(unit.group, mark)]
