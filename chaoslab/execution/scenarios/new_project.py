"""Writes a small project that `chaoslab test` and pytest run at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaoslab.execution.scenarios import example
from chaoslab.execution.scenarios.spec import DOTTED

SCENARIO = """\
# What must hold when the shop's API fails. `chaoslab test` runs it, `chaoslab check` only reads it.
name: refund
description: A refund is paid once, and the answer says what happened.
{agent}
prompt: Refund order 17.
{faults}
expect:
  - max_calls: 8
trials: 50
"""
OWN = """\
fresh: {module}:careful   # try {module}:naive
tools: [{module}:refund]
reads: [{module}:get_order]
state: {module}:books"""
THEIRS = """\
agent: {agent}
tools: []   # your functions that change something, as in shop.api:refund
reads: []   # your functions that only read"""
FAULTS = """\
faults:
  - {fault: lost_reply, target: refund, chance: 0.3}              # done, and the answer is lost
  - {fault: timeout_before_effect, target: get_order, chance: 0.2}"""
NO_FAULTS = """\
faults: []   # as in {fault: lost_reply, target: refund, chance: 0.3}; `chaoslab faults` lists them"""
TEST = '''\
"""The agent under chaos, as an ordinary test: `pytest` runs it."""

import chaoslab as lab
import pytest

import {module}


@pytest.mark.chaos(faults=[lab.inject("lost_reply", "refund", chance=0.3)], trials=50)
def test_a_refund_is_paid_once(chaos):
    chaos.run(
        lab.fresh({module}.careful),   # try {module}.naive
        "Refund order 17.",
        tools=[{module}.refund],
        reads=[{module}.get_order],
        state={module}.books,
    )
'''
WORKFLOW = """\
name: chaos
on: [push, pull_request]
jobs:
  chaos:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.13"}
      - run: pip install "chaoslab[virtual,scenarios,charts]" pytest
      - run: chaoslab test
      - run: pytest
      - uses: actions/upload-artifact@v4   # the reports: one HTML file for each scenario
        if: always()
        with: {name: chaos-reports, path: logs}
"""

WITHOUT_TEST = WORKFLOW.replace('" pytest\n', '"\n').replace("      - run: pytest\n", "")
"""The workflow of a project with the user's own agent, which has no test of ours."""


def files(folder: Path, agent: str | None) -> Mapping[Path, str]:
    """The files of a new project. `agent`: the user's own, as module:name; None: the example's.

    Raises:
        ValueError: the agent is none.
    """
    import re

    if agent is not None and not re.fullmatch(DOTTED, agent):
        raise ValueError(f"--agent {agent[:60]} should be module:name, as in shop.agent:answer")
    module = "support_agent"
    made = {
        folder / "refund.chaos.yaml": SCENARIO.format(
            agent=OWN.format(module=module) if agent is None else THEIRS.format(agent=agent),
            faults=FAULTS if agent is None else NO_FAULTS,
        ),
        folder / ".github" / "workflows" / "chaos.yml": WORKFLOW if agent is None else WITHOUT_TEST,
    }
    if agent is None:
        made[folder / f"{module}.py"] = Path(example.__file__).read_text(encoding="utf-8")
        made[folder / "test_chaos.py"] = TEST.format(module=module)
    return made


def write(folder: Path, agent: str | None = None) -> list[Path]:
    """Writes the project's files and returns them. Nothing is written if one of them is there.

    Raises:
        ValueError: one of them is there, or the agent is none. OSError: one cannot be written.
    """
    wanted = files(folder, agent)
    if there := [path for path in wanted if path.exists()]:
        raise ValueError(f"{there[0]} is there already: name another folder, or move it away")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder")
    done: list[Path] = []
    try:
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            done.append(path)
            path.write_text(text, encoding="utf-8")
    except OSError:
        for path in done:
            path.unlink(missing_ok=True)
        raise
    return done
