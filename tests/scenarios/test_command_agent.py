"""A command is a scenario's agent: its requests go through the gateway, and its output is judged."""

import sys
import threading
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.execution._place import RealTimePlace
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.located import ScenarioError
from tests.gateway.parts import shop
from tests.waiting import DEADLINE_S

PROGRAM = """\
import os, sys, urllib.request
asked = sys.stdin.read()
for patience_s in (3, 60, 600):
    try:
        with urllib.request.urlopen(os.environ["CRM_URL"] + "/refunds", b'{"order": 17}', patience_s) as reply:
            reply.read()
        break
    except OSError:
        pass
print("Refunded:", asked, sys.argv[1])
"""


def of_command(*words: str) -> ScenarioBuilder:
    made = lab.scenario("by command").agent(command=[sys.executable, "-S", *words]).ask("order 17")
    return made.set(trials=1)


def test_a_command_s_requests_are_faulted_and_judged(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM)
    with shop() as server:
        made = of_command("agent.py", "<{prompt}>").upstream("crm", server.url).effects({"effect": "POST /refunds"})
        path = made.fault("lost_reply", "crm", calls=[1], attempts=[1]).to_file(tmp_path / "a.chaos.yaml")
        again = lab.load_scenario(path)
        assert again.to_file(tmp_path / "b.chaos.yaml").read_text() == path.read_text()
        (result,) = again.run()
    (ruling,) = result.rulings
    assert ruling.trial.answer == "Refunded: order 17 <order 17>"
    assert (result.met, len(ruling.trial.effects), str(ruling.trial.outcome)) == (1, 2, "harm")


def test_a_command_that_fails_hangs_or_is_missing_is_told() -> None:
    (ruling,) = of_command("-c", "import sys; sys.exit('no shop today')").facts("x").run().results[0].rulings
    assert str(ruling.trial.error) == "the command ended with exit code 1: no shop today"
    slow = of_command("-c", "import time; time.sleep(99)").facts("x").set(deadline=1)
    (ruling,) = slow.run().results[0].rulings
    assert str(ruling.trial.error) == "the command did not end within 1 s"
    with pytest.raises(ScenarioError) as refused:
        lab.scenario("x").agent(command=["no-such-program"]).ask("a").facts("x").run()
    assert str(refused.value) == (
        "scenario 'x': the command 'no-such-program' is not found: give its path, or see that PATH holds it"
    )


@pytest.mark.parametrize(("resumes", "outcome"), [(1, "failed"), (2, "correct")])
def test_a_command_that_is_killed_goes_on_in_the_same_trial(resumes: int, outcome: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM)
    with shop() as server:
        command = [sys.executable, "-S", "agent.py", "{prompt}"]
        made = lab.scenario("dies").agent(command=command, reset="echo . >> resets").ask("order 17").set(trials=2)
        made = made.resume_with(command=command, resumes=resumes).upstream("crm", server.url)
        made = made.fault("agent_dies", "crm", max_times=2, moment="before")
        path = made.effects({"effect": "POST /refunds"}).facts("order").to_file(tmp_path / "a.chaos.yaml")
        (result,) = lab.load_scenario(path).run()
    assert [str(ruling.trial.outcome) for ruling in result.rulings] == [outcome] * 2
    assert (tmp_path / "resets").read_text() == ".\n" * 2, "before each trial, and not before it goes on"
    with pytest.raises(ScenarioError, match="reset sets the services back for one trial at a time"):
        lab.load_scenario(path).run(jobs=2)


def test_a_reset_that_fails_is_the_end_of_the_trial(tmp_path: Path) -> None:
    with shop() as server:
        made = lab.scenario("dies").agent(command=["true"], reset="exit 3").ask("order 17").upstream("crm", server.url)
        (result,) = lab.load_scenario(made.facts("order").to_file(tmp_path / "a.chaos.yaml")).run()
    assert "the reset, exit 3, ended with exit code 3" in str(result.rulings[0].trial.error)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (of_command("a.py").resume_with("os:getcwd"), "a command goes on as a command"),
        (
            lab.scenario("x").agent("os:getcwd").ask("a").resume_with(command=["true"]),
            "the agent is no command, so what goes on is module:name",
        ),
    ],
)
def test_what_goes_on_is_of_the_agent_s_kind(made: ScenarioBuilder, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        made.check()


@pytest.mark.parametrize("moment", ["after", "at_once"])
@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        (1, "POST /refunds twice; the same event came twice, its effect twice"),
        (2, "all that was stated holds; nothing was stated about the answer; the same event came twice"),
    ],
)
def test_a_command_is_asked_twice(wishes: int, why: str, moment: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM.replace("(3, 60, 600)", "[600]"))
    with shop() as server:
        made = lab.scenario("twice").agent(command=[sys.executable, "-S", "agent.py", "x"], reset="echo . >> resets")
        made = (
            made.ask("order 17")
            .set(trials=1, wishes=wishes)
            .upstream("crm", server.url)
            .effects({"effect": "POST /refunds"})
        )
        path = made.fault("event_twice", "crm", calls=[1], moment=moment).to_file(tmp_path / "a.chaos.yaml")
        (ruling,) = lab.load_scenario(path).run().results[0].rulings
    assert ruling.trial.why == why
    assert (tmp_path / "resets").read_text() == ".\n"


def test_the_process_that_resumes_before_the_kill_is_over_is_not_hit() -> None:
    died, resumed, killed = threading.Event(), threading.Event(), list[str]()

    def kill_agent() -> None:
        killed.append("agent")
        died.set()
        assert resumed.wait(DEADLINE_S)

    place = RealTimePlace(DEADLINE_S, [kill_agent, lambda: killed.append("what resumes")])
    fault = threading.Thread(target=place.kill_program)

    def begin() -> None:
        fault.start()
        assert died.wait(DEADLINE_S)

    place.run_program(begin, over=lambda: None, again=lambda: resumed.set)
    fault.join()
    assert killed == ["agent"]
    place.kill_program()
    assert killed == ["agent", "what resumes"]
