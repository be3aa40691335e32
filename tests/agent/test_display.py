"""While the agent works, one line a prompt says whether it was answered and what it met, never that it is right."""

import asyncio
import contextlib
import io
import sys
from pathlib import Path

import pytest

from chaoslab.agent.display import PlainDisplay, choose_display
from chaoslab.core.plan import Choice, Injection, Plan
from chaoslab.reports.progress import LiveRun
from tests.agent.session_parts import Told, no, says, session
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def lines(told: Told) -> list[str]:
    watched = LiveRun()
    watched.add_records(told.history.records)
    return list(watched.describe_ended_trials())


def test_a_wrong_answer_is_an_answer_and_its_faults_are_named(tmp_path: Path) -> None:
    plan = Plan(
        1,
        (
            Injection("wire", (Choice("latency", 1.0, {"delay_s": 0.1}),), ("model",)),
            Injection("hallucination", (Choice("wrong_value"),), ("model",)),
        ),
    )
    (line,) = lines(session(tmp_path, [says("It is 24.")], plan=plan))
    assert line.startswith("trial   1/0 answered   0.10 s  p1.r1, met ")
    assert {"latency", "wrong_value"} == set(line.partition("met ")[2].partition(":")[0].split(", "))


def test_a_prompt_without_an_answer_says_so(tmp_path: Path) -> None:
    (line,) = lines(session(tmp_path, [no(400)]))
    assert line.startswith("trial   1/0 no answer: model error ")


def test_a_terminal_has_a_line_with_the_trial_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session(tmp_path, [says("It is 24.")])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")

    async def watched() -> None:
        screen = asyncio.ensure_future(choose_display(next(tmp_path.rglob("run.json")).parent).show_progress(60.0))
        await asyncio.sleep(0)
        screen.cancel()
        await asyncio.wait([screen])

    asyncio.run(watched())
    assert " 0 faults, 0 a minute · What is 6 times" in capsys.readouterr().out


def test_a_reader_that_has_gone_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(tmp_path, [says("It is 24.")])
    printed = []

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            printed.append(text)
            raise BrokenPipeError

    async def watched() -> None:
        screen = asyncio.ensure_future(choose_display(next(tmp_path.rglob("run.json")).parent).show_progress(60.0))
        await asyncio.sleep(0)
        screen.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await screen

    monkeypatch.setattr("sys.stdout", Gone())
    asyncio.run(watched())
    sys.stdout.close()  # the display's own, for the rest of the process
    assert len(printed) == 1


def test_what_is_left_is_said_when_the_watching_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session(tmp_path / "other", [says("It is 24.")])
    logs = {path.name: path.read_bytes() for path in (tmp_path / "other").rglob("*.log")}
    folder = tmp_path / "run"
    folder.mkdir()

    async def watched() -> None:
        screen = asyncio.ensure_future(PlainDisplay(folder).show_progress(60.0))
        await asyncio.sleep(0)
        for name, lines in logs.items():
            (folder / name).write_bytes(lines)
        screen.cancel()
        await asyncio.wait([screen])

    asyncio.run(watched())
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("trial   1/0 answered ")
