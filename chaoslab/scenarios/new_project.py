"""Writes a small project that `chaoslab test` and pytest run at once."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from chaoslab.base.extras import read_install_origin
from chaoslab.base.json_text import encode_text
from chaoslab.scenarios import _example
from chaoslab.scenarios.agent_tools import AgentTools, find_tools
from chaoslab.scenarios.scenario import list_module_folders
from chaoslab.scenarios.sources import find_function_name
from chaoslab.scenarios.spec import DOTTED

PROMPT = "Hello."
SCENARIO = """\
# The agent when the shop's API fails. `chaoslab test` runs this file, `chaoslab check` validates it.
name: refund
description: A refund is paid once, and the answer says what happened.
fresh: {module}:careful   # try {module}:naive
tools: [{module}:refund]
reads: [{module}:get_order]
state: {module}:books
prompt: Refund order 17.
# words by which an answer admits that something was not done, or that it cannot tell
says: {{"*": {{undone: "could not|unable to", unsure: "may have|could not (?:tell|confirm)"}}}}
faults:
  - {{fault: lost_reply, target: refund, chance: 0.3}}              # done, but the reply is lost
  - {{fault: timeout_before_effect, target: get_order, chance: 0.2}}
expect:
  - max_calls: 8
trials: 50
"""
THEIRS = """\
# The agent when its tools fail. `chaoslab test` runs this file, `chaoslab check` validates it.
name: {name}
{kind}: {agent}
tools: [{changes}]   # your functions that change something{guessed}
reads: [{reads}]   # your functions that only read
{model}prompt: {prompt}   # words that make the agent call its tools
# words by which an answer admits that something was not done, or that it cannot tell
says: {{"*": {{undone: "could not|unable to", unsure: "may have|could not (?:tell|confirm)"}}}}
{faults}
expect:
  - no_duplicate_effects   # `max_calls: 8` and many others: see `chaoslab check --schema`
trials: 20
"""
NO_FAULTS = "faults: []   # as in {fault: lost_reply, target: refund, chance: 0.3}; `chaoslab faults` lists them"
MODEL = """\
services: {{{hosts}}}   # a scripted model, which needs no key; its arguments were guessed
models: [{models}]
"""
NO_MODEL = """\
# The agent asks a model. In virtual time, name one that answers: lab.scripted(…), lab.recorded(…), lab.offline_model()
# services: {{{host}: my_model:model}}
# models: [{host}]
"""
MY_MODEL = '''\
"""The agent's model under chaos: a script that calls each tool once, and says so if a tool fails."""

import os

import chaoslab as lab

os.environ.setdefault("{key}", "nobody")   # the SDK asks for one; no request leaves this process

model = lab.scripted(
    [
        {calls},   # the arguments were guessed from the parameters
        "Done.",
    ],
    on_failure="I could not confirm {{tool}}.",
)
'''
KEYS = {
    "api.anthropic.com": "ANTHROPIC_API_KEY", "api.groq.com": "GROQ_API_KEY", "api.openai.com": "OPENAI_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}  # fmt: skip
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
        says={{"*": {{"undone": "could not|unable to", "unsure": "may have|could not (?:tell|confirm)"}}}},
    )
'''
THEIR_TEST = '''\
"""The agent under chaos, as an ordinary test: `pytest` runs it."""

import chaoslab as lab
import pytest

{imports}


@pytest.mark.chaos(
    faults=[
        {faults},
    ],
    trials=20,
)
def test_the_agent_under_chaos(chaos):
    chaos.run(
        {agent},
        {prompt!r},
        tools=[{changes}],
        reads=[{reads}],{services}
        says={{"*": {{"undone": "could not|unable to", "unsure": "may have|could not (?:tell|confirm)"}}}},
        expect=[lab.expect.no_duplicate_effects()],
    )
'''
WORKFLOW = """\
name: chaos
on: [push, pull_request]
jobs:
  chaos:
    runs-on: ubuntu-latest
{repository}    steps:
      - uses: actions/checkout@v6
      - uses: actions/setup-python@v6
        with: {{python-version: "3.13"}}
      - run: pip install "chaoslab{place}" pytest
      - run: chaoslab test
      - run: python -m pytest
      - uses: actions/upload-artifact@v7   # the reports: one HTML file for each scenario
        if: always()
        with:
          name: chaos-reports
          path: |
            logs
            !logs/latest
"""

