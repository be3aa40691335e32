"""Replays a recorded run in virtual time, and reports the first difference. A run made in virtual time is compared byte
for byte. A run made in real time is compared as a story: the faults of each attempt and its end, without the times."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.measures import trace_diff
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.core.events import CallFinished, PromptStarted, RunFinished
from chaoslab.core.fault import BrokenFault
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import InProcessExecutor
from chaoslab.lab import recorded_run
from chaoslab.lab.recorded_run import RecordedLine, RecordedRun, Unrepeatable
from chaoslab.record import provenance
from chaoslab.record.history import History
from chaoslab.record.lines import Record, parse_line
from chaoslab.record.log import BufferedEvent, render_lines
from chaoslab.reports.replay import Replay, ReplayedTrial
from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.network.recorded_targets import NO_REPLY

if TYPE_CHECKING:
    from chaoslab.lab._virtual_lab import LabResult, LabSpec

VALUE_MAX = 160


class Rerun:
    """A recorded run that can be replayed. `replay` describes it, with the changes since it was recorded. Changes do
    not stop a replay: after a fix one wants to see if the failure is gone."""

    def __init__(self, log: RecordedRun, names: Sequence[str] = ()) -> None:
        """`wanted`: the names of its trials, all if empty. Raises Unrepeatable, SettingError: there is nothing to
        replay."""
        self._log = log
        trials = recorded_run.select_trials_by_name(log, names)
        self._spec = recorded_run.make_replay_spec(log)
        self._specs = {
            trial: TrialSpec(log.get_trial_number(trial), log.get_usd_spent_before(trial)) for trial in trials
        }
        self.replay = Replay(
            log.folder,
            log.run,
            log.started.world,
            log.started.prompts,
            trials,
            log.is_virtual,
            tuple(_list_changes_since_run(log)),
        )

    def replay_trials(self) -> Iterator[ReplayedTrial]:
        """Replays and compares each trial. Raises Unrepeatable: the agent of today touches something real."""
        trial_results = InProcessExecutor().map(self._spec, self._specs.values())
        try:
            for trial, result in zip(self._specs, trial_results, strict=True):
                yield _compare_trial(self._log, self._spec, trial, result)
        except (BrokenFault, Unsupported) as error:
            raise Unrepeatable(str(error)) from error


def _list_changes_since_run(log: RecordedRun) -> Iterator[str]:
    """The changes since the run was recorded, one line each."""
    yield from (f"note: {note}" for note in log.history.notes)
    changed = provenance.describe_version_changes(log.started.code, provenance.collect_versions())
    if changed:
        yield f"not as it was: {'; '.join(changed)}"
    if log.history.find_first_event(RunFinished) is None:
        yield (
            "the log has no end (run_finished): the run was killed, or info.log is cut; what there is of it is compared"
        )
    from chaoslab.agent import prompts
    from chaoslab.config.settings import SettingError

    prompts_setting = str(log.started.settings.get("PROMPTS") or "")
    file = Path(prompts_setting) if prompts_setting else prompts.FILE
    file_name = prompts_setting or "agent/prompts.json"
    try:
        now = prompts.prompts_to_json(prompts.load_prompts(file))
    except SettingError as error:
        yield f"the prompts of the log are used: {error}"
        return
    if now != log.started.asked:
        yield f"{file_name} is not as it was: the prompts of the log are used"


def _compare_trial(log: RecordedRun, spec: LabSpec, trial: str, result: LabResult) -> ReplayedTrial:
    difference, left_out = _find_trial_difference(log, spec, trial, result.buffered_events)
    events = sum(len(file_lines) for file_lines in log.get_lines(trial).values())
    return ReplayedTrial(trial, events, difference, left_out, result.seconds, result.outcome, result.witnessed)


def _find_trial_difference(
    log: RecordedRun, spec: LabSpec, trial: str, buffered: Sequence[BufferedEvent]
) -> tuple[str, str]:
    """The first difference, and the reason for leaving the trial out; one of the two is empty, or both."""
    lines = log.get_lines(trial)
    was = [line.record for file_lines in lines.values() for line in file_lines if line.record]
    if log.is_virtual:
        difference = _compare_log_bytes(log, lines, buffered)
        if difference:
            difference = _append_outcome(difference, was, list(_make_replay_records(log, trial, buffered)), trial)
        return difference, ""
    # Real time: a trial that was disturbed cannot come out the same, so it is left out and is no difference.
    if reason := trace_diff.explain_incomparable(was, trial):
        return "", reason
    now = list(_make_replay_records(log, trial, buffered))
    difference_found = trace_diff.find_story_difference(
        trace_diff.build_story(was, trial), trace_diff.build_story(now, trial)
    )
    if difference_found is None:
        return "", ""
    unasked = next((r.event for r in now if isinstance(r.event, CallFinished) and r.event.error == NO_REPLY), None)
    if unasked is not None:
        call_name = f"{unasked.target} {unasked.request}.{unasked.attempt}"
        return f"the log holds no reply of the {unasked.target} for {call_name}: it was never asked that", ""
    reason = trace_diff.explain_timing_difference(
        was, trial, difference_found, tool_s=spec.settings.tool_timeout_s, model_s=spec.settings.model_timeout_s
    )
    if reason:
        return "", f"{difference_found.place} may go either way ({reason}), and did"
    difference = (
        f"{difference_found.place}{_describe_field(difference_found.what, difference_found.was, difference_found.now)}"
    )
    return _append_outcome(difference, was, now, trial), ""


def _make_replay_records(log: RecordedRun, trial: str, buffered: Sequence[BufferedEvent]) -> Iterator[Record]:
    for number, line in enumerate(_render_log_lines(log, buffered, after_s=0.0, seqs={}), 1):
        record = parse_line(line)
        if record is None:
            raise AssertionError(f"line {number} of the replay of {trial} cannot be read: {line!r}")
        yield record


def _render_log_lines(
    log: RecordedRun, buffered: Sequence[BufferedEvent], *, after_s: float, seqs: dict[str, int]
) -> Iterator[bytes]:
    """The lines as the run's folder would have them, if the trial begins `after_s` seconds into the run."""
    begin = datetime.fromisoformat(log.started.now)
    return render_lines(buffered, run=log.run, began=begin, after_s=after_s, seqs=seqs)


