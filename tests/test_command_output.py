"""The commands' help has one style, and --json prints one document."""

import json
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from chaoslab import __version__
from chaoslab.analysis.measures.delivery import DeliveryCell, DeliveryCounts
from chaoslab.base import version
from chaoslab.cli import COMMANDS, _build_parser
from chaoslab.config.settings import Settings
from chaoslab.core.events import PromptStarted
from chaoslab.record.runs import Run
from chaoslab.reports import fault_check
from chaoslab.reports.progress import WorkProgress
from tests.cli_parts import Typed, chaoslab
from tests.event_parts import prompt_finished, run_started


def shown(arguments: list[str], typed: Typed, *, code: int = 0) -> Any:
    """The JSON document that the command prints."""
    ended = typed(*arguments)
    assert ended.code == code
    return json.loads(ended.out)


@pytest.fixture
def run(here: Path) -> Run:
    """A run of two trials in logs/ here: one is right, one gives no answer."""
    run = Run.create(here / "logs", now="2026-06-01T09:00:00Z", name="mine")
    run.link_as_latest()
    with run.open_log("info") as info:
        info.write(
            run_started(
                seed=7,
                settings=Settings().to_masked_dict(),
                plan={"seed": 7, "injections": []},
                now=run.now,
                model="mine",
            )
        )
        for n, (answer, status, error) in enumerate((("42", "ok", "none"), ("", "failed", "model")), 1):
            info.write(PromptStarted(prompt_index=1, prompt="what?", facts=[["42"]], stated=True), trial=f"p1.r{n}")
            info.write(
                prompt_finished(answer, prompt="what?", status=status, error_type=error),
                trial=f"p1.r{n}",
            )  # fmt: skip
    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_the_command_understands(
    command: str, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = typed.out(command, "--help").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"usage: chaoslab {command} ")
    example = import_module(f"chaoslab.cli.{command.replace('-', '_')}").EXAMPLE
    assert lines[-1] == f"Example: {example}"
    line = shlex.split(example.removeprefix('eval "$(').removesuffix(')"'))
    assert line[:2] == ["chaoslab", command]
    assert callable(_build_parser(line[1:]).parse_args(line[1:]).command)


