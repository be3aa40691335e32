"""The answer comes late, by a pattern."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

from chaoslab.base.dice import Dice
from chaoslab.base.durations import format_duration
from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext, Wait
from chaoslab.core.fault import Fault
from chaoslab.faults.network.latency import TIMER_SLACK_S

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "good": {"pattern": "uniform", "mean_s": 0.05, "spread_s": 0.02},
    "moderate": {"pattern": "jitter", "mean_s": 0.3, "spread_s": 0.2},
    "poor": {"pattern": "exponential", "mean_s": 2.0},
    "degrading": {"pattern": "degrading", "mean_s": 0.1, "step_s": 0.2},
    "spiky": {"pattern": "spike", "mean_s": 0.1, "spike_chance": 0.1, "spike_s": 5.0},
}


@dataclass(frozen=True)
class Delay(Fault):
    """Delays the answer by seconds that are drawn for each call. It needs no lane.

    `pattern`: fixed: `mean_s`. uniform: evenly from `mean_s` − `spread_s` to `mean_s` + `spread_s`. jitter: in the same
    range, most often near `mean_s` (triangular). exponential: of that mean. spike: `mean_s`, and `spike_s` with
    `spike_chance`, each evenly ± `spread_s`. degrading: `mean_s`, and `step_s` more with each call of the trial that
    meets it. `spread_s` 0: half of `mean_s` for uniform and jitter, none for spike. No delay is less than 0. `preset`:
    good, moderate, poor, degrading or spiky; it sets all others.
    """

    pattern: Literal["fixed", "uniform", "exponential", "spike", "degrading", "jitter"] = "fixed"
    mean_s: float = 0.5
    spread_s: float = 0.0
    spike_chance: float = 0.1
    spike_s: float = 5.0
    step_s: float = 0.2
    preset: Literal["", "good", "moderate", "poor", "degrading", "spiky"] = ""
    layer = "tool"
    common = True
    delays = True
    dose = "mean_s"
    bounds: ClassVar = {"spike_chance": (0.0, 1.0)}
    example = '"delay", "get_order", preset="spiky"'
    source = "https://github.com/openai/openai-java/issues/722"

    def __post_init__(self) -> None:
        stated = [
            member.name
            for member in fields(self)
            if getattr(self, member.name) != member.default and member.name != "preset"
        ]
        if self.preset and stated:
            raise ValueError(
                f"delay has preset {self.preset!r} and {stated[0]}: a preset sets all others, leave one out"
            )
        if self.spread_s and self.pattern in ("fixed", "exponential", "degrading"):
            raise ValueError(
                f"delay has spread_s {self.spread_s:g}, and the pattern {self.pattern} has none: say uniform, jitter or"
                " spike"
            )
        # With 0 its first call would meet nothing, and its trial would have no evidence of the fault.
        if self.pattern == "degrading" and self.mean_s <= 0:
            raise ValueError(f"mean_s of delay is {self.mean_s}: a degrading one should begin with more than 0")

    def draw(self, dice: Dice) -> "Delay":
        drawn_values = replace(self, preset="", **PRESETS[self.preset]) if self.preset else self
        # Its delay depends on how many calls came before, which is known only when it is met.
        if drawn_values.pattern == "degrading":
            return drawn_values
        return Delay("fixed", max(0.0, round(drawn_values._draw_delay_s(dice), 3)))

    def _draw_delay_s(self, dice: Dice) -> float:
        spread_s = self.spread_s or self.mean_s / 2
        match self.pattern:
            case "uniform":
                return dice("delay").draw_between(self.mean_s - spread_s, self.mean_s + spread_s)
            case "jitter":
                # The difference of two even draws is triangular.
                return self.mean_s + spread_s * (dice("delay").uniform() - dice("delay", "other").uniform())
            case "exponential":
                # 1 -, since a draw may be 0, which has no logarithm.
                return -self.mean_s * math.log(1 - dice("delay").uniform())
            case "spike":
                around_s = self.spike_s if dice("delay").draw_bool(self.spike_chance) else self.mean_s
                return around_s + dice("delay", "other").draw_between(-self.spread_s, self.spread_s)
            case _:
                return self.mean_s

    def flow(self, call: Call, context: TrialContext) -> Flow:
        delay_s = self.mean_s
        if self.pattern == "degrading":
            met_count = context.memory.get("calls", 0)
            context.memory["calls"] = met_count + 1
            delay_s += met_count * self.step_s
        reply: Reply = yield call
        if delay_s > 0:
            yield Wait(delay_s)
        return reply

    def witnessed(self, observation: Observation) -> str | None:
        least_s = min(self.mean_s, observation.deadline_s) - TIMER_SLACK_S
        if self.mean_s <= 0 or observation.duration_s < least_s or observation.error not in (None, "timed_out"):
            return None
        return f"took {format_duration(observation.duration_s)}, at least {format_duration(self.mean_s)} were to pass"
