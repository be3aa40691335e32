"""A command is a scenario's agent: its requests go through the gateway, and its output is judged."""

import sys
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.located import ScenarioError
from tests.gateway.parts import shop

PROGRAM = """\
import os, sys, urllib.request
asked = sys.stdin.read()
for patience_s in (0.5, 600):
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
