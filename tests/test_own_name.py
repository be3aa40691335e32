"""A command that makes a run goes by the run's own name, also where another run becomes the latest meanwhile."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

import pytest

from chaoslab.core.events import PromptStarted, RunFinished
from chaoslab.record.history import History
from chaoslab.record.runs import Run, choose_free_run_name
from tests.cli_parts import chaoslab, free_base
from tests.event_parts import prompt_finished, run_started

ROOT = Path(__file__).parent.parent
GIVEN = ("WORLD=virtual", "TRIALS=1", "TOXIC_PROB=0", "ERROR_PROB=0")
FOR_PEOPLE = {
    "chaoslab/record/runs.py": "makes the link",
    "chaoslab/reports/places.py": "finds a run by the name that a person types",
    "chaoslab/cli/memory.py": "leaves the link out",
    "chaoslab/cli/report.py": "the run of a person who names none",
    "chaoslab/lab/launch.py": "tells a person of the link",
}
"""By module, what it has to do with `logs/latest`."""


@pytest.fixture
def neighbour(here: Path) -> Iterator[str]:
    """A run that failed all its trials, and becomes the latest run again and again; its name."""
    run = Run.create(here / "logs", now="2026-06-01T09:00:00Z", folder="neighbour")
    with run.open_log("info") as log:
        log.write(run_started(plan={}, model="", world="local", asked=["asked"]))
        log.write(PromptStarted(prompt_index=1, prompt="asked", facts=[["1"]], effects=[], stated=True), trial="p1.r1")
        log.write(prompt_finished("0", prompt_index=1, prompt="asked"), trial="p1.r1")
        log.write(RunFinished(received=1, processed=1, succeeded=1, duration_s=1.0))
    ended = Event()

    def again() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):  # the other run's link is being moved into its place
                run.link_as_latest()
            ended.wait(0.001)

    thread = Thread(target=again)
    thread.start()
    yield run.name
    ended.set()
    thread.join()


def others(here: Path, neighbour: str) -> list[str]:
    return sorted(each.parent.name for each in (here / "logs").glob("*/run.json") if each.parent.name != neighbour
                  and not each.parent.is_symlink())  # fmt: skip


@pytest.mark.parametrize("words", [["lab"], ["run"], ["lab", "--quiet"], ["lab", "--json"]], ids=" ".join)
def test_the_summary_is_of_the_commands_own_run(here: Path, neighbour: str, words: Sequence[str]) -> None:
    ended = chaoslab(here, *words, *GIVEN)
    assert ended.returncode == 0, ended.stderr
    out = ended.stdout
    (own,) = others(here, neighbour)
    name = json.loads((here / "logs" / own / "run.json").read_text())["name"]
    assert name in out
    assert "neighbour" not in out


def test_a_sweep_counts_its_own_runs(here: Path, neighbour: str) -> None:
    ended = chaoslab(here, "sweep", "ERROR_PROB=0,0.1", *GIVEN[:3], "--json", "--quiet")
    found = json.loads(ended.stdout)["cells"]
    assert [Path(cell["run"]).name for cell in found] == others(here, neighbour)


def test_a_lab_on_loopback_reports_its_own_run(here: Path, neighbour: str) -> None:
    ended = chaoslab(here, "lab", f"BASE_PORT={free_base()}", "WORLD=local", *GIVEN[1:])
    assert ended.returncode == 0, ended.stderr
    (own,) = others(here, neighbour)
    assert f"logs    logs/{own}/" in ended.stdout
    assert (here / "logs" / own / "report.html").exists()
    assert History.read(here / "logs" / own).find_first_event(RunFinished)


def test_a_run_that_another_process_makes_gets_a_name_that_is_free_and_nobody_elses(here: Path) -> None:
    logs = here / "logs"
    name = choose_free_run_name(logs)
    assert Run.create(logs, now="2026-06-01T09:00:00Z", folder=name).folder == logs / name
    assert choose_free_run_name(logs) != name
    with pytest.raises(FileExistsError, match="there is a run of this name already"):
        Run.create(logs, now="2026-06-01T09:00:00Z", folder=name)
    with pytest.raises(OSError, match="a run's name has up to 64 letters"):
        Run.create(logs, now="2026-06-01T09:00:00Z", folder="../elsewhere")


def test_only_what_talks_to_people_knows_of_the_latest_run() -> None:
    """An option's default is what a person leaves out."""
    found = set()
    for part in ("chaoslab", "agent", "flask_tools", "proxy_manager"):
        for file in (ROOT / part).rglob("*.py"):
            tree = ast.parse(file.read_text())
            typed = {id(word.value) for call in ast.walk(tree) if isinstance(call, ast.Call)
                     for word in call.keywords if word.arg == "default"}  # fmt: skip
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and node.value in ("latest", "logs/latest") and id(node) not in typed:
                    found.add(str(file.relative_to(ROOT)))
    assert found == set(FOR_PEOPLE)
