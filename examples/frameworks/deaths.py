"""Kills agents that keep threads or sessions, in virtual time, and writes down what goes on does again or loses.

    python examples/frameworks/deaths.py NAME [--write]      one row of deaths.json, which matrix.py puts on its page

Each agent charges an order and mails about it, without idempotency keys. Its model reads in the messages what was done,
and asks for the rest. What goes on is the same program, which opens what its framework has kept on the disk.
"""

# ruff: noqa: ARG001, ARG002 - the signatures are those of tools and frameworks
import asyncio
import json
import os
import pickle
import sqlite3
import tempfile
from importlib.metadata import version
from pathlib import Path

from table_row import main

import chaoslab as lab

FILE = Path(__file__).with_name("deaths.json")
KEPT = Path(tempfile.gettempdir()) / f"chaoslab-deaths-{os.getpid()}"
HOST, GEMINI, ANSWER = "api.openai.com", "generativelanguage.googleapis.com", "Charged 20 dollars."
DEATHS = {
    "at the charge, after it": ("charge", 1, "after"),
    "at the mail, before it": ("mail", 1, "before"),
    "at the mail, after it": ("mail", 1, "after"),
    "at the model's second request": (HOST, 2, "before"),
    "at the model's third request": (HOST, 3, "before"),
}
for provider in "OPENAI", "GOOGLE":
    os.environ.setdefault(f"{provider}_API_KEY", "sk-of-nobody")


def charge(order):
    return "charged 20"


def mail(order):
    return "mailed"


def charge_order(order: int) -> str:
    """Charges an order.

    Args:
        order: the order's number
    """
    return charge(order)


def mail_order(order: int) -> str:
    """Mails about an order.

    Args:
        order: the order's number
    """
    return mail(order)


def model(request):
    """The next tool whose result is not among the messages, then the answer."""
    text = json.dumps(request.json["messages"])
    done = {"charge_order": "charged 20" in text, "mail_order": "mailed" in text}
    name, arguments = next((tool for tool, is_done in done.items() if not is_done), None), {"order": 17}
    tools = [tool["function"]["name"] for tool in request.json.get("tools", ())]
    if name is None and "final_answer" in tools:
        name, arguments = "final_answer", {"answer": ANSWER}
    message = {"role": "assistant", "content": ANSWER}
    if name is not None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        call_id = f"call_{len(request.json['messages'])}"
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
    choice = {"index": 0, "finish_reason": "stop" if name is None else "tool_calls", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [choice],
        "usage": usage,
    }


def gemini(request):
    """The same in Gemini's words."""
    parts = [part for content in request.json["contents"] for part in content["parts"]]
    done = {part["functionResponse"]["name"] for part in parts if "functionResponse" in part}
    name = next((tool for tool in ("charge_order", "mail_order") if tool not in done), None)
    part = {"functionCall": {"name": name, "args": {"order": 17}}} if name else {"text": ANSWER}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "gemini-2.5-flash"}


def plain():
    def work(prompt):
        rows = sqlite3.connect(KEPT / "plain.db", isolation_level=None)
        rows.execute("create table if not exists done (step text)")
        for step, act in ("charge", charge), ("mail", mail):
            if not rows.execute("select 1 from done where step = ?", (step,)).fetchone():
                act(17)
                rows.execute("insert into done values (?)", (step,))
        return ANSWER

    return work


def langgraph():
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.sqlite import SqliteSaver

    def work(prompt):
        saver = SqliteSaver(sqlite3.connect(KEPT / "graph.db", check_same_thread=False))
        graph = create_agent(ChatOpenAI(model="gpt-5"), [charge_order, mail_order], checkpointer=saver)
        config = {"configurable": {"thread_id": "17"}}
        is_begun = bool(graph.get_state(config).next)
        return graph.invoke(None if is_begun else {"messages": [("user", prompt)]}, config)["messages"][-1].content

    return work


def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    tools = [function_tool(charge_order), function_tool(mail_order)]

    async def work(prompt):
        agent = Agent("clerk", model=OpenAIChatCompletionsModel("gpt-5", AsyncOpenAI()), tools=tools)
        session = SQLiteSession("17", str(KEPT / "session.db"))
        return (await Runner.run(agent, prompt, session=session)).final_output

    return work


def pydantic_ai():
    from pydantic_ai import Agent, ModelMessagesTypeAdapter
    from pydantic_ai.models.openai import OpenAIChatModel

    async def work(prompt):
        agent, file = Agent(OpenAIChatModel("gpt-5"), tools=[charge_order, mail_order]), KEPT / "messages.json"
        history = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else None
        async with agent.iter(None if history else prompt, message_history=history) as run:
            async for _ in run:
                file.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages()))
        return run.result.output

    return work


