"""A printed trial, a printed history, and the help on `inject`."""

import inspect
import pydoc
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.base import registry
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.core.fault import load_fault
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.show import Story
from tests.plugin_parts import installed


def refund(order: int) -> str:
    return f"refunded {order}"


@pytest.fixture(scope="module")
def trial() -> lab.Trial:
    faults = [lab.inject("latency", "refund", delay_s=2.0)]
    return lab.run(lambda _: refund(17), "Refund order 17.", tools=[refund], faults=faults)


def test_a_trial_prints_its_outcome_and_why_in_one_line(trial: lab.Trial) -> None:
    assert str(trial) == f"p1.r1 correct after 2.000 s: {trial.why}"
    assert repr(trial) == f"Trial(p1.r1, correct: {trial.why})"


def test_what_an_agent_raised_in_many_lines_is_one_line_of_its_trial() -> None:
    def fails(_: str) -> str:
        raise ValueError("one\n\ntwo " + "x" * 2000)

    trial = lab.run(fails, "x", facts=["1"], effects=[])
    for shown in (str(trial), repr(trial)):
        assert "failed" in shown
        assert "\n" not in shown
        assert len(shown) <= 300


def test_a_history_iterates_over_its_records(trial: lab.Trial) -> None:
    records = list(trial.history)
    assert records == trial.history.records
    assert all(isinstance(record, Record) for record in records)
    assert {FaultWitnessed, CallFinished} <= {type(record.event) for record in trial.history}


def test_a_trials_history_prints_as_its_story(trial: lab.Trial) -> None:
    assert trial.history is trial.history
    assert isinstance(trial.history, History)
    said = str(trial.history)
    assert said == trial.story().rstrip("\n")
    assert 'call     refund 1.1 refund({"order": 17})' in said
    assert said.splitlines()[-1].split() == ["verdict", "correct:", *trial.why.split()]
    assert (
        repr(trial.history)
        == f"History(run {trial.history.records[0].run}: 1 trial, {len(trial.history.records)} events)"
    )


def test_an_empty_history_prints_too() -> None:
    assert repr(History([])) == "History(run none: 0 trials, 0 events)"
    assert str(Story.from_history(History([]))) == "History(run none: 0 trials, 0 events)"


def test_the_help_of_inject_lists_each_fault_with_its_parameters_and_defaults() -> None:
    text = pydoc.plain(pydoc.render_doc(lab.inject))
    assert "inject(fault: 'str | Fault', target: " in " ".join(text.split()).replace("( ", "(")
    assert "One source of faults for a trial." in text
    lines = [line.strip() for line in text.splitlines()]
    for name in registry.list_plugins("faults"):
        (line,) = [line for line in lines if line.startswith(f"{name}(")]
        assert line.endswith(f", of the layer {load_fault(name).layer}")
        assert all(f"{f.name}={f.default!r}" in line for f in fields(load_fault(name)))
    assert (
        "budget(tokens=0.0, cost_usd=0.0, calls_max=0.0, seconds=0.0, mode='hard' | 'soft'), of the layer budget"
        in lines
    )
    assert "Lets the effect happen and withholds the answer until the caller's own deadline." in lines
    assert inspect.getdoc(lab.inject) == str(lab.inject.__doc__).rstrip()


def test_the_list_has_the_plug_ins_too_and_says_what_is_wrong_with_one(tmp_path: Path) -> None:
    good = "@dataclass(frozen=True)\nclass Sock(Fault):\n    'A sock.'\n    size: int = 42\n    layer = 'tool'\n"
    good += "    def flow(self, call, context): yield call"
    with installed(tmp_path, good):
        text = inspect.getdoc(lab.inject) or ""
        assert "gremlin(size=42), of the layer tool\n    A sock.\n" in text
    (tmp_path / "other").mkdir()
    with installed(tmp_path / "other", "import no_such_module_here"):
        text = " ".join((inspect.getdoc(lab.inject) or "").split())
        assert "gremlin the fault 'gremlin' of the package gremlins 1.0 cannot be used: ModuleNotFoundError" in text
        assert "latency(" in text


def test_no_fault_is_loaded_before_the_help_is_read() -> None:
    program = (
        "import sys, chaoslab as lab\nlab.inject\n"
        "loaded = [n for n in sys.modules if n.startswith('chaoslab.faults')]\nassert not loaded, loaded\n"
        "import inspect\ninspect.getdoc(lab.inject)\n"
        "assert 'chaoslab.faults.tool.lost_reply' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
