"""The rows by which agent and manager speak, over real SQLite and from several connections at once."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab.core.exchange import Call
from chaoslab.core.limits import Limits
from chaoslab.wire.control import CallRow, ControlDatabase, ManagerAnswer, OutageRow, RunRow, explain_database_error
from tests.waiting import HUNG_S

CALL = Call("weather", "current_weather", "p1.r1", 3, 2, "id3")


@contextlib.contextmanager
def two(folder: Path) -> Iterator[tuple[ControlDatabase, ControlDatabase]]:
    """The agent's door and the manager's."""
    agent, manager = ControlDatabase(folder / "state" / "state.db"), ControlDatabase(folder / "state" / "state.db")
    try:
        yield agent, manager
    finally:
        agent.close()
        manager.close()


def test_a_run_is_asked_for_made_and_over(tmp_path: Path) -> None:
    with two(tmp_path) as (agent, manager):
        assert agent.get_run_state("r1") == ("missing", "")
        agent.request_run_setup("r1", plan={"seed": 7}, targets={"weather": "127.0.0.1:5001"})
        assert manager.list_requested_runs() == [RunRow("r1", {"seed": 7}, {"weather": "127.0.0.1:5001"})]
        manager.set_run_state("r1", "ready")
        assert agent.get_run_state("r1") == ("ready", "")
        assert manager.list_requested_runs() == []
        agent.end_run("r1")
        manager.set_run_state("r1", "failed", error="too late")
        assert agent.get_run_state("r1") == ("over", "")


def test_a_poisoned_call_goes_from_asked_to_healed(tmp_path: Path) -> None:
    with two(tmp_path) as (agent, manager):
        row = agent.request_call_address("r1", CALL, deadline_s=2.5)
        assert agent.get_call_answer(row) is None
        assert manager.list_pending_calls(["r1"]) == [CallRow(row, "r1", "asked", CALL, 2.5, {})]
        armed = ManagerAnswer("armed", "127.0.0.1", 40001, ["wire"])
        manager.write_call_answer(row, armed)
        assert agent.get_call_answer(row) == armed
        assert manager.list_pending_calls(["r1"]) == []
        agent.mark_call_done(row, {"duration_s": 0.3, "error": "reset"})
        assert manager.list_pending_calls(["r1"]) == [
            CallRow(row, "r1", "done", CALL, 2.5, {"duration_s": 0.3, "error": "reset"})
        ]
        manager.mark_call_healed(row)
        assert manager.list_pending_calls(["r1"]) == []


def test_a_manager_sees_only_the_runs_that_it_serves_oldest_first(tmp_path: Path) -> None:
    with two(tmp_path) as (agent, manager):
        first, _, third = (agent.request_call_address(run, CALL, deadline_s=1) for run in ("r1", "r2", "r3"))
        assert [row.id for row in manager.list_pending_calls(["r3", "r1"])] == [first, third]
        assert manager.list_pending_calls([]) == []


def test_what_earlier_runs_left_is_forgotten(tmp_path: Path) -> None:
    with two(tmp_path) as (agent, manager):
        agent.request_run_setup("r1", plan={}, targets={})
        row = agent.request_call_address("r1", CALL, deadline_s=1)
        manager.delete_earlier_runs()
        assert agent.get_run_state("r1") == ("missing", "")
        lost = agent.get_call_answer(row)
        assert lost is not None
        assert (lost.state, "vanished" in lost.error) == ("failed", True)


def test_nobody_sees_a_run_that_is_half_forgotten(tmp_path: Path) -> None:
    """A call whose row alone was gone would be blamed on the shared state, not on the manager's restart."""
    with two(tmp_path) as (agent, manager):
        agent.request_run_setup("r1", plan={}, targets={})
        row = agent.request_call_address("r1", CALL, deadline_s=1)
        seen: list[tuple[bool, str]] = []
        manager._db.set_trace_callback(
            lambda _: seen.append((agent.get_call_answer(row) is None, agent.get_run_state("r1")[0]))
        )
        manager.delete_earlier_runs()
        manager._db.set_trace_callback(None)
        assert set(seen) == {(True, "asked")}
        assert len(seen) > 3
        assert (agent.get_call_answer(row) is None, agent.get_run_state("r1")[0]) == (False, "missing")


