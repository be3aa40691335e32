"""The examples of frameworks run, and what the page says of three of them is what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "frameworks"
PAGE = FOLDER.parents[1] / "docs" / "frameworks.md"
LINES_MAX = 40
THREE = ("openai_sdk", "anthropic_sdk", "openai_agents")
"""Those whose frameworks the tests have."""


def matrix(*arguments: str) -> str:
    command = [sys.executable, "-W", "ignore", str(FOLDER / "matrix.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", THREE)
def test_what_the_page_says_of_a_framework_happens(name: str) -> None:
    found, told = json.loads(matrix("run", name)), recorded(name)
    assert found["calm"]["answer"] == "Refunded 30 dollars."
    assert found["hazards"]["lost reply"]["witnessed"] == 1
    assert found["hazards"]["duplicate call"]["refunds"] == 2
    if found["versions"] == told["versions"]:
        assert found == told
    else:  # another version may do something else, but it meets the same hazards
        met = {hazard: facts["witnessed"] for hazard, facts in found["hazards"].items()}
        assert met == {hazard: facts["witnessed"] for hazard, facts in told["hazards"].items()}


def test_every_agent_is_small_and_stands_in_the_table_and_on_the_page() -> None:
    agents = sorted((FOLDER / "agents").glob("*.py"))
    names = matrix("names").split()
    assert names == [path.stem for path in agents]
    assert {path.name: len(path.read_text().splitlines()) for path in agents if _long(path)} == {}
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in names if f"/{name}.py`" not in page] == []


def _long(path: Path) -> bool:
    return len(path.read_text(encoding="utf-8").splitlines()) > LINES_MAX


def test_the_page_is_what_the_results_say() -> None:
    assert matrix("page", "--print") == PAGE.read_text(encoding="utf-8")
