"""Labels and opinions beside a run's log: read with the run, in any reader, and each defect told in a line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.analysis.verdict.opinions import questions
from chaoslab.analysis.verdict.table import Basis, Said
from chaoslab.record.history import History
from chaoslab.record.spoken import LABELS, OPINIONS, KeptReplies, Spoken, keep
from tests.judge_parts import written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path)


def both(folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """The outcomes and the notes of both readers of a run, which are equal."""
    history, report = History.read(folder), RunReport.read(folder)
    assert dict(report.verdicts) == verdicts(history)
    assert tuple(report.notes) == history.notes
    return {trial: verdict.name for trial, verdict in report.verdicts.items()}, history.notes


def test_a_label_decides_and_is_certain(folder: Path) -> None:
    assert both(folder)[0] == {
        "p1.r1": "unknown", "p1.r2": "unknown", "p1.r3": "unknown", "p1.r4": "correct", "p1.r5": "unknown",
        "p1.r6": "correct",
    }  # fmt: skip
    for trial, said in (("p1.r1", "admits it"), ("p1.r2", "wrong"), ("p1.r3", "passes over it"), ("p1.r4", "wrong")):
        keep(folder, LABELS, trial=trial, said=said)
    outcomes, notes = both(folder)
    assert outcomes == {
        "p1.r1": "degraded", "p1.r2": "wrong", "p1.r3": "false_success", "p1.r4": "wrong", "p1.r5": "unknown",
        "p1.r6": "correct",
    }  # fmt: skip
    assert notes == ()
    verdict = verdicts(History.read(folder))["p1.r1"]
    assert (verdict.basis, verdict.said, verdict.why) == (
        Basis.LABEL, Said.ADMITS, "missing: refund; a person says of the answer: admits it",
    )  # fmt: skip


def test_a_reply_is_found_by_its_question_and_a_label_outranks_it(folder: Path) -> None:
    asked = questions(History.read(folder))
    assert list(asked) == ["p1.r1", "p1.r2", "p1.r3", "p1.r5"]
    assert asked["p1.r3"].key == asked["p1.r5"].key, "equal questions have one key"
    for trial in ("p1.r1", "p1.r3"):
        keep(folder, OPINIONS, key=asked[trial].key, said="admits it", model="m")
    keep(folder, LABELS, trial="p1.r1", said="passes over it")
    outcomes, _ = both(folder)
    assert (outcomes["p1.r1"], outcomes["p1.r3"], outcomes["p1.r5"]) == (
        "false_success", "≈ degraded", "≈ degraded",
    )  # fmt: skip


def test_the_questions_are_the_same_whatever_was_said_before(folder: Path) -> None:
    before = questions(History.read(folder))
    for trial, question in before.items():
        keep(folder, OPINIONS, key=question.key, said="right", model="m")
        keep(folder, LABELS, trial=trial, said="right")
    assert questions(History.read(folder)) == before


@pytest.mark.parametrize("low", [0.91, 0.9, 0.5])
def test_a_model_is_trusted_only_above_the_share_and_with_the_labels_that_were_there(folder: Path, low: float) -> None:
    asked = questions(History.read(folder))
    for model, trial in (("m", "p1.r1"), ("other", "p1.r3")):
        keep(folder, OPINIONS, key=asked[trial].key, said="admits it", model=model)
    keep(folder, LABELS, trial="p1.r2", said="wrong")
    run = History.read(folder).run
    given = KeptReplies.read(folder).given(run)
    keep(folder, OPINIONS, model="m", certain_above=0.9, low=low, agreed=1, labels=1, given=given)
    outcomes, _ = both(folder)
    assert outcomes["p1.r1"] == ("degraded" if low > 0.9 else "≈ degraded")
    assert outcomes["p1.r3"] == "≈ degraded", "another model's"
    keep(folder, LABELS, trial="p1.r5", said="wrong")  # the agreement was found with other labels
    assert both(folder)[0]["p1.r1"] == "≈ degraded"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (LABELS, "not JSON"),
        (LABELS, "[]"),
        (LABELS, '{"trial": "p1.r1"}'),
        (LABELS, '{"trial": "p1.r1", "said": "perhaps"}'),
        (LABELS, '{"trial": 1, "said": "right"}'),
        (LABELS, '{"trial": "p1.r1", "said": "right", "settles": "yes"}'),
        (LABELS, '{"trial": "p1.r1", "said": "ri'),
        (LABELS, "[" * 100_000),
        (OPINIONS, '{"said": "right", "model": "m"}'),
        (OPINIONS, '{"key": "k", "said": "good", "model": "m"}'),
        (OPINIONS, '{"key": "k", "said": "right", "model": "m", "tokens_in": -1}'),
        (OPINIONS, '{"certain_above": 2, "low": 1, "model": "m", "agreed": 1, "labels": 1, "given": ""}'),
        (OPINIONS, '{"certain_above": NaN, "low": 1, "model": "m", "agreed": 1, "labels": 1, "given": ""}'),
    ],
)
def test_a_broken_line_is_a_note_and_the_others_count(folder: Path, name: str, line: str) -> None:
    (folder / name).write_text(f"\n{line}\n")
    keep(folder, LABELS, trial="p1.r2", said="wrong")
    outcomes, notes = both(folder)
    assert notes == (f"{name}: line 2 could not be read",)
    assert outcomes["p1.r2"] == "wrong"
    assert outcomes["p1.r1"] == "unknown"


def test_bytes_that_are_no_text_are_a_note(folder: Path) -> None:
    (folder / LABELS).write_bytes(b'\xff\xfe{"trial"\n\x00\n')
    assert both(folder)[1] == (f"{LABELS}: lines 1 and 2 could not be read",)


def test_a_label_is_appended_on_a_line_of_its_own_after_one_that_was_cut(folder: Path) -> None:
    (folder / LABELS).write_text('{"trial": "p1.r1", "sa')
    keep(folder, LABELS, trial="p1.r2", said="wrong")
    outcomes, notes = both(folder)
    assert (outcomes["p1.r2"], notes) == ("wrong", (f"{LABELS}: line 1 could not be read",))


def test_labels_of_another_run_are_one_line(folder: Path) -> None:
    for trial in ("p9.r1", "p9.r2", "p9.r3"):
        keep(folder, LABELS, trial=trial, said="right")
    keep(folder, LABELS, trial="p1.r1", said="right", run="py1-of-another")
    outcomes, notes = both(folder)
    assert notes == (f"{LABELS}: 4 labels are of another run (p1.r1, p9.r1 and 2 more)",)
    assert outcomes["p1.r1"] == "unknown"


def test_labels_that_disagree_leave_the_trial_unknown_until_one_settles_it(folder: Path) -> None:
    keep(folder, LABELS, trial="p1.r1", said="admits it", by="Ann")
    keep(folder, LABELS, trial="p1.r1", said="wrong")
    keep(folder, LABELS, trial="p1.r2", said="wrong", by="Ann")
    keep(folder, LABELS, trial="p1.r2", said="wrong", by="Bob")
    outcomes, notes = both(folder)
    assert (outcomes["p1.r1"], outcomes["p1.r2"]) == ("unknown", "wrong")
    assert notes == (f"{LABELS}: labels disagree (p1.r1: admits it by Ann and wrong): 'chaoslab label' settles it",)
    assert "the labels of the answer disagree" in verdicts(History.read(folder))["p1.r1"].why
    keep(folder, LABELS, trial="p1.r1", said="admits it", settles=True)
    outcomes, notes = both(folder)
    assert (outcomes["p1.r1"], notes) == ("degraded", ())


def test_a_file_that_cannot_be_read_is_a_note(folder: Path) -> None:
    os.mkfifo(folder / LABELS)
    (folder / OPINIONS).mkdir()
    assert both(folder)[1] == (
        f"{LABELS} cannot be read: it is a named pipe, and only regular files are read",
        f"{OPINIONS} cannot be read: Is a directory",
    )


def test_texts_of_the_files_do_not_steer_a_terminal(folder: Path) -> None:
    keep(folder, LABELS, trial="p1.r1", said="right", by="\x1b[31mAnn\n")
    keep(folder, LABELS, trial="p1.r1", said="wrong")
    keep(folder, LABELS, trial="\x1b[2J", said="wrong")
    asked = questions(History.read(folder))
    keep(folder, OPINIONS, key=asked["p1.r3"].key, said="right", model="\x1b[2J\n")
    keep(folder, OPINIONS, key=asked["p1.r2"].key, said="unclear", model="m", error="\x1b[2J\n")
    history = History.read(folder)
    assert all(text.isprintable() for text in (*history.notes, *(each.why for each in verdicts(history).values())))


def test_nothing_is_kept_of_what_is_not_known(tmp_path: Path) -> None:
    keep(tmp_path, OPINIONS, key="k", said="right", model="m", error="", tokens_in=0, cost_usd=None, certain=False)
    told: dict[str, Any] = json.loads((tmp_path / OPINIONS).read_text())
    assert told == {"key": "k", "said": "right", "model": "m", "tokens_in": 0}
    assert KeptReplies.read(tmp_path).replies["k"].cost_usd is None


def test_silence_is_false() -> None:
    assert not Spoken()
    assert not KeptReplies().spoken("run")
