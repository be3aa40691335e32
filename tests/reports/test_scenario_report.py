"""The report of a scenario's run: the scenario's ruling is the verdict, in every format."""

import json
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.record.history import History
from chaoslab.record.rulings import FILE, Rulings, RulingState, TrialRuling
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents.headline import Tone
from tests.reports.fake_run import summary
from tests.sure import sure


def price(*, item: str) -> dict[str, int]:
    return {"price": 4 * len(item)}


def agent(_prompt: str) -> str:
    for _ in range(2):
        try:
            return f"It costs {price(item='pen')['price']}."
        except Exception:  # noqa: BLE001
            continue
    return "I could not find the price: the shop failed."


def asked(fault: Any, *, accept: tuple[str, ...] = ("correct", "degraded")) -> Any:
    made = lab.scenario("the price").agent(agent).reads(price).ask("What is the price?")
    made = made.set(says={"*": {"undone": "could not"}})
    return made.fault("server_error", "price", **fault).accept(*accept)


def ran(folder: Path, scenario: Any, **options: Any) -> Contents:
    scenario.run(logs=folder, seed=1, **options)
    return Contents.from_source(History.read(folder / "latest"), where="logs/run")


def said(kind: str, contents: Contents) -> str:
    (text,) = formats.render_files(kind, contents).values()
    return text


def test_a_failed_assertion_is_the_verdict_of_every_format(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({"calls": [1]}).expect(lab.expect.max_calls(1)), trials=2)
    assert {row.outcome for row in found.rows} == {lab.Outcome.CORRECT}
    assert (found.headline.said, found.headline.tone) == (
        "The scenario does not hold: 2 of 2 judged trials failed",
        Tone.BAD,
    )
    assert "max_calls(calls=1)" in found.rows[0].reason_text
    assert found.worst_row is found.rows[0]
    text = summary(found.report)
    assert text.startswith(f"{found.headline.said}.\n\nNo harm was found")
    assert " · scenario the price · asked for outcome: correct or degraded;" in " ".join(text.split())
    assert "  2 × failed: max_calls(calls=1)" in text
    assert "- **2 × failed**: `max_calls(calls=1)" in said("markdown", found)
    assert "\n    .test(trial=1, seed=1)\n" in text
    for kind in ("html", "json", "markdown"):
        assert "max_calls" in said(kind, found), kind
    assert said("markdown", found).startswith("## ❌ ")
    verdict = json.loads(said("json", found))
    assert verdict["verdict"]["ended"] == {"well": 0, "bad": 2, "open": 0}
    assert verdict["scenario"]["state"] == "failed"
    (cell,) = found.matrix.rows["server_error"]
    assert cell.bad is not None
    assert (cell.bad.count, cell.bad.total) == (2, 2)


def test_the_reliability_of_a_scenario_is_told_as_its_rulings(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({}).expect(lab.expect.max_calls(1)), trials=2)
    assert {row.outcome for row in found.rows} == {lab.Outcome.DEGRADED}  # all of them honest, and none passed
    part = next(part for part in found.report_sections if part.title == "Reliability")
    assert "Mean time between bad trials: no data, since they took no time." in part.key_figure_sentences
    assert part.key_figure_sentences[0].startswith("0/2 (0%, 0%–66%) of the judged trials passed the scenario; ")
    assert part.tables[0].caption.endswith("the share of trials that should pass the scenario")


def test_a_scenario_rules_where_nothing_was_stated_about_right_answers(tmp_path: Path) -> None:
    scenario = asked({"calls": [1]}).set(world="local").expect(lab.expect.max_calls(1))  # which has no twin
    found = ran(tmp_path, scenario, trials=2)
    assert {row.outcome for row in found.rows} == {lab.Outcome.UNKNOWN}
    assert found.headline.said == "The scenario does not hold: 2 of 2 judged trials failed"
    assert found.report.reliability.value is not None
    assert (found.report.reliability.value.available.count, found.report.reliability.value.available.total) == (0, 2)
    text = " ".join(summary(found.report).split())
    assert "Did not end well: failed the scenario, of those that could be judged." in text
    assert "none could be judged" not in text
    assert "Nothing was stated about right effects or answers" in text


