"""Heavy libraries load where they are used: neither `import chaoslab` nor its help pays for one."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "bs4", "deep_translator", "docker", "flask", "groq", "httpx", "langchain", "langchain_core", "langchain_groq", "langgraph",
    "matplotlib", "numpy", "openai", "pandas", "pydantic", "requests", "rich", "sqlite3", "toxiproxy", "waitress", "werkzeug",
}  # fmt: skip
LOADED = "\nimport sys\nprint('LOADED', *{name.partition('.')[0] for name in sys.modules})"
HELP = "from chaoslab.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"


def loaded_by(program: str) -> set[str]:
    """The top-level names of all that a fresh interpreter has loaded after the program."""
    done = subprocess.run([sys.executable, "-c", program + LOADED], check=True, capture_output=True, text=True)
    return set(done.stdout.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize(
    "program", ["import chaoslab", HELP, "import chaoslab.cli, chaoslab.settings, chaoslab.events"]
)
def test_nothing_heavy_is_loaded(program: str) -> None:
    loaded = loaded_by(program)
    assert "chaoslab" in loaded
    assert loaded & HEAVY == set()


def test_what_is_loaded_would_be_seen() -> None:
    assert {"httpx", "sqlite3"} <= loaded_by("import httpx, sqlite3")
