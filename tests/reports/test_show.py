"""A prompt's story stands in time order, from its question to its verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_run import FakeRun

from chaoslab.events import PromptStarted
from chaoslab.history import History, Record
from chaoslab.reports.show import render


def test_a_story_goes_from_question_over_faults_to_verdict(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=60).write())
    text = render(history, prompt=9)
    lines = text.splitlines()
    assert lines[0].startswith("p9.r1  prompt 9: Question 9")
    order = (
        "call     translator 1.1 translate(",
        "timeout scheduled by wire",
        "timeout armed on lane translator.1",
        "result   translator 1.1 FAILED timed_out in 2.000 s via lane",
        "timeout witnessed: the caller saw it",
        "call     translator 1.2",
        'effect   messaging message_sent {"to": "ana", "text": "42"',
        "answer   after",
        "verdict  unknown",
    )
    places = [next(n for n, line in enumerate(lines) if part in line) for part in order]
    assert places == sorted(places)
    moments = [float(line.split()[0]) for line in lines[1:-1]]
    assert moments == sorted(moments)
    assert moments[0] == 0.0
    assert "retry    translator 1.2 after 0.1 s: no answer" in text


def test_fault_parameters_and_fallbacks_show(tmp_path: Path) -> None:
    text = render(History.read(FakeRun(tmp_path, prompts=60).write()))
    assert 'latency scheduled by wire {"delay_s": 0.5}' in text
    assert "to http://127.0.0.1:5000" in text
    assert text.count("verdict  ") == 60


def test_each_repeat_is_told() -> None:
    starts = [Record("", float(n), "run", f"p7.r{n}", "info", n, PromptStarted(7, "again")) for n in (1, 2)]
    text = render(History(starts), prompt=7)
    assert "p7.r1  prompt 7: again" in text
    assert "p7.r2  prompt 7: again" in text
    assert text.count("unfinished: the run ended before it did") == 2


def test_a_prompt_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=3).write())
    with pytest.raises(LookupError, match="this run has no prompt 9: its prompts are 1 to 3"):
        render(history, prompt=9)
    with pytest.raises(LookupError, match="this run has no prompt: no prompt was started in it"):
        render(History([]))
