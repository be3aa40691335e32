"""Logs that cannot be written, or not to the end.

Nothing that was said to be written is lost, and nobody goes on without a record.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest

from chaoslab.base.clock import system
from chaoslab.base.dice import Dice
from chaoslab.base.identity import TrialId
from chaoslab.cli import main
from chaoslab.core.events import (
    Effect,
    FaultArmed,
    FaultWitnessed,
    LabWarning,
    PromptFinished,
    PromptStarted,
    RunFinished,
    RunStarted,
)
from chaoslab.core.exchange import Call
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.core.service_spec import TROUBLE
from chaoslab.flask_tools import messaging as messaging_desk
from chaoslab.flask_tools.app import create_app, make_app
from chaoslab.flask_tools.ledger import FolderRunStore
from chaoslab.flask_tools.service_module import Answer, Route, ServiceModule, ServiceRequest
from chaoslab.lab.launch import print_end_report
from chaoslab.record.history import History
from chaoslab.record.log import Log, LogLost
from chaoslab.record.runs import Run
from chaoslab.reports import charts
from chaoslab.reports.charts.success_rate import success_rate
from chaoslab.reports.charts.throughput import throughput
from chaoslab.seams.http.tags import TrialState
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import LabDown
from tests import warm
from tests.cli_parts import command, environment, prompts
from tests.disk_parts import NOW, Rest, free_base, limit, read_only, rest_of_the_lab, small_disk
from tests.event_parts import prompt_finished
from tests.seams.lab_parts import Bench, bench, embedded, said, site
from tests.waiting import HUNG_S

SLOW = Plan(1, (Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.01, "stream": "downstream"}),), ("weather",)),))
SEND = "/api/chat.postMessage"


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with rest_of_the_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def log(folder: Path, writer: str = "info") -> Log:
    return Log(folder, writer, run="run", origin=system.monotonic())


def messages(folder: Path) -> list[str]:
    return [event.message for _, event in History.read(folder).find_events(LabWarning)]


def fill(folder: Path) -> Path:
    """Takes all the room that is left on the folder's disk."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return ballast


# One log.


def write_on(written: Log, taken: Iterator[int]) -> NoReturn:
    """Until it fails; the next of `taken` is then how many lines were taken."""
    written.write(LabWarning(message="x" * 1000))
    while True:
        next(taken)
        written.write(LabWarning(message="x" * 1000))


def test_a_full_disk_takes_whole_lines_or_none_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path, kib=64), log(tmp_path) as written:
        fill(tmp_path)
        taken = count()
        with pytest.raises(LogLost) as lost:
            write_on(written, taken)
        assert str(lost.value) == (
            f"{tmp_path / 'info.log'} cannot be written (No space left on device): make room and start again"
        )
        assert written.lost is lost.value
        for _ in range(3):
            with pytest.raises(LogLost):
                written.write(LabWarning(message="y" * 4096))
        held = next(taken)
        assert (len(messages(tmp_path)), History.read(tmp_path).unreadable_counts) == (held, {})
        (tmp_path / "ballast").unlink()
        written.write(LabWarning(message="room again"))
        history = History.read(tmp_path)
        assert messages(tmp_path)[-1] == "room again"
        assert ([record.seq for record in history.records], history.unreadable_counts) == (list(range(1, held + 2)), {})


WRITER = """
import resource, signal, sys
from pathlib import Path
from chaoslab.core.events import LabWarning
from chaoslab.record.log import Log, LogLost
if sys.argv[2] == "killed":
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
if len(sys.argv) > 4:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]),) * 2)
log = Log(Path(sys.argv[1]), "info", run="run", origin=0.0)
n = 0
while True:
    try:
        log.write(LabWarning(message=f"{n} " + "x" * int(sys.argv[3])))
    except LogLost as lost:
        print(lost, flush=True)
        break
    print(n, flush=True)
    n += 1
"""


