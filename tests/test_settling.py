"""Effects that land after the answer: a trial ends when its world is quiet."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

import chaoslab as lab
from chaoslab.core.events import CallFinished, Effect, FaultWitnessed, PromptFinished
from chaoslab.record.history import History
from chaoslab.record.trial_stream import TrialStream
from tests.waiting import DEADLINE_S

CHARGE = "https://bank/charges"
ONCE = [{"effect": "POST /charges", "amount": 30}]


def charge(amount: int) -> str:
    return f"charged {amount}"


def slowly(seconds: int) -> str:
    time.sleep(seconds)
    return "done"


def slow_once() -> Callable[[Any], Any]:
    """A bank whose first charge takes 20 s."""
    asked: list[int] = []

    def bank(_: Any) -> tuple[int, dict[str, int]]:
        asked.append(1)
        if len(asked) == 1:
            time.sleep(20)
        return 201, {"charged": 30}

    return bank


def quick(_: Any) -> tuple[int, dict[str, int]]:
    return 201, {"charged": 30}


def asking_again(prompt: str, headers: dict[str, str] | None = None) -> str:
    for _ in range(3):
        try:
            requests.post(CHARGE, json={"amount": 30}, headers=headers, timeout=5)
        except requests.Timeout:
            continue
        return prompt
    return "The charge failed."


def keyed(prompt: str) -> str:
    return asking_again(prompt, {"Idempotency-Key": "o17"})


def giving_up(call: Callable[[], Any]) -> Callable[[str], str]:
    """An agent that waits 10 s for the call in a thread, and calls again."""

    def agent(prompt: str) -> str:
        pool = ThreadPoolExecutor(2)
        for _ in range(3):
            try:
                pool.submit(call).result(timeout=10)
            except TimeoutError:
                continue
            break
        pool.shutdown(wait=False)
        return prompt

    return agent


def posting() -> None:
    requests.post(CHARGE, json={"amount": 30}, timeout=120)


def told_after_the_answer(trial: lab.Trial) -> str:
    _, _, after = trial.story().partition("after the answer:\n")
    return after


@pytest.mark.parametrize(("agent", "outcome"), [(asking_again, "harm"), (keyed, "correct")])
def test_a_service_that_works_on_after_its_clients_timeout_is_heard(agent: Any, outcome: str) -> None:
    trial = lab.run(agent, "Charged 30.", services={"bank": lab.fresh(slow_once)}, effects=ONCE, twin=False)
    assert str(trial.outcome) == outcome
    assert trial.seconds == pytest.approx(5, abs=0.01), "the caller waited no longer"
    times = [record.t for record, _ in trial.history.find_events(Effect)]
    assert times == [pytest.approx(5, abs=0.01), pytest.approx(20, abs=0.01)]
    assert told_after_the_answer(trial).startswith('   +20.000 s  effect   bank POST /charges {"amount": 30}\n')


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
@pytest.mark.parametrize("over_http", [False, True], ids=["function", "http"])
def test_a_call_that_its_agent_gave_up_and_nobody_cancelled_goes_on(stream: str, *, over_http: bool) -> None:
    name = "bank" if over_http else "charge"
    late = [lab.inject("latency", name, delay_s=15, stream=stream, calls=[1], attempts=[1])]
    call: Callable[[], Any] = posting if over_http else lambda: charge(30)
    trial = lab.run(giving_up(call), "Charged 30.", tools=[charge], services={"bank": quick}, faults=late)
    assert (trial.outcome, len(trial.effects)) == (lab.Outcome.HARM, 2)
    assert trial.seconds == pytest.approx(10, abs=0.01)
    assert [event.evidence for _, event in trial.history.find_events(FaultWitnessed)] == [
        "took 15.000 s, at least 15.000 s were armed"
    ]
    assert "cancelled" not in trial.story()


def test_a_paused_service_does_its_work_when_it_goes_on() -> None:
    def agent(prompt: str) -> str:
        try:
            requests.post(CHARGE, json={"amount": 30}, timeout=5)
        except requests.Timeout:
            requests.post(CHARGE, json={"amount": 30}, timeout=60)
        return prompt

    def leaves(prompt: str) -> str:
        with contextlib.suppress(requests.Timeout):
            requests.post(CHARGE, json={"amount": 30}, timeout=5)
        return prompt

    paused = [lab.inject("service_paused", "bank", paused_s=20, calls=[1], attempts=[1])]
    for program, count in ((agent, 2), (leaves, 1)):
        trial = lab.run(program, "x", services={"bank": quick}, faults=paused)
        assert len(trial.effects) == count, trial.story()


def in_a_thread(prompt: str) -> str:
    threading.Timer(7, charge, (30,)).start()
    return prompt


def in_a_pool(prompt: str) -> str:
    pool = ThreadPoolExecutor(1)
    pool.submit(time.sleep, 7)
    pool.submit(charge, 30)
    pool.shutdown(wait=False)
    return prompt


left: list[Any] = []


async def in_a_task(prompt: str) -> str:
    async def later() -> None:
        await asyncio.sleep(7)
        charge(30)

    left[:] = [asyncio.create_task(later())]
    return prompt


def in_a_loop_of_the_labs(prompt: str) -> Any:
    return in_a_task(prompt)


@pytest.mark.parametrize("agent", [in_a_thread, in_a_pool, in_a_task, in_a_loop_of_the_labs])
def test_what_an_agent_has_left_behind_goes_on(agent: Any) -> None:
    trial = lab.run(agent, "ok", tools=[charge], effects=[{"effect": "charge"}], twin=False)
    assert (trial.outcome, trial.seconds) == (lab.Outcome.CORRECT, 0), trial.story()
    assert "   +7.000 s  effect   charge charge" in told_after_the_answer(trial)
    without = lab.run(agent, "ok", tools=[charge], effects=[{"effect": "charge"}], twin=False, settle_s=0)
    assert without.effects == []


def test_the_state_is_read_when_all_is_quiet() -> None:
    paid: list[int] = []

    def pay(amount: int) -> None:
        paid.append(amount)

    def agent(prompt: str) -> str:
        paid.clear()
        threading.Timer(7, pay, (30,)).start()
        return prompt

    assert lab.run(agent, "ok", tools=[pay], state=lambda: list(paid), twin=True).end_state == [30]


def test_what_is_not_over_in_time_is_named_and_nothing_says_it_was_cancelled() -> None:
    def agent(_: str) -> str:
        threading.Thread(target=slowly, args=(100,)).start()
        return "30 were paid."

    trial = lab.run(agent, "go", reads=[slowly], facts=["30"], twin=False)
    (said,) = trial.warnings
    assert said.startswith(
        "still under way 60 s after the answer, so its end is not known: Thread-1 (slowly) waits in "
    )
    assert "time.sleep(100), called in tests.test_settling.slowly, line " in said
    ((_, end),) = trial.history.find_events(CallFinished)
    assert (end.ok, end.error, end.duration_s) == (False, "open at the trial's end", 60.0)
    assert trial.outcome is lab.Outcome.CORRECT


@pytest.mark.parametrize("paid", [True, False])
def test_what_goes_on_beyond_the_time_to_settle_may_do_more(*, paid: bool) -> None:
    def status() -> int:
        return 1

    def agent(prompt: str) -> str:
        later, ok = 1.0, True
        try:
            status()
        except lab.ToolError:
            later, ok = 90.0, paid
        if ok:
            charge(17)
        threading.Timer(later, charge, (18,)).start()
        return prompt

    trial = lab.run(agent, "Paid.", tools=[charge], reads=[status], faults=[lab.inject("server_error", "status")])
    assert (trial.outcome, trial.verdict.world) == ("unknown", "may have been done")
    assert "what is done cannot be known: still under way 60 s after the answer" in trial.why


def test_what_goes_on_in_the_twin_too_is_no_doubt() -> None:
    def agent(prompt: str) -> str:
        try:
            charge(17)
        except ConnectionError:
            charge(17)
        threading.Timer(3600, charge, (18,)).start()
        return prompt

    trial = lab.run(agent, "Paid.", tools=[charge], faults=[lab.inject("refused", "charge", calls=[1])])
    assert (trial.outcome, bool(trial.warnings)) == ("correct", True)


def test_a_call_that_is_open_at_the_end_has_not_missed_its_fault() -> None:
    late = [lab.inject("latency", "bank", delay_s=200, stream="downstream", calls=[1], attempts=[1])]
    trial = lab.run(giving_up(posting), "Charged 30.", services={"bank": quick}, faults=late)
    assert (trial.outcome, trial.verdict.harm) == (lab.Outcome.HARM, ("POST /charges twice",))
    assert "INJECTED AND NOT WITNESSED: the call was open at the trial's end, after 70.000 s" in trial.story()


def test_a_pulse_is_no_work_and_a_loop_without_a_wait_is_said() -> None:
    def beating(_: str) -> str:
        def beat() -> None:
            while True:
                time.sleep(5)

        threading.Thread(target=beat, daemon=True).start()
        return "30 were paid."

    def spinning(_: str) -> str:
        def spin() -> None:
            while True:
                time.monotonic()

        threading.Thread(target=spin, daemon=True).start()
        return "30 were paid."

    trial = lab.run(beating, "go", facts=["30"], twin=False)
    assert (trial.outcome, trial.warnings, trial.seconds) == (lab.Outcome.CORRECT, (), 0)
    trial = lab.run(spinning, "go", facts=["30"], twin=False)
    (said,) = trial.warnings
    assert trial.outcome is lab.Outcome.CORRECT
    assert said.startswith("after the answer: test_settling.py:")


def test_a_run_of_such_trials_is_in_time_order_in_its_log(tmp_path: Path) -> None:
    list(lab.run_many(in_a_thread, "ok", trials=2, tools=[charge], effects=[], logs=tmp_path))
    folder = (tmp_path / "latest").resolve()
    assert [len(batch.records) for batch in TrialStream(folder, least=1)] == [1, 6, 7]
    times = [record.t for record in History.read(folder).records]
    assert times == sorted(times)
    assert [record.t for record, _ in History.read(folder).find_events(PromptFinished)] == [0.0, 7.0]


def test_in_real_time_calls_under_way_are_waited_for() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def pay(amount: int) -> int:
        begun.set()
        go_on.wait(DEADLINE_S)
        return amount

    def leaves(prompt: str) -> str:
        begun.clear()
        go_on.clear()
        threading.Thread(target=pay, args=(30,)).start()
        begun.wait(DEADLINE_S)
        return prompt

    def pays(prompt: str) -> str:
        leaves(prompt)
        threading.Timer(0.05, go_on.set).start()
        return prompt

    trial = lab.run(pays, "ok", tools=[pay], effects=[{"effect": "pay", "amount": 30}], world="local")
    assert (str(trial.outcome), trial.warnings) == ("correct", ()), trial.story()
    trial = lab.run(leaves, "ok", tools=[pay], effects=[], world="local", settle_s=0)
    go_on.set()
    assert trial.warnings == ("still under way 0 s after the answer, so its end is not known: pay",)
    go_on.set()


@pytest.mark.parametrize("value", [-1, "soon", True])
def test_a_wrong_time_to_settle_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="settle_s is "):
        lab.run(in_a_thread, "ok", tools=[charge], settle_s=value)
