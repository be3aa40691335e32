"""The agent's process is killed at a call, and what goes on is judged by the ledger."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import AgentDied, AgentResumed, CallFinished

Work = Callable[[str], str]


def charge(order: str, amount: int) -> dict[str, Any]:
    return {"order": order, "amount": amount}


def mail(order: str) -> str:
    return f"mailed {order}"


def dies(at: str, moment: str = "after", **more: Any) -> list[Any]:
    return [lab.inject("agent_dies", at, calls=[1], moment=moment, **more)]


def run(agent: Any, resume: Any, faults: list[Any], **more: Any) -> lab.Trial:
    return lab.run(agent, "Charge o1 20 dollars.", tools=[charge, mail], faults=faults, resume_with=resume, **more)


class Jobs:
    """Steps that are done, in a database that outlives the agent."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path)
        made.execute("create table if not exists done (step text)")
        return made

    def anew(self, work: Work) -> Work:
        def agent(prompt: str) -> str:
            self.path.unlink(missing_ok=True)
            return work(prompt)

        return agent

    def marked_after(self, prompt: str) -> str:  # noqa: ARG002
        return self._steps(before=False)

    def marked_before(self, prompt: str) -> str:  # noqa: ARG002
        return self._steps(before=True)

    def _steps(self, *, before: bool) -> str:
        rows = self.open()
        for step, call in (("charge", lambda: charge("o1", 20)), ("mail", lambda: mail("o1"))):
            if rows.execute("select 1 from done where step = ?", (step,)).fetchone():
                continue
            if before:
                rows.execute("insert into done values (?)", (step,))
                rows.commit()
            call()
            if not before:
                rows.execute("insert into done values (?)", (step,))
                rows.commit()
        return "Charged 20."


def from_start(prompt: str) -> str:  # noqa: ARG001
    charge("o1", 20)
    mail("o1")
    return "Charged 20."


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / "jobs.db")


@pytest.mark.parametrize(
    ("name", "at", "moment", "outcome"),
    [
        ("marked_after", "charge", "before", "correct"),
        ("marked_after", "charge", "after", "harm"),
        ("marked_before", "charge", "before", "false_success"),
        ("marked_before", "charge", "after", "correct"),
        ("marked_after", "mail", "before", "correct"),
    ],
)
def test_what_is_done_twice_is_harm_and_what_is_lost_is_told(
    jobs: Jobs, name: str, at: str, moment: str, outcome: str
) -> None:
    work: Work = getattr(jobs, name)
    trial = run(jobs.anew(work), work, dies(at, moment))
    assert (str(trial.outcome), trial.met) == (outcome, (f"agent_dies on {at}",))
    assert trial.verdict.why.endswith(f"; killed at {at} (1.1), it went on")


def test_one_that_does_all_again_is_told_so() -> None:
    trial = run(from_start, from_start, dies("mail", "before"))
    assert trial.verdict.why == "charge twice; killed at mail (1.1), it resumed from the start"
    assert [event.error for _, event in trial.history.find_events(CallFinished)] == [None, "died", None, None]
    story = trial.story()
    assert "process  mail 1.1 the agent was killed" in story
    assert "process  the agent resumes (1)" in story


def test_neither_except_nor_finally_of_the_dead_acts() -> None:
    told: list[str] = []

    def agent(prompt: str) -> str:  # noqa: ARG001
        while True:
            try:
                charge("o1", 20)
                return "Charged 20."
            except BaseException:  # noqa: BLE001
                told.append("caught")
            finally:
                mail("o1")

    trial = run(agent, lambda _: mail("o1") and "Charged 20.", dies("charge"))
    assert [each["effect"] for each in trial.effects] == ["charge", "mail"]
    assert str(trial.outcome) == "correct"


def test_one_that_swallows_its_end_and_calls_on_is_over_with_its_trial() -> None:
    swallowed, enough = list[str](), 20_000

    def agent(_: str) -> None:
        while len(swallowed) < enough:
            try:
                charge("o1", 20)
            except BaseException as error:  # noqa: BLE001
                swallowed.append(type(error).__name__)

    trial = run(agent, lambda _: "Charged 20.", dies("charge"), calls_max=50, twin=False)
    assert trial.answer == "Charged 20."
    assert 0 < len(swallowed) < enough


