"""The machine by itself, without fakes for clock or threads: waits, turns, ends, and what is left of them."""

import pickle
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from greenlet import GreenletExit, getcurrent, greenlet

from chaoslab.worlds.virtual.machine import _standstill as standstill
from chaoslab.worlds.virtual.machine.context import Unsupported
from chaoslab.worlds.virtual.machine.machine import STARTS_S, Hung, Machine, Waiter
from tests.told import told_by


def ran(story: Callable[[Machine], Any], *, deadline_s: float = 100.0) -> Machine:
    """A machine after it has run this as its first thread, and was stopped."""
    machine = Machine(deadline_s=deadline_s)
    try:
        machine.run(lambda: story(machine), name="the agent")
    finally:
        machine.stop()
    return machine


in_a_machine = told_by(ran)


def busy(machine: Machine) -> None:
    """From now on something is due every tenth of a second, so that no thread is alone."""
    machine.schedule_after(0.125, busy, machine)


def nothing() -> None:
    pass


# Waits.


@pytest.mark.parametrize("alone", [True, False])
@in_a_machine
def test_a_wait_that_expires_is_over_and_cannot_be_woken(machine: Machine, *, alone: bool) -> None:
    if not alone:
        busy(machine)
    waiter = Waiter(machine)
    assert not waiter.is_woken
    assert waiter.park("a test", machine.now + 2) is False
    assert machine.now == STARTS_S + 2
    assert waiter.wake() is False
    assert waiter.park("a test", machine.now + 2) is False
    assert machine.now == STARTS_S + 2
    assert not waiter.is_woken


@in_a_machine
def test_a_wait_is_woken_once_and_leaves_no_timer(machine: Machine) -> None:
    waiter, said = Waiter(machine), list[bool]()
    machine.schedule_after(1, lambda: said.extend((waiter.wake(), waiter.wake())))
    assert waiter.park("a test", machine.now + 50) is True
    assert (machine.now, said, waiter.is_woken) == (STARTS_S + 1, [True, False], True)
    assert machine.find_next_due_time() is None
    assert waiter.park("a test") is True


def test_a_wait_that_was_ended_before_it_began_is_none() -> None:
    def story(machine: Machine) -> None:
        waiter = Waiter(machine)
        assert waiter.wake() is True
        assert waiter.park("a test") is True

    assert ran(story).now == STARTS_S


def test_who_was_ended_in_a_wait_cannot_be_woken() -> None:
    waiters: list[Waiter] = []

    def other(machine: Machine) -> None:
        waiters.append(Waiter(machine))
        waiters[0].park("a test")

    def story(machine: Machine) -> None:
        machine.start_thread(lambda: other(machine), name="other")
        machine.sleep(1)

    ran(story)
    assert waiters[0].wake() is False


def test_the_machine_itself_cannot_wait() -> None:
    with pytest.raises(RuntimeError, match="cannot wait"):
        Waiter(Machine(deadline_s=1))


def test_another_thread_of_the_process_can_wake_nobody() -> None:
    raised: list[BaseException] = []

    def meddle(waiter: Waiter) -> None:
        try:
            waiter.wake()
        except Unsupported as error:
            raised.append(error)

    def story(machine: Machine) -> None:
        waiter = Waiter(machine)
        thread = threading.Thread(target=meddle, args=(waiter,))
        thread.start()
        thread.join()
        waiter.park("a test")

    with pytest.raises(Unsupported, match="runs no world of its own"):
        ran(story)
    assert len(raised) == 1


def test_waits_of_no_time_are_too_many_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "TURNS_MAX", 50)
    seen: list[str] = []

    def story(machine: Machine) -> None:
        try:
            for _ in range(1000):
                machine.sleep(0)
        finally:
            machine.sleep(0)
            seen.append("may wait again when it is ended")

    with pytest.raises(Hung, match="it would turn for ever: 50 turns"):
        ran(story)
    assert len(seen) == 1


def test_looks_at_the_clock_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "LOOKS_MAX", 40)
    looks: list[float] = []

    def story(machine: Machine) -> None:
        while len(looks) < 1000:
            looks.append(machine.read_clock())

    with pytest.raises(Hung, match="looks at the clock again and again and no time passes \\(40 times\\)"):
        ran(story)
    assert looks == [STARTS_S] * 40


# What is due.


@in_a_machine
def test_idle_is_a_time_in_which_nothing_happens(machine: Machine) -> None:
    now = machine.now
    assert machine.is_idle_until(machine.deadline)
    assert not machine.is_idle_until(machine.deadline + 1)
    machine.schedule_at(now + 3, nothing).cancel()
    assert machine.is_idle_until(now + 9)
    machine.schedule_at(now + 5, nothing)
    assert [machine.is_idle_until(now + after) for after in (4, 5, 9)] == [True, False, False]
    machine.schedule_now(nothing)
    assert not machine.is_idle_until(now + 4)


