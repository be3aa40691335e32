"""A sweep: its grid, the runs that it keeps, and its charts and page."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaoslab.agent.assembly import make_run_start_event
from chaoslab.agent.prompts import FILE, load_prompts, prompts_to_json
from chaoslab.cli import sweep as command
from chaoslab.config import settings
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError
from chaoslab.core.events import PromptStarted, RunFinished
from chaoslab.lab import launch
from chaoslab.lab.launch import LabEnd
from chaoslab.lab.sweep import CellStopped, build_grid, run_grid_cells
from chaoslab.record.runs import Run
from tests.event_parts import prompt_finished

ASKED = load_prompts(FILE)[:2]
GIVEN = ("TOXIC_PROB=0,0.4", "ERROR_PROB=0,0.2", "WORLD=virtual", "TRIALS=2")


@pytest.mark.parametrize(
    ("words", "cells"),
    [
        (["TOXIC_PROB=0,0.1", "TOXICS=timeout,latency"], ["TOXIC_PROB=0", "TOXIC_PROB=0.1"]),
        (["TOXICS=timeout,latency;refused"], ["TOXICS=timeout,latency", "TOXICS=refused"]),
        (["FALLBACK=none,direct", "SEED=3"], ["FALLBACK=none", "FALLBACK=direct"]),
        (["AGENT=naive,careful", "ERROR_PROB=0,1"],
         [f"AGENT={agent} ERROR_PROB={chance}" for agent in ("naive", "careful") for chance in "01"]),
    ],
    ids=str,
)  # fmt: skip
def test_values_with_commas_make_a_grid_and_a_value_with_commas_of_its_own_is_one(
    words: list[str], cells: list[str]
) -> None:
    assert list(map(str, build_grid(words))) == cells


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["TOXIC_PROB=0.1"], "no setting has several values: a sweep takes one or two"),
        (["TOXC_PROB=0,1"], "TOXC_PROB is not a setting (command line); did you mean TOXIC_PROB?"),
        (["TOXIC_PROB=0,7"], "TOXIC_PROB=7 (command line) should be a chance from 0 to 1"),
        (["TOXIC_PROB=0,1", "ERROR_PROB=0,1", "AGENT=naive,careful"], "have several values: a sweep takes one or two"),
        (["SEED=1,2"], "SEED has several values, and no chart is drawn over it"),
        (["TOXIC_PROB=0,0,1"], "TOXIC_PROB=0,0,1 has a value twice"),
        (["ERROR_PROB"], "is not understood"),
        (["TOXIC_PROB=0,", "ERROR_PROB=0,1"], "TOXIC_PROB=0, should be a chance"),
    ],
    ids=str,
)
def test_a_grid_that_cannot_be_is_refused_in_a_line(words: list[str], said: str) -> None:
    with pytest.raises(SettingError) as refused:
        build_grid(words)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_values_that_make_has_put_into_the_environment_too_are_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOXIC_PROB", "0,0.1")
    assert list(map(str, build_grid(["TOXIC_PROB=0,0.1"]))) == ["TOXIC_PROB=0", "TOXIC_PROB=0.1"]


class Lab:
    """Writes a run of two prompts for each start, and may end one before its end."""

    def __init__(self, logs: Path) -> None:
        self.logs, self.starts, self.code = logs, 0, 0

    def __call__(self, given: Sequence[str]) -> LabEnd:
        self.starts += 1
        chosen = settings.load_settings(given)
        run = Run.create(self.logs, now=chosen.now)
        run.link_as_latest()
        with run.open_log("info") as log:
            log.write(make_run_start_event(chosen, plan_from_settings(chosen), ASKED, 2, chosen.now))
            for number, prompt in enumerate(ASKED, 1):
                key, text = f"p{number}.r1", str(prompt.prompt)
                log.write(PromptStarted(prompt_index=number, prompt=text, effects=[]), trial=key)
                log.write(
                    prompt_finished("", prompt_index=number, prompt=text, duration_s=0.5 * number),
                    trial=key,
                )  # fmt: skip
            if not self.code:
                log.write(RunFinished(received=2, processed=2, succeeded=2, duration_s=1.0))
        return LabEnd(self.code, run.folder)


def test_a_sweep_goes_on_from_where_it_stopped_and_does_again_what_has_changed(tmp_path: Path) -> None:
    lab, cells, asked = Lab(tmp_path), build_grid(GIVEN), prompts_to_json(ASKED)
    found = run_grid_cells(cells, asked, lab, logs=tmp_path)
    assert [next(found).kept for _ in range(2)] == [False, False]
    lab.code = 130
    with pytest.raises(CellStopped, match=r"stopped at TOXIC_PROB=0\.4 ERROR_PROB=0, 2 done before it"):
        next(found)
    lab.code = 0
    again = list(run_grid_cells(cells, asked, lab, logs=tmp_path))
    assert [one.kept for one in again] == [True, True, False, False]
    assert [one.left_s is None for one in again] == [True, True, False, False]
    assert again[-1].left_s == 0
    assert lab.starts == 5
    assert not any(one.kept for one in run_grid_cells(cells, asked[:1], lab, logs=tmp_path)), "other prompts"
    assert not any(one.kept for one in run_grid_cells(build_grid([*GIVEN, "SEED=2"]), asked, lab, logs=tmp_path))


@pytest.mark.usefixtures("here")
def test_the_command_draws_the_grid_and_writes_its_table_and_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = Lab(Path("logs"))
    monkeypatch.setattr(launch, "start_lab", lambda given, **_: lab(given))
    monkeypatch.setattr(launch, "read_and_check_inputs", lambda _: ASKED)
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    assert command.run(parser.parse_args([*GIVEN, "--out", "out"])) == 4, "no trial met a fault"
    told = capsys.readouterr()
    assert told.err.splitlines()[0].startswith("1/4 TOXIC_PROB=0 ERROR_PROB=0: ")
    assert told.out.splitlines()[0].split()[:3] == ["TOXIC_PROB", "ERROR_PROB", "well"]
    assert [row.split()[:2] for row in told.out.splitlines()[1:5]] == [
        ["0", "0"],
        ["0", "0.2"],
        ["0.4", "0"],
        ["0.4", "0.2"],
    ]
    drawn = {path.name for path in Path("out").glob("*.png")}
    assert drawn == {"time_vs_toxic_prob.png", "success_vs_toxic_prob.png", "heat_map.png"}, "none met a fault"
    page = Path("out/sweep.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert page.count("<tr>") == 5
    assert command.run(parser.parse_args([*GIVEN, "--out", "out", "--json", "--quiet"])) == 4
    told = capsys.readouterr()
    assert (lab.starts, told.err) == (4, "this proves nothing: no trial met a fault\n")
    assert [cell["levels"] for cell in json.loads(told.out)["cells"]][3] == {"TOXIC_PROB": "0.4", "ERROR_PROB": "0.2"}
    Path("file").touch()
    assert command.run(parser.parse_args([*GIVEN, "--out", "file/out", "--quiet"])) == 2
    assert capsys.readouterr().err == "file/out cannot be written: Not a directory\n"
