"""A run is found by its folder, by its path, by the name that it prints, or as the latest."""

import json
import re
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.core.events import PromptAttempt, RunStarted
from chaoslab.record.log import Log
from chaoslab.reports.places import find_run_folder, read_history

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
        assert find_run_folder(known, logs=tmp_path).resolve() == made, known
        assert read_history(known, logs=tmp_path).records[0].run == NAME
    assert find_run_folder("20261120-090000", logs=tmp_path).name == "20261120-090000"
    assert capsys.readouterr().err == ""


def test_without_its_link_the_latest_run_is_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "20261120-090000")
    newest = run(tmp_path, "20261122-090000", name=NAME)
    link = tmp_path / "latest"
    assert (
        find_run_folder("latest", logs=tmp_path)
        == find_run_folder(str(link))
        == find_run_folder("latest~0", logs=tmp_path)
        == newest
    )
    link.symlink_to("20261123-090000")  # a run that was deleted
    assert find_run_folder("latest", logs=tmp_path) == newest
    gone = "the latest run, 20261123-090000, is not there any more: this is 20261122-090000\n"
    assert capsys.readouterr().err == gone
    (tmp_path / "20261123-090000").mkdir()  # or that has not written yet
    with pytest.raises(LookupError, match="no run with logs is called 'latest'"):
        find_run_folder("latest", logs=tmp_path)


def test_a_run_that_is_not_there_is_told_the_others_each_once_by_its_folder(tmp_path: Path) -> None:
    run(tmp_path, "20261120-090000", name="py-1f2e0011aabbccdd")
    run(tmp_path, "20261122-090000", name=NAME)
    with pytest.raises(LookupError) as error:
        find_run_folder("nothing", logs=tmp_path)
    assert str(error.value).endswith(": known are 20261120-090000, 20261122-090000")


def test_of_several_runs_of_one_name_the_newest_is_taken_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, folder in enumerate(
        ("20261122-090000-10", "20261122-090000-9", "20261122-090000", "20261121-235959-11"), 1
    ):
        run(tmp_path, folder, name=NAME, seed=seed)
    (tmp_path / "latest").symlink_to("20261122-090000-10")
    assert find_run_folder(NAME, logs=tmp_path).name == "20261122-090000-10"
    line = f"4 runs are called {NAME}: {tmp_path / '20261122-090000-10'} is the newest of them\n"
    assert capsys.readouterr().err == line


def test_a_folder_of_that_name_comes_first(tmp_path: Path) -> None:
    mine = run(tmp_path, "mine")
    run(tmp_path, "20261122-090000", name="mine")
    assert find_run_folder("mine", logs=tmp_path) == mine


def test_a_run_without_its_info_log_is_refused(tmp_path: Path) -> None:
    tried = PromptAttempt(
        prompt_index=1, prompt="a prompt", response="42", status="ok", start_time="2026-06-01T09:00:00Z",
        end_time="2026-06-01T09:00:01Z", duration_s=1.0, error_type="none", prompt_attempt=1, error="",
    )  # fmt: skip
    with Log(tmp_path / "mine", "agent", run="mine", origin=0.0) as log:
        log.write(tried, trial="p1.r1")
    with pytest.raises(LookupError, match=r"do not tell how its run began: info\.log is missing or cut"):
        read_history("mine", logs=tmp_path)


