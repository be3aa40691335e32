"""A run's folder is what its processes agree on; strangers make none."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chaoslab.base.clock import format_iso
from chaoslab.base.identity import ALONE
from chaoslab.core.events import LabWarning
from chaoslab.record.history import History
from chaoslab.record.runs import (
    REVISION_MAX,
    Run,
    group_folders_by_name,
    list_runs_newest_first,
    parse_start_time,
    read_rerun_command,
    read_revision,
    write_rerun_command,
)
from tests.waiting import DEADLINE_S

NOW = "2026-06-01T09:00:00Z"


class Still:
    """A clock that stands, so that two runs begin in one second."""

    def monotonic(self) -> float:
        return 50.0

    def utc(self) -> datetime:
        return datetime(2026, 11, 21, 9, 15, tzinfo=UTC)

    def sleep(self, delay_s: float) -> None:
        raise AssertionError(f"nobody waits {delay_s} s here")

    async def sleep_async(self, delay_s: float) -> None:
        self.sleep(delay_s)


def test_a_run_is_named_by_the_wall_clock_and_every_process_opens_the_same(tmp_path: Path) -> None:
    made = Run.create(tmp_path / "logs", now=NOW, clock=Still())
    assert made == Run("20261121-091500", tmp_path / "logs" / "20261121-091500", 50.0, NOW)
    assert Run.open(tmp_path / "logs", made.name, now="ignored") == made
    data = json.loads((made.folder / "run.json").read_text())
    assert data["started"] == format_iso(Still().utc()) == "2026-11-21T09:15:00.000000Z"


def test_runs_of_one_second_have_folders_of_their_own_and_latest_names_the_one_that_began_last(tmp_path: Path) -> None:
    runs = [Run.create(tmp_path, now=NOW, clock=Still()) for _ in range(3)]
    names = [run.name for run in runs]
    assert names == ["20261121-091500", "20261121-091500-2", "20261121-091500-3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    runs[0].link_as_latest()
    runs[1].link_as_latest()
    assert (tmp_path / "latest").resolve() == (tmp_path / names[1]).resolve()
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "latest"]


def test_latest_is_renamed_over_a_dangling_one(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("gone")
    made = Run.create(tmp_path, now=NOW)
    made.link_as_latest()
    assert (tmp_path / "latest").readlink() == Path(made.name)


@pytest.mark.parametrize("name", ["20261121-091500", "", "../logs2", "latest"])
def test_a_run_that_nobody_made_is_refused_and_makes_no_folder(name: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    with pytest.raises(LookupError, match="no run is called"):
        Run.open(logs, name)
    assert list(tmp_path.iterdir()) == [logs]
    assert list(logs.iterdir()) == []


def test_a_call_made_by_hand_has_the_run_alone_made_on_demand_and_then_kept(tmp_path: Path) -> None:
    first = Run.open(tmp_path / "logs", ALONE, now=NOW, clock=Still())
    assert (first.name, first.now, first.origin) == (ALONE, NOW, 50.0)
    assert Run.open(tmp_path / "logs", ALONE, now="2030-01-01T00:00:00Z") == first


def test_many_may_open_alone_at_once(tmp_path: Path) -> None:
    together, opened = threading.Barrier(16), list[Run]()

    def call() -> None:
        together.wait(DEADLINE_S)
        opened.append(Run.open(tmp_path, ALONE, now=NOW))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert len(opened) == 16
    assert [path.name for path in (tmp_path / ALONE).iterdir()] == ["run.json"]


def test_a_runs_log_counts_from_the_runs_origin(tmp_path: Path) -> None:
    run = Run("made", tmp_path / "made", 20.0, NOW)
    with run.open_log("search", clock=Still()) as log:
        log.write(LabWarning(message="hello"))
    (record,) = History.read(run.folder).records
    assert (record.t, record.run, record.writer) == (30.0, "made", "search")


@pytest.mark.parametrize(
    ("text", "revision", "command"),
    [
        ('{"revision": "abc", "again": ["run", "X=1"]}', "abc", ["run", "X=1"]), ("{}", "", []), ("[]", "", []),
        ("{", "", []), ('{"revision": 3, "again": "run"}', "", []), ('{"again": ["run", 3]}', "", ["run"]),
        (json.dumps({"revision": "a" * 99}), "a" * REVISION_MAX, []),
    ],
)  # fmt: skip
def test_what_run_json_tells_is_read_as_far_as_it_can_be(
    text: str, revision: str, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_text(text)
    assert (read_revision(tmp_path), read_rerun_command(tmp_path)) == (revision, command)


def test_a_command_is_noted_beside_what_run_json_tells(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW, clock=Still())
    write_rerun_command(run.folder, ("test", "-n", "3"))
    assert read_rerun_command(run.folder) == ["test", "-n", "3"]
    assert Run.open(tmp_path, run.name) == run


def test_folders_are_ordered_by_the_moments_in_their_names(tmp_path: Path) -> None:
    stamps = ["20261121-091500", "20261121-091500-2", "20261121-091500-10", "20261122-000000", "20261199-091500"]
    for name in (*stamps, "zz", "alone"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"name": "one" if name in stamps[:3] else name}))
    (tmp_path / "alone" / "run.json").write_text('{"name": 3}')
    (tmp_path / "latest").symlink_to(stamps[3])
    (tmp_path / "empty").mkdir()
    (tmp_path / "plain").write_text("")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "info.log").write_text("")
    assert [folder.name for folder in list_runs_newest_first(tmp_path)] == [*reversed(stamps), "zz", "logs", "alone"]
    found = {name: [folder.name for folder in folders] for name, folders in group_folders_by_name(tmp_path).items()}
    assert found == {"one": stamps[:3], stamps[3]: [stamps[3]], stamps[4]: [stamps[4]], "zz": ["zz"]}
    assert [parse_start_time(tmp_path / name) for name in ("20261121-091500-2", stamps[4], "zz",
        "20261121-091500-1000")] == [
        datetime(2026, 11, 21, 9, 15, tzinfo=UTC), None, None, datetime(2026, 11, 21, 9, 15, tzinfo=UTC)
    ]  # fmt: skip
