"""Networks by their quality, as a user states them in one word."""

import contextlib
import time
from collections import Counter
from typing import Any

import pytest
import requests

import chaoslab as lab
from chaoslab.core.events import FaultInjected, FaultWitnessed
from chaoslab.core.levels import NETWORKS, WITHOUT_DELAY

CALLS = 200


def shop(request: Any) -> dict[str, Any]:
    return {"path": request.path}


def took_by(quality: str) -> tuple[list[float], lab.Trial]:
    """The seconds of each call of a service and of a function over this network, and the trial."""
    took: list[float] = []

    def agent(_: str) -> str:
        for number in range(CALLS):
            began = time.monotonic()
            try:
                requests.get(f"http://shop/{number}", timeout=60)
            except requests.RequestException:
                continue
            took.append(time.monotonic() - began)
        return "done"

    trial = lab.run(
        agent, "go", services={"shop": shop}, faults=lab.network(quality, "shop"), twin=False, deadline_s=10**7,
        timeout_s=60,
    )  # fmt: skip
    assert trial.error is None
    return took, trial


@pytest.mark.parametrize(("quality", "least_s", "mean_s", "most_s"), [
    ("good", 0.03, 0.05, 0.071),
    ("moderate", 0.1, 0.3, 0.51),
    ("poor", 0.0, 2.0, 30.0),
    ("spiky", 0.1, 0.59, 5.1),
])  # fmt: skip
def test_every_call_is_as_late_as_the_network_makes_it(
    quality: str, least_s: float, mean_s: float, most_s: float
) -> None:
    took, trial = took_by(quality)
    assert least_s <= min(took) <= max(took) <= most_s
    assert abs(sum(took) / len(took) - mean_s) < 0.25 * mean_s
    injected = [event.fault for _, event in trial.history.find_events(FaultInjected)]
    assert injected.count("delay") >= CALLS * 0.9
    assert [event.fault for _, event in trial.history.find_events(FaultWitnessed)].count("delay") >= CALLS * 0.9
    assert len(took) == CALLS or quality in ("moderate", "poor")


def test_a_degrading_network_is_slower_with_each_call() -> None:
    took, _ = took_by("degrading")
    assert [round(each, 1) for each in took[:4]] == [0.1, 0.3, 0.5, 0.7]


def test_a_poor_network_resets_some_and_leaves_some_without_an_answer() -> None:
    took, trial = took_by("poor")
    met = {event.fault for _, event in trial.history.find_events(FaultWitnessed)}
    assert met == {"delay", "reset_peer", "timeout"}
    assert 0.85 * CALLS < len(took) < CALLS


@pytest.mark.parametrize("quality", NETWORKS)
def test_one_may_meet_several_networks_by_target(quality: str) -> None:
    faults = [*lab.network(quality, "a"), *lab.network(quality, ["b", "c"])]
    late = quality not in WITHOUT_DELAY
    assert len({each.name for each in faults}) == len(faults) == 2 * (late + len(NETWORKS[quality]))


def test_in_production_a_twentieth_of_the_calls_fail_most_of_them_by_rate_limits() -> None:
    def ask(number: int) -> int:
        return number

    def agent(_: str) -> str:
        for number in range(2000):
            with contextlib.suppress(lab.ToolError, TimeoutError):
                ask(number)
        return "done"

    trial = lab.run(agent, "go", reads=[ask], faults=lab.network("production", "ask"), twin=False, deadline_s=10**7)
    met = Counter(event.fault for _, event in trial.history.find_events(FaultWitnessed))
    assert met.keys() == {"rate_limit", "server_error", "timeout_before_effect"}
    assert 0.035 < met.total() / 2000 < 0.065
    assert 0.45 < met["rate_limit"] / met.total() < 0.75


def test_a_function_may_be_behind_one_too() -> None:
    def get_order(number: int) -> int:
        return number

    trial = lab.run(lambda _: get_order(3), "go", reads=[get_order], faults=lab.network("spiky", "get_order"))
    assert trial.answer == 3
    assert trial.seconds >= 0.1


@pytest.mark.parametrize(("given", "line"), [
    (("por", "a"), "the network is 'por': did you mean 'poor'?"),
    ((3, "a"), "the network is 3: known are degrading, good, moderate, poor, production, spiky"),
    (("poor", ""), "delay has the target '': it should be the name of a function or service"),
])  # fmt: skip
def test_what_makes_no_sense_is_said_in_a_line(given: tuple[Any, Any], line: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the line is compared whole
        lab.network(*given)
    assert refused.value.args[0] == line