def test_its_threads_tasks_and_locks_end_with_it() -> None:
    lock = threading.Lock()

    def beside() -> None:
        time.sleep(5)
        mail("o1")

    def agent(prompt: str) -> str:
        threading.Thread(target=beside).start()
        with lock:
            return from_start(prompt)

    async def late() -> None:
        await asyncio.sleep(5)
        mail("o1")

    async def async_agent(prompt: str) -> str:
        task = asyncio.create_task(late())
        answer = from_start(prompt)
        await asyncio.sleep(0)
        task.cancel()
        return answer

    def resume(prompt: str) -> str:  # noqa: ARG001
        time.sleep(60)
        mail("o1")
        return "Charged 20."

    async def async_resume(prompt: str) -> str:
        await asyncio.sleep(60)
        return await asyncio.to_thread(resume, prompt)

    for start in (agent, async_agent):
        for go_on in (resume, async_resume):
            trial = run(start, go_on, dies("charge"), effects=[CHARGED, MAILED])
            assert [each["effect"] for each in trial.effects] == ["charge", "mail"], trial.story()
            assert trial.error is None


CHARGED = {"effect": "charge", "order": "o1", "amount": 20}
MAILED = {"effect": "mail", "order": "o1"}


def test_a_transaction_that_was_not_committed_is_rolled_back(jobs: Jobs) -> None:
    seen: list[int] = []

    def work(prompt: str) -> str:  # noqa: ARG001
        rows = jobs.open()
        seen.append(rows.execute("select count(*) from done").fetchone()[0])
        rows.execute("insert into done values ('charge')")
        charge("o1", 20)
        rows.commit()
        return "Charged 20."

    trial = run(jobs.anew(work), work, dies("charge", "before"))
    assert (str(trial.outcome), {*seen}) == ("correct", {0})


def test_it_dies_in_a_call_of_a_service_and_the_service_goes_on() -> None:
    def bank(_: Any) -> dict[str, Any]:
        return {"paid": True}

    def agent(prompt: str) -> str:  # noqa: ARG001
        return str(httpx.post("http://bank.test/pay", json={"amount": 20}).json()["paid"])

    def run_at(moment: str) -> lab.Trial:
        faults = [lab.inject("agent_dies", "bank.test", calls=[1], moment=moment)]
        return lab.run(agent, "Pay.", services={"bank.test": bank}, faults=faults, resume_with=agent)

    assert [str(run_at(moment).outcome) for moment in ("before", "after")] == ["correct", "harm"]


def test_more_deaths_than_it_may_outlive_leave_it_dead(jobs: Jobs) -> None:
    faults = [lab.inject("agent_dies", "charge", moment="before")]
    trial = run(jobs.anew(jobs.marked_after), jobs.marked_after, faults, resumes=2)
    assert (len([*trial.history.find_events(AgentDied)]), len([*trial.history.find_events(AgentResumed)])) == (3, 2)
    assert str(trial.outcome) == "failed"
    assert "killed at charge (1.1), charge (1.2), charge (1.3), it never went on" in trial.verdict.why
    assert str(run(from_start, None, dies("charge"), resumes=0).outcome) == "failed"


def test_a_conversation_goes_on_with_the_turn_that_it_died_in() -> None:
    def agent(words: str) -> str:
        if words == "Charge.":
            charge("o1", 20)
        return f"Done: {words}"

    trial = lab.run(
        agent, lab.turns("Hello.", "Charge.", "Thanks."), tools=[charge], faults=dies("charge", "before"),
        resume_with=agent,
    )  # fmt: skip
    assert str(trial.outcome) == "correct"
    assert trial.answer.splitlines() == ["Done: Hello.", "Done: Charge.", "Done: Thanks."]


def test_a_search_finds_both_ways_to_go_wrong(jobs: Jobs) -> None:
    for work, symptom in ((jobs.marked_after, "resumes twice"), (jobs.marked_before, "resumes too far")):
        found = lab.explore(jobs.anew(work), "Charge.", tools=[charge, mail], resume_with=work, tries=["agent_dies"])
        assert {each.tried.root.symptom for each in found.failures if each.tried.root} == {symptom}


def test_it_is_refused_where_nothing_would_go_on() -> None:
    with pytest.raises(ValueError, match="agent_dies kills the agent's process, and something should go on"):
        run(from_start, None, dies("charge"))
    with pytest.raises(ValueError, match="resume_with= needs world='virtual'"):
        run(from_start, from_start, dies("charge"), world="local", twin=False)
    with pytest.raises(TypeError, match="resume_with is "):
        run(from_start, 3, dies("charge"))


