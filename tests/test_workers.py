"""Many units of work over processes: in order, each done for good whoever dies meanwhile, and nothing left behind."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from chaoslab.execution.forked import keep_executors
from chaoslab.execution.workers import (
    CHUNK_MAX,
    InProcess,
    KeptOpen,
    NotPicklable,
    Processes,
    WorkerLost,
    _default_method,
    _Workers,
)
from tests.squares import Squares
from tests.waiting import HUNG_S, eventually

METHODS = ("fork", "spawn", "forkserver")


def come(true: Callable[[], bool], going: Callable[[], bool] = lambda: True) -> None:
    """Waits until it is so, for as long as whoever brings it about goes on."""
    eventually(lambda: true() or not going(), within_s=HUNG_S)
    assert true(), "it never came"


def alive(pid: int) -> bool:
    """A child that has ended and was not waited for is not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


@pytest.fixture
def squares(tmp_path: Path) -> Iterator[Callable[..., Squares]]:
    """Work in a folder of its own, of whose processes none is left."""
    before = set(threading.enumerate())
    yield lambda **how: Squares(tmp_path, **how)
    assert [pid for pid in Squares(tmp_path).processes() if pid != os.getpid() and alive(pid)] == []
    assert [thread.name for thread in set(threading.enumerate()) - before if "Executor" in thread.name] == []


Make = Callable[..., Squares]


def expected(count: int) -> list[int]:
    return [number * number for number in range(count)]


def test_one_job_is_done_in_this_process_one_after_the_other(squares: Make) -> None:
    work = squares()
    done = InProcess().map(work, range(5))
    assert next(done) == 0
    assert work.begun(1) == 0
    assert list(done) == expected(5)[1:]
    assert work.processes() == [os.getpid()]


class Doors:
    """Work that notes when it is opened and shut. A unit of 0 fails."""

    def __init__(self, name: str, noted: list[str]) -> None:
        self.name, self.noted = name, noted

    def named(self, number: int) -> str:
        return f"{self.name}{number}"

    @contextlib.contextmanager
    def opened(self) -> Iterator[Callable[[int], float]]:
        self.noted.append(f"{self.name} open")
        yield lambda number: 1 / number
        self.noted.append(f"{self.name} shut")


def test_work_is_kept_open_until_other_work_comes_a_unit_fails_or_it_is_closed() -> None:
    noted: list[str] = []
    one, other = Doors("a", noted), Doors("b", noted)
    with contextlib.closing(KeptOpen()) as does:
        assert [*does.map(one, [1, 2]), *does.map(one, [4])] == [1, 0.5, 0.25]
        assert noted == ["a open"]
        assert list(does.map(other, [1])) == [1]
        assert noted == ["a open", "a shut", "b open"]
        with pytest.raises(ZeroDivisionError):
            list(does.map(other, [0]))
        assert noted[3:] == ["b shut"]
        assert list(does.map(other, [2])) == [0.5]
    assert noted[4:] == ["b open", "b shut"]


KEEPING = {"child": (1, 9.0), "processes": (2, None)}


@pytest.mark.parametrize("how", KEEPING)
def test_processes_go_on_with_the_next_trials_of_the_same_work(squares: Make, how: str) -> None:
    work, other = squares(), squares()
    with keep_executors(*KEEPING[how]) as (does, alone):
        for one in (does, alone, does):
            assert list(one.map(work, [5])) == [25]
        there = work.processes()  # once: one that was started may open the work later
        assert all(map(alive, there))
        assert len(there) <= KEEPING[how][0]
        assert list(does.map(other, [6])) == [36]
        assert not any(map(alive, there))
    assert os.getpid() not in work.processes()


@pytest.mark.parametrize("how", KEEPING)
def test_what_is_broken_off_is_neither_waited_for_nor_a_result_of_what_comes_next(squares: Make, how: str) -> None:
    work = squares(waits=(20, 27))  # in the hand of either process, and of the one child
    with keep_executors(*KEEPING[how]) as (does, _):
        with contextlib.closing(does.map(work, range(60))) as done:
            assert next(done) == 0
        assert list(does.map(work, range(60, 64))) == [3600, 3721, 3844, 3969]
        with contextlib.closing(does.map(work, [1, 2])) as done:
            assert [next(done), next(done)] == [1, 4]
        before = {pid for pid in work.processes() if alive(pid)}
        assert list(does.map(work, [3])) == [9]  # all were taken, so the same go on
        after = {pid for pid in work.processes() if alive(pid)}
        assert before <= after  # one of them may only now have opened the work
        assert len(after) <= KEEPING[how][0]


