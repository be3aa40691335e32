"""The answer comes late: by the pattern's own distribution, and the caller's watch is the witness."""

import math
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.faults.tool.delay import PRESETS, Delay
from tests.faults.fault_parts import Target, meet, saw

DRAWS = 4000


def drawn(fault: Delay) -> list[float]:
    """The delays of many calls, in order of size."""
    return sorted(fault.draw(Dice(7, n)).mean_s for n in range(DRAWS))


def quantile(delays: list[float], share: float) -> float:
    return delays[int(len(delays) * share)]


def mean(delays: list[float]) -> float:
    return sum(delays) / len(delays)


def test_the_answer_is_the_same_and_late() -> None:
    target = Target()
    met = meet(Delay().draw(Dice(1)), target)
    assert (met.reply, target.now_s, met.injected, len(target.sent)) == (target.reply, 0.5, True, 1)
    assert met.evidence == "took 0.500 s, at least 0.500 s were to pass"


def test_uniform_fills_its_range_evenly() -> None:
    delays = drawn(Delay("uniform", 1.0, 0.4))
    assert 0.6 <= delays[0] < 0.61 < 1.39 < delays[-1] <= 1.4
    assert mean(delays) == pytest.approx(1.0, abs=0.015)  # 4 deviations: 0.4 / √3 / √4000 = 0.00365
    assert [quantile(delays, share) for share in (0.25, 0.5, 0.75)] == pytest.approx([0.8, 1.0, 1.2], abs=0.03)


def test_jitter_is_a_triangle_around_its_mean() -> None:
    delays = drawn(Delay("jitter", 1.0, 0.4))
    assert 0.6 <= delays[0] < 0.65 < 1.35 < delays[-1] <= 1.4
    assert mean(delays) == pytest.approx(1.0, abs=0.011)  # 4 deviations: 0.4 / √6 / √4000 = 0.00258
    # a quarter of a triangle of half width 0.4 is left of −0.4 × (1 − √0.5)
    corner = 0.4 * (1 - math.sqrt(0.5))
    wanted = [1 - corner, 1.0, 1 + corner]
    assert [quantile(delays, share) for share in (0.25, 0.5, 0.75)] == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("pattern", ["uniform", "jitter"])
def test_a_range_without_a_spread_is_half_of_its_mean_wide_on_each_side(pattern: Any) -> None:
    delays = drawn(Delay(pattern, 1.0))
    assert (delays[0], delays[-1]) == pytest.approx((0.5, 1.5), abs=0.02)


def test_a_spike_and_what_lies_between_have_the_spread_too() -> None:
    delays = drawn(Delay("spike", 1.0, 0.2, spike_s=5.0))
    assert {round(each) for each in delays} == {1, 5}
    assert (delays[0], delays[-1]) == pytest.approx((0.8, 5.2), abs=0.02)


@pytest.mark.parametrize("pattern", ["fixed", "exponential", "degrading"])
def test_a_spread_that_the_pattern_does_not_have_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=f"^delay has spread_s 0.2, and the pattern {pattern} has none: say uniform"):
        lab.inject("delay", "shop", pattern=pattern, spread_s=0.2)


def test_exponential_has_its_mean_and_its_long_tail() -> None:
    delays = drawn(Delay("exponential", 2.0))
    assert mean(delays) == pytest.approx(2.0, abs=0.127)  # 4 deviations: 2 / √4000 = 0.0316
    assert quantile(delays, 0.5) == pytest.approx(2 * math.log(2), abs=0.127)
    assert quantile(delays, 0.95) == pytest.approx(2 * math.log(20), abs=0.56)  # 4 × 2 × √(0.95 / 0.05 / 4000)


def test_a_spike_comes_as_often_as_it_is_told() -> None:
    delays = drawn(Delay("spike", 0.1, spike_chance=0.2, spike_s=5.0))
    assert set(delays) == {0.1, 5.0}
    assert delays.count(5.0) / DRAWS == pytest.approx(0.2, abs=0.026)  # 4 deviations: √(0.16 / 4000) = 0.0063
    assert set(drawn(Delay("spike", 0.1, spike_chance=0.0))) == {0.1}


def test_a_degrading_service_is_slower_with_each_call() -> None:
    fault, memory = Delay("degrading", 0.1, step_s=0.2).draw(Dice(1)), dict[str, int]()
    waits = []
    for _ in range(4):
        target = Target()
        assert meet(fault, target, memory=memory).evidence
        waits.append(round(target.now_s, 6))
    assert waits == [0.1, 0.3, 0.5, 0.7]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_draws_what_its_parts_draw(name: str) -> None:
    by_name, by_parts = Delay(preset=name), Delay(**PRESETS[name])  # type: ignore[arg-type]
    assert [by_name.draw(Dice(n)) for n in range(50)] == [by_parts.draw(Dice(n)) for n in range(50)]


def test_a_delay_is_never_negative_and_none_at_all_is_no_fault() -> None:
    assert drawn(Delay("uniform", 0.1, 1.0))[0] == 0.0
    met = meet(Delay("fixed", 0.0))
    assert (met.injected, met.evidence) == (False, None)


def test_a_preset_beside_another_parameter_is_refused() -> None:
    with pytest.raises(
        ValueError, match="delay has preset 'spiky' and mean_s: a preset sets all others, leave one out"
    ):
        Delay(preset="spiky", mean_s=1.0)
    with pytest.raises(ValueError, match="mean_s of delay is 0: a degrading one should begin with more than 0"):
        Delay("degrading", 0)


def test_a_quick_answer_or_another_failure_is_no_witness() -> None:
    assert Delay().witnessed(saw(after_s=0.51))
    assert Delay().witnessed(saw(after_s=0.4)) is None
    assert Delay().witnessed(saw(after_s=0.6, error="reset")) is None


def test_a_function_answers_late() -> None:
    def look_up(city: str) -> str:
        return f"{city}: 20 degrees"

    trial = lab.run(look_up, "Oslo", reads=[look_up], faults=[lab.inject("delay", "look_up", preset="degrading")])
    assert trial.answer == "Oslo: 20 degrees"


@pytest.mark.parametrize("other", [{"pattern": "fixed"}, {"mean_s": 0.5}, {"mean_s": 0.7}])
def test_a_preset_beside_another_parameter_is_refused_at_its_default_too(other: dict[str, Any]) -> None:
    line = f"delay has preset 'poor' and {next(iter(other))}: a preset sets all others, leave one out"
    with pytest.raises(ValueError, match=f"^{line}$"):
        lab.inject("delay", "shop", preset="poor", **other)