def test_the_help_of_all_fits_80_columns(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert max(map(len, typed.out("--help").splitlines())) <= 80


def test_the_version_is_the_packages(typed: Typed) -> None:
    assert typed.out("--version") == f"chaoslab {__version__}\n"
    assert __version__ == version.__version__


def test_runs(run: Run, here: Path, typed: Typed) -> None:
    (found,) = shown(["runs", "--json"], typed)["runs"]
    assert found["folder"] == str(run.folder.relative_to(here))
    assert found["seed"] == 7
    assert found["outcomes"] == {"correct": 1, "failed": 1}
    assert found["ended"] == "not finished"


@pytest.mark.usefixtures("run")
def test_summary_is_the_report(typed: Typed) -> None:
    found = shown(["summary", "--json"], typed)
    assert found["schema"] == 3
    assert (found["verdict"]["trials"], found["verdict"]["ended"]) == (2, {"well": 1, "bad": 1, "open": 0})


@pytest.mark.usefixtures("run")
def test_show_selects_trials(typed: Typed) -> None:
    (failed,) = shown(["show", "--failed", "--json"], typed)["trials"]
    assert (failed["trial"], failed["outcome"]) == ("p1.r2", "failed")
    assert [each["kind"] for each in failed["events"]] == ["prompt_started", "prompt_finished"]
    assert shown(["show", "--outcome", "harm", "--json"], typed)["trials"] == []


@pytest.mark.usefixtures("here")
def test_settings(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "a-secret-key")
    defaults = {each["name"]: each for each in shown(["settings", "--json"], typed)["settings"]}
    assert defaults["SEED"]["default"] == str(Settings().seed)
    text = ["settings", "--effective", "--json", "SEED=3"]
    found = {each["name"]: each for each in shown(text, typed)["settings"]}
    assert found["SEED"] == {"name": "SEED", "from": "command line", "value": "3"}
    assert found["GROQ_API_KEY"]["value"] == "set"


def test_faults(typed: Typed) -> None:
    (latency,) = shown(["faults", "latency", "--json"], typed)["faults"]
    assert latency["family"] == "network"
    assert "seconds" in latency["parameters"]["delay_s"]


def test_a_fault_that_is_not_delivered_has_a_reason() -> None:
    cell = DeliveryCell("latency", "function", 0.5, 100)
    well, lost = DeliveryCounts(cell, 100, 50, 50, 50), DeliveryCounts(cell, 100, 50, 50, 49)
    found = fault_check.results_to_json([well, lost, DeliveryCounts(cell, refusal="no such thing")])
    assert [each["wrong"] for each in found] == [None, "1 of 50 were not witnessed", None]
    assert [each["interval"] is None for each in found] == [False, False, True]


def test_check_names_the_errors_of_each_file(tmp_path: Path, typed: Typed) -> None:
    bad = tmp_path / "bad.chaos.yaml"
    bad.write_text("nmae: x\n")
    (found,) = shown(["check", str(bad), "--json"], typed, code=2)["files"]
    assert (found["file"], found["scenarios"]) == (str(bad), [])
    assert str(bad) in found["errors"][0]


def test_a_dry_run_lists_hits(typed: Typed) -> None:
    example = Path(__file__).parent.parent / "examples" / "scenarios" / "paid_twice.chaos.yaml"
    (found,) = shown(["test", str(example), "--dry-run", "-n", "2", "--json"], typed)["scenarios"]
    assert found["trials"] == 2
    assert set(found["hits"]) == {"1", "2"}


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_progress_says_nothing(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with WorkProgress(1, quiet=quiet):
        pass
    said = capsys.readouterr()
    assert bool(said.out + said.err) is not quiet


def test_a_run_prints_its_result_alone(tmp_path: Path) -> None:
    given = ("run", "--world", "virtual", "--trials", "2", "TOXIC_PROB=0")
    as_json = chaoslab(tmp_path, *given, "--json")
    assert as_json.returncode == 0, as_json.stderr
    assert json.loads(as_json.stdout)["run"]["folder"] == (tmp_path / "logs" / "latest").resolve().name
    assert "2 of 2 trials" in as_json.stderr
    quiet = chaoslab(tmp_path, *given, "--quiet", "--min-correct", "1")
    assert quiet.stdout.startswith("No conclusion about faults: none was witnessed in 2 trials.\nNo harm was found")
    assert len(quiet.stdout.splitlines()) == 5
    assert (quiet.returncode, quiet.stderr) == (
        4, "gate proves nothing: no trial met a fault; at least 100 % correct were asked for, 100 % are "
        "(2 of 2 judged)\n",
    )  # fmt: skip


PRINTING = """
import os
print("imported")
def pay(n): return "paid"
def run(prompt):
    print("asked", flush=True)
    os.write(1, b"by its descriptor")
    return pay(1)
import atexit
atexit.register(print, "at the end")
"""


def test_what_an_agent_prints_is_no_part_of_the_document(here: Path) -> None:
    Path("bot.py").write_text(PRINTING)
    Path("bot.chaos.yaml").write_text("name: bot\nagent: bot:run\ntools: [bot:pay]\nprompt: Pay.\ntrials: 2\n")
    for command in (("test", "bot.chaos.yaml"), ("explore", "bot.chaos.yaml", "--trials", "3")):
        ended = chaoslab(here, *command, "--no-logs", "--json", "--set", "isolate=fork")
        assert json.loads(ended.stdout)["chaoslab"], ended.stderr
        assert "by its descriptor" in ended.stderr


def test_a_run_that_never_begins_prints_no_result(tmp_path: Path) -> None:
    ended = chaoslab(tmp_path, "lab", "--json", "TRIALS=x")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
