"""Ctrl-C at any moment: one exit code, no traceback, nothing left behind, and what there is kept and summed up."""

import os
from pathlib import Path

import pytest

from chaoslab.analysis.verdict.judge import judge_all_trials
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.events import PromptFinished, RunFinished
from chaoslab.record.history import History
from tests import warm
from tests.cli_parts import prompts
from tests.hard.dying_parts import eventually, gone, lab, ports_are_free

EASY = ("What is 17 times 24?", "What is the weather in Oslo?") * 20
SLOW = ("TOXIC_PROB=1", "TOXICS=latency", "LATENCY_MS=400", "JITTER_MS=0", "ERROR_PROB=0")
REFUSING = ("TOXIC_PROB=1", "TOXICS=refused", "ERROR_PROB=0", "TOOL_LIMIT=5")
BEFORE = {
    "a part starts": ("tools.out", "", ("tools",)),
    "the manager starts": ("manager.out", "ready", ()),
    "the agent starts": ("said.txt", "the lab is up", ("agent",)),
}
"""The word that tells of the moment, and the part that is then in the middle of its imports."""
WITHIN = {
    "a model call": ("info.log", '"kind": "call_started", "target": "model"', SLOW, 1),
    "a retry": ("info.log", '"kind": "retry"', REFUSING, 1),
    "a tool call on an armed lane, twice": ("manager.log", '"kind": "fault_armed", "target": "c', SLOW, 2),
}  # fmt: skip


@pytest.mark.parametrize("moment", BEFORE)
def test_before_the_run_has_begun(tmp_path: Path, moment: str) -> None:
    file, word, importing = BEFORE[moment]
    python = warm.python_but(tmp_path, *importing)
    with lab(tmp_path, prompts(tmp_path, EASY), *SLOW, python=python) as it:
        it.until(file, word)
        children = it.children()
        it.interrupt()
        assert it.ended() == 130
        eventually(lambda: all(gone(pid) for pid in children))
        assert ports_are_free(it.base)
        assert "Traceback" not in it.said
        assert "prompts:" not in it.said


@pytest.mark.parametrize("moment", WITHIN)
def test_within_a_prompt(tmp_path: Path, moment: str) -> None:
    file, word, settings, times = WITHIN[moment]
    with lab(tmp_path, prompts(tmp_path, EASY), *settings, python=warm.python()) as it:
        it.until(file, word)
        children = it.children()
        for _ in range(times):
            it.interrupt()
        assert it.ended() == 130
        assert all(gone(pid) for pid in children), children
        assert len(children) == 5
        assert ports_are_free(it.base)
        assert "Traceback" not in it.said
        history = History.read(it.run)
        (end,) = [event for _, event in history.find_events(RunFinished)]
        finished = len(list(history.find_events(PromptFinished)))
        assert (end.reason, end.processed) == ("interrupted", finished)
        assert "interrupted after" in it.said
        outcomes = [verdict.outcome for verdict in judge_all_trials(history).values()]
        assert outcomes[-1] is Outcome.UNFINISHED
        assert Outcome.INVALID not in outcomes
        assert outcomes.count(Outcome.UNFINISHED) == 1
        assert "unfinished" in it.said
        assert history.unreadable_counts == {}


def test_while_the_charts_are_drawn(tmp_path: Path) -> None:
    """The interrupt comes late: the drawing waits at a pipe that nobody reads from."""
    calm = ("TOXIC_PROB=0", "ERROR_PROB=0")
    with lab(tmp_path, prompts(tmp_path, EASY[:1]), *calm, python=warm.python()) as it:
        it.until("said.txt", "the lab is up")
        # The draft of the main thread, whose number is that of the process.
        part = f".throughput.png.{it.supervisor}.{it.supervisor}.part"
        for folder in (tmp_path / "charts", it.run / "charts"):
            folder.mkdir()
            os.mkfifo(folder / part)
        it.until("said.txt", "all figures:")
        it.interrupt()
        assert it.ended() == 130
        assert "Traceback" not in it.said
        assert [path for path in tmp_path.rglob("*.png") if path.is_file()] == []
        assert ports_are_free(it.base)
        history = History.read(it.run)
        assert [event.reason for _, event in history.find_events(RunFinished)] == ["done"]
