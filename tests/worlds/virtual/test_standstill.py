"""A loop of steps that take no time is found by counting them, whatever it swallows.

Where something is still to come, it is given that.
"""

import asyncio
import contextlib
import datetime
import gc
import inspect
import queue
import re
import select
import socket
import subprocess
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
from greenlet import greenlet

import chaoslab as lab
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.events import PromptAttempt, PromptFinished
from chaoslab.execution.spec import TrialSpec
from chaoslab.lab._virtual_lab import Lab
from chaoslab.worlds.virtual.machine import _standstill as standstill
from chaoslab.worlds.virtual.machine._standstill import StepCounter
from chaoslab.worlds.virtual.machine.machine import Hung
from tests import warm
from tests.waiting import HUNG_S
from tests.worlds.virtual import lab_runs
from tests.worlds.virtual.machine_parts import a_world
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

FEW = 50
REFUSED = [lab.inject("refused", ["price", "quote"])]


def price(what: str) -> int:  # noqa: ARG001
    return 3


async def quote(what: str) -> int:  # noqa: ARG001
    return 3


def broken(what: str) -> int:
    raise LookupError(what)


def trial_of(agent: Any, **options: Any) -> lab.Trial:
    given: dict[str, Any] = {"faults": REFUSED, "deadline_s": 60, "calls_max": FEW, "twin": False} | options
    return lab.run(agent, "How much?", reads=[price, quote, broken], **given)


