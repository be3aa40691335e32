"""The verdict on a run in one sentence: it is the first line of every report, and calls no short run a good one."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.commandline import PROVES_NOTHING
from chaoslab.core.events import CallDisturbed, CallFinished, LabDisturbed, RunFinished
from chaoslab.lab import launch
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.headline import Tone, build_headline, describe_verdict, list_harms
from chaoslab.reports.gate import Gate
from tests.reports.fake_run import changed, summary


def price(*, item: str) -> dict[str, int]:
    return {"price": 4 * len(item)}


def stock(*, item: str) -> dict[str, int]:
    return {"left": len(item)}


def agent(_prompt: str) -> str:
    try:
        return f"It costs {price(item='pen')['price']}."
    except Exception:  # noqa: BLE001
        return "I could not find the price: the shop failed."


SAYS = {"*": {"undone": "could not"}}


def ran(folder: Path, fault: Any) -> History:
    lab.run(agent, "What is the price?", reads=[price, stock], faults=[fault], logs=folder, says=SAYS)
    return History.read(folder / "latest")


def test_a_run_of_honest_answers_is_called_degraded_and_not_bad(tmp_path: Path) -> None:
    found = Contents.from_source(ran(tmp_path, lab.inject("server_error", "price")), where="logs/run")
    assert found.headline.said == "1 of 1 judged trial was degraded, and said so"
    assert summary(found.report).startswith("1 of 1 judged trial was degraded, and said so.\n")
    assert found.worst_row is not None
    (page,) = formats.render_files("markdown", found).values()
    assert f"- worst: **p1.r1 degraded**: `{found.worst_row.why}` `chaoslab show logs/run --trial p1.r1`" in page


def test_a_run_that_was_interrupted_is_no_good_one(tmp_path: Path) -> None:
    history = ran(tmp_path, lab.inject("latency", "price", delay_s=0.1))
    whole = Contents.from_source(history, where="logs/run")
    assert (whole.headline.said, whole.headline.tone, whole.worst_row) == (
        "All of 1 judged trial ended well",
        Tone.GOOD,
        None,
    )
    cut = History(
        replace(record, event=replace(record.event, reason="interrupted"))
        if isinstance(record.event, RunFinished)
        else record
        for record in history
    )
    head = Contents.from_source(cut, where="logs/run").headline
    assert head.said == "The run ended early (interrupted): all of 1 judged trial ended well"
    assert head.tone is Tone.OPEN


def test_the_targets_where_a_fault_was_met_stand_first(tmp_path: Path) -> None:
    def both(_prompt: str) -> str:
        return f"{price(item='pen')['price']} and {stock(item='pen')['left']}"

    faults = [lab.inject("latency", "stock", delay_s=0.1), lab.inject("latency", "price", delay_s=0.1, chance=0.0)]
    lab.run(both, "Which?", reads=[price, stock], faults=faults, logs=tmp_path)
    assert Contents.from_source(History.read(tmp_path / "latest"), where="x").matrix.targets == ("stock", "price")


def test_an_example_of_harm_names_a_trial_that_has_it(tmp_path: Path) -> None:
    found = Contents.from_source(ran(tmp_path, lab.inject("server_error", "price")), where="logs/run")

    texts = {"t1": "once", "t2": "often", "t3": "often"}
    verdicts = {
        trial: Verdict(Outcome.HARM, "", (text,), evidence=(Finding(FindingKind.PHANTOM, text),))
        for trial, text in texts.items()
    }
    done = list_harms(replace(found.report, verdicts=verdicts), [*texts])
    (phantom,) = [harm for harm in done if harm.findings]
    assert (phantom.trials, phantom.examples) == (("t1", "t2", "t3"), (("often", 2, "t2"), ("once", 1, "t1")))
    shown = changed(found, harms=done)
    (page,) = formats.render_files("markdown", shown).values()
    assert "| 3 | 3 | `often` | `t2` |" in page
    (page,) = formats.render_files("html", shown).values()
    assert '<div>often <small>× 2</small> <a href="#trial=t2">t2</a></div>' in page


def test_trials_that_failed_without_a_fault_are_told_at_once(tmp_path: Path) -> None:
    """These no fault explains, and they are the first thing to mend."""

    def broken(_prompt: str) -> str:
        raise ValueError(price(item="pen"))

    def said(*faults: lab.Injection) -> str:
        list(lab.run_many(broken, "Which?", trials=6, reads=[price], faults=faults, logs=tmp_path, anyway=True))
        report = Contents.from_source(History.read(tmp_path / "latest"), where="x").report
        head, *_ = text = summary(report).split("\n\n")
        assert "Nothing was stated about right effects or answers, so" in " ".join("\n".join(text).split())
        hurt = "what hurt most" in "\n".join(text)
        return f"{head} {hurt}"

    some = said(lab.inject("server_error", "price", chance=0.4))
    assert some == "6 of 6 judged trials did not end well; 2 of these met no fault. False"  # they end alike without it
    assert said(lab.inject("server_error", "price")) == "6 of 6 judged trials did not end well. True"
    assert said() == "6 of 6 judged trials did not end well; none of these met a fault. False"


def test_a_run_without_a_plan_says_so(tmp_path: Path) -> None:
    lab.run(agent, "What is the price?", reads=[price], logs=tmp_path)
    head = Contents.from_source(History.read(tmp_path / "latest"), where="x").headline
    assert head.said == "No conclusion about faults: none was planned in 1 trial"


def test_a_figure_without_data_is_no_0(tmp_path: Path) -> None:
    """Trials that took no time have no mean time between bad ones, and few have a part of a bad trial to spare."""
    list(
        lab.run_many(
            agent,
            "Which?",
            trials=8,
            reads=[price],
            faults=[lab.inject("exception", "price")],
            logs=tmp_path,
            says=SAYS,
        )
    )
    (part,) = [each for each in Contents.from_source(History.read(tmp_path / "latest"), where="x").report_sections
               if each.title == "Reliability"]  # fmt: skip
    assert "Mean time between bad trials: no data, since they took no time." in part.key_figure_sentences
    assert [row[1] for row in part.tables[0].cell_texts] == ["0.8", "0.4", "0.08", "0.008"]


def test_a_run_that_goes_on_or_was_killed_is_no_good_one(tmp_path: Path) -> None:
    whole = ran(tmp_path, lab.inject("latency", "price", delay_s=0.1))
    cut = History(record for record in whole if not isinstance(record.event, RunFinished))
    found = Contents.from_source(cut, where="logs/run")
    assert found.headline.said == "The run did not end: all of 1 judged trial ended well"
    assert found.headline.tone is Tone.OPEN
    running = build_headline(replace(found.report, running=True))
    assert running.said == "The run still goes on: all of 1 judged trial ended well"


def test_what_could_be_judged_and_what_was_scheduled_is_told_without_zeros(tmp_path: Path) -> None:
    lab.run(
        agent, "Which?", reads=[price], faults=[lab.inject("exception", "price", chance=0.0)], twin=False, logs=tmp_path
    )
    found = Contents.from_source(History.read(tmp_path / "latest"), where="x")
    pages = ["".join(formats.render_files(kind, found).values()) for kind in ("markdown", "html")]
    assert all("nothing was stated about a right answer" in page for page in pages)
    assert all("o fault was scheduled" in page and " of 0 scheduled" not in page for page in pages)


def test_what_fails_at_a_service_though_nobody_injected_it_stands_in_the_first_sentence(tmp_path: Path) -> None:
    def agent(_prompt: str) -> str:
        for _ in range(2):
            httpx.get("http://shop.test/price")
        with contextlib.suppress(LookupError):
            gone(item="pen")
        return f"It costs {price(item='pen')['price']}."

    def gone(*, item: str) -> None:
        raise LookupError(item)

    def head(name: str, *faults: Any, status: int = 503) -> Any:
        lab.run(
            agent, "What is the price?", reads=[price, gone], services={"shop.test": lambda _: (status, "")},
            faults=[lab.inject("latency", "price", delay_s=0.1), *faults], facts=["12"], effects=[],
            logs=tmp_path / name,
        )  # fmt: skip
        return Contents.from_source(History.read(tmp_path / name / "latest"), where="x").headline

    well = "All of 1 judged trial ended well"
    dead = head("dead")
    assert dead.said == f"{well}; services failed 2 times (5xx or no answer), no fault there before, in 1 of 1 trial"
    assert dead.tone is Tone.OPEN
    overdue = [
        replace(r, event=replace(r.event, error="timed_out", status=None, duration_s=2.001))
        if isinstance(r.event, CallFinished) and r.event.target == "shop.test" else r
        for r in History.read(tmp_path / "dead" / "latest").records
    ]  # fmt: skip
    why = " (no answer from shop.test after 2.0 s in 2 of them: a standstill, or a slow machine)"
    assert Contents.from_source(History(overdue), where="x").headline.said == dead.said + why
    refused = head("refused", status=404)
    assert (refused.said, refused.tone) == (well, Tone.GOOD), "a service's own no is no damage"
    later = head("later", lab.inject("latency", "shop.test", delay_s=0.1, calls=[1]))
    assert later.said == well, "it may be a consequence of the fault that hit the service before"


def test_no_run_is_green_in_which_calls_were_hit_by_what_nobody_injected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = ran(tmp_path, lab.inject("latency", "price", delay_s=0.1))
    trial, call = history.trials[0], history.find_first_event(CallFinished)
    assert call is not None
    foreign = LabDisturbed(
        what="not from this lab: latency on price", since="2026-06-01T12:03:01Z", lasted_s=2.0, lanes=[], epoch=0
    )
    hit = CallDisturbed(at=call.at, tool="price", why="latency on price since 12:03:01 is not from this lab")
    more = [
        Record("", 2.0, history.run_name, trial, "manager", 1, hit),
        Record("", 4.0, history.run_name, None, "manager", 2, foreign),
    ]
    report = RunReport.from_history(History([*history.records, *more]))
    told = "1 call in 1 of 1 trial hit by a disturbance of the lab (not from this lab: latency on price since 12:03:01)"
    assert (describe_verdict(report)[0].endswith(f"; {told}"), describe_verdict(report)[1]) == (True, Tone.OPEN)
    assert "price 1.1 was hit by what nobody injected: latency on price since" in " ".join(summary(report).split())
    lost = summary(RunReport.from_history(History([*history.records, more[0]])))
    assert "The lab was disturbed, and its end is not in the log; 1 attempt hit." in lost
    assert launch._apply_gate(Gate(), report, 0) == PROVES_NOTHING
    assert capsys.readouterr().err == f"not green: {told}\n"
    assert launch._apply_gate(None, report, 0) == launch._apply_gate(Gate(), RunReport.from_history(history), 0) == 0
    assert launch._apply_gate(Gate(min_correct=1.0), report, 0) == PROVES_NOTHING