@contextlib.contextmanager
def writer(folder: Path, how: str, *numbers: int) -> Iterator[subprocess.Popen[str]]:
    """A process that writes lines as fast as it can, and says the number of each that it takes for written.

    `numbers`: how wide they are, and how many bytes the file may hold.
    """
    python = sys.executable if how == "killed" else warm.python()  # a warm start does not end by this signal
    with subprocess.Popen(
        (python, "-c", WRITER, str(folder), how, *map(str, numbers)), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("room", [7, 100, 3000])
def test_a_limit_of_a_files_size_cuts_no_line(tmp_path: Path, room: int) -> None:
    with writer(tmp_path, "limited", 200, 20_000 + room) as process:
        *taken, lost = process.communicate(timeout=HUNG_S)[0].splitlines()
    assert lost.endswith(
        "info.log cannot be written (File too large): raise the limit of a file's size and start again"
    )
    assert [message.split()[0] for message in messages(tmp_path)] == taken
    assert History.read(tmp_path).unreadable_counts == {}


def test_a_writer_killed_within_a_line_loses_that_line_alone(tmp_path: Path) -> None:
    with writer(tmp_path, "killed", 1000, 50_000) as process:
        taken = process.communicate(timeout=HUNG_S)[0].splitlines()
        assert process.returncode == -signal.SIGXFSZ
    data = (tmp_path / "info.log").read_bytes()
    assert (len(data), data[-1:]) == (50_000, b"x")
    assert [message.split()[0] for message in messages(tmp_path)] == taken
    assert History.read(tmp_path).unreadable_counts == {"info.log": 1}
    with log(tmp_path) as resumed:
        resumed.write(LabWarning(message="and on"))
    history = History.read(tmp_path)
    assert (len(messages(tmp_path)), history.unreadable_counts) == (len(taken) + 1, {"info.log": 1})
    assert max(record.seq for record in history.records) == len(taken) + 2


def test_writers_killed_at_any_moment_lose_nothing_that_they_said_was_written(tmp_path: Path) -> None:
    dice, said_written = Dice(7, "killed"), 0
    for _ in range(8):
        with writer(tmp_path, "whole", 300_000) as process:
            assert process.stdout is not None
            for _ in range(dice.pick(range(1, 13))):
                assert process.stdout.readline()
                said_written += 1
            process.send_signal(signal.SIGKILL)
            said_written += len(process.stdout.read().splitlines())
        history = History.read(tmp_path)
        read = list(history.find_events(LabWarning))
        assert said_written <= len(read) <= said_written + 8
        assert all(len(event.message) > 300_000 for _, event in read)
        assert len({record.seq for record, _ in read}) == len(read)
        said_written = len(read)


def test_a_log_that_was_deleted_is_not_written_into_nothing(tmp_path: Path) -> None:
    with log(tmp_path / "run") as written:
        written.write(LabWarning(message="one"))
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(
            LogLost, match=r"info\.log cannot be written \(it was deleted\): leave a run's folder alone"
        ):
            written.write(LabWarning(message="two"))


def test_a_log_that_was_closed_is_written_into_no_file_that_has_its_number_now(tmp_path: Path) -> None:
    """As by a request that a gateway still answers when its run has ended."""
    with log(tmp_path / "run") as written, (tmp_path / "other").open("wb") as other:
        number = written._file.fileno()
        written.close()
        assert os.dup2(other.fileno(), number) == number
        try:
            with pytest.raises(LogLost, match=r"info\.log cannot be written \(Bad file descriptor\)"):
                written.write(LabWarning(message="late"))
        finally:
            os.close(number)
    assert (tmp_path / "other").read_bytes() == b""


def test_a_folder_called_like_a_log_disturbs_no_reader(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        written.write(LabWarning(message="one"))
    (tmp_path / "search.log").mkdir()
    assert messages(tmp_path) == ["one"]


# A service's ledger.


@contextlib.contextmanager
def messaging(logs: Path) -> Iterator[tuple[Run, Callable[[str], tuple[int, str]], Callable[[], list[str]]]]:
    """A run, what sends a message under a key (status, the service's trouble), and the texts on the ledger."""
    run = Run.create(logs, now=NOW)
    app = create_app("messaging", logs=logs, now=NOW)

    def send(key: str) -> tuple[int, str]:
        reply = app.test_client().post(
            SEND,
            json={"channel": "Ana", "text": f"{key} " + "x" * 700},
            headers={"X-Trial": f"{run.name}.p1.r1", "Idempotency-Key": key},
        )
        return reply.status_code, reply.headers.get(TROUBLE, "")

    def sent() -> list[str]:
        return [event.request_id for _, event in History.read(run.folder).find_events(Effect)]

    try:
        yield run, send, sent
    finally:
        app.extensions["ledger"].close()


def test_what_a_service_cannot_write_down_it_has_not_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with messaging(tmp_path) as (run, send, sent), small_disk(run.folder, kib=64):
        assert send("first") == (200, "")
        ballast = fill(run.folder)
        codes: dict[str, int] = {}
        while 500 not in codes.values():
            codes[f"k{len(codes)}"], trouble = send(f"k{len(codes)}")
        assert trouble.startswith(
            f"messaging: {run.folder / 'messaging.log'} cannot be written (No space left on device)"
        )
        assert capsys.readouterr().err == trouble + "\n"
        *done, lost = codes
        assert sent() == ["first", *done]
        assert send("first") == (200, "")  # what was done once is still known
        ballast.unlink()
        assert send(lost) == (200, "")
        assert send(lost) == (200, "")
        assert sent() == ["first", *done, lost]


def test_a_service_whose_ledger_was_deleted_does_nothing(tmp_path: Path) -> None:
    with messaging(tmp_path) as (run, send, _sent):
        assert send("first") == (200, "")
        shutil.rmtree(run.folder)
        assert send("second") == (500, _trouble(run, "it was deleted", "leave a run's folder alone while it goes on"))
        assert send("third")[0] == 400  # there is no such run any more
        assert not run.folder.exists()


def test_a_service_whose_ledger_is_a_folder_does_nothing(tmp_path: Path) -> None:
    with messaging(tmp_path) as (run, send, _sent):
        (run.folder / "messaging.log").mkdir()
        assert send("first") == (500, f"messaging: {run.folder / 'messaging.log'} cannot be written (Is a directory)")


def test_a_service_that_crashes_and_cannot_say_so_is_in_trouble(tmp_path: Path) -> None:
    run = Run.create(tmp_path, now=NOW)

    def crash(_ask: ServiceRequest) -> Answer:
        shutil.rmtree(run.folder)
        raise ZeroDivisionError

    desk = ServiceModule(
        messaging_desk.SERVICE, (Route("GET", "/boom", "boom", crash),), messaging_desk.make_error_body, ()
    )
    app = make_app(desk, FolderRunStore(tmp_path, NOW))
    reply = app.test_client().get("/boom", headers={"X-Trial": f"{run.name}.p1.r1"})
    app.extensions["ledger"].close()
    assert (reply.status_code, "it was deleted" in reply.headers[TROUBLE]) == (500, True)


def _trouble(run: Run, why: str, remedy: str) -> str:
    return f"messaging: {run.folder / 'messaging.log'} cannot be written ({why}): {remedy} and start again"


# The manager.


async def two_more(lab: Bench, episode: TrialState) -> None:
    """One that meets the fault, and one that nothing covers."""
    await lab.get(episode.requests.find_or_create("weather", "t", {"n": 2}))
    lab.history()
    await lab.seam.lanes.request_lane(Call("movies", "search_movies", "p1.r1", 1, 1), deadline_s=2.0)


def with_lab(folder: Path, story: Callable[[Bench], None]) -> tuple[Path, int]:
    """A run that has met its fault once, on a small disk; then the story, and two calls more of which none may end
    well.

    Where its logs are kept, and how many calls went out after the story.
    """

    async def run(url: str, address: str) -> tuple[Path, int]:
        async with bench(folder, url, SLOW, {"weather": address}) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)) as episode:
                assert (await lab.get(episode.requests.find_or_create("weather", "t", {"n": 1}))).status_code == 200
                lab.history()
                story(lab)
                with pytest.raises(LabDown, match=r"manager\.log cannot be written \("):
                    await two_more(lab, episode)
            assert lab.lanes_left() == []
            assert lab.manager.status()["lanes"] == []
            with contextlib.closing(ControlDatabase(lab.state)) as control:
                assert control.get_run_state(lab.run.name)[0] == "failed"
            assert lab.manager.broken == "", "other runs may still be served"
            kept = folder.with_name(f"{folder.name}.kept")
            shutil.copytree(lab.run.folder, kept)
            return kept, len(weather.heard) - 1

    with small_disk(folder, kib=256), embedded() as url, site(lambda _: said({})) as weather:
        return asyncio.run(run(url, weather.address))