@in_a_machine
def test_what_is_due_next_is_neither_over_nor_called_off(machine: Machine) -> None:
    assert machine.find_next_due_time() is None
    for after in (0, 7, 3):
        machine.schedule_after(after, nothing)
    machine.schedule_after(1, nothing).cancel()
    assert machine.find_next_due_time() == machine.now + 3


def test_what_was_called_off_neither_happens_nor_takes_time_nor_keeps_what_it_was_told() -> None:
    class Thing:
        pass

    seen: list[object] = []

    def see(thing: object = None) -> None:
        seen.append(thing)

    def story(machine: Machine) -> None:
        thing = Thing()
        kept = weakref.ref(thing)
        timer = machine.schedule_after(50, see, thing)
        machine.schedule_at(machine.now - 5, see, "overdue")
        machine.schedule_after(80, Waiter(machine).wake)
        timer.cancel()
        del thing
        assert kept() is None
        waiter = Waiter(machine)
        machine.schedule_now(machine.schedule_after, 1, waiter.wake)
        waiter.park("a test")
        assert (machine.now, seen) == (STARTS_S + 1, ["overdue"])

    machine = ran(story)
    assert (machine.find_next_due_time(), list(machine.ready)) == (None, [])


def test_the_deadline_itself_is_still_in_time() -> None:
    def story(machine: Machine) -> None:
        machine.schedule_at(machine.deadline, nothing)
        machine.sleep(100)
        machine.schedule_after(1, nothing)
        machine.sleep(0)
        assert machine.now == machine.deadline
        machine.sleep(2)

    machine = Machine(deadline_s=100)
    with pytest.raises(Hung, match="not over after 100 s of virtual time"):
        machine.run(lambda: story(machine), name="the agent")
    assert machine.now == machine.deadline
    machine.stop()


# Turns.


def test_whether_a_thread_runs_is_known() -> None:
    seen: list[bool] = []

    def story(machine: Machine) -> None:
        seen.append(machine.is_in_virtual_thread())
        greenlet(lambda: seen.append(machine.is_in_virtual_thread())).switch()
        machine.schedule_now(lambda: seen.append(machine.is_in_virtual_thread()))
        machine.schedule_now(machine.yield_to_due_calls)
        machine.schedule_now(nothing)
        machine.sleep(1)

    ran(story)
    assert seen == [True, False, False]


@pytest.mark.parametrize("later", [True, False])
@in_a_machine
def test_a_turn_is_passed_to_what_is_due_at_this_moment(machine: Machine, *, later: bool) -> None:
    seen: list[str] = []
    if later:
        machine.schedule_after(1, seen.append, "later")
    machine.schedule_now(seen.append, "ready")
    machine.yield_to_due_calls()
    assert seen == ["ready"]
    machine.schedule_at(machine.now, seen.append, "due")
    machine.schedule_now(seen.append, "ready")
    machine.yield_to_due_calls()
    assert seen == ["ready", "ready", "due"]
    assert machine.now == STARTS_S


@pytest.mark.parametrize("later", [True, False])
@in_a_machine
def test_a_turn_comes_back_from_those_that_always_have_something_to_do(machine: Machine, *, later: bool) -> None:
    turns: list[int] = []

    def again() -> None:
        if len(turns) < 1000:
            turns.append(1)
            machine.schedule_now(again)

    if later:
        machine.schedule_after(1, nothing)
    machine.schedule_now(again)
    machine.yield_to_due_calls()
    assert len(turns) < 5


# Threads and their ends.


def test_threads_have_numbers_and_things_too() -> None:
    machine = Machine(deadline_s=1)
    assert [machine.start_thread(nothing, name=name).number for name in "ab"] == [1_000_001, 1_000_002]
    things: list[Any] = [[], [], {}]
    assert machine.get_object_number(things[0]) is None
    for thing in things:
        machine.number_object(thing)
    assert [machine.get_object_number(thing) for thing in things] == [1, 2, 1]
    assert (next(machine.thread_names), next(machine.pool_names)) == (1, 0)


def test_each_end_is_told_once() -> None:
    told: list[str] = []

    def story(machine: Machine) -> None:
        machine.start_thread(nothing, name="quick", over=lambda: told.append("quick"))
        machine.start_thread(lambda: machine.sleep(1000), name="slow", over=lambda: told.append("slow"))
        busy(machine)
        machine.sleep(1)
        assert machine.now == STARTS_S + 1
        assert told == ["quick"]

    ran(story)
    assert told == ["quick", "slow"]


def test_the_end_of_who_never_began_is_told_too() -> None:
    told: list[str] = []

    def story(machine: Machine) -> None:
        machine.start_thread(lambda: told.append("began"), name="never", over=lambda: told.append("over"))

    ran(story)
    assert told == ["over"]


