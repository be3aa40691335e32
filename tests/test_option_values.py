"""Values of options that cannot be meant: each is one line that names the option and tells what is right."""

import os
from pathlib import Path

import pytest

from tests.cli_parts import Typed

ROUTE = ["--route", "crm=http://127.0.0.1:9"]
SECONDS = "should be a number above 0, up to 315360000 (ten years)"
SEED = "should be a whole number from 0 to 9223372036854775807"
EMPTY = "it is empty: give a value, or leave it out"
CASES: list[tuple[list[str], str]] = [
    *((["gateway", *ROUTE, "--timeout", each], f"argument --timeout: {each or repr('')} {SECONDS}")
      for each in ("-1", "0", "nan", "inf", "soon", "")),
    (["exec", *ROUTE, "--timeout", "-1", "--", "true"], f"argument --timeout: -1 {SECONDS}"),
    (["exec", *ROUTE, "--fact", "", "--", "true"], f"argument --fact: {EMPTY}"),
    *(([*command, "--seed", each, *more], f"argument --seed: {each or repr('')} {SEED}")
      for command, more in ((["gateway", *ROUTE], []), (["exec", *ROUTE], ["--", "true"]), (["mcp"], ["--", "true"]),
                            (["faults", "check"], []))
      for each in ("-1", "x", "", str(2**63))),
    *((["faults", "check", "--jobs", each], f"argument --jobs: {each} should be a whole number from 1 to 1024")
      for each in ("0", "-1", "x", "99999")),
    (["faults", "check", "--calls", "2"], "argument --calls: 2 should be a whole number from 3 to 1000000000"),
    (["faults", ""], "no fault is called '': known are agent_dies, auth_error"),
    *((["demo", "--chaos-level", each], f"argument --chaos-level: {each or repr('')} should be a number from 0 to 10")
      for each in ("11", "x", "nan", "")),
    *((["run", f"--{name}", ""], f"argument --{name}: {EMPTY}")
      for name in ("world", "prompts", "trials", "seed", "jobs")),
    *(([*command, "--logs", "", *more], f"argument --logs: {EMPTY}")
      for command, more in ((["test"], []), (["stress", "x"], []), (["runs"], []), (["tools"], []), (["manager"], []),
                            (["agent"], []), (["gateway", *ROUTE], []), (["exec", *ROUTE], ["--", "true"]),
                            (["mcp"], ["--", "true"]))),
    *(([command, "--state", ""], f"argument --state: {EMPTY}") for command in ("manager", "agent")),
    (["init", ""], f"argument DIR: {EMPTY}"),
    (["init", " "], f"argument DIR: {EMPTY}"),
    (["check", ""], f"argument FILE: {EMPTY}"),
    (["test", ""], f"argument SCENARIO: {EMPTY}"),
    (["test", "--junit", ""], f"argument --junit: {EMPTY}"),
    (["stress", ""], f"argument SCENARIO: {EMPTY}"),
    (["stress", "x", "--chart", ""], f"argument --chart: {EMPTY}"),
    (["stress", "x", "--chart", "folder"], "--chart folder: this is a folder; name a file in it"),
    (["stress", "folder"], "folder: this is a folder; name a file in it"),
    (["report", "--format", "html", "--out", ""], f"argument --out: {EMPTY}"),
    (["charts", "--out", ""], f"argument --out: {EMPTY}"),
    (["toxiproxy", "--config", ""], f"argument --config/-config: {EMPTY}"),
    (["check", "folder"], "no scenario is in folder: its file is called something.chaos.yaml"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), CASES, ids=[" ".join(arguments) for arguments, _ in CASES])
def test_a_value_that_cannot_be_meant_is_one_line(arguments: list[str], said: str, here: Path, typed: Typed) -> None:
    (here / "folder").mkdir()
    assert said in typed.refused(*arguments)
    assert [*here.rglob("*")] == [here / "folder"]


@pytest.mark.parametrize("option", ["--junit", "--chart"])
def test_a_place_where_nothing_can_be_written_is_told_before_anything_runs(
    option: str, here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != (Path("folder"), os.W_OK))
    (here / "folder").mkdir()
    command = ["test"] if option == "--junit" else ["stress", "x.chaos.yaml"]
    said = f"{option} folder/a.svg: nothing can be written there: make it writable, or name another place\n"
    assert typed.refused(*command, option, "folder/a.svg") == said


def test_a_folder_in_place_of_a_file_is_told_with_a_file_in_it(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "refund.chaos.yaml").write_text("agent: a:b\n", encoding="utf-8")
    assert "name a file in it, such as refund.chaos.yaml" in typed.refused("stress", tmp_path)
