"""Plain trials a second in a command's child beside the same trials in place, by turns in one run.

    python benchmarks/in_a_child.py [--trials N] [--rounds N]

A trial is an agent with six tools and no fault, judged as a command judges it. A round has so many of them each way;
what counts is the median of the rounds' ratios, since the machine's speed changes from one round to the next. Exits 1
if the child does less than 0.95 times as many.
"""

import argparse
import statistics
import sys
import time

from function_seam import agent, book, lookup, message, rate, refund, stock

from chaoslab.execution.options import RunArguments
from chaoslab.execution.trial import numbered

GOAL = 0.95


def rate_of(trials: int, *, apart: bool) -> float:
    asked = RunArguments(
        agent, "Refund order 17", tools=[refund, book, message], reads=[lookup, stock, rate], timeout_s=10
    )
    began = time.perf_counter()
    assert all(trial.ok for trial in numbered(asked, range(trials), apart=apart))
    return trials / (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rate_of(100, apart=False)
    rounds = []
    for number in range(options.rounds):
        ways = (False, True) if number % 2 else (True, False)
        found = {apart: rate_of(options.trials, apart=apart) for apart in ways}
        rounds.append((found[False], found[True]))
        ratio = found[True] / found[False]
        print(f"in place {found[False]:7,.0f}/s   in a child {found[True]:7,.0f}/s   {ratio:.2f} ×")
    ratio = statistics.median(child / place for place, child in rounds)
    print(f"median ratio {ratio:.2f} (the goal is {GOAL})")
    return int(ratio < GOAL)


if __name__ == "__main__":
    sys.exit(main())
