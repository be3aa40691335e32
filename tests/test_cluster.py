"""Trials on pools of processes that are not the lab's own: a Dask cluster, and an executor of the user's."""

import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from functools import wraps
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.execution.cluster import PoolExecutor, _report_lost_worker, cluster
from chaoslab.execution.workers import ChunkResult, WorkerLost, use_executor_factory
from tests.pool_parts import Stuck, agent, charge, deadly

# Not imported here: it changes how all exceptions of the process are pickled.
pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed")
SCENARIOS = Path(__file__).parent.parent / "examples" / "scenarios"


REFUSED = [lab.inject("refused", "charge", chance=0.2)]
FAULTS = [lab.inject("lost_reply", "charge", chance=0.4)]
OPTIONS: Any = {"tools": [charge], "faults": FAULTS, "seed": 3}


Test = TypeVar("Test", bound=Callable[..., None])


def in_a_process_of_its_own(test: Test) -> Test:
    """Runs a test in a child of this process: the threads that a cluster leaves would keep all tests after it from
    forking."""

    @wraps(test)
    def run(*given: Any, **named: Any) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                test(*given, **named)
                code = 0
            except BaseException:  # noqa: BLE001 - whatever it is, it is told and ends the child
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert status == 0

    return run  # type: ignore[return-value]


def told(trials: Any) -> list[Any]:
    return [(trial.key, str(trial.outcome), trial.history.records) for trial in trials]


@in_a_process_of_its_own
def test_a_local_cluster_brings_the_same_and_loses_nothing_with_a_worker() -> None:
    from distributed import default_client

    said: list[str] = []
    alone = told(lab.run_many(agent, "go", trials=60, **OPTIONS))
    with cluster("local", workers=2, tell=said.append) as width:
        assert width == 2
        found = lab.run_many(agent, "go", trials=60, jobs=2, **OPTIONS)
        some = told(next(found) for _ in range(10))
        victim = min(default_client().run(os.getpid).values())  # type: ignore[no-untyped-call]
        os.kill(victim, signal.SIGKILL)
        assert [*some, *told(found)] == alone
        with pytest.raises(WorkerLost, match=r"p1\.r\d+ kills the process that does it \(SIGKILL"):
            list(lab.run_many(deadly, "go", trials=20, jobs=2, tools=[charge], faults=REFUSED, seed=2))
        assert len(list(lab.run_many(agent, "go", trials=3, jobs=2, **OPTIONS))) == 3
    assert len(said) == 1
    assert said[0].startswith("a worker is gone (tcp://127.0.0.1:")


@in_a_process_of_its_own
def test_an_executor_of_ones_own_brings_the_same() -> None:
    alone = told(lab.run_many(agent, "go", trials=20, **OPTIONS))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool, lab.cluster(pool) as width:
        assert width == 2
        assert told(lab.run_many(agent, "go", trials=20, jobs=2, **OPTIONS)) == alone


@in_a_process_of_its_own
def test_the_trial_that_takes_too_long_is_found_in_its_chunk() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        units = PoolExecutor(pool, 1, limit_s=4).map(Stuck(at=40), range(60))
        assert [next(units) for _ in range(40)] == [*range(40)]
        with pytest.raises(WorkerLost, match=r"^unit 40: "):
            next(units)


def test_batches_grow() -> None:
    ends: list[int] = []

    class AtOnce(Executor):
        def submit(self, *given: Any, **__: Any) -> Future[Any]:
            ends.append(given[2][-1] + 1)
            done: Future[Any] = Future()
            done.set_result(([ChunkResult.build(given[2])], len(given[2]) / 60))
            return done

    assert [*PoolExecutor(AtOnce(), 1).map(Stuck(at=-1), range(100))] == [*range(100)]
    assert ends == [1, 2, 3, 7, 23, 53, 83, 100]


def test_a_worker_looks_in_the_folders_of_its_work_no_longer_than_it_names_a_trial() -> None:
    class AtOnce(Executor):
        def submit(self, *given: Any, **__: Any) -> Future[Any]:
            before = [*sys.path]
            assert given[1].get_work_item_name(7) == "unit 7"
            assert sys.path == before
            done: Future[Any] = Future()
            done.set_result(([ChunkResult.build(given[2])], 1.0))
            return done

    assert [*PoolExecutor(AtOnce(), 1, paths=lambda: ["/nowhere"]).map(Stuck(at=-1), range(1))] == [0]