def test_many_threads_ask_at_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    got: dict[int, int] = {}
    ended = threading.Event()

    def ask(n: int) -> None:
        door = ControlDatabase(path)
        for request in range(20):
            row = door.request_call_address("r1", Call("weather", "t", f"p{n}.r1", request, 1), deadline_s=1)
            while (answer := door.get_call_answer(row)) is None:
                ended.wait(0.0005)
            got[n * 100 + request] = answer.port
        door.close()

    def serve() -> None:
        door = ControlDatabase(path)
        while not ended.is_set():
            for row in door.list_pending_calls(["r1"]):
                port = int(row.call.trial[1:-3]) * 100 + row.call.request
                door.write_call_answer(row.id, ManagerAnswer("armed", "127.0.0.1", port))
        door.close()

    manager = threading.Thread(target=serve)
    agents = [threading.Thread(target=ask, args=(n,)) for n in range(1, 6)]
    for thread in (manager, *agents):
        thread.start()
    for thread in agents:
        thread.join(HUNG_S)
    ended.set()
    manager.join(HUNG_S)
    assert got == {n * 100 + request: n * 100 + request for n in range(1, 6) for request in range(20)}


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("something else entirely, and long enough to be looked at as a header of a database file" * 20)
    with pytest.raises(sqlite3.DatabaseError):
        ControlDatabase(path)


def test_a_manager_that_begins_throws_a_broken_file_away(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"something else entirely" * 200)
    with contextlib.closing(ControlDatabase.open_fresh(path)) as door:
        assert door.request_call_address("r1", CALL, deadline_s=1) == 1


def test_labs_side_by_side_share_the_file_and_not_their_runs(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with (
        contextlib.closing(ControlDatabase(path, manager="8000")) as one,
        contextlib.closing(ControlDatabase(path, manager="9000")) as other,
    ):
        one.request_run_setup("r1", plan={}, targets={})
        other.request_run_setup("r2", plan={}, targets={})
        assert [run.run for run in one.list_requested_runs()] == ["r1"]
        with contextlib.closing(ControlDatabase.open_fresh(path, manager="8000")) as again:
            assert again.get_run_state("r1")[0] == "missing"
            assert again.get_run_state("r2")[0] == "asked"


def test_a_failed_write_leaves_the_door_usable(tmp_path: Path) -> None:
    with two(tmp_path) as (agent, _):
        with pytest.raises(sqlite3.Error):
            agent._execute_write("INSERT INTO nowhere VALUES (?)", (1,))
        assert agent.request_call_address("r1", CALL, deadline_s=1) == 1


def test_an_outage_goes_from_asked_to_over_and_a_supervisor_sees_its_own_runs_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with (
        contextlib.closing(ControlDatabase(path, manager="8000")) as lab,
        contextlib.closing(ControlDatabase(path)) as other,
    ):
        lab.request_run_setup("r1", plan={}, targets={})
        row = lab.request_outage("r1", "weather", "paused", for_s=2.5, fault={"fault": "service_paused"})
        assert lab.list_outages() == [
            OutageRow(row, "r1", "asked", "weather", "paused", 2.5, {"fault": "service_paused"})
        ]
        assert other.list_outages() == []
        lab.set_outage_state(row, "stopped")
        assert lab.get_outage_state(row) == ("stopped", "")
        lab.end_outages("r2")
        assert [each.ended for each in lab.list_outages()] == [False]
        lab.end_outages("r1")
        assert [each.ended for each in lab.list_outages()] == [True]
        lab.set_outage_state(row, "failed", error="no such process")
        assert (lab.get_outage_state(row), lab.list_outages()) == (("failed", "no such process"), [])
        lab.delete_earlier_runs()
        assert lab.get_outage_state(row)[0] == "failed"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("SQLITE_READONLY_DBMOVED", "it was deleted or moved in mid-run; start again, and it is made anew"),
        ("SQLITE_READONLY", "make it writable, then start again"),
        ("SQLITE_READONLY_DIRECTORY", "make it writable, then start again"),
        ("SQLITE_IOERR_READ", "see to its disk and start again"),
        ("SQLITE_LOCKED", "see to its disk and start again"),
        (None, "something emptied or replaced it; start again, and it is made anew"),
    ],
)
def test_an_error_of_the_shared_state_has_its_remedy(name: str | None, remedy: str) -> None:
    error = sqlite3.OperationalError("no use")
    if name is not None:
        error.sqlite_errorname = name
    assert (
        explain_database_error(Path("state.db"), error) == f"the shared state state.db cannot be used: no use; {remedy}"
    )


