"""A new tool is one file in flask_tools and one line in the table of services; the lab uses it like the others."""

import contextlib
import http.client
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chaoslab.config.topology import Ports
from chaoslab.core.events import CallFinished, PromptAttempt
from chaoslab.record.history import History
from chaoslab.reports import charts
from tests import warm
from tests.cli_parts import as_installed, free_base
from tests.waiting import HUNG_S

LAST_LINE = '    "translator": 6,\n'
NEW_LINE = '    "dice": 8,\n'
NEW_FILE = '''"""A die that is fair, and falls the same way whenever the same request comes again."""

from chaoslab.core.service_spec import ErrorReply, ServiceSpec, ToolSpec
from chaoslab.flask_tools.service_module import Answer, Refusal, Route, ServiceRequest

SERVICE = ServiceSpec(
    name="dice",
    tools=(
        ToolSpec(
            name="roll_dice",
            description="Roll a die with this many sides.",
            parameters={"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]},
            method="GET",
            path="/roll",
            query={"sides": "$sides"},
        ),
    ),
    errors={status: ErrorReply(status, {"error": "not now"}) for status in (401, 404, 429, 500, 503)},
)


def routes() -> tuple[Route, ...]:
    return (Route("GET", "/roll", "roll_dice", _roll),)


def _roll(ask: ServiceRequest) -> Answer:
    sides = ask.query.get("sides", "")
    if not sides.isdecimal() or not 0 < int(sides) < 10**9:
        raise Refusal(400, {"error": "sides must be a whole number"})
    return Answer({"sides": int(sides), "rolled": int(ask.request_id, 16) % int(sides) + 1})
'''
SIDES = 1_000_000


def proxies(port: int) -> dict[str, Any]:
    """The proxies of Toxiproxy at this moment; nothing when it is not there."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/proxies")
            told: dict[str, Any] = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException):
            return {}
        return told


def test_a_file_and_a_line_are_a_new_tool_behind_its_own_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROQ_API_KEY", "MODEL_URL", "TOXIPROXY_URL", "REPEATS"):
        monkeypatch.delenv(name, raising=False)
    as_installed(tmp_path)
    for name in charts.list_charts():
        if name != "tool_latency":  # the chart of tools is drawn with the new one; each other takes a quarter second
            (tmp_path / "chaoslab" / "reports" / "charts" / f"{name}.py").unlink()
    (tmp_path / "chaoslab" / "flask_tools" / "dice.py").write_text(NEW_FILE)
    table = tmp_path / "chaoslab" / "config" / "topology.py"
    before = table.read_text()
    table.write_text(before.replace(LAST_LINE, LAST_LINE + NEW_LINE))
    assert len(table.read_text().splitlines()) == len(before.splitlines()) + 1
    asked = [{"prompt": f"Roll a die with {SIDES} sides."}]
    (tmp_path / "mine.json").write_text(json.dumps(asked))

    base = free_base()
    settings = ("TOXIC_PROB=0", "ERROR_PROB=0", f"BASE_PORT={base}", "PROMPTS=mine.json")
    command = [warm.python(), "-m", "chaoslab", "lab", *settings]  # it loads the copy's modules anew
    seen: dict[str, Any] = {}
    with (tmp_path / "said").open("w+") as said:
        lab = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=subprocess.STDOUT)
        try:
            for _ in range(int(HUNG_S / 0.05)):
                seen |= proxies(Ports(base).toxiproxy_port)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    lab.wait(0.05)
                    break
        finally:
            lab.kill()
            lab.wait()
        said.seek(0)
        assert lab.returncode == 0, said.read()

    assert (tmp_path / "charts" / "tool_latency.png").exists()
    (proxy,) = [proxy for name, proxy in seen.items() if proxy["listen"] == f"127.0.0.1:{base + 1008}"]
    assert proxy["upstream"] == f"127.0.0.1:{base + 8}"
    history = History.read(tmp_path / "logs" / "latest")
    (call,) = [call for _, call in history.find_events(CallFinished) if call.target == "dice"]
    assert (call.tool, call.via, call.ok) == ("roll_dice", "proxy", True)
    (attempt,) = [attempt for _, attempt in history.find_events(PromptAttempt)]
    rolled = int(call.request_id, 16) % SIDES + 1
    assert f"rolled: {rolled}" in attempt.response
