"""Runs a campaign: rounds of steps under a steady state and stop conditions, and a rollback whatever happens."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaoslab.base import files, interrupts, levers
from chaoslab.base.clock import Clock, format_iso, system
from chaoslab.base.jsonable import to_one_line
from chaoslab.campaigns import _probes, gateways
from chaoslab.campaigns._child import Process, StepUnderWay, build_unit_command, end_process_group, list_group_pids
from chaoslab.campaigns._gauge import CampaignMeasures
from chaoslab.campaigns.journal import LEASE, LEVER, LIMITS, PAUSED, Journal, JournalContents, read_journal
from chaoslab.campaigns.load import Campaign, RoundUnit, find_round_start, parse_utc_moment
from chaoslab.campaigns.presence import find_presence, is_process_alive, list_gateways_there
from chaoslab.config.limits import make_limit_environment
from chaoslab.core.limits import LimitGuard
from chaoslab.record.held import has_live_writer
from chaoslab.record.steering import RunSteering, steer_run

POLL_S, TOLD_S, UNDO_S = 0.1, 5.0, 60.0
"""The time between two looks at a step, between two lines of progress, and the longest time of a command that undoes,
in seconds."""
TALLY, OUTPUT, SEEN = "tally", "output.log", "seen.json"
"""The names of further files of a campaign, beside its journal and its runs."""
WORDS = ("stop", "pause", "resume")
STATES = {0: "held", 1: "failed", 4: "unproven"}
Start = Callable[[RoundUnit, int | None], StepUnderWay]
"""Begins a unit, with the most trials that it may make."""


class CampaignBreach(Exception):
    """Something ends the campaign at once. The message is the reason."""

    @property
    def state(self) -> str:
        return "stopped" if str(self).startswith("lever ") else "breached"


class Over(Exception):
    """The budget is spent. The message says which."""

    state = "cut"


class AlreadyRunning(ValueError):
    """Another process runs this campaign."""


class CampaignRunner:
    """Runs one campaign. Its files and its runs are in `logs/<campaign>`. `tell` gets a line of progress; `start`
    begins a unit, by default as a process."""

    def __init__(
        self,
        campaign: Campaign,
        logs: Path,
        *,
        clock: Clock = system,
        tell: Callable[[str], object] = print,
        start: Start | None = None,
    ) -> None:
        self.campaign, self.spec, self._clock, self._tell = campaign, campaign.spec, clock, tell
        self.folder = logs.absolute() / campaign.folder_name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._start = start or self._start_process
        own_limits = campaign.limits
        # A lease of this start alone: a step that outlived a killed start must not get it back.
        self._lease = self.folder / f"{LEASE}.{read_journal(self.folder).starts + 1}"
        self._limits = replace(
            own_limits,
            hosts=own_limits.hosts or (),
            lease=str(self._lease),
            lease_s=self.spec.lease,
            lever=str(self.folder / LEVER),
            tally=str(self.folder / TALLY) if own_limits.faults is not None else "",
        )
        # Its own look at what ends faults.
        self._guard = LimitGuard([self._limits], clock=clock)
        self._gauge = CampaignMeasures(
            self.folder, slo=self.spec.slo, over_s=max((c.over_s or 0 for c in campaign.conditions), default=0)
        )
        self._journal = Journal(self.folder, clock=clock)
        self._probed_s = self._told_s = float("-inf")
        self._paused = False
        self._before = {"trials": 0.0, "cost": 0.0}
        """The trials and dollars of the starts that this one goes on with."""

    @property
    def journal_contents(self) -> JournalContents:
        return self._journal.story

    def run(self, *, fresh: bool = False) -> JournalContents:
        """Runs the campaign to its end, or goes on with one that was broken off, which is taken back first. `fresh`: it
        begins anew. Raises Running: another process runs it. OSError: its files cannot be written; KeyboardInterrupt:
        it was interrupted, and everything was taken back."""
        digest = hashlib.blake2b(files.load_bytes(self.campaign.file), digest_size=8).hexdigest()
        story = self.journal_contents
        runs = find_presence(self.folder, story, self.spec.lease, clock=self._clock).runs
        if story.instance and runs and story.pid != os.getpid():
            raise AlreadyRunning(
                f"it is running (process {story.pid}): chaoslab campaign stop {self.campaign.file} ends it"
            )
        broken_off = bool(story.instance) and not story.ended
        goes_on = broken_off and not fresh and story.digest == digest
        if broken_off:
            self._tell("the last run was interrupted: rolling it back first")
            # First, so that what is left of it makes no fault while it is taken back.
            levers.write_stop_file(self.folder / LEVER, "it is rolled back", clock=self._clock)
            self._roll_back_all()
        self._prepare_files(goes_on=goes_on)
        self._journal.append_entry("resumed" if goes_on else "begun", digest=digest, pid=os.getpid())
        self._before = {
            name: sum(unit.figures.get(name, 0) for unit in self.journal_contents.current_start_units)
            for name in self._before
        }
        state, reason = "broken", "it was interrupted"
        try:
            state, reason = self._run_rounds()
        except CampaignBreach as breach:
            state, reason = breach.state, str(breach)
            self._send_notification(state, why=reason)
        except Over as over:
            state, reason = self._compute_end_state(), str(over)
        except KeyboardInterrupt:
            state, reason = "interrupted", "Ctrl-C"
            raise
        finally:
            with suppress(OSError):
                levers.write_stop_file(self.folder / LEVER, reason or "the campaign is over", clock=self._clock)
            has_begun = bool(self.journal_contents.current_start_units)
            if has_begun:
                self._roll_back_all()
                if after := self._wait_until_steady():
                    reason = (
                        f"{reason}; the steady state is not back: {after}" if reason else f"not steady after: {after}"
                    )
                    state = "not steady" if state in ("held", "failed", "unproven") else state
                elif self.spec.steady:  # without one nothing was asked
                    self._journal.append_entry("note", text="the steady state holds after the rollback")
            self._journal.append_entry("ended", state=state, why=reason)
            self._send_notification("ended", state=state, why=reason)
            self._gauge.close()
        return self.journal_contents

    def _prepare_files(self, *, goes_on: bool) -> None:
        """Makes the campaign's files anew."""
        for unit in self.folder.glob(f"{LEASE}.*"):
            unit.unlink()
        for lever in (LEVER, PAUSED):
            levers.remove_stop_file(self.folder / lever)
        levers.renew_lease(self._lease, clock=self._clock)
        if not goes_on:
            (self.folder / TALLY).unlink(missing_ok=True)
        text = json.dumps(self._limits.to_json(), indent=2)
        (self.folder / LIMITS).write_text(text + "\n", encoding="utf-8")
        self._began_s = self._clock.monotonic()

    # The rounds.

    def _run_rounds(self) -> tuple[str, str]:
        """The state and the reason in which all rounds end."""
        units_done = self.journal_contents.current_start_units
        number, last = (units_done[-1].round if units_done else 1), None
        while True:
            rest = [unit for unit in self.campaign.units if not self._is_unit_done(number, unit)]
            if rest:
                due = find_round_start(self.spec, number, last, self._clock.utc())
                if due is None:
                    return self._compute_end_state(), ""
                if self.campaign.limits.opens:
                    due = max(due, parse_utc_moment(self.campaign.limits.opens))
                while (wait_s := (due - self._clock.utc()).total_seconds()) > 0:
                    self._check_stop_conditions(at_rest=True)
                    # In short pieces, since the lease has to be renewed meanwhile.
                    self._clock.sleep(min(wait_s, self.spec.lease / 4, 1.0))
                last = due
                if reason := self._run_probes_until_failure():
                    if not self.journal_contents.current_start_units:
                        return "not begun", f"not steady before, so nothing was started: {reason}"
                    raise CampaignBreach(f"not steady before round {number}, so it was not begun: {reason}")
                self._send_notification("begun", round=number)
                self._run_round(number, rest)
            number += 1
            if not (self.spec.every or self.spec.cron or self.spec.at):
                return self._compute_end_state(), ""

    def _is_unit_done(self, number: int, unit: RoundUnit) -> bool:
        return any(
            (entry.round, entry.step, entry.level) == (number, unit.step, unit.level) and entry.state
            for entry in self.journal_contents.current_start_units
        )

    def _run_round(self, number: int, units: Sequence[RoundUnit]) -> None:
        failed = {
            entry.step
            for entry in self.journal_contents.current_start_units
            if entry.round == number and entry.state == "failed"
        }
        for unit in units:
            if unit.level is not None and unit.step in failed:  # the ramp stops at its first breach
                continue
            if self._run_and_undo_unit(number, unit) == "failed":
                failed.add(unit.step)

    def _run_and_undo_unit(self, number: int, unit: RoundUnit) -> str:
        """Runs one unit, takes it back, and waits for the steady state. Returns how it ended. Raises Breach, Over: the
        campaign ends."""
        self._check_stop_conditions(at_rest=True)
        while self._hold_runs_if_paused():
            self._clock.sleep(POLL_S)
            self._check_stop_conditions(at_rest=True)
        trials = self._count_allowed_trials(unit)
        undoes = bool(unit.spec.undo)
        self._journal.append_entry(
            "step", round=number, step=unit.step, name=unit.name, level=unit.level, undoes=undoes
        )
        before, state, reason = self._collect_figures(), "broken", ""
        try:
            state, reason = self._run_watched_unit(unit, trials)
        except (CampaignBreach, Over) as end:
            state, reason = end.state, str(end)
            raise
        except KeyboardInterrupt:
            state, reason = "cut", "Ctrl-C"
            raise
        finally:
            with suppress(OSError):  # a log that cannot be read tells no more
                self._gauge.read_new_records()
            self._report_progress(last=True)
            figures = {name: round(value - before[name], 9) for name, value in self._collect_figures().items()}
            self._journal.append_entry("over", state=state, why=reason, figures=figures)
            self._undo_step(unit.step)
        self._tell(f"round {number}: {unit.name}: {state}{f' ({reason})' if reason else ''}")
        if after := self._wait_until_steady():
            raise CampaignBreach(f"the steady state is not back after {unit.name}: {after}")
        return state

    def _count_allowed_trials(self, unit: RoundUnit) -> int | None:
        """The most trials that a unit may make; None: its own number. Raises Over: there is none left."""
        budget = self.spec.budget
        rest = None if budget.trials is None else budget.trials - self._trial_count
        if unit.spec.scenario is None or rest is None:
            return unit.spec.trials
        if rest < unit.scenarios:
            raise Over(f"the budget of {budget.trials} trials is spent")
        return min(rest // unit.scenarios, unit.trials)

    @property
    def _trial_count(self) -> int:
        """The trials of this start, and of those that it goes on with."""
        return int(self._before["trials"] + self._gauge.trial_counts.total)

    def _run_watched_unit(self, unit: RoundUnit, trials: int | None) -> tuple[str, str]:
        """Runs a unit until it ends by itself, or by its time. A breach ends it, and all faults before it. Raises
        Breach: something ends the campaign."""
        began_s, before = self._clock.monotonic(), self._gauge.faults
        if unit.is_gateway:
            self._end_left_gateways()  # this one takes its place, and maybe its port
        try:
            child = self._start(unit, trials)
        except OSError as error:
            return "broken", f"it cannot be run: {error.strerror}"
        if child.group is not None:
            self._journal.append_entry("process", group=child.group, stays=unit.is_gateway)
        try:
            while (code := child.poll_exit_code()) is None:
                interrupts.check_interrupt()
                self._check_stop_conditions()
                self._hold_runs_if_paused()
                if unit.spec.lasts is not None and self._clock.monotonic() - began_s >= unit.spec.lasts:
                    code = child.end_and_wait()
                    if code is None:
                        self._record_left_gateway(unit, child.group)
                        was_met = self._gauge.faults > before
                        return "held" if was_met else "unproven", "it still passes traffic on"
                    return STATES.get(code, "held"), f"exit code {code}" if code in STATES and code else ""
                self._clock.sleep(POLL_S)
            # Once more, since what the step wrote last may be a breach too.
            self._check_stop_conditions()
        except BaseException as error:
            # The faults end at once; the process may take a while.
            with suppress(OSError):
                levers.write_stop_file(self.folder / LEVER, str(error) or "Ctrl-C", clock=self._clock)
            if child.end_and_wait() is None:
                self._record_left_gateway(unit, child.group)
            raise
        state = STATES.get(code, "broken")
        return state, "" if state in ("held", "failed") else f"exit code {code}{self._read_last_output_line()}"

    def _hold_runs_if_paused(self) -> bool:
        """True while somebody pauses the campaign: no step begins, and its runs begin no further trial."""
        reason = levers.read_stop_reason(self.folder / PAUSED)
        paused = bool(reason)
        if paused or self._paused:
            for run in self.folder.iterdir():
                if has_live_writer(run) and RunSteering.read(run).hold is not paused:
                    with suppress(ValueError, OSError):  # a gateway goes on: it has no trials
                        steer_run(run, ["pause" if paused else "resume"])
        if paused is not self._paused:
            self._paused = paused
            message = f"somebody paused it: {reason}" if paused else "it goes on"
            self._journal.append_entry("note", text=message)
            self._tell(message)
        return paused

    def _start_process(self, unit: RoundUnit, trials: int | None) -> StepUnderWay:
        command = build_unit_command(unit, logs=self.folder, trials=trials)
        return Process(
            command,
            folder=self.campaign.folder,
            variables={**make_limit_environment(self.folder / LIMITS), gateways.VARIABLE: str(self.folder)},
            output=self.folder / OUTPUT,
            stays=unit.is_gateway,
        )

    def _record_left_gateway(self, unit: RoundUnit, group: int | None) -> None:
        """Notes a gateway that stays: to end it would end the traffic that goes through it."""
        self._journal.append_entry("left", group=group)
        self._tell(describe_left_gateway(unit.name, group, self.campaign.file))

    def _end_left_gateways(self) -> None:
        for unit in self.journal_contents.gateways_left_running:
            if unit.group is not None and not end_process_group(unit.group, str(self.folder / LIMITS)):
                self._record_undo_failure(f"the processes of {unit.name} (group {unit.group}) do not end")
            self._journal.append_entry("ended step", group=unit.group)

    def _read_last_output_line(self) -> str:
        with suppress(files.Unreadable):
            lines = files.load_bytes(self.folder / OUTPUT)[-2000:].decode("utf-8", "replace").splitlines()
            return f": {to_one_line(lines[-1], 200)}" if lines else ""
        return ""

    # What ends it.

    def _check_stop_conditions(self, *, at_rest: bool = False) -> None:
        """Renews the lease and looks at everything that ends the campaign. `at_rest`: no step is under way. Raises
        Breach, Over: something does."""
        levers.renew_lease(self._lease, clock=self._clock)
        reason = self._guard.find_fault_end_reason()
        if reason.startswith("until "):
            raise Over(f"the window has closed: {reason}")
        if reason and not (at_rest and reason.startswith("opens ")):
            raise CampaignBreach(reason)
        if at_rest:
            interrupts.check_interrupt()
            return
        self._gauge.read_new_records()
        for condition in self.campaign.conditions:
            value = self._gauge.compute_measure(condition.measure, condition.over_s)
            if value is not None and condition.bound.is_met_by(value):
                raise CampaignBreach(f"stop condition {condition}: it is {value:.4g}")
        budget = self.spec.budget
        if budget.seconds is not None and self._clock.monotonic() - self._began_s >= budget.seconds:
            raise Over(f"the budget of {budget.seconds:g} s is spent")
        if budget.dollars is not None and self._before["cost"] + self._gauge.cost >= budget.dollars:
            raise Over(f"the budget of ${budget.dollars:g} is spent")
        if self._clock.monotonic() - self._probed_s >= self.spec.look and (reason := self._run_probes_until_failure()):
            raise CampaignBreach(f"not steady: {reason}")
        self._report_progress()

    def _run_probes_until_failure(self, measured: Callable[[str], float | None] | None = None) -> str:
        """The first probe that does not hold, in words. `measured`: the measures, by default those of its runs."""
        self._probed_s = self._clock.monotonic()
        figures, reason = [], ""
        # A gateway that stays is what callers go through; one that has ended meanwhile is in nobody's way.
        groups = [unit.group for unit in self.journal_contents.gateways_left_running if unit.group is not None]
        pids = (pid for group in groups for pid in list_group_pids(group, str(self.folder / LIMITS)))
        gateway_urls = gateways.read_gateway_urls(self.folder, pids)
        for probe, bound in zip(self.spec.steady, self.campaign.bounds, strict=True):
            # Before each, since a probe may take long and there may be many.
            levers.renew_lease(self._lease, clock=self._clock)
            value, reason = _probes.run_probe(
                probe,
                bound,
                folder=self.campaign.folder,
                measured=measured or self._gauge.compute_measure,
                clock=self._clock,
                gateway_urls=gateway_urls,
            )
            figures.append({"name": probe.name, "value": value, "should": str(bound), "why": reason})
            if reason:
                break
        with suppress(OSError):  # a page that cannot be told stops nothing
            self._write_status_file(figures)
        return reason

    def _write_status_file(self, probes: list[dict[str, Any]]) -> None:
        """Leaves what the last look saw for whoever watches: the probes, and what is spent of the budget."""
        spent = {
            "trials": self._trial_count, "seconds": round(self._clock.monotonic() - self._began_s, 3),
            "dollars": self._before["cost"] + self._gauge.cost,
        }  # fmt: skip
        with files.replace_file(self.folder / SEEN) as text_part:
            text_part.write_text(json.dumps({
                "at": format_iso(self._clock.utc()), "probes": probes, "spent": spent, "now": self._collect_figures(),
                "budget": self.spec.budget.model_dump(exclude_none=True), "lease_s": self.spec.lease,
            }))  # fmt: skip

    def _wait_until_steady(self) -> str:
        """Waits until all probes hold, at most `recover` seconds. Returns what does not hold then. Measures of the runs
        cannot come back, so they are left out."""
        until_s = self._clock.monotonic() + self.spec.recover
        while (reason := self._run_probes_until_failure(lambda _: None)) and self._clock.monotonic() < until_s:
            self._clock.sleep(min(1.0, self.spec.recover))
        return reason

    # The rollback.

    def _roll_back_all(self) -> None:
        """Takes everything back: the steps that were not, last one first, and then the campaign. Each goes on whatever
        becomes of the others."""
        for unit in self.journal_contents.units_to_roll_back:
            # A step that a killed start has left: its own end was never noted. A gateway only passes on.
            if unit.group is None or unit.state:
                continue
            if unit.stays and list_group_pids(unit.group, str(self.folder / LIMITS)):
                self._journal.append_entry("left", group=unit.group)
            elif not end_process_group(unit.group, str(self.folder / LIMITS)):
                self._record_undo_failure(f"the processes of {unit.name} (group {unit.group}) do not end")
        for step in dict.fromkeys(entry.step for entry in reversed(self.journal_contents.units_to_roll_back)):
            self._undo_step(step)
        for command in self.spec.rollback:
            self._run_undo_command(command)
        if self.spec.toxiproxy:
            self._delete_toxiproxy_lanes(self.spec.toxiproxy)

    def _undo_step(self, step: int) -> None:
        for command in self.spec.steps[step].undo if step < len(self.spec.steps) else ():
            self._run_undo_command(command)
        self._journal.append_entry("undone", step=step)

    def _run_undo_command(self, command: Sequence[str]) -> None:
        with suppress(OSError):  # a lease that cannot be renewed ends all faults
            levers.renew_lease(self._lease, clock=self._clock)
        message = " ".join(command)[:120]
        try:
            # In a session of its own: the Ctrl-C that ends the campaign must not end what takes it back.
            process = subprocess.run(
                command,
                cwd=self.campaign.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=UNDO_S,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = error.strerror if isinstance(error, OSError) else f"it did not end within {UNDO_S:g} s"
            self._record_undo_failure(f"`{message}`: {reason}")
            return
        if process.returncode:
            text = process.stderr.decode("utf-8", "replace").strip().splitlines()
            self._record_undo_failure(
                f"`{message}`: exit code {process.returncode}{f', {to_one_line(text[-1], 120)}' if text else ''}"
            )

    def _delete_toxiproxy_lanes(self, url: str) -> None:
        from chaoslab.wire.lane_names import delete_all_lanes
        from chaoslab.wire.proxies import ToxiproxyDown, ToxiproxyError
        from chaoslab.wire.toxiproxy_package import ToxiproxyServer

        try:
            with ToxiproxyServer(url) as toxiproxy:
                delete_all_lanes(toxiproxy)
        except ToxiproxyDown:
            return  # and its lanes are gone with it
        except ToxiproxyError as error:
            self._record_undo_failure(f"the lanes of the Toxiproxy at {url}: {to_one_line(str(error), 120)}")

    def _record_undo_failure(self, which: str) -> None:
        self._journal.append_entry("not undone", which=which)
        self._tell(f"COULD NOT BE UNDONE: {which}")

    # What is told.

    def _collect_figures(self) -> dict[str, float]:
        gauge, standings = self._gauge, self._gauge.trial_counts
        return {
            "trials": standings.total, "well": standings.well, "failed": standings.bad, "open": standings.open,
            "harm": gauge.harmed_trial_count, "calls": gauge.call_count,
            "failed_calls": gauge.failed_call_count, "faults": gauge.faults, "cost": gauge.cost,
        }  # fmt: skip

    def _compute_end_state(self) -> str:
        states = {unit.state for unit in self.journal_contents.current_start_units}
        return next((state for state in ("broken", "failed", "unproven") if state in states), "held")

    def _report_progress(self, *, last: bool = False) -> None:
        """Tells how far a step is, now and then, and at its end, with what ended it counted."""
        now_s = self._clock.monotonic()
        if (
            last or (now_s - self._told_s >= TOLD_S and self._gauge.trial_counts.total)
        ) and self.journal_contents.current_start_units:
            self._told_s = now_s
            at = self.journal_contents.current_start_units[-1]
            number = [(unit.step, unit.level) for unit in self.campaign.units].index((at.step, at.level)) + 1
            gauge, standings = self._gauge, self._gauge.trial_counts
            self._tell(
                f"round {at.round}, {number} of {len(self.campaign.units)}: {at.name}: {standings.total} trials, "
                f"{standings.bad} failed, {standings.open} open, {gauge.harmed_trial_count} harm, {gauge.faults} "
                "faults met"
            )

    def _send_notification(self, kind: str, **fields: Any) -> None:
        """Tells whoever is to be told. One that cannot be reached stops nothing."""
        request = self.spec.notify
        if request is None:
            return
        message = {
            "campaign": self.spec.campaign,
            "what": kind,
            **fields,
            "not_undone": self.journal_contents.not_undone,
        }
        try:
            if request.webhook is not None:
                import httpx

                httpx.post(request.webhook, json=message, timeout=5.0).raise_for_status()
            else:
                subprocess.run(
                    request.command or [],
                    cwd=self.campaign.folder,
                    input=json.dumps(message).encode(),
                    timeout=10.0,
                    check=True,
                    capture_output=True,
                )
        except Exception as error:  # noqa: BLE001 - whatever it is, the campaign goes on
            self._journal.append_entry("note", text=f"nobody was notified of '{kind}': {to_one_line(str(error), 160)}")


def describe_left_gateway(name: str, group: int | None, file: Path) -> str:
    """The line about a gateway that was left in the path of traffic."""
    return (
        f"{name} makes no more faults and passes traffic on (process {group}), until none comes "
        f"or chaoslab campaign stop {file.name}"
    )


def apply_campaign_action(folder: Path, do: str, reason: str) -> str:
    """Stops, pauses or resumes the campaign in a folder, by its levers. Returns the result in words. Raises
    LookupError: it was never run, or knows no such word. OSError: a lever cannot be pulled."""
    if do not in WORDS:
        raise LookupError(f"a campaign knows no {to_one_line(do, 40)}: {', '.join(WORDS[:-1])} and {WORDS[-1]}")
    story = read_journal(folder)
    if not story.instance:
        raise LookupError(f"{folder.name} was never run in {folder.parent}")
    is_gone = bool(story.ended) or not is_process_alive(story.pid)
    left = list_gateways_there(folder, story.running_and_left_gateways) if do == "stop" and is_gone else []
    for unit in left:
        end_process_group(unit.group or 0, str(folder.absolute() / LIMITS))
        Journal(folder).append_entry("ended step", group=unit.group)
    message = f"; it had left {', '.join(unit.name for unit in left)}, which ends now" if left else ""
    if story.ended:
        return f"it has ended already: {story.ended}{message}"
    if do == "resume":
        return "it goes on" if levers.remove_stop_file(folder / PAUSED) else "it was not paused"
    if do == "pause":
        levers.write_stop_file(folder / PAUSED, reason)
        return "its runs wait after the trials that are under way, and no step begins"
    levers.write_stop_file(folder / LEVER, reason)
    if is_gone:
        return f"its process is gone: its faults have ended, and chaoslab campaign run takes it back{message}"
    return "its faults stop now, and it rolls back"
