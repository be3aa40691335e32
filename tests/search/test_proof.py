"""The failures that a change, or a mitigation around an agent's functions, closes and opens."""

import itertools
import json
import random
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.cli import main
from chaoslab.execution.explore import Exploration
from chaoslab.record.rulings import RulingsFile, RulingState, TrialRuling
from chaoslab.scenarios.exploring import build_rerun_command, find_rerun_arguments, render_pytest
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.located import ScenarioError
from chaoslab.search.proof import NewCall, Proof, ProofChange
from chaoslab.search.variation import Site
from tests.search.search_parts import B, at, tried

FOLDER = Path(__file__).parent.parent.parent / "examples" / "scenarios"
SAYS = {"*": {"unsure": "could not|may not"}}
"""No caller can tell after a lost reply: the words of all agents here are words of doubt."""
paid: list[int] = []


def pay(amount: int) -> str:
    paid.append(amount)
    return "paid"


def asks_again(_: str) -> str:
    for _attempt in range(2):
        try:
            return pay(10)
        except OSError:
            continue
    return "I could not pay."


def asks_once(_: str) -> str:
    try:
        return pay(10)
    except OSError:
        return "I could not pay; it may have been done."


async def pays_async(amount: int) -> str:
    paid.append(amount)
    return "paid"


async def asks_again_async(_: str) -> str:
    for _attempt in range(2):
        try:
            return await pays_async(10)
        except OSError:
            continue
    return "I could not pay."


def explored(agent: Any, tool: Any) -> Exploration:
    faults = ["lost_reply", "redelivery", "timeout_before_effect"]
    return lab.explore(agent, "go", tools=[tool], tries=faults, by=["singles"], says=SAYS)


@pytest.mark.parametrize(
    ("mitigation", "closed", "opened"),
    [
        ("key", {"lost_reply at pay 1", "redelivery at pay 1"}, set()),
        ("read-first", {"lost_reply at pay 1"}, set()),
        ("no-retry", {"lost_reply at pay 1"}, set()),
        ("backoff", set(), set()),
        ("deadline", set(), set()),
    ],
)
def test_each_mitigation_closes_what_it_can(mitigation: str, closed: set[str], opened: set[str]) -> None:
    proof = lab.prove(explored(asks_again, pay), mitigation=mitigation)
    told = proof.to_json_data()["cells"]
    assert {each["faults"] for each in told if each["change"] == "closed"} >= closed
    assert {each["faults"] for each in told if each["change"] == "opened"} == opened
    if mitigation == "key":
        assert proof.holds


def test_a_mitigation_goes_around_async_functions_too() -> None:
    proof = lab.prove(explored(asks_again_async, pays_async), mitigation="key")
    found = {each["faults"] for each in proof.to_json_data()["cells"] if each["change"] == "closed"}
    assert found == {"lost_reply at pays_async 1", "redelivery at pays_async 1"}


def test_backing_off_takes_time_and_changes_no_verdict() -> None:
    before, after = lab.prove(explored(asks_again, pay), mitigation="backoff").costs_before_and_after
    assert after.seconds > before.seconds


def test_another_agent_is_tried_on_the_same_cells() -> None:
    proof = lab.prove(explored(asks_again, pay), asks_once)
    assert "lost_reply at pay 1" in {
        each["faults"] for each in proof.to_json_data()["cells"] if each["change"] == "closed"
    }
    assert "it costs" in "\n".join(proof.describe_in_words())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "prove takes another agent, or mitigation=, and not both"),
        ({"mitigation": "hope"}, "no mitigation is called 'hope'"),
    ],
)
def test_what_cannot_be_proved_is_one_line(given: dict[str, Any], said: str) -> None:
    found = explored(asks_again, pay)
    with pytest.raises((ValueError, LookupError), match=said):
        lab.prove(found, **given)


