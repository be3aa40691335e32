"""A framework is one adapter: it recognises, names, calls and swaps its own. No other module knows of the framework."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import FaultWitnessed
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
        assert [(e.target, e.fault) for _, e in trial.history.of(FaultWitnessed)] == [("triple", "tool_error")]
        assert (gadget.work, real.__code__) == (real, code)
        with pytest.raises(TypeError) as refused:
            lab.run(Thought("x"), "now", tools=[gadget])
        assert str(refused.value) == "agent is a Thought: it should be a callable, or a robot, or a LangChain Runnable"
    with pytest.raises(TypeError) as refused:
        lab.run(Robot(gadget), "now", tools=[])
    assert str(refused.value) == "agent is a Robot: it should be a callable, or a LangChain Runnable"


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
