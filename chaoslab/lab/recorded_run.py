"""A run read from its log, so far as it can be replayed: its trials line by line, and the run as a value. The log is
the only source. A log that lacks something needed is refused with a one-line message."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.jsonable import to_one_line
from chaoslab.config.settings import Settings
from chaoslab.config.topology import MODEL
from chaoslab.core import events
from chaoslab.core.plan import Plan
from chaoslab.record.gaps import find_gaps
from chaoslab.record.history import History
from chaoslab.record.lines import Record, iterate_lines, list_log_files, parse_line
from chaoslab.record.rulings import Rulings
from chaoslab.reports import places, trials

if TYPE_CHECKING:
    from chaoslab.lab._virtual_lab import LabSpec

_TRIAL = re.compile(rb'"trial": *"(p\d+\.r\d+)"')
_KEY = re.compile(r"p(?P<prompt>\d{1,6})\.r(?P<repeat>\d{1,9})", re.ASCII)


class Unrepeatable(ValueError):
    """The run, or the trial, cannot be replayed; the message gives the reason and the alternatives."""


@dataclass(frozen=True)
class RecordedLine:
    """A line of a log, unchanged. `number` counts from 1. `record` is None if the line cannot be read."""

    number: int
    raw: bytes
    record: Record | None

    @property
    def trial(self) -> str | None:
        return self.record.trial if self.record else None

    @property
    def is_unreadable(self) -> bool:
        return self.record is None and bool(self.raw.strip())


@dataclass(frozen=True)
class RecordedRun:
    """A run's logs. `files`: each writer's lines, by file name. `trials`: the keys of the trials that began, in
    order."""

    folder: Path
    run: str
    started: events.RunStarted
    files: dict[str, list[RecordedLine]]
    history: History
    trials: list[str]

    @property
    def start_event_location(self) -> str:
        """The file and line of `run_started`."""
        lines = self.files.get("info.log", [])
        number = next((line.number for line in lines if line.record and line.record.event is self.started), 1)
        return f"{self.folder / 'info.log'}, line {number}"

    @property
    def is_virtual(self) -> bool:
        return self.started.world == "virtual"

    def get_lines(self, trial: str) -> dict[str, list[RecordedLine]]:
        """The trial's lines in each file."""
        return self._lines_by_trial.get(trial, {})

    @cached_property
    def _lines_by_trial(self) -> dict[str | None, dict[str, list[RecordedLine]]]:
        lines_by_trial: dict[str | None, dict[str, list[RecordedLine]]] = {}
        for name, lines in self.files.items():
            for line in lines:
                lines_by_trial.setdefault(line.trial, {}).setdefault(name, []).append(line)
        return lines_by_trial

    def get_trial_number(self, trial: str) -> int:
        """The trial's number in the run, from 0. Raises Unrepeatable: no trial of the run's prompts has that name."""
        match = _KEY.fullmatch(trial)
        prompts = len(self.started.asked)
        if match is None or not 1 <= int(match["prompt"]) <= prompts or not int(match["repeat"]):
            raise Unrepeatable(f"{self.folder}: {trial[:60]} is no trial of {prompts} prompts: it was changed")
        return (int(match["repeat"]) - 1) * prompts + int(match["prompt"]) - 1

    def get_usd_spent_before(self, trial: str) -> float:
        """The run's spending before that trial, in dollars."""
        return self._usd_spent_before[trial]

    @cached_property
    def _usd_spent_before(self) -> dict[str, float]:
        """The spending before each trial, added up in the order of the calls, since sums of floats depend on the
        order."""
        costs: dict[str | None, list[float]] = {}
        for record, event in self.history.find_events(events.Usage):
            costs.setdefault(record.trial, []).append(event.cost_usd or 0.0)
        before, spent_usd = {}, 0.0
        for trial in self.trials:
            before[trial] = spent_usd
            for cost in costs.get(trial, ()):
                spent_usd += cost
        return before


