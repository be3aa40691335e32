"""`chaoslab explore`: every fault at every call of an agent, and the root causes of its failures."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    Steering,
    as_json,
    parse_nonempty,
    path,
    print_json,
    refuse,
    seed,
    whole_number,
)
from chaoslab.cli._ended import check_place, report_interrupt, rerun_options, returns_exit_code, select_scenarios
from chaoslab.cli._runs_written import add_cluster, add_logs, make_logs_folder, use_cluster

if TYPE_CHECKING:
    from chaoslab.execution.explore import SearchProgress
    from chaoslab.scenarios.scenario import Scenario

HELP = "try every fault at every call, and tell the root causes of what goes wrong, worst first"
EXAMPLE = "chaoslab explore refund.chaos.yml --trials 500 --save found"
IS_APART = True
FAILED = 1
EVERY_S = 2.0
"""Seconds between two lines of progress."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "what",
        metavar="SCENARIO|AGENT",
        type=parse_nonempty,
        nargs="?",
        help="a scenario file, or module:name of an agent",
    )
    add("--exec", dest="program", metavar="COMMAND", type=parse_nonempty, help="a command in any language as the agent")
    add("--route", action="append", default=[], metavar="NAME=URL", help="with --exec: a service that it asks")
    add("--reset", default="", metavar="COMMAND", help="with --exec: run before each trial, so services begin anew")
    add(
        "--wait-s", type=whole_number(1, 3600), default=5, help="with --exec: the longest wait of a fault (%(default)s)"
    )
    add("--prompt", help="what the agent is asked, if no scenario says so")
    add("-n", "--trials", type=whole_number(1, 1_000_000), help="the most trials (4000)")
    add("--seconds", type=whole_number(1, 1_000_000), help="the most seconds of real time")
    add("--tries", action="append", metavar="FAULT", help="try this fault; may be given several times")
    add("--by", action="append", metavar="STRATEGY", help="singles, lasting, born, pairs, orders or random_plans")
    add("--estimate", action="store_true", help="run the trial without faults alone, and tell the cost")
    add("--all", action="store_true", help="show each way to fail and the whole map, not the root causes alone")
    add("--save", type=path, metavar="DIR", help="write each root cause there as a scenario of its own")
    add("--map", type=path, metavar="FILE", help="write the map as a page (.html) or as data (.json)")
    add("--resume", type=path, metavar="RUN", help="go on with an exploration that was broken off")
    add("--seed", type=seed, help="seed of all dice, in place of the scenario's own")
    add("--jobs", type=whole_number(1, 1024), default=1, help="processes (%(default)s)")
    add_cluster(parser)
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value in place of the file's")
    add("--anyway", action="store_true", help="run though the trial without faults is no baseline")
    add("-k", dest="only", default="", metavar="TEXT", help="scenarios with this text in their name")
    add_logs(parser, "where a run with all its trials is written")
    add("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    as_json(parser)


def load_scenarios(options: argparse.Namespace) -> list[Scenario]:
    """The scenarios that the command line names."""
    from chaoslab.scenarios.exploring import make_agent_scenario, make_command_scenario
    from chaoslab.scenarios.load import load
    from chaoslab.scenarios.located import SUFFIXES

    options.set += ["anyway=true"] if options.anyway else []
    if options.program:
        command_words = shlex.split(options.program)
        candidates = make_command_scenario(
            command_words, options.route, options.prompt, wait_s=options.wait_s, changed=options.set
        )
    elif Path(options.what).suffix in SUFFIXES:
        candidates = load(Path(options.what), changed=options.set)
    else:
        candidates = make_agent_scenario(options.what, options.prompt, options.set)
    return select_scenarios(candidates, options.only, options.what or "")


@returns_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.reports.explored import ENDINGS
    from chaoslab.scenarios.exploring import estimate

    check_place("--map", options.map)
    if bool(options.what) is bool(options.program):
        return refuse(ValueError("give a scenario's file, an agent as module:name, or --exec with a command"))
    # The services are one set, which two trials at once would disturb.
    if options.reset and options.jobs > 1:
        return refuse(ValueError("--reset sets the services back for one trial at a time: leave --jobs out"))
    if options.map is not None and options.map.suffix not in ENDINGS:
        return refuse(ValueError(f"--map {options.map} should end in {' or '.join(ENDINGS)}"))
    chosen = load_scenarios(options)
    if options.map is not None and len(chosen) > 1:
        return refuse(ValueError(f"--map takes one scenario, and these are {len(chosen)}: choose one with -k"))
    if options.estimate:
        for scenario in chosen:
            print(
                f"{scenario.name}: {estimate(scenario, seed=options.seed, trials=options.trials, tries=options.tries)}"
            )
        return 0
    make_logs_folder(options.logs)
    with use_cluster(options, [chosen_scenario.folder for chosen_scenario in chosen]):
        return _explore_scenarios(chosen, options)


def _explore_scenarios(chosen: Sequence[Scenario], options: argparse.Namespace) -> int:
    """Explores the scenarios, prints what was found, and returns the exit code."""
    from chaoslab.base.terminal import clean
    from chaoslab.config.settings import inherited
    from chaoslab.record.runs import note_command
    from chaoslab.reports.explored import paint, render_text
    from chaoslab.scenarios.exploring import explain_unproven, explore, save_failures, to_plain

    data, failed, unproven = [], False, False
    # Any value but the empty one counts, as the convention of NO_COLOR has it.
    colour = sys.stdout.isatty() and not inherited().get("NO_COLOR")
    out = Steering(sys.stdout) if colour else sys.stdout
    for scenario in chosen:
        teller = Teller(quiet=options.quiet)
        with report_interrupt(teller.so_far):
            exploration = explore(
                scenario, seed=options.seed, jobs=options.jobs, trials=options.trials, seconds=options.seconds,
                tries=options.tries, by=options.by, logs=options.logs, resume=options.resume, changed=options.set,
                tell=teller, reset=options.reset,
            )  # fmt: skip
        failed = failed or bool(exploration.failures or exploration.by_itself)
        unproven_reason = "" if exploration.failures or exploration.by_itself else explain_unproven(exploration.trials)
        unproven = unproven or bool(unproven_reason)
        if exploration.folder is not None and scenario.file:
            note_command(exploration.folder, _rerun_words(options, scenario.name))
        if options.json:
            data.append({"name": scenario.name, "unproven": unproven_reason, **to_plain(exploration)})
        else:
            report_text = f"{scenario.name}: {render_text(exploration, every=options.all)}"
            if options.quiet:  # the heads alone: what was tried, and each root cause
                heads = [line for line in report_text.splitlines() if line[:1].strip()]
                warning = f"this proves nothing: {unproven_reason}"
                report_text = "\n".join([warning, *heads] if unproven_reason else heads)
            print(paint(clean(report_text)) if colour else report_text, file=out, flush=True)
            if unproven_reason and not options.quiet:
                print(f"this proves nothing: {unproven_reason}")
            for fault_name in exploration.left_out:
                print(f"not asked for: {fault_name}, which the trial without faults does not meet either")
        if options.save is not None:
            for file in save_failures(scenario, exploration, options.save, changed=options.set):
                if not options.quiet:
                    print(f"saved {file}", file=sys.stderr)
        if options.map is not None:
            exploration.save(options.map)
            print(f"map {options.map}", file=sys.stderr)
    if options.json:
        print_json(explored=data)
    return FAILED if failed else PROVES_NOTHING if unproven else 0


def _rerun_words(options: argparse.Namespace, name: str) -> list[str]:
    """The words that choose the scenario again."""
    several = (("--tries", options.tries), ("--by", options.by))
    search_options = [word for key, values in several for value in values or () for word in (key, value)]
    return [options.what, "-k", name, *rerun_options(options), *search_options]


class Teller:
    """Tells the progress, at most once in a while, or never."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet, self._said_s = quiet, 0.0
        self._last: SearchProgress | None = None

    def so_far(self) -> str:
        """The trials so far in words, with the way to go on."""
        last = self._last
        if last is None:
            return "nothing was tried"
        onward = f"; --resume {last.folder} goes on" if last.folder is not None else ""
        return f"{last.tried} of {last.possible} tried, {last.failures} distinct failures{onward}"

    def __call__(self, progress: SearchProgress) -> None:
        from chaoslab.base.clock import system

        self._last = progress
        now_s = system.monotonic()
        # A line of each of ten thousand trials would hide the others.
        if not self._quiet and now_s - self._said_s >= EVERY_S:
            self._said_s = now_s
            print(progress, file=sys.stderr, flush=True)