def test_a_name_that_no_run_has_is_refused_with_the_nearest(tmp_path: Path) -> None:
    run(tmp_path, "20261122-090000", name=NAME)
    with pytest.raises(
        LookupError, match=re.escape(f"no run with logs is called 'v3-1f2e0011aabbx': did you mean '{NAME}'?")
    ):
        find_run_folder("v3-1f2e0011aabbx", logs=tmp_path)
    with pytest.raises(LookupError, match=r"did you mean '20261122-090000'\?"):
        find_run_folder("20261122-09001", logs=tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 7}', "\xff", "[" * 100_000, '{"name": "v3"'])
def test_a_run_that_is_badly_described_is_none_of_that_name_and_in_nobodys_way(tmp_path: Path, text: str) -> None:
    (run(tmp_path, "20261123-090000", name=NAME) / "run.json").write_bytes(text.encode("latin-1"))
    made = run(tmp_path, "20261122-090000", name=NAME)
    assert find_run_folder(NAME, logs=tmp_path) == made
    (tmp_path / "20261124-090000").mkdir()
    (tmp_path / "20261124-090000" / "run.json").mkdir()
    assert find_run_folder(NAME, logs=tmp_path) == made


@pytest.fixture
def several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs in logs/, of which the third is the latest: the fourth has not begun."""
    logs = tmp_path / "logs"
    for folder, name in (("20261120-090000", ""), ("20261121-090000", NAME), ("20261122-090000", ""), ("mine", "")):
        run(logs, folder, name=name)
    (logs / "20261123-090000").mkdir()
    (logs / "20261123-090000" / "run.json").write_text(json.dumps({"name": "x", "origin": 0.0, "now": ""}))
    (logs / "latest").symlink_to("20261122-090000")
    monkeypatch.chdir(tmp_path)
    return logs


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("latest~0", "20261122-090000"),
        ("latest~1", "20261121-090000"),
        ("latest~2", "20261120-090000"),
        ("latest~3", "mine"),
        ("20261121", "20261121-090000"),
        ("logs/20261121", "20261121-090000"),
        ("m", "mine"),
        (NAME[:6], "20261121-090000"),
    ],
)
def test_a_run_is_named_by_how_long_ago_it_was_or_by_its_beginning(several: Path, name: str, folder: str) -> None:
    assert find_run_folder(name).resolve() == several / folder
    assert read_history(name).records[0].run == (NAME if folder == "20261121-090000" else folder)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("2026112", "'2026112' is the beginning of 3 runs: 20261122-090000, 20261121-090000, 20261120-090000"),
        ("latest~4", "there is no latest~4: the oldest run in logs/ is latest~3, mine"),
        ("latest~x", "no run with logs is called 'latest~x': did you mean 'latest'?"),
        ("20261123", "no run with logs is called '20261123': did you mean '20261121-090000'?"),
    ],
)
@pytest.mark.usefixtures("several")
def test_a_name_that_is_none_or_several_gets_one_line(name: str, line: str) -> None:
    with pytest.raises(LookupError) as error:
        find_run_folder(name)
    if "did you mean" in line:
        assert error.value.args[0].startswith(line.partition(":")[0])
    else:
        assert error.value.args == (line,)


def test_only_a_run_s_own_name_may_be_a_pattern() -> None:
    with pytest.raises(LookupError, match=r"'l\?gs/2026\*': only the run's own name may be a pattern, as in logs/2026"):
        lab.load("l?gs/2026*")


def test_many_candidates_are_counted(tmp_path: Path) -> None:
    for number in range(1, 10):
        run(tmp_path, f"20261122-09000{number}")
    with pytest.raises(LookupError) as error:
        find_run_folder("2026", logs=tmp_path)
    assert error.value.args[0].endswith(", 20261122-090004 and 3 more")
    # without a latest the newest counts as it
    assert find_run_folder("latest~1", logs=tmp_path).name == "20261122-090008"


def test_the_beginning_of_a_name_that_several_runs_have_is_the_newest_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("20261120-090000", "20261122-090000"):
        run(tmp_path, folder, name=NAME)
    assert find_run_folder("v3-1", logs=tmp_path).name == "20261122-090000"
    assert capsys.readouterr().err.startswith(f"2 runs are called {NAME}: ")


@pytest.mark.parametrize("command", ["show", "summary", "report", "charts", "replay"])
@pytest.mark.usefixtures("several")
def test_every_command_that_takes_a_run_takes_each_of_these_names(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "2026112"]) == 2
    assert capsys.readouterr().err.startswith("'2026112' is the beginning of 3 runs: 20261122-090000, ")
    assert main([command, "latest~9"]) == 2
    assert capsys.readouterr().err == "there is no latest~9: the oldest run in logs/ is latest~3, mine\n"
    main([command, "latest~1"])
    said = capsys.readouterr()
    assert "no run" not in said.err.replace("no run_", "")
    assert "beginning of" not in said.err
