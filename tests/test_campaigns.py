"""Campaigns: what is checked before anything runs, what ends them, and that everything is taken back."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from chaoslab.base import levers
from chaoslab.base.clock import format_iso
from chaoslab.campaigns._child import Process, build_unit_command
from chaoslab.campaigns._gauge import CampaignMeasures
from chaoslab.campaigns._probes import find_gateway_url
from chaoslab.campaigns.bounds import Bound, StopBound, parse_number
from chaoslab.campaigns.journal import DoneUnit, Journal, JournalContents, read_journal
from chaoslab.campaigns.load import Campaign, RoundUnit, find_round_start, load_campaign
from chaoslab.campaigns.presence import Presence
from chaoslab.campaigns.report import render_report_text
from chaoslab.campaigns.running import AlreadyRunning, CampaignRunner, apply_campaign_action
from chaoslab.cli import _build_parser, main
from chaoslab.core.events import AttemptRef, CallFinished, CallStarted, Event, RunStarted, Usage
from chaoslab.core.limits import LimitGuard, Limits
from chaoslab.record.history import History
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.record.runs import Run
from chaoslab.record.steering import RunSteering
from chaoslab.scenarios.load import ScenarioErrors
from chaoslab.wire.toxiproxy_package import ToxiproxyServer
from tests import warm
from tests.cli_parts import Typed
from tests.event_parts import run_started
from tests.free_ports import free_port
from tests.gateway.parts import process_of, shop
from tests.seams.lab_parts import embedded, eventually
from tests.waiting import DEADLINE_S, IMPATIENT_S

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
SCENARIO = """
name: refund
agent: agents:pay
tools: [agents:charge]
prompt: go
faults: [{fault: lost_reply, target: charge, calls: [1]}]
"""
AGENTS = """
def charge(order: int) -> str:
    return "charged"

def pay(prompt: str) -> str:
    return charge(1)
