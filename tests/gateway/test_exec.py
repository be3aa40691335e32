"""A command in any language is the agent: its requests are broken on the way, its output is judged, nothing is left."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaoslab.base.clock import system
from chaoslab.cli import main
from chaoslab.core.events import CallFinished, CallStarted, FaultWitnessed
from chaoslab.lab.recorded_run import Unrepeatable, read_recorded_run
from chaoslab.reports.show import render_stories
from tests import warm
from tests.gateway.parts import history, shop
from tests.seams.lab_parts import eventually
from tests.waiting import HUNG_S

PYTHON_AGENT = """
import os, urllib.request
def refund(patience_s):
    asked = urllib.request.Request(os.environ["CRM_URL"] + "/refunds", b'{"order": 17}', method="POST")
    return urllib.request.urlopen(asked, timeout=patience_s).read()
for patience_s in (3, 60, 600):
    try:
        refund(patience_s)
        break
    except TimeoutError:
        pass
print("Refunded 30.")
"""
"""Three tries: on a busy machine the first may be over before its request is sent, and the second loses its reply."""
PATIENT = PYTHON_AGENT.replace("(3, 60, 600)", "[600]")
"""Takes no slow machine for a lost reply."""
NODE_AGENT = """
const asked = {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({order: 17})};
const ask = (ms) => fetch(process.env.CRM_URL + "/refunds", {...asked, signal: AbortSignal.timeout(ms)});
for (const ms of [3e3, 6e4, 6e5]) { try { await ask(ms); break; } catch { } }
const events = await (await fetch(process.env.CRM_URL + "/stream")).text();
console.log("Refunded 30.", events.split("data:").length - 1);
"""
GO_AGENT = """package main
import ("bytes"; "fmt"; "net/http"; "os"; "time")
func main() {
	ask := func(patience time.Duration) error {
		client, body := http.Client{Timeout: patience}, bytes.NewBufferString(`{"order": 17}`)
		reply, err := client.Post(os.Getenv("CRM_URL")+"/refunds", "application/json", body)
		if err == nil { reply.Body.Close() }
		return err
	}
	_ = ask(3 * time.Second) == nil || ask(time.Minute) == nil || ask(10 * time.Minute) == nil
	fmt.Println("Refunded 30.")
}
"""
EFFECTS = json.dumps([{"effect": "POST /refunds", "order": 17}])
LOST = json.dumps({"fault": "lost_reply", "target": "crm", "calls": [1]})


def exec_(tmp_path: Path, crm: str, command: Sequence[str], *options: str) -> int:
    given = ["--logs", str(tmp_path), "--route", crm, *options, "--", *command]
    return main(["exec", *given])


@pytest.mark.parametrize("asked", [True, False])
def test_a_command_has_levers_if_they_are_asked_for(crm: str, tmp_path: Path, capfd: Any, *, asked: bool) -> None:
    steer = [warm.python(), "-m", "chaoslab", "steer", "latest", "pause", "--logs", str(tmp_path)]
    code = exec_(tmp_path, crm, steer, *(["--levers"] if asked else []))
    err = capfd.readouterr().err
    assert (code, "chaoslab exec with --levers" in err) == ((4, False) if asked else (2, True))
    assert bool(re.match(r"levers: http://127\.0\.0\.1:\d+/\S+/status\n", err)) is asked


def test_a_lost_reply_is_met_and_the_second_refund_is_harm(crm: str, tmp_path: Path, capfd: Any) -> None:
    command, patient = [sys.executable, "-c", PYTHON_AGENT], [sys.executable, "-c", PATIENT]
    assert exec_(tmp_path, crm, patient, "--effects", EFFECTS, "--fact", "30") == 0
    assert capfd.readouterr().err.startswith("chaoslab: correct – all that was stated holds")
    assert exec_(tmp_path, crm, command, "--fault", LOST, "--effects", EFFECTS, "--fact", "30") == 1
    out, err = capfd.readouterr()
    assert (out, err.startswith("chaoslab: harm – POST /refunds twice (")) == ("Refunded 30.\n", True)
    assert [event.fault for _, event in history(tmp_path).find_events(FaultWitnessed)] == ["lost_reply"]
    assert exec_(tmp_path, crm, patient) == 4, "nothing was judged"
    said = "chaoslab: unknown – nothing was stated about a right answer: --effects and --fact state it ("
    assert capfd.readouterr().err.startswith(said)


@pytest.mark.parametrize("options", [[], ["--env", "SHOP=crm"], ["--env", "CRM_URL=model"]])
def test_a_command_finds_the_address_of_each_route_in_a_variable_of_its_name_and_in_others_that_it_is_given(
    crm: str, options: list[str], tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_URL", "http://127.0.0.1:9")
    shows = 'import os; print(*map(os.environ.get, ("CRM_URL", "SHOP", "MODEL_URL", "MAIL_BOX_URL")))'
    routes = [word for name in ("model", "mail-box") for word in ("--route", crm.replace("crm=", f"{name}="))]
    exec_(tmp_path, crm, [sys.executable, "-c", shows], *routes, *options)
    routes_found = [address.rpartition("/")[2] for address in capfd.readouterr().out.split()]
    crm_route, shop = "model" if "CRM_URL=model" in options else "crm", "crm" if "SHOP=crm" in options else "None"
    assert routes_found == [crm_route, shop, "model", "mail-box"]


MCP_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"content": []}}), flush=True)
"""
MCP_AGENT = """
import json, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for number in (1, 2):
    params = {"name": "refund", "arguments": {"order": 17}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\\n")
    server.stdin.flush()
    server.stdout.readline()
server.stdin.close()
server.wait()
"""


