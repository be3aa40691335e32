"""Ctrl-C waits until it does no harm, but not for ever."""

import asyncio
import contextlib
import importlib
import itertools
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from chaoslab.agent.assembly import make_run_start_event
from chaoslab.base import interrupts
from chaoslab.base.interrupts import SIGNALS, Flag, Interrupts, interrupt_outside_imports
from chaoslab.cli import main
from chaoslab.config.settings import Settings
from chaoslab.core.plan import Plan
from chaoslab.record.runs import Run
from tests.seams.lab_parts import DEADLINE_S


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_kept_until_it_may_be_heard(number: signal.Signals) -> None:
    with Interrupts(patience_s=DEADLINE_S) as interrupts:
        signal.raise_signal(number)
        written = "whole"
        with pytest.raises(KeyboardInterrupt), interrupts.raise_on_signal():
            written = "half"
    assert written == "whole"


def test_within_what_may_be_left_it_is_heard_at_once_and_only_once() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.raise_on_signal():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        with interrupts.raise_on_signal():
            pass  # what winds up is not interrupted again


def test_one_that_comes_again_a_moment_later_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent to a command's group, it reaches the child of a command directly and from its parent."""
    again = list[float]()

    def moment(*waits: Any) -> None:
        again.append(waits[-1])
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("chaoslab.base.interrupts.select.select", moment)
    with pytest.raises(KeyboardInterrupt), Interrupts() as heard, heard.raise_on_signal():
        signal.raise_signal(signal.SIGINT)
    assert again == [interrupts.LATE_S]
    with Interrupts() as calm, calm.raise_on_signal():
        pass
    assert again == [interrupts.LATE_S], "nothing is waited for where none came"


def test_the_handler_of_a_signal_may_set_a_flag_at_any_moment_of_a_wait_for_it() -> None:
    came = set[int]()
    for most in range(1, 6):
        flag, lines = Flag(), itertools.count(1)

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            if frame.f_code is not Flag.wait.__code__:
                return None
            if event == "line" and next(lines) == most:  # noqa: B023 — it is called in this round only
                came.add(frame.f_lineno)
                flag.set()  # noqa: B023
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            flag.wait(DEADLINE_S)
        finally:
            sys.settrace(before)
        assert flag.is_set()
    assert len(came) == 3  # each line of it


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, object]]]:
    """Imports a module of these lines; what it gives can stand for no pictures at all, and for no text."""
    monkeypatch.syspath_prepend(tmp_path)

    class Nothing(dict[str, object]):
        def __radd__(self, text: str) -> str:
            return text

    def do(*lines: str) -> dict[str, object]:
        (tmp_path / "interrupted_module.py").write_text("\n".join(("import signal, threading", *lines)))
        importlib.import_module("interrupted_module")
        return Nothing()

    yield do
    sys.modules.pop("interrupted_module", None)


STRIKES = "signal.raise_signal(signal.SIGINT)"


def waiting(_: object) -> None:
    """With nothing kept of what it was given."""
    del _
    threading.Event().wait(DEADLINE_S)
    pytest.fail("it was lost")


def test_an_import_is_brought_to_its_end_before_it_is_heard(imported: Callable[..., dict[str, object]]) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt_outside_imports():
        waiting(imported(STRIKES, "done = True"))
    assert sys.modules["interrupted_module"].done


def test_an_import_with_nothing_behind_it_loses_none(imported: Callable[..., dict[str, object]]) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt_outside_imports():
        imported(STRIKES)


def test_an_import_without_end_is_interrupted_all_the_same(imported: Callable[..., dict[str, object]]) -> None:
    with Interrupts(patience_s=0.05) as interrupts, pytest.raises(KeyboardInterrupt), interrupts.raise_on_signal():
        imported(STRIKES, f"threading.Event().wait({DEADLINE_S})", "raise AssertionError('it was lost')")


def test_a_finalizer_swallows_none() -> None:
    class Closing:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), interrupt_outside_imports():
        waiting(Closing())


def test_the_callback_of_a_weak_reference_swallows_none() -> None:
    """Of which there are some whenever a picture is drawn."""

    class Dying:
        pass

    def strikes(_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    dying = [Dying()]
    seen = weakref.ref(dying[0], strikes)

    def frees() -> None:
        dying.clear()
        waiting(seen)

    with pytest.raises(KeyboardInterrupt), interrupt_outside_imports():
        frees()
    assert seen() is None


def test_what_swallows_it_without_a_word_does_so_until_its_end() -> None:
    done = []

    def swallows() -> None:
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGINT)
        done.append("all of it")

    with pytest.raises(KeyboardInterrupt), interrupt_outside_imports():
        swallows()
    assert done == ["all of it"]