WITHOUT_TEST = WORKFLOW.replace('" pytest\n', '"\n').replace("      - run: python -m pytest\n", "")
"""The workflow of a project with the user's own agent, which has no test of ours."""
REPOSITORY = """\
    env:
      CHAOSLAB: {address}
"""
UNKNOWN = "${{ vars.CHAOSLAB }}   # a variable of your repository: git+https:// and chaoslab's address"


def find_install_address() -> str | None:
    """The address by which pip installs this chaoslab elsewhere: empty if an index has it, None if nobody knows."""
    origin = read_install_origin()
    if origin is None:
        return None
    if "vcs_info" in origin:
        return f"{origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
    url = str(origin.get("url", ""))
    if not url.startswith("file:"):
        return url
    command = ["git", "-C", unquote(urlsplit(url).path), "remote", "get-url", "origin"]
    try:
        remote = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    parts = urlsplit(remote)
    # The remote's address may hold a name and a token.
    return f"git+{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme == "https" else None


def render_workflow(address: str | None, *, test: bool) -> str:
    """The CI job. `address`: of chaoslab, as `find_install_address` returns it. `test`: there is a test for pytest."""
    text = WORKFLOW if test else WITHOUT_TEST
    repository_text = REPOSITORY.format(address=UNKNOWN if address is None else address)
    return text.format(
        repository="" if address == "" else repository_text, place="" if address == "" else " @ $CHAOSLAB"
    )


def render_files(folder: Path, agent: str | None, prompt: str = PROMPT) -> Mapping[Path, str]:
    """The files of a new project. `agent`: the user's own, as module:name; None: the example's. `prompt`: its words.
    A CI job that is there already stays: it runs the scenarios of the whole repository.
    Raises ValueError: the agent is none. LookupError: its module has no such name."""
    if agent is None:
        module = "support_agent"
        return {
            folder / "refund.chaos.yaml": SCENARIO.format(module=module),
            folder / f"{module}.py": Path(_example.__file__).read_text(encoding="utf-8"),
            folder / "test_chaos.py": TEST.format(module=module),
            folder / ".github" / "workflows" / "chaos.yml": render_workflow(find_install_address(), test=True),
        }
    if not re.fullmatch(DOTTED, agent):
        raise ValueError(f"--agent {agent[:60]} should be module:name, as in shop.agent:answer")
    find_function_name(agent, list_module_folders(folder))
    agent_tools = find_tools(agent, list_module_folders(folder))
    name = _choose_project_name(folder, agent)
    model = _pick_free_name(folder, "my_model", f"{name}_model") if agent_tools.hosts and agent_tools.parameters else ""
    test = _render_test(agent, prompt, agent_tools, model)
    job = _find_repository_root(agent, folder) / ".github" / "workflows" / "chaos.yml"
    return {
        folder / f"{name}.chaos.yaml": _render_scenario(name, agent, prompt, agent_tools, model),
        **({folder / f"{model}.py": _render_scripted_model(agent_tools, prompt)} if model else {}),
        **({folder / f"{_pick_free_name(folder, 'test_chaos', f'test_{name}_chaos')}.py": test} if test else {}),
        # One CI job runs the scenarios of the whole repository.
        **({} if job.exists() else {job: render_workflow(find_install_address(), test=bool(test))}),
    }


def _choose_project_name(folder: Path, agent: str) -> str:
    """The agent's name, after that of its module if a scenario of another agent has the name alone."""
    module, _, dotted = agent.partition(":")
    name = dotted.rpartition(".")[2]
    file = folder / f"{name}.chaos.yaml"
    if file.is_file() and agent not in file.read_text(encoding="utf-8", errors="replace").split():
        return f"{module.rpartition('.')[2]}_{name}"
    return name


def _pick_free_name(folder: Path, *names: str) -> str:
    """The first of these names of modules that no file has yet; the last if all are taken, which `write_files` then
    tells."""
    return next((name for name in names if not (folder / f"{name}.py").exists()), names[-1])


def _render_scripted_model(agent_tools: AgentTools, prompt: str) -> str:
    """The script of a model that calls each tool once, those that only read first."""
    numbers = [int(digits) for digits in re.findall(r"\d{1,9}", prompt)] or [1]
    calls = []
    for dotted in (*agent_tools.reads, *agent_tools.changes):
        next_numbers = iter([*numbers, *[numbers[-1]] * 20])
        arguments = {
            name: next(next_numbers) if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in agent_tools.parameters[dotted].items()
        }
        argument_text = "".join(f", {name}={value!r}" for name, value in arguments.items())
        calls.append(f'lab.call("{dotted.rpartition(":")[2].rpartition(".")[2]}"{argument_text})')
    return MY_MODEL.format(key=KEYS[agent_tools.hosts[0]], calls=",\n        ".join(calls))