def test_a_plan_is_changed_in_mid_run_with_its_limits(tmp_path: Path) -> None:
    with two(tmp_path) as (agent, manager):
        assert (manager.get_plan("r1"), manager.get_plan_limits("r1")) == ({}, ())
        for run in ("r1", "r2"):
            agent.request_run_setup(run, plan={"seed": 7}, targets={})
        assert (manager.get_plan("r1"), manager.get_plan_limits("r1")) == ({"seed": 7}, ())
        agent.set_plan("r1", {"seed": 8, "limits": [{"faults": 3}]})
        assert (manager.get_plan("r1")["seed"], manager.get_plan_limits("r1")) == (8, (Limits(faults=3),))
        assert manager.get_plan("r2") == {"seed": 7}


@pytest.mark.parametrize("text", ["{", "[]", "null", b"\xff"])
def test_a_garbled_row_is_damage_of_the_database(text: str | bytes, tmp_path: Path) -> None:
    with two(tmp_path) as (agent, manager):
        agent.request_run_setup("r1", plan={}, targets={})
        row = agent.request_call_address("r1", CALL, deadline_s=1)
        agent._execute_write("UPDATE runs SET plan = ?", (text,))
        agent._execute_write("UPDATE calls SET answer = ?, state = 'armed'", (text,))
        for read in (lambda: manager.get_plan("r1"), manager.list_requested_runs, lambda: agent.get_call_answer(row)):
            with pytest.raises(sqlite3.DatabaseError, match=r"^a row is garbled"):
                read()


def test_a_manager_that_begins_forgets_its_own_runs_with_their_calls_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with (
        contextlib.closing(ControlDatabase(path, manager="1")) as one,
        contextlib.closing(ControlDatabase(path, manager="2")) as two_,
    ):
        for lab, run in ((one, "r1"), (two_, "r2")):
            lab.request_run_setup(run, plan={}, targets={})
            lab.request_call_address(run, CALL, deadline_s=1, occasion={"turn": 2})
            lab.request_outage(run, "weather", "killed", for_s=1.0, fault={})
            lab.end_run(run)
        assert (one.list_ended_runs(), two_.list_ended_runs()) == ({"r1"}, {"r2"})
        one.delete_earlier_runs()
        assert [(row.run, row.occasion) for row in two_.list_pending_calls(["r1", "r2"])] == [("r2", {"turn": 2})]
        assert (one.list_ended_runs(), two_.list_ended_runs(), len(two_.list_outages())) == (set(), {"r2"}, 1)


def test_a_file_of_another_version_is_made_anew_and_one_of_this_version_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.db"
    for version, kept in ((3, "asked"), (2, "missing")):
        with contextlib.closing(ControlDatabase(path)) as control:
            control.request_run_setup("r1", plan={}, targets={})
            control._db.execute(f"PRAGMA user_version = {version}")
        with contextlib.closing(ControlDatabase(path)) as control:
            assert control.get_run_state("r1")[0] == kept


def test_a_state_that_is_gone_or_can_have_no_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(sqlite3.OperationalError) as caught:
        ControlDatabase(tmp_path / "file" / "state.db")
    assert explain_database_error(Path("x"), caught.value).endswith(
        "; it should be a file in a folder that can be written"
    )
    path = tmp_path / "state.db"
    with contextlib.closing(ControlDatabase(path)) as control:
        control.check_file_in_place()
        path.rename(tmp_path / "moved")
        for _ in range(2):  # none there, then another
            with pytest.raises(sqlite3.OperationalError) as caught:
                control.check_file_in_place()
            assert "it was deleted or moved in mid-run" in explain_database_error(path, caught.value)
            path.touch()


def test_a_manager_makes_a_file_anew_that_opens_and_is_broken_inside(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with contextlib.closing(ControlDatabase(path)) as control:
        for n in range(200):
            control.request_call_address("r1", Call("weather", "t", "p1.r1", n, 1), deadline_s=1)
        size = control._db.execute("PRAGMA page_size").fetchone()[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: 4 * size] + bytes(2 * size) + whole[6 * size :])
    with contextlib.closing(ControlDatabase.open_fresh(path)) as control:
        assert control._db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        assert control.list_pending_calls(["r1"]) == []


def test_a_file_that_another_process_has_just_made_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    with contextlib.closing(ControlDatabase(path)) as control:
        control.request_run_setup("r1", plan={}, targets={})
        current = iter([False, True])
        monkeypatch.setattr(ControlDatabase, "_is_schema_current", lambda _: next(current))
        ControlDatabase(path).close()
        assert control.get_run_state("r1")[0] == "asked"
