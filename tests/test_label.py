"""`chaoslab label`: each answer of which nothing is certain beside its twin's, and a key for what it says."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.opinions import questions
from chaoslab.cli import main
from chaoslab.record.history import History
from chaoslab.record.spoken import LABELS, OPINIONS, keep
from chaoslab.reports.labelling import GREEN, PLAIN, RED, parted
from tests import warm
from tests.cli_parts import Typed
from tests.judge_parts import written


@pytest.fixture
def folder(here: Path) -> Path:
    return written(here / "logs")


def label(monkeypatch: pytest.MonkeyPatch, keys: str, *words: str) -> int:
    """The command with these lines at its standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
    return main(["label", *words])


def labels(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / LABELS).read_text().splitlines()
    return [(line["trial"], line["said"]) for line in map(json.loads, lines)]


def names(folder: Path) -> list[str]:
    return [verdict.name for verdict in RunReport.read(folder).verdicts.values()]


def test_a_key_a_trial(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert label(monkeypatch, "a\nw\np\nr\n", "--by", "Ann") == 0
    assert names(folder) == ["degraded", "wrong", "false_success", "correct", "false_success", "correct"]
    out = capsys.readouterr().out
    assert out.startswith(
        "\n1 of 4  p1.r1\n"
        "world    left undone\n"
        "verdict  unknown: missing: refund; if the answer says so cannot be told: no sentence of it admits or claims it"
        "\n"
        "asked    Refund order 17.\n"
        "twin     [All is well with it].\n"
        "answer   [Something odd came up, alas: ToolError].\n"
        "r right, w wrong, a admits it, p passes over it, s skip, b back, q quit: a\n"
        "\n2 of 4  p1.r2\n"
        "world    as asked\n"
    )
    assert out.endswith(f"\n4 answers are labelled in {Path('logs/latest') / LABELS}; 0 of 4 left\n")
    first = json.loads((folder / LABELS).read_text().splitlines()[0])
    assert (first["by"], first["run"]) == ("Ann", History.read(folder).run)
    assert label(monkeypatch, "") == 0
    assert capsys.readouterr().out == "nothing to label: a label would decide no verdict that is unknown or uncertain\n"


def test_skip_back_quit_and_keys_that_are_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert label(monkeypatch, "b\nA\n\nx\ns\nb\nb\nw\nq\n") == 0
    assert labels(folder) == [("p1.r1", "admits it"), ("p1.r1", "wrong")]
    assert names(folder)[0] == "false_success"
    assert History.read(folder).notes == (), "the second label stands in place of the first"
    out = capsys.readouterr().out
    assert "'x' is none of the keys" in out
    assert out.endswith("1 answer is labelled in logs/latest/labels.jsonl; 3 of 4 left\n")


def test_the_end_of_the_input_is_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert label(monkeypatch, "a\n") == 0
    assert labels(folder) == [("p1.r1", "admits it")]
    assert label(monkeypatch, "w") == 0
    assert labels(folder)[1:] == [("p1.r2", "wrong")]


def test_nothing_is_lost_when_it_is_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["a\n", "w\n"])

    class Interrupted(io.StringIO):
        def readline(self, *_: int | None) -> str:  # type: ignore[override]  # io's stubs have bytes in its base
            for line in lines:
                return line
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert main(["label"]) == 130
    assert labels(folder) == [("p1.r1", "admits it"), ("p1.r2", "wrong")]


def test_one_trial_is_labelled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(folder, LABELS, trial="p1.r3", said="admits it")
    keep(folder, LABELS, trial="p1.r3", said="wrong")
    assert label(monkeypatch, "p\n", "--trial", "3") == 0
    captured = capsys.readouterr()
    assert "the labels of the answer disagree" in captured.out
    assert captured.err.startswith("note: labels.jsonl: labels disagree (p1.r3: ")
    assert (names(folder)[2], History.read(folder).notes) == ("false_success", ())
    assert label(monkeypatch, "p\n", "--trial", "4") == 0
    assert "nothing to label" not in capsys.readouterr().out, "a correct answer may be labelled too"
    assert label(monkeypatch, "", "--trial", "p7") == 2
    assert capsys.readouterr().err == "this run has no trial p7: its trials are 1 to 6 (p1.r1 to p1.r6)\n"


def test_a_judges_opinion_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for question in questions(History.read(folder)).values():
        keep(folder, OPINIONS, key=question.key, said="right", model="a-judge")
    assert names(folder)[0] == "≈ false_success"
    assert label(monkeypatch, "q\n") == 0
    out = capsys.readouterr().out
    assert "1 of 4" in out
    assert "a-judge" not in out


@pytest.mark.parametrize("name", ["nowhere", "logs"])
def test_a_run_that_is_none_is_one_line(name: str, folder: Path, typed: Typed) -> None:
    assert folder.is_dir()
    for command in ("label", "judge"):
        typed.refused(command, name)


def test_a_folder_that_cannot_be_written_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / LABELS).mkdir()
    assert label(monkeypatch, "a\n") == 2
    assert capsys.readouterr().err.splitlines()[-1] == "logs/latest/labels.jsonl: Is a directory"


def test_both_texts_are_marked_word_by_word() -> None:
    twin, answer = "Order 17 is refunded: 30.", "Order 17 is not refunded."
    assert parted(twin, answer, colour=False) == ("Order 17 is refunded[: 30].", "Order 17 is [not] refunded.")
    assert parted(twin, answer, colour=True) == (
        f"Order 17 is refunded{GREEN}: 30{PLAIN}.", f"Order 17 is {RED}not{PLAIN} refunded.",
    )  # fmt: skip
    assert parted("", "a", colour=False) == ("", "[a]")


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminals")
def test_on_a_terminal_a_key_is_taken_as_it_is_pressed_and_the_words_are_coloured(folder: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    words = [warm.python(), "-m", "chaoslab", "label", str(folder)]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        for key in (b"a", b"q"):
            while not seen.endswith(b"q quit: "):
                seen += os.read(ours, 4096)
            os.write(ours, key)
            seen += b"."
        assert process.wait(60) == 0
    os.close(ours)
    assert GREEN.encode() in seen
    assert RED.encode() in seen
    assert labels(folder) == [("p1.r1", "admits it")]
