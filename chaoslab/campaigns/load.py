"""Reads and checks a campaign's file, with the scenarios that it names. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chaoslab.base import parsers
from chaoslab.base.clock import Clock, system
from chaoslab.base.registry import suggest_name
from chaoslab.campaigns.bounds import Bound, StopBound, require_known_measure
from chaoslab.core.limits import Limits, check_targets
from chaoslab.scenarios.files import find_scenario_files
from chaoslab.scenarios.lab_agent import LAB
from chaoslab.scenarios.load import ScenarioErrors, load_file_scenarios
from chaoslab.scenarios.located import Located, ScenarioError, read_located_data
from chaoslab.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from chaoslab.campaigns._spec import CampaignSpec, ProbeSpec, StepSpec

OWN = ("lease", "lease_s", "lever", "tally")
"""The limits that a campaign sets itself."""
DEFAULTS = {"http": "status", "command": "code"}
KINDS = ("http", "sql", "command", "measure")
OF = {"http": ("status", "seconds"), "command": ("code", "output"), "sql": (), "measure": ()}


@dataclass(frozen=True)
class RoundUnit:
    """One thing that a round does: a scenario's files at one level, or a command. `step`: its number, from 0.
    `scenarios`: the number of these, with `trials` each at least."""

    step: int
    name: str
    spec: StepSpec
    level: float | None = None
    scenarios: int = 1
    trials: int = 0

    @property
    def is_gateway(self) -> bool:
        """True of a gateway, which stands in the path of traffic."""
        program, *arguments = self.spec.command or [""]
        return Path(program).name == "chaoslab" and arguments[:1] == ["gateway"]


@dataclass(frozen=True)
class Campaign:
    """A checked campaign. `file`: its own; paths in it are sought from its folder."""

    spec: CampaignSpec
    file: Path
    units: tuple[RoundUnit, ...]
    conditions: tuple[StopBound, ...]
    bounds: tuple[Bound, ...]
    """Those of its probes, in their order."""
    limits: Limits

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def folder_name(self) -> str:
        """The name as that of a folder."""
        return "".join(
            character if character.isalnum() or character in "-_" else "-" for character in self.spec.campaign
        ).strip("-")


def load_campaign(path: Path, *, clock: Clock = system) -> Campaign:
    """The campaign in a file. Raises ScenarioErrors: it cannot be read, or something in it is wrong: one line each."""
    try:
        located = read_located_data(path)
        return _CampaignParser(located, path, clock).build_campaign()
    except ScenarioErrors:
        raise
    except ScenarioError as error:
        raise ScenarioErrors([str(error)]) from None


class _CampaignParser:
    """The checks of one file. `wrong`: what is wrong, a line each."""

    def __init__(self, located: Located, path: Path, clock: Clock) -> None:
        self._located, self._path, self._clock = located, path, clock
        self.wrong: list[str] = []

    def add_error(self, path: Sequence[str | int], text: str) -> None:
        self.wrong.append(str(self._located.make_error(path, text)))

    def build_campaign(self) -> Campaign:
        spec = self.spec = self._parse_spec()
        self.scenarios: list[Scenario] = []
        units = self._build_units()
        self._check_schedule()
        bounds = tuple(self._parse_probe_bound(n, probe) for n, probe in enumerate(spec.steady))
        conditions = []
        for n, text in enumerate(spec.stop):
            try:
                conditions.append(condition := StopBound.parse(text))
                self._check_measure_source(("stop", n), condition.measure)
            except ValueError as error:
                self.add_error(("stop", n), f"{text[:80]!r} should be {error}")
        limits = self._parse_limits()
        if spec.notify is not None and (spec.notify.command is None) == (spec.notify.webhook is None):
            self.add_error(("notify",), "notify should be one of command and webhook")
        if spec.toxiproxy is not None:
            try:
                parsers.parse_url(spec.toxiproxy)
            except ValueError as error:
                self.add_error(("toxiproxy",), f"toxiproxy is {spec.toxiproxy!r:.60}: it should be {error}")
        if self.wrong:
            raise ScenarioErrors(list(dict.fromkeys(self.wrong)))
        return Campaign(spec, self._path, units, tuple(conditions), bounds, limits)

    def _parse_spec(self) -> CampaignSpec:
        from pydantic import ValidationError

        from chaoslab.campaigns._spec import PARTS, CampaignSpec
        from chaoslab.scenarios.words import describe_validation_error, find_data_path

        data = self._located.data
        if not isinstance(data, dict):
            raise self._located.make_error((), "a campaign is a mapping with campaign, steps, …")
        try:
            return CampaignSpec.model_validate(data)
        except ValidationError as error:
            for mistake in error.errors(include_url=False):
                location = find_data_path(data, mistake["loc"])
                if mistake["type"] != "extra_forbidden":
                    self.wrong.append(describe_validation_error(self._located, mistake))
                    continue
                part_type = PARTS.get(str(location[0]), CampaignSpec) if len(location) > 1 else CampaignSpec
                known_names = [field.alias or name for name, field in part_type.model_fields.items()]
                self.add_error(
                    location,
                    f"'{location[-1]}' is not known here: {suggest_name(str(location[-1]), known_names)}",
                )
            raise ScenarioErrors(self.wrong) from None

    def _build_units(self) -> tuple[RoundUnit, ...]:
        """The units of a round. Notes all their scenarios."""
        units = list[RoundUnit]()
        for n, step in enumerate(self.spec.steps):
            location = ("steps", n)
            if (step.scenario is None) == (step.command is None):
                self.add_error(location, "a step is one of scenario (a file or a folder) and command (a list of words)")
                continue
            for key, value, needs in (
                ("levels", step.levels, "scenario"),
                ("trials", step.trials, "scenario"),
                ("for", step.lasts, "command"),
            ):
                if value and getattr(step, needs) is None:
                    self.add_error((*location, key), f"{key} goes with {needs} alone")
            if step.levels != sorted(set(step.levels)):
                self.add_error((*location, "levels"), f"levels is {step.levels}: it should rise, as in [0.5, 1, 2]")
            if step.command is not None:
                units.append(RoundUnit(n, " ".join(step.command)[:80], step))
                continue
            scenarios = self._read_scenarios((*location, "scenario"), step)
            self.scenarios += scenarios
            trials = step.trials or min((scenario.spec.trials for scenario in scenarios), default=1)
            for level in step.levels or (None,):
                name = f"{step.scenario}, level {level:g}" if level is not None else str(step.scenario)
                units.append(RoundUnit(n, name, step, level, len(scenarios), trials))
        return tuple(units)

    def _read_scenarios(self, path_: Sequence[str | int], step: StepSpec) -> list[Scenario]:
        level = [f"chaos_level={step.levels[0]}"] if step.levels else []
        try:
            paths = find_scenario_files([self._path.parent / str(step.scenario)])
            return [scenario for path in paths for scenario in load_file_scenarios(path, changed=level)]
        except ScenarioErrors as error:
            self.wrong += error.lines
        except LookupError as error:
            self.add_error(path_, str(error.args[0]))
        return []

    def _check_schedule(self) -> None:
        spec = self.spec
        stated = [key for key in ("every", "cron", "at") if getattr(spec, key)]
        if len(stated) > 1:
            self.add_error((stated[1],), f"both {stated[0]} and {stated[1]} are given: give one of them")
        if spec.rounds and not stated:
            self.add_error(("rounds",), "rounds goes with every, cron or at")
        if spec.cron:
            from croniter import croniter

            # croniter takes a sixth field, of seconds, which cron has not.
            if len(spec.cron.split()) != 5 or not croniter.is_valid(spec.cron):
                self.add_error(("cron",), f"cron is {spec.cron!r:.60}: it should be five fields, as in 0 9 * * 1-5")
            elif _find_next_cron_moment(spec.cron, self._clock.utc()) is None:
                self.add_error(("cron",), f"cron is {spec.cron!r:.60}: there is no such moment")
        for n, text in enumerate(spec.at):
            self._check_moment(("at", n), text)
        if spec.at and not self.wrong and all(parse_utc_moment(entry) < self._clock.utc() for entry in spec.at):
            self.add_error(("at",), f"the schedule is in the past: its last moment was {max(spec.at)}")

    def _check_moment(self, path: Sequence[str | int], text: str) -> None:
        try:
            if parsers.parse_moment(text) and text == "now":
                raise ValueError("a moment like 2026-06-01T09:00:00Z")
        except ValueError as error:
            self.add_error(path, f"{text!r:.60} should be {str(error).removesuffix(', or now')}")

    def _parse_probe_bound(self, n: int, probe: ProbeSpec) -> Bound:
        path: tuple[str | int, ...] = ("steady", n)
        kinds = [kind for kind in KINDS if getattr(probe, kind) is not None]
        if len(kinds) != 1:
            self.add_error(path, f"the probe {probe.name} should be one of {', '.join(KINDS[:-1])} and {KINDS[-1]}")
            return Bound("=", 0.0)
        kind = kinds[0]
        if probe.of is not None and probe.of not in OF[kind]:
            stated = f"one of {' and '.join(OF[kind])}" if OF[kind] else "left out"
            self.add_error((*path, "of"), f"of is {probe.of}: for {kind} it should be {stated}")
        if (kind == "sql") != (probe.query is not None):
            self.add_error(path, f"the probe {probe.name}: sql (a file of SQLite) and query go together")
        if kind == "http" and urlsplit(str(probe.http)).scheme not in ("http", "https"):
            bound_text = f"http is {probe.http!r:.60}: it should be an address like http://127.0.0.1:8080"
            self.add_error((*path, "http"), bound_text)
        # While a probe is asked nobody renews the lease.
        if probe.within >= (lease := self.spec.lease):
            self.add_error(
                (*path, "within"), f"within is {probe.within:g} s: it should be less than lease, {lease:g} s"
            )
        if kind == "measure":
            try:
                require_known_measure(str(probe.measure))
                self._check_measure_source((*path, "measure"), str(probe.measure))
            except ValueError as error:
                self.add_error((*path, "measure"), f"measure is {probe.measure!r:.60}: it should be {error}")
        what_of = probe.of or DEFAULTS.get(kind, "")
        default = {"status": "= 200", "code": "= 0"}.get(what_of)
        if probe.expect is None and default is None:
            self.add_error(path, f"the probe {probe.name} lacks expect: the bound that must hold, as in '< 0.2s'")
            return Bound("=", 0.0)
        try:
            return Bound.parse(probe.expect or default or "", "" if probe.tolerance == "0" else probe.tolerance)
        except ValueError as error:
            bound_text = f"expect is {probe.expect!r:.60}, tolerance {probe.tolerance:.20}"
            self.add_error((*path, "expect"), f"{bound_text}: it should be {error}")
            return Bound("=", 0.0)

    def _check_measure_source(self, path_: Sequence[str | int], measure: str) -> None:
        """Tells a measure that no step of the campaign can give."""
        steps, scenarios = self.spec.steps, self.scenarios
        commands = any(step.command is not None for step in steps)
        if measure == "slo_burn" and self.spec.slo is None:
            self.add_error(path_, "slo_burn needs an objective: add slo, as in {share: 99%, within: 2s}")
        models = any(scenario.spec.models or scenario.spec.agent == "lab" for scenario in scenarios)
        if measure == "cost" and scenarios and not commands and not models:
            self.add_error(
                path_, "cost is that of models, and no scenario names one (models), so the world cannot give it"
            )

    def _parse_limits(self) -> Limits:
        spec, scenarios = self.spec, self.scenarios
        own_limits = next((key for key in OWN if key in spec.limits), None)
        if own_limits is not None:
            self.add_error(
                ("limits", own_limits), f"{own_limits} is the campaign's own: it has a lease and a lever of itself"
            )
            return Limits()
        try:
            limits = Limits.build(spec.limits)
            named = not any(step.command for step in spec.steps) and not any(map(_can_hit_non_functions, scenarios))
            if named and not self.wrong:
                check_targets([limits], sorted({name for limit in scenarios for name in limit.function_names}))
        except (ValueError, LookupError) as error:
            self.add_error(("limits",), str(error.args[0]))
            return Limits()
        if limits.until and parse_utc_moment(limits.until) <= self._clock.utc():
            self.add_error(("limits", "until"), f"the window is over: until is {limits.until}")
        return limits


def _can_hit_non_functions(scenario: Scenario) -> bool:
    """True if its faults may hit more than functions."""
    spec = scenario.spec
    return spec.agent == LAB or bool(spec.services or spec.upstreams)


def parse_utc_moment(text: str) -> datetime:
    """The moment of a text that `parsers.parse_utc_moment` takes."""
    return datetime.fromisoformat(parsers.parse_moment(text)).astimezone(UTC)


def _find_next_cron_moment(cron: str, now: datetime) -> datetime | None:
    """The next moment of a schedule; None if there is none, as on 31 February."""
    from croniter import CroniterBadDateError, croniter

    try:
        next_moment: datetime = croniter(cron, now).get_next(datetime)
    except CroniterBadDateError:
        return None
    return next_moment


def find_round_start(spec: CampaignSpec, number: int, last: datetime | None, now: datetime) -> datetime | None:
    """The moment of the round with this number, from 1; None if there is none. `last`: the beginning of the one before
    it. A moment that has passed meanwhile is not made up for."""
    if spec.rounds is not None and number > spec.rounds:
        return None
    if spec.at:
        return next((due for due in sorted(map(parse_utc_moment, spec.at)) if due >= now), None)
    if spec.cron:
        return _find_next_cron_moment(spec.cron, now)
    if last is None:
        return now
    return None if spec.every is None else max(now, last + timedelta(seconds=spec.every))


def campaign_to_json(campaign: Campaign) -> dict[str, Any]:
    """The campaign as JSON values, for `check --json`."""
    return {
        "campaign": campaign.spec.campaign, "units": [entry.name for entry in campaign.units],
        "stop": list(map(str, campaign.conditions)), "steady": [entry.name for entry in campaign.spec.steady],
        "limits": campaign.limits.to_json(),
    }  # fmt: skip