@pytest.mark.parametrize("logs", [["--no-logs"], ["--logs", "elsewhere"]])
def test_a_run_without_logs_is_judged_with_its_mcp_servers_and_leaves_nothing(
    crm: str, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch, logs: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    effects = json.dumps([{"effect": "refund", "order": 17}])
    proxy = [warm.python(), "-m", "chaoslab", "mcp", "--effects", effects, "--", sys.executable, "-c", MCP_SERVER]
    command = [sys.executable, "-c", MCP_AGENT, *proxy]
    assert main(["exec", *logs, "--route", crm, "--", *command]) == 1
    said = capfd.readouterr().err
    assert "its MCP server: harm – refund twice" in said
    assert ("elsewhere/" in said) == (logs != ["--no-logs"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ([] if logs == ["--no-logs"] else ["elsewhere"])


DYING_AGENT = """
const fs = require("fs"), key = process.argv[2] ? {"Idempotency-Key": process.argv[2]} : {};
const headers = {"content-type": "application/json", ...key};
(async () => {
  try {
    await fetch(process.env.CRM_URL + "/refunds", {method: "POST", body: JSON.stringify({order: 17}), headers});
  } catch { fs.writeFileSync("caught", ""); }
  console.log("Refunded 30.");
  process.exit(0);
})();
"""
DIES = json.dumps({"fault": "agent_dies", "target": "crm", "calls": [1]})


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize(("key", "code", "said"), [("", 1, "harm – POST /refunds twice"), ("k17", 0, "correct – all")])
def test_a_command_that_is_killed_goes_on(
    key: str, code: int, said: str, crm: str, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.js").write_text(DYING_AGENT)
    monkeypatch.chdir(tmp_path)
    command = ["node", "agent.js", *filter(None, [key])]
    options = ["--fault", DIES, "--effects", EFFECTS, "--fact", "30", "--resume-with", " ".join(command)]
    assert exec_(tmp_path / "logs", crm, command, *options) == code
    out, err = capfd.readouterr()
    assert (out, err.startswith(f"chaoslab: {said}"), "; killed at crm (1.1), it went on (" in err) == (
        "Refunded 30.\n", True, True,
    )  # fmt: skip
    assert not (tmp_path / "caught").exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize(("resumes", "code", "said"), [("2", 0, "correct – all"), ("1", 137, "failed – no answer: ")])
def test_a_command_goes_on_as_often_as_it_may(
    resumes: str, code: int, said: str, crm: str, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent.js").write_text(DYING_AGENT)
    monkeypatch.chdir(tmp_path)
    command = ["node", "agent.js", "k17"]
    dies = json.dumps({"fault": "agent_dies", "target": "crm", "max_times": 2})
    options = ["--fault", dies, "--effects", EFFECTS, "--resume-with", " ".join(command), "--resumes", resumes]
    assert exec_(tmp_path / "logs", crm, command, *options) == code
    assert capfd.readouterr().err.startswith(f"chaoslab: {said}")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize(
    ("moment", "key", "wishes", "code", "said"),
    [
        ("after", "", "1", 1, "harm – POST /refunds twice"),
        ("at_once", "", "2", 0, "correct – all"),
        ("at_once", "k17", "1", 0, "correct – all"),
        ("after", "k17", "2", 1, "undone – "),
    ],
)
def test_a_command_is_run_again_for_the_same_event(
    moment: str, key: str, wishes: str, code: int, said: str, crm: str, tmp_path: Path, capfd: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "agent.js").write_text(DYING_AGENT)
    monkeypatch.chdir(tmp_path)
    command = ["node", "agent.js", *filter(None, [key])]
    # Three seconds, in which Node starts on a busy machine too.
    gap = {"gap_s": 3} if moment == "at_once" else {}
    twice = json.dumps({"fault": "event_twice", "target": "crm", "moment": moment, "calls": [1], **gap})
    options = ["--fault", twice, "--effects", EFFECTS, "--wishes", wishes]
    assert exec_(tmp_path / "logs", crm, command, *options) == code
    out, err = capfd.readouterr()
    assert (out, err.startswith(f"chaoslab: {said}")) == ("Refunded 30.\n" * 2, True), err
    assert "; the same event came twice" in err
    asked = [
        type(record.event).__name__
        for record in history(tmp_path / "logs").records
        if isinstance(record.event, CallStarted | CallFinished)
    ]
    # At once, the first request goes on later, when the other process's has been answered.
    first = "CallStarted" if moment == "at_once" else "CallFinished"
    assert asked == [
        "CallStarted",
        first,
        *(["CallFinished"] if moment == "at_once" else ["CallStarted"]),
        "CallFinished",
    ]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"fault": "user_stops"}, "user_stops is done by whoever asks the agent"),
        ({"fault": "sessions_at_once"}, "sessions_at_once is done by whoever asks the agent"),
    ],
)
def test_what_no_command_can_meet_is_refused(fault: Any, said: str, crm: str, tmp_path: Path, capfd: Any) -> None:
    given = json.dumps({**fault, "target": "crm"})
    assert exec_(tmp_path, crm, [sys.executable, "-c", PATIENT], "--fault", given) == 2
    assert said in capfd.readouterr().err


def test_what_is_wished_twice_comes_twice(crm: str, tmp_path: Path, capfd: Any) -> None:
    assert exec_(tmp_path, crm, [sys.executable, "-c", PATIENT], "--fault", LOST, "--wishes", "2") == 2
    assert "--wishes is about an event that comes again: give --fault event_twice:ROUTE too" in capfd.readouterr().err


def test_a_command_with_nothing_to_go_on_is_not_killed(crm: str, tmp_path: Path, capfd: Any) -> None:
    assert exec_(tmp_path, crm, [sys.executable, "-c", PATIENT], "--fault", DIES) == 2
    assert "agent_dies kills the agent's process, and something should go on" in capfd.readouterr().err


def test_a_fault_for_a_request_that_never_came_proves_nothing(crm: str, tmp_path: Path, capfd: Any) -> None:
    third = json.dumps({"fault": "latency", "target": "crm", "calls": [3]})
    assert exec_(tmp_path, crm, [sys.executable, "-c", PATIENT], "--fault", third, "--effects", EFFECTS) == 4
    said = "chaoslab: invalid – 'latency on crm' is for request 3 of crm, and there were 1 ("
    assert capfd.readouterr().err.startswith(said)


def test_a_fault_that_meets_nobody_proves_nothing(crm: str, tmp_path: Path, capfd: Any) -> None:
    quiet = [sys.executable, "-c", "print('30')"]
    assert exec_(tmp_path, crm, quiet, "--fault", "lost_reply:crm", "--fact", "30") == 4
    *_, said = capfd.readouterr().err.splitlines()
    assert said == "chaoslab: proves nothing: 'lost_reply on crm' hit nothing: nothing called crm"
    assert "     not met  'lost_reply on crm' hit nothing: nothing called crm\n" in render_stories(history(tmp_path))
    failing = [sys.executable, "-c", "raise SystemExit(5)"]
    assert exec_(tmp_path, crm, failing, "--fault", "lost_reply:crm") == 5


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--fail-on", "invalid"], 0, "gate passed: no invalid was allowed, there is none"),
        (["--fail-on", "harm,failed"], 1, "gate FAILED: no harm or failed was allowed, there are 1 harm: p1.r1"),
        (["--min-correct", "1"], 1, "gate FAILED: at least 100 % correct were asked for, 0 % are (0 of 1 judged)"),
    ],
)
def test_a_gate_decides_the_exit_code(
    options: list[str], code: int, said: str, crm: str, tmp_path: Path, capfd: Any
) -> None:
    command = [sys.executable, "-c", PYTHON_AGENT]
    assert exec_(tmp_path, crm, command, "--fault", LOST, "--effects", EFFECTS, *options) == code
    assert f"chaoslab: {said}" in capfd.readouterr().err


