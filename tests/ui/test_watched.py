"""The page of a run counts what the report counts, whatever becomes of its logs meanwhile."""

import json
import os
import queue
import shutil
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.clock import SystemClock
from chaoslab.core.events import ChanceSet, RunStarted, Usage
from chaoslab.core.plan import Plan
from chaoslab.record import runs
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.record.runs import Run
from chaoslab.reports import runs as listed_runs
from chaoslab.reports.contents._matrix import build_matrix
from chaoslab.surfaces.ui import _watched as module
from chaoslab.surfaces.ui.reader import LOW, RunsReader
from chaoslab.surfaces.ui.server import _load_trial
from tests.reports import hostile_run
from tests.ui.parts import read, seen, trials


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched") / "logs"
    list(trials(folder, trials=40))
    return folder


@pytest.mark.parametrize("part", [400, 1 << 19])
def test_it_counts_what_the_report_counts_however_it_is_read(
    part: int, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART", part)
    monkeypatch.setattr(module, "BATCH", 7)
    run = (logs / "latest").resolve()
    report = RunReport.from_folder(run)
    with seen(run) as watched:
        state = watched.get_state()
    assert state["outcomes"] == Counter(str(each.outcome) for each in report.verdicts.values())
    assert state["harmed"] == sum(bool(each.harm) for each in report.verdicts.values()) > 0
    assert (state["well"], state["bad"]) == tuple(
        [*map(str, report.standings.values())].count(name) for name in ("well", "bad")
    )
    assert state["done"] == state["of"] == state["judged"] == 40
    assert (state["running"], state["ended"], state["read"]) == (False, "done", None)
    overall = report.recovery.value.overall
    assert (state["incidents"], state["recovered"]) == (overall.n, overall.retry + overall.fallback + overall.late)
    cells = {
        (fault, cell.target): cell for fault, row in build_matrix(report).rows.items() for cell in row if cell.trials
    }
    shown = {
        (row["fault"], target): cell
        for row in state["matrix"]["rows"]
        for target, cell in zip(state["matrix"]["targets"], row["cells"], strict=True)
        if cell is not None
    }
    assert {at: each["trials"] for at, each in shown.items()} == {at: each.trials for at, each in cells.items()}
    assert {at: (each["bad"], each["judged"]) for at, each in shown.items() if each["judged"]} == {
        at: (each.bad.count, each.bad.total) for at, each in cells.items() if each.bad
    }


def test_a_version_is_never_ahead_of_the_state_that_has_it(logs: Path) -> None:
    """A page that is sent an old state under a new number would not be sent the new state."""

    class Looking(SystemClock):
        def monotonic(self) -> float:
            ahead.extend(each.version - each.get_state()["version"] for each in there)
            return super().monotonic()

    there, ahead = list[module.WatchedRun](), list[int]()
    with closing(module.WatchedRun((logs / "latest").resolve(), clock=Looking())) as watched:
        there.append(watched)
        read(watched)
        assert watched.get_state()["done"] == 40
    assert set(ahead) == {0}


def test_a_log_that_is_cut_replaced_or_deleted_is_told_and_read_anew(logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree((logs / "latest").resolve(), folder)
    log = folder / "info.log"
    whole = log.read_bytes()
    with seen(folder) as run:
        log.write_bytes(whole[: len(whole) // 2])
        read(run)
        assert run.notes[-1] == "info.log was cut off while it was read: it is read anew"
        assert 0 < run.get_state()["done"] < 40
        assert (run.get_state()["running"], run.get_state()["ended"]) == (False, "not finished")
        log.rename(folder / "info.log.1")
        log.write_bytes(b"not JSON\n" + whole)
        read(run)
        assert "another file is in the place of info.log" in run.notes[-1]
        assert run.get_state()["notes"][-1] == "info.log: 1 line could not be read"
        assert run.get_state()["done"] == 40
        shutil.rmtree(folder)
        assert run.poll_logs() is False
        assert run.get_state()["ended"] == "info.log was deleted"
        assert run.get_state()["done"] == 40


def test_what_comes_late_is_counted(logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree((logs / "latest").resolve(), folder)
    with seen(folder) as watched:
        before = watched.get_state()
        (trial,) = [key for key, row in watched.rows.items() if row.standing == "well"][:1]
        with Run("run", folder, 0.0, "2026-06-01T09:00:00Z").open_log("more") as more:
            more.write(Usage(model="m", request=1, prompt_tokens=9, completion_tokens=1, cost_usd=0.5), trial=trial)
            more.write(ChanceSet(setting="TOXIC_PROB", was=0.0, chance=0.5), trial=trial)
        rulings = RulingsFile(folder, "pay a pen", [], 40)
        rulings.add_ruling(trial, TrialRuling(RulingState.FAILED, ("too dear",)))
        rulings.write_final_ruling(RulingState.FAILED, ())
        read(watched)
        state = watched.get_state()
        assert (state["tokens"] - before["tokens"], state["usd"] - before["usd"]) == (10, 0.5)
        assert state["notes"] == [f"TOXIC_PROB was 0 and was set to 0.5 while the run went on, from {trial} on"]
        assert (state["name"], state["ruling"]) == ("pay a pen", "failed")
        assert watched.rows[trial].standing == "bad"
        assert state["judged"] == before["judged"] == 40


def test_one_trial_is_told_without_the_others(logs: Path) -> None:
    folder = (logs / "latest").resolve()
    whole = RunReport.from_folder(folder)
    contents = _load_trial(folder, "p1.r7")
    assert [row.trial for row in contents.rows] == ["p1.r7"]
    assert contents.rows[0].outcome == whole.verdicts["p1.r7"].outcome
    with pytest.raises(LookupError, match=r"there is no trial p1\.r99"):
        _load_trial(folder, "p1.r99")


def test_a_run_is_read_without_the_lines_of_the_list(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_runs, "read_run_list_entry", lambda _: pytest.fail("a page does not wait for the list"))
    with closing(RunsReader(logs)) as reader:
        run = reader.get_or_watch_run((logs / "latest").resolve().name)
        while not run.whole:
            reader.poll_watched_runs()
        assert len(run.rows) == 40
        assert [row.get("said") for row in reader.list_run_rows_since(0)] == [None]


BUDGET = lab.inject("budget", "*", tokens=20_000, cost_usd=0.5)


@pytest.mark.parametrize(
    ("plan", "limits", "switches"),
    [
        (Plan(1, (BUDGET,)).to_json(), (0.5, 20_000), [BUDGET.name]),
        ({"injections": [{"name": "b"}, {"name": "a", "choices": [{"fault": "budget", "params": 1}]}]},
         (None, None), ["b", "a"]),
        ({"injections": [{"name": "a", "choices": [{"fault": "budget", "params": {"cost_usd": "x"}}]}]},
         (None, None), ["a"]),
        ({}, (None, None), []),
    ],
)  # fmt: skip
def test_the_limits_and_the_switches_are_those_of_the_plan(
    plan: dict[str, Any], limits: Any, switches: list[str], tmp_path: Path
) -> None:
    run = runs.Run.create(tmp_path, now="2026-06-01T09:00:00Z")
    with run.open_log("info") as info:
        info.write(RunStarted(seed=1, settings={}, plan=plan, prompts=1, now="2026-06-01T09:00:00Z", model="m"))
        with seen(run.folder) as watched:
            state = watched.get_state()
    assert (state["usd_max"], state["tokens_max"]) == limits
    assert [each["name"] for each in state["switches"]] == switches


def test_the_list_has_all_runs_and_forgets_none(logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copytree((logs / "latest").resolve(), folder / "20260101-000000")
    hostile_run.write(folder / "20250101-000000")
    (folder / "20240101-000000").mkdir()
    (folder / "20240101-000000" / "info.log").write_text("broken\n")
    with closing(RunsReader(folder)) as reader:
        read(reader)
        rows = {row["run"]: row for row in reader.list_run_rows_since(0)}
        assert json.dumps([*rows.values()])
        assert rows["20260101-000000"]["name"] == "agent"
        assert rows["20260101-000000"]["harmed"] > 0
        assert "cannot be read" in rows["20240101-000000"]["said"]
        assert reader.left == 0
        version = reader.version
        shutil.rmtree(folder / "20250101-000000")
        reader._looked_s = -1e9
        reader.poll_logs()
        assert [row["run"] for row in reader.list_run_rows_since(version) if row.get("gone")] == ["20250101-000000"]
        for name in ("..", "20240101-000000/..", "nothing"):
            with pytest.raises(LookupError, match="there is no run"):
                reader.get_or_watch_run(name)


def test_a_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    going = trials(tmp_path, trials=10)
    with closing(RunsReader(tmp_path)) as reader:
        for _ in range(3):
            next(going)
        read(reader)
        (row,) = reader.list_run_rows_since(0)
        assert (row["going"], row["said"]) == (True, "3 of 10 done")
        assert reader.list_running_folders() == [row["run"]] == [runs.list_runs_newest_first(tmp_path)[0].name]
        list(going)
        read(reader)
        (row,) = reader.list_run_rows_since(0)
        assert (row.get("going"), row["ended"], row["trials"]) == (None, "done", 10)
        assert reader.list_running_folders() == []


@pytest.mark.skipif(sys.platform != "linux", reason="only there has each thread a priority of its own")
def test_the_threads_that_read_yield_to_the_run_that_they_watch(tmp_path: Path) -> None:
    seen: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()

    class Noted(RunsReader):
        def poll_watched_runs(self) -> bool:
            return self._note("follow")

        def read_next_changed_row(self) -> bool:
            return self._note("read_line")

        def _note(self, name: str) -> bool:
            seen.put((name, os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
            return False

    with Noted(tmp_path):
        found: set[tuple[str, int]] = set()
        while {name for name, _ in found} != {"follow", "read_line"}:
            found.add(seen.get(timeout=60))
    assert found == {("follow", LOW), ("read_line", LOW)}
    assert os.getpriority(os.PRIO_PROCESS, 0) < LOW
