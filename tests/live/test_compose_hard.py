"""Parts of the lab that die in containers.

The agent goes on only where what comes is still an experiment, and says so where not.
"""

from __future__ import annotations

import pytest

from chaoslab.core.events import CallFinished, FaultWitnessed, LabDisturbed, PromptFinished, RunFinished
from chaoslab.record.history import History
from tests.live.compose_parts import WITHIN_S, Stack, until

ASKED = ["What is 6 times 7?", "What's the weather in Oslo right now?", "Tell Carla that the review is in room 204."]
BROKEN = {"TOXIC_PROB": "0.3", "ERROR_PROB": "0", "TIMEOUT_MS": "50", "LATENCY_MS": "50", "JITTER_MS": "20"}
LAB_DOWN = 3
NOT_GREEN = 4
"""Something hit the run that nobody injected."""


def begun(stack: Stack, *, prompts: int) -> str:
    """A run under load that has got somewhere, its agent a container in the background; the run's name."""
    before = stack.runs()
    asked = stack.prompts(ASKED * (prompts // len(ASKED)))
    up = stack.compose("up", "--detach", "agent", PROMPTS=asked, **BROKEN)
    assert up.returncode == 0, up.stderr
    return stack.logged("fault_witnessed", after=before, at_least=3)


def ended(stack: Stack) -> tuple[int, str]:
    """The agent's exit code and what it said."""
    agent = stack.container("agent")
    code = int(agent.wait(timeout=WITHIN_S)["StatusCode"])
    return code, agent.logs().decode()


def reason(history: History) -> str:
    finished = history.first(RunFinished)
    return finished.reason if finished else "never finished"


def whole(stack: Stack, run: str, before: dict[str, bytes]) -> None:
    """Nothing that was logged is lost, and every line is an event."""
    folder = stack.folder / "logs" / run
    assert all((folder / name).read_bytes().startswith(text) for name, text in before.items())
    assert sum(stack.history(run).cut.values()) <= 1  # a writer that was killed may have been at a line


def texts(stack: Stack, run: str) -> dict[str, bytes]:
    """The run's logs at this moment, up to their last whole line."""
    return {path.name: path.read_bytes().rpartition(b"\n")[0] for path in (stack.folder / "logs" / run).glob("*.log")}


def test_toxiproxy_restarts_under_load_and_the_run_goes_on(stack: Stack) -> None:
    run = begun(stack, prompts=90)
    logged = texts(stack, run)
    assert stack.compose("restart", "--timeout", "0", "toxiproxy").returncode == 0
    code, said = ended(stack)
    assert code == (NOT_GREEN if "\nnot green: " in said else 0), said  # if a call was under way just then
    whole(stack, run, logged)
    history = stack.history(run)
    assert reason(history) == "done"
    disturbed = [record.t for record, _ in history.of(LabDisturbed)]
    assert disturbed
    assert len(list(history.of(PromptFinished))) == 90
    after = [record.t for record, _ in history.of(FaultWitnessed) if record.t > disturbed[-1]]
    assert after  # faults are delivered as before


@pytest.mark.parametrize("part", ["toxiproxy", "proxy_manager"])
def test_a_part_that_is_gone_for_good_ends_the_run_in_one_line(stack: Stack, part: str) -> None:
    run = begun(stack, prompts=300)
    logged = texts(stack, run)
    assert stack.compose("kill", part).returncode == 0
    code, said = ended(stack)
    assert code == LAB_DOWN, said
    lines = [line for line in said.splitlines() if not line.startswith("trial ")]
    assert lines[0].startswith("the lab is down: ")
    assert lines[1:3] == ["", lines[2]], lines  # the report follows
    assert lines[2].startswith("The run ended early")
    assert "Traceback" not in said
    whole(stack, run, logged)
    assert reason(stack.history(run)) == "lab_down"
    _the_next_run_starts_clean(stack)


def test_a_tool_that_is_killed_fails_its_own_calls_and_no_others(stack: Stack) -> None:
    run = begun(stack, prompts=90)
    logged = texts(stack, run)
    assert stack.compose("kill", "weather").returncode == 0
    code, said = ended(stack)
    assert code == NOT_GREEN, said
    assert "\nnot green: " in said
    whole(stack, run, logged)
    history = stack.history(run)
    faulty = {(r.trial, e.target, e.request, e.attempt) for r, e in history.of(FaultWitnessed)}
    failed = {
        event.target
        for record, event in history.of(CallFinished)
        if not event.ok and (record.trial, event.target, event.request, event.attempt) not in faulty
    }
    assert failed == {"weather"}  # failures that nobody injected


def test_a_killed_agent_loses_nothing_and_leaves_no_lane(stack: Stack) -> None:
    run = begun(stack, prompts=300)
    logged = texts(stack, run)
    assert stack.compose("kill", "agent").returncode == 0
    assert ended(stack)[0] == 137
    whole(stack, run, logged)
    assert reason(stack.history(run)) == "never finished"
    _the_next_run_starts_clean(stack)


def _the_next_run_starts_clean(stack: Stack) -> None:
    before = stack.runs()
    again = stack.compose("run", "--rm", "-T", "agent", PROMPTS=stack.prompts(ASKED))
    assert again.returncode == 0, again.stdout + again.stderr
    (run,) = set(stack.runs()) - set(before)
    history = stack.history(run)
    assert reason(history) == "done"
    assert len(list(history.of(PromptFinished))) == len(ASKED)
    listed = ["exec", "-T", "toxiproxy", "/toxiproxy-cli", "list"]
    until(lambda: f".{run}." not in stack.compose(*listed).stdout, "its lanes are taken down")