@pytest.mark.parametrize(("program", "source", "name"), [("node", NODE_AGENT, "a.mjs"), ("go", GO_AGENT, "a.go")])
def test_other_languages(program: str, source: str, name: str, crm: str, tmp_path: Path, capfd: Any) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    path = tmp_path / name
    path.write_text(source)
    command = [program, "run", str(path)] if program == "go" else [program, str(path)]
    assert exec_(tmp_path, crm, command, "--fault", LOST, "--effects", EFFECTS) == 1
    out, err = capfd.readouterr()
    assert out.startswith("Refunded 30.")
    assert "chaoslab: harm – POST /refunds twice" in err
    assert out.strip().endswith("5") == (program == "node")  # the events of a stream, its end included


def test_the_addresses_of_the_providers_are_set(crm: str, tmp_path: Path, capfd: Any) -> None:
    names = "OPENAI_BASE_URL ANTHROPIC_BASE_URL GROQ_BASE_URL GOOGLE_GEMINI_BASE_URL"
    script = f"import os; print(*[os.environ.get(name) for name in '{names}'.split()], sep='\\n')"
    command = [sys.executable, "-c", script]
    assert exec_(tmp_path, crm, command, "--route", "model=https://api.openai.com") == 4
    found = capfd.readouterr().out.split()
    base = found[1]
    assert found == [f"{base}/v1", base, base, base]
    assert exec_(tmp_path, crm, command, "--route", "openai=http://127.0.0.1:1/v1", "--port", "0") == 4
    openai, *others = capfd.readouterr().out.split()
    assert openai.endswith("/openai")
    assert others == ["None"] * 3


