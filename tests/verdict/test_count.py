"""A trial of which nothing is known is well nowhere: each open outcome on each surface that counts trials."""

import ast
import json
import re
import subprocess
import sys
from contextlib import closing
from itertools import product
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.standing import OPEN_MAX, Standing, StandingCount, classify_share
from chaoslab.analysis.verdict.table import ENDED_OPEN
from chaoslab.campaigns._gauge import CampaignMeasures
from chaoslab.cli import main
from chaoslab.config.settings import Settings
from chaoslab.core.events import RunFinished
from chaoslab.memory.store import Memory
from chaoslab.record.history import History
from chaoslab.reports import sweeps
from chaoslab.reports.gate import Gate, apply_gate
from chaoslab.surfaces.ui._watched import WatchedRun
from tests.cli_parts import Typed
from tests.test_readme import ROOT

AGENT = """
def refund(order):
    return "ok"


def price(order):
    return 30


def agent(prompt):
    try:
        price(17)
        refund(17)
    except Exception:
        return "Hm."
    return "Order 17 is refunded."
"""
FAULTS: dict[str, dict[str, Any]] = {
    "undone": {"fault": "refused", "target": "refund"},
    "unknown": {"fault": "wrong_value", "target": "refund"},
    "invalid": {"fault": "refused", "target": "refund", "calls": [9]},
    "unfinished": {"fault": "refused", "target": "refund"},
}
"""A fault by the outcome that it leads to; a trial is unfinished by what is cut from its log."""
LIVE = [outcome for outcome in ENDED_OPEN if outcome != "unfinished"]


def write_agent(folder: Path, outcome: str) -> None:
    """An agent of which this is the outcome. Where the fault changes nothing that counts, it words it anew."""
    text = AGENT if outcome != "unknown" else AGENT.replace("refund(17)\n", 'return f"Order 17: {refund(17)}."\n')
    (folder / "mine.py").write_text(text)


def write_scenario(folder: Path, outcome: str, **more: Any) -> str:
    write_agent(folder, outcome)
    data = {
        "name": "counted", "agent": "mine:agent", "tools": ["mine:refund"], "reads": ["mine:price"], "prompt": "Go.",
        "faults": [FAULTS[outcome]], "trials": 3, "expect": ["no_duplicate_effects"], **more,
    }  # fmt: skip
    (folder / "counted.chaos.json").write_text(json.dumps(data))
    return "counted.chaos.json"