@pytest.mark.parametrize(
    ("room", "kinds"), [(0, []), (1, ["fault_scheduled"]), (2, ["fault_scheduled", "fault_armed"])]
)
def test_a_fault_that_cannot_be_written_down_is_not_left_armed(tmp_path: Path, room: int, kinds: list[str]) -> None:
    """`room`: how many more lines the disk takes; the next one fits by half."""

    def story(lab: Bench) -> None:
        path = lab.run.folder / "manager.log"
        data = path.read_bytes()
        before[:] = [record.event.kind for record in History.read(lab.run.folder).records if record.writer == "manager"]
        lines = [len(line) + 1 for line in data.split(b"\n")]
        wanted = sum(lines[:room]) + lines[room] // 2
        with path.open("ab") as file:
            file.write(b"\n" * (-(len(data) + wanted) % 4096))  # empty lines are no events
        fill(tmp_path)

    before: list[str] = []
    folder, went_out = with_lab(tmp_path, story)
    assert len(before) == 5
    records = [record for record in History.read(folder).records if record.writer == "manager"]
    assert [record.event.kind for record in records[5:]] == kinds
    assert went_out == (room == 2)


def test_a_manager_whose_log_was_deleted_arms_nothing(tmp_path: Path) -> None:
    _, went_out = with_lab(tmp_path, lambda lab: (lab.run.folder / "manager.log").unlink())
    assert went_out == 0