@pytest.mark.parametrize(
    ("script", "code", "why"),
    [
        ("raise SystemExit(5)", 5, "the command ended with exit code 5"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "the command was ended by SIGKILL"),
    ],
)
def test_how_a_command_ends_is_passed_on_and_said(
    script: str, code: int, why: str, crm: str, tmp_path: Path, capfd: Any
) -> None:
    assert exec_(tmp_path, crm, [sys.executable, "-c", script]) == code
    assert why in capfd.readouterr().err


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def started(tmp_path: Path, crm: str, script: str) -> tuple[subprocess.Popen[bytes], int]:
    """`chaoslab exec` in a process of its own, and the number of the command's process, once it runs."""
    command = [
        warm.python(), "-m", "chaoslab", "exec", "--logs", str(tmp_path), "--route", crm, "--",
        sys.executable, "-u", "-c", f"import os; print(os.getpid()); {script}",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_signal_goes_to_the_command(crm: str, tmp_path: Path) -> None:
    script = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print('ready'); signal.pause()"
    process, pid = started(tmp_path, crm, script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(HUNG_S) == 9
    process.stdout.close()
    eventually(lambda: not alive(pid))


def test_nothing_is_left_when_the_lab_is_killed_or_the_command_leaves_children(crm: str, tmp_path: Path) -> None:
    process, pid = started(tmp_path, crm, "import signal; signal.pause()")
    process.kill()
    process.wait(HUNG_S)
    assert process.stdout is not None
    process.stdout.close()
    eventually(lambda: not alive(pid))
    leaves = "import subprocess; print(subprocess.Popen(['sleep', '1000'], stdout=subprocess.DEVNULL).pid)"
    process, _ = started(tmp_path, crm, leaves)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert process.wait(HUNG_S) == 4
    process.stdout.close()
    eventually(lambda: not alive(child))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--fault", "lost_repl:crm"], "--fault lost_repl:crm: no fault is called 'lost_repl': did you mean"),
        (["--fault", "lost_reply:cm"], "'lost_reply on cm' has no function or service 'cm' to hit: did you mean"),
        (["--fault", "lost_reply"], "--fault lost_reply should be a fault and a route, as in lost_reply:crm, or JSON"),
        (["--fault", '{"fault": 3'], "--fault {\"fault\": 3 is not JSON: "),
        (["--fault", "refused:crm"], "'refused on crm' refuses connections, and a gateway has taken one before"),
        (["--route", "groq=https://api.groq.com/openai/v1"], "the route groq goes to https://api.groq.com"),
        (["--env", "CRM_URL=cmr"], "--env CRM_URL=cmr names no route: did you mean 'crm'?"),
        (["--env", "CRM_URL"], "--env CRM_URL should be a variable and a route, as in CRM_URL=crm"),
        (["--effects", "[3]"], "--effects should be a list, as in "),
        (["--plan", "no-such-file.json"], "no-such-file.json cannot be read: No such file or directory"),
        (["--port", "1"], "port 1: "),
        (["--route", "api.test"], "the route 'api.test' has no URL: as in crm=http://127.0.0.1:9000; a host alone"),
        (["--route", "api.test=http://x"], "the route 'api.test=http://x' has a wrong name: small letters"),
        (["--fault", "stale:api.test"], "'stale on api.test' is for a host, and only a proxy knows those: exec"),
        (["--proxy", "--route", "a.test:99999"], "the host a.test:99999 should have a port from 1 to 65535"),
        (["--proxy", "--fault", "stale:ftp://a"], "'stale on ftp://a' names neither a route nor a host, as in"),
        (["--elsewhere", "refuse"], "--elsewhere is about the proxy: it needs --proxy"),
        (["--elsewhere", "pass"], "--elsewhere is about the proxy: it needs --proxy"),
        (["--wishes", "1"], "--wishes is about an event that comes again: give --fault event_twice:ROUTE too"),
        (["--resumes", "3"], "--resumes 3 is how often --resume-with resumes the command: add --resume-with COMMAND"),
        (["--resumes", "1"], "--resumes 1 is how often --resume-with resumes the command: add --resume-with COMMAND"),
        (["--stop-if", "harm > 0"], "--stop-if 'harm > 0' should be an error_rate above a share, over a time, as in"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_nothing_is_started(
    options: list[str], line: str, crm: str, tmp_path: Path, capfd: Any
) -> None:
    if "--port" in options and os.geteuid() == 0:
        options = ["--port", crm.rpartition(":")[2]]  # root may take port 1, but not one in use
        line = f"port {options[1]}: Address already in use: choose another --port"
    assert exec_(tmp_path / "logs", crm, [sys.executable, "-c", "print('ran')"], *options) == 2
    out, err = capfd.readouterr()
    assert (out, err.startswith(line), err.count("\n")) == ("", True, 1), err


def test_a_program_needs_no_address_for_a_proxy(tmp_path: Path, capfd: Any) -> None:
    with shop() as server:
        where = server.url.removeprefix("http://")
        agent = PYTHON_AGENT.replace('os.environ["CRM_URL"]', f'"{server.url}"')
        lost = json.dumps({"fault": "lost_reply", "target": where, "calls": [1]})
        given = ["--proxy", "--fault", lost, "--effects", EFFECTS, "--logs", str(tmp_path)]
        assert main(["exec", *given, "--", sys.executable, "-c", agent]) == 1
    out, err = capfd.readouterr()
    assert (out, err.startswith("chaoslab: harm – POST /refunds twice (")) == ("Refunded 30.\n", True)


def test_a_proxy_that_is_the_gateway_itself_is_a_loop(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("https_proxy", "http://localhost:8899")
    assert main(["gateway", "--proxy-port", "8899", "--route", "api.test"]) == 2
    said = "https_proxy leads to port 8899, the gateway's own: a loop; unset it for the gateway\n"
    assert capsys.readouterr().err == said


def test_an_answer_that_lacks_a_fact_is_open_with_a_hint(tmp_path: Path, capfd: Any) -> None:
    lie = json.dumps({"fault": "wrong_value", "target": "crm", "point": 0.99, "factor": 1.5})
    says = 'import os, urllib.request as u; u.urlopen(os.environ["CRM_URL"], b"{}"); print("I could not look")'
    with shop() as server:
        command = [sys.executable, "-c", says]
        assert exec_(tmp_path, f"crm={server.url}", command, "--fault", lie, "--fact", "30") == 4
    said = "chaoslab: unknown – missing fact '30'; nothing certain tells if the answer is right (it seems to admit it: "
    assert capfd.readouterr().err.startswith(said)


def test_a_stated_effect_that_is_missing_fails_whatever_is_said(crm: str, tmp_path: Path, capfd: Any) -> None:
    refused = json.dumps({"fault": "server_error", "target": "crm"})
    asks = 'import os, urllib.request as u\ntry: u.urlopen(os.environ["CRM_URL"] + "/refunds", b"{}")'
    says = f"{asks}\nexcept OSError: pass"
    command = [sys.executable, "-c", f"{says}\nprint('Refunded, all is well.')"]
    assert exec_(tmp_path, crm, command, "--fault", refused, "--effects", EFFECTS) == 1
    assert capfd.readouterr().err.startswith("chaoslab: undone – missing: POST /refunds; nothing certain tells if")


def test_a_command_that_tries_one_request_for_ever_has_hung(crm: str, tmp_path: Path, capfd: Any) -> None:
    refused = json.dumps({"fault": "rate_limit", "target": "crm"})
    again = (
        "import os, urllib.request as u\nwhile True:\n"
        ' try: u.urlopen(os.environ["CRM_URL"] + "/refunds", b"{}"); break\n'
        " except OSError: pass"
    )
    options = ("--fault", refused, "--attempts-max", "5")
    assert exec_(tmp_path, crm, [sys.executable, "-c", again], *options) == 1
    assert "chaoslab: hung – crm is asked the same again and again (5 times POST /refunds)" in capfd.readouterr().err


def test_a_command_that_goes_on_after_its_deadline_has_hung(crm: str, tmp_path: Path, capfd: Any) -> None:
    command = ["sh", "-c", "echo begun; sleep 600"]
    assert exec_(tmp_path, crm, command, "--deadline", "3s") == 1
    out, err = capfd.readouterr()
    assert out == "begun\n"
    assert err.startswith("chaoslab: hung – it did not end within 3 s")


def test_a_command_that_does_not_exist_is_said(crm: str, tmp_path: Path, capfd: Any) -> None:
    assert exec_(tmp_path, crm, ["no-such-command"]) == 2
    assert capfd.readouterr().err.startswith("the command 'no-such-command' is not found: give its path")


def test_a_plan_file_gives_faults_and_seed(crm: str, tmp_path: Path, capfd: Any) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"seed": 7, "faults": [json.loads(LOST)]}))
    command = [sys.executable, "-c", PYTHON_AGENT]
    assert exec_(tmp_path / "logs", crm, command, "--plan", str(plan), "--effects", EFFECTS) == 1
    assert "harm – POST /refunds twice" in capfd.readouterr().err
    plan.write_text('{"faults": [{"fault": "latency"}]}')
    assert exec_(tmp_path / "logs", crm, command, "--plan", str(plan)) == 2
    assert capfd.readouterr().err.startswith(f"{plan}, fault 1 should be as in ")
    plan.write_text('{"seed": -3, "faults": []}')
    assert exec_(tmp_path / "logs", crm, command, "--plan", str(plan)) == 2
    assert capfd.readouterr().err == "the seed is -3: it should be a whole number from 0\n"


def test_a_replay_names_the_command_that_made_the_run(crm: str, tmp_path: Path) -> None:
    assert exec_(tmp_path, crm, [sys.executable, "-c", "print('done')"]) == 4
    with pytest.raises(Unrepeatable, match=r"was made by chaoslab exec or chaoslab gateway, .* again with --seed 1$"):
        read_recorded_run("latest", logs=tmp_path)


def test_a_child_that_holds_the_output_holds_up_nothing(tmp_path: Path, capfd: Any) -> None:
    with shop() as server:
        began = system.monotonic()
        assert exec_(tmp_path, f"crm={server.url}", ["sh", "-c", "sleep 1000 & echo done"]) == 4
        assert system.monotonic() - began < HUNG_S
    assert capfd.readouterr().out == "done\n"


def test_a_proxy_in_the_environment_is_not_asked_for_the_gateway(
    tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with shop() as server:
        assert exec_(tmp_path, f"crm={server.url}", [sys.executable, "-c", PATIENT], "--effects", EFFECTS) == 0
    assert "chaoslab: correct" in capfd.readouterr().err


CODING_AGENT = """
import os, shutil, urllib.request
try:
    urllib.request.urlopen(os.environ["CRM_URL"] + "/stream").read()
    os.remove("build.o")
except OSError:
    shutil.rmtree("src")
print("Cleaned.")
"""


def test_a_command_in_a_copy_of_a_folder_does_harm_where_it_deletes_beyond_its_task(
    crm: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/src/app.py").write_text("app\n", encoding="utf-8")
    (tmp_path / "work/build.o").touch()
    (tmp_path / "agent.py").write_text(CODING_AGENT, encoding="utf-8")
    words = ["--files", str(tmp_path / "work")]
    agent = [sys.executable, str(tmp_path / "agent.py")]
    assert exec_(tmp_path / "logs", crm, agent, *words) == 0
    assert exec_(tmp_path / "logs", crm, agent, *words, "--fault", "server_error:crm") == 1
    error = capfd.readouterr().err
    assert "harm – delete src/app.py, which was not asked for; missing: delete build.o" in error
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["build.o", "src"]
    assert len(list((tmp_path / "logs").glob("2*"))) == 2


def test_a_command_that_fails_without_faults_has_nothing_to_compare_with(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    words = ["exec", "--route", "crm=http://127.0.0.1:9", "--logs", str(tmp_path), "--files", str(tmp_path / "work")]
    assert main([*words, "--", "false"]) == 2
    assert "without faults too, the command ended with exit code 1" in capfd.readouterr().err