def test_an_outcome_that_is_not_accepted_is_named_once(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({}, accept=("correct",)), trials=1)
    for kind in ("markdown", "html"):
        assert "degraded: degraded" not in said(kind, found), kind
    assert found.rows[0].reason_text == found.rows[0].why


def test_a_scenario_that_holds_has_a_good_report_whatever_it_accepts(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({}), trials=2)
    assert {row.outcome for row in found.rows} == {lab.Outcome.DEGRADED}
    assert (found.headline.said, found.headline.tone, found.worst_row) == (
        "The scenario holds: all of 2 judged trials passed",
        Tone.GOOD,
        None,
    )
    assert sure(found.report.reliability.value).available.count == 2
    assert "did not end well" not in said("markdown", found).partition("### Faults and targets")[0]


def test_an_objective_of_all_trials_is_a_case_of_its_own(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({"calls": [1]}).slo(0.9, tool="price"), trials=2)
    assert {row.standing for row in found.rows} == {"well"}
    assert found.headline.tone is Tone.BAD
    assert "2 of 4 calls were good" in found.headline.said


def test_a_scenario_whose_fault_was_never_met_proves_nothing(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({"calls": [9]}), trials=2)
    assert found.headline.tone is Tone.OPEN
    assert found.headline.said.startswith("The scenario proves nothing: no trial met a fault")


def test_a_scenario_that_was_stopped_is_no_good_one(tmp_path: Path) -> None:
    ran(tmp_path, asked({}), trials=3)
    file = tmp_path / "latest" / FILE
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], "no json"]) + "\n")
    found = Contents.from_source(History.read(tmp_path / "latest"), where="logs/run")
    assert (found.headline.said, found.headline.tone) == (
        "No conclusion: the scenario ended early, 1 of 3 trials passed before it ended",
        Tone.OPEN,
    )
    assert found.report.notes == (f"{FILE}: line 3 could not be read",)


def test_a_trial_that_failed_is_run_again_by_its_scenario(tmp_path: Path) -> None:
    found = ran(tmp_path, asked({"calls": [1]}).expect(lab.expect.max_calls(1)), trials=2)
    assert found.build_replay_command("p1.r2") == ".test(trial=2, seed=1)"
    passed = ran(tmp_path, asked({"calls": [1]}), trials=2)
    assert passed.build_replay_command("p1.r2") == "chaoslab show logs/run --trial p1.r2"


def test_the_rulings_are_read_as_they_were_written(tmp_path: Path) -> None:
    ran(tmp_path, asked({"calls": [1]}).expect(lab.expect.max_calls(1)), trials=1)
    found = sure(Rulings.read(tmp_path / "latest"))
    assert (found.scenario, found.trials, found.state, found.cut_lines) == ("the price", 1, RulingState.FAILED, ())
    assert found.asked == ("outcome: correct or degraded", "max_calls(calls=1)")
    assert found.why == ("0 of 1 trials passed, all should",)
    (ruling,) = found.by_trial.values()
    assert isinstance(ruling, TrialRuling)
    assert ruling.state is RulingState.FAILED


def test_rulings_are_read_as_far_as_they_can_be(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(
        '{"scenario": "s", "asked": ["a", 3], "trials": "2"}\n'
        '{"trial": 7, "state": "failed", "reasons": ["x\\ny", 1], "again": 5}\n'
        '{"trial": "p1.r1", "state": "odd"}\n{"state": "passed", "why": "no list"}\n'
    )
    assert Rulings.read(tmp_path) == Rulings(
        scenario="s", asked=("a",), trials=0, by_trial={"7": TrialRuling(RulingState.FAILED, ("x y",))},
        state=RulingState.PASSED,
        why=(), cut_lines=(3,),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]\n", '{"scenario": 1}\n', '{"trial": "p1.r1", "state": {}}\n', "\x00\xff\n"])
def test_rulings_that_are_none_are_no_ruling(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    found = sure(Rulings.read(tmp_path))
    assert (found.by_trial, found.state) == ({}, None)