def test_a_worker_that_is_gone_is_told_once() -> None:
    told: list[str] = []
    ended: list[str] = []
    others: list[Any] = [None, ("2", {}), ("3", {"action": "add-worker", "worker": "c"})]
    for event in (*(("1", {"action": "remove-worker", "worker": name}) for name in "aab"), *others):
        _report_lost_worker(event, ended, told.append)
    assert told == [f"a worker is gone ({name}): what it had in hand is done again" for name in "ab"]


def test_workers_that_end_with_their_cluster_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    told, handlers = list[str](), list[Callable[[Any], None]]()

    def gone(worker: str) -> None:
        handlers[0]((worker, {"action": "remove-worker", "worker": worker}))

    client = SimpleNamespace(
        nthreads=lambda: {"a": 1, "b": 1}, get_executor=lambda **_: None, unsubscribe_topic=lambda _: gone("b"),
        subscribe_topic=lambda _, handler: handlers.append(handler),
    )  # fmt: skip
    monkeypatch.setattr("chaoslab.execution.cluster._open_client", lambda *_: nullcontext(client))
    monkeypatch.setattr("chaoslab.execution.cluster._check_worker_versions", lambda *_: None)
    with cluster("local", tell=told.append) as width:
        assert width == 2
        gone("a")
    assert told == ["a worker is gone (a): what it had in hand is done again"]


def test_a_cluster_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Executor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            return Future()  # nobody does it

    monkeypatch.setattr("chaoslab.execution.cluster.LOOK_S", 0.01)
    monkeypatch.setattr("chaoslab.execution.cluster.GONE_S", 0.02)
    with (
        use_executor_factory(lambda limit_s, heard: PoolExecutor(Gone(), 2, limit_s, heard, left=lambda: 0)),
        pytest.raises(WorkerLost, match=r"all workers are gone since 0.02 s, with p1\.r1 in hand"),
    ):
        list(lab.run_many(agent, "go", trials=5, jobs=2, **OPTIONS))


ELSEWHERE = """
import asyncio, distributed

async def serve():
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as hub:
        async with distributed.Worker(hub.address, host="127.0.0.1", nthreads=1, dashboard=False):
            print(hub.address, flush=True)
            await hub.finished()

asyncio.run(serve())
"""


@pytest.fixture
def scheduler() -> Iterator[str]:
    """The address of a scheduler with one worker, in a process that knows no folder of the tests."""
    served = subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/"
    )
    assert served.stdout is not None
    with served.stdout:
        yield served.stdout.readline().strip()
        served.terminate()
        served.wait()


@in_a_process_of_its_own
def test_workers_elsewhere_are_sent_the_agent_and_where_there_are_none_is_one_line(
    scheduler: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["test", str(SCENARIOS / "paid_twice.chaos.yaml"), "--no-logs", "--cluster", "nowhere"]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no cluster answers at nowhere (")
    for name in ("paid_twice.chaos.yaml", "paid_twice.py", "shop.py"):
        shutil.copy(SCENARIOS / name, here / name)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["test", "paid_twice.chaos.yaml", "-n", "20", "--logs", "there", "--cluster", scheduler]) == 0
    assert "sent 2 Python files of " in capsys.readouterr().err
    assert main(["test", "paid_twice.chaos.yaml", "-n", "20", "--logs", "here"]) == 0
    logs = [(here / name / "latest" / "info.log").read_bytes() for name in ("there", "here")]
    assert logs[0] == logs[1]
    (here / "other").mkdir()  # modules of the same names, and another agent
    for name in ("paid_twice.chaos.yaml", "shop.py"):
        shutil.copy(SCENARIOS / name, here / "other" / name)
    source = f"{(SCENARIOS / 'paid_twice.py').read_text(encoding='utf-8')}\n\ndef careful():\n    return naive()\n"
    (here / "other" / "paid_twice.py").write_text(source, encoding="utf-8")
    capsys.readouterr()
    files = ["paid_twice.chaos.yaml", "other/paid_twice.chaos.yaml"]
    assert main(["test", *files, "-n", "20", "--no-logs", "--cluster", scheduler]) == 1
    assert re.findall("^(PASSED|FAILED)", capsys.readouterr().out, re.MULTILINE) == ["PASSED", "FAILED"]
