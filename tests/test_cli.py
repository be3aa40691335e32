"""The command line: each command answers, and what was typed wrong gets one clear line."""

import argparse
import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

from chaoslab import cli
from chaoslab.base import former
from chaoslab.base.terminal import clean_text
from chaoslab.cli import COMMANDS, GROUPS, main
from chaoslab.config.settings import Settings
from chaoslab.core import events
from chaoslab.lab import launch
from chaoslab.record.runs import Run
from tests.cli_parts import Typed, execute
from tests.event_parts import fault_at, prompt_finished, run_started
from tests.reports.fake_run import FakeRun

ROOT = Path(__file__).parent.parent

WRONG = [
    (("lab", "TOXIC_TARGETS=wether"), "TOXIC_TARGETS names 'wether', which is no service: did you mean 'weather'?"),
    (
        ("lab", "TRANSLATOR=online"),
        "TRANSLATOR is not a setting (command line); name your server as the translator in agent/config.json",
    ),
    (("show",), "no logs yet in logs/: run make lab or chaoslab test first, or lab.run with logs='logs'"),
    (("show", "--outcome", "wrnog"), "no outcome is called 'wrnog': did you mean 'wrong'?"),
    (
        ("show", "yesterday"),
        "no run is called 'yesterday', and no logs yet in logs/: run make lab or chaoslab test first, or lab.run with "
        "logs='logs'",
    ),
    (("summary",), "no logs yet in logs/: run make lab or chaoslab test first, or lab.run with logs='logs'"),
    (("charts",), "no logs yet in logs/: run make lab or chaoslab test first, or lab.run with logs='logs'"),
]


@pytest.mark.parametrize(("arguments", "line"), WRONG)
def test_what_was_typed_wrong_gets_one_line(arguments: tuple[str, ...], line: str, here: Path, typed: Typed) -> None:
    assert typed(*arguments) == (2, "", line + "\n")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", former.COMMANDS)
def test_a_former_command_is_refused_with_what_does_it_now(name: str, typed: Typed) -> None:
    assert f": {former.COMMANDS[name]} (chaoslab --all lists " in typed.refused(name)


@pytest.mark.parametrize("option", ["--max-faults", "--until", "--lease", "--hosts", "--shadow", "--index"])
def test_a_former_option_is_refused_with_what_does_it_now(option: str, typed: Typed) -> None:
    command = "report" if option == "--index" else "gateway"
    assert f"{option}: {former.OPTIONS[option]}; see " in typed.refused(command, option)


@pytest.mark.usefixtures("here")
def test_what_make_was_given_is_blamed_on_the_command_line(monkeypatch: pytest.MonkeyPatch, typed: Typed) -> None:
    monkeypatch.setenv("TOXIC_PROB", "2")
    assert typed.refused("lab", "TOXIC_PROB=2") == "TOXIC_PROB=2 (command line) should be a chance from 0 to 1\n"


@pytest.mark.usefixtures("here", "two_charts")
def test_a_picture_that_cannot_be_written_is_said_after_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    FakeRun(Path("logs/fake"), prompts=3).write()
    Path("logs/latest").symlink_to("fake")
    Path("charts/tool_latency.png").mkdir(parents=True)
    assert [launch.print_end_report(Path("logs/fake"), code) for code in (0, 130)] == [2, 130]
    said = capsys.readouterr()
    assert said.err == "cannot draw into charts/tool_latency.png: Is a directory\n" * 2
    assert said.out.count("run fake") == 2


