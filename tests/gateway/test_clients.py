"""curl, and OpenAI's SDK for Node where it is installed, take the gateway for their service."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed
from tests.gateway.parts import history, on_loopback, shop
from tests.gateway.test_exec import exec_

CURL_AGENT = """
refund() { curl -sS -f "$@" -H 'Content-Type: application/json' -d '{"order": 17}' "$CRM_URL/refunds"; }
refund --max-time 0.5 || refund && curl -sS -N "$CRM_URL/stream" | grep -c data:
"""
NODE_AGENT = """
const OpenAI = require("openai");
(async () => {
  const client = new OpenAI();
  const asked = {model: "m", messages: [{role: "user", content: "Are you there?"}]};
  const reply = await client.chat.completions.create(asked);
  let said = "";
  for await (const part of await client.chat.completions.create({...asked, stream: true}))
    said += part.choices[0]?.delta?.content ?? "";
  console.log(reply.choices[0].message.content, "/", said);
})();
"""


def test_curl_meets_a_lost_reply_and_takes_a_stream(tmp_path: Path, capfd: Any) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    lost = json.dumps({"fault": "lost_reply", "target": "crm", "calls": [1]})
    wanted = json.dumps([{"effect": "POST /refunds", "order": 17}])
    with shop() as server:
        options = ["--fault", lost, "--effects", wanted]
        assert exec_(tmp_path, f"crm={server.url}", ["sh", "-c", CURL_AGENT], *options) == 1
    out, err = capfd.readouterr()
    assert (out, "curl: (28)" in err) == ('{"size": 13, "amount": 30}5\n', True)
    assert "chaoslab: harm – POST /refunds twice (" in err
    assert [event.fault for _, event in history(tmp_path).of(FaultWitnessed)] == ["lost_reply"]


@pytest.fixture
def model() -> Iterator[str]:
    """The address of a model on loopback."""
    with on_loopback(lab.scripted(["Yes, I am.", "Still here."])) as url:
        yield f"openai={url}/v1"


def test_openai_for_node_retries_a_rate_limit_and_takes_a_stream(
    model: str, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if subprocess.run(["node", "-e", 'require.resolve("openai")'], capture_output=True, check=False).returncode:
        pytest.skip("node finds no package openai: npm install openai, and give NODE_PATH")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-user")
    limit = json.dumps({"fault": "tool_error", "target": "openai", "status": 429, "attempts": [1], "calls": [1]})
    options = ["--route", model, "--fault", limit, "--fact", "Yes, I am. / Still here."]
    assert exec_(tmp_path, "crm=http://127.0.0.1:1", ["node", "-e", NODE_AGENT], *options) == 0
    out, err = capfd.readouterr()
    assert (out, "chaoslab: correct – " in err) == ("Yes, I am. / Still here.\n", True), err
    assert [event.status for _, event in history(tmp_path).of(CallFinished)] == [429, 200, 200]
    assert "sk-of-a-user" not in (tmp_path / "latest" / "info.log").read_text()