def read_recorded_run(name: str, *, logs: Path = places.LOGS) -> RecordedRun:
    """Reads the logs of a run, given as for `chaoslab show`. Raises LookupError: there is no such run; Unrepeatable:
    the log lacks something that a replay needs."""
    folder = places.find_run_folder(name, logs=logs)
    try:
        files = {
            path.name: [RecordedLine(n, raw, parse_line(raw)) for n, raw in enumerate(iterate_lines(path), 1)]
            for path in list_log_files(folder)
        }
    except OSError as error:
        raise LookupError(places.explain_unreadable(folder, error)) from None
    records = [line.record for lines in files.values() for line in lines if line.record]
    cut = {name: [line.number for line in lines if line.is_unreadable] for name, lines in files.items()}
    gaps = find_gaps(
        folder, {name: [line.record for line in lines if line.record] for name, lines in files.items()}, cut
    )
    history = History(records, cut={name: numbers for name, numbers in cut.items() if numbers}, gaps=gaps)
    run_start = next(((record, event) for record, event in history.find_events(events.RunStarted)), None)
    if run_start is None:
        if records:
            raise Unrepeatable(
                f"{folder} does not tell how its run began (run_started): info.log is missing or cut, or was changed"
            )
        raise LookupError(f"the logs of '{name}' tell of no run: this lab did not write them")
    record, started = run_start
    _check_log_version(folder, started)
    return RecordedRun(folder, record.run, started, files, history, [*history.trials])


def _check_log_version(folder: Path, started: events.RunStarted) -> None:
    written = started.code.get("log", "1")
    if "log" in started.code and not started.asked:
        raise Unrepeatable(f"{folder} {_describe_how_to_run_again(folder, started)}")
    if not started.code or not started.asked or not started.world:
        raise Unrepeatable(f"{folder} was written by version 1 of the log, which did not keep what a replay needs")
    if written != str(events.VERSION):
        raise Unrepeatable(
            f"{folder} was written by version {written} of the log; this lab replays version {events.VERSION}"
        )


def _describe_how_to_run_again(folder: Path, started: events.RunStarted) -> str:
    """The command that made a run of the user's own program, and the way to run it again, in words."""
    rulings = Rulings.read(folder)
    if rulings is not None:
        rerun_command = next((ruling.again for ruling in rulings.by_trial.values() if ruling.again), "")
        remedy = f"as in {rerun_command}" if rerun_command else "with chaoslab test --trial"
        return (
            f"is of the scenario '{rulings.scenario}', and the log does not hold its agent: run a trial again {remedy}"
        )
    if any(name.startswith("ROUTE_") for name in started.settings):
        return (
            "was made by chaoslab exec or chaoslab gateway, and the log does not hold the programs behind them: run "
            f"that command again with --seed {started.seed}"
        )
    return "was made from Python (lab.run), and the log does not hold that program: run it again with its seed"


def select_trials_by_name(remembered: RecordedRun, names: Sequence[str]) -> list[str]:
    """The trials of these names, in the run's order; all trials if no name is given. `reports.trials` defines the
    names. Raises Unrepeatable: there is no such trial, or it is incomplete."""
    all_trials = remembered.trials
    if not all_trials:
        raise Unrepeatable(f"no trial was begun in {remembered.folder}")
    if next(remembered.history.find_events(events.ValuesDrawn), None) is not None:
        raise Unrepeatable(
            f"each trial in {remembered.folder} drew parameters of its faults from a scenario's ranges, which the "
            "log's plan has not: run the scenario again with chaoslab test --trial"
        )
    if next(remembered.history.find_events(events.ChanceSet), None) is not None:
        raise Unrepeatable(
            f"somebody set other chances while {remembered.folder} was made, so its plan does not tell its trials"
        )
    try:
        prompts = len(remembered.started.asked)
        named = {key for name in names for key in trials.expand_trial_name(name, all_trials, prompts=prompts)}
    except LookupError as error:
        raise Unrepeatable(*error.args) from None
    keys = named if names else set(all_trials)
    chosen = [key for key in all_trials if key in keys]
    _check_plan_unaltered(remembered.history, set(chosen))
    ended = {record.trial for record, _ in remembered.history.find_events(events.PromptFinished)}
    for key in chosen:
        if key not in ended:
            raise Unrepeatable(
                f"{key} was cut off, and nobody knows how it would have ended: "
                f"{_suggest_leaving_trial_out(all_trials, key)}"
            )
    _check_readable_lines(remembered, set(chosen))
    _check_recorded_replies(remembered, set(chosen))
    return chosen


def _check_plan_unaltered(history: History, chosen: Set[str]) -> None:
    """Checks that nobody has kept a fault of the plan from these trials: the log's plan does not tell that. Raises
    Unrepeatable: somebody has."""
    for record, switch_off in history.find_events(events.FaultsOff):
        if record.trial in chosen:
            raise Unrepeatable(
                f"{record.trial} was made with faults {switch_off.change_in_words}, so the plan does not tell it"
            )
    for record, hold in history.find_events(events.FaultHeldBack):
        if record.trial in chosen and hold.limit.startswith("lever "):
            reason = f"'{hold.injection}' was held back in {record.trial} by the {hold.limit}"
            raise Unrepeatable(f"{to_one_line(reason, 200)}, so the plan does not tell it")


