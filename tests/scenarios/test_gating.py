"""`chaoslab gate`: baselines, what refuses them, the budget, and what is written."""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chaoslab.record import provenance
from chaoslab.scenarios.baseline import Baseline, Suite
from chaoslab.scenarios.gating import (
    GatedScenario,
    ScenarioGate,
    build_junit_cases,
    make_gated_scenarios,
    render_markdown,
    render_workflow_commands,
    run_gate,
)
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.sides import KeptTrials
from chaoslab.search.pairs import Side
from tests.cli_parts import Typed, chaoslab

FOLDER = Path(__file__).parent.parent.parent / "examples" / "scenarios"
SCENARIO = FOLDER / "paid_twice.chaos.yaml"
WELL, BAD, HARM, OPEN = (
    Side(True, "correct", "right", 1, 1.0),
    Side(False, "wrong", "17 | not 12", 1, 1.0),
    Side(False, "harm", "twice", 1, 1.0, harm=True),
    Side(None, "invalid", "no fault", 1, 1.0),
)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])


def of_rows(name: str, base: Iterable[Side], new: Iterable[Side], *, scenarios: int = 1) -> GatedScenario:
    """A scenario whose trials are these on both sides."""
    (scenario,) = load_file_scenarios(SCENARIO)
    named = replace(scenario, variant=name)
    (made,) = make_gated_scenarios([(named, Suite.from_sides(named, 1, [*base]))], 0.05 / scenarios)
    return replace(made, new=KeptTrials(dict(enumerate(new, 1))))


def ruled(*scenarios: GatedScenario, harm_budget: int = 0, trials: int = 400) -> ScenarioGate:
    made = ScenarioGate(harm_budget, [*scenarios])
    run_gate(made, trials=trials)
    return made


@pytest.mark.parametrize(
    ("base", "new", "harm_budget", "code", "said"),
    [
        ([WELL] * 60, [WELL] * 60, 0, 0, "gate passed: no scenario got worse, in 60 trials"),
        ([WELL] * 60, [BAD] * 60, 0, 1, "gate FAILED: paid twice, one got worse"),
        ([WELL] * 60, [WELL, HARM] * 30, 0, 1, "5 trials did harm that did none (0 allowed): paid twice, one 2, 4, 6,"),
        ([HARM] * 60, [HARM] * 60, 0, 0, "gate passed"),
        ([BAD] * 60, [HARM] * 2 + [BAD] * 58, 2, 0, "gate passed"),
        ([WELL] * 60, [OPEN] * 60, 0, 4, "one: 60 of 60 pairs are open (ended well), and 5% may be"),
        ([WELL] * 10, [WELL] * 10, 0, 4, "gate proves nothing: paid twice, one: 10 pairs are too few"),
    ],
)
def test_the_exit_code(base: list[Side], new: list[Side], harm_budget: int, code: int, said: str) -> None:
    made = ruled(of_rows("one", base, new), harm_budget=harm_budget)
    assert (made.exit_code, said in made.summary_line) == (code, True), made.summary_line


def test_the_budget_goes_where_it_is_undecided() -> None:
    doubtful = [BAD if n % 9 == 0 else WELL for n in range(200)]
    made = ruled(of_rows("sure", [WELL] * 200, [WELL] * 200), of_rows("doubtful", [WELL] * 200, doubtful), trials=60)
    assert [len(each.found.pairs) for each in made.scenarios] == [10, 50]


def test_several_scenarios_share_the_chance_of_a_false_alarm() -> None:
    (scenario,) = load_file_scenarios(SCENARIO)
    suite = Suite.from_sides(scenario, 1, [WELL] * 40)
    assert [each.found.alpha for each in make_gated_scenarios([(scenario, suite)] * 2, 0.05)] == [0.025, 0.025]


def test_pairs_that_could_not_decide_any_more_come_last() -> None:
    both = [("short", 44), ("long", 200)]
    made = [ruled(*(of_rows(name, [WELL] * n, [WELL] * n) for name, n in both), trials=trials) for trials in (230, 400)]
    assert [[len(each.found.pairs) for each in one.scenarios] for one in made] == [[40, 190], [44, 200]]


