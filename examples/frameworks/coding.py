"""Breaks the files and commands under frameworks' own tools for coding, in virtual time, and notes what a model reads.

    python examples/frameworks/coding.py NAME [--write]     one row of coding.json, which matrix.py puts on its page

Each agent has its framework's own tools for a shell and for files. Its model lists a folder, writes a file, and answers
with what the two tools have told it.
"""

# ruff: noqa: ARG001 - the signatures are those of agents
import json
import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

from table_row import main

import chaoslab as lab

FILE = Path(__file__).with_name("coding.json")
HOST, SHOWN_MAX = "api.openai.com", 80
FAULTS = {
    "command fails": ("command_fails", "commands", 0),
    "command is killed": ("command_killed", "commands", 0),
    "command prints nothing": ("command_silent", "commands", 0),
    "command does not end": ("command_times_out", "commands", 0),
    "disk full": ("disk_full", "files.write", 1),
    "permission denied": ("permission_denied", "files.write", 1),
    "half is written": ("partial_write", "files.write", 1),
}
"""Each fault with its target, and the tool whose words are looked at: 0 is the shell, 1 the one that writes."""
os.environ.setdefault("OPENAI_API_KEY", "sk-of-nobody")


def make_model(*calls):
    """A model that asks for these calls, then answers with all that they gave."""

    def model(request):
        results = [each["content"] for each in request.json["messages"] if each["role"] == "tool"]
        message = {"role": "assistant", "content": json.dumps(results)}
        if len(results) < len(calls):
            name, arguments = calls[len(results)]
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": f"call_{len(results)}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "stop" if message["content"] else "tool_calls", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        made = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-5"}
        return {**made, "choices": [choice], "usage": usage}

    return model


def plain():
    def work(prompt):
        listed = subprocess.run(["ls", "src"], capture_output=True, text=True, timeout=60)
        Path("notes.txt").write_text("all is listed")
        return json.dumps([listed.stdout, "written"])

    return work, None


def ag2():
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.tools import FilesystemToolkit, LocalEnvironment, SandboxShellTool

    async def work(prompt):
        tools = [SandboxShellTool(LocalEnvironment(".")), FilesystemToolkit()]
        return (await Agent("clerk", config=OpenAIConfig(model="gpt-5"), tools=tools).ask(prompt)).body

    write = "write_file", {"path": "notes.txt", "content": "all is listed"}
    return work, make_model(("run_shell_command", {"command": "ls src"}), write)


def agno():
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    from agno.tools.local_file_system import LocalFileSystemTools
    from agno.tools.shell import ShellTools

    def work(prompt):
        tools = [ShellTools(), LocalFileSystemTools()]
        return Agent(model=OpenAIChat(id="gpt-5"), tools=tools, telemetry=False).run(prompt).content

    write = "write_file", {"filename": "notes.txt", "content": "all is listed"}
    return work, make_model(("run_shell_command", {"args": ["ls", "src"]}), write)


def langchain():
    from langchain.agents import create_agent
    from langchain_community.tools.file_management import ListDirectoryTool, WriteFileTool
    from langchain_openai import ChatOpenAI

    def work(prompt):
        graph = create_agent(ChatOpenAI(model="gpt-5"), [ListDirectoryTool(), WriteFileTool()])
        return graph.invoke({"messages": [("user", prompt)]})["messages"][-1].content

    write = "write_file", {"file_path": "notes.txt", "text": "all is listed"}
    return work, make_model(("list_directory", {"dir_path": "src"}), write)


AGENTS = {
    "plain": (plain, "Plain code", "`subprocess.run`, `write_text`", []),
    "ag2": (ag2, "AG2", "SandboxShellTool, FilesystemToolkit", ["ag2"]),
    "agno": (agno, "agno", "ShellTools, LocalFileSystemTools", ["agno"]),
    "langchain": (langchain, "LangChain", "WriteFileTool", ["langchain", "langchain-community"]),
}


def run(name):
    """The row of a framework: what the model reads of each fault."""
    make, title, tools, packages = AGENTS[name]
    work, model = make()
    services = {} if model is None else {HOST: model}

    folder = Path(tempfile.gettempdir()) / f"chaoslab-coding-{os.getpid()}"
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.py").write_text("print()\n")
    options = {"services": services, "models": [*services], "elsewhere": "unreachable", "deadline_s": 300.0}

    def run_trial(*faults):
        return lab.run(work, "List src and write a note.", files=folder, faults=faults, twin=False, **options)

    calm, cells = json.loads(run_trial().answer), {}
    for words, (fault, target, tool) in FAULTS.items():
        trial = run_trial(lab.inject(fault, target, calls=[1]))
        if not trial.met:
            cells[words] = "–"
        elif trial.error is not None or trial.answer is None:
            cells[words] = f"raises {type(trial.error).__name__}" if trial.error is not None else "never ends"
        else:
            text = json.loads(trial.answer)[tool].strip()
            last = text.splitlines()[-1][:SHOWN_MAX] if text else ""
            cells[words] = "as without" if text == calm[tool].strip() else f"“{last}”" if text else "nothing"
    shutil.rmtree(folder)
    return {"title": title, "tools": tools, "versions": {each: version(each) for each in packages}, "faults": cells}


if __name__ == "__main__":
    main(run, AGENTS, FILE)
