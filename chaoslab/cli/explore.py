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
    add_json_option,
    fill_defaults,
    make_integer_type,
    parse_nonempty,
    parse_path,
    print_error,
    print_json,
    seed,
)
from chaoslab.cli._ended import (
    list_rerun_options,
    print_on_interrupt,
    require_writable,
    select_scenarios,
    wrap_for_exit_code,
)
from chaoslab.cli._runs_written import add_cluster_option, add_logs_option, make_logs_folder, use_cluster
from chaoslab.cli.exec import RESUMES, add_resume_options, check_resume_options

if TYPE_CHECKING:
    from chaoslab.execution.explore import SearchProgress
    from chaoslab.scenarios.scenario import Scenario

HELP = "try every fault at every call, and list the root causes of failures, worst first"
EXAMPLE = "chaoslab explore refund.chaos.yml --trials 500 --save found"
IS_APART = True
FAILED = 1
EVERY_S = 2.0
"""Seconds between two lines of progress."""
COMMAND_OPTIONS: dict[str, object] = {
    "route": (),
    "proxy": False,
    "reset": "",
    "resume_with": None,
    "resumes": RESUMES,
    "wait_s": 5,
}
"""The options that say something about a command alone, each with its default."""


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
    add("--route", action="append", metavar="NAME=URL", help="with --exec: a service that it calls")
    add(
        "--proxy",
        action="store_true",
        default=None,
        help="with --exec: reach the services by a proxy, for fixed addresses",
    )
    add(
        "--reset",
        metavar="COMMAND",
        help="with --exec: run before each trial, so services, and what the command keeps, begin anew",
    )
    add_resume_options(parser, "with --exec: ")
    add(
        "--wait-s",
        type=make_integer_type(1, 3600),
        help=f"with --exec: the longest delay of a fault, in seconds ({COMMAND_OPTIONS['wait_s']})",
    )
    add("--prompt", help="the prompt, if no scenario has one")
    add("-n", "--trials", type=make_integer_type(1, 1_000_000), help="at most this many trials (4000)")
    add("--seconds", type=make_integer_type(1, 1_000_000), help="stop after this many seconds of real time")
    add("--tries", action="append", metavar="FAULT", help="try this fault; repeatable")
    add("--by", action="append", metavar="STRATEGY", help="singles, lasting, born, pairs, orders or random_plans")
    add("--all", action="store_true", help="show each way to fail and the whole map, not only root causes")
    add("--save", type=parse_path, metavar="DIR", help="write each root cause there as a scenario")
    add("--map", type=parse_path, metavar="FILE", help="write the map as a page (.html) or as data (.json)")
    add("--resume", type=parse_path, metavar="RUN", help="continue an interrupted exploration")
    add("--seed", type=seed, help="seed of all dice, instead of the scenario's")
    add("--jobs", type=make_integer_type(1, 1024), default=1, help="processes (%(default)s)")
    add_cluster_option(parser)
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value instead of the file's")
    add("--anyway", action="store_true", help="run even if the trial without faults fails")
    add("-k", dest="only", default="", metavar="TEXT", help="only scenarios with this text in their name")
    add_logs_option(parser, optional=True)
    add("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


def load_scenarios(options: argparse.Namespace) -> list[Scenario]:
    """The scenarios that the command line names."""
    from chaoslab.scenarios.exploring import make_agent_scenario, make_command_scenario
    from chaoslab.scenarios.load import load_file_scenarios
    from chaoslab.scenarios.located import SUFFIXES

    options.set += ["anyway=true"] if options.anyway else []
    if options.program:
        command_words = shlex.split(options.program)
        candidates = make_command_scenario(
            command_words,
            options.route,
            options.prompt,
            wait_s=options.wait_s,
            proxy=options.proxy,
            reset=options.reset,
            resume=shlex.split(options.resume_with or ""),
            resumes=options.resumes,
            changed=options.set,
        )
    elif Path(options.what).suffix in SUFFIXES:
        candidates = load_file_scenarios(Path(options.what), changed=options.set)
    else:
        candidates = make_agent_scenario(options.what, options.prompt, options.set)
    return select_scenarios(candidates, options.only, options.what or "")


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.reports.explored import ENDINGS

    require_writable("--map", options.map)
    if bool(options.what) is bool(options.program):
        return print_error(ValueError("give a scenario's file, an agent as module:name, or --exec with a command"))
    options_given = fill_defaults(options, COMMAND_OPTIONS)
    if options.what and options_given:
        return print_error(
            ValueError(f"without a command {' and '.join(options_given)} would do nothing: add --exec COMMAND")
        )
    try:
        check_resume_options(options, options_given)
    except ValueError as error:
        return print_error(error)
    # The services are one set, which two trials at once would disturb.
    if options.reset and options.jobs > 1:
        return print_error(ValueError("--reset sets the services back for one trial at a time: leave --jobs out"))
    if options.map is not None and options.map.suffix not in ENDINGS:
        return print_error(ValueError(f"--map {options.map} should end in {' or '.join(ENDINGS)}"))
    chosen = load_scenarios(options)
    if options.map is not None and len(chosen) > 1:
        return print_error(ValueError(f"--map takes one scenario, and these are {len(chosen)}: choose one with -k"))
    make_logs_folder(options.logs)
    with use_cluster(options, [chosen_scenario.folder for chosen_scenario in chosen]):
        return _explore_scenarios(chosen, options)


def _explore_scenarios(chosen: Sequence[Scenario], options: argparse.Namespace) -> int:
    """Explores the scenarios, prints what was found, and returns the exit code."""
    from chaoslab.base.terminal import clean_text
    from chaoslab.config.settings import copy_environment
    from chaoslab.record.runs import write_rerun_command
    from chaoslab.reports.explored import colorize_text, render_exploration
    from chaoslab.scenarios.exploring import (
        explain_unproven_search,
        exploration_to_json,
        explore_scenario,
        save_failure_scenarios,
    )

    data, failed, unproven = [], False, False
    # Any value but the empty one counts, as the convention of NO_COLOR has it.
    colour = sys.stdout.isatty() and not copy_environment().get("NO_COLOR")
    out = Steering(sys.stdout) if colour else sys.stdout
    for scenario in chosen:
        teller = ProgressPrinter(quiet=options.quiet)
        with print_on_interrupt(teller.describe_progress):
            exploration = explore_scenario(
                scenario,
                seed=options.seed,
                jobs=options.jobs,
                trials=options.trials,
                seconds=options.seconds,
                tries=options.tries,
                by=options.by,
                logs=options.logs,
                resume=options.resume,
                changed=options.set,
                tell=teller,
            )
        failed = failed or bool(exploration.failures or exploration.by_itself)
        unproven_reason = (
            ""
            if exploration.failures or exploration.by_itself
            else explain_unproven_search(exploration.trials, exploration.unconfirmed)
        )
        unproven = unproven or bool(unproven_reason)
        if exploration.folder is not None and scenario.file:
            write_rerun_command(exploration.folder, _list_rerun_words(options, scenario.name))
        if options.json:
            data.append({"name": scenario.name, "unproven": unproven_reason, **exploration_to_json(exploration)})
        else:
            report_text = f"{scenario.name}: {render_exploration(exploration, every=options.all)}"
            if options.quiet:  # the heads alone: what was tried, and each root cause
                heads = [line for line in report_text.splitlines() if line[:1].strip()]
                warning = f"this proves nothing: {unproven_reason}"
                report_text = "\n".join([warning, *heads] if unproven_reason else heads)
            print(colorize_text(clean_text(report_text)) if colour else report_text, file=out, flush=True)
            if unproven_reason and not options.quiet:
                print(f"this proves nothing: {unproven_reason}")
            for fault_name in exploration.left_out:
                print(f"not asked for: {fault_name}, which the trial without faults does not meet either")
        if options.save is not None:
            for file in save_failure_scenarios(scenario, exploration, options.save, changed=options.set):
                if not options.quiet:
                    print(f"saved {file}", file=sys.stderr)
        if options.map is not None:
            exploration.save(options.map)
            print(f"map {options.map}", file=sys.stderr)
    if options.json:
        print_json(explored=data)
    return FAILED if failed else PROVES_NOTHING if unproven else 0


def _list_rerun_words(options: argparse.Namespace, name: str) -> list[str]:
    """The words that choose the scenario again."""
    several = (("--tries", options.tries), ("--by", options.by))
    search_options = [word for key, values in several for value in values or () for word in (key, value)]
    return [options.what, "-k", name, *list_rerun_options(options), *search_options]


class ProgressPrinter:
    """Tells the progress, at most once in a while, or never."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet, self._said_s = quiet, 0.0
        self._last: SearchProgress | None = None

    def describe_progress(self) -> str:
        """The trials so far in words, with the way to go on."""
        last = self._last
        if last is None:
            return "nothing was tried"
        if last.folder is None:
            return last.progress_text
        from chaoslab.reports.explored import MAP

        map_text = f"; what was found is in {last.folder / MAP}" if (last.folder / MAP).exists() else ""
        return f"{last.progress_text}{map_text}; --resume {last.folder} goes on"

    def __call__(self, progress: SearchProgress) -> None:
        from chaoslab.base.clock import system

        self._last = progress
        now_s = system.monotonic()
        # A line of each of ten thousand trials would hide the others.
        if not self._quiet and now_s - self._said_s >= EVERY_S:
            self._said_s = now_s
            print(progress, file=sys.stderr, flush=True)
