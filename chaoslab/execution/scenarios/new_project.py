"""Writes a small project that `chaoslab test` and pytest run at once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
{repository}    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {{python-version: "3.13"}}
      - run: pip install "chaoslab[virtual,scenarios,charts]{place}" pytest
      - run: chaoslab test
      - run: pytest
      - uses: actions/upload-artifact@v4   # the reports: one HTML file for each scenario
        if: always()
        with: {{name: chaos-reports, path: logs}}
"""

WITHOUT_TEST = WORKFLOW.replace('" pytest\n', '"\n').replace("      - run: pytest\n", "")
"""The workflow of a project with the user's own agent, which has no test of ours."""
REPOSITORY = """\
    env:
      CHAOSLAB: {address}
"""
UNKNOWN = "${{ vars.CHAOSLAB }}   # a variable of your repository: git+https:// and the address of chaoslab's"


def repository() -> str | None:
    """The address by which pip installs this chaoslab elsewhere: empty if an index has it, None if nobody knows."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("chaoslab").read_text("direct_url.json") or "{}")  # PEP 610
    except (PackageNotFoundError, ValueError):
        return None
    if "vcs_info" in origin:
        return f"{origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
    url = str(origin.get("url", ""))
    if not url.startswith("file:"):
        return url
    asked = ["git", "-C", unquote(urlsplit(url).path), "remote", "get-url", "origin"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    parts = urlsplit(found)
    # The remote's address may hold a name and a token.
    return f"git+{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme == "https" else None


def workflow(address: str | None, *, test: bool) -> str:
    """The CI job. `address`: of chaoslab, as `repository` returns it. `test`: there is a test for pytest."""
    text = WORKFLOW if test else WITHOUT_TEST
    known = REPOSITORY.format(address=UNKNOWN if address is None else address)
    return text.format(repository="" if address == "" else known, place="" if address == "" else " @ $CHAOSLAB")


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
        folder / ".github" / "workflows" / "chaos.yml": workflow(repository(), test=agent is None),
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
