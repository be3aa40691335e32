"""curl, and the SDKs of OpenAI and of MCP for Node where they are installed, take the lab for their service."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import CallFinished, Effect, FaultWitnessed
from tests.gateway.parts import history, on_loopback, shop
from tests.gateway.test_exec import exec_
from tests.waiting import HUNG_S

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


def needs_node(*packages: str) -> None:
    """Skips the test where Node or one of these packages is not installed."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    for package in packages:
        looks = ["node", "-e", f"require.resolve({json.dumps(package)})"]
        if subprocess.run(looks, capture_output=True, check=False).returncode:
            pytest.skip(f"node finds no package {package}: npm install it, and give NODE_PATH")


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
    assert [event.fault for _, event in history(tmp_path).find_events(FaultWitnessed)] == ["lost_reply"]


@pytest.fixture
def model() -> Iterator[str]:
    """The address of a model on loopback."""
    with on_loopback(lab.scripted(["Yes, I am.", "Still here."])) as url:
        yield f"openai={url}/v1"


def test_openai_for_node_retries_a_rate_limit_and_takes_a_stream(
    model: str, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_node("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-user")
    limit = json.dumps({"fault": "tool_error", "target": "openai", "status": 429, "attempts": [1], "calls": [1]})
    options = ["--route", model, "--fault", limit, "--fact", "Yes, I am. / Still here."]
    assert exec_(tmp_path, "crm=http://127.0.0.1:1", ["node", "-e", NODE_AGENT], *options) == 0
    out, err = capfd.readouterr()
    assert (out, "chaoslab: correct – " in err) == ("Yes, I am. / Still here.\n", True), err
    assert [event.status for _, event in history(tmp_path).find_events(CallFinished)] == [429, 200, 200]
    assert "sk-of-a-user" not in (tmp_path / "latest" / "info.log").read_text()


NODE_CLIENT = """
const {Client} = require("@modelcontextprotocol/sdk/client/index.js");
const {StdioClientTransport} = require("@modelcontextprotocol/sdk/client/stdio.js");
(async () => {
  const client = new Client({name: "agent", version: "1"}, {capabilities: {}});
  const [command, ...args] = process.argv.slice(1);
  await client.connect(new StdioClientTransport({command, args, env: process.env}));
  await client.listTools();
  for await (const told of client.experimental.tasks.callToolStream({name: "refund", arguments: {order: 17}}))
    if (told.type == "result") console.log(told.result.content[0].text);
  await client.close();
})();
"""
NODE_SERVER = """
const {McpServer} = require("@modelcontextprotocol/sdk/server/mcp.js");
const {StdioServerTransport} = require("@modelcontextprotocol/sdk/server/stdio.js");
const {InMemoryTaskStore} = require("@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js");
const {z} = require("zod");
const options = {capabilities: {tasks: {requests: {tools: {call: {}}}}}, taskStore: new InMemoryTaskStore()};
const server = new McpServer({name: "shop", version: "1"}, options);
const work = {inputSchema: {order: z.number()}, execution: {taskSupport: "required"}};
server.experimental.tasks.registerToolTask("refund", work, {
  createTask: async ({order}, {taskStore}) => {
    const task = await taskStore.createTask({ttl: 60000, pollInterval: 20});
    const result = {content: [{type: "text", text: `refunded ${order}`}]};
    setImmediate(() => taskStore.storeTaskResult(task.taskId, "completed", result));
    return {task};
  },
  getTask: async (_, {taskId, taskStore}) => taskStore.getTask(taskId),
  getTaskResult: async (_, {taskId, taskStore}) => taskStore.getTaskResult(taskId),
});
server.connect(new StdioServerTransport());
"""
NODE_NEW_CLIENT = """
const {Client} = require("@modelcontextprotocol/client");
const {StdioClientTransport} = require("@modelcontextprotocol/client/stdio");
(async () => {
  const options = {capabilities: {elicitation: {form: {}}}, versionNegotiation: {mode: "auto"}};
  const client = new Client({name: "agent", version: "1"}, options);
  client.setRequestHandler("elicitation/create", async () => ({action: "accept", content: {yes: true}}));
  const [command, ...args] = process.argv.slice(1);
  await client.connect(new StdioClientTransport({command, args, env: process.env}));
  const told = await client.callTool({name: "refund", arguments: {order: 17}});
  console.log(client.getNegotiatedProtocolVersion(), told.content[0].text);
  await client.close();
})();
"""
ASKING_SERVER = "from tests.seams.test_mcp_dates import shop; shop().run('stdio')"


@pytest.mark.parametrize(
    ("package", "client", "server", "faults", "answer"),
    [
        ("sdk/client/index.js", NODE_CLIENT, ["node", "-e", NODE_SERVER], [], "refunded 17"),
        ("sdk/client/index.js", NODE_CLIENT, ["node", "-e", NODE_SERVER], ["wrong_value:refund"], "17 refunded"),
        ("client", NODE_NEW_CLIENT, [sys.executable, "-c", ASKING_SERVER], [], "2026-07-28 refunded 17"),
    ],
    ids=["a task", "a task with a wrong value", "a question to the user"],
)
def test_the_sdk_of_mcp_for_node_has_one_effect_a_call(
    package: str, client: str, server: list[str], faults: list[str], answer: str, tmp_path: Path
) -> None:
    needs_node(f"@modelcontextprotocol/{package}", *(["zod"] if server[0] == "node" else []))
    wanted = ["--effects", json.dumps([{"effect": "refund", "order": 17}])]
    given = [word for fault in faults for word in ("--fault", fault)]
    proxy = [sys.executable, "-m", "chaoslab", "mcp", "--logs", str(tmp_path), *given, *wanted, "--", *server]
    done = subprocess.run(["node", "-e", client, *proxy], capture_output=True, text=True, timeout=HUNG_S, check=True)
    assert done.stdout == f"{answer}\n"
    assert [event.content for _, event in history(tmp_path).find_events(Effect)] == [{"order": 17}]
