"""pass^k, pass@k and consistency: what the repeated trials of a prompt say about the next ones.

Sources: pass@k is the unbiased estimator 1 − C(n−c, k)/C(n, k) of Chen et al. (2021, arXiv 2107.03374); pass^k is
C(c, k)/C(n, k) of τ-bench (Yao et al. 2024, arXiv 2406.12045), each as the mean over prompts; outcome consistency is
(2p − 1)², which is 1 where all trials of a prompt end alike and 0 where half of them pass.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb

K_MAX = 8
"""The largest k that is told."""


@dataclass(frozen=True)
class Consistency:
    """`prompts`: those with at least two judged trials. `trials`: the fewest judged trials of one of them. `all_pass`,
    `one_passes`: by k, the chance that k trials all pass, and that one of k passes. `consistency`: the mean of
    (2p − 1)²."""

    prompts: int
    trials: int
    all_pass: Mapping[int, float]
    one_passes: Mapping[int, float]
    consistency: float


def consistency(passed: Mapping[str, Iterable[bool]]) -> Consistency | None:
    """The figures for these trials, passed or not, by prompt; None if no prompt has two."""
    counts = [(sum(each), len(each)) for each in (list(trials) for trials in passed.values()) if len(each) > 1]
    if not counts:
        return None
    least = min(n for _, n in counts)
    ks = range(1, min(least, K_MAX) + 1)
    return Consistency(
        prompts=len(counts),
        trials=least,
        all_pass={k: _mean(comb(c, k) / comb(n, k) for c, n in counts) for k in ks},
        one_passes={k: _mean(1 - comb(n - c, k) / comb(n, k) for c, n in counts) for k in ks},
        consistency=_mean((2 * c / n - 1) ** 2 for c, n in counts),
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