# Byte for byte.


def _compare_log_bytes(
    log: RecordedRun, lines: dict[str, list[RecordedLine]], buffered: Sequence[BufferedEvent]
) -> str:
    """The first difference in the trial's lines, in order of time; empty if there is none. Each side counts from the
    trial's start."""
    first = next(
        line
        for file_lines in lines.values()
        for line in file_lines
        if line.record and isinstance(line.record.event, PromptStarted)
    )
    begins = next((entry.t for entry in buffered if entry.is_of_kind(PromptStarted)), 0.0)
    assert first.record is not None
    seqs = {name.removesuffix(".log"): _get_sequence_number(file_lines[0]) - 1 for name, file_lines in lines.items()}
    replayed_lines: dict[str, list[bytes]] = {}
    for entry, spelt in zip(
        buffered, _render_log_lines(log, buffered, after_s=round(first.record.t - begins, 6), seqs=seqs), strict=True
    ):
        replayed_lines.setdefault(f"{entry.writer}.log", []).append(spelt)
    differences = [
        file_difference
        for name in {**lines, **replayed_lines}
        if (file_difference := _compare_writer_lines(name, lines.get(name, []), replayed_lines.get(name, [])))
    ]
    return min(differences)[1] if differences else ""


def _get_sequence_number(line: RecordedLine) -> int:
    return line.record.seq if line.record else line.number


def _compare_writer_lines(name: str, was: list[RecordedLine], now: list[bytes]) -> tuple[float, str] | None:
    """The time and place of the first difference in the lines of one writer."""
    for line, replayed_line in zip(was, now, strict=False):
        if line.raw != replayed_line:
            before, after = _parse_ordered_fields(line.raw), _parse_ordered_fields(replayed_line)
            difference_fields = trace_diff.find_first_difference(before, after) or (
                "its spelling",
                line.raw.decode(),
                replayed_line.decode(),
            )
            return min(
                before["t"], after["t"]
            ), f"{name}, line {line.number} ({before['kind']}){_describe_field(*difference_fields)}"
    if len(was) > len(now):
        gone = was[len(now)]
        gone_fields = json.loads(gone.raw)
        return gone_fields["t"], f"{name}, line {gone.number}: this {gone_fields['kind']} does not happen now"
    if len(now) > len(was):
        extra = json.loads(now[len(was)])
        after_line = f", after line {was[-1].number}" if was else ""
        return extra["t"], f"{name}{after_line}: {extra['kind']} happens now, and did not then"
    return None


def _parse_ordered_fields(line: bytes) -> dict[str, Any]:
    """A line's fields, with those of its kind before the envelope's: they are more telling."""
    fields = json.loads(line)
    envelope = {key: fields.pop(key) for key in ("seq", "t", "ts", "run", "trial", "writer")}
    return {**fields, **envelope}


# Texts.


def _describe_field(field_name: str, was: Any, now: Any) -> str:
    return f"{':' if not field_name else f': {field_name}'} was {_shorten_value(was)}, is {_shorten_value(now)}"


def _shorten_value(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


def _append_outcome(difference: str, was: list[Record], now: list[Record], trial: str) -> str:
    """The difference, with the outcome before and after."""
    before, after = (judge_trial(History(records), trial).outcome for records in (was, now))
    return f"{difference}; {before}{f', now {after}' if after != before else ' as before'}"
