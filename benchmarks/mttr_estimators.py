"""Simulates repairs of a known mean, censors 30 % of them, and shows bias and coverage of the estimates of MTTR.

    python benchmarks/mttr_estimators.py [--repetitions N] [--incidents N] [--seed N]

Repair times are exponential or Weibull (shape 1.5: repairs that speed up; 0.7: a long tail), all with a mean of 10 s.
They are cut off at random moments (a trial that ends for a reason of its own) or at a fixed deadline.

*Bias*: the mean of the estimates over the true figure, less 1. *Coverage*: the share of 95 % intervals that hold the
true figure. The restricted mean and the median are compared with what they stand for: the mean within the observed time
and the median of all repairs. Exits 1 if one of them is off by 5 % or more, or covers less than 93 % or more than 97 %.

Two rows are held to nothing. The restricted mean *as mean of all* shows the repairs beyond the observed time, which no
estimate of the log alone can know. The plain mean over the recovered ones is the estimate that a log invites. The last
row is the bootstrap interval of that plain mean, for the mean of such repairs as were not cut off.
"""

import argparse
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean

from chaoslab.analysis.measures.intervals import Interval, compute_rate, kaplan_meier, mean_interval
from chaoslab.analysis.measures.mttr import Ending, Incident, to_censored_durations
from chaoslab.base.dice import Dice

MEAN_S = 10.0
CENSORED = 0.3
BIAS_MAX, COVERAGE = 0.05, Interval(0.93, 0.97)
SHAPES = {"exponential": 1.0, "Weibull 1.5": 1.5, "Weibull 0.7": 0.7}
SCHEMES = ("random", "deadline")
RESTRICTED, ALL, MEDIAN, PLAIN = "restricted mean", "… as mean of all", "median", "mean of recovered"
BOOTSTRAP = "… as such, bootstrap"
HELD = (RESTRICTED, MEDIAN, BOOTSTRAP)


@dataclass(frozen=True)
class Repairs:
    """Repair times of a Weibull distribution (shape 1: exponential) with a mean of MEAN_S."""

    shape: float

    @property
    def scale_s(self) -> float:
        return MEAN_S / math.gamma(1 + 1 / self.shape)

    def quantile_s(self, share: float) -> float:
        return self.scale_s * math.pow(-math.log1p(-share), 1 / self.shape)

    def restricted_mean_s(self, horizon_s: float) -> float:
        """E[min(T, horizon)] = scale/shape · γ(1/shape, (horizon/scale)^shape), by the series of the lower incomplete
        gamma function (Abramowitz and Stegun 6.5.29)."""
        a, x = 1 / self.shape, math.pow(horizon_s / self.scale_s, self.shape)
        term = total = 1 / a
        n = 0
        while term > total * 1e-15:
            n += 1
            term *= x / (a + n)
            total += term
        return self.scale_s / self.shape * total * math.exp(a * math.log(x) - x)

    def censoring_mean_s(self) -> float:
        """The mean of exponential censoring times at which CENSORED of the repairs are cut off, by bisection of
        P(C < T) = E[1 − e^(−T/mean)] over 2,000 quantiles of T."""
        times_s = [self.quantile_s((n + 0.5) / 2000) for n in range(2000)]
        low_s, high_s = MEAN_S / 100, MEAN_S * 100
        for _ in range(40):
            middle_s = math.sqrt(low_s * high_s)
            too_many = fmean(-math.expm1(-t / middle_s) for t in times_s) > CENSORED
            low_s, high_s = (middle_s, high_s) if too_many else (low_s, middle_s)
        return high_s


def simulated(
    repairs: Repairs, scheme: str, *, incidents: int, censoring_s: float, dice: random.Random
) -> list[Incident]:
    """The incidents of one run. `censoring_s`: the mean of random censoring, or the deadline."""
    found = []
    for n in range(incidents):
        repaired_s = repairs.quantile_s(dice.random())
        cut_s = censoring_s if scheme == "deadline" else dice.expovariate(1 / censoring_s)
        ending = Ending.RETRY if repaired_s <= cut_s else Ending.CENSORED
        cut, lasted_s = ending is Ending.CENSORED, min(repaired_s, cut_s)
        found.append(Incident(f"p{n}.r1", "search", 1, "timeout", "wire", 0.0, lasted_s, ending, cut=cut))
    return found