def test_python_forgets_a_thread_that_is_over_though_it_had_asked_for_its_own_name() -> None:
    """`threading.current_thread()` makes an entry for a thread that it does not know."""
    active: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
    before = dict(active)

    def asks() -> None:
        strand: Any = getcurrent()
        active[strand.number] = threading.current_thread()

    def story(machine: Machine) -> None:
        machine.start_thread(asks, name="other")
        machine.sleep(1)
        assert active == before

    ran(story)
    assert active == before


def test_an_end_says_who_waits_for_what_and_nothing_goes_on() -> None:
    went_on: list[str] = []

    def hung(end: Callable[[Machine], object]) -> list[str]:
        def story(machine: Machine) -> None:
            machine.start_thread(lambda: machine.sleep(1000), name="sleeper")
            busy(machine)
            machine.sleep(1)
            end(machine)
            went_on.append("the agent")

        with pytest.raises(Hung) as caught:
            ran(story)
        assert (caught.value.why, str(caught.value).splitlines()[1:]) == ("enough", caught.value.waiting)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (copy.why, copy.waiting, str(copy)) == (caught.value.why, caught.value.waiting, str(caught.value))
        return [line.partition(",")[0] for line in caught.value.waiting]

    sleeper = "sleeper waits in time.sleep(1000)"
    assert hung(lambda machine: machine.end_run("enough")) == [sleeper]
    assert hung(lambda machine: machine.end_run("enough", "a queue")) == ["the agent waits in a queue", sleeper]
    own = lambda machine: greenlet(lambda: machine.end_run("enough")).switch()  # noqa: E731
    assert hung(own) == ["the agent waits in time.sleep(1)", sleeper]
    assert went_on == []


def test_who_will_not_end_may_wait_10000_times_and_is_left_behind_after_a_hundred_tries() -> None:
    """Each of them, whatever those before it have used up."""
    over: list[bool] = []
    waits: Counter[str] = Counter()
    tries: Counter[str] = Counter()

    def stubborn(machine: Machine, name: str, wait_s: float) -> None:
        while not over:
            try:
                if not machine.stopping:
                    Waiter(machine).park("a test")
                machine.sleep(wait_s)
                waits[name] += 1
            except GreenletExit:
                tries[name] += 1

    threads = []

    def story(machine: Machine) -> None:
        threads.append(machine.start_thread(lambda: stubborn(machine, "one", 50.0), name="one"))
        threads.append(machine.start_thread(lambda: stubborn(machine, "other", 0.001), name="other"))
        machine.sleep(1)

    machine = ran(story, deadline_s=1e6)
    assert waits == {"one": 10_000, "other": 10_000}
    assert tries == {"one": 100, "other": 100}
    assert machine.now == STARTS_S + 1
    over.append(True)
    for thread in threads:
        thread.throw(GreenletExit)
        assert thread.dead


def test_what_one_leaves_to_be_done_is_given_100000_turns() -> None:
    turns: list[int] = []

    def story(machine: Machine) -> None:
        def again() -> None:
            turns.append(1)
            machine.schedule_now(again)

        def other() -> None:
            try:
                machine.sleep(1000)
            finally:
                machine.schedule_now(again)

        machine.start_thread(other, name="other")
        machine.sleep(1)

    machine = ran(story)
    assert len(turns) == 100_000
    assert not machine.ready


def test_who_is_ended_may_pass_turns_and_end_the_run_no_more() -> None:
    seen: list[str] = []

    def other(machine: Machine) -> None:
        try:
            machine.sleep(1000)
        finally:
            machine.end_run_soon("not any more")
            machine.schedule_at(machine.now, nothing)
            machine.schedule_now(seen.append, "ready")
            machine.yield_to_due_calls()
            seen.append("went on")

    def story(machine: Machine) -> None:
        machine.start_thread(lambda: other(machine), name="other")
        machine.sleep(1)

    ran(story)
    assert seen == ["ready", "went on"]


def test_endings_come_in_their_order_once_whatever_one_of_them_raises() -> None:
    machine, seen = Machine(deadline_s=1), list[str]()

    def fails() -> None:
        seen.append("first")
        raise OSError("it failed")

    machine.endings += [fails, lambda: seen.append("second"), lambda: seen.append("third")]
    with pytest.raises(OSError, match="it failed"):
        machine.stop()
    assert seen == ["first", "second", "third"]


def test_after_a_run_its_endings_are_over() -> None:
    machine, seen = Machine(deadline_s=1), list[str]()
    machine.endings.append(lambda: seen.append("once"))
    machine.stop()
    machine.stop()
    assert seen == ["once"]


def test_an_interrupt_while_threads_are_ended_is_not_hidden_by_a_hang() -> None:
    def other(machine: Machine) -> None:
        try:
            machine.sleep(1000)
        finally:
            raise KeyboardInterrupt

    def story(machine: Machine) -> None:
        machine.start_thread(lambda: other(machine), name="other")
        busy(machine)
        machine.sleep(1)
        machine.end_run("enough")

    with pytest.raises(KeyboardInterrupt):
        ran(story)
