"""The reports as data: JSON by its schema, Markdown within its bounds."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from chaoslab.analysis.verdict.standing import Standing
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.core.events import CallFinished, CallStarted, FaultWitnessed
from chaoslab.record.history import History
from chaoslab.reports import formats
from chaoslab.reports.contents import Contents
from chaoslab.reports.contents._matrix import CellState
from chaoslab.reports.contents._parts import _format_long_duration
from chaoslab.reports.contents._rows import FailureWay
from chaoslab.reports.contents.outcomes import SEVERITY
from chaoslab.reports.formats.json import SCHEMA
from chaoslab.reports.formats.markdown import LENGTH_MAX, format_code
from chaoslab.reports.text import escape_and_shorten
from tests.reports import hostile_run
from tests.reports.fake_run import FakeRun, changed
from tests.sure import sure


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    folder = FakeRun(tmp_path_factory.mktemp("run"), prompts=60).write()
    return Contents.from_source(History.read(folder), where="logs/run")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    folder = hostile_run.write(tmp_path_factory.mktemp("hostile"))
    return Contents.from_source(History.read(folder), where="logs/run")


@pytest.fixture(params=["run", "hostile"])
def each(request: pytest.FixtureRequest) -> Contents:
    found: Contents = request.getfixturevalue(request.param)
    return found


OPEN = {Outcome.UNDONE, Outcome.UNKNOWN, Outcome.INVALID, Outcome.UNFINISHED}
BAD = {*Outcome} - OPEN - {Outcome.CORRECT, Outcome.DEGRADED}


def written(kind: str, contents: Contents) -> str:
    """The text of a format that has one file; also, that it can be written down."""
    (text,) = formats.render_files(kind, contents).values()
    text.encode()
    return text


def test_there_is_one_file_a_format() -> None:
    assert formats.list_formats() == ["html", "json", "markdown", "terminal"]


def test_every_format_shows_every_kind_of_run(each: Contents) -> None:
    for kind in formats.list_formats():
        texts = "".join(formats.render_files(kind, each).values())
        assert "\x1b" not in texts
        assert each.rows[0].trial in texts


# JSON.


def test_json_is_as_its_schema_says(each: Contents) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    value = json.loads(written("json", each))
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    assert [trial["trial"] for trial in value["trials"]] == [row.trial for row in each.rows]


def test_the_schema_refuses_what_is_wrong(run: Contents) -> None:
    value: Any = json.loads(written("json", run))
    evidence = {"kind": "fact", "text": "x", "lines": [{"file": "a", "line": 0}]}
    changes: list[Callable[[Any], object]] = [
        lambda v: v.update(schema=1),
        lambda v: v.pop("verdict"),
        lambda v: v["trials"][0].update(outcome="fine"),
        lambda v: v["trials"][0]["evidence"].append(evidence),
    ]
    for change in changes:
        other = json.loads(json.dumps(value))
        change(other)
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(other)


def test_the_numbers_of_the_verdict_are_those_of_the_trials(run: Contents) -> None:
    value = json.loads(written("json", run))
    outcomes = [trial["outcome"] for trial in value["trials"]]
    assert {name: rate["count"] for name, rate in value["outcomes"].items()} == {
        name: outcomes.count(name) for name in set(outcomes)
    }
    verdict = value["verdict"]
    assert verdict["trials"] == len(outcomes) == 60
    judged = sum(Outcome(name) not in OPEN for name in outcomes)
    assert verdict["ended"]["well"] + verdict["ended"]["bad"] == judged
    assert verdict["ended"]["open"] == len(outcomes) - judged
    harmed = {trial["trial"] for trial in value["trials"] if trial["harm"]}
    assert verdict["harmed"]["count"] == len(harmed) == value["outcomes"]["harm"]["count"] > 0
    assert harmed == {trial for kind in value["harm"] for trial in kind["trials"]}
    assert verdict["faults"]["witnessed"] == sum(1 for _ in run.history.find_events(FaultWitnessed))
    assert sum(trial["calls"] for trial in value["trials"]) == sum(1 for _ in run.history.find_events(CallFinished))


def test_a_cell_of_the_matrix_blames_its_fault_by_the_trials_that_met_no_other(run: Contents) -> None:
    met = [cell for cells in run.matrix.rows.values() for cell in cells if cell.state is CellState.MET]
    assert met
    for cell in met:
        there = [row for row in run.rows if (cell.fault, cell.target) in row.met]
        assert cell.trials == len(there)
        alone = [row for row in there if len(row.met) == 1 and row.standing is not Standing.OPEN]
        assert cell.mixed is (cell.bad is not None and not alone)
        blamed = there if cell.mixed or cell.bad is None else [row for row in there if len(row.met) == 1]
        assert cell.worst is min((row.outcome for row in blamed), key=SEVERITY.index)
        assert cell.bad is None or cell.bad.count == sum(row.outcome in BAD for row in blamed)
    assert {cell.mixed for cell in met} == {True, False}


def test_a_fault_that_nobody_witnessed_is_no_result(run: Contents) -> None:
    """Without its witnesses the same run tells of no met fault, and draws no conclusion about one."""
    kept = [record for record in run.history.records if not isinstance(record.event, FaultWitnessed)]
    blind = Contents.from_source(History(kept), where="logs/run")
    states = {cell.state for cells in blind.matrix.rows.values() for cell in cells}
    assert CellState.UNMET in states
    assert CellState.MET not in states
    assert (blind.headline.met, sure(blind.headline.delivery).witnessed) == (0, 0)


# Markdown.


def test_markdown_says_the_verdict_first_and_how_to_see_each_failure_again(run: Contents) -> None:
    text = written("markdown", run)
    assert text.startswith(f"## ❌ {run.headline.said}\n")
    assert (
        text.index("### Harm") < text.index("### Faults and targets") < text.index("### Trials that did not end well")
    )
    assert f"`chaoslab replay logs/run --trial {run.rows[0].trial}`" in text


def test_markdown_tells_the_outcomes_best_first_and_tells_the_unjudged_from_the_bad(run: Contents) -> None:
    (text,) = formats.render_files("markdown", run).values()
    (told,) = re.findall(r"^- outcomes: (.*)$", text, re.MULTILINE)
    names = [part.split(" ", 1)[1].replace(" ", "_") for part in told.split(", ")]
    assert names == [str(outcome) for outcome in Outcome if str(outcome) in names]
    assert "### Trials that did not end well, could not do all or prove nothing\n" in text


def test_markdown_is_bounded(run: Contents) -> None:
    long = [FailureWay("wrong", f"{n} why " * 400, (run.trials_worst_first[n % 60],)) for n in range(900)]
    text = written("markdown", changed(run, failure_ways=long))
    assert len(text) <= LENGTH_MAX
    assert "… and 880 more trials: `chaoslab show logs/run --failed`" in text


def test_trials_that_failed_alike_are_told_once_in_markdown(run: Contents) -> None:
    """With their number, some of their names, and one command; those of another reason or outcome by themselves."""
    bad = Verdict(Outcome.FALSE_SUCCESS, "a charge is missing")
    verdicts = {f"p{n}.r1": bad for n in range(1, 20)} | {"p20.r1": replace(bad, why="a message is missing")}
    verdicts["p21.r1"] = replace(bad, outcome=Outcome.WRONG)
    report = replace(
        run.report, verdicts=verdicts, trials=[*verdicts], standings=dict.fromkeys(verdicts, Standing.BAD), met={}
    )
    text = written("markdown", Contents.from_source(run.source, where=run.where, report=report))
    told = text.partition("prove nothing\n\n")[2]
    assert re.findall(r"^- (.*)$", told, re.MULTILINE) == [
        "**19 × false success**: `a charge is missing` (p1.r1, p2.r1, p3.r1 …)",
        "**p20.r1 false success**: `a message is missing`",
        "**p21.r1 wrong**: `a charge is missing`",
    ]
    assert re.findall(r"--trial (\S+)`", told) == ["p1.r1", "p20.r1", "p21.r1"]


def test_a_command_takes_a_folder_with_a_space(run: Contents) -> None:
    named = replace(run, where="my logs/run")
    trial = run.rows[0].trial
    assert f"`chaoslab replay 'my logs/run' --trial {trial}`" in written("markdown", named)
    assert json.loads(written("json", named))["trials"][0]["replay"].startswith("chaoslab replay 'my logs/run' ")
    assert "chaoslab report &#39;my logs/run&#39; --format json" in written("html", named)


def test_foreign_texts_are_code_in_markdown(hostile: Contents) -> None:
    text = written("markdown", hostile)
    bare = re.sub(r"(`+) ?.*? ?\1(?!`)", "", text)
    for sign in ("<script", "<img", "@everyone"):
        assert sign in text or sign == "@everyone"
        assert sign not in bare
    assert all(line.count("|") == text.splitlines()[0].count("|") or line.startswith(("|", "-", " ", "#")) or line == ""
               or "Trials that met" in line for line in text.splitlines())  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"), [("a", "`a`"), ("a`b", "`` a`b ``"), ("a``b", "``` a``b ```"), ("a|b\nc", "`a¦b c`"), ("", "")]
)
def test_code_spans_hold_any_text(text: str, shown: str) -> None:
    assert format_code(text) == shown


def test_a_short_time_between_bad_trials_is_not_rounded_to_nothing() -> None:
    assert [_format_long_duration(seconds) for seconds in (0.0026, 0.4, 9.5, 70)] == [
        "2.6 ms",
        "0.40 s",
        "9.50 s",
        "1 min 10 s",
    ]


def test_a_call_that_never_ended_counts_in_every_format(run: Contents) -> None:
    place = max(n for n, record in enumerate(run.history) if isinstance(record.event, CallStarted))
    cut = Contents.from_source(History(run.history.records[: place + 1]), where="logs/run")
    made = cut.report.calls.value.made
    assert made == sum(1 for _ in cut.history.find_events(CallFinished)) + 1
    assert sum(row.calls for row in cut.rows) == made
    assert sure(cut.report.costs.value).total.calls == made


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"), ("a\u2028b", "a\\u2028b"), ("\ud800", "\\ud800"), ("a\nb", "a\nb"),
        ("\u202eevil", "\\u202eevil"), ("Zürich ✓ 日本", "Zürich ✓ 日本"), ("\U000e0001", "\\U000e0001"),
        ("123456", "12345…"),
    ],
)  # fmt: skip
def test_a_text_is_shown_and_not_obeyed(text: str, shown: str) -> None:
    assert escape_and_shorten(text, 5 if text == "123456" else 50) == shown