# A run, as processes.


def test_a_run_whose_disk_is_full_ends_and_what_it_logged_is_there(tmp_path: Path, rest: Rest) -> None:
    run = rest.run()
    with small_disk(run.folder, kib=96):
        with rest.working(tmp_path / "state.db", run=run) as work:
            code, words = work.ended()
        assert code == 3
        assert words.startswith(f"the lab is down: {run.folder}/")
        assert words.endswith(".log cannot be written (No space left on device): make room and start again\n")
        history = work.history()
        assert history.unreadable_counts == {}
        assert len(list(history.find_events(PromptFinished))) > 3
        met = {(r.trial, e.request, e.attempt) for r, e in history.find_events(FaultWitnessed)}
        assert met <= {(r.trial, e.request, e.attempt) for r, e in history.find_events(FaultArmed)}


def test_an_agent_whose_log_may_not_grow_calls_nobody_any_more(tmp_path: Path, rest: Rest) -> None:
    with rest.working(tmp_path / "state.db") as work:
        work.after(1)
        limit(work.agent, 4096)
        code, words = work.ended()
        log = work.run.folder / "info.log"
        assert (code, words[:30]) == (3, f"the lab is down: {log}"[:30])
        assert "(File too large): raise the limit of a file's size and start again" in words
        work.history()


def test_a_run_whose_folder_is_deleted_ends(tmp_path: Path, rest: Rest) -> None:
    with rest.working(tmp_path / "state.db") as work:
        work.after(1)
        shutil.rmtree(work.run.folder)
        code, words = work.ended()
    assert code == 3
    assert words.startswith("the lab is down: ")
    assert words.endswith(
        ".log cannot be written (it was deleted): leave a run's folder alone while it goes on and start again\n"
    )
    assert not work.run.folder.exists()
    work.run.folder.mkdir()  # services know runs by name, and the next test's may begin in the same second


def test_a_service_that_cannot_write_ends_the_run(tmp_path: Path, rest: Rest) -> None:
    run = rest.run()
    ledger = run.folder / "calculator.log"
    ledger.mkdir()
    with rest.working(tmp_path / "state.db", run=run) as work:
        code, words = work.ended()
    assert (code, words) == (3, f"the lab is down: calculator: {ledger} cannot be written (Is a directory)\n")
    ended = work.history().find_first_event(RunFinished)
    assert ended is not None
    assert (ended.reason, ended.processed) == ("lab_down", 0)


