"""Toxiproxy dies with kill -9 under a run and comes back: the run goes on, and claims nothing of what that hit."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.identity import Requests, TrialId
from chaoslab.core import events
from chaoslab.core.exchange import Call, Observation
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.record.history import History
from chaoslab.record.runs import Run
from chaoslab.wire.control import ControlDatabase
from chaoslab.wire.lanes import Health
from tests.event_parts import prompt_finished
from tests.hard.dying_parts import SERVERS, Mortal, eventually, mortal
from tests.measure_parts import uninjected
from tests.seams.lab_parts import Bench, bench, managed, said, site

CALL = Call("weather", "current_weather", "p1.r1", 1, 1, "id1")
CLEAR = Plan(1)
FAULTS: dict[str, dict[str, object]] = {
    "latency": {"delay_s": 0.05, "stream": "downstream"},
    "timeout": {"after_s": 0.05, "stream": "downstream"},
    "reset_peer": {"after_s": 0.05, "stream": "downstream"},
    "refused": {},
}
PERFECT = {
    "latency": Observation(0.06, 2.0, None, 200),
    "timeout": Observation(0.06, 2.0, "closed"),
    "reset_peer": Observation(0.06, 2.0, "reset"),
    "refused": Observation(0.001, 2.0, "refused"),
}
"""The observation of a caller who met the fault."""
Story = Callable[[Bench, Mortal], Awaitable[None]]


def always(fault: str) -> Plan:
    return Plan(1, (Injection("wire", (Choice(fault, 1.0, FAULTS[fault]),), ("weather",)),))


class Gate:
    """A site that answers once it may."""

    def __init__(self) -> None:
        self.asked, self.open = threading.Event(), threading.Event()
        self.open.set()

    def answer(self) -> object:
        self.asked.set()
        self.open.wait(10)
        return {"temp": 21}


def with_lab(folder: Path, server: str, plan: Plan, story: Story, *, gate: Gate | None = None) -> History:
    """The logs of a run in which the story happened."""
    gate = gate or Gate()

    async def run(toxiproxy: Mortal, address: str) -> History:
        async with bench(folder, toxiproxy.url, plan, {"weather": address}, deadline_s=20.0) as lab:
            with lab.seam.open_trial(TrialId(lab.run.name, 1)):
                await story(lab, toxiproxy)
            history = lab.history()
            assert set(lab.toxiproxy.proxies()) == {"weather", "refused"}
            return history

    with mortal(server) as toxiproxy, site(lambda _: said(gate.answer())) as weather:
        try:
            return asyncio.run(run(toxiproxy, weather.address))
        finally:
            gate.open.set()


async def until(lab: Bench, true: Callable[[Health], bool]) -> None:
    """Asks the manager until it says so, without standing in the way of the calls under way."""
    await asyncio.to_thread(eventually, lambda: true(lab.manager.health()))


def waiting(lab: Bench) -> bool:
    """True if a call waits for the manager's answer."""
    with contextlib.closing(ControlDatabase(lab.state)) as control:
        return bool(control.list_pending_calls([lab.run.name]))