def line_of(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    (found,) = (first + number for number, line in enumerate(lines) if text in line)
    return found


# Agents that ask again and again, and what they swallow.


def of_exceptions(_: str) -> int:
    while True:
        try:
            return price("pen")
        except Exception:  # noqa: BLE001
            pass


def of_all(_: str) -> int:
    while True:
        with contextlib.suppress(BaseException):
            return price("pen")


def bare(_: str) -> int:
    while True:
        try:
            return price("pen")
        except:  # noqa: E722
            pass


def of_its_own_failure(_: str) -> int:
    """Nothing of the lab's fails here, so that it would go on when the trial is over."""
    while True:
        try:
            return broken("pen")
        except:  # noqa: E722
            pass


def in_layers(_: str) -> int:
    while True:
        try:
            while True:
                try:
                    return price("pen")
                except:  # noqa: E722
                    pass
        except:  # noqa: E722
            pass


def in_a_thread(prompt: str) -> str:
    thread = threading.Thread(target=bare, args=(prompt,))
    thread.start()
    thread.join()
    return "done"


def with_no_wait(_: str) -> int:
    while True:
        try:
            return price("pen")
        except OSError:
            time.sleep(0)


def until_a_moment(_: str) -> str:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            return str(price("pen"))
    return "gave up"


async def of_a_coroutine(_: str) -> int:
    while True:
        try:
            return await quote("pen")
        except:  # noqa: E722
            pass


async def letting_others_run(_: str) -> int:
    while True:
        try:
            return await quote("pen")
        except OSError:
            await asyncio.sleep(0)


def in_a_greenlet(prompt: str) -> Any:
    return greenlet(bare).switch(prompt)


@pytest.mark.parametrize(
    ("agent", "looping", "asked"),
    [
        (of_exceptions, None, "price"),
        (of_all, None, "price"),
        (bare, None, "price"),
        (of_its_own_failure, None, "broken"),
        (in_layers, None, "price"),
        (in_a_thread, bare, "price"),
        (with_no_wait, None, "price"),
        (until_a_moment, None, "price"),
        (of_a_coroutine, None, "quote"),
        (letting_others_run, None, "quote"),
        (in_a_greenlet, bare, "price"),
    ],
)
def test_a_loop_of_calls_is_hung_and_its_line_is_named(agent: Any, looping: Any, asked: str) -> None:
    trial = trial_of(agent)
    looping = looping or agent
    line = line_of(looping, asked + '("pen")')
    said = f"test_standstill.py:{line} in {looping.__name__} calls {asked} again and again"
    assert trial.outcome is lab.Outcome.HUNG
    assert trial.why.startswith(f"{said} and no time passes ({FEW} calls)")
    assert (trial.seconds, trial.answer, trial.error) == (0, None, None)
    (finished,) = [event for _, event in trial.history.find_events(PromptFinished)]
    assert finished.error_type == "hung"


def test_it_is_found_without_being_told_how_many_are_too_many() -> None:
    trial = lab.run(of_its_own_failure, "go", reads=[broken], twin=False)
    assert trial.why.endswith("calls broken again and again and no time passes (10,000 calls)")


def test_what_is_left_of_such_a_trial_holds_none_of_its_calls() -> None:
    """A thread that swallows everything cannot be ended, only left where it is."""
    trial = trial_of(bare)
    book = weakref.ref(trial._result.book)
    del trial
    gc.collect()
    assert book() is None


def test_equal_runs_of_it_are_equal_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        trial_of(bare, logs=tmp_path / folder)
    one, two = (lab_runs.files((tmp_path / folder / "latest").resolve()) for folder in ("one", "two"))
    assert one == two
    assert b"in bare calls price" in one["info.log"]
    assert b"/test_standstill.py" not in one["info.log"]


def test_as_many_calls_with_waits_in_between_are_none() -> None:
    def patient(_: str) -> str:
        for _again in range(3 * FEW):
            with contextlib.suppress(OSError):
                price("pen")
            time.sleep(0.001)
        return "gave up"

    def busy_for_a_while(_: str) -> str:
        for _again in range(3):
            for _each in range(FEW - FEW // 10):
                with contextlib.suppress(OSError):
                    price("pen")
            time.sleep(0.001)
        return "gave up"

    assert trial_of(patient).answer == trial_of(busy_for_a_while).answer == "gave up"


# What is still to come.


def test_who_asks_without_waiting_is_given_what_is_to_come() -> None:
    """A real computer would let time pass meanwhile."""

    def until_it_is_done(wait: Callable[[], Any]) -> Callable[[str], float]:
        def agent(_: str) -> float:
            done: list[int] = []
            threading.Timer(5.0, done.append, [1]).start()
            while not done:
                wait()
            return time.monotonic()

        return agent

    def asks() -> None:
        with contextlib.suppress(OSError):
            price("pen")

    for wait in (asks, lambda: time.monotonic()):
        assert trial_of(until_it_is_done(wait)).seconds == 5


def test_others_who_have_something_to_do_at_this_moment_do_it() -> None:
    def agent(_: str) -> str:
        done: list[int] = []
        threading.Thread(target=done.append, args=[1]).start()
        while not done:
            price("pen")
        return "done"

    assert trial_of(agent, faults=()).answer == "done"


def test_a_deadline_of_the_agents_own_ends_its_loop() -> None:
    async def within(work: Callable[[], Awaitable[Any]]) -> str:
        try:
            return str(await asyncio.wait_for(work(), 5))
        except TimeoutError:
            return "too late"

    async def asks(prompt: str) -> str:
        return await within(lambda: letting_others_run(prompt))

    async def turns(_: str) -> str:
        async def spin() -> None:
            while True:
                await asyncio.sleep(0)

        return await within(spin)

    for agent in (asks, turns):
        trial = trial_of(agent)
        assert (trial.answer, trial.seconds) == ("too late", 5)


def test_a_loop_beside_somebody_who_does_wait_ends_at_the_deadline_after_few_calls() -> None:
    def agent(prompt: str) -> int:
        def beat() -> None:
            while True:
                time.sleep(1)

        threading.Thread(target=beat, name="beat").start()
        return bare(prompt)

    trial = trial_of(agent)
    assert trial.why.startswith(
        "not over after 60 s of virtual time; the agent waits in a loop that calls price, called in "
    )
    assert "function.stand_in" not in trial.why
    assert trial._result.book.calls < 4 * FEW


def test_a_thread_that_is_left_looping_is_no_part_of_the_trial() -> None:
    def agent(prompt: str) -> str:
        for work in (of_its_own_failure, _sleeps_for_ever):
            threading.Thread(target=work, args=(prompt,)).start()
        time.sleep(1)
        return "left them"

    trial = trial_of(agent, deadline_s=3e8)
    assert (trial.answer, trial.seconds, trial._result.hung) == ("left them", 1, "")


def _sleeps_for_ever(_: str) -> None:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(0.02)


# Other steps that take no time.


def _looks(look: Callable[[], float]) -> Callable[[], None]:
    def story() -> None:
        end = look() + 5
        while look() < end:
            pass

    return story


def _gets(make: Callable[[], Any]) -> Callable[[], None]:
    """Made in the world: the clocks and locks of the process, which a module took as it loaded, are others."""

    def story() -> None:
        waiting = make()
        while True:
            with contextlib.suppress(queue.Empty):
                waiting.get_nowait()

    return story


def _of_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    while not lock.acquire(blocking=False):
        pass


def _of_an_event() -> None:
    event = threading.Event()
    while not event.wait(0):
        pass


def _of_a_socket() -> None:
    with socket.socket() as mine:
        mine.connect(("shop", 80))
        mine.setblocking(False)
        while True:
            with contextlib.suppress(BlockingIOError):
                mine.recv(1)


def _of_select() -> None:
    with socket.socket() as mine:
        mine.connect(("shop", 80))
        while not select.select([mine], [], [], 0)[0]:
            pass


def _by_turns() -> None:
    """Each is what the other waits for."""

    def spin() -> None:
        while True:
            time.sleep(0)

    threading.Thread(target=spin).start()
    spin()


LOOKS, TRIES, TAKES = "looks at the clock", "asks", "takes a lock"


@pytest.mark.parametrize(
    ("story", "said"),
    [
        pytest.param(_looks(lambda: time.monotonic()), LOOKS, id="time.monotonic"),
        pytest.param(_looks(lambda: time.perf_counter()), LOOKS, id="time.perf_counter"),
        pytest.param(_looks(lambda: time.monotonic_ns() / 1e9), LOOKS, id="time.monotonic_ns"),
        pytest.param(_looks(lambda: time.clock_gettime(time.CLOCK_MONOTONIC)), LOOKS, id="time.clock_gettime"),
        pytest.param(_looks(lambda: time.time()), LOOKS, id="time.time"),
        pytest.param(_looks(lambda: datetime.datetime.now().timestamp()), LOOKS, id="datetime.now"),
        pytest.param(_of_a_lock, "asks for a lock that is held", id="a lock"),
        pytest.param(_of_an_event, TAKES, id="an event"),
        pytest.param(_gets(lambda: queue.Queue[int]()), TAKES, id="a queue"),
        pytest.param(_gets(lambda: queue.SimpleQueue[int]()), "asks an empty queue", id="a simple queue"),
        pytest.param(_of_a_socket, "tries to recv from shop:80", id="a socket"),
        pytest.param(_of_select, "asks what is ready", id="select"),
        pytest.param(_by_turns, "it would turn for ever", id="two that let each other run"),
    ],
)  # fmt: skip
def test_a_loop_that_never_waits_is_found(
    story: Callable[[], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstill, "LOOKS_MAX", 3000)
    monkeypatch.setattr(standstill, "TURNS_MAX", 1000)
    world = a_world({"shop": _shop})
    with pytest.raises(Hung) as caught:
        world.run_program(story)
    if said.startswith("it "):
        assert said in caught.value.why
    else:
        assert re.match(rf"test_standstill\.py:\d+ in \S+ {said}", caught.value.why)


def test_a_queue_that_many_put_something_into_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition asks its lock whether it is held."""
    monkeypatch.setattr(standstill, "TURNS_MAX", 100)

    def story() -> int:
        found: queue.Queue[int] = queue.Queue()
        for number in range(300):
            found.put(number)
        return found.qsize()

    assert a_world().run_program(story) == 300


# Over the network, where a call takes a little time.


def _shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
    start_response("503 Service Unavailable", [("Content-Length", "0")])
    return [b""]


def _asks_shop(_: str) -> str:
    while True:
        with contextlib.suppress(Exception):
            requests.get("http://shop/", timeout=5).raise_for_status()


def _asks_nobody(_: str) -> str:
    while True:
        with contextlib.suppress(Exception):
            requests.get("http://127.0.0.1:99/", timeout=5)


async def _asks_on_one_connection(_: str) -> str:
    async with httpx.AsyncClient() as client:
        while True:
            await client.get("http://shop/")


@pytest.mark.parametrize(
    ("agent", "whom"), [(_asks_shop, "shop:80"), (_asks_nobody, "localhost:99"), (_asks_on_one_connection, "shop:80")]
)
def test_a_loop_of_requests_is_found_too(agent: Any, whom: str) -> None:
    trial = trial_of(agent, services={"shop": _shop}, elsewhere="unreachable")
    asked = f"{whom} is asked again and again without a wait ({FEW} requests, less than 1 ms apart); the agent"
    assert trial.outcome is lab.Outcome.HUNG
    assert trial.why.startswith(asked)
    assert f"test_standstill.{agent.__name__}, line " in trial.why
    assert trial.seconds < 1


def test_as_many_requests_with_waits_in_between_are_none() -> None:
    def agent(_: str) -> str:
        for _again in range(2 * FEW):
            requests.get("http://shop/", timeout=5)
            time.sleep(0.01)
        return "gave up"

    assert trial_of(agent, services={"shop": _shop}).answer == "gave up"


@pytest.mark.parametrize("limits", [{}, {"CALL_LIMIT": "3"}], ids=["answered", "refused by a budget"])
def test_the_labs_own_agent_is_found_looping(limits: dict[str, str]) -> None:
    """A refusal for the sake of a budget takes no time at all."""
    order = lab_runs.spec({"TOXIC_PROB": "0", "ERROR_PROB": "0", **limits}, lab_runs.prompts([1]))
    whole = Lab(replace(order, calls_max=FEW))

    class Endless:
        """A graph that never comes to an end."""

        async def ainvoke(self, state: Any, config: Any = None) -> Any:  # noqa: ARG002
            (tool,) = (each for each in whole.session.toolbox.build_tools() if each.name == "calculate")
            while True:
                with contextlib.suppress(Exception):
                    await tool.ainvoke({"expression": "1+1"})

    whole.session.graph = Endless()
    with whole.install_fakes():
        done = whole.run_trial(TrialSpec(0))
    assert done.outcome is Outcome.HUNG
    (said,) = [str(kept.text) for kept in done.buffered_events if kept.is_of_kind(PromptAttempt)]
    looping = (
        "is asked again and again" if not limits else "calls calculator.calculate again and again and no time passes"
    )
    assert looping in said


# In real time.


def swallowing(prompt: str) -> str:
    with contextlib.suppress(SystemExit):
        of_exceptions(prompt)
    return "swallowed"


def beside(prompt: str) -> str:
    thread = threading.Thread(target=of_exceptions, args=(prompt,))
    thread.start()
    thread.join()
    return "done"


async def in_a_task(prompt: str) -> None:
    await asyncio.gather(letting_others_run(prompt), asyncio.Event().wait())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # Python itself says nothing of it
@pytest.mark.parametrize("agent", [of_exceptions, until_a_moment, swallowing, beside, letting_others_run, in_a_task])
def test_in_real_time_a_call_after_the_deadline_ends_it(agent: Any) -> None:
    trial = trial_of(agent, world="local", deadline_s=0.05)
    assert trial.outcome is lab.Outcome.HUNG
    said = r"test_standstill\.py:\d+ in \w+ calls (price|quote) after the deadline of 0\.05 s"
    assert re.fullmatch(said, trial.why)
    assert (trial.answer, trial.error) == (None, None)


class Clock:
    """A machine whose time is set by hand, outside of its own thread."""

    def __init__(self) -> None:
        self.now, self.hub, self.turns = 0.0, None, 0

    def yield_to_due_calls(self) -> None:
        self.turns += 1


def test_a_limit_is_of_steps_at_one_time_and_halves_while_only_they_move_the_clock() -> None:
    machine: Any = Clock()
    pace = StepCounter(machine, 5000, near_s=0.5)
    assert [pace.count_and_tell_if_at_limit(steps) for steps in (4998, 1, 1, 1)] == [False, False, True, True]
    machine.now = 0.5
    assert pace.count_and_tell_if_at_limit()
    machine.now = 1.5
    assert (pace.count_and_tell_if_at_limit(9), pace.count) == (False, 0)
    allowed = []
    for until in range(2, 14):
        pace.record_clock_move(float(until))
        machine.now = float(until)
        allowed.append(pace.allowed)
    assert allowed == [2500, 1250, 625, 312, 156, 78, 39, 19, 9, 5, 5, 5]
    assert (pace.count_and_tell_if_at_limit(4), pace.count_and_tell_if_at_limit(1)) == (False, True)
    machine.now = 14.0
    pace.record_clock_move(15.0)
    machine.now = 15.7  # later than it was moved to: something else took time
    assert (pace.count_and_tell_if_at_limit(), pace.allowed) == (False, 5000)
    pace.record_clock_move(20.0)
    pace.reset_count()
    assert (pace.allowed, pace.count) == (5000, 0)


def test_steps_are_granted_a_tenth_of_the_limit_at_a_time() -> None:
    machine: Any = Clock()
    pace = StepCounter(machine, 50)
    granted = []
    for _ in range(40):
        pace.count_step("asks", "times")
        granted.append(pace.count)
    assert granted == [n // 5 * 5 for n in range(40)]
    assert machine.turns == 3  # from half of the limit on, others have their turn


# A task that catches its cancellation and its end, and goes on. What it awaits raises outside of its world, so it would
# turn for ever when it is freed.

TURNS_MAX = 20_000
turns: list[str] = []
"""The exceptions that were swallowed, so that such a task ends in a test."""


async def going_on() -> None:
    while len(turns) < TURNS_MAX:
        try:
            await asyncio.sleep(1)
        except BaseException as error:  # noqa: BLE001
            turns.append(type(error).__name__)


async def asking_at_its_end() -> None:
    with contextlib.suppress(BaseException):
        await asyncio.sleep(1)
    while len(turns) < TURNS_MAX:
        try:
            broken("pen")
        except BaseException as error:  # noqa: BLE001
            turns.append(type(error).__name__)


async def going_on_alone(_: str) -> None:
    await going_on()


async def going_on_beside(_: str) -> str:
    task = asyncio.create_task(going_on())
    await asyncio.sleep(0)
    assert not task.done()
    return "done"


def going_on_in_a_thread(_: str) -> str:
    threading.Thread(target=asyncio.run, args=(going_on(),)).start()
    return "done"


def leave_in_a_closed_loop(work: Coroutine[Any, Any, None]) -> str:
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not task.done()
    return "done"


def going_on_in_a_closed_loop(_: str) -> str:
    return leave_in_a_closed_loop(going_on())


def asking_in_a_closed_loop(_: str) -> str:
    return leave_in_a_closed_loop(asking_at_its_end())


@pytest.mark.parametrize(
    ("agent", "outcome"),
    [
        (going_on_alone, Outcome.HUNG), (going_on_beside, Outcome.UNKNOWN), (going_on_in_a_thread, Outcome.UNKNOWN),
        (going_on_in_a_closed_loop, Outcome.UNKNOWN), (asking_in_a_closed_loop, Outcome.UNKNOWN),
    ],
)  # fmt: skip
def test_a_task_that_swallows_its_end_is_over_with_its_trial(agent: Any, outcome: Outcome) -> None:
    turns.clear()
    trial = trial_of(agent, faults=[])
    assert trial.outcome is outcome
    del trial
    gc.collect()
    assert 0 < len(turns) < TURNS_MAX


ENDLESS = """
import asyncio
import chaoslab as lab

async def agent(prompt):
    while True:
        try:
            await asyncio.sleep(1)
        except BaseException:
            pass

if __name__ == "__main__":
    print(lab.run(agent, "go", twin=False, deadline_s=60).outcome.value)
"""


def test_a_process_ends_that_has_run_an_agent_which_does_not(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    told = subprocess.run(
        [warm.python(), str(tmp_path / "endless.py")], capture_output=True, text=True, timeout=HUNG_S, check=True
    )
    assert told.stdout == "hung\n"
