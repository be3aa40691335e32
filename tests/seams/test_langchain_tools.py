"""LangChain's tools and graphs, unedited: a tool is one exchange, a graph is asked as by a person."""

import asyncio
import inspect
import itertools
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langchain_core.tools import Tool as TextTool

import chaoslab as lab
from chaoslab.core.events import CallFinished, CallStarted
from chaoslab.seams.adapters.langchain import Langchain, extract_text
from tests.worlds.virtual.patch_parts import in_place

ADAPTER = Langchain()
stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


@tool
def refund(order: int, amount: float = 5.0) -> str:
    """Refunds an order."""
    return f"refunded {amount} of {order}"


@tool
async def message(to: str) -> str:
    """Sends a message."""
    await asyncio.sleep(0.5)
    return f"told {to}"


class Both(BaseTool):
    """A class of the user's own, whose async way ends in the sync one."""

    name: str = "both"
    description: str = "Either way."

    def _run(self, n: int) -> str:
        return str(n)

    async def _arun(self, n: int) -> str:
        return self._run(n)


def note(text: str) -> str:
    """A plain function, of which a graph makes a tool by itself."""
    return text


class Model(GenericFakeChatModel):
    """Calls the tools that the test says, then says that it is done."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ARG002
        return self


def graph(*calls: tuple[str, dict[str, Any]], tools: Any) -> Any:
    def script() -> Iterator[AIMessage]:
        while True:
            asked = [{"name": name, "args": args, "id": f"c{n}"} for n, (name, args) in enumerate(calls)]
            yield AIMessage("", tool_calls=asked)
            yield AIMessage("It is done.")

    return create_agent(Model(messages=script()), tools)


def calls_of(trial: lab.Trial) -> list[tuple[str, Any]]:
    return [(call.target, call.arguments) for _, call in trial.history.find_events(CallStarted)]


def test_a_graph_is_given_the_prompt_as_a_message_and_its_tools_are_exchanges() -> None:
    agent = graph(("refund", {"order": 17}), ("message", {"to": "ana"}), tools=[refund, message])
    schema, signature = refund.args, inspect.signature(refund._run)
    trial = lab.run(
        agent, "Refund order 17 and tell Ana", tools=[refund, message],
        faults=[lab.inject("latency", "message", delay_s=2.0)],
    )  # fmt: skip
    assert trial.answer == "It is done."
    assert sorted(calls_of(trial)) == [("message", {"to": "ana"}), ("refund", {"order": 17, "amount": 5.0})]
    assert trial.seconds == 2.5
    assert trial.outcome is lab.Outcome.CORRECT
    assert (refund.args, inspect.signature(refund._run)) == (schema, signature)
    assert not {"_run", "_arun"} & (vars(refund).keys() | vars(message).keys())


def test_a_tools_wrong_words_reach_the_model() -> None:
    agent = graph(("message", {"to": "ana"}), tools=[message])
    seen: list[str] = []

    async def asks(prompt: str) -> str:
        state = await agent.ainvoke({"messages": [("user", prompt)]})
        seen.append(state["messages"][-2].text)
        return str(state["messages"][-1].text)

    lab.run(asks, "go", tools=[message], faults=[lab.inject("wrong_value", "message")], effects=[])
    assert seen == ["ana told"]


def test_a_tool_error_ends_a_graph_as_it_would_without_the_lab() -> None:
    agent = graph(("message", {"to": "ana"}), tools=[message])
    trial = lab.run(agent, "go", tools=[message], faults=[lab.inject("tool_error", "message", status=503)])
    assert (trial.outcome, str(trial.error)) == (lab.Outcome.FAILED, "503 Service Unavailable")
    assert trial.effects == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("faults", [[], [lab.inject("latency", "both", delay_s=1.0)]])
def test_one_call_is_one_exchange_whichever_way_it_takes(way: str, faults: list[Any]) -> None:
    both = Both()

    async def later(_: str) -> str:
        return str(await both.ainvoke({"n": 3}))

    def now(_: str) -> str:
        return str(both.invoke({"n": 3}))

    trial = lab.run(now if way == "invoke" else later, "go", tools=[both], faults=faults, effects=[])
    assert trial.answer == "3"
    assert [call.arguments for _, call in trial.history.find_events(CallStarted)] == [{"n": 3}]
    assert [call.duration_s for _, call in trial.history.find_events(CallFinished)] == [1.0 if faults else 0.0]


class Again(BaseTool):
    """Asks itself once more before it answers."""

    name: str = "again"
    description: str = "Either way."

    def _run(self, n: int) -> str:
        return str(n) if n == 0 else self._run(n - 1)

    async def _arun(self, n: int) -> str:
        return str(n) if n == 0 else await self._arun(n - 1)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_tool_that_calls_itself_is_one_call_and_the_next_one_another(way: str) -> None:
    again = Again()

    async def later(_: str) -> str:
        return str([await again.ainvoke({"n": n}) for n in (2, 1)])

    def now(_: str) -> str:
        return str([again.invoke({"n": n}) for n in (2, 1)])

    trial = lab.run(now if way == "invoke" else later, "go", tools=[again], effects=[])
    assert trial.answer == "['0', '0']"
    assert calls_of(trial) == [("again", {"n": 2}), ("again", {"n": 1})]


def test_a_tools_own_stop_iteration_is_met_as_without_the_lab() -> None:
    class Dry(Both):
        def _run(self, n: int) -> str:
            return str(next(iter(range(n))))

    dry = Dry(name="dry")

    def agent(prompt: str) -> str:
        try:
            return str(dry.invoke({"n": 0}))
        except (StopIteration, RuntimeError) as error:
            return f"{prompt} {type(error).__name__}"

    assert agent("go") == lab.run(agent, "go", tools=[dry]).answer == "go StopIteration"


def test_only_langchains_own_are_taken_for_langchains() -> None:
    mine: Any = type("BaseTool", (), {"name": "mine"})
    found = [ADAPTER.recognises(thing) for thing in (refund, message, Both(), note, mine())]
    assert found == [True, True, True, False, False]
    theirs: Any = type("Runnable", (), {})
    told = [ADAPTER.is_agent(thing) for thing in (RunnableLambda(str), refund, note, theirs())]
    assert told == [True, True, False, False]

    def now(to: str) -> str:
        return to

    async def later(to: str) -> str:
        return to

    either = StructuredTool.from_function(func=now, coroutine=later, name="either", description="Either way.")
    assert [ADAPTER.is_async_only(thing) for thing in (refund, message, Both(), either)] == [False, True, False, False]


def test_a_plain_function_is_found_inside_the_graph_that_was_made_with_it() -> None:
    agent = graph(("note", {"text": "milk"}), tools=[note])

    async def asks(prompt: str) -> str:
        await agent.ainvoke({"messages": [("user", prompt)]})
        return "noted"

    trial = lab.run(asks, "go", tools=[note])
    assert (calls_of(trial), trial.warnings) == ([("note", {"text": "milk"})], ())


def test_any_other_runnable_is_given_the_prompt_as_it_is() -> None:
    chain = RunnableLambda(lambda prompt: refund.invoke({"order": len(prompt)})) | RunnableLambda(str.upper)
    trial = lab.run(chain, "four", tools=[refund])
    assert trial.answer == "REFUNDED 5.0 OF 4"
    assert trial.effects == [{"effect": "refund", "order": 4, "amount": 5.0}]


NO_MESSAGE = {"messages": [{"note": "a state's own"}]}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (AIMessage("It is done."), "It is done."),
        (AIMessage([{"type": "text", "text": "It is done."}]), "It is done."),
        ({"role": "assistant", "content": "It is done."}, "It is done."),
        ({"messages": ["Is it?", AIMessage("It is done.")]}, "It is done."),
        ({"messages": [{"role": "assistant", "content": "It is done."}]}, "It is done."),
        ({"messages": ["It is done."]}, "It is done."),
        (NO_MESSAGE, NO_MESSAGE),
        ({"messages": []}, {"messages": []}),
        ({"messages": 3}, {"messages": 3}),
        ({"content": "no role"}, {"content": "no role"}),
        (17, 17),
    ],
)
def test_an_answer_is_the_text_of_its_last_message_if_it_has_one(answer: Any, text: Any) -> None:
    assert extract_text(answer) == text


def test_a_graph_whose_tools_are_all_sync_is_asked_by_invoke() -> None:
    asked: list[str] = []

    class Watched(RunnableLambda[Any, Any]):
        def invoke(self, *args: Any, **kwargs: Any) -> Any:
            asked.append("invoke")
            return super().invoke(*args, **kwargs)

        async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
            asked.append("ainvoke")
            return await super().ainvoke(*args, **kwargs)

    for tools in ([refund, note], [refund, message]):
        lab.run(Watched(lambda prompt: prompt), "go", tools=tools, effects=[])
    assert asked == ["invoke", "ainvoke"]


def test_sync_tools_of_a_graph_run_side_by_side_in_virtual_time() -> None:
    agent = graph(("refund", {"order": 17}), ("note", {"text": "milk"}), tools=[refund, note])
    faults = [lab.inject("latency", name, delay_s=delay_s) for name, delay_s in (("refund", 2.0), ("note", 3.0))]
    trial = lab.run(agent, "go", tools=[refund, note], faults=faults)
    assert (trial.seconds, trial.outcome, trial.warnings) == (3.0, lab.Outcome.CORRECT, ())
    assert sorted(calls_of(trial)) == [("note", {"text": "milk"}), ("refund", {"order": 17, "amount": 5.0})]


# What a framework passes along is no argument.


@tool
def pay(
    order: int,
    runtime: ToolRuntime,
    state: Annotated[dict[str, Any], InjectedState],
    call_id: Annotated[str, InjectedToolCallId],
    trace: Annotated[str, InjectedToolArg] = "",
) -> str:
    """Pays for an order."""
    assert runtime.tool_call_id == call_id
    assert state["messages"]
    return f"paid {order}{trace}"


async def settle(order: int, runtime: ToolRuntime, call_id: Annotated[str, InjectedToolCallId]) -> str:
    """A plain function, of which the graph makes a tool: pays for an order."""
    assert runtime.tool_call_id == call_id
    return f"paid {order}"


def _tries_again(name: str, tool_: Any) -> Any:
    """Asks its graph anew when it fails: other messages, and another id of the call."""
    numbers = itertools.count(1)

    def script() -> Iterator[AIMessage]:
        while True:
            yield AIMessage("", tool_calls=[{"name": name, "args": {"order": 17}, "id": f"call {next(numbers)}"}])
            yield AIMessage("It is paid.")

    model = Model(messages=script())
    graph_: Any = create_agent(model, [tool_])

    async def asks(prompt: str) -> str:
        while True:
            try:
                state = await graph_.ainvoke({"messages": [("user", prompt)]})
                return str(state["messages"][-1].text)
            except OSError:
                model.messages = script()
                await asyncio.sleep(1)

    return asks


@pytest.mark.parametrize(("name", "tool_"), [("pay", pay), ("settle", settle)])
def test_a_call_that_is_tried_again_is_the_same_whatever_is_injected(name: str, tool_: Any) -> None:
    faults = [lab.inject("lost_reply", name, calls=[1])]
    trial = lab.run(_tries_again(name, tool_), "Pay 17", tools=[tool_], faults=faults)
    begun = [call for _, call in trial.history.find_events(CallStarted)]
    found = [(call.request, call.attempt, call.arguments) for call in begun]
    assert found == [(1, 1, {"order": 17}), (1, 2, {"order": 17})]
    assert begun[0].request_id == begun[1].request_id
    assert trial.effects == [{"effect": name, "order": 17}] * 2
    assert trial.twin is not None
    assert trial.twin.effects == trial.effects[:1]
    calm = lab.run(_tries_again(name, tool_), "Pay 17", tools=[tool_])
    assert (calm.outcome, calm.effects, calm.warnings) == (lab.Outcome.CORRECT, trial.twin.effects, ())


class Paying(BaseTool):
    """A class of the user's own."""

    name: str = "paying"
    description: str = "Pays for an order."

    def _run(
        self,
        order: int,
        state: Annotated[Any, InjectedState] = None,
        run_manager: CallbackManagerForToolRun | None = None,  # noqa: ARG002
    ) -> str:
        return f"paid {order} {state}"


def test_what_a_tool_of_one_text_is_given_is_told() -> None:
    shout = TextTool(name="shout", func=str.upper, description="Says it aloud.")
    trial = lab.run(lambda _: shout.invoke("hey"), "go", tools=[shout], effects=[])
    assert (trial.answer, calls_of(trial)) == ("HEY", [("shout", {"self": "hey"})])


def test_a_tool_of_a_class_is_told_by_its_schema_too() -> None:
    paying = Paying()
    trial = lab.run(lambda _: paying.invoke({"order": 17, "state": "s"}), "go", tools=[paying], effects=[])
    assert calls_of(trial) == [("paying", {"order": 17})]
