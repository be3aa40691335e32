"""The agent's own prompts: each says what a right answer must show, and the offline model gives one on any day."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from chaoslab.agent.prompts import Lookup, Prompt, fill_dates, get_value_at_path, load_prompts
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.config.topology import SERVICES
from chaoslab.core.events import PromptFinished, PromptStarted
from chaoslab.core.service_spec import ServiceSpec, ToolSpec, fill_template
from chaoslab.flask_tools.app import create_app
from chaoslab.model._chat import answer_conversation
from chaoslab.record.history import History
from chaoslab.record.log import Log
from chaoslab.record.runs import Run

PROMPTS = load_prompts()
DAYS = ("2026-06-01T09:00:00Z", "2026-11-20T15:00:00Z", "2027-02-27T23:30:00Z")


@dataclass
class Bench:
    """All seven services in one process, without a network between them and the model."""

    run: Run
    now: datetime
    clients: dict[str, FlaskClient]
    tools: dict[str, tuple[ServiceSpec, ToolSpec]]
    used: set[str] = field(default_factory=set)

    def call(self, name: str, arguments: dict[str, Any], trial: TrialId) -> str:
        """A tool's reply as the agent would hand it to the model."""
        service, tool = self.tools[name]
        path = "/".join(quote(str(fill_template(part, arguments)), safe="") for part in tool.path.split("/"))
        body = None if tool.body is None else fill_template(tool.body, arguments)
        reply = self.clients[service.name].open(
            path, method=tool.method, query_string=dict(fill_template(tool.query, arguments)), json=body,
            headers={"X-Trial": trial.header},
        )  # fmt: skip
        if reply.status_code >= 400:
            return f"Error: {service.name} answered {reply.status_code}: {reply.text}"
        return reply.text or '{"deleted": true}'

    def fact(self, fact: str | list[str] | Lookup, trial: TrialId) -> list[str]:
        if isinstance(fact, Lookup):
            return [
                str(
                    get_value_at_path(
                        json.loads(self.call(fact.tool, fill_dates(fact.arguments, self.now), trial)), fact.path
                    )
                )
            ]
        spellings: list[str] = fill_dates([fact] if isinstance(fact, str) else fact, self.now)
        return spellings

    def ask(self, prompt: str, trial: TrialId) -> str:
        """The model's last word."""
        system_prompt = f"Today is {self.now:%A %Y-%m-%d}, {self.now:%H:%M} UTC."
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": system_prompt},
            {"role": "user", "content": prompt},
        ]
        offered = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for _, t in self.tools.values()
        ]
        for _ in range(10):
            reply = answer_conversation(messages, offered)
            if not reply.tool_calls:
                return reply.content
            asked = [
                {"id": call.id, "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
                for call in reply.tool_calls
            ]
            messages.append({"role": "assistant", "content": "", "tool_calls": asked})
            for call in reply.tool_calls:
                self.used.add(call.name)
                content = self.call(call.name, dict(call.arguments), trial)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        raise AssertionError(f"no answer to {prompt!r} after ten turns")


@pytest.fixture(params=DAYS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    now: str = request.param
    run = Run.create(tmp_path, now=now)
    with ExitStack() as closing:
        clients: dict[str, FlaskClient] = {}
        tools: dict[str, tuple[ServiceSpec, ToolSpec]] = {}
        for name in SERVICES:
            app = create_app(name, logs=tmp_path, now=now)
            closing.callback(app.extensions["ledger"].close)
            clients[name] = app.test_client()
            service = ServiceSpec.from_json(clients[name].get("/tools").get_json())
            tools |= {tool.name: (service, tool) for tool in service.tools}
        yield Bench(run, datetime.fromisoformat(now), clients, tools)


def test_every_shipped_prompt_is_answered_correctly_on_any_day_and_all_ten_tools_are_used(bench: Bench) -> None:
    verdicts = {}
    with Log(bench.run.folder, "info", run=bench.run.name, origin=system.monotonic()) as log:
        for index, prompt in enumerate(PROMPTS, 1):
            trial = TrialId(bench.run.name, index, 1)
            truth = TrialId(bench.run.name, index, 1, truth=True)
            facts = [bench.fact(fact, truth) for fact in prompt.facts]
            effects = fill_dates(prompt.effects, bench.now)
            log.write(
                PromptStarted(
                    prompt_index=index,
                    prompt=prompt.prompt,
                    facts=facts,
                    effects=effects,
                    stated=prompt.has_facts_or_effects,
                ),
                trial=trial.key,
            )
            said = bench.ask(prompt.prompt, trial)
            log.write(
                PromptFinished(
                    prompt_index=index, prompt=prompt.prompt, status="ok", answer=said, attempts=1, duration_s=0.1
                ),
                trial=trial.key,
            )
            verdicts[trial.key] = (prompt.prompt, said)
    history = History.read(bench.run.folder)
    judged = {key: judge_trial(history, key) for key in verdicts}
    assert {verdicts[key]: verdict.why for key, verdict in judged.items() if verdict.outcome != Outcome.CORRECT} == {}
    assert bench.used == set(bench.tools)


@pytest.mark.parametrize("prompt", PROMPTS, ids=[prompt.prompt for prompt in PROMPTS])
def test_each_says_what_a_right_answer_must_show(prompt: Prompt) -> None:
    assert prompt.facts or prompt.effects


def test_they_are_many_and_different_and_several_take_more_than_one_step() -> None:
    assert len({prompt.prompt for prompt in PROMPTS}) == len(PROMPTS) >= 25
    assert sum(bool(prompt.facts and prompt.effects) or len(prompt.effects) > 1 for prompt in PROMPTS) >= 8
