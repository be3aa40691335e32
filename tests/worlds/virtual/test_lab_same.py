"""Same seed, same bytes: whatever process does a trial, after which others, side by side with which others."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaoslab.execution.drawn import WrappedRun
from chaoslab.execution.forked import ChildExecutor
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import InProcessExecutor
from chaoslab.lab._virtual_lab import LabResult, LabSpec
from tests.cli_parts import environment
from tests.waiting import HUNG_S
from tests.worlds.virtual import lab_runs
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

TRIALS = 10
SETTINGS = {**lab_runs.EVERYTHING, "TRIALS": str(TRIALS), "SEED": "2"}


@pytest.fixture(scope="module")
def work() -> LabSpec:
    return lab_runs.spec(SETTINGS)


@pytest.fixture(scope="module")
def once(work: LabSpec) -> list[LabResult]:
    return lab_runs.done(work)


@pytest.fixture(scope="module")
def expected(work: LabSpec, once: list[LabResult], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return lab_runs.written(tmp_path_factory.mktemp("once"), work, once)


def same(found: dict[str, bytes], expected: dict[str, bytes]) -> None:
    """The first line that differs says more than that something does."""
    assert list(found) == list(expected)
    for name, wanted in expected.items():
        for number, (line, other) in enumerate(
            zip(found[name].splitlines(), wanted.splitlines(), strict=False), start=1
        ):
            assert line == other, f"{name}, line {number}"
        assert found[name] == wanted, name


def test_the_run_has_everything_in_it_that_could_differ(expected: dict[str, bytes]) -> None:
    assert {"agent.log", "info.log", "manager.log", "run.json"} < set(expected)
    kinds = {json.loads(line)["kind"] for line in expected["info.log"].splitlines()}
    assert {"retry", "fallback", "budget", "fault_witnessed", "usage"} <= kinds
    faults = {json.loads(line).get("fault") for line in (expected["info.log"] + expected["manager.log"]).splitlines()}
    wire = {"timeout", "latency", "reset_peer", "refused"}
    assert wire | {"tool_error", "lost_reply", "wrong_value", "truncate_context"} <= faults


def test_once_more_in_the_same_process_in_another_order(
    work: LabSpec, expected: dict[str, bytes], tmp_path: Path
) -> None:
    same(lab_runs.written(tmp_path, work, lab_runs.done(work, shuffled=True)), expected)


@pytest.mark.parametrize("number", [0, TRIALS - 1])
def test_a_trial_alone_is_what_it_is_among_others(work: LabSpec, once: list[LabResult], number: int) -> None:
    (alone,) = InProcessExecutor().map(work, [TrialSpec(number)])
    assert alone.buffered_events == once[number].buffered_events
    assert alone.seconds == once[number].seconds


def test_in_several_processes(work: LabSpec, expected: dict[str, bytes], tmp_path: Path) -> None:
    same(lab_runs.written(tmp_path, work, lab_runs.done(work, jobs=4, shuffled=True)), expected)


@dataclass(frozen=True)
class Noted(WrappedRun[LabSpec]):
    """The run, with a mark for each process that does it."""

    folder: Path

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[TrialSpec], LabResult]]:
        (self.folder / str(os.getpid())).touch()
        with self.run.open_runner() as do:
            yield do


def test_when_a_worker_is_killed_in_between(work: LabSpec, expected: dict[str, bytes], tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "processes").mkdir()
    noted = Noted(work, tmp_path / "processes")
    coming = ChildExecutor(2, tell=told.append).map(noted, [TrialSpec(number) for number in range(TRIALS)])
    found = [next(coming)]
    os.kill(int(min(noted.folder.iterdir()).name), signal.SIGKILL)
    found += coming
    assert len(told) == 1
    same(lab_runs.written(tmp_path, work, found), expected)


def test_in_a_process_that_hashes_otherwise(expected: dict[str, bytes], tmp_path: Path) -> None:
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    given = [f"{name}={value}" for name, value in SETTINGS.items()]
    paths = os.pathsep.join(sys.path)
    subprocess.run(
        [sys.executable, lab_runs.__file__, str(tmp_path), *given],
        env={**environment(), "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}, check=True, timeout=HUNG_S,
    )  # fmt: skip
    (run,) = (path for path in tmp_path.iterdir() if not path.is_symlink())
    same(lab_runs.files(run), expected)


def test_another_seed_is_another_run(once: list[LabResult]) -> None:
    other = lab_runs.spec({**SETTINGS, "SEED": "3"})
    assert [done.buffered_events for done in InProcessExecutor().map(other, [TrialSpec(0), TrialSpec(1)])] != [
        one.buffered_events for one in once[:2]
    ]