@pytest.mark.parametrize(
    ("answers", "met", "trial"),
    [
        (("42", "41", "", ""), "", "p1.r3"),
        (("42", "", "42"), "p1.r1", "p1.r2"),
        (("42", "42"), "p1.r2", "p1.r2"),
        (("42", "42"), "", "p1.r1"),
    ],
)
@pytest.mark.usefixtures("here", "two_charts")
def test_what_to_look_at_next_is_the_first_trial_of_the_worst_else_that_met_a_fault(
    answers: tuple[str, ...], met: str, trial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(Path("logs"), now="2026-06-01T09:00:00Z", name="v1-a-name-of-its-own")
    run.link_as_latest()
    with run.open_log("info") as info:
        info.write(run_started(settings=Settings().to_masked_dict(), now=run.now, model="mine"))
        for n, answer in enumerate(answers, 1):
            status, error_type = ("ok", "none") if answer else ("failed", "model")
            info.write(
                events.PromptStarted(prompt_index=1, prompt="what?", facts=[["42"]], stated=True), trial=f"p1.r{n}"
            )
            info.write(prompt_finished(answer, prompt="what?", status=status, error_type=error_type), trial=f"p1.r{n}")
        if met:
            info.write(events.FaultWitnessed(**fault_at("lie", "lie", "weather", 1, 1, "r")), trial=met)
    assert launch.print_end_report(run.folder, 0, program="chaoslab") == 0
    lines = [text for text in capsys.readouterr().out.splitlines() if text.startswith("next")]
    story = f"next    chaoslab show latest --trial {trial}"
    to_failures = f"next    chaoslab lab {launch.FAILING}: to see failures, as tools answer wrongly there and the agent"
    is_well = set(answers) == {"42"}
    assert lines == [
        *([story] if met or not is_well else []),
        *([f"{to_failures} believes some of it"] if is_well else []),
    ]
    for named in ("latest", run.name, run.folder.name, str(run.folder)):
        assert main(["show", named, "--trial", trial]) == 0
        assert capsys.readouterr().out.startswith(f"{trial}  prompt 1: what?")
        assert main(["summary", named]) == 0
        assert f"run {run.name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "path", "told"),
    [("bin/chaoslab", "bin", "chaoslab"), ("bin/chaoslab", "", "bin/chaoslab"),
     ("bin/chaoslab", "other", "bin/chaoslab"), ("chaoslab/__main__.py", "bin", "python -m chaoslab")],
)  # fmt: skip
def test_the_next_command_is_named_as_shortly_as_the_shell_finds_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, typed: str, path: str, told: str
) -> None:
    for folder in ("bin", "other", "chaoslab"):
        (here / folder).mkdir()
        (here / folder / "chaoslab").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(here / path) if path else "")
    monkeypatch.setattr("sys.argv", [typed])
    assert launch._get_program_name() == told


def test_settings_prints_the_example_file(typed: Typed) -> None:
    assert typed.out("settings") == (ROOT / ".env.example").read_text()


def test_help_shows_the_first_commands_and_all_the_others_where_it_is_asked_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = execute([sys.executable, "-m", "chaoslab", "--help"], check=True).stdout
    assert main(["--all"]) == 0
    whole = capsys.readouterr().out
    shown = {name for names in GROUPS.values() for name in names}
    assert re.findall(r"^  ([a-z-]+) ", short, flags=re.MULTILINE) == [name for name in COMMANDS if name in shown]
    assert re.findall(r"^  ([a-z-]+) ", whole, flags=re.MULTILINE) == [*COMMANDS]
    assert len(short.splitlines()) < 60
    assert max(map(len, whole.splitlines())) <= 80
    files = {path.stem for path in Path(cli.__file__).parent.glob("[a-z]*.py")}
    assert {name.replace("-", "_") for name in COMMANDS} == files, "a command's file is in no group"


def test_every_command_has_help() -> None:
    for command in (*COMMANDS, "run"):
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])


@pytest.mark.parametrize(
    ("given", "both"),
    [
        (["faults", "latency", "--json", "timeout"], ('"fault": "latency"', '"fault": "timeout"')),
        (["settings", "--effective", "SEED=7", "--json", "TOXIC_PROB=0.7"], ('"value": "7"', '"value": "0.7"')),
        (["check", "one.toml", "--json", "two.toml"], ('"file": "one.toml"', '"file": "two.toml"')),
    ],
    ids=lambda given: " ".join(given),
)
@pytest.mark.usefixtures("here")
def test_words_of_one_kind_may_stand_on_both_sides_of_an_option(
    given: list[str], both: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(given)
    told = capsys.readouterr()
    assert all(part in told.out for part in both), told


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_in_a_commands_help_looks_like_a_secret(name: str) -> None:
    # What is printed is masked at the stream, and "KEY=VALUE" was shown as "KEY=***".
    parser = argparse.ArgumentParser(prog=name)
    importlib.import_module(f"chaoslab.cli.{name.replace('-', '_')}").arguments(parser)
    assert "***" not in clean_text(parser.format_help())


# The others hand theirs on as a whole.
@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"agent", "exec", "manager", "tools"}))
def test_a_command_reads_each_option_that_it_adds(name: str) -> None:
    command = importlib.import_module(f"chaoslab.cli.{name.replace('-', '_')}")
    command.arguments(parser := argparse.ArgumentParser(add_help=False))
    nodes = list(ast.walk(ast.parse(inspect.getsource(command))))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    read = texts | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    added = {action.dest for action in parser._actions if texts.intersection(action.option_strings)}
    assert added <= read
