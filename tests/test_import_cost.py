"""Heavy libraries load where they are used: neither `import chaoslab` nor its help pays for one."""

import subprocess
import sys
from pathlib import Path

import pytest

from chaoslab.core.events import PromptStarted
from chaoslab.record.runs import Run
from tests.event_parts import run_started

HEAVY = {
    "docker", "flask", "greenlet", "groq", "httpx", "langchain", "langchain_core",
    "langchain_groq", "langgraph",
    "matplotlib", "numpy", "openai", "pandas", "pydantic", "requests", "rich", "sqlite3", "time_machine", "toxiproxy",
    "waitress", "werkzeug",
}  # fmt: skip
LOADED = "\nimport sys\nprint('LOADED', *{name.partition('.')[0] for name in sys.modules})"
HELP = "from chaoslab.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"


def loaded_by(program: str) -> set[str]:
    """The top-level names of all that a fresh interpreter has loaded after the program."""
    done = subprocess.run([sys.executable, "-c", program + LOADED], check=True, capture_output=True, text=True)
    return set(done.stdout.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize(
    "program", ["import chaoslab", HELP, "import chaoslab.cli, chaoslab.config.settings, chaoslab.core.events"]
)
def test_nothing_heavy_is_loaded(program: str) -> None:
    loaded = loaded_by(program)
    assert "chaoslab" in loaded
    assert loaded & {*HEAVY, "asyncio"} == set()


def test_a_manager_loads_no_loop_and_a_refused_agent_no_agent(tmp_path: Path) -> None:
    assert loaded_by("import chaoslab.proxy_manager.command") & {*HEAVY, "asyncio"} == {"sqlite3"}
    refused = f"from chaoslab.cli import main\nassert main(['agent', 'TRIALS=many', '--logs', {str(tmp_path)!r}]) == 2"
    assert loaded_by(refused) & {"asyncio", "groq", "langchain", "langchain_core", "langgraph"} == set()


def test_reading_a_run_loads_no_world(tmp_path: Path) -> None:
    run = Run("mine", tmp_path / "mine", 0.0, "2026-06-01T09:00:00Z")
    with run.open_log("info") as info:
        info.write(run_started(now=run.now))
        info.write(PromptStarted(prompt_index=1, prompt="What is 6 times 7?"), trial="p1.r1")
    for command in (["show"], ["summary"], ["report", "--format", "html"]):
        given = [command[0], str(run.folder), *command[1:]]
        measured = f"('chaoslab.analysis.measures.run_report' in sys.modules) is {command != ['show']}"
        loaded = loaded_by(f"import sys\nfrom chaoslab.cli import main\nassert main({given}) == 0\nassert {measured}")
        assert loaded & HEAVY == set()


def test_a_trial_loads_no_pytest_and_its_agent_may() -> None:
    run = "import chaoslab as lab\nassert lab.run(lambda _: 'x', 'go', effects=[]).answer == 'x'"
    loaded = loaded_by(run)
    assert ("time_machine" in loaded, "pytest" in loaded, "_pytest" in loaded) == (True, False, False)
    assert "pytest" in loaded_by(f"{run}\nimport pytest\nassert pytest.raises")


def test_what_is_loaded_would_be_seen() -> None:
    assert {"httpx", "sqlite3"} <= loaded_by("import httpx, sqlite3")
