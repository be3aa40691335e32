"""The log is the only output: whatever is killed, cut or written at once, what was logged is read back as it was."""

import errno
import gc
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoslab.base.clock import Clock
from chaoslab.core.events import (
    AttemptEvent,
    AttemptRef,
    CallStarted,
    Event,
    LabWarning,
    PromptStarted,
    Retry,
    RunFinished,
)
from chaoslab.record import lines as lines_module
from chaoslab.record.history import History
from chaoslab.record.lines import Record, parse_line
from chaoslab.record.log import BufferedEvent, Log, LogLost, MemoryLog, render_lines
from tests.event_parts import ENVELOPE, call_at, names, sample
from tests.waiting import DEADLINE_S


class Ticking:
    """A clock that moves by a second a look, from 100 s on."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        self.now_s += 1
        return self.now_s

    def utc(self) -> datetime:
        return datetime(2026, 6, 1, 9, 0, tzinfo=UTC)

    def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


def log(folder: Path, writer: str = "info", *, clock: Clock | None = None) -> Log:
    return Log(folder, writer, run="run", origin=100.0, clock=clock or Ticking())


def messages(history: History) -> list[str]:
    return [event.message for _, event in history.find_events(LabWarning)]


def test_a_kind_without_fields_is_a_line_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Event, "kinds", dict(Event.kinds))
    alone = type("Alone", (Event,), {})()
    at = AttemptRef(target="weather", request=1, attempt=1, request_id="id1")
    bare = type("Bare", (AttemptEvent,), {})(at=at)
    with log(tmp_path) as written:
        written.write(alone)
        written.write(bare, trial="p1.r1")
    lines = [json.loads(line) for line in (tmp_path / "info.log").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["alone", "bare"]
    assert lines[1]["target"] == "weather"


@pytest.mark.parametrize("name", Event.kinds)
def test_every_kind_is_read_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    event = sample(Event.kinds[name])
    with log(tmp_path) as written:
        written.write(event, trial="p3.r1")
    (record,) = History.read(tmp_path).records
    assert record == Record("2026-06-01T09:00:00.000000Z", 1.0, "run", "p3.r1", "info", 1, event)


@pytest.mark.parametrize("name", Event.kinds)
def test_no_kind_has_a_field_that_hides_the_envelope(name: str) -> None:
    assert not {*names(Event.kinds[name])} & ENVELOPE


def test_a_log_that_is_there_and_empty_begins_without_a_blank_line(tmp_path: Path) -> None:
    (tmp_path / "info.log").write_bytes(b"")
    with log(tmp_path) as written:
        written.write(LabWarning(message="first"))
    assert [record.seq for record in History.read(tmp_path).records] == [1]
    assert written.path.read_bytes().startswith(b"{")


SECRET = "gsk_(all.of+it)"


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        (f"the key {SECRET} is refused", "the key *** is refused"),
        (f"{SECRET[:11]}", "***"),
        (f"cut {SECRET[:8]}", "cut ***"),
        (f"{SECRET[:7]} is too short to be one", f"{SECRET[:7]} is too short to be one"),
        (f"{SECRET[:9]}! {SECRET}{SECRET}", "***! ******"),
        ("gsk_(allXof+it)", "***Xof+it)"),
        ("eightyes", "***"),
        ("eightye", "eightye"),
        ("seven77", "seven77"),
        ("nothing", "nothing"),
    ],
)
def test_a_secret_is_masked_and_so_is_its_beginning(said: str, logged: str, tmp_path: Path) -> None:
    with Log(tmp_path, "info", run="run", origin=0.0, secrets=(SECRET, "eightyes", "seven77", "")) as written:
        written.write(LabWarning(message=said))
    assert messages(History.read(tmp_path)) == [logged]


def test_what_names_an_attempt_stands_beside_the_other_fields_and_is_read_back_with_its_trial(tmp_path: Path) -> None:
    at = AttemptRef(trial="p3.r1", turn=2, target="weather", request=4, attempt=3, request_id="id4")
    with log(tmp_path) as written:
        written.write(CallStarted(at=at, tool="current_weather", arguments={"q": "Oslo"}), trial="p3.r1")
    data = json.loads((tmp_path / "info.log").read_text())
    named = {"target": "weather", "turn": 2, "request": 4, "attempt": 3, "request_id": "id4"}
    fields_of_it = {"tool": "current_weather", "arguments": {"q": "Oslo"}}
    assert {key: value for key, value in data.items() if key not in ENVELOPE} == named | fields_of_it
    (record,) = History.read(tmp_path).records
    assert isinstance(record.event, CallStarted)
    assert (record.event.at, record.event.at.trial) == (at, "p3.r1")
    earlier = {key: value for key, value in data.items() if key != "turn"}  # as version 3 of the log wrote it
    read = parse_line(json.dumps(earlier).encode())
    assert read is not None
    assert isinstance(read.event, CallStarted)
    assert (read.event.at.turn, read.event.target, read.event.request_id) == (1, "weather", "id4")


def test_the_kinds_are_those_of_the_design() -> None:
    promised = (
        "run_started prompt_started call_started fault_scheduled fault_armed fault_injected fault_witnessed "
        "fault_healed "
        "call_finished retry fallback usage effect budget prompt_finished run_finished"
    )
    assert set(promised.split()) <= set(Event.kinds)


def test_a_line_is_on_the_disk_before_write_returns(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        written.write(LabWarning(message="one"))
        assert messages(History.read(tmp_path)) == ["one"]
        written.write(LabWarning(message="two"))
        assert messages(History.read(tmp_path)) == ["one", "two"]


@pytest.mark.parametrize("cut", [1, 20, 60, -1])
def test_a_cut_last_line_is_counted_and_loses_nothing_else(cut: int, tmp_path: Path) -> None:
    with log(tmp_path) as written:
        written.write(LabWarning(message="whole"))
        written.write(LabWarning(message="häl"))
    data = written.path.read_bytes()
    first = data.index(b"\n") + 1
    written.path.write_bytes(data[: first + cut] if cut > 0 else data[:-2])
    history = History.read(tmp_path)
    assert messages(history) == ["whole"]
    assert (history.unreadable_counts, history.cut_lines) == ({"info.log": 1}, {"info.log": (2,)})
    assert history.notes == ("info.log: line 2 could not be read",)


def test_a_line_cut_within_a_character_is_counted(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        written.write(LabWarning(message="ä"))
    data = written.path.read_bytes()
    written.path.write_bytes(data[: data.index("ä".encode()) + 1])
    assert History.read(tmp_path).unreadable_counts == {"info.log": 1}


@given(st.integers(0, 500))
def test_a_writer_killed_anywhere_goes_on_and_the_half_line_never_becomes_an_event(kept: int) -> None:
    clock = Ticking()
    with TemporaryDirectory() as name:
        folder = Path(name)
        with log(folder, clock=clock) as written:
            for text in ("one", "two", "three"):
                written.write(LabWarning(message=text))
        data = written.path.read_bytes()[:kept]
        written.path.write_bytes(data)
        with log(folder, clock=clock) as resumed:
            resumed.write(LabWarning(message="four"))
            resumed.write(LabWarning(message="five"))
        history = History.read(folder)
    left = [line for line in data.split(b"\n") if line]
    whole = [json.loads(line)["message"] for line in left if line.endswith(b"}")]
    assert messages(history) == [*whole, "four", "five"]
    assert sum(history.unreadable_counts.values()) == len(left) - len(whole)
    sequence = [record.seq for record in history.records]
    assert sequence == sorted(set(sequence))
    assert sequence[-1] == len(left) + 2


def test_a_resumed_writer_goes_on_counting(tmp_path: Path) -> None:
    clock = Ticking()
    for text in ("one", "two"):
        with log(tmp_path, clock=clock) as written:
            written.write(LabWarning(message=text))
            written.write(LabWarning(message=text))
    assert [record.seq for record in History.read(tmp_path).records] == [1, 2, 3, 4]


def test_a_moment_is_told_to_the_microsecond(tmp_path: Path) -> None:
    class Fine(Ticking):
        def monotonic(self) -> float:
            return 100.123456789

    kept: list[BufferedEvent] = []
    MemoryLog("info", kept, clock=Fine(), origin=90.0).write(LabWarning(message="kept"))
    with log(tmp_path, clock=Fine()) as written:
        written.write(LabWarning(message="written"))
    assert [record.t for record in History.read(tmp_path).records] == [0.123457]
    assert [entry.t for entry in kept] == [10.123457]
    began = datetime(2026, 6, 1, 9, 0, tzinfo=UTC)
    (line,) = (json.loads(one) for one in render_lines(kept, run="run", began=began, after_s=0.1000002, seqs={}))
    assert (line["t"], line["ts"]) == (10.223457, "2026-06-01T09:00:10.223457Z")


def test_a_shelf_counts_from_its_clocks_own_beginning_unless_told_another() -> None:
    kept: list[BufferedEvent] = []
    MemoryLog("info", kept, clock=Ticking()).write(LabWarning(message="x"))
    MemoryLog("info", kept, clock=Ticking(), origin=100.0).write(LabWarning(message="x"))
    assert [entry.t for entry in kept] == [101.0, 1.0]


def test_what_a_shelf_kept_is_written_down_later_as_if_it_had_been_a_log(tmp_path: Path) -> None:
    kept: list[BufferedEvent] = []
    clock = Ticking()
    shelf, other = (
        MemoryLog("info", kept, clock=clock, origin=100.0),
        MemoryLog("search", kept, clock=clock, origin=100.0),
    )
    with shelf, other:
        shelf.write(LabWarning(message="one"), trial="p1.r1")
        other.write(LabWarning(message="not of this file"))
        shelf.write(RunFinished(received=2, processed=2, succeeded=2, duration_s=5.0))
    assert [(entry.is_of_kind(LabWarning), entry.is_of_kind(RunFinished)) for entry in kept] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    with log(tmp_path) as written:
        written.write(LabWarning(message="before"))
        own = [entry for entry in kept if entry.writer == "info"]
        written.write_buffered_events(own, began=datetime(2026, 6, 1, 9, 0, tzinfo=UTC), after_s=0.25)
        written.write(LabWarning(message="after"))
    records = sorted(History.read(tmp_path).records, key=lambda record: record.seq)
    assert [(r.ts[11:], r.t, r.trial, r.writer, r.seq) for r in records][1:3] == [
        ("09:00:01.250000Z", 1.25, "p1.r1", "info", 2),
        ("09:00:03.250000Z", 3.25, None, "info", 3),
    ]
    assert [record.event for record in records] == [
        LabWarning(message="before"),
        LabWarning(message="one"),
        RunFinished(received=2, processed=2, succeeded=2, duration_s=5.0),
        LabWarning(message="after"),
    ]
    assert records[-1].seq == 4


def test_events_merge_by_time_then_writer_then_sequence() -> None:
    def at(t: float, writer: str, seq: int) -> Record:
        return Record("", t, "run", None, writer, seq, LabWarning(message=f"{t} {writer} {seq}"))

    told = [at(1.0, "a", 1), at(1.0, "a", 2), at(1.0, "b", 1), at(1.5, "a", 3), at(2.0, "0", 1)]
    assert History(reversed(told)).records == told


def test_the_files_of_all_writers_become_one_story(tmp_path: Path) -> None:
    with log(tmp_path, "info") as one, log(tmp_path, "search") as two:
        two.write(LabWarning(message="search 1"))
        one.write(LabWarning(message="info 1"))
        one.write(LabWarning(message="info 2"))
        two.write(LabWarning(message="search 2"))
    assert messages(History.read(tmp_path)) == ["info 1", "search 1", "info 2", "search 2"]


def lines() -> Iterator[bytes]:
    good = {
        "ts": "",
        "t": 1,
        "run": "run",
        "trial": None,
        "writer": "info",
        "seq": 1,
        "kind": "warning",
        "message": "x",
    }
    yield json.dumps(good | {"kind": "of_a_later_version"}).encode()
    yield json.dumps({key: value for key, value in good.items() if key != "message"}).encode()
    yield json.dumps({key: value for key, value in good.items() if key != "seq"}).encode()
    yield json.dumps(good | {"t": "soon"}).encode()
    yield json.dumps(good | {"kind": ["warning"]}).encode()
    yield from (b"[]", b"7", b"null", b'"warning"', b"", b"Tool search not responding in time", b"\xff\xfe")


@pytest.mark.parametrize("line", list(lines()))
def test_a_foreign_line_is_no_event(line: bytes) -> None:
    assert parse_line(line) is None


def test_an_unknown_kind_and_an_unknown_field_disturb_no_reader(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        written.write(LabWarning(message="one"))
    (line,) = written.path.read_bytes().splitlines()
    later = json.dumps(json.loads(line) | {"kind": "of_a_later_version"}).encode()
    richer = json.dumps(json.loads(line) | {"message": "two", "mood": "good"}).encode()
    written.path.write_bytes(b"\n".join((line, later, b"", richer, b"")))
    assert messages(History.read(tmp_path)) == ["one", "two"]


def test_no_two_threads_are_ever_within_one_write(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)

    class Crossing(Ticking):
        def utc(self) -> datetime:
            """Lets another thread catch up within the write, if it can."""
            with suppress(threading.BrokenBarrierError):
                meeting.wait(0.2)
            return super().utc()

    with log(tmp_path, clock=Crossing()) as written:
        threads = [threading.Thread(target=written.write, args=(LabWarning(message=name),)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert meeting.broken  # the first waited in vain
    assert [record.seq for record in History.read(tmp_path).records] == [1, 2]


def test_no_line_is_written_while_others_are_copied(tmp_path: Path) -> None:
    """Lines that were numbered before the other's would have its numbers too."""
    with log(tmp_path) as written:
        other = threading.Thread(target=written.write, args=(LabWarning(message="written"),))

        def kept() -> Iterator[BufferedEvent]:
            other.start()
            other.join(0.1)  # in vain: it has to wait
            yield BufferedEvent.build("info", 1.0, None, LabWarning(message="copied"))

        written.write_buffered_events(kept(), began=datetime(2026, 6, 1, 9, 0, tzinfo=UTC), after_s=0.0)
        other.join(DEADLINE_S)
    told = [(record.seq, record.event) for record in History.read(tmp_path).records]
    assert sorted(told, key=lambda one: one[0]) == [
        (1, LabWarning(message="copied")),
        (2, LabWarning(message="written")),
    ]


