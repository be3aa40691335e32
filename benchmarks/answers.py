"""Reads hostile texts of one word, over and over, at two lengths: the time grows with the length, not with its square.

    python benchmarks/answers.py

Four times the text takes four times as long where the time is linear, sixteen times where it is quadratic. Neighbours
on a busy processor only ever add to a time, so each length is read several times, and its quickest reading counts.
Exits 1 if a text of four times the length takes more than nine times as long.
"""

import itertools
import math
import sys
import time
from collections.abc import Callable

from chaoslab.analysis.answers.admit import read
from chaoslab.analysis.answers.compare import compare
from chaoslab.analysis.answers.values import READ_MAX, shows

TWIN = (
    "Refunded order 17 with 30 EUR at 16:45. The test passed with 80 points. It is 1.08 dollars per euro; total: 500."
)
SHORT, LONG = READ_MAX // 8, READ_MAX // 2
GROWTH_MAX = 9.0
NOISE_S = 0.002
"""The least time that counts: below it, the clock and the allocator decide."""
TURNS = 12


def compared(text: str) -> None:
    compare(TWIN, text, asked="Refund order 17")
    compare(f"{text}.", text)


def admitted(text: str) -> None:
    read(text, ("refund_order",), TWIN)


def stated(text: str) -> None:
    shows(["no such fact", "16:45", "20 °C"], text)


UNITS: tuple[tuple[Callable[[str], None], tuple[str, ...]], ...] = (
    (admitted, ("cannot ", "n't ", "not ", "no ", "was ", "| ", '"', "'a ", "\n", "a\n", ": ")),
    (compared, ("1", "0", "\n", "x", "_", "! ", "x\n", "five past six ", "1\n", "( ", "- ", "-", "<", "(1", "1/")),
    (compared, ("- x\n", "the ", "ok. ", "10 km ", "↑", "🙂", "[", '{"')),
    (stated, ("1", "111,", "2026-1-", "1e1", "1.", "five past six ", "10 km ")),
)


def growth(part: Callable[[str], None], unit: str) -> float:
    """The time of a text of four times the length, as a multiple: processor time, the quickest of each."""
    spares = itertools.count()  # what was read before is kept, so no text is given twice
    quickest = {SHORT: math.inf, LONG: math.inf}
    for _ in range(TURNS):
        for length in quickest:
            own = f"{(unit * length)[:length]}{' ' * next(spares)}"
            begun = time.process_time()
            part(own)
            quickest[length] = min(quickest[length], time.process_time() - begun)
    return quickest[LONG] / max(quickest[SHORT], NOISE_S)


def main() -> int:
    print(f"{SHORT:,} and {LONG:,} characters, quickest of {TURNS}: times as long, at most {GROWTH_MAX:g}")
    slow = 0
    for part, units in UNITS:
        for unit in units:
            times = growth(part, unit)
            slow += times > GROWTH_MAX
            print(f"{part.__name__:9} {unit!r:18} {times:5.1f}{'  too slow' if times > GROWTH_MAX else ''}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