def raises_by(chance: float, *, fails_by_itself: bool = False) -> Callable[[str], str]:
    """Raises after a failed call by this chance, and in half of its later runs without one, in a way that the
    lab does not control."""
    dice, runs = random.Random(1), itertools.count()  # made outside of a trial, so they are the agent's own

    def agent(_: str) -> str:
        own_failure = fails_by_itself and next(runs) > 4 and dice.random() < 0.5
        try:
            pay(10)
        except OSError:
            if dice.random() < chance:
                raise
        if own_failure:
            raise RuntimeError("no idea")
        return "Done."

    return agent


@pytest.mark.parametrize(("chance", "holds"), [(0.0, True), (0.5, False)])
def test_a_failure_that_still_comes_now_and_then_is_not_closed(chance: float, holds: bool) -> None:
    given: dict[str, Any] = {"reads": [pay], "tries": ["refused", "dns_failure"], "by": ["singles"], "anyway": True}
    found = lab.explore(raises_by(1.0), "go", **given)
    assert {each.outcome for each in found.trials if each.variation.injections} == {"failed"}
    proof = lab.prove(found, raises_by(chance))
    assert proof.holds is holds
    assert len(proof.list_changes_of_kind("failing")) == (2 if chance else 0)
    assert proof.by_itself == []


def test_a_change_with_which_the_agent_fails_by_itself_does_not_hold() -> None:
    given: dict[str, Any] = {"reads": [pay], "tries": ["refused", "dns_failure", "reset_peer"], "by": ["singles"]}
    proof = lab.prove(lab.explore(raises_by(1.0), "go", **given), raises_by(0.0, fails_by_itself=True))
    assert not proof.list_changes_of_kind("opened")
    assert not proof.holds
    (own,) = proof.by_itself
    assert own.why == "no answer: agent error (RuntimeError: no idea)"
    assert f"  after the change it {own}" in str(proof).splitlines()


