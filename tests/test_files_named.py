"""A file that a user names is read in one way: no pipe is waited for, no device read to no end, no key passed over."""

import json
import os
from pathlib import Path

import pytest

from chaoslab.reports import places
from tests import warm
from tests.cli_parts import execute
from tests.reports.fake_run import FakeRun

EXEC = ("exec", "--route", "crm=http://127.0.0.1:9")
MCP = ("mcp",)
GATEWAY = ("gateway", "--route", "crm=http://127.0.0.1:9")
PIPE = "it is a named pipe, and only regular files are read"


def ran(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    done = execute([warm.python(), "-m", "chaoslab", *words], cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("command", [EXEC, MCP, GATEWAY], ids=["exec", "mcp", "gateway"])
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("pipe", None, f"pipe cannot be read: {PIPE}"),
        ("/dev/zero", None, "/dev/zero cannot be read: it is a device, and only regular files are read"),
        ("deep.json", "[" * 100_000, "deep.json is nested deeper than 50 levels"),
        ("typo.json", '{"seed": 7, "fault": []}', "typo.json has no key 'fault': did you mean 'faults'?"),
        ("twice.json", '{"seed": 7, "seed": 8}', 'twice.json has "seed" twice in one object: line 1 column 13'),
        ("far.json", '[{"fault": "latency", "target": "crm", "delay": 1}]', "far.json, fault 1: latency has no"),
        ("text.json", '{"faults": "latency"}', "text.json should hold a list of faults, or an object with seed and"),
    ],
)
def test_a_plan_that_is_wrong_is_one_line(
    command: tuple[str, ...], name: str, text: str | None, said: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    if text is not None:
        (tmp_path / name).write_text(text)
    end = () if command == GATEWAY else ("--", "true")
    code, printed = ran(tmp_path, *command, "--plan", name, *end)
    assert code == 2
    assert printed.startswith(said)
    assert printed.count("\n") == 1


def test_effects_in_json_are_read_in_the_same_way(tmp_path: Path) -> None:
    code, printed = ran(tmp_path, *EXEC, "--effects", "[" * 50_000, "--", "true")
    assert (code, printed) == (2, "--effects is nested deeper than 50 levels\n")
    code, printed = ran(tmp_path, *EXEC, "--fault", '{"a": ' + "[" * 50_000, "--", "true")
    assert (code, printed.count("\n")) == (2, 1)
    assert printed.endswith("is nested deeper than 50 levels\n")


def test_a_pipe_is_no_scenario(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.chaos.yaml")
    assert ran(tmp_path, "check", "a.chaos.yaml") == (2, f"a.chaos.yaml: it cannot be read: {PIPE}\n")


def test_a_pipe_is_no_ruling_and_is_not_waited_for(tmp_path: Path) -> None:
    folder = FakeRun(tmp_path / "run", prompts=2).write()
    os.mkfifo(folder / "rulings.jsonl")
    with pytest.raises(LookupError, match=PIPE):
        places.read_history(str(folder))
    for command in ("summary", "show", "report"):
        code, printed = ran(tmp_path, command, "run")
        assert code == 2, printed
        assert PIPE in printed


def test_a_pipe_is_no_run_json(tmp_path: Path) -> None:
    os.mkfifo(FakeRun(tmp_path / "logs" / "20260601-090000", prompts=2).write() / "run.json")
    code, printed = ran(tmp_path, "summary", "20260601-090000", "--json")
    assert code == 0
    assert json.loads(printed)
