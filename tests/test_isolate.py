"""With isolate="fork" each trial is a child process of its own: nothing of it is left to the next."""

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.execution.forked import STATM, CrashStackPipe, can_limit_memory, limit_memory

seen: list[str] = []


def refund(order: int) -> str:
    return f"refunded {order} after {len(seen)}"


def remembers(prompt: str) -> str:
    """An agent whose process keeps what it has done, as some frameworks do."""
    seen.append(prompt)
    return refund(17)


def outcomes(**given: Any) -> list[tuple[Any, lab.Outcome]]:
    trials = list(lab.run_many(remembers, "go", trials=3, tools=[refund], **given))
    return [(trial.answer, trial.outcome) for trial in trials]


def test_what_a_process_keeps_is_said_and_a_process_a_trial_keeps_nothing() -> None:
    seen.clear()
    with pytest.raises(lab.NoBaseline, match=r"two runs without faults differ: .* or isolate='fork' "):
        lab.run(remembers, "go", tools=[refund])
    seen.clear()
    assert outcomes(isolate="fork") == [("refunded 17 after 1", lab.Outcome.CORRECT)] * 3
    assert not seen
    assert outcomes(isolate="fork", jobs=2) == outcomes(isolate="fork")


@pytest.mark.parametrize("world", ["virtual", "local"])
def test_faults_logs_and_bytes_are_those_of_one_process(world: str, tmp_path: Path) -> None:
    def agent(_: str) -> str:
        try:
            return refund(17)
        except OSError:
            return "refused"

    found = []
    for isolate in (None, "fork"):
        folder = tmp_path / str(isolate)
        given: dict[str, Any] = {"faults": [lab.inject("refused", "refund", chance=0.5)], "world": world, "effects": []}
        trials = list(
            lab.run_many(agent, "go", trials=6, tools=[refund], logs=folder, isolate=isolate, seed=5, **given)
        )
        (log,) = [path for path in folder.glob("*/info.log") if not path.parent.is_symlink()]
        found.append(([trial.answer for trial in trials], log.read_bytes() if world == "virtual" else b""))
    assert found[0] == found[1]
    assert len(set(found[0][0])) == 2


@pytest.mark.parametrize("world", ["local", "virtual"])
def test_a_trial_that_ends_its_process_has_failed_with_its_ending(world: Any) -> None:
    def exits(_: str) -> None:
        os._exit(7)

    def dies(_: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def crashes(_: str) -> None:
        try:
            refund(17)
        except OSError:
            ctypes.string_at(0)

    for agent, ending in ((exits, "exit code 7"), (dies, "SIGKILL"), (crashes, "SIGSEGV: ")):
        if world == "virtual" and agent is not crashes:  # there these two are the virtual world's own
            continue
        faults = [lab.inject("refused", "refund")]
        trial = lab.run(
            agent, "go", tools=[refund], faults=faults, world=world, twin=False, effects=[], isolate="fork", anyway=True
        )
        assert (str(trial.outcome), f"it ended its process ({ending}" in str(trial.error)) == ("failed", True)
    assert lab.run(lambda _: "here", "go", twin=False, isolate="fork").answer == "here"


def test_what_cannot_travel_is_said_and_an_error_does() -> None:
    with pytest.raises(TypeError, match=r"cannot be sent from one process to another.*plain data"):
        lab.run(lambda _: lambda: 3, "go", twin=False, isolate="fork")

    def fails(_: str) -> None:
        raise LookupError("no such order")

    trial = lab.run(fails, "go", twin=False, isolate="fork")
    assert (type(trial.error), str(trial.error)) == (LookupError, "no such order")


def test_a_module_that_a_trial_imports_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_load.py").write_text("import os\nLOADED_BY = os.getpid()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def agent(_: str) -> int:
        import slow_to_load  # type: ignore[import-not-found]

        return int(slow_to_load.LOADED_BY)

    answers = [trial.answer for trial in lab.run_many(agent, "go", trials=3, effects=[], isolate="fork")]
    assert answers[0] != os.getpid()
    assert answers[1:] == [os.getpid()] * 2
    sys.modules.pop("slow_to_load")


def test_an_interrupt_ends_the_child_too(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def waits(_: str) -> None:
        pid.write_text(str(os.getpid()))
        signal.pause()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    def ring(*_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0 if pid.exists() and pid.read_text() else 0.05)
        if pid.exists() and pid.read_text():
            interrupted()

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            lab.run(waits, "go", world="local", isolate="fork", effects=[])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize("isolate", ["spawn", True, 3])
def test_another_way_is_refused_in_one_line(isolate: Any) -> None:
    with pytest.raises(ValueError, match=r"^isolate is .*: it should be 'fork' \(each trial in a child process\)"):
        lab.run(remembers, "go", isolate=isolate)


def hoarder(prompt: str) -> str:
    try:
        return f"kept {len(bytearray(256 * 1024 * 1024))} bytes"
    except MemoryError:
        if prompt == "careless":
            raise
        return "too much"


@pytest.mark.skipif(not can_limit_memory(), reason="the limit needs Linux")
def test_the_limit_is_in_mebibytes_beside_what_the_process_has_and_goes_with_its_context() -> None:
    def soft() -> int:
        return resource.getrlimit(resource.RLIMIT_AS)[0]

    before, pages = soft(), int(STATM.read_text(encoding="ascii").split()[0])
    with limit_memory(100_000):
        assert soft() - pages * resource.getpagesize() == pytest.approx(100_000 * 2**20, abs=50 * 2**20)
    with limit_memory(None):
        assert soft() == before


@pytest.mark.skipif(not can_limit_memory(), reason="the limit needs Linux")
@pytest.mark.parametrize(
    ("prompt", "memory_mb", "answer", "error"),
    [
        ("careful", 128, "too much", None),
        ("careless", 128, None, "MemoryError"),
        ("careful", 1024, "kept 268435456 bytes", None),
    ],
)
def test_a_trial_may_take_so_much_memory(prompt: str, memory_mb: int, answer: Any, error: str | None) -> None:
    trial = lab.run(hoarder, prompt, isolate="fork", memory_mb=memory_mb, twin=False)
    assert (trial.answer, trial.error and type(trial.error).__name__) == (answer, error)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"memory_mb": 64}, "needs isolate='fork'"),
        ({"memory_mb": 0}, "memory_mb is 0"),
        ({"memory_mb": 64.5, "isolate": "fork"}, "memory_mb is 64.5"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        lab.run(hoarder, "x", **options)


def test_of_a_stack_the_eight_innermost_places_of_the_agent_are_told_each_once_in_a_row() -> None:
    stack = CrashStackPipe()
    own = Path(lab.__file__).parent / "execution" / "forked.py"
    places = [f'  File "{own}", line 1 in serve', *(f'  File "/x/ag.py", line {n // 2} in f' for n in range(30))]
    os.write(stack._write, "\n".join(places).encode())
    stack.set_up_in_parent()
    told = stack.read_crash_places()
    stack.close()
    assert told == ": " + "\n".join(f"ag.py:{n} in f" for n in range(8))
