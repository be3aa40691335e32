"""A run is found by its folder, by its path, by the name that it prints, or as the latest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chaoslab.core.events import RunStarted
from chaoslab.record.log import Log
from chaoslab.reports.folder import find, read

NAME = "v3-1f2e0011aabbccdd"


def run(logs: Path, folder: str, *, name: str = "", seed: int = 1) -> Path:
    """A run's folder with its first line."""
    name = name or folder
    with Log(logs / folder, "info", run=name, origin=0.0) as log:
        log.write(RunStarted(seed=seed, settings={}, plan={}, prompts=1, now="2026-06-01T09:00:00Z", model="any"))
    (logs / folder / "run.json").write_text(json.dumps({"name": name, "origin": 0.0, "now": ""}))
    return logs / folder


def test_a_run_has_a_folder_a_path_a_name_and_may_be_the_latest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, "20261120-090000")
    made = run(tmp_path, "20261122-090000", name=NAME)
    (tmp_path / "latest").symlink_to(made.name)
    for known in (made.name, str(made), str(made / "info.log"), NAME, f"{tmp_path}/{NAME}", "latest"):
        assert find(known, logs=tmp_path).resolve() == made, known
        assert read(known, logs=tmp_path).records[0].run == NAME
    assert find("20261120-090000", logs=tmp_path).name == "20261120-090000"
    assert capsys.readouterr().err == ""


def test_of_several_runs_of_one_name_the_newest_is_taken_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, folder in enumerate(
        ("20261122-090000-10", "20261122-090000-9", "20261122-090000", "20261121-235959-11"), 1
    ):
        run(tmp_path, folder, name=NAME, seed=seed)
    (tmp_path / "latest").symlink_to("20261122-090000-10")
    assert find(NAME, logs=tmp_path).name == "20261122-090000-10"
    line = f"4 runs are called {NAME}: {tmp_path / '20261122-090000-10'} is the newest of them\n"
    assert capsys.readouterr().err == line


def test_a_folder_of_that_name_comes_first(tmp_path: Path) -> None:
    mine = run(tmp_path, "mine")
    run(tmp_path, "20261122-090000", name="mine")
    assert find("mine", logs=tmp_path) == mine


def test_a_name_that_no_run_has_is_refused_with_the_nearest(tmp_path: Path) -> None:
    run(tmp_path, "20261122-090000", name=NAME)
    with pytest.raises(
        LookupError, match=re.escape(f"no run with logs is called 'v3-1f2e0011aabb': did you mean '{NAME}'?")
    ):
        find("v3-1f2e0011aabb", logs=tmp_path)
    with pytest.raises(LookupError, match=r"did you mean '20261122-090000'\?"):
        find("20261122-09000", logs=tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 7}', "\xff", "[" * 100_000, '{"name": "v3"'])
def test_a_run_that_is_badly_described_is_none_of_that_name_and_in_nobodys_way(tmp_path: Path, text: str) -> None:
    broken = run(tmp_path, "20261123-090000", name=NAME)
    (broken / "run.json").write_bytes(text.encode("latin-1"))
    made = run(tmp_path, "20261122-090000", name=NAME)
    assert find(NAME, logs=tmp_path) == made
    (tmp_path / "20261124-090000").mkdir()
    (tmp_path / "20261124-090000" / "run.json").mkdir()
    assert find(NAME, logs=tmp_path) == made
