"""The whole lab in one process: any number of trials, each in a world of its own."""

import gc
import importlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.base.clock import system
from chaoslab.core.events import CallFinished, Effect, PromptStarted
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import InProcessExecutor
from chaoslab.lab._virtual_lab import Lab, LabSpec
from chaoslab.record.history import History
from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.machine.machine import Hung
from tests.worlds.virtual import lab_runs
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

CLEAN = {"TOXIC_PROB": "0", "ERROR_PROB": "0"}


def work(asked: list[str], **settings: str) -> LabSpec:
    reader: Any = importlib.import_module("chaoslab.agent.prompts")
    return lab_runs.spec({**CLEAN, **settings}, [reader.Prompt(prompt=text) for text in asked])


def keys(asked: int, trials: int | None) -> list[str]:
    given = {} if trials is None else {"TRIALS": str(trials)}
    found = lab_runs.done(work([f"What is {n} times 24?" for n in range(2, 2 + asked)], **given))
    return [str(one.buffered_events[0].trial) for one in found]


@pytest.mark.parametrize(
    ("asked", "trials", "expected"),
    [
        (2, None, ["p1.r1", "p2.r1"]),
        (3, 2, ["p1.r1", "p2.r1"]),
        (2, 5, ["p1.r1", "p2.r1", "p1.r2", "p2.r2", "p1.r3"]),
        (1, 2, ["p1.r1", "p1.r2"]),
    ],
)
def test_trials_are_the_prompts_in_order_and_then_again(asked: int, trials: int | None, expected: list[str]) -> None:
    assert keys(asked, trials) == expected


def test_a_timeout_of_thirty_seconds_is_not_waited_for() -> None:
    began_s = system.monotonic()
    (one,) = lab_runs.done(
        work(["What is 17 times 24?"], TOXIC_PROB="1", TOXICS="timeout", TOOL_TIMEOUT_S="600", DEADLINE_S="86400")
    )
    assert one.seconds > 1200
    assert one.ok
    assert one.witnessed == 2
    assert system.monotonic() - began_s < 600


def test_a_trial_comes_with_its_verdict() -> None:
    reader: Any = importlib.import_module("chaoslab.agent.prompts")
    asked = [reader.Prompt(prompt="What is 17 times 24?", facts=[fact]) for fact in ("408", "409")]
    found = lab_runs.done(lab_runs.spec(CLEAN, asked), jobs=2)
    assert [one.outcome for one in found] == [Outcome.CORRECT, Outcome.WRONG]


def test_a_verdict_of_a_trial_is_that_of_its_lines(tmp_path: Path) -> None:
    settings = {**lab_runs.EVERYTHING, "TRIALS": "30", "SEED": "7", "DEADLINE_S": "40"}
    asked = lab_runs.spec(settings, lab_runs.prompts([1, 2, 5, 9]))
    found = lab_runs.done(asked)
    lab_runs.written(tmp_path, asked, found)
    (folder,) = (path for path in tmp_path.iterdir() if not path.is_symlink())
    history = History.read(folder)
    outcomes = [str(one.outcome) for one in found]
    assert outcomes == [
        str(judge_trial(history, asked.get_work_item_name(TrialSpec(number))).outcome) for number in range(30)
    ]
    assert len(set(outcomes)) > 2


def test_a_trial_leaves_no_attempt_to_the_garbage_collector() -> None:
    asked = work(["What is 17 times 24?"], TOXIC_PROB="1", TOXICS="latency", TOXIC_TARGETS="calculator")
    lab = Lab(asked)
    with lab.install_fakes():
        done = lab.run_trial(TrialSpec(0))
        left = [thing for thing in gc.get_objects() if type(thing).__name__ == "_Attempt"]
    assert [each.fields["ok"] for each in done.buffered_events if each.is_of_kind(CallFinished)] == [True] * 3
    assert left == []


def test_a_trial_that_passes_its_deadline_is_hung_and_leaves_nothing_behind(capfd: pytest.CaptureFixture[str]) -> None:
    asked = work(
        ["What is 17 times 24?", "Hello?"], TOXIC_PROB="1", TOXICS="timeout", TOOL_TIMEOUT_S="30", DEADLINE_S="1"
    )
    hung, other = lab_runs.done(asked)
    assert (hung.outcome, hung.ok, hung.seconds) == (Outcome.HUNG, False, 1.0)
    (attempt,) = lab_runs.events_of(hung, "agent")
    told = attempt.text if isinstance(attempt.text, str) else vars(attempt.text)["error"]
    assert told.startswith("not over after 1 s of virtual time\n")
    assert "waits for" in told
    assert (other.outcome, other.ok) == (Outcome.CORRECT, True)
    assert here.world is None
    assert capfd.readouterr().err == ""


def test_what_one_trial_remembers_no_other_sees() -> None:
    """The calendar and the mailbox of a trial begin as they were."""
    asked = work(
        ['Create an event called "Standup" tomorrow at 10:00.', "What is on my calendar tomorrow?"], TRIALS="4"
    )
    first, seen, again, once_more = lab_runs.done(asked)
    assert all(one.ok for one in (first, seen, again, once_more))
    answers = [str(kept.text) for one in (seen, once_more) for kept in lab_runs.events_of(one, "info")[-1:]]
    assert all("Standup" not in answer for answer in answers)
    assert len(lab_runs.events_of(first, "calendar")) == len(lab_runs.events_of(again, "calendar")) > 0


def test_dollars_bound_the_run_and_all_else_a_trial() -> None:
    assert work(["Hello?"], COST_LIMIT_USD="1").is_sequential
    assert not work(["Hello?"], TOKEN_LIMIT="9", CALL_LIMIT="9", TIME_LIMIT_S="9").is_sequential


def test_what_was_spent_before_is_what_a_trial_begins_with() -> None:
    (one,) = InProcessExecutor().map(work(["Hello?"]), [TrialSpec(0, spent_usd=0.25)])
    assert one.run_spent_usd >= 0.25


@pytest.mark.parametrize(
    "error",
    [Hung("it would wait for ever", ["the agent waits"]), Unsupported("a subprocess", "call a function")],
    ids=repr,
)
def test_what_ends_a_trial_is_itself_in_another_process(error: BaseException) -> None:
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)


def test_a_lie_about_what_nobody_stated_is_found_beside_the_twin() -> None:
    """The shipped prompt states three temperatures, and nothing about their mean."""
    lying = {**CLEAN, "HALLUCINATION_PROB": "1", "ERROR_TARGETS": "calculator", "SEED": "2"}
    (one,) = lab_runs.done(lab_runs.spec(lying, lab_runs.prompts([23])))
    assert one.outcome is Outcome.WRONG
    (calm,) = lab_runs.done(lab_runs.spec(CLEAN, lab_runs.prompts([23])))
    assert next(k for k in calm.buffered_events if k.is_of_kind(PromptStarted)).fields["twin"].endswith("/ 3 = 21.08.")


def test_the_services_forget_a_twin() -> None:
    """A twin has the key of the trial that it is compared with, so its requests look like repeated ones."""
    lab = Lab(work(['Put "Team lunch" in my calendar for the day after tomorrow, from noon to 1:30 pm.']))
    with lab.install_fakes():
        calm, done = lab.run_faultless_trial(0), lab.run_trial(TrialSpec(0))
    effects = [[each.fields for each in one.buffered_events if each.is_of_kind(Effect)] for one in (calm, done)]
    assert effects[0] == effects[1] != []
