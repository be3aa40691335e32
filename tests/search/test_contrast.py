"""A cause is told from noise: on other chance it fails with the faults, and not without them."""

import contextlib
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.execution.explore import Exploration
from chaoslab.scenarios.exploring import explain_unproven_search
from chaoslab.search.contrast import Contrast


def get() -> str:
    return "49"


def pay() -> str:
    return "paid"


def noisy(chance: float) -> Callable[[str], str]:
    """Pays twice now and then, whatever is faulted."""

    def agent(prompt: str) -> str:  # noqa: ARG001
        with contextlib.suppress(OSError):
            get()
        pay()
        if random.random() < chance:
            pay()
        return "Paid."

    return agent


def twice_by_half_a_chance(prompt: str) -> str:  # noqa: ARG001
    """Pays again in half of the cases if it does not get the price."""
    try:
        get()
    except OSError:
        if random.random() < 0.5:
            pay()
    pay()
    return "Paid."


TRIES = ["refused", "reset_peer", "timeout_before_effect", "wrong_value"]


def explored(agent: Callable[[str], str], seed: int = 1, **more: object) -> Exploration:
    return lab.explore(agent, "Pay.", tools=[pay], reads=[get], seed=seed, tries=TRIES, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_what_happens_without_faults_too_is_one_finding_and_no_cause(seed: int) -> None:
    found = explored(noisy(0.2), seed)
    assert [each for each in found.failures if each.outcome == "harm"] == []
    (own,) = found.by_itself
    assert str(own).startswith(f"fails by itself: {own.failed} of {own.trials} without faults (harm: pay twice")
    assert own.failed < own.trials <= 40
    assert str(own) in str(found)


def test_a_first_trial_without_faults_that_fails_by_chance_is_counted_and_another_is_varied() -> None:
    agent = noisy(0.2)
    given: dict[str, Any] = {"tools": [pay], "reads": [get], "anyway": True}
    seed = next(seed for seed in range(40) if len(lab.run(agent, "Pay.", seed=seed, **given).effects) == 2)
    found = explored(agent, seed, by=["singles"])
    assert found.map.known.calm.chance > 0
    assert {each.chance for each in found.trials} >= {found.map.known.calm.chance}
    assert [each.outcome for each in found.by_itself] == ["harm"]
    assert [each for each in found.failures if each.outcome == "harm"] == []


def test_noise_that_the_lab_does_not_control_is_no_cause_either() -> None:
    count = itertools.count()

    def every_ninth(prompt: str) -> str:  # noqa: ARG001
        with contextlib.suppress(OSError):
            get()
        pay()
        if next(count) % 9 == 8:
            pay()
        return "Paid."

    found = explored(every_ninth)
    assert [each for each in found.failures if each.outcome == "harm"] == []
    assert [each.outcome for each in found.by_itself] == ["harm"]


def fails_the_first_times(times: int) -> Callable[[str], str]:
    """Fails as often as this after a lost price, by something that the lab does not control."""
    count = itertools.count()

    def agent(prompt: str) -> str:  # noqa: ARG001
        try:
            get()
        except OSError:
            if next(count) < times:
                raise
        return "Done."

    return agent


@pytest.mark.parametrize("times", [1, 2])
def test_a_failure_that_does_not_come_again_is_neither_a_cause_nor_survived(times: int) -> None:
    found = lab.explore(fails_the_first_times(times), "Pay.", reads=[get], tries=["refused"], by=["singles"])
    assert found.failures == []
    (unconfirmed,) = found.unconfirmed
    assert str(unconfirmed).startswith("with it 0 of 5, without it 0 of 5: failed: refused at get 1")
    first, _, title, line, map_line, *_ = str(found).splitlines()
    assert first.startswith("no failure was confirmed in 2 trials, ")
    assert (title, line) == ("failed, perhaps by chance: 1", f"  {unconfirmed}"[: len(line) - 1] + line[-1])
    points = "Single points of failure, by faults that hit once: 0 of 1 call, 1 undecided."
    assert map_line == f"map: 1 of 2 cells tried: 1 unknown. {points}"
    reason = explain_unproven_search(found.trials, found.unconfirmed)
    assert reason == f"1 failure may be chance: {unconfirmed}"


@pytest.mark.parametrize("times", [2, 3])
def test_a_failure_that_chance_may_explain_is_not_shrunk_to_a_cause(times: int) -> None:
    agent = fails_the_first_times(times)
    trial = lab.run(agent, "Pay.", reads=[get], faults=[lab.inject("refused", "get", calls=[1])])
    assert trial.outcome == "failed"
    with pytest.raises(ValueError, match="chance may be the cause as well as its faults: with it 0 of 5, without it 0"):
        lab.shrink(trial)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_fault_that_harms_by_half_a_chance_is_a_cause_on_any_seed(seed: int) -> None:
    found = explored(twice_by_half_a_chance, seed, by=["singles"])
    (harm,) = [each for each in found.failures if each.outcome == "harm"]
    assert {site.split()[0] for site in [harm.cause.partition(" at ")[2]]} == {"get"}
    assert harm.contrast is not None
    assert harm.contrast.calm_failed == 0
    assert harm.contrast.holds
    assert f"(with it {harm.contrast.failed} of {harm.contrast.trials}, without it 0 of" in str(harm)
    assert harm.shown_fails
    assert harm.trial.outcome == "harm"
    assert found.by_itself == []


def test_an_agent_that_draws_nothing_is_tried_again_once() -> None:
    def careless(prompt: str) -> str:  # noqa: ARG001
        try:
            get()
        except OSError:
            pay()
        pay()
        return "Paid."

    (harm, *_) = explored(careless, by=["singles"]).failures
    assert harm.contrast == Contrast(1, 1, 0, 1)
    assert str(harm) == "harm: timeout_before_effect at get 1: pay twice (and 3 more faults there)"


def test_a_failure_without_its_faults_is_not_shrunk() -> None:
    trials = lab.run_many(
        noisy(0.3), "Pay.", tools=[pay], reads=[get], trials=40, faults=[lab.inject("refused", "get", calls=[1])]
    )
    harmed, *_ = [trial for trial in trials if trial.outcome == "harm"]  # all are run
    with pytest.raises(ValueError, match=r"fails by itself, and no fault is the cause: with it \d+ of \d+, without it"):
        lab.shrink(harmed)


def test_a_cause_by_chance_is_shrunk_to_the_fault_that_it_takes() -> None:
    faults = [lab.inject("refused", "get", calls=[1]), lab.inject("latency", "pay", calls=[1], delay_s=0.1)]
    trials = lab.run_many(twice_by_half_a_chance, "Pay.", tools=[pay], reads=[get], trials=20, faults=faults)
    harmed = [trial for trial in trials if trial.outcome == "harm"]
    assert len(harmed) > 4
    for trial in harmed[:4]:
        found = lab.shrink(trial)
        assert [each.name for each in found.faults] == ["refused on get"]
        assert (found.minimal, found.shown_fails) == (True, True)
        assert found.contrast is not None
        assert found.contrast.calm_failed == 0


def test_a_resumed_exploration_tries_nothing_again_a_second_time(tmp_path: Path) -> None:
    one = explored(noisy(0.2), logs=tmp_path / "one")
    other = explored(noisy(0.2), logs=tmp_path / "other", resume=one.folder)
    assert [each.to_json() for each in other.trials] == [each.to_json() for each in one.trials]
    assert [vars(each) for each in other.by_itself] == [vars(each) for each in one.by_itself]


@pytest.mark.parametrize(
    ("counts", "p", "holds"),
    [
        ((5, 5, 0, 5), 1 / 252, True),
        ((4, 5, 0, 5), 5 / 210, False),
        ((0, 5, 0, 5), 1.0, False),
        ((6, 10, 0, 10), 210 / 38_760, True),
        ((9, 10, 1, 10), 101 / 184_756, True),
        ((2, 40, 2, 40), 1 - (91_390 + 40 * 9_880) / 1_581_580, False),
        ((1, 1, 0, 1), 0.5, True),
        ((1, 1, 1, 1), 1.0, False),
        ((0, 0, 0, 0), 1.0, False),
    ],
)
def test_a_contrast_is_fisher_s_exact_test(counts: tuple[int, int, int, int], p: float, holds: bool) -> None:
    found = Contrast(*counts)
    assert found.p_value == pytest.approx(p)
    assert found.holds is holds