def test_what_is_written_for_a_pull_request_and_for_ci() -> None:
    made = ruled(of_rows("one", [WELL] * 60, [BAD] * 60), of_rows("two", [WELL] * 60, [WELL] * 60))
    made.notes.append("the baseline is 40 days old")
    text = render_markdown(made)
    assert text.startswith("## ❌ gate FAILED: paid twice, one got worse\n")
    assert "| `paid twice, one` | worse | 9 | not stated | 9 → 0 of 9 | 0 | 0 |" in text
    assert "- trial 1: correct → wrong: `17 ¦ not 12`" in text
    document = ElementTree.fromstring(_junit(made))
    assert [len(each) for each in document.iter("testcase")] == [2, 1]
    assert [line.strip()[:9] for line in _junit(made).splitlines()].count("<testcase") == 2  # it is read in a diff, too
    assert [each.get("message") for each in document.iter("failure")] == [
        made.scenarios[0].found.render_comparison_lines()[0]
    ]
    first, second = render_workflow_commands(made)
    assert first == "::warning title=chaoslab gate::the baseline is 40 days old"
    assert second.startswith(
        f"::error file={SCENARIO},title=chaoslab gate%2C paid twice%2C one::worse: ended well 9 → 0 of 9 pairs"
    )


def test_markdown_names_open_pairs_and_says_how_to_see_one() -> None:
    text = render_markdown(ruled(of_rows("one", [WELL] * 60, [*[WELL] * 20, *[OPEN] * 40])))
    head, named = text.split("\n40 of 60 pairs are open:\n\n")
    assert head.endswith("\n\n### `paid twice, one`\n")
    lines = named.splitlines()
    assert [line.split(":")[0] for line in lines[:8]] == [f"- trial {number}" for number in range(21, 29)]
    assert lines[8:] == ["- … and 32 more, from trial 29 on", f"- `chaoslab test {SCENARIO} --trial 21 -k one`"]
    # An open pair may be open in the baseline alone: the reason is there.
    assert "- trial 1: invalid → correct: `no fault`" in render_markdown(
        ruled(of_rows("one", [OPEN] * 60, [WELL] * 60))
    )


def _junit(made: ScenarioGate) -> str:
    from chaoslab.scenarios.junit import render_document

    return render_document(build_junit_cases(made))


@pytest.mark.usefixtures("there")
def test_a_gate_from_its_baseline_to_its_verdict(tmp_path: Path, typed: Typed) -> None:
    path = tmp_path / "baseline.json"
    words = ["gate", "paid_twice.chaos.yaml", "--baseline", str(path)]
    assert typed.refused(*words).endswith(": --write makes one\n")
    out = typed.out(*words, "--write", "--budget", "40")
    assert "paid twice: 39 of 39 ended well, 1 open; 40 of 40 done as asked, 0 open; 0 with harm\nwritten: " in out
    assert len(Baseline.read(path).suites["paid twice"].rows) == 40
    assert "gate passed: no scenario got worse, in 40 trials, of which 1 is open\n" in typed.out(*words, "-q")
    ended = typed(*words, "-q", "--json", "--set", "fresh=paid_twice:naive")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert found["scenarios"][0]["new_harm"] == [2, 3, 4, 5, 6, 8]
    assert found["said"].startswith("gate FAILED: 6 trials did harm that did none (0 allowed)")


DRAWING = """
import random


def read() -> str:
    return "49"


def agent(prompt: str) -> str:
    read()
    if random.random() < {bad}:
        raise RuntimeError("no idea")
    return "It is 49."
"""
DRAWN = """
name: drawn
agent: drawing:agent
reads: [drawing:read]
prompt: How much?
faults: [{fault: latency, target: read, delay_s: 1, chance: 0.5}]
"""


def test_a_gate_that_would_fail_asks_again_on_fresh_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    """A baseline is drawn once: one that was lucky would let each later gate fail."""
    monkeypatch.chdir(tmp_path)
    Path("drawn.chaos.yml").write_text(DRAWN)
    Path("drawing.py").write_text(DRAWING.format(bad=0.3))
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):  # the fresh seed is the commit's
        monkeypatch.setenv(name, "2026-11-01T00:00:00Z")
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@x.test"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *words], check=True)
    words = ["gate", "drawn.chaos.yml", "--baseline", "base.json", "--open-max", "1"]
    typed.out(*words, "--write", "--budget", "60")
    kept = json.loads(Path("base.json").read_text())
    for trial in kept["suites"][0]["trials"]:
        trial["well"] = True
    Path("base.json").write_text(json.dumps(kept))
    lucky = typed(*words, "--markdown", "gate.md")
    assert "gate passed: no scenario got worse" in lucky.out
    assert lucky.out.endswith("worse at first, and not on fresh seeds: drawn\n")
    assert f"the base as revision {kept['revision']} has it" in lucky.out
    assert "`drawn`, rechecked: seed " in Path("gate.md").read_text()
    assert lucky.out == typed(*words).out  # the seed is that of the commit
    Path("base.json").write_text(json.dumps(kept | {"revision": ""}))
    nameless = typed(*words)
    assert (nameless.code, nameless.out.splitlines()[-1]) == (1, "gate FAILED: drawn got worse")
    assert "so one verdict decides: the baseline names no revision" in nameless.out
    Path("base.json").write_text(json.dumps(kept))

    Path("drawing.py").write_text(DRAWING.format(bad=0.6))
    worse = chaoslab(tmp_path, *words)  # in another process, since this one keeps the modules of a folder
    assert (worse.returncode, worse.stdout.splitlines()[-1]) == (
        1,
        "gate FAILED: drawn got worse on fresh seeds too",
    )

    Path("base.json").write_text(json.dumps(kept | {"revision": "0123456789ab"}))
    alone = chaoslab(tmp_path, *words)
    assert (alone.returncode, alone.stdout.splitlines()[-1]) == (1, "gate FAILED: drawn got worse")
    assert "not rechecked on fresh seeds, so one verdict decides: Git knows no revision" in alone.stdout
    # As in a process of its own. The cache itself stays, since virtual time may not ask Git.
    monkeypatch.setattr(provenance, "digest_worktree", provenance.digest_worktree.__wrapped__)
    assert "it names no revision, since changes are not committed" in typed.out(*words, "--write", "--budget", "60")
    assert json.loads(Path("base.json").read_text())["revision"] == ""


