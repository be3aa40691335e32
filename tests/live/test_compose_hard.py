"""Parts of the lab that die in containers.

The agent goes on only where what comes is still an experiment, and says so where not.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaoslab.base.clock import system
from chaoslab.core.events import CallFinished, FaultWitnessed, LabDisturbed, PromptFinished, RunFinished
from chaoslab.record.history import History
from tests.live.compose_parts import WITHIN_S, Stack, until

ASKED = ["What is 6 times 7?", "What's the weather in Oslo right now?", "Tell Carla that the review is in room 204."]
BROKEN = {"TOXIC_PROB": "0.3", "ERROR_PROB": "0", "TIMEOUT_MS": "50", "LATENCY_MS": "50", "JITTER_MS": "20"}
LAB_DOWN = 3
NOT_GREEN = 4
"""Something hit the run that nobody injected."""


def begun(stack: Stack, asked: Sequence[str]) -> str:
    """A run under load that has got somewhere, its agent a container in the background; the run's name."""
    stack.without_agent()
    before = stack.runs()
    up = stack.compose("up", "--detach", "agent", PROMPTS=stack.prompts(asked), **BROKEN)
    assert up.returncode == 0, up.stderr
    return stack.logged("fault_witnessed", after=before, at_least=3)


def ended(stack: Stack) -> tuple[int, str]:
    """The agent's exit code and what it said."""
    agent = stack.container("agent")
    code = int(agent.wait(timeout=WITHIN_S)["StatusCode"])
    return code, agent.logs().decode()


def reason(history: History) -> str:
    finished = history.find_first_event(RunFinished)
    return finished.reason if finished else "never finished"


def whole(stack: Stack, run: str, before: dict[str, bytes]) -> None:
    """Nothing that was logged is lost, and every line is an event."""
    folder = stack.folder / "logs" / run
    assert all((folder / name).read_bytes().startswith(text) for name, text in before.items())
    assert sum(stack.history(run).unreadable_counts.values()) <= 1  # a writer that was killed may have been at a line


def texts(stack: Stack, run: str) -> dict[str, bytes]:
    """The run's logs at this moment, up to their last whole line."""
    return {path.name: path.read_bytes().rpartition(b"\n")[0] for path in (stack.folder / "logs" / run).glob("*.log")}


def test_toxiproxy_restarts_under_load_and_the_run_goes_on(stack: Stack) -> None:
    run = begun(stack, ASKED * 16)
    logged = texts(stack, run)
    stack.container("toxiproxy").restart(timeout=0)
    code, said = ended(stack)
    assert code == (NOT_GREEN if "\nnot green: " in said else 0), said  # if a call was under way just then
    whole(stack, run, logged)
    history = stack.history(run)
    assert reason(history) == "done"
    disturbed = [record.t for record, _ in history.find_events(LabDisturbed)]
    assert disturbed
    assert len(list(history.find_events(PromptFinished))) == 48
    after = [record.t for record, _ in history.find_events(FaultWitnessed) if record.t > disturbed[-1]]
    assert after  # faults are delivered as before


def test_a_part_that_is_gone_for_good_ends_the_run_in_one_line_and_the_next_one_starts_clean(stack: Stack) -> None:
    """Each run finds what the one before has left; the last one is let alone."""
    for part, code, why in (
        ("toxiproxy", LAB_DOWN, "lab_down"),
        ("proxy_manager", LAB_DOWN, "lab_down"),
        ("agent", 137, "never finished"),
    ):
        run = begun(stack, ASKED * 60)
        logged = texts(stack, run)
        stack.container(part).kill()
        ended_with, said = ended(stack)
        assert ended_with == code, said
        if part != "agent":
            lines = [line for line in said.splitlines() if not line.startswith(("trial ", "run "))]
            assert lines[0].startswith("the lab is down: ")
            assert lines[1:3] == ["", lines[2]], lines  # the report follows
            assert lines[2].startswith("The run ended early")
            assert "Traceback" not in said
        if part == "toxiproxy":  # else compose would not start it again beside the manager
            look = "rm -f /tmp/healthy; exec bash /lab/healthy 8000 /status"  # at once, as the first time
            healthy = stack.compose("exec", "-T", "proxy_manager", "bash", "-c", look)
            assert healthy.returncode == 0, healthy.stderr
        whole(stack, run, logged)
        assert reason(stack.history(run)) == why
    before = stack.runs()
    again = stack.compose("run", "--rm", "-T", "agent", PROMPTS=stack.prompts(ASKED))
    assert again.returncode == 0, again.stdout + again.stderr
    (last,) = set(stack.runs()) - set(before)
    history = stack.history(last)
    assert reason(history) == "done"
    assert len(list(history.find_events(PromptFinished))) == len(ASKED)
    listed = ["exec", "-T", "toxiproxy", "/toxiproxy-cli", "list"]
    until(
        lambda: not any(f".{each}." in stack.compose(*listed).stdout for each in (run, last)),
        "its lanes and those of the killed agent are taken down",
    )


def test_a_part_that_was_paused_is_well_a_moment_after_unpause(stack: Stack) -> None:
    """Else the next run would wait for its next probe, which comes after minutes."""
    under_way = ("exec", "-T", "weather", "bash", "-c", "[[ ! -e /tmp/healthy ]]")  # see containers/healthy
    until(lambda: stack.compose(*under_way).returncode == 0, "a probe of weather is under way")
    began_s = system.monotonic()
    weather = stack.container("weather")
    weather.pause()
    weather.unpause()
    until(lambda: stack.container("weather").attrs["State"]["Health"]["Status"] == "healthy", "weather is well")
    ran = stack.compose("run", "--rm", "-T", "agent", PROMPTS=stack.prompts(ASKED[:1]), TOXIC_PROB="0", ERROR_PROB="0")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert system.monotonic() - began_s < 90  # a probe of a part that goes on takes 100 s


def test_a_tool_that_is_killed_fails_its_own_calls_and_no_others(stack: Stack) -> None:
    others, weather = [ASKED[0], ASKED[2]], ASKED[1]
    run = begun(stack, [*others * 16, *[weather] * 2])  # each of the last takes seconds
    logged = texts(stack, run)
    stack.container("weather").kill()
    code, said = ended(stack)
    assert code == NOT_GREEN, said
    assert "\nnot green: " in said
    whole(stack, run, logged)
    history = stack.history(run)
    faulty = {(r.trial, e.target, e.request, e.attempt) for r, e in history.find_events(FaultWitnessed)}
    failed = {
        event.target
        for record, event in history.find_events(CallFinished)
        if not event.ok and (record.trial, event.target, event.request, event.attempt) not in faulty
    }
    assert failed == {"weather"}  # failures that nobody injected
    around = {event.error for _, event in history.find_events(CallFinished) if event.via == "direct" and not event.ok}
    assert around == {"dns"}  # nobody has the name of a container that was killed