def write_run(folder: Path, outcome: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of three trials with this outcome, written below `folder`/logs."""
    write_agent(folder, outcome)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("mine", None)
    import mine  # type: ignore[import-not-found]

    given = dict(FAULTS[outcome])
    fault = lab.inject(given.pop("fault"), given.pop("target"), **given)
    list(lab.run_many(
        mine.agent, "Go.", trials=3, tools=[mine.refund], reads=[mine.price], faults=[fault], logs=folder / "logs"
    ))  # fmt: skip
    run = (folder / "logs" / "latest").resolve()
    if outcome == "unfinished":
        lines = (run / "info.log").read_text().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["kind"] in ("run_started", "prompt_started")]
        (run / "info.log").write_text("".join(kept))
    sys.modules.pop("mine", None)
    assert {str(verdict.outcome) for verdict in RunReport.from_folder(run).verdicts.values()} == {outcome}
    return run


@pytest.fixture(params=ENDED_OPEN)
def run(request: pytest.FixtureRequest, here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_run(here, request.param, monkeypatch)


# --- a run that is over ---


def test_the_report_counts_it_as_open(run: Path) -> None:
    report = RunReport.from_folder(run)
    assert set(map(str, report.standings.values())) == {"open"}
    ended = report.success.value.ended
    assert (ended.well, ended.bad, ended.open, ended.well_share) == (0, 0, 3, None)


@pytest.mark.usefixtures("run")
def test_the_list_of_runs_counts_it_as_open(typed: Typed) -> None:
    (row,) = json.loads(typed.out("runs", "--json"))["runs"]
    assert "3 open" in typed.out("runs")
    assert "ended well" not in typed.out("runs")
    assert not row.get("well")


@pytest.mark.usefixtures("run")
def test_the_summary_says_that_it_is_open(typed: Typed) -> None:
    text = typed.out("summary")
    assert text.startswith("No conclusion")
    assert "0 of 0 judged trials ended well; 3 open." in text


@pytest.mark.usefixtures("run")
def test_json_lets_none_pass(typed: Typed) -> None:
    data = json.loads(typed.out("report", "latest", "--out", "-", "--format", "json"))
    assert data["verdict"]["ended"] == {"well": 0, "bad": 0, "open": 3}


def test_a_row_of_a_sweep_counts_it_as_open(run: Path) -> None:
    cell = sweeps.GridCell((("TOXIC_PROB", "0.1"),), (), Settings())
    done = sweeps.DoneCell(cell, run, kept=False, number=1, left_s=None)
    row = sweeps.cell_to_json(done)
    assert row["ended"] == {"well": 0, "bad": 0, "open": 3}
    assert row["interval"] is None
    assert "none judged, 3 open" in sweeps.render_progress_line(done, 1)
    assert sweeps.render_table([done])[1].split()[1:4] == ["–", "–", "3"]


def test_a_campaign_counts_it_as_open(run: Path, tmp_path: Path) -> None:
    gauge = CampaignMeasures(tmp_path / "campaign")  # counts what comes after it
    copytree(run, tmp_path / "campaign" / run.name)
    gauge.read_new_records()
    gauge.close()
    if any(True for _ in History.read(run).find_events(RunFinished)):
        assert gauge.trial_counts == StandingCount(0, 0, 3)
    else:  # its run goes on, as far as the campaign knows
        assert gauge.trial_counts == StandingCount()
    assert gauge.compute_measure("failed") == 0


def test_the_page_of_the_run_counts_it_as_open(run: Path) -> None:
    with closing(WatchedRun(run)) as watched:
        while watched.poll_logs():
            pass
        state = watched.get_state()
    assert (state["well"], state["bad"]) == (0, 0)


@pytest.mark.parametrize("gate", [Gate(0.0), Gate(0.9), Gate(fail_on=("harm",))])
def test_no_requirement_on_the_run_is_met(run: Path, gate: Gate) -> None:
    assert apply_gate(gate, RunReport.from_folder(run).verdicts).code in (1, 4)


def test_the_memory_learns_nothing_good_from_it(run: Path, here: Path) -> None:
    memory = Memory(here / "memory.db", make=True)
    memory.add([run])
    columns, rows = memory.read_table("experiments")
    assert not [row for each in rows if (row := dict(zip(columns, each, strict=True)))["tried"]]


# --- while it runs ---


@pytest.mark.parametrize(("outcome", "accept"), [*product(LIVE, (["correct", "degraded"], None))])
def test_a_scenario_of_it_proves_nothing(outcome: str, accept: Any, here: Path, capsys: Any) -> None:
    name = write_scenario(here, outcome, **({"accept": accept} if accept else {}))
    assert main(["test", name, "--no-logs", "--json"]) == 4
    (found,) = json.loads(capsys.readouterr().out)["scenarios"]
    assert found["passed"] == 0


@pytest.mark.parametrize("outcome", [each for each in ENDED_OPEN if each != "undone"])
def test_no_scenario_accepts_what_proves_nothing(outcome: str, here: Path, typed: Typed) -> None:
    """It may say that what is left undone is enough."""
    error = typed.refused("check", write_scenario(here, "undone", accept=[outcome]))
    assert outcome in error


@pytest.mark.parametrize("outcome", LIVE)
def test_a_baseline_is_not_written_of_it(outcome: str, here: Path, typed: Typed) -> None:
    ended = typed("gate", write_scenario(here, outcome), "--baseline", "base.json", "--write", "--budget", "3")
    assert ended.code == 4, ended.out
    assert "3 of 3 trials well" not in ended.out
    assert not Path("base.json").exists()


def test_a_gate_beside_a_baseline_that_is_well_proves_nothing(
    here: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write_scenario(here, "unknown")
    gate = "gate", name, "--baseline", "base.json", "--budget", "60"
    (here / "mine.py").write_text(AGENT)
    assert typed(*gate, "--write").code == 0
    later = copytree(here, here / "later")  # a folder's modules are loaded once in a process
    write_agent(later, "unknown")
    monkeypatch.chdir(later)
    ended = typed(*gate, "--json")
    (gated,) = json.loads(ended.out)["scenarios"]
    assert (ended.code, gated["verdict"]) == (4, "open")


@pytest.mark.parametrize("outcome", LIVE)
def test_a_comparison_of_it_proves_nothing(outcome: str, here: Path, typed: Typed) -> None:
    name = write_scenario(here, outcome)
    ended = typed("compare", name, name, "--trials", "60", "--json")
    assert ended.code == 4, ended.out
    assert json.loads(ended.out)["verdict"] not in ("better", "no worse")


def test_a_test_for_pytest_with_it_does_not_pass(here: Path) -> None:
    tests = ["import chaoslab as lab, pytest"]
    for outcome in LIVE:
        write_agent(here, outcome)
        (here / "mine.py").rename(here / f"mine_{outcome}.py")
        given = dict(FAULTS[outcome])
        fault = f"lab.inject({given.pop('fault')!r}, {given.pop('target')!r}, **{given!r})"
        tests += [
            f"import mine_{outcome} as m_{outcome}",
            f"@pytest.mark.chaos(faults=[{fault}], trials=3)",
            f"def test_{outcome}(chaos, m=m_{outcome}):",
            "    chaos.run(m.agent, 'Go.', tools=[m.refund], reads=[m.price])",
        ]
    (here / "test_it.py").write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    ended = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert ended.returncode == 1, ended.stdout
    assert f"{len(LIVE)} failed" in ended.stdout
    assert "passed" not in ended.stdout.splitlines()[-1]


# --- the count itself ---


@pytest.mark.parametrize(
    ("count", "least", "standing"),
    [
        (StandingCount(0, 0, 3), 0.0, Standing.WELL), (StandingCount(0, 0, 3), 0.1, Standing.OPEN),
        (StandingCount(), 0.0, Standing.OPEN),
        (StandingCount(9, 1, 0), 0.9, Standing.WELL), (StandingCount(8, 2, 0), 0.9, Standing.BAD),
        (StandingCount(50, 50, 5), 0.9, Standing.BAD), (StandingCount(50, 0, 50), 0.9, Standing.OPEN),
        (StandingCount(95, 0, 5), 1.0, Standing.WELL), (StandingCount(94, 0, 6), 1.0, Standing.OPEN),
        (StandingCount(94, 1, 5), 1.0, Standing.BAD), (StandingCount(95, 0, 5), 0.9, Standing.WELL),
    ],
)  # fmt: skip
def test_open_trials_are_bounds_where_a_share_decides(count: StandingCount, least: float, standing: Standing) -> None:
    assert classify_share(count, least) is standing
    assert OPEN_MAX == 0.05


DERIVES = {"analysis/verdict/standing.py", "analysis/verdict/table.py"}
ACCEPTS = {"scenarios/comparing.py", "scenarios/running.py", "scenarios/spec.py", "search/variation.py"}
"""Modules with the outcomes that a scenario accepts unless it states others."""
LEAVES_OUT = {
    "analysis/measures/_grounds.py", "execution/exploring.py",
    "execution/pipeline.py", "reports/contents/_matrix.py",
}  # fmt: skip
"""Modules that leave open trials out, or keep the story of those that are not well."""
NAMES = {"ENDED_WELL", "ENDED_OPEN"}
WELL = {"correct", "degraded"}


def _read_modules() -> dict[str, str]:
    """The text of each module of the package, by its path there."""
    room = ROOT / "chaoslab"
    return {str(path.relative_to(room)): path.read_text(encoding="utf-8") for path in room.rglob("*.py")}


def _derives(text: str) -> bool:
    """True if a module tells well from bad by the names of outcomes: by the sets, or by both good names together."""
    if not any(name in text for name in NAMES) and not all(name in text.lower() for name in WELL):
        return False  # without the time that parsing takes
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & NAMES:
            return True
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            texts = {each.value for each in node.elts if isinstance(each, ast.Constant)}
            attributes = {each.attr for each in node.elts if isinstance(each, ast.Attribute)}
            if texts >= WELL or attributes >= {"CORRECT", "DEGRADED"}:
                return True
    return False


SUBTRACTS = {"search/planning/chances.py", "search/planning/evidence.py"}
"""Modules that take bad trials from those that were judged: evidence of which open ones are no part."""
PASSED = {"analysis/measures/intervals.py", "wire/toxics/limit_data.py"}
"""Modules in which time and bytes have passed."""
COUNTED = {"well", "bad", "passed", "judged", "standings", "unknown", "invalid", "unfinished", "undone"}


def _subtracts(text: str) -> bool:
    """True if a module takes one number of trials from another: an open one is in neither, and would turn up as the
    other."""
    if not re.search(rf" - .*\b({'|'.join(COUNTED)})\b|\b({'|'.join(COUNTED)})\b.*\s- ", text):
        return False  # without the time that parsing takes; ruff puts spaces around an operator
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.BinOp))
    names = ({getattr(each, "attr", getattr(each, "id", "")) for each in (node.left, node.right)}
             for node in found if isinstance(node.op, ast.Sub))  # fmt: skip
    return any(each & COUNTED for each in names)


def test_no_other_place_counts_trials_by_subtraction() -> None:
    found = {name for name, text in _read_modules().items() if _subtracts(text)}
    assert found == SUBTRACTS | PASSED


def test_no_other_place_derives_what_ended_well() -> None:
    found = {name for name, text in _read_modules().items() if _derives(text)}
    assert found == DERIVES | ACCEPTS | LEAVES_OUT