def changed(path: Path, **values: Any) -> Path:
    data = json.loads(path.read_text())
    suite = {key: values.pop(key) for key in ("seed", "parts") if key in values}
    data["suites"][0] |= suite
    path.write_text(json.dumps(data | values))
    return path


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"lab": "0.0.9"}, "was made by chaoslab 0.0.9, and this is "),
        ({"seed": 7}, "paid twice had seed 7, and now it is 1"),
        ({"parts": {}}, "paid twice is another suite, by its faults, prompt"),
        ({"suites": []}, "has no scenario 'paid twice' (there are none)"),
        ({"suites": [{}]}, "is no baseline of chaoslab gate"),
        ({"date": "yesterday"}, "is no baseline of chaoslab gate"),
        ({"baseline": 99}, "is a baseline of another form"),
        (
            {"suites": [{"name": "x", "seed": 1, "parts": {}, "trials": [{"number": 2, "well": True}]}]},
            "is no baseline",
        ),
    ],
)
def test_a_baseline_of_something_else_is_refused_in_one_line(
    tmp_path: Path, values: dict[str, Any], said: str, typed: Typed
) -> None:
    (scenario,) = load_file_scenarios(SCENARIO)
    Baseline.create_now([Suite.from_sides(scenario, 1, [WELL] * 3)], path := tmp_path / "baseline.json").save(path)
    err = typed.refused("gate", SCENARIO, "--baseline", changed(path, **values))
    assert said in err
    assert err.endswith((": --write makes a new one\n", ": --write makes one\n"))


def test_a_baseline_is_the_same_in_its_file(tmp_path: Path) -> None:
    (scenario,) = load_file_scenarios(SCENARIO)
    rows = [replace(WELL, done=True, met=False, held="lever x", dollars=None, models=("m",)), BAD, HARM, OPEN]
    made = Baseline.create_now([Suite.from_sides(scenario, 1, rows)], tmp_path / "baseline.json")
    made.save(path := tmp_path / "baseline.json")
    assert Baseline.read(path) == made
    assert len(path.read_text().splitlines()) == 4 + 4  # a trial a line
    assert made.get_matching_suite(path, scenario, 1).harm_count == 1


def test_an_old_baseline_and_one_of_another_python_are_told(tmp_path: Path) -> None:
    (scenario,) = load_file_scenarios(SCENARIO)
    Baseline.create_now([Suite.from_sides(scenario, 1, [WELL])], path := tmp_path / "baseline.json").save(path)
    assert Baseline.read(path).age_warnings == []
    aged = Baseline.read(changed(path, date="2026-01-02T00:00:00.000000Z", python="3.9"))
    assert [note.partition(" days")[0][:16] for note in aged.age_warnings] == ["the baseline is ", "the baseline was"]
    assert "(of 2026-01-02" in aged.age_warnings[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "3x"], "--budget: 3x should be a number of trials, as in 200, or a time, as in 3m or 90s"),
        (["--write", "--budget", "3m"], "a baseline has a number of trials: give --write a --budget such as 200"),
        (["-k", "nothing"], "no scenario has 'nothing' in its name: there are paid twice"),
    ],
)
def test_what_a_gate_cannot_do_is_one_line(tmp_path: Path, words: list[str], said: str, typed: Typed) -> None:
    assert said in typed.refused("gate", SCENARIO, "--baseline", tmp_path / "b.json", *words)