def google_adk():
    from google.adk.agents import Agent
    from google.adk.runners import Runner
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.genai import types

    async def work(prompt):
        service, place = SqliteSessionService(str(KEPT / "adk.db")), {"app_name": "app", "user_id": "u"}
        if await service.get_session(**place, session_id="17") is None:
            await service.create_session(**place, session_id="17")
        agent = Agent(name="clerk", model="gemini-2.5-flash", tools=[charge_order, mail_order])
        runner, text = Runner(agent=agent, app_name="app", session_service=service), ""
        words = types.Content(role="user", parts=[types.Part(text=prompt)])
        async for event in runner.run_async(user_id="u", session_id="17", new_message=words):
            text = next((part.text for part in event.content.parts if part.text), text)
        return text

    return work


def ag2():
    from ag2 import Agent, MemoryStream
    from ag2 import agent as module
    from ag2.config import OpenAIConfig
    from ag2.history import Storage

    class Rows(Storage):
        def __init__(self):
            self.rows = sqlite3.connect(KEPT / "ag2.db", isolation_level=None)
            self.rows.execute("create table if not exists events (event blob)")

        async def save_event(self, event, context):
            self.rows.execute("insert into events values (?)", (pickle.dumps(event),))

        async def get_history(self, stream_id):
            return [pickle.loads(row[0]) for row in self.rows.execute("select event from events")]

    async def work(prompt):
        # A module keeps a lock for each stream, which the dead holds for ever here; a fresh process has none.
        module._stream_locks_by_id.clear()
        clerk = Agent("clerk", config=OpenAIConfig(model="gpt-5"), tools=[charge_order, mail_order])
        return (await clerk.ask(prompt, stream=MemoryStream(Rows(), id="17"))).body

    return work


def agno():
    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.openai import OpenAIChat

    def work(prompt):
        agent = Agent(
            model=OpenAIChat(id="gpt-5"),
            tools=[charge_order, mail_order],
            db=SqliteDb(db_file=str(KEPT / "agno.db")),
            add_history_to_context=True,
            telemetry=False,
        )
        return agent.run(prompt, session_id="17").content

    return work


def smolagents():
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    tools = [tool(charge_order), tool(mail_order)]

    def work(prompt):
        return ToolCallingAgent(tools=tools, model=OpenAIServerModel("gpt-5"), verbosity_level=0).run(prompt)

    return work


AGENTS = {
    "plain": (plain, "Plain code with SQLite", "a row after each step", []),
    "langgraph": (
        langgraph,
        "LangGraph, LangChain's create_agent",
        "SqliteSaver; `invoke(None)` goes on",
        ["langgraph", "langgraph-checkpoint-sqlite", "langchain"],
    ),
    "openai_agents": (openai_agents, "OpenAI Agents", "SQLiteSession; the prompt again", ["openai-agents"]),
    "pydantic_ai": (pydantic_ai, "Pydantic AI", "its messages, in a file after each node", ["pydantic-ai-slim"]),
    "google_adk": (google_adk, "Google ADK", "SqliteSessionService; the prompt again", ["google-adk"]),
    "ag2": (ag2, "AG2", "its stream's events, in rows of SQLite; the prompt again", ["ag2"]),
    "agno": (agno, "agno", "SqliteDb, with history; the prompt again", ["agno"]),
    "smolagents": (smolagents, "smolagents", "nothing: it has no store", ["smolagents"]),
}


def run(name):
    """The row of a framework: what each death made of it."""
    make, title, keeps, packages = AGENTS[name]
    work = make()

    def forget():
        KEPT.mkdir(exist_ok=True)
        for file in KEPT.iterdir():
            file.unlink()

    def start(prompt):
        forget()
        return work(prompt)

    async def start_async(prompt):
        forget()
        return await work(prompt)

    services = {"plain": {}, "google_adk": {GEMINI: gemini}}.get(name, {HOST: model})
    cells = {}
    for death, (target, number, moment) in DEATHS.items():
        if target == HOST and not services:
            cells[death] = "–"
            continue
        target = next(iter(services)) if target == HOST else target
        trial = lab.run(
            start_async if asyncio.iscoroutinefunction(work) else start,
            "Charge order 17.",
            tools=[charge, mail],
            services=services,
            models=list(services),
            elsewhere="unreachable",
            resume_with=work,
            faults=[lab.inject("agent_dies", target, calls=[number], moment=moment)],
        )
        done = [effect["effect"] for effect in trial.effects]
        twice = " and ".join(f"{effect}s" for effect in ("charge", "mail") if done.count(effect) > 1)
        cells[death] = f"{twice} twice" if twice else "goes on" if trial.outcome == "correct" else str(trial.outcome)
    return {"title": title, "keeps": keeps, "versions": {each: version(each) for each in packages}, "deaths": cells}


if __name__ == "__main__":
    main(run, AGENTS, FILE)
