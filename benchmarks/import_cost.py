"""Times `import chaoslab` and `chaoslab --help` beyond the bare interpreter; exits 1 if one is over its bound.

The three commands run in turn, so that a slow moment of the machine meets all of them; the figure is the median of the
paired differences. One round before is not counted: it fills the caches.
"""

import argparse
import subprocess
import sys
from statistics import median
from time import perf_counter

BARE = ("-c", "pass")
BOUNDS_MS = {
    "import chaoslab": (("-c", "import chaoslab"), 50.0),
    "chaoslab --help": (("-m", "chaoslab", "--help"), 200.0),
}


def took_ms(arguments: tuple[str, ...]) -> float:
    began_s = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return (perf_counter() - began_s) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description="the cost of importing chaoslab")
    parser.add_argument("--rounds", type=int, default=15, help="how often each is run (default: %(default)s)")
    rounds: int = parser.parse_args().rounds
    beyond: dict[str, list[float]] = {name: [] for name in BOUNDS_MS}
    for number in range(rounds + 1):
        bare_ms = took_ms(BARE)
        for name, (arguments, _) in BOUNDS_MS.items():
            extra_ms = took_ms(arguments) - bare_ms
            if number:
                beyond[name].append(extra_ms)
    code = 0
    for name, (_, bound_ms) in BOUNDS_MS.items():
        cost_ms = median(beyond[name])
        over = cost_ms > bound_ms
        print(
            f"{name:16} {cost_ms:6.1f} ms beyond the interpreter, "
            f"at most {bound_ms:.0f} ms{': TOO MUCH' if over else ''}"
        )
        code |= over
    return code


if __name__ == "__main__":
    sys.exit(main())
