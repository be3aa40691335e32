"""Sums of trials that were made where they ran: a report that adds them up is the one that reads the stories."""

from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from pprint import pformat
from typing import Any

import msgspec
import pytest

import chaoslab as lab
from chaoslab.analysis.measures import _findings as findings
from chaoslab.analysis.measures import latency, run_report, sums
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.measures.trials import TrialFigures
from chaoslab.core.events import Budget, Event, PromptFinished, PromptStarted
from chaoslab.record import pack_sums, packs
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports import contents, formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._rows import poor
from chaoslab.reports.formats import json
from chaoslab.worlds.virtual import run_writer
from tests.reports.fake_run import summary

FAULTS = (
    lab.inject("lost_reply", "charge", chance=0.3),
    lab.inject("tool_error", "look_up", chance=0.2, persistence="for_s 40"),
    lab.inject("latency", "charge", chance=0.2),
    lab.inject("wrong_value", "look_up", chance=0.1),
)


def charge(order: int) -> str:
    return f"charged {order}"


def look_up(order: int) -> dict[str, int]:
    return {"order": order, "price": 49}


def agent(_prompt: str) -> str:
    for _ in range(4):
        try:
            price = look_up(17)["price"]
            break
        except Exception:  # noqa: BLE001
            continue
    else:
        return "There is no price."
    for _ in range(2):
        try:
            return f"{charge(17)} for {price} euros"
        except TimeoutError:
            continue
    return "It is not charged."


def run(folder: Path, agent: Any = agent, **more: Any) -> Path:
    given: dict[str, Any] = {
        "tools": [charge],
        "reads": [look_up],
        "faults": FAULTS,
        "trials": 60,
        "log_as": "packs",
    } | more
    for _ in lab.run_many(agent, "go", logs=folder, **given):
        pass
    return (folder / "latest").resolve()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "PACK", 20_000)
    monkeypatch.setattr(run_writer.RunWriter, "block", 7)


def both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RunReport, RunReport]:
    """The report by sums, and the one by stories."""
    with monkeypatch.context() as patch:
        patch.setattr(packs, "_lines_of", lambda *_: pytest.fail("a pack was opened"))
        summed = RunReport.read(folder)
    with monkeypatch.context() as patch:
        patch.setattr(run_report, "_summed", lambda _: None)
        return summed, RunReport.read(folder)


def check_same(one: RunReport, other: RunReport) -> None:
    for each in fields(RunReport):
        # pprint sorts sets, which repr shows in an order that changes with the hash seed; width=1 keeps repr out
        own, others = (pformat(getattr(report, each.name), width=1) for report in (one, other))
        assert own == others, each.name
    assert one == other
    assert summary(one, full=True) == summary(other, full=True)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("shown", "kept"), [(10_000, 100_000), (5, 20)])
def test_the_report_is_the_one_that_reads_the_stories(
    jobs: int, shown: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "SHOWN_MAX", shown)
    monkeypatch.setattr(latency, "KEPT", kept)
    summed, read = both(run(tmp_path, jobs=jobs), monkeypatch)
    assert len(summed.trials) == 60
    assert summed.recovery.value.incidents
    assert summed.spells.value
    assert {str(verdict.outcome) for verdict in summed.verdicts.values()} > {"correct", "harm"}
    check_same(summed, read)


