"""The agent's own chance belongs to the trial: drawn from run seed and trial number, and shared by all that is compared
with that trial."""

import contextlib
import random
import secrets
import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

import chaoslab as lab
from chaoslab.memory.planning import plan
from chaoslab.memory.store import FILE, Memory
from chaoslab.scenarios.builder import scenario
from chaoslab.scenarios.comparing import compare_with_itself
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


def get() -> str:
    return "49"


def pay(key: str) -> str:  # noqa: ARG001
    return "paid"


def flaky(prompt: str) -> str:  # noqa: ARG001
    with contextlib.suppress(OSError):
        get()
    if random.random() < 0.4:
        raise RuntimeError("no idea")
    return "I have looked."


def again_by_chance(prompt: str) -> str:  # noqa: ARG001
    """Pays with a key of its own; asks once more in half of the cases if nobody answers."""
    try:
        pay(uuid.uuid4().hex)
    except OSError:
        if random.random() < 0.5:
            pay(secrets.token_hex())
    return "Paid."


def steady(prompt: str) -> str:  # noqa: ARG001
    get()
    return "It is 49."


NO_REPLY = [lab.inject("lost_reply", "pay", calls=[1])]
MAYBE = [lab.inject("refused", "get", chance=0.5)]


@pytest.mark.parametrize("seed", range(10))
def test_an_agent_that_fails_in_40_of_100_trials_is_measured_so_on_any_seed(seed: int) -> None:
    trials = list(lab.run_many(flaky, "How much?", reads=[get], faults=MAYBE, trials=200, seed=seed, anyway=True))
    failed = sum(trial.outcome == "failed" for trial in trials)
    assert 55 <= failed <= 105  # 80 ± 3.6 standard deviations
    assert failed + sum(trial.ok for trial in trials) == 200


def test_a_retry_that_pays_again_by_half_a_chance_harms_in_half_of_the_trials() -> None:
    trials = list(lab.run_many(again_by_chance, "Pay.", tools=[pay], faults=NO_REPLY, trials=100))
    harm = sum(trial.outcome == "harm" for trial in trials)
    assert 32 <= harm <= 68
    assert harm + sum(trial.ok for trial in trials) == 100  # each beside the twin with its own key


def test_a_trial_that_draws_has_a_twin_with_its_chance_and_others_share_one() -> None:
    drawing = list(lab.run_many(again_by_chance, "Pay.", tools=[pay], trials=3))
    keys = [trial.effects[0]["key"] for trial in drawing]
    assert len({*keys}) == 3
    assert [trial.twin.effects[0]["key"] for trial in drawing if trial.twin is not None] == keys
    assert all(trial.drew for trial in drawing)
    calm = list(lab.run_many(steady, "How much?", reads=[get], trials=3))
    assert len({id(trial.twin) for trial in calm}) == 1
    assert not any(trial.drew for trial in calm)


def test_a_double_payment_of_the_twin_by_its_own_chance_is_no_right_effect() -> None:
    def twice(prompt: str) -> str:  # noqa: ARG001
        pay("a")
        if random.random() < 0.2:
            pay("a")
        return "Paid."

    trials = list(lab.run_many(twice, "Pay.", tools=[pay], trials=60))
    assert [trial.outcome == "harm" for trial in trials] == [len(trial.effects) == 2 for trial in trials]
    assert 3 <= sum(trial.outcome == "harm" for trial in trials) <= 24


def test_a_trial_draws_the_same_alone_among_others_in_processes_and_in_children() -> None:
    def drawn(**more: object) -> list[tuple[str, object]]:
        found = lab.run_many(again_by_chance, "Pay.", tools=[pay], faults=NO_REPLY, trials=6, **more)  # type: ignore[arg-type]
        return [(trial.key, trial.effects) for trial in found]

    assert drawn() == drawn(jobs=2) == drawn(isolate="fork")
    assert drawn() != drawn(seed=2)


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    logs = []
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        *_, last = lab.run_many(again_by_chance, "Pay.", tools=[pay], faults=NO_REPLY, trials=5, jobs=jobs, logs=folder)
        assert last.folder is not None
        logs.append({path.name: path.read_bytes() for path in last.folder.glob("*.log")})
    assert logs[0] == logs[1]
    assert logs[0]["info.log"].count(b'"drew": true') == 5


def test_a_run_says_whether_it_draws_its_own_chance() -> None:
    said = "own chance"
    drawing = lab.run_many(again_by_chance, "Pay.", tools=[pay], trials=2).report()
    assert drawing.contents.run_facts[said] == "drawn"
    calm = lab.run_many(steady, "How much?", reads=[get], trials=2).report()
    assert calm.contents.run_facts[said] == "none"
    assert f"{said} none" in " ".join(str(calm).split())


def test_ids_by_which_a_framework_names_things_are_no_chance_of_the_agent() -> None:
    chain: Any = RunnableLambda(lambda _: AIMessage(get()))
    first, second = lab.run_many(chain, "How much?", reads=[get], trials=2)
    assert (first.drew, second.drew) == (False, False)
    assert first.twin is second.twin


def test_a_failing_first_twin_by_chance_is_no_reason_to_run_nothing() -> None:
    seed = next(seed for seed in range(20) if not lab.run(flaky, "?", reads=[get], seed=seed, anyway=True).ok)
    trials = list(lab.run_many(flaky, "?", reads=[get], seed=seed, trials=50))
    assert 8 <= sum(trial.outcome == "failed" for trial in trials) <= 32
    with pytest.raises(lab.NoBaseline, match=r"draws chance of its own, and 4 others were none either"):
        lab.run(always_fails, "?", reads=[get])


def always_fails(prompt: str) -> str:
    get()
    raise RuntimeError(f"{prompt} {random.random()}")


def test_a_later_trial_is_shrunk_with_its_own_chance() -> None:
    many = lab.run_many(again_by_chance, "Pay.", tools=[pay], faults=[*NO_REPLY, *LATE], trials=30)
    harmed = [trial for trial in many if trial.outcome == "harm" and trial.number > 1]
    assert len(harmed) > 5
    for trial in harmed[:5]:
        found = lab.shrink(trial)
        assert found.trial.key == trial.key
        assert found.trial.effects == trial.effects
        assert [each.name for each in found.faults] == ["lost_reply on pay"]
        assert f"trials={trial.number}, " in found.test()


LATE = [lab.inject("latency", "pay", delay_s=0.01)]


def test_one_agent_is_not_called_worse_than_itself() -> None:
    made = scenario("one").agent(unsure).ask("How much?").reads(get).set(facts=["49"], effects=[]).check()
    worse, differ = compare_with_itself(made, 12, trials=60, seed=1, alpha=0.05)
    assert (worse <= 2, differ) == (True, [])


def unsure(prompt: str) -> str:  # noqa: ARG001
    get()
    return "It is 99." if random.random() < 0.2 else "It is 49."


def test_a_plan_within_a_share_holds_back_the_rest_of_its_trials(tmp_path: Path) -> None:
    made = scenario("one").agent(steady).ask("How much?").reads(get)
    store = Memory(tmp_path / FILE, make=True)
    found = plan(store, made, run=True, budget=60, share=0.3, logs=tmp_path)
    assert 8 <= sum(not each.held for each in found.done) <= 30
    assert len(found.done) == 60
