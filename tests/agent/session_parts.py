"""A session over a model that says what it is told to, through ChatGroq and `create_agent` as in a real run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_parts import Heard, bench, embedded, said, site
from hostile_parts import Hostile
from lab_parts import Site

from agent.assembly import graph as assembled
from agent.config import Config
from agent.prompts import Prompt
from agent.session import Progress, Session
from agent.tools import Toolbox
from chaoslab import events
from chaoslab.clock import Clock, system
from chaoslab.exchange import Reply
from chaoslab.history import History
from chaoslab.model.endpoint import ERRORS, INSUFFICIENT_QUOTA
from chaoslab.plan import Plan
from chaoslab.scenario import from_settings
from chaoslab.settings import Settings
from flask_tools import calculator, messaging

SERVICES = {"calculator": calculator.SERVICE, "messaging": messaging.SERVICE}
PRICED = "llama-3.3-70b-versatile"
ASKED = Prompt(prompt="What is 6 times 7?")


def chat(message: dict[str, Any], reason: str) -> Reply:
    usage = {"prompt_tokens": 900_000, "completion_tokens": 100_000, "total_tokens": 1_000_000}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return said(
        {"id": "c", "object": "chat.completion", "created": 0, "model": PRICED, "choices": [choice], "usage": usage}
    )


def says(text: str) -> Reply:
    return chat({"content": text}, "stop")


def calls(tool: str, **arguments: str) -> Reply:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return chat({"content": None, "tool_calls": [{"id": "t1", "type": "function", "function": function}]}, "tool_calls")


def no(status: int, **headers: str) -> Reply:
    return said({"error": {"message": "the model is unwell", "type": "test"}}, status, **headers)


SUM = calls("calculate", expression="6*7")


@dataclass
class Told:
    """What came of a session."""

    history: History
    model: list[Heard]
    tools: dict[str, list[Heard]]
    progress: Progress

    def of(self, kind: Any) -> list[Any]:
        return [event for _, event in self.history.of(kind)]

    @property
    def errors(self) -> list[str]:
        return [event.error_type for event in self.of(events.PromptAttempt)]


def in_turn(replies: Sequence[Reply]) -> Callable[[Heard], Reply]:
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def session(
    folder: Path,
    script: Sequence[Reply],
    *,
    prompts: Sequence[Prompt] = (ASKED,),
    plan: Plan | None = None,
    steps_max: int = 15,
    sums: Reply | Callable[[Heard], Reply] | None = None,
    model: AbstractContextManager[Site | Hostile] | None = None,
    deadline_s: float = 2.0,
    clock: Clock = system,
    **chosen: Any,
) -> Told:
    """Works through the prompts with a model that says this in turn, the last for ever; `model`: another one."""
    quiet = {"toxic_prob": 0.0, "error_prob": 0.0, "model": PRICED}
    settings = Settings(**{**quiet, **chosen})
    answer = sums or said({"expression": "6*7", "result": 42, "text": "42"})

    async def run(url: str, sites: dict[str, Site | Hostile]) -> Told:
        where = {name: made.address for name, made in sites.items()}
        told = plan or from_settings(settings)
        words = {**ERRORS, 402: INSUFFICIENT_QUOTA}
        async with bench(folder, url, told, where, deadline_s=deadline_s, errors=words) as lab:
            with lab.run.log("agent") as agent_log:
                config, progress = Config(steps_max=steps_max, retry_wait_s=0.001), Progress(len(prompts))
                toolbox = Toolbox(lab.client, lab.seam.targets, SERVICES, config, settings, lab.seam.log, clock)
                graph = assembled(settings, lab.seam.targets["model"].url, lab.client, toolbox)
                made = Session(
                    settings, config, lab.run, lab.seam, toolbox, graph, lab.seam.log, agent_log, clock, progress
                )
                await made.run(list(prompts))
                made.finish("done")
            heard = {name: site.heard for name, site in sites.items()}
            return Told(lab.history(), heard.pop("model"), heard, progress)

    with (
        embedded() as url,
        model or site(in_turn(script)) as at_model,
        site(answer if callable(answer) else lambda _: answer) as sums_site,
        site(lambda _: said({"ok": True, "ts": "1.0"})) as mail,
    ):
        return asyncio.run(run(url, {"model": at_model, "calculator": sums_site, "messaging": mail}))
