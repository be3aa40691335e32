"""Unedited LangChain agents in virtual time: sync, async, parallel tools, retries, limits, streams, the Groq client."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import groq
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langchain_groq import ChatGroq
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from chaoslab.model.endpoint import create_app
from chaoslab.seams.services.app import Wsgi
from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.machine_parts import a_world, now, tells, told
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

ASKED: dict[str, Any] = {"messages": [("user", "go")]}


class Scripted(BaseChatModel):
    """Calls the tools of its script, all at once, then says how many answers came. Thinks for a second each time."""

    script: list[tuple[str, dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        time.sleep(1)
        return self._reply(messages)

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        await asyncio.sleep(1)
        return self._reply(messages)

    def _reply(self, messages: list[BaseMessage]) -> ChatResult:
        given = [message for message in messages if isinstance(message, ToolMessage)]
        if given:
            said = AIMessage(", ".join(str(message.content) for message in given))
        else:
            calls = [{"name": name, "args": args, "id": f"call_{n}"} for n, (name, args) in enumerate(self.script)]
            said = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def look(seconds: float) -> str:
    """Looks for so long."""
    time.sleep(seconds)
    return f"looked {seconds:g} until {now()}"


@tool
async def listen(seconds: float) -> str:
    """Listens for so long."""
    await asyncio.sleep(seconds)
    return f"listened {seconds:g} until {now()}"


def _looks(*seconds: float) -> list[tuple[str, dict[str, Any]]]:
    return [("look", {"seconds": each}) for each in seconds]


def _agent(script: list[tuple[str, dict[str, Any]]], tools: list[BaseTool], **kwargs: Any) -> Any:
    return create_agent(Scripted(script=script), tools, **kwargs)


def _answer(state: dict[str, Any]) -> str:
    return str(state["messages"][-1].content)


def test_invoke_runs_parallel_tools_in_langgraphs_threads() -> None:
    agent = _agent(_looks(3, 1, 2), [look])
    found = told(lambda: _answer(agent.invoke(ASKED)))
    assert found == ("looked 3 until 4.0, looked 1 until 2.0, looked 2 until 3.0", 5.0)


def test_ainvoke_runs_parallel_async_and_sync_tools() -> None:
    agent = _agent([("listen", {"seconds": 3}), ("look", {"seconds": 2}), ("listen", {"seconds": 1})], [look, listen])
    said = "listened 3 until 4.0, looked 2 until 3.0, listened 1 until 2.0"
    assert told(lambda: _answer(asyncio.run(agent.ainvoke(ASKED)))) == (said, 5.0)


def test_a_sync_tool_that_runs_a_loop_and_threads_of_its_own() -> None:
    @tool
    def nested(seconds: float) -> str:
        """Asks two at once."""

        async def both() -> list[str]:
            return list(
                await asyncio.gather(
                    listen.ainvoke({"seconds": seconds}), asyncio.to_thread(look.invoke, {"seconds": 1})
                )
            )

        return "; ".join(asyncio.run(both()))

    agent = _agent([("nested", {"seconds": 2}), ("nested", {"seconds": 3})], [nested])
    said = "listened 2 until 3.0; looked 1 until 2.0, listened 3 until 4.0; looked 1 until 2.0"
    assert told(lambda: _answer(agent.invoke(ASKED))) == (said, 5.0)
    assert told(lambda: _answer(asyncio.run(agent.ainvoke(ASKED)))) == (said, 5.0)


def _flaky(failures: int) -> tuple[BaseTool, list[float]]:
    calls: list[float] = []

    @tool
    def flaky() -> str:
        """Fails at first."""
        calls.append(now())
        if len(calls) <= failures:
            raise ConnectionError("gone")
        return "well"

    return flaky, calls


@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
@tells(["well", [1.0, 2.0, 4.0, 8.0]], 9.0)
def test_the_backoff_of_tool_retries(*, kind: str) -> list[Any]:
    flaky, calls = _flaky(3)
    retry = ToolRetryMiddleware(max_retries=3, initial_delay=1, backoff_factor=2, jitter=False)
    agent = _agent([("flaky", {})], [flaky], middleware=[retry])
    state = agent.invoke(ASKED) if kind == "invoke" else asyncio.run(agent.ainvoke(ASKED))
    return [_answer(state), calls]


@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
def test_a_limit_of_a_step_ends_at_its_moment(kind: str) -> None:
    def story() -> list[Any]:
        agent = _agent([("listen", {"seconds": 100})] if kind == "ainvoke" else _looks(100), [look, listen])
        agent.step_timeout = 7
        with pytest.raises(TimeoutError):
            agent.invoke(ASKED) if kind == "invoke" else asyncio.run(agent.ainvoke(ASKED))
        return [now()]

    (seen, seconds) = told(story)
    assert seen == (
        [8.0] if kind == "ainvoke" else [101.0]
    )  # a thread cannot be interrupted: langgraph waits for it, as in life
    assert seconds == seen[0]


def test_streams_of_states_and_of_events() -> None:
    agent = _agent(_looks(2), [look])

    def story() -> list[Any]:
        async def main() -> list[Any]:
            states = [now() async for _ in agent.astream(ASKED, stream_mode="values")]
            begun = now()
            tools = [(event["event"], round(now() - begun, 2)) async for event in agent.astream_events(ASKED,
                                                                                                       version="v2")
                     if event["event"].startswith("on_tool")]  # fmt: skip
            return [states, tools]

        return [[now() for _ in agent.stream(ASKED, stream_mode="values")], *asyncio.run(main())]

    seen, seconds = told(story)
    assert seen == [[0.0, 1.0, 3.0, 4.0], [4.0, 5.0, 7.0, 8.0], [("on_tool_start", 1.0), ("on_tool_end", 3.0)]]
    assert seconds == 12.0


@tells([6, 4.0])
def test_a_conversation_is_kept_by_a_checkpointer() -> list[Any]:
    agent = _agent(_looks(1), [look], checkpointer=InMemorySaver())
    thread: dict[str, Any] = {"configurable": {"thread_id": "one"}}
    agent.invoke(ASKED, thread)
    agent.invoke(ASKED, thread)
    return [len(agent.get_state(thread).values["messages"]), now()]


# The real Groq client.


class Stumbling:
    """In front of the offline model: limits the rate, is overloaded, hangs, and then answers; again for each world."""

    def __init__(self, app: Wsgi) -> None:
        self.app, self.calls = app, list[float]()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.calls.append(now())
        if len(self.calls) == 1:
            return _refusal(start_response, "429 Too Many Requests", "rate_limit_exceeded", ("Retry-After", "7"))
        if len(self.calls) == 2:
            return _refusal(start_response, "503 Service Unavailable", "service_unavailable", ("Retry-After", "2"))
        if len(self.calls) == 3:
            time.sleep(1000)
        return self.app(environ, start_response)


def _refusal(start_response: Callable[..., Any], status: str, code: str, header: tuple[str, str]) -> list[bytes]:
    body = json.dumps({"error": {"message": code, "type": "tokens", "code": code}}).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body))), header])
    return [body]


def _groq(**kwargs: Any) -> ChatGroq:
    return ChatGroq(model="llama-3.1-8b-instant", api_key=SecretStr("key"), base_url="http://model:80", **kwargs)


@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
def test_the_groq_client_waits_as_it_is_told_times_out_and_gets_its_answer(kind: str) -> None:
    """The last back-off has the client's own jitter, drawn from the process's chance: bounded, not known."""
    endpoint = create_app()

    def once() -> list[float]:
        stumbling = Stumbling(endpoint)

        def story() -> str:
            model = _groq(timeout=10, max_retries=5)
            reply = model.invoke("hello") if kind == "invoke" else asyncio.run(model.ainvoke("hello"))
            return type(reply).__name__

        assert a_world({"model": stumbling}).run_program(story) == "AIMessage"
        return stumbling.calls

    with Patches():
        calls = once()
    assert calls[:3] == [0.0, 7.0, 9.0]
    assert len(calls) == 4
    assert 9 + 10 < calls[3] <= 9 + 10 + 8


@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
def test_the_groq_client_gives_up_at_its_moment(kind: str) -> None:
    def never(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
        time.sleep(10_000)
        return []

    def story() -> list[Any]:
        model = _groq(timeout=6, max_retries=0)
        with pytest.raises(groq.APITimeoutError):
            model.invoke("hello") if kind == "invoke" else asyncio.run(model.ainvoke("hello"))
        return [now()]

    assert told(story, {"model": never}) == ([6.0], 6.0)


def test_an_agent_of_the_groq_client_with_a_streamed_answer() -> None:
    app = create_app()

    def story() -> list[str]:
        model = _groq(timeout=6)

        async def main() -> str:
            return "".join([str(part.content) async for part in model.astream("hello")])

        return ["".join(str(part.content) for part in model.stream("hello")), asyncio.run(main())]

    (said, said_again), _ = told(story, {"model": app})
    assert said == said_again
    assert said
