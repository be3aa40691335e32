"""Completion: a shell gets commands, options and values from the parsers of the commands."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaoslab.cli import COMMANDS, completion, main
from chaoslab.cli.completion import SCRIPTS, candidates


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs, two files and a folder of scenarios, in which commands are completed."""
    for name in ("20260601-090000", "20260602-090000", "latest"):
        (tmp_path / "logs" / name).mkdir(parents=True)
    (tmp_path / "chaos").mkdir()
    (tmp_path / "refund.chaos.yaml").write_text("")
    (tmp_path / "other.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["sho"], ["show"]),
        (["--v"], ["--version"]),
        (["show", "--st"], ["--stages"]),
        (["show", "l"], ["latest"]),
        (["show", "latest", ""], []),
        (["show", "--prompt", "2026"], []),
        (["show", "--prompt", "1", "20260601"], ["20260601-090000"]),
        (["charts", "latest", "20260602"], ["20260602-090000"]),
        (["agent", "--run", "20260602"], ["20260602-090000"]),
        (["report", "--format", "j"], ["json", "junit"]),
        (["report", "--format=ju"], ["--format=junit"]),
        (["report", "--format", "=", "ju"], ["junit"]),
        (["report", "--format", "="], ["charts", "csv", "html", "json", "junit", "markdown", "parquet"]),
        (["gateway", "--fault", "lost_rep"], ["lost_reply"]),
        (["gateway", "--fault", "latency:crm", "--faul"], ["--fault"]),
        (["faults", "ch"], ["check"]),
        (["test", "r"], ["refund.chaos.yaml"]),
        (["check", ""], ["chaos/", "logs/", "refund.chaos.yaml"]),
        (["lab", "TOXIC_PR"], ["TOXIC_PROB="]),
        (["show", "--outcome", "har"], ["harm"]),
        (["exec", "--", "--po"], []),
        (["nonsense", ""], []),
        (["nonsense"], []),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_last_word_is_completed(typed: list[str], offered: list[str]) -> None:
    assert candidates(typed) == offered


@pytest.mark.usefixtures("folder")
def test_an_option_that_was_given_is_not_offered_again() -> None:
    assert "--stages" not in candidates(["show", "--stages", "--"])
    assert "--trial" in candidates(["show", "--trial", "p1", "--"])


def test_every_command_completes_its_options() -> None:
    assert candidates([""]) == sorted([*COMMANDS, "--help", "--version"])
    for command in COMMANDS:
        assert all(option.startswith("--") for option in candidates([command, "--"])), command


BASH = """\
chaoslab() { "$PYTHON" -m chaoslab "$@"; }
eval "$(chaoslab completion bash)"
complete -p chaoslab
COMP_WORDS=(chaoslab show 2026) COMP_CWORD=2; _chaoslab; echo "${COMPREPLY[*]}"
COMP_WORDS=(chaoslab exec --fault = late) COMP_CWORD=4; _chaoslab; echo "${COMPREPLY[*]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_asks_the_command(folder: Path) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH], env={"PYTHON": sys.executable}, cwd=folder, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "complete -o default -F _chaoslab chaoslab",
        "20260601-090000 20260602-090000",
        "latency",
    ]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_is_valid_to_its_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=SCRIPTS[shell], text=True).returncode == 0


def test_the_command_prints_a_script_or_candidates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    assert capsys.readouterr().out == completion.SCRIPTS["fish"]
    assert main(["completion", "zsh", "--", "stre"]) == 0
    assert capsys.readouterr().out == "stress\n"
