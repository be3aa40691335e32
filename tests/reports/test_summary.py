"""The summary tells a run on one page, also a run that left little or nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from fake_run import FakeRun, ScriptedClock

from chaoslab.history import History
from chaoslab.reports.summary import render


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return line.split()


def test_it_names_the_run_and_counts_its_prompts_calls_and_faults(tmp_path: Path) -> None:
    text = render(History.read(FakeRun(tmp_path, prompts=60).write()))
    assert text.startswith("run fake · seed 7 · model chaoslab-offline · done after ")
    assert row(text, "correct")[1:3] == ["50", "83%"]
    injection, eligible, scheduled, injected, witnessed, *_ = row(text, "errors")
    assert (injection, scheduled) == ("errors", injected)
    assert int(eligible) > int(scheduled) == int(witnessed) > 0
    assert row(text, "hallucination")[-3:] == ["NOT", "AS", "PLANNED"]
    assert "failures that nobody injected: 3\n" in text
    assert "27 retries, 7 fallbacks" in text
    assert "time to recovery: 31 of 35 recovered" in text
    assert "5 faults: too few" in text
    assert "price unknown" in text


def test_a_run_without_faults_has_no_recovery_and_no_failures(tmp_path: Path) -> None:
    text = render(History.read(FakeRun(tmp_path, prompts=5, chance=0.0).write()))
    assert "time to recovery: no data\n" in text
    assert "failures that nobody injected: none\n" in text
    assert row(text, "wire")[1:5] == ["10", "0", "0", "0"]


def test_lines_that_could_not_be_read_are_named(tmp_path: Path) -> None:
    FakeRun(tmp_path, prompts=1).write()
    with (tmp_path / "info.log").open("a") as file:
        file.write('{"ts": "2026-06-0')
    (last,) = History.read(tmp_path).cut_lines["info.log"]
    assert f"note: info.log: line {last} could not be read" in render(History.read(tmp_path)).splitlines()


def test_an_empty_history_is_told_too() -> None:
    text = render(History([]))
    assert "prompts: none was started" in text
    assert "faults: none was planned" in text
    assert "time to recovery: no data" in text


class SetBack(ScriptedClock):
    """A wall clock that is set back by an hour, and later ahead by a day."""

    def utc(self) -> datetime:
        return super().utc() + timedelta(hours=0 if self.now_s < 20 else -1 if self.now_s < 40 else 24)


def test_no_figure_depends_on_the_wall_clock(tmp_path: Path) -> None:
    steady, set_back = (
        History.read(FakeRun(tmp_path / name, clock=clock).write())
        for name, clock in (("steady", ScriptedClock()), ("set_back", SetBack()))
    )
    stamps = [record.ts for record in set_back.records]
    assert stamps != sorted(stamps)
    assert [record.event for record in set_back.records] == [record.event for record in steady.records]
    assert render(set_back) == render(steady)
    assert "time to recovery: no data" not in render(steady)
