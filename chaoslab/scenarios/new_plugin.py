"""Writes a package with a fault, an assertion and an adapter, each registered and tried by a test."""

from collections.abc import Mapping
from pathlib import Path

PROJECT = """\
[build-system]
requires = ["setuptools>=78"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["chaoslab"]

[project.entry-points."chaoslab.faults"]
{name}_doubled = "{name}.{name}_doubled:{cls}Doubled"

[project.entry-points."chaoslab.analysis.assertions"]
{name}_mentions = "{name}.{name}_mentions:{cls}Mentions"

[project.entry-points."chaoslab.seams.adapters"]
{name} = "{name}.adapter:{cls}Adapter"

[tool.setuptools]
packages = ["{name}"]
"""
FAULT = '''\
"""A number in the reply is doubled."""

from dataclasses import dataclass

from chaoslab.plugins import Call, Fault, Flow, TrialContext


@dataclass(frozen=True)
class {cls}Doubled(Fault):
    """The service does the work and answers with `times` as much."""

    layer = "tool"
    corrupts = "reply"
    times: int = 2

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply = yield call
        return reply.with_value(reply.value * self.times)
'''
ASSERTION = '''\
"""The agent's answer mentions a text."""

from dataclasses import dataclass

from chaoslab.plugins import Assertion, FinishedTrial, Miss


@dataclass(frozen=True)
class {cls}Mentions(Assertion):
    """`text` is part of the answer."""

    text: str

    def check(self, seen: FinishedTrial) -> Miss | None:
        if seen.answer is not None and self.text in seen.answer:
            return None
        return seen.of_answer(f"the answer does not mention {{self.text!r}}")
'''
ADAPTER = '''\
"""The tools of a framework. `Tool` stands for the framework's own class: put that in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chaoslab.plugins import Adapter


class Tool:
    def __init__(self, name: str, run: Callable[..., Any]) -> None:
        self.name, self.run = name, run


class {cls}Adapter(Adapter):
    """A tool has a name, and one function of the user's."""

    tools = "a tool of {name}"

    def recognises(self, thing: Any) -> bool:
        return isinstance(thing, Tool)

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.run]
'''
TEST = '''\
"""All three are found by their names: `pip install -e .`, then `pytest`."""

import chaoslab as lab
import pytest

from {name}.adapter import Tool


def price_of(order):
    return 3


price = Tool("price", price_of)


def agent(prompt):
    return f"It costs {{price.run(17)}}."


def test_the_fault_is_met_through_the_adapter_and_the_assertion_tells():
    doubled = lab.inject("{name}_doubled", "price", calls=[1])
    trial = lab.run(agent, "Go.", reads=[price], faults=[doubled])
    assert trial.answer == "It costs 6."
    lab.check(trial, lab.expect.{name}_mentions(text="6"))
    with pytest.raises(AssertionError, match="does not mention '3'"):
        lab.check(trial, lab.expect.{name}_mentions(text="3"))
'''


def render_files(folder: Path, name: str) -> Mapping[Path, str]:
    """The files of a plug-in package of this name. Raises ValueError: it is no name of a module."""
    # Python's own import is case-sensitive, and some file systems are not.
    if not name.isidentifier() or name != name.lower() or name == "chaoslab":
        raise ValueError(f"--plugin {name[:60]} should be a module's name in small letters, as in shop_chaos")
    values = {"name": name, "cls": "".join(word.capitalize() for word in name.split("_"))}
    texts = {
        "pyproject.toml": PROJECT, f"{name}/__init__.py": "", f"{name}/{name}_doubled.py": FAULT,
        f"{name}/{name}_mentions.py": ASSERTION, f"{name}/adapter.py": ADAPTER, f"tests/test_{name}.py": TEST,
    }  # fmt: skip
    return {folder / path: text.format(**values) for path, text in texts.items()}
