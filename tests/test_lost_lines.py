"""A trial of which the log has lost lines is unfinished and open, and every count of the report says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.record.history import History
from chaoslab.reports import runs
from chaoslab.reports.gate import BY_ITSELF, apply_gate
from tests.cli_parts import Typed

TRIALS = 40
SCENARIO = """
name: refund
agent: shop:agent
prompt: Refund order 17.
tools: [shop:refund]
trials: 40
faults:
  - {fault: latency, target: refund, delay_s: 0.1}
"""
SHOP = """
def refund(order):
    return f"order {order} is refunded"

def agent(prompt):
    return refund(order=17)
"""
Lines = list[bytes]


def a_quarter(lines: Lines) -> Lines:
    """Every fourth line is lost."""
    return [line for number, line in enumerate(lines) if number % 4 != 2]


def a_block(lines: Lines) -> Lines:
    """A quarter of the log is lost in one piece, with all lines of some trials."""
    begin = len(lines) // 4
    return lines[:begin] + lines[2 * begin :]


def the_beginnings(lines: Lines) -> Lines:
    """Each fourth trial has lost its first line."""
    begun = [n for n, line in enumerate(lines) if b'"kind": "prompt_started"' in line]
    return [line for n, line in enumerate(lines) if n not in begun[::4]]


def spoil(folder: Path, lose: Callable[[Lines], Lines]) -> None:
    log = folder / "info.log"
    log.write_bytes(b"".join(lose(log.read_bytes().splitlines(keepends=True))))


def values(typed: Typed, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(typed.out("report", folder, "--format", "json", "--out", "-"))
    return found


@pytest.fixture
def ruled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> Path:
    """The folder of a run in which all trials of a scenario passed."""
    monkeypatch.chdir(tmp_path)
    Path("shop.py").write_text(SHOP)
    Path("refund.chaos.yaml").write_text(SCENARIO)
    typed.out("test", "refund.chaos.yaml")
    return (tmp_path / "logs" / "latest").resolve()


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The folder of a run that no scenario has ruled on."""

    def refund(order: int) -> str:
        return f"order {order} is refunded"

    late = lab.inject("latency", "refund", delay_s=0.1)
    for _ in lab.run_many(
        lambda _: refund(17), "Refund order 17.", tools=[refund], faults=[late], trials=TRIALS, logs=tmp_path / "logs"
    ):
        pass
    return (tmp_path / "logs" / "latest").resolve()


@pytest.mark.parametrize("lose", [a_quarter, a_block, the_beginnings])
def test_headline_and_counts_agree_on_what_a_scenario_s_log_has_lost(
    ruled: Path, typed: Typed, lose: Callable[[Lines], Lines]
) -> None:
    assert values(typed, ruled)["verdict"]["said"] == f"The scenario holds: all of {TRIALS} judged trials passed"
    spoil(ruled, lose)
    found = values(typed, ruled)
    outcomes = {name: each["count"] for name, each in found["outcomes"].items()}
    verdict, unfinished = found["verdict"], outcomes["unfinished"]
    passed = verdict["ended"]["well"]
    assert 0 < unfinished == TRIALS - passed
    assert verdict["trials"] == sum(outcomes.values()) == TRIALS
    was = f"{passed} of {passed} judged trial{'' if passed == 1 else 's'} passed"
    assert verdict["said"] == f"The log has lost lines of {unfinished} trials: {was}"
    assert verdict["tone"] == "open"
    report = RunReport.from_folder(ruled)
    assert [*report.standings.values()].count(Standing.OPEN) == report.lost_trial_count == unfinished
    assert {report.verdicts[trial].outcome for trial in report.torn} == {Outcome.UNFINISHED}
    (shown,) = runs.list_runs(ruled.parent)
    assert shown.well is None or shown.well.total == passed


@pytest.mark.parametrize("lose", [a_quarter, a_block, the_beginnings])
def test_a_run_without_a_scenario_has_lost_its_trials_too_and_passes_no_gate(
    plain: Path, typed: Typed, lose: Callable[[Lines], Lines]
) -> None:
    assert values(typed, plain)["verdict"]["said"] == f"All of {TRIALS} judged trials ended well"
    spoil(plain, lose)
    report, verdict = RunReport.from_folder(plain), values(typed, plain)["verdict"]
    assert verdict["ended"]["well"] + report.lost_trial_count == verdict["trials"] == TRIALS
    assert verdict["ended"]["open"] == report.lost_trial_count
    assert f"he log has lost lines of {report.lost_trial_count}" in verdict["said"]
    ruling = apply_gate(BY_ITSELF, report.verdicts, lost=report.lost_trial_count)
    assert f"the log has lost lines of {report.lost_trial_count} of its trials" in ruling.line
    assert ruling.code != 0


def test_a_page_on_one_trial_knows_that_lines_of_it_are_lost(plain: Path) -> None:
    from chaoslab.surfaces.ui.server import _load_trial

    spoil(plain, the_beginnings)
    torn = {*History.read(plain).gaps_by_trial}
    headless = next(trial for trial in History.read(plain).trials if trial not in History.read(plain).begun_trials)
    whole = next(trial for trial in History.read(plain).begun_trials if trial not in torn)
    assert [row.outcome for row in _load_trial(plain, headless).rows] == [Outcome.UNFINISHED]
    assert [row.outcome for row in _load_trial(plain, whole).rows] == [Outcome.CORRECT]
