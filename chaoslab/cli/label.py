"""`chaoslab label`: a person says what answers say, by one key each."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from chaoslab.base.commandline import RUN_HELP, Steering, filled, refuse

HELP = "show each answer that could not be judged for certain, and take a key for what it says"
EXAMPLE = "chaoslab label latest"
KEYS = {"r": "right", "w": "wrong", "a": "admits it", "p": "passes over it"}
"""The keys that label, and what each says of the answer."""
SKIP, BACK, QUIT = "s", "b", "q"
_ASK = "r right, w wrong, a admits it, p passes over it, s skip, b back, q quit: "


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help=RUN_HELP)
    parser.add_argument(
        "--trial", action="append", default=[], metavar="K", help="only p3.r2, p3, 7 or 1-6, also if it has a label"
    )
    parser.add_argument("--by", type=filled, metavar="NAME", help="who labels, for the file")


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.interrupts import heard_outside_imports

    try:
        with heard_outside_imports():
            return _label(options)
    except (LookupError, OSError) as error:
        return refuse(error)


def _label(options: argparse.Namespace) -> int:
    from chaoslab.analysis.verdict import opinions
    from chaoslab.base.clock import iso, system
    from chaoslab.config.settings import inherited
    from chaoslab.record.spoken import LABELS, KeptReplies, keep
    from chaoslab.reports import labelling, places, trials

    place = places.find(options.run)
    history = places.read(str(place))
    for note in history.notes:
        print(f"note: {note}", file=sys.stderr)
    found = opinions.undecided(history)
    if options.trial:
        prompts = trials.prompts_of(history)
        named = [key for name in options.trial for key in trials.named(name, history.trials, prompts=prompts)]
        open_ = opinions.labelled(history)
        found = {trial: open_[trial] for trial in named if trial in open_}
    # A judge's opinion would sway who is to say how far the judge is right.
    unswayed = opinions.as_if(history, replace(history.spoken, opinions={}))
    if not found:
        print("nothing to label: a label would decide no verdict that is unknown or uncertain")
        return 0
    there = set(KeptReplies.read(place).by_trial(history.run))
    colour = sys.stdout.isatty() and not inherited().get("NO_COLOR")
    left, labelled, at = list(found), set[str](), 0
    with _keys() as keys:
        while at < len(left):
            trial = left[at]
            print(f"\n{at + 1} of {len(left)}  {trial}")
            lines = labelling.shown(history, trial, unswayed[trial], colour=colour)
            print(*lines, sep="\n", file=Steering(sys.stdout))
            key = _one_of(keys)
            if key in KEYS:
                keep(
                    place, LABELS, trial=trial, said=KEYS[key], run=history.run, by=options.by or "",
                    at=iso(system.utc()), settles=trial in there,
                )  # fmt: skip
                there.add(trial)
                labelled.add(trial)
            if key == QUIT:
                break
            at = max(0, at - 1) if key == BACK else at + 1
    many = "1 answer is" if len(labelled) == 1 else f"{len(labelled)} answers are"
    print(f"\n{many} labelled in {place / LABELS}; {len(left) - len(labelled)} of {len(left)} left")
    return 0


def _one_of(keys: Iterator[str]) -> str:
    """The next key that has a meaning; QUIT at the end of the input."""
    while True:
        print(_ASK, end="", flush=True)
        key = next(keys, QUIT)
        print(key)
        if key in (*KEYS, SKIP, BACK, QUIT):
            return key
        print(f"{key[:20]!r} is none of the keys")


@contextlib.contextmanager
def _keys() -> Iterator[Iterator[str]]:
    """A context that gives the keys: each as it is pressed on a terminal, else the first letter of each line."""
    try:
        import termios
        import tty
    except ImportError:  # no such terminals on Windows
        termios = None  # type: ignore[assignment]
    if termios is None or not sys.stdin.isatty():
        yield (line.strip()[:1].lower() for line in iter(sys.stdin.readline, "") if line.strip())
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)  # Ctrl-C stays a signal
        yield (data.decode(errors="replace").lower() for data in iter(lambda: os.read(number, 1), b""))
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