@pytest.mark.parametrize("mends", [True, False])
def test_half_a_line_is_taken_back_and_where_that_fails_nothing_is_written_after_it(
    mends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(file: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(file, data[: len(data) // 2])

    def stuck(_file: int, _size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    real_write = os.write
    with log(tmp_path / "made" / "on the way") as written:
        written.write(LabWarning(message="whole"))
        whole = written.path.read_bytes()
        with monkeypatch.context() as disk:
            disk.setattr(os, "write", half)
            if not mends:
                disk.setattr(os, "ftruncate", stuck)
            with pytest.raises(LogLost, match="No space left" if mends else "Input/output error"):
                written.write(LabWarning(message="cut"))
        if mends:
            written.write(LabWarning(message="whole again"))
            assert messages(History.read(written.path.parent)) == ["whole", "whole again"]
            return
        with pytest.raises(LogLost, match="its last line is cut"):
            written.write(LabWarning(message="never"))
        left = written.path.read_bytes()
    assert left.startswith(whole)
    assert left.count(b"\n") == 1


def test_a_writer_of_whom_nothing_is_known_begins_at_its_first_line() -> None:
    kept = [BufferedEvent.build(writer, 0.0, None, LabWarning(message="x")) for writer in ("info", "search", "info")]
    seqs = {"search": 7}
    told = render_lines(kept, run="run", began=datetime(2026, 6, 1, 9, 0, tzinfo=UTC), after_s=0.0, seqs=seqs)
    assert [json.loads(line)["seq"] for line in told] == [1, 8, 2]
    assert seqs == {"info": 2, "search": 8}


def test_threads_may_share_a_log(tmp_path: Path) -> None:
    together = threading.Barrier(2)
    with log(tmp_path) as written:

        def write(name: str) -> None:
            together.wait(DEADLINE_S)
            for n in range(300):
                written.write(LabWarning(message=f"{name} {n} " + "x" * 200))

        threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    history = History.read(tmp_path)
    assert history.unreadable_counts == {}
    assert [record.seq for record in history.records] == list(range(1, 601))
    for name in ("a", "b"):
        own = [message.split()[1] for message in messages(history) if message.startswith(name)]
        assert own == [str(n) for n in range(300)]


@given(st.text())
@example("\ud83d alone, as a model may send it")
@example("\r\n\u2028\x85\0")
def test_any_text_stays_on_its_line_and_comes_back(text: str) -> None:
    with TemporaryDirectory() as name:
        with log(Path(name)) as written:
            written.write(LabWarning(message=text))
        assert messages(History.read(Path(name))) == [text]


def test_the_notes_on_a_history_are_its_readers_and_then_the_lines_that_were_lost_file_by_file() -> None:
    history = History([], cut={"search.log": [7], "info.log": [1, 4]}, notes=("read as version 3",))
    assert history.notes == (
        "read as version 3",
        "info.log: lines 1 and 4 could not be read",
        "search.log: line 7 could not be read",
    )


@pytest.mark.parametrize("collecting", [True, False])
def test_no_garbage_is_looked_for_while_logs_are_read_and_after_it_as_before(
    collecting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(line: bytes) -> Record | None:
        while_read.append(gc.isenabled())
        return parse_line(line)

    while_read: list[bool] = []
    monkeypatch.setattr(lines_module, "parse_line", parse)
    with log(tmp_path) as written:
        written.write(LabWarning(message="one"))
    held = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        History.read(tmp_path)
        assert (while_read, gc.isenabled()) == ([False], collecting)
    finally:
        (gc.enable if held else gc.disable)()


def test_a_folder_without_logs_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no logs in"):
        History.read(tmp_path)


def test_a_history_shows_itself_with_its_run_its_trials_and_how_many_events_it_holds() -> None:
    def at(t: float, trial: str) -> Record:
        return Record("", t, "20260601-1", trial, "info", 1, PromptStarted(prompt_index=1, prompt="one"))

    assert repr(History([])) == "History(run none: 0 trials, 0 events)"
    assert repr(History([at(1.0, "p1.r1")])) == "History(run 20260601-1: 1 trial, 1 events)"
    assert repr(History([at(1.0, "p1.r1"), at(2.0, "p2.r1")])) == "History(run 20260601-1: 2 trials, 2 events)"


def test_a_history_is_asked_by_kind_and_trial() -> None:
    retry = Retry(**call_at("search", "search_web", 1, 1, "id"), wait_s=0.5, reason="timed_out")
    told: list[tuple[float, str | None, Event]] = [
        (3.0, "p1.r1", retry),
        (2.0, "p1.r1", PromptStarted(prompt_index=1, prompt="one")),
        (1.0, "p2.r1", PromptStarted(prompt_index=2, prompt="two")),
        (4.0, "p2.r1", retry),
        (5.0, None, RunFinished(received=2, processed=2, succeeded=2, duration_s=5.0)),
    ]
    history = History(Record("", t, "run", trial, "info", n, event) for n, (t, trial, event) in enumerate(told))
    assert history.trials == ["p2.r1", "p1.r1"]
    assert [record.t for record in history] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [record.t for record, _ in history.find_events(Retry)] == [3.0, 4.0]
    assert [record.t for record, _ in history.find_events(Retry, trial="p2.r1")] == [4.0]
    assert history.find_first_event(RunFinished) == RunFinished(received=2, processed=2, succeeded=2, duration_s=5.0)
    assert history.find_first_event(LabWarning) is None


def test_what_a_kind_leaves_out_has_a_default_that_its_log_shows(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        written.write(PromptStarted(prompt_index=1, prompt="one"))
    data = json.loads(written.path.read_bytes())
    shown = asdict(PromptStarted(prompt_index=1, prompt="one"))
    assert {name: shown.pop(name) for name in PromptStarted.left_out} == dict.fromkeys(PromptStarted.left_out)
    assert {key: value for key, value in data.items() if key not in ENVELOPE} == shown
    assert all(f.default is not MISSING or f.default_factory is not MISSING for f in fields(PromptStarted)[2:])