def test_each_of_many_trials_has_its_own_death(jobs: Jobs) -> None:
    many = lab.run_many(
        jobs.anew(jobs.marked_after), "Charge.", trials=6, tools=[charge, mail], resume_with=jobs.marked_after,
        faults=[lab.inject("agent_dies", "charge", chance=0.5, max_times=1)],
    )  # fmt: skip
    by_death = {bool(each.met): str(each.outcome) for each in many}
    assert by_death == {True: "harm", False: "correct"}


SCENARIO = """
chaoslab: 1
name: the agent dies
agent: jobs:agent
resume_with: jobs:go_on
tools: [jobs:charge]
prompt: Charge o1.
faults: [{fault: agent_dies, target: charge, calls: [1]}]
trials: 1
"""
MODULE = """
def charge(order):
    return order

def agent(prompt):
    charge("o1")
    return "Charged."

def go_on(prompt):
    return "Charged."
"""


def test_a_scenario_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chaoslab.scenarios import load, running

    (tmp_path / "jobs.py").write_text(MODULE)
    path = tmp_path / "dies.chaos.yaml"
    path.write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    (scenario,) = load.load_file_scenarios(path)
    (ruling,) = running.run_scenario(scenario)
    assert str(ruling.trial.outcome) == "correct"
    assert os.path.exists(path)


def test_a_client_that_a_module_keeps_finds_its_connection_ended(jobs: Jobs) -> None:
    client = httpx.Client()

    def agent(prompt: str) -> str:
        steps = jobs.path.read_text().split() if jobs.path.exists() else []
        paid = "look" in steps or client.get("http://bank.test/balance").json()["ok"]
        jobs.path.write_text("look")
        client.post("http://bank.test/charges", headers={"Idempotency-Key": "o1"}, json={"order": prompt})
        mail("o1")
        return f"Charged: {paid}"

    def start(prompt: str) -> str:
        jobs.path.unlink(missing_ok=True)
        return agent(prompt)

    trial = lab.run(
        start, "o1", tools=[mail], services={"bank.test": lambda _: {"ok": True}}, faults=dies("mail", "before"),
        resume_with=agent,
    )  # fmt: skip
    assert str(trial.outcome) == "correct", trial.story()


@pytest.mark.parametrize("kind", ["sync", "async", "fresh"])
@pytest.mark.parametrize(("keeps", "outcome"), [(True, "correct"), (False, "harm")])
def test_it_dies_between_two_turns(kind: str, keeps: bool, outcome: str, jobs: Jobs) -> None:
    class Agent:
        """It charges once, as far as it remembers; what is kept outlives its process."""

        def __init__(self) -> None:
            self.charged = keeps and jobs.path.exists()

        def __call__(self, words: str) -> str:
            if not self.charged:
                charge("o1", 20)
                jobs.path.touch()
                self.charged = True
            return f"Done: {words}"

    made: list[Agent] = []

    def go_on(words: str) -> str:
        if words != "Thanks.":
            made.append(Agent())
        return made[-1](words)

    def agent(words: str) -> str:
        if words == "Charge.":
            jobs.path.unlink(missing_ok=True)
            made.append(Agent())
        return made[-1](words)

    async def async_agent(words: str) -> str:
        await asyncio.sleep(1)
        return agent(words)

    def make() -> Agent:
        jobs.path.unlink(missing_ok=True)
        return Agent()

    start: Any = {"sync": agent, "async": async_agent, "fresh": lab.fresh(make)}[kind]
    trial = lab.run(
        start, lab.turns("Charge.", "Is it done?", "Thanks."), tools=[charge], faults=dies("charge", "between"),
        resume_with=lab.fresh(Agent) if kind == "fresh" else go_on,
    )  # fmt: skip
    assert (str(trial.outcome), trial.met) == (outcome, ("agent_dies on charge",)), trial.story()
    assert trial.answer.splitlines() == ["Done: Charge.", "Done: Is it done?", "Done: Thanks."]
    assert trial.why.endswith("; killed at the end of turn 1, it went on")
    assert [event.at.turn for _, event in trial.history.find_events(AgentDied)] == [1]


def test_between_turns_needs_a_next_one() -> None:
    with pytest.raises(ValueError, match="agent_dies is about the next turn, and there is none"):
        run(from_start, from_start, dies("charge", "between"))
