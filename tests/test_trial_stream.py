"""A run that is read in batches of whole trials gives the report that the whole history gives."""

import json
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoslab.analysis.measures import run_report
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.record.history import History
from chaoslab.record.trial_stream import TrialStream, Unordered
from tests.reports.fake_run import FakeRun, summary

PROMPTS = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FakeRun(tmp_path_factory.mktemp("run"), prompts=PROMPTS).write()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def put(folder: Path, logs: dict[str, list[bytes]]) -> Path:
    """A folder with nothing but these logs."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.log"):
        path.unlink()
    for name, lines in logs.items():
        (folder / name).write_bytes(b"".join(lines))
    return folder


def logs_of(folder: Path) -> dict[str, list[bytes]]:
    return {path.name: path.read_bytes().splitlines(True) for path in folder.glob("*.log")}


def test_each_record_is_in_one_batch_in_the_order_of_the_history(run: Path) -> None:
    batches = list(TrialStream(run, least=40))
    assert len(batches) > 3
    assert [*chain.from_iterable(batches)] == History.read(run).records
    assert [trial for batch in batches for trial in batch.trials] == History.read(run).trials


def test_a_batch_ends_only_where_no_trial_is_under_way(run: Path) -> None:
    batches = list(TrialStream(run, least=1))
    assert [len(batch.trials) for batch in batches] == [0] + [1] * PROMPTS


def test_the_report_is_made_of_batches_and_of_no_history(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RunReport.from_history(History.read(run))
    monkeypatch.setattr(run_report, "TrialStream", lambda folder: TrialStream(folder, least=40))
    monkeypatch.delattr(History, "read")
    assert RunReport.from_folder(run) == whole


def test_a_trial_that_goes_on_after_others_began_needs_the_history(run: Path, scratch: Path) -> None:
    logs = logs_of(run)
    ended = next(n for n, line in enumerate(logs["info.log"]) if b'"kind": "prompt_finished"' in line)
    late = logs["info.log"].pop(ended - 1)
    after_s = History.read(run).records[-1].t + 1
    folder = put(scratch, {**logs, "late.log": [json.dumps(json.loads(late) | {"t": after_s}).encode()]})
    with pytest.raises(Unordered, match="goes on after others began"):
        list(TrialStream(folder, least=1))
    assert RunReport.from_folder(folder) == RunReport.from_history(History.read(folder))


def test_the_notes_on_rulings_are_the_history_s(run: Path, scratch: Path) -> None:
    folder = put(scratch / "ruled", logs_of(run))
    lines = ['{"scenario": "x", "trials": 1}', '{"trial": "p1.r1", "state": "pas', '{"state": "passed"}']
    (folder / "rulings.jsonl").write_text("\n".join(lines))
    batches = TrialStream(folder)
    list(batches)
    history = History.read(folder)
    assert batches.notes == history.notes == ("rulings.jsonl: line 2 could not be read",)
    assert history.cut_lines == {"rulings.jsonl": (2,)}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_befell_the_logs_the_report_is_the_history_s(run: Path, scratch: Path, data: st.DataObject) -> None:
    logs = logs_of(run)
    lines = logs[data.draw(st.sampled_from(sorted(logs)))]
    place = st.integers(0, len(lines) - 1)
    for _ in range(data.draw(st.integers(0, 3))):
        match data.draw(st.sampled_from(["swap", "lose", "cut", "again", "apart", "end"])):
            case "swap":
                one, other = data.draw(place), data.draw(place)
                lines[one], lines[other] = lines[other], lines[one]
            case "lose":
                lines[data.draw(place)] = b""
            case "cut":
                at = data.draw(place)
                lines[at] = lines[at][: data.draw(st.integers(0, 200))] + b"\n"
            case "again":
                lines.append(lines[data.draw(place)])
            case "apart":
                at = data.draw(place)
                logs["other.log"], lines[at] = [lines[at]], b""
            case "end":
                del lines[data.draw(st.integers(len(lines) // 2, len(lines) - 1)) :]
                break
    folder = put(scratch, logs)
    least = data.draw(st.sampled_from([1, 30, 100]))
    with patch.object(run_report, "TrialStream", lambda folder: TrialStream(folder, least=least)):
        found = RunReport.from_folder(folder)
    whole = RunReport.from_history(History.read(folder))
    assert found == whole
    assert summary(found) == summary(whole)
