"""The GitHub action, the hook of pre-commit and the page for coding agents: what they run, run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaoslab.cli import main
from chaoslab.scenarios.new_project import read_skill_page
from tests import warm
from tests.cli_parts import environment

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


def step(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in ACTION["runs"]["steps"] if each["name"] == name)
    return found


@pytest.fixture(scope="module")
def warm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program `chaoslab` that starts warm."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "chaoslab"
    program.write_text(f'#!/bin/sh\nunset PYTHONUNBUFFERED\nexec {warm.python()} -P -m chaoslab "$@"\n')
    program.chmod(0o700)
    return folder


def run_step(folder: Path, programs: Path = Path(sys.executable).parent, **inputs: str) -> tuple[int, str]:
    """Runs the step "run" with the `chaoslab` of the folder `programs`; returns its exit code and the step's
    summary."""
    summary = folder / "summary.md"
    given = {"COMMAND": "test", "ARGUMENTS": "", "BASELINE": "chaos-baseline.json", **inputs}
    assert given.keys() == step("run")["env"].keys()
    path = f"{programs}:{environment()['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("run")["run"]], cwd=folder, capture_output=True,
        env={**environment(), **given, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}, text=True, check=False,
    )  # fmt: skip
    return done.returncode, (summary.read_text() if summary.exists() else "") + done.stderr


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    capsys.readouterr()
    return tmp_path


def test_a_test_and_a_gate_end_with_the_commands_code_and_leave_a_summary(project: Path, warm_folder: Path) -> None:
    code, said = run_step(project, ARGUMENTS="--no-logs\n--set trials=5")
    assert (code, said[:9], "5 of 5 trials passed" in said) == (0, "````text\n", True), said
    code, said = run_step(project, warm_folder, ARGUMENTS=". --budget 40 --write", COMMAND="gate")
    assert code == 0, said
    assert (project / "chaos-baseline.json").exists()
    (project / "summary.md").unlink()
    code, said = run_step(project, warm_folder, ARGUMENTS="none.chaos.yaml")
    assert code == 2
    assert "none.chaos.yaml: it cannot be read" in (project / "summary.md").read_text()


def test_the_upload_has_the_report_of_a_test_and_the_markdown_of_a_gate_each_once(
    project: Path, warm_folder: Path
) -> None:
    run_step(project, warm_folder, ARGUMENTS="--set trials=5")
    run_step(project, warm_folder, ARGUMENTS=". --budget 40 --write", COMMAND="gate")
    assert run_step(project, warm_folder, ARGUMENTS=". --budget 40", COMMAND="gate")[0] == 0
    upload = step("upload")
    assert upload["if"] == "always() && inputs.artifact != ''"
    folder, but = upload["with"]["path"].split()
    files = [
        Path(place, name)
        for place, _, names in os.walk(project / folder, followlinks=True)  # as the upload does
        for name in names
        if project / but.removeprefix("!") not in (Path(place), *Path(place).parents) and not name.startswith(".")
    ]
    assert sorted(file.name for file in files if file.suffix in (".html", ".md", ".txt")) == [
        "gate.md", "gate.txt", "report.html", "test.txt",
    ]  # fmt: skip
    assert not [file for file in files if re.search(r'[":<>|*?\r\n]', str(file.relative_to(project)))], "refused names"


def test_inputs_are_words_and_never_code(project: Path, warm_folder: Path) -> None:
    assert run_step(project, warm_folder, COMMAND="rm")[0] == 2
    run_step(project, warm_folder, ARGUMENTS="$(touch taken) `touch taken` ; touch taken")
    assert not (project / "taken").exists()
    for each in ACTION["runs"]["steps"]:
        assert "${{" not in each.get("run", ""), "an input would be run as a part of the script"


def test_the_hook_runs_a_command_that_is_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *words = hook["entry"].split()
    assert program == "chaoslab"
    assert main([*words, "refund.chaos.yaml"]) == 0
    (project / "refund.chaos.yaml").write_text("nme: x\n")
    assert main([*words, "refund.chaos.yaml"]) == 2
    assert "did you mean 'name'?" in capsys.readouterr().err


def test_init_writes_the_page_for_coding_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--skill"]) == 0
    assert capsys.readouterr().out == "skills/chaoslab/SKILL.md\n"
    assert {path.name for path in tmp_path.rglob("*.*")} == {"SKILL.md"}
    assert main(["init", "other", "--skill"]) == 0
    assert (tmp_path / "other/refund.chaos.yaml").exists()
    assert (tmp_path / "other/skills/chaoslab/SKILL.md").exists()


AGENT = """
def get_order(order): return {"amount": 30}
def refund(order, amount): return f"{amount} back for order {order}"
TOOLS = {"get_order": get_order, "refund": refund}
def answer(prompt):
    for _ in range(2):
        try: return TOOLS["refund"](17, TOOLS["get_order"](17)["amount"])
        except TimeoutError: pass
    return "I could not tell if it was refunded."
"""


def test_the_five_commands_of_the_page_do_what_it_says(tmp_path: Path, warm_folder: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/agent.py").write_text(AGENT)
    (block,) = re.findall(r"```console\n(.*?)```", read_skill_page(), flags=re.DOTALL)
    path = f"{warm_folder}:{environment()['PATH']}"
    ended = []
    for line in block.splitlines():
        quick = line.replace("--seconds 20", "--trials 30").replace(" --write", " --write --budget 40")
        done = subprocess.run(
            ["bash", "-c", quick], cwd=tmp_path, env={**environment(), "PATH": path}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        ended.append((line.split()[1], done.returncode))
        if line.split()[1] == "test":
            (told,) = json.loads(done.stdout)["scenarios"]
            assert {"name", "file", "state", "trials", "passed", "failed", "open", "met_a_fault"} <= told.keys()
            assert {"trial", "outcome", "reasons", "again"} <= told["not_passed"][0].keys()
    assert ended == [("init", 0), ("check", 0), ("test", 1), ("explore", 1), ("gate", 0)]
