"""Long runs: logs in packs, stories that are left out, and tables that are written as the run goes."""

import errno
import json
import os
import pickle
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base import extras
from chaoslab.base.identity import TrialId
from chaoslab.cli import main
from chaoslab.core.events import CallStarted, StoryLeftOut
from chaoslab.execution._judged import JudgedRun
from chaoslab.execution._judged import made as made_of
from chaoslab.execution.agents._case import AgentResult
from chaoslab.execution.pipeline import Steered
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import block_of
from chaoslab.memory import _reading as reading
from chaoslab.record import packed_log, packs
from chaoslab.record.follow import Follower
from chaoslab.record.history import History
from chaoslab.record.lines import lines_of
from chaoslab.record.log import LogLost
from chaoslab.record.trial_log import TrialLog
from chaoslab.reports._columns import COLUMNS
from chaoslab.worlds.virtual import run_writer
from tests.cli_parts import Typed
from tests.verdict.trials import finished, started

TRIALS = 40


def charge(order: int) -> str:
    return f"charged {order}"


def agent(_prompt: str) -> str:
    for _ in range(2):
        try:
            return charge(17)
        except TimeoutError:
            continue
    return "It is not charged."


def run(folder: Path, *, trials: int = TRIALS, **more: Any) -> Path:
    lost = lab.inject("lost_reply", "charge", chance=0.2)
    for _ in lab.run_many(agent, "go", tools=[charge], faults=[lost], trials=trials, logs=folder, **more):
        pass
    return folder / "latest"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run in each form: the same trials."""
    folder = tmp_path_factory.mktemp("forms")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_writer, "PACK", 20_000)  # several packs of few trials
        patch.setattr(run_writer.RunWriter, "block", 5)
        run(folder / "lines")
        run(folder / "tables", log_as="tables")
        run(folder / "failed", log_as="packs", keep="failed")
        yield folder


def test_a_worker_is_handed_all_trials_that_are_summed_up_together(tmp_path: Path) -> None:
    run: Any = None
    assert block_of(Steered(JudgedRun(run, lines=True, summed=1000), tmp_path)) == run_writer.RunWriter.block


def result(number: int, *secrets: str) -> AgentResult:
    still: Any = SimpleNamespace(monotonic=lambda: 0.0)
    book = TrialLog(TrialId("run", number + 1, 1), began=datetime(2026, 6, 1, tzinfo=UTC), clock=still)
    for event in (started([["21"]]), finished("It is 21.")):
        book.note(event)
    book.hide(secrets)
    return AgentResult(book)


def test_a_trial_without_an_error_has_none_in_another_process() -> None:
    assert pickle.loads(pickle.dumps(result(0))).error is None


@pytest.mark.parametrize(
    ("summed", "numbers", "there"),
    [
        (7, [0, 1, 2, 3, 4, 5, 6], [2, 5, 6]), (0, [0, 1, 2], []), (7, [1, 2, 3, 4, 5], [4]), (7, [4, 5, 6], [2]),
        (7, [0, 1, 2, 2, 3, 4, 5], [2, 6]), (8, [6, 6, 7, 7], [2]), (8, [6, 7], [1]), (9, [0, 2, 3, 5, 6, 7, 8], [6]),
    ],
)  # fmt: skip
def test_a_worker_sums_up_blocks_that_it_ran_whole(
    monkeypatch: pytest.MonkeyPatch, summed: int, numbers: list[int], there: list[int]
) -> None:
    monkeypatch.setattr(run_writer.RunWriter, "block", 3)
    run: Any = SimpleNamespace(opened=lambda: nullcontext(lambda spec: result(spec.number)))
    with JudgedRun(run, lines=True, summed=summed).opened() as do:
        done = [do(TrialSpec(number)) for number in numbers]
    assert [n for n, each in enumerate(done) if each.sums] == there
    for n in there:
        whole = range(numbers[n] - numbers[n] % 3, numbers[n] + 1)
        assert made_of([result(number).judged(lines=True) for number in whole]) == done[n].sums


def test_trials_with_secrets_have_no_sums() -> None:
    results = [result(0), result(1, "abcdefgh")]
    assert [each.kept for each in results]
    assert made_of(results[:1])
    assert made_of(results) is None


@pytest.fixture
def packed(made: Path, tmp_path: Path) -> Path:
    """A copy of the run in packs, to be broken."""
    own = tmp_path / "own"
    own.mkdir()
    for path in (made / "tables" / "latest").glob("*.*"):
        (own / path.name).write_bytes(path.read_bytes())
    return own


def test_packs_hold_the_lines_of_a_log_without_them(made: Path) -> None:
    there = made / "tables" / "latest"
    assert len([*there.glob("info.*.log.zst")]) > 3
    assert [*lines_of(there / "info.log")] == [*lines_of(made / "lines" / "latest" / "info.log")]
    assert RunReport.read(there) == RunReport.read(made / "lines" / "latest")
    with Follower(there) as follower:
        assert follower.new() == History.read(there).records
        assert follower.ended


def test_two_processes_write_the_same_packs(made: Path, tmp_path: Path) -> None:
    there = run(tmp_path, log_as="packs", jobs=2)
    for path in (made / "tables" / "latest").glob("info.*"):
        assert (there / path.name).read_bytes() == path.read_bytes()


def test_show_reads_only_the_packs_of_its_trial(packed: Path, typed: Typed) -> None:
    last = max(packed.glob("info.*.log.zst"))
    whole = typed.out("show", packed, "--trial", f"p1.r{TRIALS}", "--json")
    for path in packed.glob("info.*.log.zst"):
        if path != last:
            path.unlink()
    assert typed.out("show", packed, "--trial", f"p1.r{TRIALS}", "--json") == whole
    assert "this run has no trial p1.r1" in typed.refused("show", packed, "--trial", "p1.r1")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("cut", "is cut or damaged: "),
        ("gone", "is not there: its trials are lost"),
        ("other", "is of another run (v9)"),
    ],
)
def test_a_pack_that_is_not_whole_is_told_in_one_line(packed: Path, broken: str, said: str) -> None:
    import zstandard

    path = packed / "info.000002.log.zst"
    data = path.read_bytes()
    if broken == "cut":
        path.write_bytes(data[:-40])
    elif broken == "gone":
        path.unlink()
    else:
        lines = zstandard.ZstdDecompressor().decompress(data).replace(b'"run": "py1-', b'"run": "v9", "was": "py1-')
        path.write_bytes(zstandard.ZstdCompressor().compress(lines))
    history, report = History.read(packed), RunReport.read(packed)
    assert history.notes[0].startswith(f"info.000002.log.zst {said}")
    assert report.notes == history.notes
    assert any(" of info.log are lost" in note for note in history.notes)
    assert TRIALS - 12 < len(history.trials) < TRIALS
    assert report.lost + len(report.trials) == TRIALS


def test_a_pack_names_a_file_of_its_own_folder_alone(packed: Path) -> None:
    log = packed / "info.log"
    log.write_bytes(log.read_bytes().replace(b'"pack": "info.000001', b'"pack": "../info.000001'))
    assert History.read(packed).notes[0] == "a pack of own is not named by its line"


def test_a_pack_in_a_pack_is_no_pack(packed: Path) -> None:
    import zstandard

    path = packed / "info.000001.log.zst"
    line = next(line for line in (packed / "info.log").read_bytes().splitlines(True) if line.startswith(packs.PACK))
    lines = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    path.write_bytes(zstandard.ZstdCompressor().compress(lines + line))
    assert RunReport.read(packed).notes[:2] == History.read(packed).notes[:2]
    assert "could not be read" in RunReport.read(packed).notes[1]


def test_packs_are_bounded(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "BYTES_MAX", 1000)
    monkeypatch.setattr(packs, "_BLOCK", 1000)
    assert "is cut or damaged" in History.read(packed).notes[0]


def test_what_cannot_be_packed_or_read_names_the_extra(packed: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda module: None if module == "zstandard" else module)
    with pytest.raises(extras.Incomplete, match=r"reading info.000001.log.zst needs zstandard, .*\[zstd\]"):
        History.read(packed)
    with pytest.raises(extras.Incomplete, match="log_as='packs' needs zstandard"):
        run(tmp_path, log_as="packs")
    with pytest.raises(ValueError, match="keep= is about logs, and none are written: give logs= too"):
        lab.run(agent, "go", tools=[charge], keep="failed")
    with pytest.raises(ValueError, match="keep is 'none': it should be 'all' or 'failed'"):
        run(tmp_path, keep="none")


def test_a_disk_that_fills_ends_the_run_in_one_line_and_leaves_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "PACK", 20_000)
    monkeypatch.setattr(run_writer.RunWriter, "block", 5)
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if "info.000003.log.zst" in path.name:
            write(path, data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(LogLost, match=r"info.000003.log.zst cannot be written \(No space left .*\): make room"):
        run(tmp_path, log_as="packs")
    there = tmp_path / "latest"
    history = History.read(there)
    assert sorted(path.name for path in there.iterdir()) == [
        "info.000001.log.zst", "info.000001.sums.zst", "info.000002.log.zst", "info.000002.sums.zst", "info.log",
        "run.json",
    ]  # fmt: skip
    assert not history.notes
    assert 0 < len(history.trials) < TRIALS


def test_stories_that_ended_well_are_left_out_and_everything_judged_is_the_same(made: Path, typed: Typed) -> None:
    whole, short = RunReport.read(made / "lines" / "latest"), RunReport.read(made / "failed" / "latest")
    assert short.outcomes == whole.outcomes
    assert (short.met, short.standings) == (whole.met, whole.standings)
    assert short.impacts == whole.impacts
    assert short.consistency == whole.consistency
    assert not short.notes
    well = sum(outcome == "correct" for outcome in whole.outcomes.values())
    why = f"{well} stories of trials that ended well were left out (keep='failed')"
    assert short.recovery.unknown == short.calls.unknown == short.delivered.unknown == why
    history = History.read(made / "failed" / "latest")
    assert len([*history.of(StoryLeftOut)]) == well
    bad = {trial for trial, outcome in whole.outcomes.items() if outcome != "correct"}
    assert {record.trial for record, _ in history.of(CallStarted)} == bad
    trial = next(trial for trial in whole.outcomes if trial not in bad)
    out = typed.out("show", made / "failed" / "latest", "--trial", trial)
    assert "left out its story, as it ended well (keep='failed'): 1 call, 0 faults met" in out
    with pytest.raises(LookupError, match="lacks the stories of trials that ended well"):
        reading.read(made / "failed" / "latest")


@pytest.mark.parametrize("kind", ["html", "json", "markdown"])
def test_reports_tell_what_is_unknown_without_the_stories(made: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    assert main(["report", str(made / "failed" / "latest"), "--format", kind, "--out", str(out)]) == 0
    assert "stories of trials that ended well were left out (keep=" in out.read_text()


def test_a_story_that_is_left_out_counts_its_calls_and_the_faults_that_it_met(tmp_path: Path) -> None:
    late = lab.inject("latency", "charge", delay_s=1.0)
    for _ in lab.run_many(agent, "go", tools=[charge], faults=[late], trials=2, logs=tmp_path, keep="failed"):
        pass
    left_out = [event for _, event in History.read(tmp_path / "latest").of(StoryLeftOut)]
    assert [(each.calls, each.met) for each in left_out] == [({"charge": 1}, {"latency": {"charge": 1}})] * 2


def test_a_trial_that_was_ruled_to_fail_keeps_its_story(tmp_path: Path) -> None:
    trials = lab.run_many(agent, "go", tools=[charge], faults=[], trials=3, logs=tmp_path, keep="failed")
    for number, trial in enumerate(trials, 1):
        if number == 2:
            trial.want()
    history = History.read(tmp_path / "latest")
    assert {record.trial for record, _ in history.of(CallStarted)} == {"p1.r2"}
    assert history.trials == ["p1.r1", "p1.r2", "p1.r3"]


def test_tables_are_those_of_the_log_and_need_no_story(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, log = lab.load(made / "tables" / "latest"), lab.load(made / "lines" / "latest")
    pd.testing.assert_frame_equal(there.reliability, log.reliability)
    monkeypatch.setattr(History, "read", None)
    again = lab.load(made / "tables" / "latest")
    for name in COLUMNS:
        if name != "reliability":
            pd.testing.assert_frame_equal(getattr(again, name), getattr(log, name))
    monkeypatch.undo()
    (made / "tables" / "latest" / "labels.jsonl").write_text("")
    assert type(lab.load(made / "tables" / "latest")) is type(log)


def test_a_column_that_an_earlier_chaoslab_did_not_write_is_empty(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "earlier"
    shutil.copytree((made / "tables" / "latest").resolve(), folder, ignore=lambda *_: {"labels.jsonl"})
    first, *_ = sorted((folder / "tables" / "trials").glob("*.parquet"))
    whole = lab.load(folder).trials
    for path in (folder / "tables" / "calls").glob("*.parquet"):
        pd.read_parquet(path).drop(columns=["tool", "duration_s"]).to_parquet(path, index=False)
    pd.read_parquet(first).drop(columns="outcome").to_parquet(first, index=False)
    found = lab.load(folder)
    assert (found.calls["tool"].isna().all(), found.calls["duration_s"].isna().all()) == (True, True)
    assert found.calls.dtypes.to_dict() == lab.load(made / "lines" / "latest").calls.dtypes.to_dict()
    assert 0 < found.trials["outcome"].isna().sum() < len(whole) == len(found.trials)


def test_frames_of_stories_that_were_left_out_count_their_calls(made: Path) -> None:
    pd.testing.assert_frame_equal(
        lab.load(made / "failed" / "latest").trials, lab.load(made / "lines" / "latest").trials
    )


def test_a_pack_has_whole_trials_of_a_bounded_size(tmp_path: Path) -> None:
    there = run(tmp_path, log_as="packs", trials=3)
    (line,) = (text for text in (there / "info.log").read_text().splitlines() if text.startswith('{"pack"'))
    told = json.loads(line)
    assert told["trials"] == {"p1": [1, 3]}
    assert (told["first"], told["last"]) == (2, History.read(there).records[-1].seq - 1)
    assert packed_log.BYTES == 4 << 20
