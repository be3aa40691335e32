"""`make lab NAME=VALUE` gives the lab each setting as it was typed, and the documented commands are plans."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import Settings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "how-to" / "choose-what-breaks.md").read_text(encoding="utf-8")
DOCUMENTED = [line.partition("  #")[0].strip() for line in re.findall("^make lab .*", PAGE, flags=re.MULTILINE)]


def given(folder: Path, command: str) -> list[str]:
    """The arguments that the lab's own command gets from this line of a shell."""
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copy(ROOT / ".env.example", folder)
    shutil.copytree(ROOT / "containers", folder / "containers")
    (folder / "pyproject.toml").touch()
    lab = folder / ".venv" / "bin" / "chaoslab"
    lab.parent.mkdir(parents=True)
    lab.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    lab.chmod(0o755)
    (folder / ".venv" / "lab").touch()  # it is installed
    ended = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    return ended.stdout.split("\0")[:-1]


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("", []),
        ("SEED=7 PYTHON=python3", ["SEED=7"]),
        ("UI=on SEED=7", ["--ui", "SEED=7"]),
        ("UI=off", []),
        ("'PROMPTS=my file.json'", ["PROMPTS=my file.json"]),
        ("""'TOXIC_TRIGGERS={"max_times": 2}'""", ['TOXIC_TRIGGERS={"max_times": 2}']),
        ("""'ERROR_TRIGGERS={"when": "to == \\"Ana\\""}'""", [r'ERROR_TRIGGERS={"when": "to == \"Ana\""}']),
        ('"MODEL=it\'s; echo mine"', ["MODEL=it's; echo mine"]),
    ],
)
def test_a_setting_reaches_the_lab_as_it_was_typed(tmp_path: Path, typed: str, arguments: list[str]) -> None:
    assert given(tmp_path, f"make lab {typed}") == ["lab", *arguments]


def test_a_typo_ends_before_anything_is_installed_or_built(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as ended:
        given(tmp_path, "make lab TOXIC_PROBS=0.5")
    assert ended.value.stderr.startswith("TOXIC_PROBS is not a setting (command line); did you mean TOXIC_PROB?\n")


@pytest.mark.parametrize("command", DOCUMENTED)
def test_each_documented_choice_is_a_plan(tmp_path: Path, command: str) -> None:
    _, *settings = given(tmp_path, command)
    assert plan_from_settings(Settings().override(dict(each.split("=", 1) for each in settings))).injections


def test_the_page_documents_triggers() -> None:
    assert sum("_TRIGGERS=" in command for command in DOCUMENTED) == 4


def test_what_runs_before_a_commit_and_on_the_server_is_what_make_runs() -> None:
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    entered = {hook["entry"].replace("make --silent", ".venv/bin/").split(".venv/bin/")[1].split()[0] for hook in hooks}
    check = made.partition("\ncheck:")[2].partition("\n\n")[0].replace("$(SITE)", "$(BIN)/mkdocs")
    made_too = re.findall(r"\$\(MAKE\) --no-print-directory (.*)", check)[0].split()
    assert entered == {*re.findall(r"\$\(BIN\)/(\S+)", check), *made_too}
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yaml").read_text(encoding="utf-8"))["jobs"]
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = {target for step in steps for target in re.findall(r"make ([a-z-]+)", step)}
    assert targets == {"check", "test-here", "test-live", "release-check"}
    assert all(f"\n{target}:" in made for target in targets)
    assert set(jobs["here"]["strategy"]["matrix"]["python"]) == {"3.11", "3.12", "3.13"}


def test_the_readme_names_both_doors_first_and_ci_goes_through_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"```sh\n(.*?)```", readme, re.DOTALL)
    assert first is not None
    doors = [line.split("  ")[0].strip() for line in first[1].splitlines()]
    assert {"make lab", "make test"} <= set(doors)
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "make test" in [line.strip() for line in ci]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"lab", "test"} <= set(targets)