"""


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = NOW

    def monotonic(self) -> float:
        return (self.now - NOW).total_seconds()

    def utc(self) -> datetime:
        return self.now

    def sleep(self, delay_s: float) -> None:
        self.now += timedelta(seconds=delay_s)

    async def sleep_async(self, delay_s: float) -> None:
        self.sleep(delay_s)


class Step:
    """A step that does something at each look at it, and ends after some."""

    group: int | None = None

    def __init__(self, *does: Callable[[], object], code: int = 0) -> None:
        self._does, self._code, self.ended = iter(does), code, False

    def poll_exit_code(self) -> int | None:
        for does in self._does:
            does()
            return None
        return self._code

    def end_and_wait(self) -> int:
        self.ended = True
        return 130


def nothing() -> None:
    """A look at a step that goes on."""


def made(folder: Path, *, clock: Time | None = None, **given: Any) -> Campaign:
    """The campaign of these keys."""
    (folder / "refund.chaos.yml").write_text(SCENARIO)
    (folder / "agents.py").write_text(AGENTS)
    file = folder / "shop.campaign.yml"
    file.write_text(yaml.safe_dump({"campaign": "shop", "steps": [{"command": ["true"]}], **given}))
    return load_campaign(file, clock=clock or Time())


def report(story: JournalContents) -> str:
    """The report of a campaign none of whose processes is there."""
    return render_report_text(story, "shop", Presence(runs=False, gateways=(), faults_s=0.0), "shop.campaign.yml")


def runner(
    folder: Path, started: list[Step], /, *, clock: Time | None = None, **given: Any
) -> tuple[CampaignRunner, list[str]]:
    clock, said, children = clock or Time(), list[str](), iter(started)
    campaign = made(folder, clock=clock, **given)
    made_ = CampaignRunner(
        campaign, folder / "campaigns", clock=clock, tell=said.append, start=lambda *_: next(children)
    )
    return made_, said


def touched(folder: Path, name: str) -> list[str]:
    """A command that leaves a file."""
    return ["touch", str(folder / name)]


class Log:
    """A run that a step writes."""

    def __init__(self, folder: Path) -> None:
        self.run = Run.create(folder, now=format_iso(NOW), name="n")
        self.rulings = RulingsFile(self.run.folder, "refund", [], 9)

    def calls(self, count: int, *, ok: bool, took_s: float = 0.1) -> None:
        for each in range(count):
            at = AttemptRef(trial="p1.r1", target="crm", request=each + 1, attempt=1, request_id="")
            self.write(CallFinished(at=at, tool="crm", ok=ok, duration_s=took_s, status=200))

    def cost(self, dollars: float) -> None:
        self.write(Usage(model="m", request=1, prompt_tokens=1, completion_tokens=1, cost_usd=dollars))

    def write(self, event: Event) -> None:
        with self.run.open_log("info") as log:
            log.write(event, trial="p1.r1")


# What is stated.


@pytest.mark.parametrize(
    ("given", "found"), [("0.2", 0.2), ("10%", 0.1), ("5m", 300.0), ("0.2s", 0.2), ("200ms", 0.2), ("-3", -3.0)]
)
def test_numbers_have_units(given: str, found: float) -> None:
    assert parse_number(given) == pytest.approx(found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("harm", "a measure, a bound"),
        ("errors > 1", "one of error_rate"),
        ("error_rate > 200%", "a condition that can hold"),
        ("error_rate > 1 over 5 weeks", "a duration, as in"),
        ("error_rate > 0.1 over 0s", "a time above 0"),
        ("harm > 0 over 5m", "harm without a time"),
        ("cost > ten", "a number, a share"),
    ],
)
def test_a_wrong_condition_says_what_would_be_right(given: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        StopBound.parse(given)


def test_conditions_and_bounds_read_as_they_are_written() -> None:
    assert str(StopBound.parse("error_rate > 20% over 1min")) == "error_rate > 0.2 over 60 s"
    assert StopBound.parse("slo_burn >= 2").bound.is_met_by(2.0)
    within = Bound.parse("100", "10%")
    assert [within.is_met_by(value) for value in (89, 90, 110, 111)] == [False, True, True, False]
    assert Bound.parse("200").is_met_by(200.0)
    with pytest.raises(ValueError, match="a value alone"):
        Bound.parse("> 100", "10%")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"steps": [{"scenario": "gone.chaos.yml"}]}, "gone.chaos.yml: it cannot be read: No such file"),
    ({"steps": [{"scenario": "refund.chaos.yml", "command": ["true"]}]}, "a step is one of scenario"),
    ({"steps": [{}]}, "a step is one of scenario"),
    ({"steps": []}, "steps is [] : it should be not empty".replace(" :", ":")),
    ({"steps": [{"command": ["true"], "levels": [1.0]}]}, "levels goes with scenario alone"),
    ({"steps": [{"scenario": "refund.chaos.yml", "levels": [2.0, 1.0]}]}, "it should rise, as in [0.5, 1, 2]"),
    ({"steps": [{"scenario": "refund.chaos.yml", "for": "5m"}]}, "for goes with command alone"),
    ({"steps": [{"command": ["true"], "for": "5 minutes"}]}, "it should be a duration, as in 90s, 5min or 2h"),
    ({"step": []}, "'step' is not known here: did you mean 'steps'?"),
    ({"steps": [{"command": ["true"], "undos": []}]}, "'undos' is not known here: did you mean 'undo'?"),
    ({"every": "6h", "at": ["2026-07-01T00:00:00Z"]}, "both every and at are given"),
    ({"rounds": 3}, "rounds goes with every, cron or at"),
    ({"cron": "every day"}, "it should be five fields, as in 0 9 * * 1-5"),
    ({"cron": "61 9 * * *"}, "it should be five fields"),
    ({"cron": "0 0 31 2 *"}, "cron is '0 0 31 2 *': there is no such moment"),
    ({"at": ["2026-05-01T00:00:00Z"]}, "the schedule is in the past: its last moment was 2026-05-01T00:00:00Z"),
    ({"at": ["now"]}, "'now' should be a moment like 2026-06-01T09:00:00Z"),
    (
        {
            "steady": [{"name": "x", "measure": "cost", "expect": "< 1"}],
            "steps": [{"scenario": "refund.chaos.yml"}],
        },
        "the world cannot give it",
    ),
    ({"at": ["soon"]}, "'soon' should be a moment like 2026-06-01T09:00:00Z"),
    ({"limits": {"until": "2026-05-01T00:00:00Z"}}, "the window is over"),
    ({"limits": {"share": "0%"}}, "share of limits is '0%': it should be a share"),
    ({"limits": {"lever": "x"}}, "lever is the campaign's own"),
    (
        {"limits": {"targets": ["c*", "crm"]}, "steps": [{"scenario": "refund.chaos.yml"}]},
        "targets of limits names 'crm': known are charge",
    ),
    ({"stop": ["slo_burn > 1"]}, "slo_burn needs an objective"),
    ({"stop": ["cost > 1"], "steps": [{"scenario": "refund.chaos.yml"}]}, "the world cannot give it"),
    ({"stop": ["errors > 1"]}, "'errors > 1' should be one of error_rate"),
    ({"steady": [{"name": "x"}]}, "the probe x should be one of http, sql, command and measure"),
    ({"steady": [{"name": "x", "http": "localhost:80"}]}, "it should be an address like http://127.0.0.1:8080"),
    ({"steady": [{"name": "x", "http": "http://a", "of": "code"}]}, "for http it should be one of status and seconds"),
    ({"steady": [{"name": "x", "http": "http://a", "of": "seconds"}]}, "the probe x lacks expect"),
    ({"steady": [{"name": "x", "http": "http://a", "expect": "fast"}]}, "it should be a number, a share"),
    ({"steady": [{"name": "x", "http": "http://a", "within": "1m"}]}, "within is 60 s: it should be less than lease"),
    ({"steady": [{"name": "x", "sql": "a.db"}]}, "sql (a file of SQLite) and query go together"),
    ({"steady": [{"name": "x", "measure": "harms", "expect": 0}]}, "it should be one of error_rate"),
    ({"notify": {}}, "notify should be one of command and webhook"),
    ({"slo": {"share": "101%"}}, "share is '101%': it should be less than 1"),
    ({"toxiproxy": "here"}, "it should be an address like"),
]


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_what_is_wrong_in_a_file_is_a_line_with_its_place(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioErrors) as error:
        made(tmp_path, **given)
    assert any(says in each for each in error.value.lines), error.value.lines
    assert "Traceback" not in str(error.value)
    assert all(str(tmp_path) in each for each in error.value.lines)


@pytest.mark.parametrize(("text", "says"), [("[1]", "a campaign is a mapping with campaign, steps"), ("{", "yml")])
def test_a_file_that_holds_no_campaign_is_one_line(text: str, says: str, tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "bad.yml").write_text(text)
    assert says in typed.refused("campaign", "check", tmp_path / "bad.yml")


def test_a_scenario_of_a_step_is_checked_too(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "bad.chaos.yml").write_text(SCENARIO.replace("lost_reply", "lost_replies"))
    with pytest.raises(ScenarioErrors, match=r"bad\.chaos\.yml:6:.*lost_reply"):
        made(tmp_path, steps=[{"scenario": "bad.chaos.yml"}])


def test_the_example_and_the_one_in_the_documents_are_right(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent
    assert len(load_campaign(root / "examples/shop.campaign.yaml", clock=Time()).units) == 4
    made(tmp_path)
    page = (root / "docs/how-to/campaigns.md").read_text(encoding="utf-8")
    file = tmp_path / "checkout.yml"
    file.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(load_campaign(file, clock=Time()).units) == 5


def test_toml_is_read_too(tmp_path: Path) -> None:
    made(tmp_path)
    file = tmp_path / "shop.toml"
    file.write_text('campaign = "shop"\nevery = "6h"\n[[steps]]\nscenario = "refund.chaos.yml"\nlevels = [0.5, 1]\n')
    assert [each.name for each in load_campaign(file, clock=Time()).units] == [
        "refund.chaos.yml, level 0.5", "refund.chaos.yml, level 1"
    ]  # fmt: skip


def test_rounds_begin_by_the_schedule(tmp_path: Path) -> None:
    def moments(count: int, **given: Any) -> list[str | None]:
        spec, found, now, last = made(tmp_path, **given).spec, list[str | None](), NOW, None
        for each in range(1, count + 1):
            last = find_round_start(spec, each, last, now)
            found.append(None if last is None else f"{last:%d %H:%M}")
            now = now if last is None else last + timedelta(minutes=1)
        return found

    assert moments(3, every="6h") == ["01 09:00", "01 15:00", "01 21:00"]
    assert moments(3, every="6h", rounds=2) == ["01 09:00", "01 15:00", None]
    assert moments(3, cron="30 9 * * *") == ["01 09:30", "02 09:30", "03 09:30"]
    assert moments(2, at=["2026-06-01T08:00:00Z", "2026-06-03T08:00:00Z"]) == ["03 08:00", None]
    assert moments(2) == ["01 09:00", None]


# What ends it.


def test_a_campaign_that_holds_is_taken_back_and_steady_after(tmp_path: Path) -> None:
    made_, _ = runner(
        tmp_path, [Step(nothing), Step()],
        steps=[{"command": ["a"], "undo": [touched(tmp_path, "one")]}, {"command": ["b"]}],
        steady=[{"name": "up", "command": ["true"]}], rollback=[touched(tmp_path, "all")],
    )  # fmt: skip
    story = made_.run()
    assert (story.ended, story.why, story.not_undone) == ("held", "", [])
    assert [(each.name, each.state, each.undone) for each in story.current_start_units] == [
        ("a", "held", True),
        ("b", "held", True),
    ]
    assert (tmp_path / "one").exists()
    assert (tmp_path / "all").exists()
    assert story.notes == ["the steady state holds after the rollback"]


def test_a_paused_campaign_begins_no_step_and_its_runs_no_trial(tmp_path: Path) -> None:
    folder, seen = tmp_path / "campaigns" / "shop", list[tuple[str, bool]]()

    class Waited(Time):
        """Somebody resumes the campaign once it has waited for ten looks."""

        left = 10

        def sleep(self, delay_s: float) -> None:
            super().sleep(delay_s)
            self.left -= (folder / "paused").exists()
            if not self.left:
                self.left = -1
                assert apply_campaign_action(folder, "resume", "") == "it goes on"

    run = Run.create(folder, now=format_iso(NOW), name="n")

    def asks(word: str) -> Callable[[], object]:
        return lambda: apply_campaign_action(folder, word, "lunch")

    def looks(when: str) -> Callable[[], object]:
        return lambda: seen.append((when, RunSteering.read(run.folder).hold))

    with run.open_log("info") as log:  # it is being written
        log.write(RunStarted(seed=1, settings={}, plan={"injections": []}, prompts=1, now=format_iso(NOW), model="m"))
        clock = Waited()
        made_, said = runner(
            tmp_path, [Step(looks("before"), asks("pause"), looks("paused"), asks("resume"), looks("resumed"),
                            asks("pause")), Step(looks("second"))],
            clock=clock, steps=[{"command": ["a"]}, {"command": ["b"]}],
        )  # fmt: skip
        story = made_.run()
    assert seen == [("before", False), ("paused", True), ("resumed", False), ("second", False)]
    assert clock.left == -1
    assert story.ended == "held"
    assert story.notes == [  # it has no steady state
        "somebody paused it: lunch", "it goes on", "somebody paused it: lunch", "it goes on",
    ]  # fmt: skip
    assert said.count("it goes on") == 2
    assert apply_campaign_action(folder, "pause", "late") == "it has ended already: held"
    with pytest.raises(LookupError, match="a campaign knows no restart: stop, pause and resume"):
        apply_campaign_action(folder, "restart", "")


def test_nothing_starts_if_a_probe_cannot_be_reached(tmp_path: Path) -> None:
    made_, _ = runner(tmp_path, [], steady=[{"name": "shop", "http": "http://127.0.0.1:1/health"}])
    story = made_.run()
    assert story.ended == "not begun"
    assert story.why.startswith("not steady before, so nothing was started: shop: http://127.0.0.1:1/health cannot be")
    assert story.current_start_units == []


BREACHES: dict[str, tuple[dict[str, Any], Callable[[Path], Callable[[], object]], str, str]] = {
    "lever of the machine": ({}, lambda _: lambda: levers.write_stop_file(levers.LEVER, "Ann: enough"), "stopped",
        "Ann: enough"),
    "lever of the campaign": (
        {}, lambda folder: lambda: levers.write_stop_file(folder / "campaigns/shop/stop", "why not"), "stopped",
        "why not"
    ),
    "window": ({"limits": {"until": "2026-06-01T09:00:01Z"}}, lambda _: nothing, "held", "window has closed"),
    "seconds": ({"budget": {"seconds": "0.2s"}}, lambda _: nothing, "held", "the budget of 0.2 s is spent"),
    "probe": (
        {"steady": [{"name": "file", "command": ["test", "-e", "up"]}], "look": "0.1s", "recover": 0},
        lambda folder: lambda: (folder / "up").unlink(missing_ok=True),
        "breached", "not steady: file: 1, should be = 0",
    ),
    "errors": (
        {"stop": ["error_rate > 20% over 60s"]},
        lambda folder: lambda: Log(folder / "campaigns/shop").calls(10, ok=False),
        "breached", "stop condition error_rate > 0.2 over 60 s: it is 1",
    ),
    "cost": (
        {"stop": ["cost > 1"]}, lambda folder: lambda: Log(folder / "campaigns/shop").cost(1.5),
        "breached", "stop condition cost > 1: it is 1.5",
    ),
    "dollars": (
        {"budget": {"dollars": 1.0}}, lambda folder: lambda: Log(folder / "campaigns/shop").cost(1.5),
        "held", "the budget of $1 is spent",
    ),
    "burn": (
        {"stop": ["slo_burn > 2"], "slo": {"share": "90%", "within": "1s"}},
        lambda folder: lambda: Log(folder / "campaigns/shop").calls(10, ok=True, took_s=2.0),
        "breached", "stop condition slo_burn > 2: it is 10",
    ),
    "harm": (
        {"stop": ["harm > 0"], "steps": [{"scenario": "refund.chaos.yml"}]},
        lambda folder: lambda: Log(folder / "campaigns/shop").rulings.add_ruling(
            "p1.r1", TrialRuling(RulingState.PASSED, harm=True)  # which its scenario accepts
        ),
        "breached", "stop condition harm > 0: it is 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BREACHES)
def test_a_breach_ends_all_faults_and_the_step_and_takes_everything_back(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levers, "LEVER", tmp_path / "home" / "stop")
    given, does, state, why = BREACHES[what]
    clock, step = Time(), Step(nothing, does(tmp_path), *[nothing] * 30)
    (tmp_path / "up").touch()
    steps = given.get("steps", [{"command": ["a"]}])
    made_, _ = runner(
        tmp_path, [step], clock=clock,
        **{**given, "steps": [{**steps[0], "undo": [touched(tmp_path, "one")]}]},
        rollback=[touched(tmp_path, "all")],
    )  # fmt: skip
    began_s = clock.monotonic()
    story = made_.run()
    assert clock.monotonic() - began_s < 1.2  # of which the window is open for one
    assert story.ended == state
    assert why in story.why
    assert step.ended
    assert story.units_to_roll_back == []
    assert (tmp_path / "one").exists()
    assert (tmp_path / "all").exists()
    assert LimitGuard([Limits(lever=str(made_.folder / "stop"))], clock=Time()).find_fault_end_reason()


def test_a_step_that_cannot_be_run_is_broken(tmp_path: Path) -> None:
    assert CampaignRunner(made(tmp_path, steps=[{"command": ["/no/such"]}]), tmp_path / "c").run().ended == "broken"
    story = CampaignRunner(
        made(tmp_path, steps=[{"command": ["sh", "-c", "echo out of paper; exit 9"]}]), tmp_path / "d"
    )
    (unit,) = story.run().current_start_units
    assert (unit.state, unit.why) == ("broken", "exit code 9: out of paper")


@pytest.mark.parametrize(
    ("code", "state", "why"), [(130, "held", ""), (1, "failed", "exit code 1"), (None, "unproven", "it still passes")]
)
def test_a_step_is_ended_when_its_time_is_over(code: int | None, state: str, why: str, tmp_path: Path) -> None:
    class Endless(Step):
        def end_and_wait(self) -> Any:
            super().end_and_wait()
            return code

    step = Endless(*[nothing] * 99)
    made_, said = runner(tmp_path, [step], steps=[{"command": ["a"], "for": "1s"}])
    story = made_.run()
    (unit,) = story.current_start_units
    assert (step.ended, unit.state, story.ended) == (True, state, state)
    assert unit.why.startswith(why)
    assert any(f"round 1: a: {state}" in line for line in said)


def test_the_first_round_waits_for_the_window_to_open(tmp_path: Path) -> None:
    clock = Time()
    made_, _ = runner(tmp_path, [Step()], clock=clock, limits={"opens": "2026-06-01T10:00:00Z"})
    assert made_.run().ended == "held"
    assert clock.now >= NOW + timedelta(hours=1)


def test_lanes_are_deleted_with_the_campaign_and_with_the_lever(tmp_path: Path, typed: Typed) -> None:
    def make_lane(name: str) -> None:
        toxiproxy.create(name=name, upstream="127.0.0.1:9", listen="127.0.0.1:0", enabled=True)

    with embedded() as url, ToxiproxyServer(url) as toxiproxy:
        make_lane("lane.crm.run.1.99")
        runner(tmp_path, [Step()], toxiproxy=url)[0].run()
        assert not toxiproxy.proxies()
        make_lane("lane.crm.run.2.99")
        assert f"1 lanes deleted at {url}" in typed.out("stop", "--all", "--lever", tmp_path / "s", "--toxiproxy", url)
        assert not toxiproxy.proxies()
    assert typed("stop", "--all", "--lever", tmp_path / "s", "--toxiproxy", url).code == 2
    assert runner(tmp_path, [Step()], toxiproxy=url)[0].run(fresh=True).not_undone == []  # they are gone with it


def test_rollbacks_run_whatever_becomes_of_the_others_and_failures_come_first(tmp_path: Path) -> None:
    made_, _ = runner(
        tmp_path, [Step(code=1)],
        steps=[{"command": ["a"], "undo": [["false"], ["/no/such"], touched(tmp_path, "one")]}],
        rollback=[["sh", "-c", "echo gone >&2; exit 3"], touched(tmp_path, "all")],
    )  # fmt: skip
    story = made_.run()
    assert story.ended == "failed"
    assert [each.partition(":")[2] for each in story.not_undone] == [
        " exit code 1", " No such file or directory", " exit code 3, gone"
    ]  # fmt: skip
    assert (tmp_path / "one").exists()
    assert (tmp_path / "all").exists()
    assert report(story).startswith("COULD NOT BE UNDONE: `false`: exit code 1\n")


def test_a_steady_state_that_does_not_come_back_is_the_result(tmp_path: Path) -> None:
    (tmp_path / "up").touch()
    made_, _ = runner(
        tmp_path, [Step(nothing, (tmp_path / "up").unlink)], look="1h", recover="5s",
        steps=[{"command": ["a"]}, {"command": ["b"]}], steady=[{"name": "up", "command": ["test", "-e", "up"]}],
    )  # fmt: skip
    story = made_.run()
    assert story.ended == "breached"
    assert "the steady state is not back after a: up: 1, should be = 0" in story.why
    assert [each.name for each in story.current_start_units] == ["a"]


def test_an_interrupt_takes_everything_back(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    made_, _ = runner(tmp_path, [Step(interrupt)], rollback=[touched(tmp_path, "all")])
    with pytest.raises(KeyboardInterrupt):
        made_.run()
    assert read_journal(made_.folder).ended == "interrupted"
    assert (tmp_path / "all").exists()


def test_a_campaign_that_was_killed_is_taken_back_and_goes_on(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "steps": [{"command": ["a"]}, {"command": ["b"], "undo": [touched(tmp_path, "b undone")]}, {"command": ["c"]}],
        "rollback": [touched(tmp_path, "all")],
    }
    made_, _ = runner(tmp_path, [], **given)
    journal = Journal(made_.folder, clock=Time())
    digest = hashlib.blake2b((tmp_path / "shop.campaign.yml").read_bytes(), digest_size=8).hexdigest()
    journal.append_entry("begun", digest=digest, pid=2**22 + 1)  # larger than any
    for n, (name, over) in enumerate((("a", True), ("b", False))):
        journal.append_entry("step", round=1, step=n, name=name, level=None)
        if over:
            journal.append_entry("over", state="held", figures={"trials": 3})
            journal.append_entry("undone", step=n)
    with (made_.folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"what": "over", "sta')  # the kill struck here
    again, said = runner(tmp_path, [Step(), Step()], **given)
    assert "NOT ROLLED BACK YET: b\nshop: not ended: its process is gone" in report(again.journal_contents)
    old = LimitGuard([Limits(lease=str(again.folder / "lease.1"), lease_s=5)], clock=Time())
    levers.renew_lease(again.folder / "lease.1", clock=Time())
    assert not old.find_fault_end_reason()
    story = again.run()
    assert levers.is_lease_expired(again.folder / "lease.1", 5), "a step that outlived the kill gets no lease any more"
    assert said[0] == "the last run was interrupted: rolling it back first"
    assert (tmp_path / "b undone").exists()
    assert story.ended == "held"
    assert [each.name for each in story.current_start_units if each.state] == ["a", "b", "c"]
    assert again._before["trials"] == 3


def test_two_processes_do_not_run_one_campaign(tmp_path: Path) -> None:
    made_, _ = runner(tmp_path, [])
    Journal(made_.folder, clock=Time()).append_entry("begun", digest="", pid=os.getppid())
    clock = Time()
    levers.renew_lease(made_.folder / "lease.1", clock=clock)
    again, _ = runner(tmp_path, [], clock=clock)
    with pytest.raises(AlreadyRunning, match=f"it is running \\(process {os.getppid()}\\): chaoslab campaign stop"):
        again.run()
    assert "its faults stop now" in apply_campaign_action(again.folder, "stop", "enough")
    assert levers.read_stop_reason(again.folder / "stop") == "enough"


def test_a_ramp_stops_at_its_first_breach(tmp_path: Path) -> None:
    made_, _ = runner(
        tmp_path, [Step(), Step(code=1), Step()],
        steps=[{"scenario": "refund.chaos.yml", "levels": [1.0, 2.0, 4.0]}, {"command": ["b"]}],
    )  # fmt: skip
    story = made_.run()
    assert [(each.level, each.state) for each in story.current_start_units] == [
        (1.0, "held"),
        (2.0, "failed"),
        (None, "held"),
    ]
    assert story.ended == "failed"


def test_rounds_share_a_budget_of_trials_and_show_a_trend(tmp_path: Path) -> None:
    asked: list[int | None] = []

    def start(failed: int) -> Step:
        def rule() -> None:
            log = Log(made_.folder)
            for n in range(20):
                state = RulingState.FAILED if n < failed else RulingState.PASSED
                log.rulings.add_ruling(f"p{n}.r1", TrialRuling(state, ("wrong: no",) if n < failed else ()))

        return Step(rule)

    made_, _ = runner(
        tmp_path, [], every="10s", budget={"trials": 45}, steps=[{"scenario": "refund.chaos.yml", "trials": 20}]
    )
    fails = iter([0, 18, 18])

    def begin(_: RoundUnit, trials: int | None) -> Step:
        asked.append(trials)
        return start(next(fails))

    made_._start = begin
    story = made_.run()
    assert asked == [20, 20, 5]
    assert "the budget of 45 trials is spent" in story.why
    assert "100% → 10% → 10% of the trials passed" in report(story)


def test_a_budget_is_shared_by_the_scenarios_of_a_folder_and_raises_no_number(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "more").mkdir()
    for n in range(3):
        (tmp_path / "more" / f"{n}.chaos.yml").write_text(SCENARIO)
    (tmp_path / "more" / "agents.py").write_text(AGENTS)
    for trials, budget, asked in ((None, 1000, 10), (None, 15, 5), (4, 1000, 4), (None, 2, None)):
        step = {"scenario": "more", **({"trials": trials} if trials else {})}
        made_, _ = runner(tmp_path, [], steps=[step], budget={"trials": budget})
        given: list[int | None] = []

        def begin(_: RoundUnit, number_: int | None, given: list[int | None] = given) -> Step:
            given.append(number_)
            return Step()

        made_._start = begin
        made_.run(fresh=True)
        assert given == ([asked] if asked else [])


def test_nothing_starts_under_a_pulled_lever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levers, "LEVER", tmp_path / "lever")
    levers.write_stop_file(levers.LEVER, "Ann: not now")
    made_, _ = runner(tmp_path, [])
    story = made_.run()
    assert (story.ended, story.current_start_units) == ("stopped", [])
    assert "Ann: not now" in story.why


def test_whoever_is_to_be_told_is_told(tmp_path: Path) -> None:
    made_, _ = runner(tmp_path, [Step()], notify={"command": ["sh", "-c", "cat >> told"]})
    made_.run()
    said = (tmp_path / "told").read_text()
    assert json.loads(said[said.index("}") + 1 :]) == {
        "campaign": "shop", "what": "ended", "state": "held", "why": "", "not_undone": []
    }  # fmt: skip
    made_, _ = runner(tmp_path, [Step()], notify={"webhook": "http://127.0.0.1:1/x"})
    assert made_.run().notes[0].startswith("nobody was notified of 'begun'")


def test_the_plan_of_a_step_carries_the_campaigns_limits(tmp_path: Path) -> None:
    made_, _ = runner(tmp_path, [Step()], limits={"share": "10%", "faults": 3}, lease="5s")
    made_.run()
    (limits,) = [Limits.build(json.loads((made_.folder / "limits.json").read_text()))]
    assert (limits.share, limits.faults, limits.lease_s, limits.hosts) == (0.1, 3, 5.0, ())
    assert {Path(each).parent for each in (limits.lease, limits.lever, limits.tally)} == {made_.folder}


def test_probes_of_sql_and_output_have_a_number(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE orders (id)")
        database.execute("INSERT INTO orders VALUES (1)")
    database.close()
    probes = [
        {"name": "orders", "sql": "shop.db", "query": "SELECT count(*) FROM orders", "expect": 1},
        {"name": "queue", "command": ["echo", "depth 105"], "of": "output", "expect": 100, "tolerance": "10%"},
    ]
    made_, _ = runner(tmp_path, [Step()], steady=probes)
    assert made_.run().ended == "held"
    for probe, says in (
        ({**probes[0], "expect": 2}, "orders: 1, should be = 2"),
        ({**probes[0], "query": "DELETE FROM orders"}, "attempt to write a readonly database"),
        ({**probes[0], "query": "SELECT 'x'"}, "and no number"),
        ({**probes[1], "tolerance": "1%"}, "queue: 105, should be = 100 ± 1"),
        ({**probes[1], "command": ["false"]}, "queue: false gives no number (exit code 1)"),
        ({**probes[1], "command": ["sleep", "9"], "within": 0.1}, "queue: sleep did not end within 0.1 s"),
        ({**probes[1], "command": ["no-such-program"]}, "no-such-program cannot be run: No such file"),
    ):
        made_, _ = runner(tmp_path, [], steady=[probe])
        assert says in made_.run().why


def test_a_gauge_takes_rates_over_a_time_and_only_of_enough_calls(tmp_path: Path) -> None:
    gauge = CampaignMeasures(tmp_path, over_s=60.0)
    log = Log(tmp_path)
    log.calls(9, ok=False)
    gauge.read_new_records()
    assert gauge.compute_measure("error_rate") is None
    log.calls(11, ok=True)
    gauge.read_new_records()
    assert gauge.compute_measure("error_rate") == gauge.compute_measure("error_rate", 60.0) == 0.45
    assert gauge.compute_measure("latency_s") == pytest.approx(0.1)
    assert (gauge.call_count, gauge.failed_call_count) == (20, 9)
    gauge.close()


def test_the_table_of_a_status_is_as_wide_as_a_terminal_and_cuts_a_command_at_a_word() -> None:
    command = 'chaoslab gateway --route crm=http://127.0.0.1:9000 --fault {"fault": "latency", "target": '
    figures = {"well": 31, "failed": 19, "calls": 100, "failed_calls": 31, "faults": 30}
    why = "stop condition error_rate > 0.2 over 60 s: it is 0.31"
    units = [
        DoneUnit(1, 1, "refund.chaos", state="failed", why="exit code 1", figures=figures),
        DoneUnit(1, 2, command, state="breached", why=why, figures=figures),
        DoneUnit(1, 3, "x" * 80, state="held"),
    ]
    lines = report(JournalContents(instance=1, done=units, ended="breached", why=why)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "refund.chaos, round 1: exit code 1" in lines
    assert sum(why in line for line in lines) == 1
    names = " ".join(line.split("  ")[0].strip() or line.strip() for line in lines if "--" in line or "gateway" in line)
    assert names == "chaoslab gateway --route …"


def test_calls_in_virtual_time_are_no_traffic(tmp_path: Path) -> None:
    gauge = CampaignMeasures(tmp_path)
    for world, ok in (("virtual", False), ("local", True)):
        log = Log(tmp_path)
        log.write(run_started(world=world, now=format_iso(NOW)))
        log.calls(20, ok=ok)
    gauge.read_new_records()
    assert (gauge.call_count, gauge.failed_call_count) == (40, 20)
    assert gauge.compute_measure("error_rate") == 0.0
    gauge.close()


def test_a_scenario_is_run_with_its_level_and_its_trials(tmp_path: Path) -> None:
    (unit,) = made(tmp_path, steps=[{"scenario": "refund.chaos.yml", "levels": [0.5]}]).units
    words = build_unit_command(unit, logs=tmp_path, trials=7)
    assert words[3:] == [
        "test", "refund.chaos.yml", "--chaos-level", "0.5", "--trials", "7", "--logs", str(tmp_path), "--quiet"
    ]  # fmt: skip
    assert _build_parser(words[3:]).parse_args(words[3:]).chaos_level == "0.5"
    (unit,) = made(tmp_path, steps=[{"command": ["chaoslab", "runs"]}]).units
    assert build_unit_command(unit, logs=tmp_path, trials=None)[1:] == ["-m", "chaoslab", "runs"]


@pytest.mark.parametrize(
    ("command", "run"),
    [
        (["chaoslab", "gateway", "--route", "a=b"], ["gateway", "--linger", "60", "--logs", "LOGS", "--route", "a=b"]),
        (["/bin/chaoslab", "exec", "--", "a", "--logs", "b"], ["exec", "--logs", "LOGS", "--", "a", "--logs", "b"]),
        (["chaoslab", "gateway", "--logs", "own"], ["gateway", "--linger", "60", "--logs", "own"]),
        (["chaoslab", "gateway", "--logs=own", "--linger=9"], ["gateway", "--logs=own", "--linger=9"]),
        (["chaoslab", "stop", "--all"], ["stop", "--all"]),
        (["./chaos", "gateway"], ["gateway"]),
        (["chaoslab"], []),
    ],
)
def test_a_command_that_makes_faults_writes_its_run_where_the_campaign_looks(
    tmp_path: Path, command: list[str], run: list[str]
) -> None:
    (unit,) = made(tmp_path, steps=[{"command": command}]).units
    words = build_unit_command(unit, logs=Path("LOGS"), trials=None)
    assert words[-len(run) :] == run if run else words[-1] == "chaoslab"
    assert words[0] == (sys.executable if command[0] == "chaoslab" else command[0])


def test_a_process_is_ended_with_its_children(tmp_path: Path) -> None:
    output = tmp_path / "out"
    words = ["sh", "-c", "sleep 60 & echo $A $!; wait"]  # whose own child hears no Ctrl-C
    child = Process(words, folder=tmp_path, variables={"A": "pid"}, output=output)
    eventually(lambda: output.read_text().endswith("\n"))
    assert child.poll_exit_code() is None
    assert child.end_and_wait() != 0
    pid = output.read_text().split()[1]
    eventually(lambda: not Path(f"/proc/{pid}/stat").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_nothing_of_a_step_outlives_a_killed_campaign(tmp_path: Path) -> None:
    step = "test -e pid && exit 0; sleep 1000 & echo $! > pid.part; mv pid.part pid; wait"
    # What takes back is asked nothing: it would wait for an answer that nobody gives.
    made(tmp_path, steps=[{"command": ["sh", "-c", step]}], rollback=[["sh", "-c", "test ! -p /dev/stdin"]])
    command = [warm.python(), "-m", "chaoslab", "campaign", "run", str(tmp_path / "shop.campaign.yml")]
    command += ["--logs", str(tmp_path / "c"), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        eventually((tmp_path / "pid").exists)
        eventually(lambda: '"process"' in (tmp_path / "c" / "shop" / "journal.jsonl").read_text())
        os.kill(warm.child(killed.pid), signal.SIGKILL)
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not is_running(pid))
    assert subprocess.run(command, input=b"", stdout=subprocess.DEVNULL, check=False).returncode == 0


@dataclass
class Traffic:
    """A campaign of one gateway in a process of its own, and calls through it."""

    folder: Path
    url: str
    port: int
    keys: dict[str, Any]
    linger_s: float = 60.0
    logs: tuple[str, ...] = ()
    calls: int = 0
    lease_s: float = 1.0

    def start(self) -> subprocess.Popen[bytes]:
        gateway = ["chaoslab", "gateway", "--port", str(self.port), "--linger", f"{self.linger_s:g}", *self.logs]
        gateway += ["--route", f"crm={self.url}", "--fault", "tool_error:crm"]
        own = {"steps": [{"command": gateway, "for": "600s"}], "lease": f"{self.lease_s:g}s"}
        made(self.folder, **{**own, **self.keys})
        started = subprocess.Popen([*self.command("run"), "--quiet"], stdout=subprocess.DEVNULL)
        eventually(lambda: self.status() == 500)
        return started

    def command(self, do: str) -> list[str]:
        file = str(self.folder / "shop.campaign.yml")
        # The campaign knows the gateway by the number of the process that it starts.
        python = warm.python_but(self.folder, "gateway")
        return [python, "-m", "chaoslab", "campaign", do, file, "--logs", str(self.folder / "c")]

    def told(self) -> list[str]:
        """The lines of `campaign status` above its table."""
        told = subprocess.run(self.command("status"), capture_output=True, text=True, check=False).stdout
        # The table's head may have two lines.
        return [line for line in told[: told.index("step  ")].splitlines() if not line.startswith("    ")]

    def status(self) -> int:
        """The status of a call; 0 if the gateway is not there."""
        try:
            status = httpx.get(f"http://127.0.0.1:{self.port}/crm/orders/1", timeout=DEADLINE_S).status_code
            self.calls += 1
            return status
        except httpx.TransportError:
            return 0

    def note(self, seen: list[int]) -> int:
        """Adds the status of a call to those that were seen, and returns it."""
        seen.append(self.status())
        return seen[-1]

    def add_probe(self, host: str = "http://127.0.0.1", path: str = "health") -> None:
        """Has the steady state be a probe of the service, by this name of its host. A busy machine answers in time."""
        url = self.url.replace("http://127.0.0.1", host)
        self.keys["steady"] = [{"name": "way", "http": f"{url}/{path}", "within": f"{IMPATIENT_S:g}s"}]
        self.lease_s = IMPATIENT_S + 1  # a lease outlasts its probes

    def count_probes(self) -> list[int]:
        """The probes that went through each gateway, the first gateway first."""
        runs = sorted(file.parent for file in self.folder.glob("**/info.log") if file.parent.name != "latest")
        return [sum("health" in call.tool for _, call in History.read(run).find_events(CallStarted)) for run in runs]

    @property
    def story(self) -> JournalContents:
        return read_journal(self.folder / "c" / "shop")


@contextmanager
def traffic(folder: Path, *, linger_s: float = 60.0, logs: tuple[str, ...] = (), **keys: Any) -> Iterator[Traffic]:
    with shop() as server:
        found = Traffic(folder, server.url, free_port(), keys, linger_s, logs)
        try:
            yield found
        finally:
            for each in found.story.done:
                if each.group is not None:
                    with suppress(ProcessLookupError):
                        os.killpg(each.group, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_a_killed_campaigns_gateway_only_passes_on_and_ends_when_nothing_comes(tmp_path: Path) -> None:
    with traffic(tmp_path, linger_s=IMPATIENT_S) as there:
        with there.start() as killed:
            os.kill(warm.child(killed.pid), signal.SIGKILL)
        seen = list[int]()
        eventually(lambda: there.note(seen) == 200)
        assert 0 not in seen  # it was never away
        assert [there.status() for _ in range(20)] == [200] * 20
        (step,) = there.story.done
        assert step.group is not None
        eventually(lambda: not is_running(step.group or 0))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_a_gateway_of_a_killed_campaign_gives_its_place_to_the_next_one(tmp_path: Path) -> None:
    with traffic(tmp_path) as there:
        with there.start() as killed:
            os.kill(warm.child(killed.pid), signal.SIGKILL)
        eventually(lambda: there.status() == 200)
        with there.start() as again:
            again.send_signal(signal.SIGINT)
        first, second = there.story.done
        assert (first.left, second.left) == (False, True)
        assert not is_running(first.group or 0)
        assert there.status() == 200


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_a_breach_leaves_the_way_of_traffic_and_is_steady_through_it(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"stop": ["error_rate > 50% over 60s"]}
    with traffic(tmp_path, **keys) as there:
        there.add_probe(path="orders/1")
        with there.start() as campaign:
            seen = [there.status() for _ in range(20)]
            eventually(lambda: there.note(seen) >= 0 and campaign.poll() is not None)
        assert 0 not in seen
        story = there.story
        assert (story.ended, story.why.partition(" >")[0]) == ("breached", "stop condition error_rate")
        assert story.notes == ["the steady state holds after the rollback"]
        assert there.status() == 200
        (step,) = story.gateways_left_running
        assert there.told()[0].startswith(
            f"STILL PASSING TRAFFIC ON: {step.name} (process {step.group}), without faults"
        )
        told = subprocess.run(there.command("stop"), capture_output=True, text=True, check=False)
        assert told.stdout.strip().endswith("which ends now")
        assert there.told()[0].startswith("shop: breached")
        assert not is_running(step.group or 0)
        (run,) = {entry.parent.resolve() for entry in there.folder.glob("c/shop/*/info.log")}
        probes = len([*History.read(run).find_events(CallStarted)]) - there.calls
        assert probes > 0
        assert there.status() == 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
@pytest.mark.parametrize(("logs", "host"), [((), "HTTP://LocalHost"), (("--logs", "own"), "http://127.0.0.1")])
def test_a_left_gateway_is_probed_however_the_probe_is_spelled_and_wherever_its_logs_are(
    logs: tuple[str, ...], host: str, tmp_path: Path
) -> None:
    with traffic(tmp_path, logs=logs) as there:
        there.add_probe(host)
        with there.start() as campaign:
            campaign.send_signal(signal.SIGINT)
        assert there.story.notes == ["the steady state holds after the rollback"]
        assert there.count_probes() == [1]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_a_gateway_of_a_killed_campaign_is_probed_by_the_next_start_and_ended_by_stop(tmp_path: Path) -> None:
    with traffic(tmp_path) as there:
        there.add_probe()
        with there.start() as killed:
            os.kill(warm.child(killed.pid), signal.SIGKILL)
        eventually(lambda: there.status() == 200)
        there.linger_s = 50.0  # in the file too, whose step has another name now
        with there.start() as again:
            os.kill(warm.child(again.pid), signal.SIGKILL)
        assert there.count_probes() == [1, 0]
        step = there.story.done[-1]
        told = subprocess.run(there.command("stop"), capture_output=True, text=True, check=False).stdout
        assert told.strip().endswith(f"it had left {step.name}, which ends now")
        assert not is_running(step.group or 0)
        assert there.status() == 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc")
def test_the_status_of_a_killed_campaign_tells_if_its_gateway_is_there_and_makes_faults(tmp_path: Path) -> None:
    with traffic(tmp_path, lease="1h") as there:
        with there.start() as killed:
            going = there.told()
            os.kill(warm.child(killed.pid), signal.SIGKILL)
        assert going == ["shop: under way"]
        (step,) = there.story.done
        standing = f"STILL PASSING TRAFFIC ON: {step.name} (process {step.group}), "
        until = "until none comes or chaoslab campaign stop shop.campaign.yml"
        goes_on = "so chaoslab campaign run shop.campaign.yml rolls it back and goes on"
        gone = f"shop: not ended: its process is gone, {goes_on}"
        assert there.status() == 500
        assert there.told() == [f"{standing}with faults for 3600 s at most, {until}", gone]
        os.utime(tmp_path / "c" / "shop" / "lease.1", (0, 0))
        eventually(lambda: there.status() == 200)
        assert there.told() == [f"{standing}without faults, {until}", gone]
        os.killpg(step.group or 0, signal.SIGKILL)  # at SIGTERM it would linger
        eventually(lambda: not is_running(step.group or 0))
        assert there.told() == [gone]
        told = subprocess.run(there.command("stop"), capture_output=True, text=True, check=True).stdout
        assert "had left" not in told


ROUTES = {"http://a:1": "http://g:8/crm", "http://a:1/v2": "http://g:9", "http://localhost": "http://g:8/shop"}


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("http://a:1/x?y=1", "http://g:8/crm/x?y=1"),
        ("http://a:1/v2/x", "http://g:9/x"),
        ("http://a:1/v22/x", "http://g:8/crm/v22/x"),
        ("http://a:1", "http://g:8/crm/"),
        ("HTTP://A.:1/x", "http://g:8/crm/x"),
        ("http://me:word@a:1/x", "http://me:word@g:8/crm/x"),
        ("http://LOCALHOST.:80/", "http://g:8/shop/"),
        ("http://127.0.0.1/x", "http://g:8/shop/x"),
        ("http://[::1]:80/x", "http://g:8/shop/x"),
        ("https://localhost:80/x", "https://localhost:80/x"),
        ("http://a:12/x", "http://a:12/x"),
        ("http://a:port/x", "http://a:port/x"),
    ],
)
def test_a_probe_asks_the_gateway_for_its_services_alone(address: str, asked: str) -> None:
    assert find_gateway_url(address, ROUTES) == asked


def test_two_addresses_of_loopback_may_be_two_services() -> None:
    routes = {f"http://127.0.0.{number}:1": f"http://g:8/{number}" for number in (1, 2)}
    assert find_gateway_url("http://127.0.0.2:1/x", routes) == "http://g:8/2/x"
    assert find_gateway_url("http://127.0.0.3:1/x", routes) == "http://127.0.0.3:1/x"


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_the_command_checks_runs_and_tells(tmp_path: Path, typed: Typed) -> None:
    made(tmp_path, stop=["error_rate > 50%"])
    file, logs = str(tmp_path / "shop.campaign.yml"), ["--logs", str(tmp_path / "c")]
    assert typed("campaign", "check", file).code == 0
    plain = json.loads(typed.out("campaign", "check", file, "--json"))
    assert (plain["campaign"], plain["units"], plain["stop"]) == ("shop", ["true"], ["error_rate > 0.5"])
    for do in ("status", "stop"):
        assert f"shop was never run in {tmp_path / 'c'}" in typed.refused("campaign", do, file, *logs)
    assert typed("campaign", "run", file, *logs, "--quiet").code == 0
    told = json.loads(typed.out("campaign", "status", file, *logs, "--json"))
    assert (told["state"], told["steps"][0]["state"]) == ("held", "held")
    assert "it has ended already" in typed.out("campaign", "stop", file, *logs)
    (tmp_path / "bad.yml").write_text("campaign: x\nsteps: [{command: [a], for: soon}]\n")
    assert "bad.yml:2:" in typed.refused("campaign", "check", tmp_path / "bad.yml")


def test_the_lever_is_pulled_told_and_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lever = ["--lever", str(tmp_path / "lever")]
    assert main(["stop", "--status", *lever]) == 0
    assert main(["stop", "--all", "--why", "orders are late", *lever]) == 0
    assert main(["stop", "--status", *lever]) == 1
    assert "orders are late" in capsys.readouterr().out
    assert main(["stop", "--release", *lever]) == 0
    assert main(["stop", "--status", *lever]) == 0


def test_pulling_the_lever_names_the_gateway_of_a_killed_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaigns/shop").mkdir(parents=True)
    journal = Journal(tmp_path / "campaigns/shop")
    journal.append_entry("begun", pid=2**22 + 1)
    with process_of(tmp_path / "campaigns/shop") as group:
        for name, pid, stays in (("test", group, False), ("gateway", group, True), ("gateway of old", 8, True)):
            journal.append_entry("step", round=1, step=0, name=name)
            journal.append_entry("process", group=pid, stays=stays)
        assert main(["stop", "--all", "--lever", "lever"]) == 0
    (_, told) = capsys.readouterr().out.splitlines()
    assert told.startswith(f"gateway of the campaign shop passes traffic on, without faults (process {group})")