@pytest.mark.parametrize("how", KEEPING)
def test_a_trial_that_ends_its_process_ends_no_other(squares: Make, how: str) -> None:
    work = squares(deadly=(2,))
    with keep_executors(*KEEPING[how]) as (does, alone):
        with pytest.raises(WorkerLost, match=r"^2 kills the process"):
            list(does.map(work, range(4)))
        assert list(alone.map(work, [4])) == [16]


@pytest.mark.parametrize("method", METHODS)
def test_results_come_in_order_from_other_processes(squares: Make, method: str) -> None:
    work = squares()
    assert list(Processes(2, method=method).map(work, range(60))) == expected(60)
    assert 1 <= len(work.processes()) <= 2
    assert os.getpid() not in work.processes()


def test_a_later_result_waits_for_an_earlier_one(squares: Make) -> None:
    work = squares(waits=(0,))
    done = Processes(2).map(work, range(8))  # spawned, since this process has a thread
    got: list[int] = []
    reader = threading.Thread(target=lambda: got.extend(done))
    reader.start()
    come(lambda: work.begun(7) == 1, reader.is_alive)  # the other worker has done all the rest
    assert got == []
    (work.folder / "go").touch()
    reader.join(HUNG_S)
    assert got == expected(8)


def test_results_are_handed_on_and_not_heaped_up(squares: Make) -> None:
    """The number of results on the way is bounded by the jobs, however many trials there are."""
    work = squares()
    done = Processes(2, method="fork").map(work, range(100_000))
    for _ in range(CHUNK_MAX):
        next(done)
    come(lambda: work.begun(5 * CHUNK_MAX) == 1)
    done.close()
    assert len(list(work.folder.glob("unit.*"))) <= CHUNK_MAX * 10


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Future[Any]]]:
    """The size of each chunk that was given to a worker, and what comes of it."""
    noted: list[tuple[int, Future[Any]]] = []
    give = _Workers.give

    def giving(workers: Any, chunk: Any) -> Any:
        noted.append((len(chunk), future := give(workers, chunk)))
        return future

    monkeypatch.setattr(_Workers, "give", giving)
    return noted


def test_out_at_any_time_are_four_chunks_for_each_job(squares: Make, given: list[tuple[int, Future[Any]]]) -> None:
    done = Processes(2, method="fork").map(squares(), range(100_000))
    next(done)
    assert [size for size, _ in given] == [CHUNK_MAX] * 8
    done.close()


@pytest.mark.parametrize(("threads", "can", "method"), [(1, True, "fork"), (2, True, "spawn"), (1, False, "spawn")])
def test_processes_are_forked_where_that_can_be_and_no_other_thread_would_be_left_behind(
    threads: int, can: bool, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: threads)
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn", *["fork"] * can])
    assert _default_method() == method