@pytest.mark.parametrize("most", [1000, 50, 8])
def test_files_of_the_report_are_those_of_the_stories(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long run the trials in trouble alone are shown; all else stays."""
    folder = run(tmp_path)
    whole = json.value(Contents.of(History.read(folder), where="r"))
    monkeypatch.setattr(contents, "SHOWN", most)
    summed, read = Contents.read(str(folder), where="r"), Contents.of(History.read(folder), where="r")
    assert summed.report.trials
    assert summed.advice
    if most < 60:
        examples = {trial for one in summed.advice for trial in one.trials[: contents.EXAMPLES]}
        others = {row.trial for row in summed.rows} - examples - {summed.order[0]}
        assert all(poor(summed.report, trial) for trial in others)
    for kind in ("html", "json", "junit", "markdown"):
        assert formats.files(kind, summed) == formats.files(kind, read), kind
    found = json.value(summed)
    assert [key for key in whole if found[key] != whole[key]] == (["trials", "left_out"] if most < 60 else [])
    assert found["trials"] == [each for each in whole["trials"] if each in found["trials"]]
    assert found["left_out"]["trials"] == 60 - len(found["trials"])


def test_stories_are_read_of_the_trials_that_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run(tmp_path)
    monkeypatch.setattr(contents, "SHOWN", 2)
    monkeypatch.setattr(contents, "EXAMPLES", 0)
    opened, lines_of = [], packs._lines_of

    def noted(path: Path, pack: packs.Pack) -> tuple[bytes, str]:
        opened.append(path.name)
        return lines_of(path, pack)

    monkeypatch.setattr(packs, "_lines_of", noted)
    found = Contents.read(str(folder), where="r")
    assert {record.trial for record in found.history} == {row.trial for row in found.rows}
    assert len(found.rows) == 2
    assert all(row.answer for row in found.rows)
    assert len(opened) < len([*folder.glob("*.log.zst")])
    assert "2 of these are shown" in found.more


def test_sums_of_an_interrupted_run_are_those_of_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = lab.run_many(
        agent, "go", tools=[charge], reads=[look_up], faults=FAULTS, trials=60, log_as="packs", logs=tmp_path
    )
    for _, _trial in zip(range(17), trials, strict=False):
        pass
    trials.close()
    summed, read = both((tmp_path / "latest").resolve(), monkeypatch)
    assert len(summed.trials) >= 17
    check_same(summed, read)


@pytest.mark.parametrize("broken", ["gone", "of other code", "of another pack", "cut", "of other trials"])
def test_stories_are_read_where_sums_do_not_stand_for_them(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(tmp_path)
    _, read = both(folder, monkeypatch)
    path = folder / "info.000002.sums.zst"
    head, body = path.read_bytes().split(b"\n", 1)
    if broken == "gone":
        path.unlink()
    elif broken == "of other code":
        monkeypatch.setattr(pack_sums, "_code", lambda: "another")
    elif broken == "of another pack":
        path.write_bytes((folder / "info.000001.sums.zst").read_bytes())
    elif broken == "cut":
        path.write_bytes(head + b"\n" + body[:-9])
    else:
        import msgspec
        import zstandard

        blocks = pack_sums._BLOCKS.decode(zstandard.ZstdDecompressor().decompress(body))
        blocks[0].lines.pop()
        path.write_bytes(head + b"\n" + zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(blocks)))
    assert run_report._summed(folder) is None
    assert RunReport.read(folder) == read


def unspeakable(order: int) -> str:
    raise ValueError(f"no {order} \ud800")


def unlucky(_prompt: str) -> str:
    return unspeakable(17)


def test_trials_that_cannot_be_summed_up_are_read(tmp_path: Path) -> None:
    folder = run(tmp_path, unlucky, tools=[unspeakable], reads=[], faults=[], trials=20, anyway=True)
    assert not [*folder.glob("*.sums.zst")]
    assert len(RunReport.read(folder).trials) == 20


def test_no_sums_are_made_of_what_only_a_history_can_tell() -> None:
    def numbered(events: list[Event], trial: str | None = "p1.r1", since: int = 1) -> list[Record]:
        return [Record("", float(n), "run", trial, "info", n, event) for n, event in enumerate(events, since)]

    began = PromptStarted(prompt_index=1, prompt="x")
    ended = PromptFinished(prompt_index=1, prompt="x", status="ok", answer="y", attempts=1, duration_s=3.0)
    spent = Budget(limit="calls", spent=2, allowed=1, mode="hard", target="search")
    whole = [numbered([began, ended]), numbered([began, ended], "p2.r1")]
    assert sums.made(whole)
    for other in (
        [numbered([began, ended], since=2)], [numbered([began, ended], None)], [numbered([began, spent, ended])],
        [[whole[0][0], replace(whole[1][1], seq=2), replace(whole[1][0], seq=3)]],
    ):  # fmt: skip
        assert sums.made(other) is None


def test_stories_that_are_left_out_have_no_sums(tmp_path: Path) -> None:
    assert not [*run(tmp_path, keep="failed").glob("*.sums.zst")]


@pytest.mark.parametrize("amount", [Fraction(1, 3), 0.1, 0])
def test_figures_of_a_trial_are_kept_exactly(amount: float | Fraction) -> None:
    trial = TrialFigures(usd=amount, spent_s=amount, called=frozenset({"b", "a"}))
    kept = msgspec.msgpack.encode(sums._figures(trial))
    again = sums._trial(msgspec.msgpack.decode(kept, type=sums._Figures))
    assert (again, type(again.usd), type(again.spent_s)) == (trial, type(amount), type(amount))