def read_skill_page() -> str:
    """The page by which a coding agent puts an agent under chaos, in the form of a skill: front matter with name and
    description, then Markdown."""
    return Path(__file__).with_name("for_coding_agents.md").read_text(encoding="utf-8")


def _find_repository_root(agent: str, folder: Path) -> Path:
    """The folder of the repository: the current one if the agent is found from there and not from the project's."""
    first = agent.partition(":")[0].partition(".")[0]
    inside = (folder / first).exists() or (folder / f"{first}.py").is_file()
    is_here = Path(first).is_dir() or Path(f"{first}.py").is_file()
    return Path() if is_here and not inside else folder


def _choose_faults(agent_tools: AgentTools) -> list[tuple[str, str]]:
    """Two faults that can hit, each with its target: of a change its answer is lost, of a read nothing comes."""
    change, read = (
        next((dotted.rpartition(":")[2] for dotted in functions), "")
        for functions in (agent_tools.changes, agent_tools.reads)
    )
    chosen = [("lost_reply" if change else "malformed_json", change or read)]
    return [*chosen, ("timeout_before_effect", read or change)] if chosen[0][1] else []


def _render_scenario(name: str, agent: str, prompt: str, agent_tools: AgentTools, model: str) -> str:
    faults = [f"  - {{fault: {fault}, target: {target}, chance: 0.3}}" for fault, target in _choose_faults(agent_tools)]
    served = ", ".join(f"{host}: {model}:model" for host in agent_tools.hosts)
    return THEIRS.format(
        name=name,
        kind="fresh" if agent_tools.is_factory else "agent",
        agent=agent,
        changes=", ".join(agent_tools.changes),
        reads=", ".join(agent_tools.reads),
        guessed="; which is which was guessed from names" if faults else ", as in shop.api:refund",
        model=MODEL.format(hosts=served, models=", ".join(agent_tools.hosts))
        if model
        else "".join(NO_MODEL.format(host=host) for host in agent_tools.hosts),
        prompt=json.dumps(prompt, ensure_ascii=False),
        faults="\n".join(["faults:", *faults]) if faults else NO_FAULTS,
    )


def _render_test(agent: str, prompt: str, agent_tools: AgentTools, model: str) -> str:
    """The test for pytest; empty if no tool was found, since it could inject nothing."""
    faults = [f'lab.inject("{fault}", "{target}", chance=0.3)' for fault, target in _choose_faults(agent_tools)]
    names: dict[str, list[str]] = {}
    for dotted in (agent, *agent_tools.changes, *agent_tools.reads):
        module, _, name = dotted.partition(":")
        names.setdefault(module, []).append(name.partition(".")[0])
    lines = [f"from {model} import model"] if model else []  # first: it sets the key that the agent's SDK asks for
    lines += [f"from {module} import {', '.join(sorted(set(names[module])))}" for module in sorted(names)]
    named = agent.partition(":")[2]
    services = ", ".join(f'"{host}": model' for host in agent_tools.hosts)
    service_text = f"\n        services={{{services}}},\n        models={agent_tools.hosts!r}," if model else ""
    return (
        THEIR_TEST.format(
            imports="\n".join(lines),
            faults=",\n        ".join(faults),
            prompt=prompt,
            agent=f"lab.fresh({named})" if agent_tools.is_factory else named,
            services=service_text,
            changes=", ".join(tool_name.partition(":")[2] for tool_name in agent_tools.changes),
            reads=", ".join(tool_name.partition(":")[2] for tool_name in agent_tools.reads),
        )
        if faults
        else ""
    )


def write_files(texts: Mapping[Path, str], folder: Path) -> list[Path]:
    """Writes files, as `render_files` returns them, and returns their paths. Nothing is written if one of them is
    there. Raises ValueError: one of them is there. OSError: one cannot be written."""
    # Nothing is written unless all can be.
    if existing := [path for path in texts if path.exists()]:
        raise ValueError(f"{existing[0]} is there already: name another folder, or move it away")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder")
    written: list[Path] = []
    contents = {path: encode_text(text) for path, text in texts.items()}  # all of them, before one is written
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            written.append(path)
            path.write_bytes(content)
    except OSError:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written
