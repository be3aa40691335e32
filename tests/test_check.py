"""`lab.check` holds a trial to assertions, and a function is one too."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.surfaces.pytest_plugin import Chaos
from tests import warm


def refund(order: int) -> str:
    return f"Order {order} is refunded."


def naive(_: str) -> str:
    try:
        return refund(17)
    except TimeoutError:
        return refund(17)


def once(trial: lab.Trial) -> bool:
    return len(trial.effects) == 1


def trial(**options: Any) -> lab.Trial:
    return lab.run(naive, "Refund order 17.", tools=[refund], **options)


LOST = lab.inject("lost_reply", "refund", calls=[1])


@pytest.mark.parametrize(
    "assertion", [lab.expect.max_calls(1), "no_duplicate_effects", {"max_calls": 1}, once, lambda _: None]
)
def test_what_holds_is_quiet(assertion: Any) -> None:
    lab.check(trial(), assertion)


def twice(trial: lab.Trial) -> str:
    return "paid twice" if len(trial.effects) == 2 else ""


def asserts(trial: lab.Trial) -> None:
    if len(trial.effects) != 1:
        raise AssertionError("one effect should be there")


def divides(trial: lab.Trial) -> bool:
    return bool(1 / (2 - len(trial.effects)))


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (lab.expect.no_duplicate_effects(), r"no_duplicate_effects\(\): refund twice \(events 4, 9 of the trial\)"),
        ({"max_calls": 1}, r"max_calls\(calls=1\): 2 calls, at most 1 were allowed \(event 8 of the trial\)"),
        (once, "once: it returned False"),
        (twice, "twice: paid twice"),
        (asserts, "asserts: one effect should be there"),
        (divides, r"divides raised ZeroDivisionError: division by zero at test_check.py:\d+"),
        (lambda _: [1], r"<lambda> returned \[1\]: it should return True, False, None or a text"),
    ],
)
def test_a_miss_says_what_where_and_how_to_see_it(assertion: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=rf"^p1\.r1 \(harm\): {said}\nstory: trial\.story\(\)$"):
        lab.check(trial(faults=[LOST]), lab.expect.completes_within(60), assertion)


def test_the_storys_command_works(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as error:
        lab.check(trial(faults=[LOST], logs=tmp_path), once)
    (command,) = re.findall(r"^story: chaoslab (.*)$", str(error.value), re.MULTILINE)
    shown = subprocess.run([warm.python(), "-m", "chaoslab", *command.split()], capture_output=True, text=True)
    assert "harm: refund twice" in shown.stdout


@pytest.mark.filterwarnings("ignore::chaoslab.NothingHit")
def test_an_invalid_trial_proves_nothing() -> None:
    with pytest.raises(AssertionError, match=r"the trial is invalid and proves nothing: .* is for request 9"):
        lab.check(trial(faults=[lab.inject("lost_reply", "refund", calls=[9])]), once)


@pytest.mark.parametrize(
    ("assertions", "said"),
    [
        ([], "no assertion: give some of lab.expect"),
        (["no_duplicate_efects"], "did you mean 'no_duplicate_effects'?"),
        ([lab.expect.max_calls], "max_calls stands without its parameters: write max_calls(…)"),
        ([lab.expect.no_false_success], "write no_false_success()"),
        ([5], "an assertion is a name"),
    ],
)
def test_what_is_no_assertion_is_told(assertions: list[Any], said: str) -> None:
    with pytest.raises((LookupError, TypeError, ValueError), match=re.escape(said)):
        lab.check(trial(), *assertions)
    with pytest.raises(TypeError, match=r"takes a trial of lab.run"):
        lab.check("trial", "no_duplicate_effects")  # type: ignore[arg-type]


async def later(_: lab.Trial) -> bool:
    return False


def test_an_async_function_is_no_assertion() -> None:
    with pytest.raises(TypeError, match=r"^later is async, and an assertion is a plain function$"):
        lab.check(trial(), later)


def test_a_function_is_an_assertion_of_scenarios_and_of_the_plug_in(chaos: Chaos, tmp_path: Path) -> None:
    made = lab.scenario("refund").agent(naive).tools(refund).ask("Refund order 17.").accept("correct", "harm")
    assert made.expect(once).run(trials=2).passed
    failed = made.fault("lost_reply", "refund", calls=[1]).expect(once).run(trials=2)
    assert "once: it returned False" in str(failed)
    with pytest.raises(ValueError, match="expect is a function, which no file can hold"):
        made.expect(once).to_file(tmp_path / "x.yaml")
    chaos.run(naive, "Refund order 17.", tools=[refund], expect=[once], trials=1)
    with pytest.raises(pytest.fail.Exception, match="once: it returned False"):
        chaos.run(naive, "x", tools=[refund], expect=[once], accept=["harm"], faults=[LOST], trials=1)


def test_trials_tell_their_number_and_show_those_that_were_run() -> None:
    fault = lab.inject("lost_reply", "refund", chance=0.5)
    trials = lab.run_many(naive, "Refund order 17.", tools=[refund], faults=[fault], trials=30)
    assert isinstance(trials, lab.Trials)
    assert len(trials) == 30
    assert repr(trials) == "30 trials, none of them run yet: each is run when it is taken, as by list(…)"
    outcomes = [each.outcome for each in trials]
    head, header, *rows, rest = repr(trials).splitlines()
    assert head.startswith("30 of 30 trials run: ")
    assert f"{outcomes.count(lab.Outcome.HARM)} harm" in head
    assert header.split() == ["trial", "outcome", "time", "why"]
    assert [row.split()[:2] for row in rows] == [[f"p1.r{n}", outcome] for n, outcome in enumerate(outcomes[:20], 1)]
    assert rest == "… and 10 more"
    assert trials._repr_html_().count("<tr>") == 21


def test_a_table_runs_no_trial_and_guesses_no_outcome() -> None:
    asked: list[str] = []

    def agent(prompt: str) -> str:
        asked.append(prompt)
        return "<b>17</b>"

    trials = lab.run_many(agent, "x", trials=5)
    next(trials)
    before = len(asked)
    next(trials)  # neither kept nor judged
    kept = next(trials)
    assert (repr(trials).splitlines()[0], "<b>" in trials._repr_html_()) == (
        "3 of 5 trials run: 2 not judged, 1 correct",
        False,
    )
    assert (len(asked), kept.outcome, len(trials)) == (before + 2, "correct", 5)


def test_the_types_of_a_trials_parts_are_exported() -> None:
    bad = trial(faults=[LOST])
    assert isinstance(bad.verdict, lab.Verdict)
    assert [type(each) for each in bad.incidents] == [lab.Incident]