@pytest.mark.parametrize("server", SERVERS)
def test_a_clean_call_that_is_cut_is_marked_and_its_retry_goes_through(tmp_path: Path, server: str) -> None:
    gate = Gate()

    async def story(lab: Bench, toxiproxy: Mortal) -> None:
        request = Requests(TrialId(lab.run.name, 1)).find_or_create("weather", "look", 1)
        before = lab.seam.clean
        gate.open.clear()
        gate.asked.clear()
        cut = asyncio.ensure_future(lab.get(request, attempt=1))
        await asyncio.to_thread(gate.asked.wait, 10)
        toxiproxy.kill()
        await until(lab, lambda health: health.recovering)
        assert not cut.done()  # it waits with the news until the retry has somewhere to go
        gate.open.set()
        toxiproxy.start()
        with pytest.raises(httpx.HTTPError):
            await cut
        assert (await lab.get(request, attempt=2)).status_code == 200
        assert lab.seam.clean is not before  # what it kept open leads nowhere, be it that nobody has noticed yet

    history = with_lab(tmp_path, server, CLEAR, story, gate=gate)
    first, second = [e for _, e in history.find_events(events.CallFinished)]
    assert (first.ok, first.via, second.ok, second.via) == (False, "proxy", True, "proxy")
    ((record, hit),) = history.find_events(events.CallDisturbed)
    assert (record.trial, hit.target, hit.request, hit.attempt) == ("p1.r1", "weather", 1, 1)
    assert "when the clean proxies went away under it" in hit.why
    (told,) = [e for _, e in history.find_events(events.LabDisturbed)]
    assert (told.what, told.lanes, told.epoch) == ("Toxiproxy was restarted", [], 1)
    assert told.lasted_s > 0


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_a_lost_lane_is_not_witnessed_however_much_it_looks_so(
    tmp_path: Path, server: str, fault: str
) -> None:
    async def story(lab: Bench, toxiproxy: Mortal) -> None:
        row, answer = await lab.seam.lanes.request_lane(CALL, deadline_s=2.0)
        assert answer.state == "armed"
        toxiproxy.restart()
        lab.seam.lanes.end_call_with_observation(row, PERFECT[fault])
        await until(lab, lambda health: health.epoch == 1)

    history = with_lab(tmp_path, server, always(fault), story)
    assert [e.kind for _, e in history.find_events(events.FaultWitnessed)] == []
    assert [e.witnessed for _, e in history.find_events(events.FaultHealed)] == [False]
    (armed,) = [e for _, e in history.find_events(events.FaultArmed)]
    ((record, hit),) = history.find_events(events.CallDisturbed)
    assert (record.trial, hit.request_id, hit.why) == (
        "p1.r1", "id1", f"its lane {armed.lane} was lost before it was over",
    )  # fmt: skip
    (told,) = [e for _, e in history.find_events(events.LabDisturbed)]
    assert told.lanes == [armed.lane]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("plan", [CLEAR, always("latency"), always("refused")], ids=["clear", "lane", "refused"])
def test_a_call_that_is_asked_for_meanwhile_is_held_and_not_lost(tmp_path: Path, server: str, plan: Plan) -> None:
    async def story(lab: Bench, toxiproxy: Mortal) -> None:
        toxiproxy.kill()
        await until(lab, lambda health: health.recovering)  # a call that is asked for before goes where nobody is
        request = Requests(TrialId(lab.run.name, 1)).find_or_create("weather", "look", 1)
        held = asyncio.ensure_future(lab.get(request, attempt=1))
        await asyncio.to_thread(eventually, lambda: waiting(lab))
        assert not held.done()
        toxiproxy.start()
        if plan == always("refused"):
            with pytest.raises(httpx.ConnectError):
                await held
        else:
            assert (await held).status_code == 200

    history = with_lab(tmp_path, server, plan, story)
    hits = [e.why for _, e in history.find_events(events.CallDisturbed)]
    assert hits == ["it had to wait until the clean proxies stood again"]
    armed, met = (len(list(history.find_events(kind))) for kind in (events.FaultArmed, events.FaultWitnessed))
    assert armed == met == len(plan.injections)  # what was armed in the end stood, and was met


@pytest.mark.parametrize("server", SERVERS)
def test_a_run_that_is_opened_meanwhile_gets_its_proxies(tmp_path: Path, server: str) -> None:
    with mortal(server) as toxiproxy, managed(tmp_path, toxiproxy.url, ["weather"]) as manager:
        toxiproxy.kill()
        run = Run.create(tmp_path / "logs", now="2026-06-01T09:00:00Z")
        control = ControlDatabase(tmp_path / "state.db")
        control.request_run_setup(run.name, plan=CLEAR.to_json(), targets={"weather": "127.0.0.1:9"})
        eventually(lambda: manager.health().recovering)
        assert control.get_run_state(run.name)[0] == "asked"
        toxiproxy.start()
        eventually(lambda: control.get_run_state(run.name)[0] != "asked")
        assert control.get_run_state(run.name) == ("ready", "")
        control.close()


