"""Proxies that are one run: a client that starts its MCP server anew for each try goes on with the log of the last."""

import re
from pathlib import Path

from chaoslab.base import files
from chaoslab.base.clock import system
from chaoslab.base.identity import Request, canonical, hash_value
from chaoslab.core import events
from chaoslab.core.occasion import HitsSoFar
from chaoslab.record.held import MAIN, has_live_writer
from chaoslab.record.history import History
from chaoslab.record.lines import iterate_records
from chaoslab.record.runs import Run
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.functions.seam import FunctionSeam

VARIABLE = "CHAOSLAB_SESSION"
"""The variable in which `chaoslab exec` tells the proxies of its command that they are one run."""
LOGS = "CHAOSLAB_LOGS"
"""The variable with the folder of that run, beside which `chaoslab exec` looks for theirs."""
ENDING_S = 3.0
"""The longest wait for the end of the proxy before, which its client may have left in haste."""
LOOK_S = 0.05
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_ENDING = (events.PromptAttempt, events.PromptFinished, events.RunFinished)


def check_session_name(name: str) -> str:
    """The name of a session. Raises ValueError: it is none."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"--session {name[:60]!r} should be a name of letters, digits, - and _, at most 64")
    return name


def make_session_key(name: str, server: str) -> str:
    """The key of a session: proxies of two servers are two runs."""
    return f"{name}-{hash_value(server)[:8]}"


def resume_session_run(logs: Path, key: str) -> Run | None:
    """The run of the session, open again: its log is without its end. None if there is none yet, or if a proxy of it is
    under way. Raises OSError: its log cannot be written."""
    link = _get_session_link_path(logs, key)
    if not link.is_symlink():
        return None
    try:
        run = Run.open(logs, link.readlink().name)
    except LookupError:
        link.unlink()  # its folder was removed
        return None
    if system.monotonic() < run.origin:  # the machine has started anew since
        link.unlink()
        return None
    until_s = system.monotonic() + ENDING_S
    while has_live_writer(run.folder):
        if system.monotonic() > until_s:
            return None
        system.sleep(LOOK_S)
    path = run.folder / f"{MAIN}.log"
    ends = sum(isinstance(record.event, _ENDING) for record in iterate_records(path, cut=lambda _: None))
    with files.open_regular(path) as log:
        lines = log.readlines()
    with files.replace_file(path) as replacement:  # the ends are the last lines of a proxy that came to its own
        replacement.write_bytes(b"".join(lines[: len(lines) - ends]))
    return run


def register_session_run(logs: Path, key: str, run: Run) -> None:
    """Notes that this is a run of the session: the one that goes on, unless another is under way."""
    link = _get_session_link_path(logs, key)
    # Two at once are two runs.
    (_get_session_link_path(logs, f"{key}-{run.name}") if link.is_symlink() else link).symlink_to(run.folder.name)


def pop_run_names(logs: Path, name: str) -> list[str]:
    """The names of the runs of a session, which is over."""
    links = sorted(logs.glob(f".session-{name}-*"))
    run_names = [link.readlink().name for link in links]
    for link in links:
        link.unlink()
    return run_names


def find_fault_that_ended_call(history: History) -> str:
    """The fault that ended the last try of a call, as in "lost_reply on refund"; empty if each was answered. Its client
    may start its server anew for the next try. That it has the same parent tells nothing: so have the next trial of a
    loop and the next conversation, and a wrapper such as npx is a new parent each time."""
    ends = {(end.target, end.request): end.ok for _, end in history.find_events(events.CallFinished)}
    met = [event for _, event in history.find_events(events.FaultWitnessed)]
    return next((f"{e.fault} on {e.target}" for e in reversed(met) if not ends.get((e.target, e.request), True)), "")


def _get_session_link_path(logs: Path, key: str) -> Path:
    return logs / f".session-{key}"


def restore_call_counts(seam: FunctionSeam, book: TrialLog, history: History) -> None:
    """Numbers the calls of the session so far, and counts the hits, so that the next ones follow. What was under way
    when a proxy ended has failed."""
    requests: dict[tuple[str, int, int], Request] = {}
    for record in history:
        event = record.event
        if isinstance(event, events.CallStarted):
            spelt = canonical(event.arguments) if event.arguments else ()
            request = book.requests.find_or_create_by_intent(event.target, (event.tool, spelt))
            request.begin_attempt(record.t)
            request.end_attempt()
            requests[event.target, event.request, event.attempt] = request
        elif isinstance(event, events.CallFinished) and event.ok:
            if (answered := requests.get((event.target, event.request, event.attempt))) is not None:
                book.requests.mark_answered(answered)
        elif isinstance(event, events.FaultScheduled):
            # Hits count over the whole run, so `max_times` holds over its proxies.
            hits = seam.memory.met.setdefault(event.injection, HitsSoFar(event.injection))
            hits.times, hits.in_a_row, hits.since_s = hits.times + 1, hits.in_a_row + 1, record.t
            hits.first = event.target, event.request, event.attempt
