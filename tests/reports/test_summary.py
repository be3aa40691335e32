"""The summary tells a run on one page, also a run that left little or nothing."""

import re
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import (
    Budget,
    CallFinished,
    CallStarted,
    FaultScheduled,
    FaultWitnessed,
    LabWarning,
    PromptStarted,
    RunStarted,
)
from chaoslab.record.history import History
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.headline import describe_harm
from chaoslab.reports.formats import terminal
from chaoslab.reports.page import ROWS
from chaoslab.reports.places import read_history
from tests.event_parts import call_at, fault_at, prompt_finished, run_started, story
from tests.reports.fake_run import TARGETS, FakeRun, ScriptedClock, summary


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return RunReport.from_history(History.read(FakeRun(tmp_path_factory.mktemp("sixty"), prompts=60).write()))


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return line.split()


def flat(text: str) -> str:
    """Without its line breaks."""
    return " ".join(text.split())


def test_it_names_the_run_and_counts_its_trials_calls_and_faults(sixty: RunReport) -> None:
    text = summary(sixty)
    assert "\n\nrun fake · seed 7 · world not known · model chaoslab-offline · done after " in text
    assert row(text, "correct")[1:3] == ["50", "83%"]
    injection, eligible, scheduled, injected, witnessed, *_ = row(text, "errors  ")
    assert (injection, scheduled) == ("errors", injected)
    assert int(eligible) > int(scheduled) == int(witnessed) > 0
    assert "NOT AS PLANNED: hallucination was scheduled 3 times in 147 eligible attempts," in flat(text)
    assert "\n3 failures that nobody injected:\n" in text
    assert "27 retries, 7 fallbacks" in flat(text)
    assert "RECOVERY 31 of 32 incidents recovered" in flat(text)
    assert "price not known" in flat(text)


def test_the_verdict_harm_and_failures_come_before_the_tables(sixty: RunReport) -> None:
    text = summary(sixty)
    starts = [
        "Harm was done in 2 of 60 trials; ",
        "left the ledgers other than they should be",
        "\nwhat hurt most:\n",
        "\ntrials to look at:\n",
        "\nchange first: ",
        "\nrun ",
        "\nOUTCOMES\n",
        "\nfault met ",
        "\nRECOVERY\n",
        "\nCalls: ",
        "\nUsage: ",
        "\nfaults  ",
    ]
    assert sorted(map(text.index, starts)) == [text.index(start) for start in starts]


def test_a_bad_trial_comes_with_the_command_that_does_it_again(sixty: RunReport, tmp_path: Path) -> None:
    trial = next(trial for trial, verdict in sixty.verdicts.items() if verdict.outcome is Outcome.HARM)
    assert f"\n    chaoslab replay fake --trial {trial}\n" in summary(sixty)
    there = summary(sixty, where="my logs/a long name/fake", program=".venv/bin/chaoslab")
    command = f".venv/bin/chaoslab replay 'my logs/a long name/fake' --trial {trial}"
    assert f"\n    {command}\n" in there  # in one line, however long, so that it can be copied
    calm = summary(History.read(FakeRun(tmp_path / "calm", prompts=5, chance=0).write()))
    assert "chaoslab replay" not in calm
    assert "chaoslab show" not in calm
    assert "what hurt most" not in calm


def test_time_to_notice_is_said_of_those_that_noticed_alone(sixty: RunReport) -> None:
    """Others recovered late: their call was answered, so that there was nothing to notice."""
    found = sixty.recovery.value.overall
    assert found.late
    assert found.detected_s is not None
    assert found.since_notice_s is not None
    noticed = found.recovered_count - found.late
    assert f"; the {noticed} by retry or fallback were noticed after " in flat(summary(sixty))
    repaired = [i for i in sixty.recovery.value.incidents if i.recovered and i.since_notice_s is not None]
    assert len(repaired) == noticed


def test_a_run_without_faults_has_no_recovery_and_no_failures(tmp_path: Path) -> None:
    text = summary(History.read(FakeRun(tmp_path, prompts=5, chance=0.0).write()))
    assert "\nRECOVERY\nNo data: " in text
    assert "Failures that nobody injected: none.\n" in text
    assert "met each fault" not in text
    assert row(text, "wire")[1:5] == ["10", "0", "0", "0"]


