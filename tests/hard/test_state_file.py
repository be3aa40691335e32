"""The state that agent and manager share, locked, lost, overwritten, full.

One line and an end, never a run that only seems to go on.
"""

import asyncio
import contextlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.core.events import FaultArmed, FaultHealed, RunFinished
from chaoslab.core.exchange import Call
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.wire.control import BUSY_S, VERSION, ControlDatabase, explain_database_error
from chaoslab.wire.lanes import LabDown
from tests.cli_parts import Typed, free_base, prompts
from tests.disk_parts import Rest, eventually, limit, read_only, rest_of_the_lab, small_disk
from tests.seams.lab_parts import bench, embedded, said, site
from tests.sure import sure
from tests.waiting import HUNG_S

CALL = Call("weather", "current_weather", "p1.r1", 1, 1, "id1")
SLOW = Plan(1, (Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.01, "stream": "downstream"}),), ("weather",)),))
GARBAGE = bytes(range(1, 256)) * 200


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with rest_of_the_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@contextlib.contextmanager
def held(path: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """The file, locked by another process until that is told to end."""
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None); db.execute(sys.argv[2]); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        (sys.executable, "-c", code, str(path), how), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert sure(other.stdout).readline() == "held\n"
        try:
            yield other
        finally:
            other.kill()


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(GARBAGE)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 512 * 512)


def replaced(path: Path) -> None:
    other = path.with_name("other.db")
    other.write_bytes(GARBAGE)
    other.replace(path)


def swapped_for_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], None]] = [Path.unlink, overwritten, emptied, cut, replaced, swapped_for_a_folder]


def works(folder: Path) -> bool:
    """True if a run over this folder's state begins and arms a fault."""

    async def run(url: str, address: str) -> str:
        async with bench(folder, url, SLOW, {"weather": address}) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                _, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
                return answer.state

    with embedded() as url, site(lambda _: said({})) as weather:
        return asyncio.run(run(url, weather.address)) == "armed"


# In mid-run.


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_no_call_goes_out_over_a_state_that_is_lost(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    async def run(url: str, address: str) -> None:
        async with bench(tmp_path, url, SLOW, {"weather": address}) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)) as episode:
                assert (await lab.get(episode.requests.find_or_create("weather", "t", {}))).status_code == 200
                lab.history()
                damage(lab.state)
                with pytest.raises(LabDown, match=f"the shared state {re.escape(str(lab.state))} cannot be used: "):
                    await lab.get(episode.requests.find_or_create("weather", "t", {"again": True}))
            eventually(lambda: bool(lab.manager.broken))
            assert f"{lab.state} cannot be used: " in lab.manager.health().trouble
            assert "start again" in lab.manager.health().trouble

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))
        assert len(weather.heard) == 1
    if damage is swapped_for_a_folder:
        (tmp_path / "state.db").rmdir()
    assert works(tmp_path)


def test_a_state_that_is_lost_in_mid_run_ends_it_in_one_line(tmp_path: Path, rest: Rest) -> None:
    state = tmp_path / "state.db"
    with rest.working(state) as work:
        work.after(2)
        state.unlink()
        code, words = work.ended()
        assert work.manager.wait(HUNG_S) == 3
        managers = sure(work.manager.stderr).read()
    assert code == 3
    assert words.startswith(f"the lab is down: the shared state {state} cannot be used: ")
    assert managers.startswith(f"the proxy manager cannot go on: the shared state {state} cannot be used: ")
    assert managers.count("\n") == 1
    ended = sure(work.history().find_first_event(RunFinished))
    assert (ended.reason, 2 <= ended.processed < ended.received) == ("lab_down", True)


def test_a_state_that_is_locked_for_a_second_holds_the_run_up_and_no_more(tmp_path: Path, rest: Rest) -> None:
    rest.prompts.with_name("few.json").write_text('["What is 2 times 3?", "What is 4 times 5?", "What is 6 times 7?"]')
    few = Rest(rest.world, rest.prompts.with_name("few.json"))

    def is_brief(state: Path) -> bool:
        """A run whose state is locked for a second. False: on a busy machine it was for longer than runs wait, or
        the run had ended before."""
        with few.working(state) as work:
            if not work.goes_on_after(1):
                return False
            began_s = system.monotonic()
            with held(state, "BEGIN EXCLUSIVE") as other, contextlib.suppress(subprocess.TimeoutExpired):
                other.wait(1.0)
            if system.monotonic() - began_s >= BUSY_S:
                return False
            assert work.ended() == (0, "")
        history = work.history()
        armed = list(history.find_events(FaultArmed))
        assert armed
        assert [e.witnessed for _, e in history.find_events(FaultHealed)] == [True] * len(armed)
        return True

    assert any(is_brief(tmp_path / f"{n}.db") for n in range(30))


def test_a_state_that_stays_locked_is_said_by_its_name(tmp_path: Path, rest: Rest) -> None:
    state = tmp_path / "state.db"
    with rest.working(state) as work:
        work.after(1)
        with held(state, "BEGIN IMMEDIATE"):
            code, words = work.ended()
    assert code == 3
    assert words == (
        f"the lab is down: the shared state {state} cannot be used: database is locked; "
        "end what holds it and start again\n"
    )
    assert works(tmp_path)