@dataclass
class Score:
    """The estimates of one figure: each over the true figure, and for each interval if it held that."""

    ratios: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)

    def add(self, estimate_s: float, truth_s: float, interval: Interval | None = None) -> None:
        self.ratios.append(estimate_s / truth_s)
        if interval is not None:
            self.held.append(truth_s in interval)

    @property
    def bias(self) -> float:
        return fmean(self.ratios) - 1

    @property
    def coverage(self) -> float:
        return fmean(self.held)

    @property
    def good(self) -> bool:
        return abs(self.bias) < BIAS_MAX and self.coverage in COVERAGE


@dataclass
class Result:
    """The scores under one scheme by the estimate's name. `censored`: the share of incidents that were."""

    scores: dict[str, Score]
    censored: float


def measure(shape: float, scheme: str, *, repetitions: int, incidents: int, seed: int, bootstrap: bool) -> Result:
    """Simulates all repetitions; the same seed gives the same figures. `bootstrap`: with that interval, exponential
    repairs cut at random moments only.

    Raises:
        ValueError: too few incidents for an estimate.
    """
    repairs = Repairs(shape)
    censoring_s = repairs.quantile_s(1 - CENSORED) if scheme == "deadline" else repairs.censoring_mean_s()
    scores = {name: Score() for name in (RESTRICTED, ALL, MEDIAN, PLAIN, *([BOOTSTRAP] if bootstrap else []))}
    censored = 0
    for repetition in range(repetitions):
        dice = Dice(seed, "repairs", shape, scheme, repetition).make_generator()
        found = simulated(repairs, scheme, incidents=incidents, censoring_s=censoring_s, dice=dice)
        recovered_s = [one.duration_s for one in found if one.recovered]
        curve = kaplan_meier(to_censored_durations(found))
        if curve is None or curve.median is None or len(recovered_s) < 2:
            raise ValueError(f"{incidents} incidents are too few for an estimate; try 200")
        censored += incidents - len(recovered_s)
        restricted, median, plain_s = curve.restricted_mean, curve.median, fmean(recovered_s)
        observed_s = repairs.restricted_mean_s(curve.horizon_s)
        scores[RESTRICTED].add(restricted.value, observed_s, restricted.interval)
        scores[ALL].add(restricted.value, MEAN_S, restricted.interval)
        scores[MEDIAN].add(median.value, repairs.quantile_s(0.5), median.interval)
        scores[PLAIN].add(plain_s, MEAN_S)
        if bootstrap:  # the least of two exponential times does not depend on which of them it is
            scores[BOOTSTRAP].add(plain_s, MEAN_S * (1 - CENSORED), mean_interval(recovered_s))
    return Result(scores, censored / (repetitions * incidents))


def table(repetitions: int, incidents: int, seed: int) -> Iterator[tuple[str, bool]]:
    """The lines of the table, each with False if it misses its goal."""
    yield (
        f"{'repairs':<12} {'cut at':<9} {'cut %':>6} {'estimate':<21} {'bias %':>7} {'coverage % (its 95 %)':>22}",
        True,
    )
    for law, shape in SHAPES.items():
        for scheme in SCHEMES:
            bootstrap = (shape, scheme) == (1.0, "random")
            result = measure(
                shape, scheme, repetitions=repetitions, incidents=incidents, seed=seed, bootstrap=bootstrap
            )
            for name, score in result.scores.items():
                known = compute_rate(sum(score.held), len(score.held))
                low, high = (100 * known.interval.low, 100 * known.interval.high) if known else (0.0, 0.0)
                covers = f"{100 * known.value:.1f} ({low:.1f}–{high:.1f})" if known else "–"
                good = name not in HELD or score.good
                yield (
                    (
                        f"{law:<12} {scheme:<9} {100 * result.censored:>6.1f} {name:<21} {100 * score.bias:>7.1f} "
                        f"{covers:>22}{'' if good else '  MISSED'}"
                    ),
                    good,
                )


def main() -> int:
    parser = argparse.ArgumentParser(description="bias and coverage of the estimates of MTTR")
    parser.add_argument("--repetitions", type=int, default=1000, help="simulated runs of each kind (default: 1000)")
    parser.add_argument("--incidents", type=int, default=200, help="incidents of a run (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default: 1)")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    missed = False
    try:
        for line, good in table(options.repetitions, options.incidents, options.seed):
            print(line, flush=True)
            missed |= not good
    except ValueError as error:
        parser.error(str(error))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