def test_a_change_after_which_too_much_is_open_proves_nothing() -> None:
    closed, unclear = (tried(at(B), outcome) for outcome in ("correct", "unknown"))
    changes = [ProofChange(tried(at(B), "failed"), closed), *[ProofChange(closed, closed)] * 18]
    assert Proof("key", [*changes, ProofChange(closed, unclear)]).holds
    proof = Proof("key", [*changes, *[ProofChange(closed, unclear)] * 2])
    assert (proof.holds, proof.unproven_reason) == (False, "2 of 21 trials are open only after the change")
    assert str(proof).endswith("  this proves nothing: 2 of 21 trials are open only after the change")
    assert Proof("key", [*changes, *[ProofChange(unclear, unclear)] * 2]).holds
    assert not Proof("key", changes, [NewCall(Site("c", 1), 2, 2, (), 2)]).holds
    assert str(NewCall(Site("c", 1), 2, 2, (), 2)) == "c 1, 2 of 2 faults tried, 2 open, none fails"


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.usefixtures("there")
def test_the_command_says_which_mitigation_holds(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["prove", "paid_twice.chaos.yaml", "--set", "fresh=paid_twice:naive", "-n", "20"]
    assert main([*words, "--try", "key,backoff"]) == 0
    assert capsys.readouterr().out.endswith("closes failures and opens none: key\n")
    assert main([*words, "--try", "hope"]) == 2
    assert "--try has 'hope'" in capsys.readouterr().err
    assert main(words) == 2
    assert capsys.readouterr().err == "prove takes one of --agent, --fresh and --try\n"


def test_a_run_of_an_exploration_is_proved_without_naming_its_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("paid_twice.chaos.yaml", "paid_twice.py", "shop.py"):
        shutil.copy(FOLDER / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    explore = ["explore", "paid_twice.chaos.yaml", "--set", "fresh=paid_twice:naive", "--tries", "lost_reply"]
    assert main([*explore, "--by", "singles", "--logs", "logs"]) == 1
    capsys.readouterr()
    assert main(["prove", "latest", "--fresh", "paid_twice:careful"]) == 0
    assert "closed: lost_reply at refund 1: harm" in capsys.readouterr().out
    assert main(["test", "paid_twice.chaos.yaml", "-n", "1", "--logs", "logs"]) in (0, 4)
    capsys.readouterr()
    assert main(["prove", "latest", "--fresh", "paid_twice:careful"]) == 2
    assert "holds no exploration of a scenario" in capsys.readouterr().err


@pytest.mark.usefixtures("there")
def test_shrink_writes_a_test_that_is_red(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["shrink", "paid_twice.chaos.yaml", "--set", "fresh=paid_twice:naive", "--trial", "3"]
    file = tmp_path / "test_found.py"
    assert main([*words, "--json", "--test", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["minimal"]
    assert found["cause"].startswith("lost_reply at refund 1")
    spec = spec_from_file_location("test_found", file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(module := module_from_spec(spec))
    test = next(value for name, value in vars(module).items() if name.startswith("test_"))
    with pytest.raises(AssertionError, match="refund"):
        test()
    assert len(file.read_text().splitlines()) <= 15


@pytest.mark.usefixtures("there")
def test_shrink_tells_the_cause_and_the_trial(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shrink", "paid_twice.chaos.yaml", "--set", "fresh=paid_twice:naive", "--trial", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "harm: lost_reply at refund 1 and at refund 1, attempt 2: refund 3 times",
        "found in 3 trials; no fault can be left out",
        "with it 1 of 1, without it 0 of 1",
        "",
        "p1.r3  prompt 1: Refund order 17.",
    ]
    assert [line[:43] for line in lines if "rerun:" in line] == ["rerun: chaoslab test paid_twice.chaos.yaml "]
    assert lines[-1] == "    scenario.test()"


@pytest.mark.usefixtures("there")
def test_a_trial_of_a_run_is_shrunk_as_its_own_command_made_it(capsys: pytest.CaptureFixture[str]) -> None:
    naive = ["paid_twice.chaos.yaml", "--set", "fresh=paid_twice:naive"]
    assert main(["test", *naive, "-n", "3", "--logs", "logs"]) == 1
    found = []
    for words in ([*naive, "--trial", "3"], ["latest", "--trial", "p1.r3"]):
        capsys.readouterr()
        assert main(["shrink", *words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


@pytest.mark.usefixtures("there")
def test_a_fault_that_goes_on_for_good_is_one_part(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["shrink", "endless_loop.chaos.yaml", "--set", "fresh=endless_loop:naive", "--trial", "2", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["faults"] == [{"fault": "empty", "target": "search", "calls": [1], "persistence": "for_good"}]
    assert found["reruns"] < 10


@pytest.mark.usefixtures("there")
def test_a_trial_that_passed_is_not_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shrink", "paid_twice.chaos.yaml", "--trial", "1"]) == 2
    assert "trial 1 is no failure to shrink" in capsys.readouterr().err


def pays_where_it_is_asked_to(prompt: str) -> str:
    for _ in range(2 if "Pay" in prompt else 0):
        with suppress(OSError):
            return pay(17)
    return "Hello."


@pytest.mark.parametrize(
    ("prompt", "tools", "shorter"),
    [
        ("Hello there. Pay order 17. Thank you.", [pay], "Pay order 17."),
        ("Hello there. Pay order 17.", {"pay": pay}, "Pay order 17."),
        (lab.turns("Hello.", "Pay order 17.", lab.turn("Thanks.", after_s=5)), [pay], ["Pay order 17."]),
    ],
)
def test_what_is_asked_is_shrunk_to_the_part_that_fails(prompt: Any, tools: Any, shorter: Any) -> None:
    trial = lab.run(pays_where_it_is_asked_to, prompt, tools=tools, faults=[lab.inject("lost_reply", "pay", calls=[1])])
    failure = lab.shrink(trial)
    found = failure.prompt
    assert (found if isinstance(found, str) or found is None else [turn.say for turn in found.turns]) == shorter
    key = f"prompt={shorter!r}" if isinstance(shorter, str) else f"turns={[{'say': say} for say in shorter]}"
    (scenario, *_) = load_file_scenarios(FOLDER / "empty_answer.chaos.yaml")
    assert f", {key})" in render_pytest(scenario, failure)
    assert shlex.join([re.sub("'", '"', key)]) in build_rerun_command(scenario, failure)


def test_a_run_without_a_trial_to_shrink_is_one_line(tmp_path: Path) -> None:
    file = RulingsFile(tmp_path, "refund", [], 2)
    passed, failed = TrialRuling(RulingState.PASSED), TrialRuling(RulingState.FAILED, again="python mine.py")
    for ruling, trial, said in (
        (None, "", "no scenario made this run: give a scenario's file, and --trial"),
        (("p1.r1", passed), "", "every trial of this run passed: there is nothing to shrink"),
        (None, "1", "p1.r1 is no trial that failed, and no other did"),
        (("p1.r2", failed), "1", "p1.r1 is no trial that failed: there are p1.r2"),
        (None, "2", "it was run from Python, as python mine.py: use lab.shrink there"),
    ):
        if ruling is not None:
            file.add_ruling(*ruling)
        with pytest.raises(ScenarioError) as refused:
            find_rerun_arguments(tmp_path, trial)
        assert str(refused.value) == f"{tmp_path}: {said}"


def notify(amount: int) -> str:
    paid.append(amount)
    return "noted"


def notes_again(_: str) -> str:
    """Asks once to pay, and now tells somebody else, twice if nobody answers."""
    try:
        pay(10)
    except OSError:
        return "I could not pay; it may have been done."
    for _attempt in range(2):
        try:
            notify(10)
            return "paid"
        except OSError:
            continue
    return "paid"


def notes_once(_: str) -> str:
    try:
        pay(10)
    except OSError:
        return "I could not pay; it may have been done."
    try:
        notify(10)
    except OSError:
        return "It is paid; it may not have been noted."
    return "paid"


def test_a_mended_agent_is_explored_at_its_own_new_calls() -> None:
    found = lab.explore(asks_again, "go", tools=[pay], tries=["lost_reply", "timeout_before_effect"], says=SAYS)
    more: dict[str, Any] = {"tools": [pay, notify], "accept": ("correct", "degraded", "wrong")}
    proof = lab.prove(found, notes_again, **more)
    assert proof.list_changes_of_kind("closed")
    assert not proof.list_changes_of_kind("opened")
    assert not proof.holds
    (new, *_) = proof.new
    assert (str(new.site), new.tried, new.of) == ("notify 1", 2, 2)
    assert new.failures[0].startswith("harm: lost_reply at notify 1: notify twice")
    assert "new call: notify 1, 2 of 2 faults tried: harm: lost_reply at notify 1" in str(proof)
    assert [*proof.describe_in_words(most=0)][-1] == f"  … and {len(proof.new)} more new calls"
    assert proof.to_json_data()["new_calls"][0]["failures"] == new.failures
    assert lab.prove(found, notes_once, **more).holds


def test_a_proof_with_new_calls_that_were_not_tried_does_not_hold() -> None:
    new = NewCall(Site("notify", 1), 0, 2)
    assert str(new) == "notify 1, 0 of 2 faults tried"
    assert not new.survives_all_faults
    assert str(Proof("key", refused="it fails")) == "key: it cannot be tried: it fails"
    assert NewCall(Site("notify", 1), 2, 2).survives_all_faults


def test_a_proof_prints_as_a_page() -> None:
    proof = lab.prove(lab.explore(asks_again, "go", tools=[pay]), mitigation="key")
    assert len(proof.changes) > 50
    assert repr(proof) == str(proof) == "\n".join(proof.describe_in_words())
    assert len(str(proof)) < 4000
