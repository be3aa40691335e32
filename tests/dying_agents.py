"""Agents of several frameworks that keep what they did, each careless or careful, for deaths at every call.

`work(careful)` is the agent as it goes on; `start(careful)` first forgets what an earlier trial has kept. A careful one
has idempotency keys.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANSWER = "Charged 20 dollars."
FOLDER = Path(".")
"""The folder of what they keep."""


def charge(order: int, amount: int, idempotency_key: str | None = None) -> str:  # noqa: ARG001
    return f"charged {amount}"


def mail(order: int, idempotency_key: str | None = None) -> str:  # noqa: ARG001
    return f"mailed {order}"


def model(request: Any) -> dict[str, Any]:
    """A model that reads what was done: it charges, mails, and says so."""
    messages = request.json["messages"]
    answered = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    done = {call["function"]["name"] for call in calls if call["id"] in answered}
    name = next((tool for tool in ("charge_order", "mail_order") if tool not in done), None)
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
    if name is not None:
        function = {"name": name, "arguments": json.dumps({"order": 17})}
        message = {
            "role": "assistant", "content": None,
            "tool_calls": [{"id": f"call_{len(messages)}", "type": "function", "function": function}],
        }  # fmt: skip
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-5",
        "choices": [{"index": 0, "finish_reason": "stop" if name is None else "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def do_charge(order: int, *, careful: bool) -> str:
    return charge(order, 20, f"charge {order}" if careful else None)


def do_mail(order: int, *, careful: bool) -> str:
    return mail(order, f"mail {order}" if careful else None)


def kept(name: str) -> Path:
    return FOLDER / name


def plain(careful: bool) -> Callable[[str], str]:
    """Plain code with a table of the steps that are done."""

    def work(prompt: str) -> str:  # noqa: ARG001
        rows = sqlite3.connect(kept("plain.db"), isolation_level=None)
        rows.execute("create table if not exists done (step text)")
        steps: dict[str, Callable[..., str]] = {"charge": do_charge, "mail": do_mail}
        for step, act in steps.items():
            if not rows.execute("select 1 from done where step = ?", (step,)).fetchone():
                act(17, careful=careful)
                rows.execute("insert into done values (?)", (step,))
        return ANSWER

    return work


def from_start(careful: bool) -> Callable[[str], str]:
    """One that keeps nothing, and does all again."""

    def work(prompt: str) -> str:  # noqa: ARG001
        do_charge(17, careful=careful)
        do_mail(17, careful=careful)
        return ANSWER

    return work


def langgraph(careful: bool) -> Callable[[str], str]:
    """A graph of LangGraph, with a thread that a checkpointer keeps."""
    from langgraph.graph import END, START, StateGraph

    def charge_order(state: dict[str, Any]) -> dict[str, Any]:
        do_charge(17, careful=careful)
        return state

    def mail_order(state: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
        do_mail(17, careful=careful)
        return {"said": ANSWER}

    def work(prompt: str) -> str:
        graph: Any = StateGraph(dict)
        graph.add_node("charge", charge_order)
        graph.add_node("mail", mail_order)
        for edge in (START, "charge"), ("charge", "mail"), ("mail", END):
            graph.add_edge(*edge)
        thread = graph.compile(checkpointer=THREADS["saver"])
        config = {"configurable": {"thread_id": "17"}}
        is_begun = bool(thread.get_state(config).next)
        return str(thread.invoke(None if is_begun else {"prompt": prompt}, config)["said"])

    return work


THREADS: dict[str, Any] = {}
"""LangGraph's checkpointer, which outlives the agent as a database does."""


def openai_agents(careful: bool) -> Callable[[str], Any]:
    """OpenAI Agents, with a session in a file."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def charge_order(order: int) -> str:
        """Charges an order."""
        return do_charge(order, careful=careful)

    @function_tool
    def mail_order(order: int) -> str:
        """Mails about an order."""
        return do_mail(order, careful=careful)

    async def work(prompt: str) -> str:
        llm = OpenAIChatCompletionsModel("gpt-5", AsyncOpenAI(api_key="none"))
        agent = Agent("clerk", model=llm, tools=[charge_order, mail_order])
        session = SQLiteSession("17", str(kept("session.db")))
        return str((await Runner.run(agent, prompt, session=session)).final_output)

    return work


def pydantic_ai(careful: bool) -> Callable[[str], Any]:
    """Pydantic AI, whose messages the agent writes to a file after each step."""
    from pydantic_ai import Agent, ModelMessagesTypeAdapter
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def charge_order(order: int) -> str:
        """Charges an order."""
        return do_charge(order, careful=careful)

    def mail_order(order: int) -> str:
        """Mails about an order."""
        return do_mail(order, careful=careful)

    async def work(prompt: str) -> str:
        agent = Agent(
            OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="none")), tools=[charge_order, mail_order]
        )
        file = kept("messages.json")
        history = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else None
        async with agent.iter(None if history else prompt, message_history=history) as run:
            async for _ in run:
                file.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages()))
        assert run.result is not None
        return str(run.result.output)

    return work


AGENTS = {
    "plain": plain, "from_start": from_start, "langgraph": langgraph, "openai_agents": openai_agents,
    "pydantic_ai": pydantic_ai,
}  # fmt: skip


def forget() -> None:
    for file in kept(".").iterdir():
        file.unlink()
    if "langgraph" in THREADS:
        THREADS["saver"] = THREADS["langgraph"]()


def pair(name: str, *, careful: bool) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """The agent as it starts, and as it goes on."""
    if name == "langgraph":
        from langgraph.checkpoint.memory import InMemorySaver

        THREADS["langgraph"] = InMemorySaver
    work = AGENTS[name](careful)

    def start(prompt: str) -> Any:
        forget()
        return work(prompt)

    async def start_async(prompt: str) -> Any:
        forget()
        return await work(prompt)

    return (start_async if asyncio.iscoroutinefunction(work) else start), work
