"""Many units of work over processes: in order, each done for good whoever dies meanwhile, and nothing left behind."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaoslab.execution.forked import AHEAD, Child, ChildExecutor, open_executors
from chaoslab.execution.workers import InProcessExecutor, KeptOpenExecutor, WorkerLost
from tests.squares import Squares
from tests.waiting import HUNG_S, eventually


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
    yield lambda **how: Squares(tmp_path, **how)
    assert [pid for pid in Squares(tmp_path).processes() if pid != os.getpid() and alive(pid)] == []


Make = Callable[..., Squares]


def expected(count: int) -> list[int]:
    return [number * number for number in range(count)]


def test_one_job_is_done_in_this_process_one_after_the_other(squares: Make) -> None:
    work = squares()
    done = InProcessExecutor().map(work, range(5))
    assert next(done) == 0
    assert work.begun(1) == 0
    assert list(done) == expected(5)[1:]
    assert work.processes() == [os.getpid()]


class Doors:
    """Work that notes when it is opened and shut. A unit of 0 fails."""

    def __init__(self, name: str, noted: list[str]) -> None:
        self.name, self.noted = name, noted

    def get_work_item_name(self, number: int) -> str:
        return f"{self.name}{number}"

    @contextlib.contextmanager
    def open_runner(self) -> Iterator[Callable[[int], float]]:
        self.noted.append(f"{self.name} open")
        yield lambda number: 1 / number
        self.noted.append(f"{self.name} shut")


def test_work_is_kept_open_until_other_work_comes_a_unit_fails_or_it_is_closed() -> None:
    noted: list[str] = []
    one, other = Doors("a", noted), Doors("b", noted)
    with contextlib.closing(KeptOpenExecutor()) as does:
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
    with open_executors(*KEEPING[how]) as (does, alone):
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
    with open_executors(*KEEPING[how]) as (does, _):
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
    with open_executors(*KEEPING[how]) as (does, alone):
        with pytest.raises(WorkerLost, match=r"^2 kills the process"):
            list(does.map(work, range(4)))
        assert list(alone.map(work, [4])) == [16]


def test_results_come_in_order_from_other_processes(squares: Make) -> None:
    work = squares()
    assert list(ChildExecutor(2).map(work, range(60))) == expected(60)
    assert 1 <= len(work.processes()) <= 2
    assert os.getpid() not in work.processes()


def test_a_later_result_waits_for_an_earlier_one(squares: Make) -> None:
    work = squares(waits=(0,))
    done = ChildExecutor(2).map(work, range(8))
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
    done = ChildExecutor(2).map(work, range(100_000))
    for _ in range(AHEAD):
        next(done)
    come(lambda: work.begun(2 * AHEAD) == 1)
    done.close()
    assert len(list(work.folder.glob("unit.*"))) <= AHEAD * 5


def test_an_interrupt_in_one_process_is_heard_between_two_units(squares: Make) -> None:
    work, got, looks = squares(), list[int](), list[int]()

    @contextlib.contextmanager
    def heard() -> Iterator[None]:
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        got.extend(InProcessExecutor(heard).map(work, range(5)))
    assert (got, work.begun(2)) == (expected(2), 0)


def test_a_unit_that_kills_its_worker_once_is_done_again_and_no_other(squares: Make) -> None:
    work, told = squares(unlucky=(13,)), list[str]()
    assert list(ChildExecutor(2, tell=told.append).map(work, range(40))) == expected(40)
    assert told == ["a worker died (exit code 9): 13 is done again"]
    assert [number for number in range(40) if work.begun(number) != 1] == [13]


def test_a_worker_that_somebody_killed_takes_no_unit_with_it(squares: Make) -> None:
    work, told = squares(waits=(3,)), list[str]()
    done, got = ChildExecutor(2, tell=told.append).map(work, range(40)), list[int]()
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
    with pytest.raises(WorkerLost, match=r"^17 kills the process that does it, 2 times in 2 \(exit code 9\)$"):
        got.extend(ChildExecutor(2, tell=told.append).map(work, range(40)))
    assert got == expected(17)
    assert (len(told), work.begun(17)) == (1, 2)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_unit_raises_comes_through_as_itself(squares: Make, jobs: int, error: type[BaseException]) -> None:
    got: list[int] = []
    does = InProcessExecutor() if jobs == 1 else ChildExecutor(jobs)
    with pytest.raises(error, match="21") as raised:
        got.extend(does.map(squares(faulty=(21,), error=error), range(40)))
    assert got == expected(21)
    if jobs > 1:
        assert "in square" in "\n".join(raised.value.__notes__)


def test_what_cannot_travel_comes_through_in_words_and_is_no_dead_worker(squares: Make) -> None:
    told: list[str] = []
    work = squares(faulty=(2,), strange=True)
    with pytest.raises(RuntimeError, match="Strange: status 2"):
        list(ChildExecutor(2, tell=told.append).map(work, range(8)))
    assert told == []
    assert work.begun(2) == 1


def test_what_keeps_the_work_from_opening_comes_through_too(squares: Make) -> None:
    with pytest.raises(LookupError, match="closed today"):
        list(ChildExecutor(2).map(squares(shut=True), range(8)))


def test_a_worker_that_is_ended_in_the_middle_of_what_it_sends_holds_nobody_up(tmp_path: Path) -> None:
    script = (
        "import contextlib\n"
        "from chaoslab.execution.forked import ChildExecutor\n"
        "def do(number):\n"
        "    if number == 0: raise LookupError('first' * 400_000)\n"
        "    return b'x' * 4_000_000\n"
        "class Work:\n"
        "    def open_runner(self): return contextlib.nullcontext(do)\n"
        "try: list(ChildExecutor(2).map(Work(), range(8)))\n"
        "except LookupError: print('told')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=HUNG_S)
    assert (ended.stdout, ended.stderr) == ("told\n", "")


def test_an_interrupt_at_a_wait_comes_behind_what_has_come_and_ends_the_rest(squares: Make) -> None:
    work, got = squares(), list[int]()

    @contextlib.contextmanager
    def heard() -> Iterator[None]:
        yield
        if got:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        got.extend(ChildExecutor(2, heard=heard).map(work, range(1000)))
    assert got == expected(len(got))
    assert work.begun(999) == 0


@dataclasses.dataclass(frozen=True)
class Large:
    """Work whose units and results fill a pipe."""

    def get_work_item_name(self, _: bytes) -> str:
        return "a large one"

    @contextlib.contextmanager
    def open_runner(self) -> Iterator[Callable[[bytes], bytes]]:
        yield lambda spec: spec * 10


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_child_that_is_handed_much_and_sends_much_is_not_waited_for_while_it_waits(jobs: int) -> None:
    assert list(ChildExecutor(jobs, 9.0).map(Large(), [b"x" * 4000] * 200)) == [b"x" * 40_000] * 200


def test_a_child_ends_with_its_parent_though_a_younger_one_stays(squares: Make) -> None:
    """A copy of the parent's end of its pipe would keep it."""
    with Child(squares().open_runner) as elder, Child(squares().open_runner) as younger:
        elder.send_spec(3)
        younger.send_spec(4)
        assert [(*child.wait_for_result()[0].iterate_results(),) for child in (elder, younger)] == [(9,), (16,)]
        held = {os.readlink(f"/proc/{younger._pid}/fd/{end}") for end in os.listdir(f"/proc/{younger._pid}/fd")}
        assert not held & {os.readlink(f"/proc/self/fd/{end}") for end in elder._own_ends}


def test_workers_end_with_a_parent_that_was_killed(squares: Make) -> None:
    work = squares(waits=(0, 10))
    program = (
        "import sys; from pathlib import Path; from tests.squares import Squares; from "
        "chaoslab.execution.forked import ChildExecutor; "
        "list(ChildExecutor(2).map(Squares(Path(sys.argv[1]), waits=(0, 10)), range(20)))"
    )
    folders = os.pathsep.join((str(Path(__file__).parents[1]), *sys.path))
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(work.folder)], env={**os.environ, "PYTHONPATH": folders}
    )
    come(lambda: work.begun(0) == work.begun(10) == 1, lambda: parent.poll() is None)
    parent.kill()
    parent.wait(HUNG_S)
    come(lambda: not any(map(alive, work.processes())))