def test_lines_that_could_not_be_read_are_named(tmp_path: Path) -> None:
    FakeRun(tmp_path, prompts=1).write()
    with (tmp_path / "info.log").open("a") as file:
        file.write('{"ts": "2026-06-0')
    (last,) = History.read(tmp_path).cut_lines["info.log"]
    told = summary(History.read(tmp_path)).splitlines()
    assert f"note: info.log: line {last} could not be read" in told


def test_an_empty_history_is_told_too() -> None:
    text = summary(RunReport.from_history(History([])))
    assert "No conclusion: no trial was started" in text
    assert "No fault was planned." in text
    assert "\nRECOVERY\nNo data: " in text


class SetBack(ScriptedClock):
    """A wall clock that is set back by an hour, and later ahead by a day."""

    def utc(self) -> datetime:
        return super().utc() + timedelta(hours=0 if self.now_s < 20 else -1 if self.now_s < 40 else 24)


def test_no_figure_depends_on_the_wall_clock(tmp_path: Path) -> None:
    steady, set_back = (
        History.read(FakeRun(tmp_path / name, clock=clock).write())
        for name, clock in (("steady", ScriptedClock()), ("set_back", SetBack()))
    )
    stamps = [record.ts for record in set_back.records]
    assert stamps != sorted(stamps)
    assert [record.event for record in set_back.records] == [record.event for record in steady.records]
    assert summary(set_back) == summary(steady)
    assert "\nRECOVERY\nNo data: " not in summary(steady)


# Of Python functions.


def charge(cents: int) -> str:
    return f"charged {cents}"


def rate(currency: str) -> float:
    return 1.1 if currency else 0.0


def pays(prompt: str) -> str:
    """Asks three times, whatever that does."""
    for _ in range(3):
        try:
            return f"{charge(12)} at {rate('EUR')}"
        except TimeoutError:
            continue
    return f"I could not do this: {prompt}"


def paid(logs: Path, *faults: lab.Injection, trials: int = 20) -> History:
    options: Any = {"tools": [charge], "reads": [rate], "faults": faults, "timeout_s": 2.0}
    list(lab.run_many(pays, "Pay", trials=trials, logs=logs, **options))
    return read_history("latest", logs=logs)


def test_what_a_python_run_cannot_tell_is_not_0(tmp_path: Path) -> None:
    text = flat(summary(paid(tmp_path, lab.inject("lost_reply", "charge", calls=[1]))))
    assert " agent pays · " in text
    for zero in ("0 retries", "0 fallbacks", "0 to the model", "the model never answered", "model pays"):
        assert zero not in text
    assert "Calls: 60 to tools; 20 failed; 20 were further attempts at a call already made." in text
    assert "How long the agent waits before one, and what it asks of a model, is not known." in text


def test_a_trial_without_its_run_tells_no_more() -> None:
    text = flat(summary(lab.run(pays, "Pay", tools=[charge], reads=[rate]).history))
    assert "0 retries" not in text
    assert "Calls: 2 to tools; 0 failed; 0 were further attempts" in text


def test_of_faults_that_hurt_as_often_the_one_with_the_worst_outcome_stands_first(tmp_path: Path) -> None:
    def careless(_prompt: str) -> str:
        rate("EUR")
        try:
            return charge(5)
        except TimeoutError:
            return charge(5)

    faults = [lab.inject("lost_reply", "charge", chance=0.25), lab.inject("dns_failure", "rate", chance=0.25)]
    list(lab.run_many(careless, "Pay", trials=8, tools=[charge], reads=[rate], faults=faults, logs=tmp_path))
    text = flat(summary(read_history("latest", logs=tmp_path)))
    often = "2 of 2 judged trials that met it alone did not end well (100%, 95 % interval 34%–100%; without it"
    first, second = f"lost_reply on charge: {often} 0%), at worst harm", f"dns_failure on rate: {often} 33%), at worst"
    assert text.index("what hurt most:") < text.index(first) < text.index(second)


def test_one_recovery_is_told_in_the_singular(tmp_path: Path) -> None:
    text = flat(summary(paid(tmp_path, lab.inject("timeout", "rate", calls=[1]), trials=1)))
    assert "1 of 1 incident recovered (1 by retry)" in text
    assert "0 never. From the beginning of the call that met the fault to the right answer it took 2.00 s" in text


