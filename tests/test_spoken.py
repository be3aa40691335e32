"""Replies of a judge beside a run's log: read with the run, in any reader, and each defect told in a line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.opinions import collect_questions
from chaoslab.analysis.verdict.table import Basis, Said
from chaoslab.record.history import History
from chaoslab.record.spoken import OPINIONS, JudgeOpinions, KeptJudgeReplies, append_json_line
from tests.judge_parts import written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path)


def both(folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """The outcomes and the notes of both readers of a run, which are equal."""
    history, report = History.read(folder), RunReport.from_folder(folder)
    assert dict(report.verdicts) == judge_all_trials(history)
    assert tuple(report.notes) == history.notes
    return {trial: str(verdict.outcome) for trial, verdict in report.verdicts.items()}, history.notes


BEFORE = {
    "p1.r1": "undone", "p1.r2": "unknown", "p1.r3": "undone", "p1.r4": "correct", "p1.r5": "undone",
    "p1.r6": "correct",
}  # fmt: skip


def test_a_reply_is_found_by_its_question_and_counts_as_it_is(folder: Path) -> None:
    assert both(folder) == (BEFORE, ())
    asked = collect_questions(History.read(folder))
    assert list(asked) == ["p1.r1", "p1.r2", "p1.r3", "p1.r5"]
    assert asked["p1.r3"].key == asked["p1.r5"].key, "equal questions have one key"
    for trial, said in (("p1.r1", "passes over it"), ("p1.r2", "wrong"), ("p1.r3", "admits it")):
        append_json_line(folder, OPINIONS, key=asked[trial].key, said=said, model="m")
    told = {"p1.r1": "false_success", "p1.r2": "wrong", "p1.r3": "degraded", "p1.r5": "degraded"}
    assert both(folder) == ({**BEFORE, **told}, ())
    verdict = judge_all_trials(History.read(folder))["p1.r3"]
    assert (verdict.basis, verdict.said) == (Basis.JUDGE, Said.ADMITS)
    assert verdict.why == "missing: refund; the judge m says of the answer: admits it"


def test_the_questions_are_the_same_whatever_was_said_before(folder: Path) -> None:
    before = collect_questions(History.read(folder))
    for question in before.values():
        append_json_line(folder, OPINIONS, key=question.key, said="right", model="m")
    assert {trial: each.key for trial, each in before.items()} == {
        trial: each.key for trial, each in collect_questions(History.read(folder)).items()
    }


def test_labels_of_an_older_run_change_nothing(folder: Path) -> None:
    (folder / "labels.jsonl").write_text('{"trial": "p1.r4", "said": "wrong"}\n')
    assert both(folder) == (BEFORE, ())


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[]",
        "[" * 100_000,
        '{"said": "right", "model": "m"}',
        '{"key": "k", "said": "good", "model": "m"}',
        '{"key": "k", "said": "right", "model": "m", "tokens_in": -1}',
        '{"key": "k", "said": "ri',
    ],
)
def test_a_broken_line_is_a_note_and_the_others_count(folder: Path, line: str) -> None:
    asked = collect_questions(History.read(folder))
    (folder / OPINIONS).write_text(f"\n{line}\n")
    append_json_line(folder, OPINIONS, key=asked["p1.r2"].key, said="wrong", model="m")
    assert both(folder) == ({**BEFORE, "p1.r2": "wrong"}, (f"{OPINIONS}: line 2 could not be read",))


def test_bytes_that_are_no_text_are_a_note(folder: Path) -> None:
    (folder / OPINIONS).write_bytes(b'\xff\xfe{"key"\n\x00\n')
    assert both(folder)[1] == (f"{OPINIONS}: lines 1 and 2 could not be read",)


def test_a_reply_is_appended_on_a_line_of_its_own_after_one_that_was_cut(folder: Path) -> None:
    asked = collect_questions(History.read(folder))
    (folder / OPINIONS).write_text('{"key": "k", "sa')
    append_json_line(folder, OPINIONS, key=asked["p1.r2"].key, said="wrong", model="m")
    outcomes, notes = both(folder)
    assert (outcomes["p1.r2"], notes) == ("wrong", (f"{OPINIONS}: line 1 could not be read",))


def test_a_file_that_cannot_be_read_is_a_note(folder: Path) -> None:
    os.mkfifo(folder / OPINIONS)
    said = f"{OPINIONS} cannot be read: it is a named pipe, and only regular files are read"
    assert both(folder) == (BEFORE, (said,))


def test_texts_of_the_file_do_not_steer_a_terminal(folder: Path) -> None:
    asked = collect_questions(History.read(folder))
    append_json_line(folder, OPINIONS, key=asked["p1.r3"].key, said="right", model="\x1b[2J\n")
    append_json_line(folder, OPINIONS, key=asked["p1.r2"].key, said="unclear", model="m", error="\x1b[2J\n")
    history = History.read(folder)
    assert all(
        text.isprintable() for text in (*history.notes, *(each.why for each in judge_all_trials(history).values()))
    )


def test_nothing_is_kept_of_what_is_not_known(tmp_path: Path) -> None:
    append_json_line(
        tmp_path, OPINIONS, key="k", said="right", model="m", error="", tokens_in=0, cost_usd=None, certain=False
    )
    told: dict[str, Any] = json.loads((tmp_path / OPINIONS).read_text())
    assert told == {"key": "k", "said": "right", "model": "m", "tokens_in": 0}
    assert KeptJudgeReplies.read(tmp_path).replies["k"].cost_usd is None


def test_silence_is_false() -> None:
    assert not JudgeOpinions()
    assert not KeptJudgeReplies().judge_opinions
