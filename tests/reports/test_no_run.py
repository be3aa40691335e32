"""Every command that reads a run says in one line that there is none: of a file that is no log, and of a wrong name."""

from pathlib import Path

import pytest

from tests.cli_parts import Typed
from tests.reports.fake_run import FakeRun

COMMANDS = {
    "show": ["show"], "summary": ["summary"], "report": ["report"], "page": ["report", "--format", "html"],
    "replay": ["replay"], "charts": ["charts"],
}  # fmt: skip
NONE_YET = "no logs yet in logs/: run make lab or chaoslab test first, or lab.run with logs='logs'"
NO_RUN = "the logs of '{}' tell of no run"
CASES = {
    "empty/info.log": NO_RUN, "empty": NO_RUN, "binary": NO_RUN, "text/info.log": NO_RUN,
    "folder": "'{}' is no run's folder: there are no logs in it",
    "notes.txt": "'{}' is no log of a run: name a run, its folder or a .log in it",
    "text/other.log": "no run is called '{}', and " + NONE_YET,
    "nowhere": "no run is called '{}', and " + NONE_YET,
    "latest": NONE_YET,
    "": "the run's name is empty: give its name, its folder or latest",
}  # fmt: skip


@pytest.fixture
def here(here: Path) -> Path:
    for name, text in {"empty": b"", "binary": bytes(range(256)) * 9, "text": b"hello\n"}.items():
        (here / name).mkdir()
        (here / name / "info.log").write_bytes(text)
    (here / "folder").mkdir()
    (here / "notes.txt").write_text("hello\n")
    return here


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", CASES)
def test_what_is_no_run_is_one_line(name: str, command: str, here: Path, typed: Typed) -> None:
    before = sorted(here.rglob("*"))
    assert typed.refused(*COMMANDS[command], name).startswith(CASES[name].format(name))
    assert sorted(here.rglob("*")) == before


def test_a_folder_that_has_no_logs_is_told_beside_runs_too(here: Path, typed: Typed) -> None:
    FakeRun(here / "logs" / "one", prompts=1).write()
    for name in ("folder", "notes.txt"):
        assert typed.refused("show", name) == CASES[name].format(name) + "\n"
    assert typed.refused("show", "two") == "no run with logs is called 'two': known are one\n"


def test_the_list_of_runs_wants_a_folder(here: Path, typed: Typed) -> None:  # noqa: ARG001
    error = typed.refused("runs", "--logs", "notes.txt")
    assert error == "notes.txt: this is a file; name the folder that the runs are in\n"
