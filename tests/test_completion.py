"""Completion: a shell gets commands, options and values from the parsers of the commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaoslab.cli import COMMANDS
from tests.cli_parts import execute
from tests.test_import_cost import HEAVY, loaded_by


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two runs, two files and a folder of scenarios, in which commands are completed."""
    for name in ("20260601-090000", "20260602-090000", "latest"):
        (tmp_path / "logs" / name).mkdir(parents=True)
    (tmp_path / "chaos").mkdir()
    (tmp_path / "refund.chaos.yaml").write_text("")
    (tmp_path / "other.yaml").write_text("")
    return tmp_path


# Each line is completed in a fork, as a press of Tab ends the process.
TABS = """\
import os, sys, chaoslab.cli
os.environ.update(_ARGCOMPLETE="1", _ARGCOMPLETE_STDOUT_FILENAME="/dev/stdout", _ARGCOMPLETE_IFS=" ",
    _ARGCOMPLETE_COMP_WORDBREAKS=" \\t\\n=:")
sys.argv = ["chaoslab"]
for line in sys.stdin.read().splitlines():
    if not os.fork():
        os.environ.update(COMP_LINE=line, COMP_POINT=str(len(line)))
        chaoslab.cli.main()
    os.wait()
    print(flush=True)
"""


def completed(folder: Path, *lines: str) -> list[list[str]]:
    """The candidates for each line, sorted."""
    given = "".join(f"chaoslab {line}\n" for line in lines)
    done = subprocess.run([sys.executable, "-c", TABS], input=given, cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""
    return [sorted(offered.split()) for offered in done.stdout.splitlines()]


OFFERED = {
    "sho": ["show"],
    "--v": ["--version"],
    "show --st": ["--stages"],
    "show l": ["latest"],
    "show latest ": [],
    "show --prompt 2026": [],
    "show --prompt 1 20260601": ["20260601-090000"],
    "show logs/2026": ["logs/20260601-090000/", "logs/20260602-090000/"],
    "charts latest 20260602": ["20260602-090000"],
    "agent --run 20260602": ["20260602-090000"],
    "report --format j": ["json", "junit"],
    "report --format=ju": ["junit"],
    "report --format=": ["charts", "csv", "html", "json", "junit", "markdown", "parquet"],
    "gateway --fault lost_rep": ["lost_reply"],
    "gateway --fault latency:crm --faul": ["--fault"],
    "faults ch": ["check"],
    "test r": ["refund.chaos.yaml"],
    "check ": ["chaos/", "logs/", "refund.chaos.yaml"],
    "settings --effective ../no": [],
    "lab TOXIC_PR": ["TOXIC_PROB="],
    "show --outcome har": ["harm"],
    "nonsense": [],
}


def test_the_last_word_is_completed(folder: Path) -> None:
    assert dict(zip(OFFERED, completed(folder, *OFFERED), strict=True)) == OFFERED


def test_an_option_that_was_given_is_not_offered_again(folder: Path) -> None:
    given, other = completed(folder, "show --stages --", "show --trial p1 --")
    assert "--stages" not in given
    assert "--trial" in other


def test_every_command_completes_its_options(folder: Path) -> None:
    commands, *options = completed(folder, "", *(f"{command} --" for command in COMMANDS))
    assert commands == sorted(COMMANDS)
    for command, offered in zip(COMMANDS, options, strict=True):
        assert "--help" in offered, command


@pytest.mark.parametrize("line", ["show ", "lab TOX", "gateway --fault l", "show --outcome h", "test ", "sho"])
def test_a_press_of_tab_loads_no_heavy_library(line: str) -> None:
    pressed = {"_ARGCOMPLETE": "1", "COMP_LINE": f"chaoslab {line}", "COMP_POINT": str(9 + len(line))}
    loaded = loaded_by(f"""\
import os, sys
os.environ.update({pressed}, _ARGCOMPLETE_STDOUT_FILENAME="/dev/null")
os._exit = sys.exit
from chaoslab.cli import main
try:
    main()
except SystemExit as done:
    assert done.code == 0""")
    assert "argcomplete" in loaded
    assert loaded & HEAVY == set()
    if line == "show ":
        assert "msgspec" not in loaded, "a log is read"


IN_A_SHELL = {
    "bash": """\
eval "$(chaoslab completion bash)"
COMP_LINE="chaoslab show 2026" COMP_POINT=18; _python_argcomplete chaoslab; echo "${COMPREPLY[*]}"
COMP_LINE="chaoslab exec --fault=late" COMP_POINT=26; _python_argcomplete chaoslab; echo "${COMPREPLY[*]}"
""",
    "fish": """\
chaoslab completion fish | source
complete -C "chaoslab show 2026" | string join " "
complete -C "chaoslab exec --fault=late" | string replace -- "--fault=" ""
""",
    "zsh": """\
compdef() { : }
_describe() { echo ${completions%:} }
eval "$(chaoslab completion zsh)"
words=(chaoslab)
BUFFER="chaoslab show 2026" CURSOR=18; _python_argcomplete
BUFFER="chaoslab exec --fault=late" CURSOR=26; _python_argcomplete
""",
}


@pytest.mark.parametrize("shell", IN_A_SHELL)
def test_a_shell_asks_the_command(shell: str, folder: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = folder / "bin" / "chaoslab"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m chaoslab "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    done = execute([shell, "-c", IN_A_SHELL[shell]], env={**os.environ, "PATH": path}, cwd=folder)
    runs, fault = done.stdout.splitlines()
    assert sorted(runs.split()) == ["20260601-090000", "20260602-090000"], done.stderr
    assert fault.removeprefix("--fault=").partition(":")[0].strip() == "latency"  # zsh gets it with a description
