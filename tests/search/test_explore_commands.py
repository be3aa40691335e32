"""`chaoslab explore --exec`: a command in any language, its services behind a gateway, in real time."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chaoslab.cli import main

Said = pytest.CaptureFixture[str]
# Each waits three seconds for a reply: on a busy machine less passed without a fault, and it paid twice.
PYTHON = """\
import os, urllib.request
for _ in range(2):
    try:
        urllib.request.urlopen(os.environ["SHOP_URL"] + "/refunds", data=b"{}", timeout=3).read()
        break
    except TimeoutError:
        continue
print("refunded")
"""
NODE = """\
const given = { method: "POST", body: "{}" };
const pay = () => fetch(process.env.SHOP_URL + "/refunds", { ...given, signal: AbortSignal.timeout(3000) });
const again = (error) => { if (error.name !== "TimeoutError") throw error; return pay(); };
pay().catch(again).then(() => console.log("refunded"));
"""
GO = """\
package main

import ("errors"; "fmt"; "net"; "net/http"; "os"; "strings"; "time")

func main() {
	client := http.Client{Timeout: 3 * time.Second}
	for i := 0; i < 2; i++ {
		reply, err := client.Post(os.Getenv("SHOP_URL")+"/refunds", "application/json", strings.NewReader("{}"))
		if err == nil { reply.Body.Close(); break }
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() { os.Exit(1) }
	}
	fmt.Println("refunded")
}
"""
DYING_NODE = """\
const fs = require("fs"), http = require("http"), careful = process.argv.includes("careful");
const done = fs.existsSync("done.json") ? JSON.parse(fs.readFileSync("done.json")) : [];
const post = (step) => new Promise((done, fail) => http.request(`${process.env.SHOP_URL}/${step}`, {
  method: "POST", headers: careful ? { "Idempotency-Key": `${step} 17` } : {},
}, (reply) => reply.resume().on("end", done)).on("error", fail).end("{}"));
(async () => {
  for (const step of ["charges", "mails"].filter((step) => !done.includes(step))) {
    await post(step);
    done.push(step);
    fs.writeFileSync("done.json", JSON.stringify(done));
  }
  console.log("charged");
})();
"""
"""Charges and mails; the steps that are done stand in a file. Without fetch, which would be most of its start."""


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"ok": True}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"shop=http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("program", "file", "text"),
    [(sys.executable, "agent.py", PYTHON), ("node", "agent.js", NODE), ("go", "agent.go", GO)],
)
def test_a_command_that_pays_twice_is_found_and_kept(
    program: str, file: str, text: str, route: str, tmp_path: Path, capsys: Said
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    (tmp_path / file).write_text(text)
    command = f"{program} {file}"
    if program == "go":
        subprocess.run(["go", "build", "-o", "agent", file], check=True, timeout=300)
        command = "./agent"
    asked = ["explore", "--exec", command, "--route", route, "--wait-s", "6", "--no-logs"]
    assert main([*asked, "--tries", "lost_reply", "--reset", "echo reset >> resets", "--save", "found"]) == 1
    said = capsys.readouterr().out
    assert re.match(r"agent: 1 root cause in 2 trials", said), said
    assert "1. HARM: POST /refunds" in said
    assert "cause: lost_reply at shop 1\n" in said
    (saved,) = (tmp_path / "found").iterdir()
    assert saved.name.startswith("agent-repeats-post-refunds-")
    assert len((tmp_path / "resets").read_text().split()) >= 4  # calm twice, with the fault, and again
    assert main(["test", "found", "--no-logs"]) == 1
    assert "    harm: POST /refunds twice" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize("careful", [False, True])
def test_a_command_that_is_killed_at_each_request_is_found_where_it_does_all_again(
    careful: bool, route: str, tmp_path: Path, capsys: Said
) -> None:
    (tmp_path / "agent.js").write_text(DYING_NODE)
    command = f"node agent.js {'careful' if careful else ''}"
    asked = ["explore", "--exec", command, "--route", route, "--wait-s", "1", "--no-logs", "--json", "--save", "found"]
    asked += ["--tries", "agent_dies", "--resume-with", command, "--reset", "rm -f done.json; echo . >> resets"]
    assert main(asked) == (0 if careful else 1)
    (explored,) = json.loads(capsys.readouterr().out)["explored"]
    assert explored["tried"] == 5, "the calm one, and each request before and after"
    # Without the reset all steps would be done, and a trial would meet no fault.
    assert len((tmp_path / "resets").read_text().split()) >= 5
    found = [(failure["symptom"], failure["operation"], failure["faults"]) for failure in explored["failures"]]
    assert found == ([] if careful else [
        ("resumes twice", f"POST /{step}", [{"fault": "agent_dies", "target": "shop", "calls": [call]}])
        for call, step in enumerate(("charges", "mails"), 1)
    ])  # fmt: skip
    if not careful:
        assert main(["test", "found", "--no-logs"]) == 1
        assert "harm: POST /charges twice; killed at shop (1.1), it went on" in capsys.readouterr().out


def test_an_exploration_of_another_command_is_not_gone_on_with(route: str, tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "agent.py").write_text(patient := PYTHON.replace("timeout=3", "timeout=60"))
    asked = ["explore", "--route", route, "--wait-s", "1", "--tries", "server_error", "--trials", "1"]
    command, runs = f"{sys.executable} agent.py", str(tmp_path / "runs")
    main([*asked, "--exec", command, "--resume-with", command, "--logs", runs])
    again = [*asked, "--resume", f"{runs}/latest", "--exec"]
    assert main([*again, command, "--resume-with", command]) != 2
    assert main([*again, command, "--resume-with", f"{command} again"]) == 2
    assert main([*again, f"{command} other", "--resume-with", command]) == 2
    said = capsys.readouterr().err
    assert said.count("cannot be resumed: ") == 2, said
    (tmp_path / "agent.py").write_text(f"{patient}# other\n")
    assert main([*again, command, "--resume-with", command]) == 2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give a scenario's file, an agent as module:name, or --exec with a command"),
        (["desk:agent", "--exec", "x"], "give a scenario's file, an agent as module:name, or --exec with a command"),
        (["--exec", sys.executable], "give --route NAME=URL for each"),
        (["--exec", sys.executable, "--route", "shop"], "--route shop should be a name and an address"),
        (["--exec", "no-program", "--route", "shop=http://127.0.0.1:9"], "the command 'no-program' is not found"),
        (["desk:agent", "--proxy"], "without a command --proxy would do nothing: add --exec COMMAND"),
        (["desk:agent", "--route", "shop=http://127.0.0.1:9", "--reset", "x"], "--route and --reset would do nothing"),
        (["desk:agent", "--resume-with", "x", "--resumes", "2"], "--resume-with and --resumes would do nothing"),
        (["desk:agent", "--resumes", "1"], "without a command --resumes would do nothing: add --exec COMMAND"),
        (["desk:agent", "--wait-s", "5", "--reset", ""], "without a command --reset and --wait-s would do nothing"),
        (["--exec", "x", "--resumes", "1"], "--resumes 1 is how often --resume-with resumes the command: add"),
        (["--exec", "x", "--reset", "y", "--jobs", "2"], "--reset sets the services back for one trial at a time"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_one_line(arguments: list[str], why: str, capsys: Said) -> None:
    assert main(["explore", *arguments, "--no-logs"]) == 2
    said = capsys.readouterr()
    assert why in said.err
    assert "Traceback" not in said.err


def test_a_command_with_a_fixed_address_is_led_to_its_service_by_a_proxy(
    route: str, tmp_path: Path, capsys: Said
) -> None:
    url = route.partition("=")[2]
    (tmp_path / "agent.py").write_text(PYTHON.replace('os.environ["SHOP_URL"]', f'"{url}"'), encoding="utf-8")
    program = f"{sys.executable} agent.py"
    asked = ["explore", "--exec", program, "--route", route, "--tries", "timeout", "--wait-s", "6", "--save", "kept"]
    assert main([*asked, "--proxy"]) == 1
    assert "POST /refunds" in capsys.readouterr().out
    (kept,) = (tmp_path / "kept").iterdir()
    assert main(["test", str(kept)]) == 1
    assert "harm" in capsys.readouterr().out
    assert main(asked) == 4  # past the gateway no fault is met