@pytest.mark.parametrize(("name", "code"), [("info", 2), ("manager", 3)])
def test_a_folder_where_a_log_belongs_is_said_before_the_run_begins(
    tmp_path: Path, rest: Rest, name: str, code: int
) -> None:
    run = rest.run()
    (run.folder / f"{name}.log").mkdir()
    with rest.working(tmp_path / "state.db", run=run) as work:
        ended, words = work.ended()
    assert ended == code
    assert str(run.folder / f"{name}.log") in words
    assert "Is a directory" in words
    assert "prompt_started" not in "".join(path.read_text() for path in run.folder.glob("*.log") if path.is_file())


# What a person starts.


@pytest.mark.parametrize("place", ["file", "read-only"])
def test_a_lab_that_cannot_write_its_logs_is_not_started(
    here: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["lab", f"BASE_PORT={free_base()}", prompts(here, ["What is 17 times 24?"])]
    if place == "file":
        (here / "logs").write_text("mine")
        assert main(arguments) == 2
        assert capsys.readouterr() == ("", "logs: it should be a folder: rename it\n")
        assert (here / "logs").read_text() == "mine"
        return
    (here / "logs").mkdir()
    with read_only(here / "logs"):
        assert main(arguments) == 2
    out, words = capsys.readouterr()
    assert (out, words) == ("", "logs: nothing can be written into it: make it writable\n")


def told(folder: Path) -> Path:
    """A run of one prompt, as logged; it is the latest."""
    run = Run.create(folder / "logs", now=NOW)
    run.link_as_latest()
    with run.open_log("info") as written:
        written.write(
            RunStarted(
                seed=1, settings={"TOXIC_PROB": 0.3}, plan=Plan(1).to_json(), prompts=1, now=NOW, model="offline"
            )
        )
        written.write(PromptStarted(prompt_index=1, prompt="What is 17 times 24?"), trial="p1.r1")
        written.write(prompt_finished("408", prompt="What is 17 times 24?", duration_s=0.5), trial="p1.r1")
        written.write(RunFinished(received=1, processed=1, succeeded=1, duration_s=0.5))
    return run.folder


def test_pictures_that_do_not_fit_leave_the_earlier_ones_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [("success_rate", success_rate), ("throughput", throughput)]
    monkeypatch.setattr(charts, "_iterate_chart_functions", lambda: drawn)
    folder, out = told(tmp_path), tmp_path / "charts"
    out.mkdir()
    with small_disk(out, kib=1024):
        assert charts.main([str(folder)], out=out) == 0
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        assert len(before) == 2
        capsys.readouterr()
        ballast = fill(out)
        with ballast.open("ab") as file:
            file.truncate(ballast.stat().st_size - 24 * 1024)  # room for one or two, not for all
        assert charts.main([str(folder)], out=out) == 3
        words = capsys.readouterr().err
        ballast.unlink()
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert "No space left on device" in words
    assert words.count("\n") == 1


def test_figures_that_cannot_be_printed_are_said_in_one_line(tmp_path: Path) -> None:
    folder = told(tmp_path)
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command("summary", str(folder), python=warm.python()),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={key: value for key, value in environment().items() if key != "PYTHONUNBUFFERED"},
            check=False,
        )
    assert ended.returncode == 3
    assert ended.stderr == "what this command prints cannot be written (No space left on device): make room\n"


@pytest.mark.usefixtures("two_charts")
def test_a_lab_whose_pictures_do_not_fit_has_its_figures_all_the_same(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = told(here)
    (here / "charts").mkdir()
    with small_disk(here / "charts", kib=8):
        assert [print_end_report(folder, code) for code in (0, 3)] == [3, 3]
        assert list((here / "charts").iterdir()) == []
    out, words = capsys.readouterr()
    assert words == "cannot draw into charts/success_rate.png: No space left on device\n" * 2
    assert out.count("all figures: ") == 2
