"""While the agent works, a line a prompt says whether it was answered and what it met, and never that the answer is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from session_parts import no, says, session

from chaoslab.agent.display import Plain
from chaoslab.agent.session import Ended, Progress
from chaoslab.core.plan import Choice, Injection, Plan


async def nobody_asks() -> str:
    raise AssertionError("the line needs no manager")


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (Ended("p3.r1", "none", 0.051), "prompt   3/26 answered   0.05 s  p3.r1: Translate this"),
        (Ended("p3.r1", "model", 12.0), "prompt   3/26 no answer: model error  12.00 s  p3.r1: Translate this"),
        (
            Ended("p3.r2", "none", 2.0, ["latency", "wrong_value", "latency"]),
            "prompt   3/26 answered   2.00 s  p3.r2, met 2 × latency, wrong_value: Translate this",
        ),
    ],
)
def test_a_prompt_that_has_ended_is_a_line(ended: Ended, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(26, prompt_index=3)
    Plain(progress, nobody_asks)
    progress.started(3, "Translate\n this")
    progress.ended(ended)
    assert capsys.readouterr().out == f"{line}\n"


def test_a_wrong_answer_is_an_answer_and_its_faults_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(
        1,
        (
            Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.1}),), ("model",)),
            Injection("hallucination", (Choice("wrong_value"),), ("model",)),
        ),
    )
    session(tmp_path, [says("It is 24.")], plan=plan, shown=lambda progress: Plain(progress, nobody_asks))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("prompt   1/1 answered   0.10 s  p1.r1, met latency, wrong_value: What is")


def test_a_prompt_without_an_answer_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session(tmp_path, [no(400)], shown=lambda progress: Plain(progress, nobody_asks))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("prompt   1/1 no answer: model error ")