def test_an_interrupt_in_one_process_is_heard_between_two_units(squares: Make) -> None:
    work, got, looks = squares(), list[int](), list[int]()

    @contextlib.contextmanager
    def heard() -> Iterator[None]:
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        got.extend(InProcess(heard).map(work, range(5)))
    assert (got, work.begun(2)) == (expected(2), 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_unit_that_kills_its_worker_once_is_done_again(squares: Make, method: str) -> None:
    work, told = squares(unlucky=(13,)), list[str]()
    assert list(Processes(2, method=method, tell=told.append).map(work, range(40))) == expected(40)
    assert len(told) == 1
    assert told[0].startswith("a worker died: ")
    assert told[0].endswith(" are done again, one at a time")
    assert work.begun(13) == 2


def test_who_gives_work_to_dead_workers_learns_it_from_what_comes_of_it_alone(squares: Make) -> None:
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with _Workers(squares(deadly=(0,)), 1, "fork") as workers:
        for unit in (0, 1):
            assert isinstance(workers.give([unit]).exception(HUNG_S), BrokenProcessPool)
            assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == masked
        workers.end()
        assert workers.give([2]).result(HUNG_S).done == [4]


def test_a_worker_that_somebody_killed_takes_no_unit_with_it(squares: Make) -> None:
    work, told = squares(waits=(3,)), list[str]()
    done, got = Processes(2, tell=told.append).map(work, range(40)), list[int]()
    reader = threading.Thread(target=lambda: got.extend(done))
    reader.start()
    come(lambda: len(work.processes("waiting")) == 1, reader.is_alive)
    os.kill(work.processes("waiting")[0], signal.SIGKILL)  # an idle one would be missed by nobody
    (work.folder / "go").touch()
    reader.join(HUNG_S)
    assert got == expected(40)
    assert (len(told), work.begun(3)) == (1, 2)


def test_the_unit_that_always_kills_is_named_and_what_came_before_it_is_handed_on(squares: Make) -> None:
    work, told, got = squares(deadly=(17,)), list[str](), list[int]()
    with pytest.raises(WorkerLost, match=r"^17 kills the process that does it, 2 times in 2$"):
        got.extend(Processes(2, method="fork", tell=told.append).map(work, range(40)))
    assert got == expected(17)
    assert len(told) == 1
    assert work.begun(17) == 3  # among others, and then twice alone


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_unit_raises_comes_through_as_itself(squares: Make, jobs: int, error: type[BaseException]) -> None:
    got: list[int] = []
    does = InProcess() if jobs == 1 else Processes(jobs, method="fork")
    with pytest.raises(error, match="21") as raised:
        got.extend(does.map(squares(faulty=(21,), error=error), range(40)))
    assert got == expected(21)
    if jobs > 1:
        assert "in square" in "\n".join(raised.value.__notes__)


def test_what_cannot_travel_comes_through_in_words_and_is_no_dead_worker(squares: Make) -> None:
    told: list[str] = []
    work = squares(faulty=(2,), strange=True)
    with pytest.raises(RuntimeError, match="Strange: status 2"):
        list(Processes(2, method="fork", tell=told.append).map(work, range(8)))
    assert told == []
    assert work.begun(2) == 1


def test_what_keeps_the_work_from_opening_comes_through_too(squares: Make) -> None:
    with pytest.raises(LookupError, match="closed today"):
        list(Processes(2, method="fork").map(squares(shut=True), range(8)))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_other_processes_cannot_be_given_is_said_and_nothing_is_started(method: str) -> None:
    class Local:
        named = Squares.named
        opened = Squares.opened

    with pytest.raises(NotPicklable, match=r"<locals>\.Local.*top level of a module.*jobs=1"):
        list(Processes(2, method=method).map(Local(), range(8)))
    assert multiprocessing.active_children() == []


def test_what_they_do_not_find_is_said_too_and_nobody_is_taken_for_dead(tmp_path: Path) -> None:
    """As from a notebook, whose functions are in no file."""
    script = (
        "import contextlib, os\n"
        "from chaoslab.execution.workers import Processes\n"
        "class Work:\n"
        "    def opened(self): return contextlib.nullcontext(abs)\n"
        "told = []\n"
        "try: list(Processes(2, method='spawn', tell=told.append).map(Work(), range(8)))\n"
        "except TypeError as error: print(type(error).__name__, told, error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("NotPicklable [] "), ended
    assert "attribute 'Work'" in ended.stdout
    assert ended.stderr == ""


def test_a_worker_that_is_ended_in_the_middle_of_what_it_sends_holds_nobody_up(tmp_path: Path) -> None:
    script = (
        "import contextlib\n"
        "from chaoslab.execution.workers import Processes\n"
        "def do(number):\n"
        "    if number == 0: raise LookupError('first' * 400_000)\n"
        "    return b'x' * 4_000_000\n"
        "class Work:\n"
        "    def opened(self): return contextlib.nullcontext(do)\n"
        "try: list(Processes(2, method='fork', chunk_max=1).map(Work(), range(8)))\n"
        "except LookupError: print('told')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=HUNG_S)
    assert (ended.stdout, ended.stderr) == ("told\n", "")


def test_an_interrupt_lets_what_is_done_through_and_ends_the_rest(
    squares: Make, given: list[tuple[int, Future[Any]]]
) -> None:
    work, got, waits = squares(waits=(39,)), list[int](), list[int]()

    @contextlib.contextmanager
    def heard() -> Iterator[None]:
        waits.append(1)
        if len(waits) == 2:
            come(lambda: sum(future.done() for _, future in given) == 7)  # the last of eight chunks waits
            raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        got.extend(Processes(2, method="fork", heard=heard).map(work, range(40)))
    assert got == expected(35)


def test_workers_end_with_a_parent_that_was_killed(squares: Make) -> None:
    work = squares(waits=(0, 10))
    program = (
        "import sys; from pathlib import Path; from tests.squares import Squares; from "
        "chaoslab.execution.workers import Processes; "
        "list(Processes(2, method='fork').map(Squares(Path(sys.argv[1]), waits=(0, 10)), range(20)))"
    )
    folders = os.pathsep.join((str(Path(__file__).parents[1]), *sys.path))
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(work.folder)], env={**os.environ, "PYTHONPATH": folders}
    )
    come(lambda: work.begun(0) == work.begun(10) == 1, lambda: parent.poll() is None)
    parent.kill()
    parent.wait(HUNG_S)
    come(lambda: not any(map(alive, work.processes())))
