"""A session over a model that says what it is told to, through ChatGroq and `create_agent` as in a real run."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaoslab.agent.assembly import build_agent as assembled
from chaoslab.agent.config import Config
from chaoslab.agent.prompts import Prompt
from chaoslab.agent.session import Session, SessionProgress, TwinOf
from chaoslab.agent.tools import Toolbox
from chaoslab.base.clock import Clock, system
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import Settings
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.core.plan import Plan
from chaoslab.flask_tools import calculator, messaging
from chaoslab.model.endpoint import ERRORS, INSUFFICIENT_QUOTA
from chaoslab.record.history import History
from tests.seams import virtual_parts
from tests.seams.hostile_parts import Answer, hostile_host
from tests.seams.lab_parts import Bench, Heard, Site, bench, embedded, said, site

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
    """The outcome of a session."""

    history: History
    model: list[Heard]
    tools: dict[str, list[Heard]]
    progress: SessionProgress

    def of(self, kind: Any) -> list[Any]:
        return [event for _, event in self.history.find_events(kind)]

    @property
    def errors(self) -> list[str]:
        return [event.error_type for event in self.of(events.PromptAttempt)]


def in_turn(replies: Sequence[Reply]) -> Callable[[Heard], Reply]:
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@dataclass(frozen=True)
class Wish:
    """A session's task; the rest is settings."""

    prompts: Sequence[Prompt]
    plan: Plan | None
    steps_max: int
    clock: Clock
    chosen: Mapping[str, Any]
    twin_of: TwinOf = lambda _: None

    @property
    def settings(self) -> Settings:
        return Settings(**{"toxic_prob": 0.0, "error_prob": 0.0, "model": PRICED, **self.chosen})

    async def done(self, lab: Bench | virtual_parts.Bench) -> SessionProgress:
        """With that lab."""
        settings, seam = self.settings, lab.seam
        with lab.run.open_log("agent") as agent_log:
            config, progress = Config(steps_max=self.steps_max, retry_wait_s=0.001), SessionProgress(len(self.prompts))
            toolbox = Toolbox(lab.client, seam.targets, SERVICES, config, settings, seam.log, self.clock)
            graph = assembled(settings, seam.targets["model"].url, lab.client, toolbox)
            made = Session(
                settings, config, lab.run, seam, toolbox, graph, seam.log, agent_log, self.clock, progress,
                change_plan=seam.change_plan,
            )  # fmt: skip
            await made.run(list(self.prompts), self.twin_of)
            made.log_run_end("done")
        return progress


SUMS = said({"expression": "6*7", "result": 42, "text": "42"})
SENT = said({"ok": True, "ts": "1.0"})
WORDS = {**ERRORS, 402: INSUFFICIENT_QUOTA}


def session(
    folder: Path,
    script: Sequence[Reply],
    *,
    prompts: Sequence[Prompt] = (ASKED,),
    plan: Plan | None = None,
    steps_max: int = 15,
    sums: Callable[[Heard], Reply] = lambda _: SUMS,
    model: Sequence[Answer] = (),
    deadline_s: float = 2.0,
    clock: Clock = system,
    twin_of: TwinOf = lambda _: None,
    **chosen: Any,
) -> Told:
    """Works through the prompts in virtual time, with a model that says this in turn, the last for ever; `model`: one
    that need not speak HTTP.
    """
    wish = Wish(prompts, plan, steps_max, clock, chosen, twin_of)

    async def run() -> Told:
        site, told = virtual_parts.site, plan or plan_from_settings(wish.settings)
        at_model = hostile_host("model", *model).heard if model else site("model", in_turn(script))
        heard = {"calculator": site("calculator", sums), "messaging": site("messaging", lambda _: SENT)}
        targets = ("model", *heard)
        async with virtual_parts.bench(folder, told, targets, deadline_s=deadline_s, errors=WORDS) as lab:
            progress = await wish.done(lab)
        return Told(lab.history(), at_model, heard, progress)

    return virtual_parts.virtually(run)


def session_over_loopback(folder: Path, script: Sequence[Reply], **chosen: Any) -> Told:
    """The same over sockets, a proxy manager and a Toxiproxy."""
    wish = Wish((ASKED,), None, 15, system, chosen)

    async def run(url: str, sites: dict[str, Site]) -> Told:
        where = {name: made.address for name, made in sites.items()}
        async with bench(folder, url, plan_from_settings(wish.settings), where, errors=WORDS) as lab:
            progress = await wish.done(lab)
            heard = {name: site.heard for name, site in sites.items()}
            return Told(lab.history(), heard.pop("model"), heard, progress)

    with (
        embedded() as url,
        site(in_turn(script)) as at_model,
        site(lambda _: SUMS) as sums,
        site(lambda _: SENT) as mail,
    ):
        return asyncio.run(run(url, {"model": at_model, "calculator": sums, "messaging": mail}))
