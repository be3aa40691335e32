"""A framework is one adapter: it recognises, names, calls and swaps its own. No other module knows of the framework."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import Effect, FaultWitnessed
from chaoslab.seams import adapters
from tests.plugin_parts import installed

ROOT = Path(lab.__file__).parent

OURS = """
from chaoslab.seams.adapters import Adapter


class Sock(Adapter):
    tools = "a gadget"
    agents = "a robot"

    def recognises(self, thing):
        return type(thing).__name__ == "Gadget"

    def name(self, tool):
        return tool.label

    def functions(self, tool):
        return [tool.work]

    def is_agent(self, thing):
        return type(thing).__name__ == "Robot"

    def callable_of(self, agent, *, of_coroutine):
        return agent.think

    def answer(self, given):
        return given.text if type(given).__name__ == "Thought" else given
"""


class Gadget:
    """A tool that is no function."""

    def __init__(self, label: str, work: Callable[[int], int]) -> None:
        self.label, self.work = label, work


class Thought:
    """An answer that is no text."""

    def __init__(self, text: str) -> None:
        self.text = text


class Robot:
    """An agent that cannot be called."""

    def __init__(self, gadget: Gadget) -> None:
        self.gadget = gadget

    def think(self, prompt: str) -> Thought:
        try:
            return Thought(f"{prompt}: {self.gadget.work(3)}")
        except lab.ToolError as error:
            return Thought(f"{prompt}: {error.status}")


def test_a_package_of_somebody_else_brings_a_framework(tmp_path: Path) -> None:
    gadget = Gadget("triple", lambda n: n * 3)
    real, code = gadget.work, gadget.work.__code__
    faults = [lab.inject("tool_error", "triple", status=503)]
    with installed(tmp_path, OURS, fault="gremlin", head="", group="seams.adapters"):
        trial = lab.run(Robot(gadget), "now", tools=[gadget], faults=faults)
        assert trial.answer.text == trial.said == "now: 503"
        assert [(e.target, e.fault) for _, e in trial.history.find_events(FaultWitnessed)] == [("triple", "tool_error")]
        assert (gadget.work, real.__code__) == (real, code)
        with pytest.raises(TypeError) as refused:
            lab.run(Thought("x"), "now", tools=[gadget])
        assert str(refused.value).startswith("agent is a Thought: it should be a callable, or a robot, or a LangChain ")
    with pytest.raises(TypeError) as refused:
        lab.run(Robot(gadget), "now", tools=[])
    assert str(refused.value) == (
        "agent is a Robot: it should be a callable, or a LangChain Runnable, or an OpenAI Agents Agent, "
        "or a Pydantic AI Agent"
    )


def pay_back(order: int) -> str:
    """Refunds an order."""
    return f"refunded {order}"


def make_openai_agent() -> Any:
    from agents import Agent, function_tool

    return Agent(name="clerk", instructions="Do what is asked.", tools=[function_tool(pay_back)])


def make_pydantic_agent() -> Any:
    from pydantic_ai import Agent

    return Agent("openai:gpt-5", instructions="Do what is asked.", tools=[pay_back])


@pytest.mark.parametrize("make", [make_openai_agent, make_pydantic_agent])
def test_an_agent_of_a_framework_is_asked_without_a_function_around_it(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    model = lab.scripted([lab.call("pay_back", order=17), "Order 17 is refunded."])
    trial = lab.run(lab.fresh(make), "Refund order 17.", tools=[pay_back], services={"api.openai.com": model})
    assert (trial.answer, str(trial.outcome)) == ("Order 17 is refunded.", "correct")
    assert [event.effect for _, event in trial.history.find_events(Effect)] == ["pay_back"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("raise OSError('disk')", "the adapter 'gremlin' of the package gremlins 1.0 cannot be used: OSError: disk"),
        ("Sock = 3", "the adapter 'gremlin' of the package gremlins 1.0 cannot be used: it is no Adapter"),
    ],
)
def test_an_adapter_that_cannot_be_used_is_said_in_a_line_that_names_its_package(
    tmp_path: Path, source: str, line: str
) -> None:
    with installed(tmp_path, source, head="", group="seams.adapters"), pytest.raises(LookupError) as refused:
        lab.run(str, "now")
    assert refused.value.args[0].splitlines() == [line]


def test_no_other_module_of_the_lab_knows_the_framework() -> None:
    """The lab's own agent is one of LangChain; beside it only the adapter and lists of packages' names know it."""
    names = re.compile(r"\b(import|from) langchain|is_runnable|BaseTool|Runnable\b")
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.rglob("*.py"))
        if names.search(path.read_text(encoding="utf-8"))
    ]
    known: dict[str, Any] = {"seams/adapters/langchain.py": "the adapter", "execution/options.py": "what run takes"}
    known |= {f"seams/adapters/{name}.py": "has a BaseTool of its own" for name in ("autogen", "crewai")}
    assert found == sorted(known)


def refund(order: int, amount: float = 1.0, *more: int, **rest: int) -> str:  # noqa: ARG001
    return f"refunded {order}"


def of(module: str, kind: str, **held: Any) -> Any:
    """An object as a framework that may not be installed here has it."""
    made = type(kind, (), {"__module__": module})()
    vars(made).update(held)
    return made


@functools.wraps(refund)
def around(*args: Any) -> Any:
    return refund(*args)


def theirs(*args: Any) -> Any:
    return refund(*args)


theirs.__module__ = "llama_index.core.tools"
MODEL = SimpleNamespace(model_fields={"order": 1})
SCHEMA: Any = {"properties": {"order": {}}}
CREW = of("crewai.tools", "BaseTool", name="refund", func=refund, args_schema=MODEL)
RUN_OF_CREW = of("crewai.tools", "BaseTool", name="r", _run=refund, args_schema=MODEL)
KEYED = of("ag2.tools", "FunctionTool", name="r", schema=SimpleNamespace(function=SimpleNamespace(parameters=SCHEMA)))


def within(call: Any, module: str) -> Any:
    tool = of("ag2.tools", "FunctionTool", **vars(KEYED))
    tool.model = SimpleNamespace(call=call)
    call.__module__ = module
    return tool


@pytest.mark.parametrize(
    ("tool", "name", "functions", "hidden"),
    [
        (of("agno.tools", "Function", name="r", entrypoint=around), "r", [refund], set()),
        (of("strands.tools", "DecoratedFunctionTool", tool_name="s", _tool_func=refund,
            tool_spec={"inputSchema": {"json": SCHEMA}}), "s", [refund], {"amount"}),
        (of("dspy.adapters", "Tool", name="d", func=refund, args={"order": 1}), "d", [refund], {"amount"}),
        (of("google.adk.tools", "FunctionTool", name="g", func=refund, _ignore_params=["order", "more", "rest"]), "g",
         [refund], {"order"}),
        (of("smolagents.tools", "FunctionTool", name="t", forward=around, inputs={"amount": 1}), None, None, None),
        (of("smolagents.tools", "Tool", name="t", forward=around, inputs={"amount": 1}), "t", [refund], {"order"}),
        (of("autogen_core.tools", "BaseTool", name="a", _func=refund, run=1, schema={"parameters": SCHEMA}), "a",
         [refund], {"amount"}),
        (of("autogen_core.tools", "BaseTool", name="a", run=refund, schema={"parameters": SCHEMA}), "a", [refund],
         {"order", "amount"}),
        (CREW, "refund", [refund], {"amount"}), (RUN_OF_CREW, "r", [refund], {"amount"}),
        (within(lambda order: order, "mine"), "r", None, set()),
        (of("llama_index.core", "FunctionTool", real_fn=refund, _fn=theirs, _async_fn=None,
            metadata=SimpleNamespace(name="l", fn_schema=MODEL)), "l", [refund], {"amount"}),
        (of("llama_index.core", "FunctionTool", real_fn=refund, _fn=refund, _async_fn=around,
            metadata=SimpleNamespace(name="l", fn_schema=None)), "l", [refund, around], set()),
    ],
)  # fmt: skip
def test_a_framework_s_tool_is_read_whether_it_is_installed_or_not(
    tool: Any, name: str | None, functions: list[Any] | None, hidden: set[str]
) -> None:
    adapter = adapters.find_tool_adapter(tool)
    if name is None:
        assert adapter is None or adapter.tools == "the object"
        return
    assert adapter is not None
    assert adapter.name(tool) == name
    assert list(adapter.functions(tool)) == ([tool.model.call] if functions is None else functions)
    assert adapter.hidden(tool) == hidden
    assert not adapter.is_async_only(tool)


def test_a_function_that_a_framework_wraps_is_the_user_s() -> None:
    def theirs_of_ag2() -> Any:
        return lambda order: refund(order)

    tool = within(functools.wraps(refund)(theirs_of_ag2()), "ag2.tools")
    adapter = adapters.find_tool_adapter(tool)
    assert adapter is not None
    assert [each.__name__ for each in adapter.functions(tool)] == ["refund"]
    own = type("BaseTool", (), {"__module__": "crewai.tools", "_run": lambda self: self, "func": None, "name": "x"})()
    structured = of("crewai.tools.structured", "CrewStructuredTool", name="r", func=own._run, args_schema=MODEL)
    crew = adapters.find_tool_adapter(structured)
    assert crew is not None
    assert list(crew.functions(structured)) == [own._run]
    vars(own)["func"] = refund
    assert list(crew.functions(structured)) == [refund]
    loop = of("crewai.tools", "BaseTool", name="r", args_schema=MODEL)
    type(loop)._run = lambda self: self
    assert list(crew.functions(loop)) == [loop._run]