def test_what_else_can_be_raised_nowhere_is_told_as_ever() -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError("told")

    told: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda what: told.append(str(what.exc_value))
    try:
        with interrupt_outside_imports():
            Failing()
    finally:
        sys.unraisablehook = before
    assert told == ["told"]


@pytest.mark.parametrize(
    ("command", "beneath"),
    [
        (("run", "--world", "virtual"), "chaoslab.lab.launch.check_packages_installed"),
        (("replay", "latest"), "chaoslab.cli.replay._replay_trials"),
        (("charts",), "chaoslab.reports.charts.draw_charts"),
        (("report",), "chaoslab.reports.charts.draw_charts"),
        (("report",), "chaoslab.reports.formats.terminal.render_short_summary"),
        (("summary",), "chaoslab.reports.formats.terminal.render_summary"),
        (("show",), "chaoslab.reports.show.render_stories"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value.rpartition(".")[2],
)
@pytest.mark.usefixtures("here")
def test_no_command_loses_one_while_it_imports(
    imported: Callable[..., dict[str, object]], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], beneath: str
) -> None:
    run = Run.create(Path("logs"), now=Settings().now)
    run.link_as_latest()
    with run.open_log("info") as log:
        log.write(make_run_start_event(Settings(), Plan(1), [], 0, run.name))
    # a run without trials is none to replay
    monkeypatch.setattr("chaoslab.lab.recorded_run.read_recorded_run", lambda _: None)
    monkeypatch.setattr(beneath, lambda *_, **__: imported(STRIKES, "done = True"))
    assert main(command) == 130
    assert sys.modules["interrupted_module"].done


def test_what_never_listens_is_interrupted_where_it_stands() -> None:
    def never_listens() -> None:
        # Here, since a busy machine may be interrupted before it comes to what expects it.
        signal.raise_signal(signal.SIGINT)
        threading.Event().wait(DEADLINE_S)

    with Interrupts(patience_s=0.05), pytest.raises(KeyboardInterrupt):
        never_listens()


def test_a_task_is_cancelled_once_where_it_waits() -> None:
    heard = []

    async def work(interrupts: Interrupts) -> None:
        with interrupts.cancel_on_signal(this_task()):
            try:
                signal.raise_signal(signal.SIGTERM)
                heard.append("goes on to where it waits")
                await forever()
            except asyncio.CancelledError:
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(0)
                heard.append("winds up")
                raise

    with Interrupts(patience_s=DEADLINE_S) as interrupts, pytest.raises(asyncio.CancelledError):
        asyncio.run(work(interrupts))
    assert heard == ["goes on to where it waits", "winds up"]


def test_a_task_that_swallows_it_is_cancelled_again() -> None:
    async def work(interrupts: Interrupts) -> None:
        with interrupts.cancel_on_signal(this_task()):
            with contextlib.suppress(asyncio.CancelledError):
                signal.raise_signal(signal.SIGINT)
                await forever()
            await forever()

    with Interrupts(patience_s=0.05) as interrupts, pytest.raises(asyncio.CancelledError):
        asyncio.run(work(interrupts))


def test_a_signal_that_came_before_there_was_a_task_is_not_lost() -> None:
    async def work(interrupts: Interrupts) -> None:
        with interrupts.cancel_on_signal(this_task()):
            await forever()

    with Interrupts(patience_s=DEADLINE_S) as interrupts:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(work(interrupts))


def this_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def forever() -> None:
    await asyncio.wait_for(asyncio.Event().wait(), DEADLINE_S)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_was_held_back_comes_once_it_can_be_heard(number: signal.Signals) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        signal.raise_signal(number)
        with (
            Interrupts(patience_s=DEADLINE_S) as interrupts,
            pytest.raises(KeyboardInterrupt),
            interrupts.raise_on_signal(),
        ):
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_afterwards_signals_mean_what_they_meant() -> None:
    def handler(*_: object) -> None:
        raise AssertionError("nobody called")

    before = {number: signal.signal(number, handler) for number in (*SIGNALS, signal.SIGALRM)}
    try:
        with Interrupts():
            signal.raise_signal(signal.SIGTERM)
        assert {signal.getsignal(number) for number in before} == {handler}
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    finally:
        for number, old in before.items():
            signal.signal(number, old)
