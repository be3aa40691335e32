"""The examples of frameworks run, and what the page says of three of them is what happens."""

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import HUNG_S

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "frameworks"
PAGE = FOLDER.parents[1] / "docs" / "frameworks.md"
LINES_MAX = 40
THREE = ("openai_sdk", "anthropic_sdk", "openai_agents")
"""Those whose frameworks the tests have."""


TRIED = """
import json, runpy, sys

matrix = runpy.run_path(sys.argv[1])
matrix["prepare"]()
run, hazards = matrix["run"], matrix["HAZARDS"]
found = {}
for name in sys.argv[3:]:
    run.__globals__["HAZARDS"] = hazards if name == "openai_agents" else [
        hazard for hazard in hazards if hazard.name in sys.argv[2].split(",")
    ]
    found[name] = run(name)
print(json.dumps(found))
"""
"""One process for all of them, since they share libraries. Each trial is in a process of its own."""
OF_AN_SDK = (
    "lost reply", "duplicate call", "429", "HTML for JSON", "error with status 200", "call cut for its length", "hang",
)  # fmt: skip
"""The hazards of an SDK that are tried: one for each way in which it may answer them. A framework meets all."""


@pytest.fixture(scope="module")
def tried() -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-c", TRIED, str(FOLDER / "matrix.py"), ",".join(OF_AN_SDK), *THREE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_S, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The words of a command that runs no trial."""

    def said(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["matrix.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(FOLDER / "matrix.py"), run_name="__main__")
        assert ended.value.code == 0
        return capsys.readouterr().out

    return said


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", THREE)
def test_what_the_page_says_of_a_framework_happens(name: str, tried: dict[str, Any]) -> None:
    found, told = tried[name], recorded(name)
    told["hazards"] = {hazard: told["hazards"][hazard] for hazard in found["hazards"]}
    assert found["calm"]["answer"] == "Refunded 30 dollars."
    assert found["hazards"]["lost reply"]["witnessed"] == 1
    assert found["hazards"]["duplicate call"]["refunds"] == 2
    if found["versions"] == told["versions"]:
        assert found == told
    else:  # another version may do something else, but it meets the same hazards
        met = {hazard: facts["witnessed"] for hazard, facts in found["hazards"].items()}
        assert met == {hazard: facts["witnessed"] for hazard, facts in told["hazards"].items()}


def test_every_agent_is_small_and_stands_in_the_table_and_on_the_page(matrix: Callable[..., str]) -> None:
    agents = sorted((FOLDER / "agents").glob("*.py"))
    names = matrix("names").split()
    assert names == [path.stem for path in agents]
    assert {path.name: len(path.read_text().splitlines()) for path in agents if _long(path)} == {}
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in names if f"/{name}.py`" not in page] == []


def _long(path: Path) -> bool:
    return len(path.read_text(encoding="utf-8").splitlines()) > LINES_MAX


def test_the_page_is_what_the_results_say(matrix: Callable[..., str]) -> None:
    assert matrix("page", "--print") == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("table", "cells", "name"),
    [("deaths", "deaths", "plain"), ("deaths", "deaths", "openai_agents"), ("coding", "faults", "plain")],
)
def test_what_the_page_says_of_a_death_and_of_a_coding_agent_happens(table: str, cells: str, name: str) -> None:
    command = [sys.executable, "-W", "ignore", str(FOLDER / f"{table}.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_S, check=False)
    assert done.returncode == 0, done.stderr
    recorded_rows = json.loads((FOLDER / f"{table}.json").read_text(encoding="utf-8"))
    assert json.loads(done.stdout)[cells] == recorded_rows[name][cells]