@pytest.mark.parametrize("server", SERVERS)
def test_a_run_under_load_goes_on_over_two_restarts_and_a_third_in_the_middle_of_one(
    tmp_path: Path, server: str
) -> None:
    trials, requests, tries, at_once = 30, 4, 6, 6
    wire = Injection(
        "wire", tuple(Choice(name, 1.0, params) for name, params in FAULTS.items()), targets=("weather",), chance=0.4
    )
    plan = Plan(7, (wire,))

    async def story(lab: Bench, toxiproxy: Mortal) -> None:
        done = 0
        gate = asyncio.Semaphore(at_once)

        async def get(book: Requests, number: int) -> None:
            request = book.find_or_create("weather", "look", number)
            for attempt in range(1, tries + 1):
                try:
                    if (await lab.get(request, attempt=attempt)).status_code == 200:
                        return
                except httpx.HTTPError:
                    continue

        async def one(number: int) -> None:
            nonlocal done
            trial = TrialId(lab.run.name, number)
            async with gate:
                with lab.seam.open_trial(trial):
                    lab.seam.log.write(
                        events.PromptStarted(
                            prompt_index=number, prompt="look", facts=[["ok"]], effects=[], stated=True
                        ),
                        trial=trial.key,
                    )
                    book = Requests(trial)
                    await asyncio.gather(*(get(book, n) for n in range(requests)))
                    finished = prompt_finished("ok", prompt_index=number, prompt="look", duration_s=0.1)
                    lab.seam.log.write(finished, trial=trial.key)
            done += 1

        async def strike() -> None:
            await asyncio.to_thread(eventually, lambda: done >= 4)
            await asyncio.to_thread(toxiproxy.restart)
            await until(lab, lambda health: health.epoch == 1)
            await asyncio.to_thread(eventually, lambda: done >= 10)
            await asyncio.to_thread(toxiproxy.kill)
            await until(lab, lambda health: health.recovering)
            toxiproxy.start()
            await asyncio.to_thread(toxiproxy.restart)  # before anybody could use it
            await until(lab, lambda health: health.epoch >= 2)
            await asyncio.to_thread(eventually, lambda: done >= 16)

        await asyncio.gather(strike(), *(one(number) for number in range(1, trials + 1)))

    history = with_lab(tmp_path, server, plan, story)
    judged = judge_all_trials(history)
    hit = {record.trial for record, _ in history.find_events(events.CallDisturbed)}
    assert len(judged) == trials
    assert {trial for trial, v in judged.items() if v.outcome is Outcome.INVALID} == hit
    assert {v.outcome for trial, v in judged.items() if trial not in hit} == {Outcome.CORRECT}
    assert 0 < len(hit) <= 3 * at_once  # no more than were under way
    assert {e.epoch for _, e in history.find_events(events.LabDisturbed)} >= {1, 2}
    assert uninjected(history) == []  # the site always answers: whatever failed was planned, or is marked
    lost = {
        (r.trial, e.request, e.attempt) for r, e in history.find_events(events.CallDisturbed) if "its lane" in e.why
    }
    met = {(r.trial, e.request, e.attempt) for r, e in history.find_events(events.FaultWitnessed)}
    armed = {(r.trial, e.request, e.attempt) for r, e in history.find_events(events.FaultArmed)}
    assert met & lost == set()
    assert {a for a in armed if a[0] not in hit} == {a for a in met if a[0] not in hit}
    answered = {(r.trial, e.request) for r, e in history.find_events(events.CallFinished) if e.ok}
    assert len(answered) == trials * requests