def _suggest_leaving_trial_out(all_trials: list[str], key: str) -> str:
    """The options that select all trials but that one."""
    at = all_trials.index(key) + 1
    spans = [(1, at - 1), (at + 1, len(all_trials))]
    options = [f"--trial {first}{f'-{last}' if last > first else ''}" for first, last in spans if first <= last]
    return f"leave it out with {' '.join(options)}" if options else "there is no other"


def _check_readable_lines(remembered: RecordedRun, chosen: set[str]) -> None:
    """Refuses an unreadable line of a wanted trial. The line belongs to the trial it names, else to any trial between
    its neighbours."""
    all_trials = remembered.trials
    for name, lines in remembered.files.items():
        for at, line in enumerate(lines):
            if not line.is_unreadable:
                continue
            named = _TRIAL.search(line.raw)
            first = next(
                (
                    all_trials.index(neighbour.trial)
                    for neighbour in reversed(lines[:at])
                    if neighbour.trial in all_trials
                ),
                0,
            )
            last = next(
                (all_trials.index(neighbour.trial) for neighbour in lines[at:] if neighbour.trial in all_trials),
                len(all_trials) - 1,
            )
            if chosen & ({named[1].decode()} if named else set(all_trials[first : last + 1])):
                raise Unrepeatable(
                    f"{remembered.folder / name}, line {line.number} cannot be read: it is cut, or was changed"
                )


def _check_recorded_replies(remembered: RecordedRun, chosen: set[str]) -> None:
    """Refuses a log without the reply of a model or service that was not the lab's own."""
    strangers = find_foreign_targets(remembered)
    replied = {(r.trial, e.target, e.request, e.attempt) for r, e in remembered.history.find_events(events.Replied)}
    for record, event in remembered.history.find_events(events.CallFinished):
        if event.target not in strangers or record.trial not in chosen or event.status is None or event.via == "none":
            continue
        if (record.trial, event.target, event.request, event.attempt) not in replied:
            raise Unrepeatable(
                f"the log holds no reply of the {'model' if event.target == MODEL else 'service'} for {event.target} "
                f"{event.request}.{event.attempt} "
                f"in {record.trial}, though one came: it was deleted, and nobody could make it say the same again"
            )


def find_foreign_targets(remembered: RecordedRun) -> tuple[str, ...]:
    """The targets of the run that were not the lab's own."""
    run_settings = remembered.started.settings
    targets = {event.target for _, event in remembered.history.find_events(events.Replied)}
    if not remembered.is_virtual and (run_settings.get("GROQ_API_KEY") or run_settings.get("MODEL_URL")):
        targets.add(MODEL)
    return tuple(sorted(targets))


def make_replay_spec(remembered: RecordedRun) -> "LabSpec":
    """The run as a value, to be carried out in virtual time with the recorded replies of foreign targets. Raises
    SettingError: this version does not know one of its settings; Unrepeatable: this version does not know its plan or
    its prompts."""
    from chaoslab.agent.prompts import Prompt
    from chaoslab.lab._virtual_lab import LabSpec

    started, location = remembered.started, remembered.start_event_location
    chosen = Settings.from_masked_dict(started.settings, where=location)
    # No address and no key leads out of a virtual world: a foreign target is reached at the address of the lab's own.
    chosen = replace(chosen, model=started.model, model_url="", toxiproxy_url="")
    try:
        plan = Plan.from_json(started.plan)
        plan.check()
    except (LookupError, TypeError, ValueError) as error:
        raise Unrepeatable(f"{location}: its plan is none of this lab's ({' '.join(str(error).split())})") from None
    if plan.outage_targets:
        raise Unrepeatable(
            f"{remembered.folder}: a fault stopped a tool's process, and the virtual world has none: run it again with "
            "its seed"
        )
    try:
        for prompt in started.asked:
            Prompt.model_validate(prompt)
    except ValueError:
        raise Unrepeatable(f"{location}: its prompts are none of this lab's") from None
    if {started.seed, plan.seed} != {chosen.seed}:
        raise Unrepeatable(
            f"{location}: it has the seeds {started.seed}, {plan.seed} (plan) and {chosen.seed} (SEED): it was changed"
        )
    replies: dict[str, list[events.Replied]] = {}
    for record, event in remembered.history.find_events(events.Replied):
        replies.setdefault(record.trial or "", []).append(event)
    twins = any(event.twin is not None for _, event in remembered.history.find_events(events.PromptStarted))
    return LabSpec(
        remembered.run, started.now, chosen, plan, started.asked, replies, find_foreign_targets(remembered), twins=twins
    )
