"""Ctrl-C waits until it does no harm, but not for ever."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading

import pytest
from lab_parts import DEADLINE_S

from chaoslab.interrupts import SIGNALS, Interrupts


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_kept_until_it_may_be_heard(number: signal.Signals) -> None:
    with Interrupts(patience_s=DEADLINE_S) as interrupts:
        signal.raise_signal(number)
        written = "whole"
        with pytest.raises(KeyboardInterrupt), interrupts.heard():
            written = "half"
    assert written == "whole"


def test_within_what_may_be_left_it_is_heard_at_once_and_only_once() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.heard():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        with interrupts.heard():
            pass  # what winds up is not interrupted again


def test_what_never_listens_is_interrupted_where_it_stands() -> None:
    with Interrupts(patience_s=0.05):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            threading.Event().wait(DEADLINE_S)


def test_a_task_is_cancelled_once_where_it_waits() -> None:
    heard = []

    async def work(interrupts: Interrupts) -> None:
        with interrupts.cancelling(this_task()):
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
        with interrupts.cancelling(this_task()):
            with contextlib.suppress(asyncio.CancelledError):
                signal.raise_signal(signal.SIGINT)
                await forever()
            await forever()

    with Interrupts(patience_s=0.05) as interrupts, pytest.raises(asyncio.CancelledError):
        asyncio.run(work(interrupts))


def test_a_signal_that_came_before_there_was_a_task_is_not_lost() -> None:
    async def work(interrupts: Interrupts) -> None:
        with interrupts.cancelling(this_task()):
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
        with Interrupts(patience_s=DEADLINE_S) as interrupts, pytest.raises(KeyboardInterrupt), interrupts.heard():
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