def test_requests_to_services_are_no_calls_of_functions(tmp_path: Path) -> None:
    def asks(_prompt: str) -> str:
        return httpx.get("http://shop/price").text

    lab.run(asks, "Which?", services={"shop": lambda _request: "30"}, logs=tmp_path)
    assert "Calls: 1 to services; 0 failed" in summary(read_history("latest", logs=tmp_path))


def test_a_repeated_charge_is_a_recovery_with_harm(tmp_path: Path) -> None:
    text = flat(summary(paid(tmp_path, lab.inject("lost_reply", "charge", calls=[1]))))
    assert (
        "RECOVERY 0 of 20 incidents recovered, 20 with harm (an effect was repeated, or the end state "
        "is wrong), 0 never. None recovered, so the median is not reached and there is no mean."
    ) in text


def test_what_only_the_managers_log_knows_after_a_cut_is_unfinished(tmp_path: Path) -> None:
    folder = FakeRun(tmp_path, prompts=40).write()
    whole = RunReport.from_history(History.read(folder))
    log = folder / "info.log"
    lines = log.read_bytes().splitlines(keepends=True)
    later = [line for line in lines if b'"kind": "fault_witnessed"' in line]
    (folder / "manager.log").write_bytes(b"".join(later))
    log.write_bytes(b"".join(line for line in lines[: len(lines) // 2] if line not in later))
    cut = RunReport.from_history(History.read(folder))
    assert set(cut.met) <= set(cut.trials) <= {*whole.trials}
    assert {incident.trial for incident in cut.recovery.value.incidents} <= set(cut.trials)
    begun = History.read(folder).begun_trials
    assert 0 < len(begun) < len(cut.trials)
    assert {cut.outcomes_by_trial[trial] for trial in cut.trials if trial not in begun} == {"unfinished"}


def test_trials_that_hung_are_the_reason_why_no_cost_is_known(tmp_path: Path) -> None:
    def waiting(_prompt: str) -> str:
        try:
            return f"{rate('EUR')}"
        except Exception:  # noqa: BLE001
            threading.Event().wait()
        return "never"

    faults = [lab.inject("server_error", "rate", chance=0.8)]
    run = lab.run_many(waiting, "Ask", trials=30, reads=[rate], faults=faults, logs=tmp_path)
    assert {str(trial.outcome) for trial in run} == {"correct", "hung"}
    text = flat(summary(History.read(tmp_path / "latest")))
    assert "no trial of the same prompt met no fault" not in text
    assert "fault met trials did not end well without it server_error" in text, "no column tells what it took more"
    assert "None recovered, so the median is not reached and there is no mean." in text


def test_what_a_fault_cost_is_told_beside_the_twin_and_the_trials_that_met_none(tmp_path: Path) -> None:
    report = RunReport.from_history(paid(tmp_path, lab.inject("timeout", "rate", chance=0.3), trials=40))
    text = summary(report)
    cost, *_ = (line.split()[3:] for line in text.splitlines() if line.startswith("timeout on rate "))
    prompts, *_, seconds, calls = cost
    attempts = report.impacts.value.by_fault["timeout"].attempts
    # each attempt that met it took its 2 s, and one more at charge and at rate came after it
    assert attempts > int(prompts) > 5
    assert float(seconds) == pytest.approx(2 * attempts / int(prompts), abs=0.01)
    assert 0 < float(calls) <= 2 * attempts / int(prompts)
    assert "Without it: the same of the trials that called there and did not meet it." in flat(text)


def test_times_that_are_all_the_same_have_no_interval_and_none_is_infinite(tmp_path: Path) -> None:
    text = flat(summary(paid(tmp_path, lab.inject("timeout", "rate", chance=0.4), trials=60)))
    assert re.search(r" it took (\S+ s)( \(.*?\))? in the mean", text) is not None
    assert "inf" not in text.replace("inferred", "")
    assert not re.search(r"(\d[\d.]*)–\1\b", text)


def test_limits_are_named_and_what_they_refused_is_counted(tmp_path: Path) -> None:
    calls = paid(tmp_path, lab.inject("budget", "rate", calls_max=1), trials=2)
    assert "Budget: the limit of 1 calls refused 2 calls in 2 trials.\n" in summary(calls)
    events = [
        RunStarted(seed=1, settings={}, plan={}, prompts=1, now="", model="", world="local", asked=["asked"]),
        Budget(limit="calls", spent=6.0, allowed=6.0, mode="hard", target="model"),
    ]
    soft = Budget(limit="tokens", spent=9.0, allowed=8.0, mode="soft", target="model")
    text = summary(story(*events, events[1], soft))
    assert "Budget: the lab's CALL_LIMIT of 6 refused 2 calls in 1 trial.\n" in text
    assert "Budget: the lab's TOKEN_LIMIT of 8 was passed at 1 call in 1 trial, and only\n  noted.\n" in text


def test_faults_that_were_not_met_are_counted_by_reason(tmp_path: Path) -> None:
    faults = (lab.inject("timeout", "rate", chance=0.5), lab.inject("wrong_value", "rate"))
    text = summary(paid(tmp_path, *faults))
    missed = re.search(
        r"^(\d+) of \d+ scheduled faults were not witnessed:\n  (\d+) × wrong_value: its call met another fault "
        r"instead$",
        text,
        re.M,
    )
    assert missed is not None
    assert missed[1] == missed[2]


# The page.


def harmed(*whys: str) -> Contents:
    """A report whose trials did this harm, each one of these."""
    report = RunReport.from_history(lab.run(pays, "Pay", tools=[charge], reads=[rate]).history)
    found = [Finding(FindingKind.PHANTOM, why) for why in whys]
    done = [Verdict(Outcome.HARM, one.text, (one.text,), evidence=(one,)) for one in found]
    verdicts = {f"p{n}.r1": verdict for n, verdict in enumerate(done, 1)}
    report = replace(report, verdicts=verdicts, trials=[*verdicts], standings=dict.fromkeys(verdicts, Standing.BAD))
    return Contents.from_source(History([]), where="x", report=report)


def test_harm_is_told_once_with_how_often_and_where() -> None:
    text = terminal.render_summary(harmed("charge twice", *["charge 6 times"] * 12))
    assert text.split("\n\n")[1].splitlines() == [
        "13 of 13 trials left the ledgers other than they should be.",
        "  12 times, first in p2.r1: charge 6 times",
        "  p1.r1: charge twice",
    ]
    none = lab.run(pays, "Pay", tools=[charge], reads=[rate], facts=["12"], effects=[]).history
    assert "No harm was found" in describe_harm(replace(RunReport.from_history(none), verdicts={}))
    assert "harm cannot be found" in describe_harm(replace(RunReport.from_history(none), verdicts={}, judgeable=False))


LONG = "fetch_the_customers_invoices_of_the_last_fiscal_year_by_region"


def long_names() -> History:
    place = (LONG, LONG, 1, 1, "id")
    fault = ("solar_" + LONG, "injection of " + LONG, LONG, 1, 1, "id")
    plan = {"injections": [{"name": fault[1], "chance": 0.5, "calls": [], "choices": []}]}
    events = [
        run_started(plan=plan, now="", model="model_" * 100, world="local", asked=["asked"]),
        PromptStarted(prompt_index=1, prompt=LONG, facts=[[LONG * 9]], effects=[], stated=True),
        *[CallStarted(**call_at(*place)), FaultScheduled(**fault_at(*fault)), FaultWitnessed(**fault_at(*fault))],
        CallFinished(**call_at(*place), ok=False, duration_s=1.0, error="no_answer_" * 50, rolled=[fault[1]]),
        CallFinished(**call_at("b" + LONG, LONG, 1, 1, "id"), ok=False, duration_s=1.0, error="no_answer_" * 50),
        Budget(limit="calls", spent=6, allowed=6, mode="hard", target=LONG),
        LabWarning(message="beware_" * 60),
        prompt_finished("nothing", prompt=LONG),
    ]
    return History(story(*events, run="run" * 1700).records, cut={"x" * 200 + ".log": (3, 4, 5)}, notes=["read " * 40])


def test_every_line_fits_in_80_columns(tmp_path: Path) -> None:
    names = {f"{name}_of_{LONG}": tool for name, tool in TARGETS.items()} | {"messaging": "send_message"}
    lost = lab.inject("lost_reply", "charge", chance=0.5)
    pages = {
        "few": History.read(FakeRun(tmp_path / "few", prompts=2).write()),
        "many": History.read(FakeRun(tmp_path / "many", prompts=120, chance=0.9).write()),
        "long": History.read(FakeRun(tmp_path / "long", prompts=60, targets=names).write()),
        "longest": long_names(),
        "python": paid(tmp_path / "python", lost, lab.inject("timeout", "rate")),
        "nothing": History([]),
    }
    lines = {(name, line) for name, page in pages.items() for line in summary(page).splitlines()}
    wide = {(name, line) for name, line in lines if len(line) > 80}
    assert not wide
    assert not [line for line in terminal.render_summary(harmed(LONG * 9)).splitlines() if len(line) > 80]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    """A run with five faults at 20 targets of long names."""
    targets = {f"{name}_service_of_the_department_{n}": "look_up" for n in range(4) for name in "abcde"}
    run = FakeRun(tmp_path_factory.mktemp("large"), prompts=400, chance=0.9, targets=targets)
    return RunReport.from_history(History.read(run.write()))


def test_a_large_run_is_told_by_its_first_rows_and_the_command_that_shows_all(large: RunReport) -> None:
    short, whole = (summary(large, where="logs/large run", full=full) for full in (False, True))
    assert len(short.splitlines()) < 150
    assert len(whole.splitlines()) > 300
    rows = [len(found.by_fault) + len(found.by_target) for found in (large.impacts.value, large.recovery.value)]
    told = re.findall(r"  … and (\d+) more rows: (.*)\n", short)
    assert told == [(str(number - ROWS), "chaoslab summary 'logs/large run' --full") for number in rows]
    assert "--full" not in whole
    judged = "18 of 18 judged trials did not end well; 1 of these met no fault; 382 open;"
    for known in (judged, "of 400 trials met a fault", " incidents recovered", "\nCalls: "):
        assert known in short
        assert known in whole


def test_what_hurt_most_stands_first_in_each_table(large: RunReport) -> None:
    text = summary(large)

    def names(before: str, after: str) -> list[str]:
        rows = text.partition(before)[2].partition(after)[0].splitlines()
        return [row.split()[0] for row in rows if row.split()[:1] and row.split()[0] in large.impacts.value.by_fault]

    impacts = large.impacts.value.by_fault
    bad = {name: found.bad.count for name, found in impacts.items() if found.bad}
    worst = sorted(impacts, key=lambda name: -bad[name])
    assert worst != sorted(worst)
    assert names("The trials that met each fault", "RELIABILITY") == worst
    never = large.recovery.value.by_fault
    unrepaired = sorted(never, key=lambda name: -never[name].never)
    assert unrepaired != sorted(unrepaired)
    assert names("recovery from ", "RETRIES AND CALLS") == unrepaired


def test_a_faults_targets_are_in_the_same_order_as_the_faults(large: RunReport) -> None:
    whole = summary(large, full=True).partition("The trials that met")[2]
    rows = whole.partition("RELIABILITY")[0].splitlines()
    first = next(number for number, row in enumerate(rows) if row.startswith("wrong_value "))
    told = [row.split()[1] for row in takewhile(lambda row: row.startswith("  on "), rows[first + 1 :])]
    there = large.impacts.value.by_target.items()
    bad = {target: of.bad.count if of.bad else 0 for (name, target), of in there if name == "wrong_value"}
    assert told == sorted(bad, key=lambda target: -bad[target])
    assert told != sorted(told)


def test_what_is_not_as_planned_stands_before_what_was_witnessed_most(large: RunReport) -> None:
    text = summary(large)
    rows = text.partition("\nfaults ")[2].partition("\n\n")[0].splitlines()[1:]
    found = {one.injection: one for one in large.delivered.value.by_injection}
    told = [row.split(":")[0].split()[0] for row in rows if not row.startswith(" ")]
    assert told == ["hallucination", "wire", "errors"]
    assert found["hallucination"].plausible is False
    assert found["wire"].witnessed > found["errors"].witnessed > found["hallucination"].witnessed
    assert "\nFirst what is not as planned; " in text