def test_a_state_on_a_full_disk_ends_the_run(tmp_path: Path, rest: Rest) -> None:
    (tmp_path / "state").mkdir()
    state = tmp_path / "state" / "state.db"
    with small_disk(tmp_path / "state", kib=40), rest.working(state) as work:
        code, words = work.ended()
        assert (code, words.count("\n")) == (3, 1)
        assert f"the shared state {state} cannot be used: " in words
        assert words.endswith(" is full; make room and start again\n")
        ended = sure(work.history().find_first_event(RunFinished))
        assert ended.reason == "lab_down"
        assert ended.processed > 0
    assert works(tmp_path)


def test_a_manager_whose_files_may_not_grow_says_so_and_ends_the_run(tmp_path: Path, rest: Rest) -> None:
    with rest.working(tmp_path / "state.db") as work:
        work.after(1)
        limit(work.manager, 1024)
        code, words = work.ended()
    assert code == 3
    assert re.search(r"state\.db cannot be used: disk I/O error; see to its disk|manager\.log cannot be written", words)
    work.history()


# Before the start.


def damaged_in_the_middle(path: Path) -> None:
    with contextlib.closing(ControlDatabase(path)) as door:
        for request in range(60):
            door.request_call_address("r1", Call("weather", "t", "p1.r1", request, 1), deadline_s=1)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(GARBAGE[: size // 2])


def damaged_where_nothing_is_yet(path: Path) -> None:
    ControlDatabase(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'pending'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(GARBAGE[:size])


def of_another_version(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE calls (something TEXT)")
        db.execute(f"PRAGMA user_version = {VERSION + 6}")


def garbage(path: Path) -> None:
    path.write_bytes(GARBAGE)


@pytest.mark.parametrize(
    "before", [garbage, damaged_in_the_middle, damaged_where_nothing_is_yet, of_another_version, emptied]
)
def test_what_is_found_at_the_start_is_made_anew(tmp_path: Path, before: Callable[[Path], None]) -> None:
    before(tmp_path / "state.db")
    assert works(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> Iterator[Callable[[], str]]:
    """`chaoslab lab` here, which must refuse to begin in one line; that line."""
    arguments = ["lab", f"BASE_PORT={free_base()}", prompts(tmp_path, ["What is 17 times 24?"])]
    monkeypatch.chdir(tmp_path)

    def refused() -> str:
        return typed.refused(*arguments)

    yield refused
    assert not (tmp_path / "logs").exists()


def test_a_lab_whose_state_is_a_folder_is_not_started(tmp_path: Path, lab: Callable[[], str]) -> None:
    (tmp_path / "state" / "state.db").mkdir(parents=True)
    assert lab() == "state/state.db: it should be a file: delete it\n"


def test_a_lab_whose_state_is_locked_is_not_started(tmp_path: Path, lab: Callable[[], str]) -> None:
    ControlDatabase(tmp_path / "state" / "state.db").close()
    with held(tmp_path / "state" / "state.db", "BEGIN EXCLUSIVE"):
        words = lab()
    assert words == (
        "the shared state state/state.db cannot be used: database is locked; end what holds it and start again\n"
    )


@pytest.mark.parametrize("place", ["state", "state/state.db"])
def test_a_lab_whose_state_is_read_only_is_not_started(tmp_path: Path, lab: Callable[[], str], place: str) -> None:
    ControlDatabase(tmp_path / "state" / "state.db").close()
    with read_only(tmp_path / place):
        words = lab()
    assert words.startswith("the shared state state/state.db cannot be used: ")
    assert "writ" in words


# The rows themselves.


def test_a_row_that_something_wrote_over_is_damage_like_any_other(tmp_path: Path) -> None:
    async def run(url: str, address: str) -> None:
        async with bench(tmp_path, url, Plan(1), {"weather": address}) as lab:
            with contextlib.closing(sqlite3.connect(lab.state)) as db, db:
                db.execute(
                    "CREATE TRIGGER spoil AFTER UPDATE OF answer ON calls BEGIN "
                    "UPDATE calls SET answer = 'x' WHERE id = NEW.id; END"
                )
            with pytest.raises(LabDown, match=r"state\.db cannot be used: a row is garbled"):
                await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)

    with embedded() as url, site(lambda _: said({})) as weather:
        asyncio.run(run(url, weather.address))


def test_every_trouble_has_its_remedy(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with pytest.raises(sqlite3.Error) as nowhere:
        ControlDatabase(Path("/proc/nowhere/state.db"))
    assert "it should be a file in a folder that can be written" in explain_database_error(path, nowhere.value)
    path.write_bytes(GARBAGE)
    with pytest.raises(sqlite3.Error) as broken:
        ControlDatabase(path)
    assert explain_database_error(path, broken.value) == (
        f"the shared state {path} cannot be used: file is not a database; something wrote over it; "
        "start again, and it is made anew"
    )
