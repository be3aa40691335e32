"""A person starts, interrupts and restarts the lab in containers, and sees the outcome."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.events import CallFinished, FaultWitnessed, PromptFinished, RunFinished, RunStarted
from tests.live.compose_parts import WITHIN_S, Stack, until
from tests.test_readme import commands, in_containers

SECRET = "gsk_" + "s3cret" * 4
MOUNTED = {"proxy_manager", "agent", *SERVICES}
CONTAINERS = list(dict.fromkeys(line for line in commands() if in_containers(line)))
FIRST, AGAIN = "TOXIC_PROB=0.3 docker compose up", "docker compose up"
MINE = "What is the weather in Paris?"
ASKED = ["What is 6 times 7?", "What's the weather in Oslo right now?", "Tell Carla that the review is in room 204."]


def status(stack: Stack, path: str = "/status") -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", stack.status_port, timeout=WITHIN_S)
    try:
        connection.request("GET", path)
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found
    finally:
        connection.close()


def process(stack: Stack, service: str) -> dict[str, str]:
    """The kernel's words on a container's first process."""
    pid = stack.container(service).attrs["State"]["Pid"]
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_up_on_a_fresh_clone_and_again_after_each_way_of_ending(fresh: Stack) -> None:
    """The first two commands of README. With a key in `.env` and the model's address at the fake, so that it may be
    seen who gets the key. The services that the last `up` begins serve the tests that follow.
    """
    assert [line for line in CONTAINERS if line.endswith("docker compose up")] == [AGAIN, FIRST]
    (fresh.folder / ".env").write_text(f"GROQ_API_KEY={SECRET}\nMODEL_URL=http://model:5007\nSEED=3\n")
    before = fresh.runs()
    up = fresh.begin(
        ["docker", "compose", "--ansi", "never", "up"],
        PROMPTS=fresh.prompts(ASKED * 12), TOXIC_PROB="0.3", COMPOSE_CHARTS="",
    )  # fmt: skip
    run = fresh.logged("prompt_finished", after=before, at_least=3)
    assert run in status(fresh)["runs"]
    _each_part_is_shut_in(fresh)
    up.said("agent-1 exited with code 0")
    assert {part["Health"] for part in _ps(fresh).values() if part["Service"] != "toxiproxy"} == {"healthy"}
    up.interrupt()
    up.ended()
    _what_was_said(fresh, up.text())
    _what_was_logged(fresh, run)
    (fresh.folder / ".env").unlink()
    before = fresh.runs()
    again = fresh.begin(["docker", "compose", "--ansi", "never", "up"], PROMPTS=fresh.prompts(ASKED))
    again.said("agent-1 exited with code 0")
    assert len(fresh.runs()) == len(before) + 1
    fresh.compose("kill")
    again.ended()
    _ctrl_c_as_the_agent_begins_is_heard(fresh)


def _ctrl_c_as_the_agent_begins_is_heard(stack: Stack) -> None:
    """Its container has started, and nothing of it can hear a signal yet."""
    before = stack.runs()
    stack.begin(["docker", "compose", "--ansi", "never", "up"], PROMPTS=stack.prompts(ASKED * 40))
    labels = [f"com.docker.compose.{what}" for what in (f"project={stack.project}", "service=agent")]
    (agent,) = until(lambda: stack.docker.containers.list(filters={"label": labels}), "a container of the agent")
    stack.compose("stop", "agent")
    agent.reload()
    assert agent.attrs["State"]["ExitCode"] == 130, agent.logs()[-2000:]
    logs = [path for run in set(stack.runs()) - set(before) for path in (stack.folder / "logs" / run).glob("info.log")]
    written = b"".join(path.read_bytes() for path in logs)
    assert written.count(b'"run_started"') == written.count(b'"run_finished"')


def _each_part_is_shut_in(stack: Stack) -> None:
    owner = (stack.folder / "logs").stat()
    published: dict[str, Any] = {}
    for service in (*SERVICES, MODEL, "proxy_manager", "toxiproxy", "agent"):
        container = stack.container(service)
        said = process(stack, service)
        capabilities = {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
        if service == "toxiproxy":  # it has no shell to step down with, and writes nothing
            assert set(said["Uid"].split()) == {"65534"}
        else:
            assert set(said["Uid"].split()) == {str(owner.st_uid)}, service
            assert set(said["Gid"].split()) == {str(owner.st_gid)}, service
            assert said["Groups"] == ""
        assert {*capabilities, said["CapBnd"]} == {"0" * 16}, service
        assert said["NoNewPrivs"] == "1"
        host = container.attrs["HostConfig"]
        assert host["ReadonlyRootfs"] is True
        assert host["Privileged"] is False
        writable = {mount["Destination"] for mount in container.attrs["Mounts"] if mount["RW"]}
        assert writable <= {"/lab/logs", "/lab/state", *["/lab/charts"][: service == "agent"]}, service
        assert ("/lab/logs" in writable) == (service in MOUNTED)
        has_key = any(SECRET in variable for variable in container.attrs["Config"]["Env"])
        assert has_key == (service == "agent"), service
        published |= {port: where for port, where in (host["PortBindings"] or {}).items() if where}
    assert {port: where[0]["HostIp"] for port, where in published.items()} == {
        "8000/tcp": "127.0.0.1",
        "8474/tcp": "127.0.0.1",
    }


def _ps(stack: Stack) -> dict[str, dict[str, Any]]:
    lines = stack.compose("ps", "--format", "json").stdout.splitlines()
    return {part["Service"]: part for part in map(json.loads, lines)}


def _what_was_said(stack: Stack, said: str) -> None:
    assert re.search(r"agent-1 +\| trial   1/36 answered", said)
    assert re.search(r"agent-1 +\| trials: 36 unknown", said)
    assert re.search(
        r"agent-1 +\| the other parts stay up for a look around, until Ctrl-C or docker compose down", said
    )
    assert re.search(r"settings-1 +\| nothing is wrong with the settings of \.env and the environment", said)
    assert "\x1b[" not in "".join(line for line in said.splitlines() if line.startswith("agent-1"))
    assert SECRET not in said
    assert "Traceback" not in said
    charts = (
        "success_rate",
        "network_latency",
        "tool_latency",
        "errors",
        "throughput",
        "mttr",
        "fault_matrix",
        "recovery_curve",
    )
    for folder in (stack.folder / "charts", stack.folder / "logs" / "latest" / "charts"):
        drawn = {path.name for path in folder.glob("*.png")}
        assert drawn | set(re.findall(r" no (\w+\.png): ", said)) == {f"{name}.png" for name in charts}
        assert len(drawn) > len(charts) / 2


def _what_was_logged(stack: Stack, run: str) -> None:
    history = stack.history(run)
    finished = history.find_first_event(RunFinished)
    assert finished is not None
    assert finished.reason == "done"
    started = history.find_first_event(RunStarted)
    assert started is not None
    assert (started.settings["SEED"], started.settings["TOXIC_PROB"]) == (3, 0.3)  # from .env, and from the shell
    assert any(record.writer == "manager" for record, _ in history.find_events(FaultWitnessed))
    owner = (stack.folder / "logs").stat().st_uid
    for folder in ("logs", "state", "charts"):
        written = list((stack.folder / folder).rglob("*"))
        assert written
        assert {path.lstat().st_uid for path in written} == {owner}, folder
    texts = b"".join(path.read_bytes() for path in (stack.folder / "logs" / run).rglob("*") if path.is_file())
    assert SECRET.encode() not in texts


def test_where_root_owns_the_logs_a_part_is_root_without_capabilities(stack: Stack) -> None:
    logs = stack.folder / "logs"
    owner = logs.stat()
    look = ("run", "--rm", "-T", "--no-deps", "--entrypoint", "/lab/as-owner cat /proc/self/status", "agent")
    try:
        if os.getuid() == 0:
            os.chown(logs, 0, 0)
        said = dict(line.split(":\t", 1) for line in stack.compose(*look).stdout.splitlines() if ":\t" in line)
    finally:
        if os.getuid() == 0:
            os.chown(logs, owner.st_uid, owner.st_gid)
    expected = "0" if os.getuid() == 0 else str(owner.st_uid)
    assert set(said["Uid"].split()) == {expected}
    assert {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}


def test_ones_own_prompts_that_are_not_there(stack: Stack) -> None:
    wrong = stack.compose("run", "--rm", "-T", "--no-deps", "agent", "--prompts", "/data/nothing.json")
    assert wrong.returncode == 2
    assert "/data/nothing.json cannot be read: No such file or directory" in wrong.stdout + wrong.stderr


def test_the_parts_can_be_followed(stack: Stack) -> None:
    ran = stack.compose(
        "run", "--rm", "-T", "--no-deps", "agent", PROMPTS=stack.prompts(ASKED), TOXIC_PROB="1", TOXICS="latency"
    )
    assert ran.returncode == 0
    assert "POST /calculate 200" in stack.compose("logs", "calculator").stdout
    all_of_them = stack.compose("logs").stdout
    assert "ready: proxy manager" in all_of_them
    assert re.search(r"run \d{8}-\d{6} is open", all_of_them)
    assert "latency on calculator.calculate, p1.r1 attempt 1: took 0." in all_of_them
    assert re.search(r"run \d{8}-\d{6} is over", all_of_them)
    assert "Traceback" not in all_of_them


def test_one_service_scaled_stopped_and_started_again(stack: Stack) -> None:
    """A stopped service is a failure that nobody injected, and is said to be one; the others do not notice."""
    prompts = stack.prompts(
        [*ASKED, "Schedule a dentist appointment tomorrow at 3pm for 45 minutes.", "When is my dentist appointment?"]
    )

    def agent() -> subprocess.CompletedProcess[str]:
        return stack.compose("run", "--rm", "-T", "--no-deps", "agent", TOXIC_PROB="0", ERROR_PROB="0", PROMPTS=prompts)

    up = stack.compose(
        "up", "--detach", "--wait", "--scale", "weather=3", "--scale", "messaging=2", "proxy_manager", *SERVICES, MODEL
    )
    assert up.returncode == 0, up.stderr
    assert agent().returncode == 0
    assert all(event.ok for _, event in stack.history().find_events(CallFinished))
    assert stack.compose("stop", "weather").returncode == 0
    stopped = agent()
    assert stopped.returncode == 2
    assert "weather does not say what it offers" in stopped.stdout + stopped.stderr
    assert stack.compose("up", "--detach", "--wait", "weather").returncode == 0
    assert agent().returncode == 0


def test_the_other_commands_of_the_readme(stack: Stack) -> None:
    """The lines about containers in README and docs/, in order.

    What would go on for ever is ended, and the ports are this test's.
    """
    stack.prompts([MINE])
    lines = [line for line in CONTAINERS if line not in (FIRST, AGAIN)]
    assert len(lines) >= 4
    for line in lines:
        words = shlex.split(line.replace("localhost:8000", f"127.0.0.1:{stack.status_port}"))
        given = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
        begun = stack.begin(words[len(given) :], PROMPTS=stack.prompts([ASKED[1]], "others.json"), **given)
        if "logs -f" in line:
            begun.said("GET /data/2.5/weather 200")
            begun.interrupt()
        else:
            assert begun.ended() == 0, (line, begun.text()[-2000:])
        begun.ended()
        assert "Traceback" not in begun.text()
        if "--prompts /data/mine.json" in line:
            assert "trial   1/1 answered" in begun.text()
            finished = [event for _, event in stack.history().find_events(PromptFinished)]
            assert [event.prompt for event in finished] == [MINE]


def test_make_compose_has_the_exit_code_of_an_agent_that_refuses(built: Stack) -> None:
    built.without_agent()  # one that another test left would still make its run's folder
    before = built.runs()
    bad = built.begin(["make", "compose", "TOXIC_PROB=1.5"])
    assert bad.ended() == 2
    said = bad.text()
    assert "TOXIC_PROB=1.5 (environment) should be a chance from 0 to 1" in said, said[-3000:]
    assert "Error 2" in bad.text()
    assert "judged trial" not in bad.text()  # no report of a run that never was
    assert built.runs() == before


def test_make_compose_reports_and_takes_down_what_was_up(stack: Stack) -> None:
    good = stack.begin(["make", "compose", f"PROMPTS={stack.prompts(ASKED)}"])
    assert good.ended() == 0, good.text()[-2000:]
    assert "3 of 3 judged trials ended well" in good.text()
    assert _ps(stack) == {}


def test_ctrl_c_of_up_tells_where_the_report_is(fresh: Stack) -> None:
    before = fresh.runs()
    up = fresh.begin(["docker", "compose", "--ansi", "never", "up"], PROMPTS=fresh.prompts(ASKED * 40))
    run = fresh.logged("prompt_finished", after=before, at_least=2)
    up.interrupt()
    up.ended()
    assert f"its report will be logs/{run}/report.html, also after Ctrl-C" in up.text()
    until((fresh.folder / "logs" / run / "report.html").exists, "the report")  # `up` may end before its parts have


def test_ctrl_c_keeps_what_was_done_and_ends_with_130(fresh: Stack) -> None:
    before = fresh.runs()
    up = fresh.begin(["make", "compose", f"PROMPTS={fresh.prompts(ASKED * 40)}"])
    run = fresh.logged("prompt_finished", after=before, at_least=2)
    up.interrupt()
    assert up.ended() != 0
    finished = fresh.history(run).find_first_event(RunFinished)
    assert finished is not None
    assert finished.reason == "interrupted"
    assert f"run {run}" in up.text()  # the report, of what there is
    assert _ps(fresh) == {}
