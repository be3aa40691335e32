"""`chaoslab test`: runs scenarios and tells which hold."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import as_json, filled, path, print_json, refuse, seed, whole
from chaoslab.cli import otlp
from chaoslab.cli._ended import check_place, code_of, given_in, matching
from chaoslab.cli._runs_written import (
    add_cluster,
    add_form,
    add_logs,
    clustered,
    form_of,
    say_estimates,
    say_report,
    start_logs,
)

if TYPE_CHECKING:
    from chaoslab.scenarios.running import Result
    from chaoslab.scenarios.scenario import Scenario

HELP = "run scenarios: exit code 0 if all hold, 1 if one fails, 4 if one proves nothing"
EXAMPLE = "chaoslab test tests/chaos --trials 100 --jobs 2"
IS_APART = True
FAILED, INVALID = 1, 4


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "files",
        type=filled,
        nargs="*",
        metavar="SCENARIO",
        help="scenario files, folders of them, or FILE.py or module:name in Python",
    )
    add("--prompt", help="what the agent module:name is asked, which is no scenario")
    add("-n", "--trials", type=whole(1, 1_000_000), help="trials of each scenario, in place of its own number")
    add("--seed", type=seed, help="seed of the faults' dice, in place of its own")
    add("--jobs", type=whole(1, 1024), default=1, help="processes, 1 by default")
    add_cluster(parser)
    add("--trial", type=whole(1, 1_000_000), help="this trial alone, from 1, with its story")
    add("--fail-fast", action="store_true", help="stop at the first trial that fails")
    before = parser.add_mutually_exclusive_group()
    before.add_argument("--dry-run", action="store_true", help="run nothing: list the calls that would be hit")
    before.add_argument("--estimate", action="store_true", help="only tell what the trials would cost")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value in place of the file's")
    add("--chaos-level", metavar="LEVEL", help="from 0 to 10, in place of the file's")
    add("--anyway", action="store_true", help="run though the trial without faults is no baseline")
    add("-k", dest="only", default="", metavar="TEXT", help="scenarios with this text in their name")
    otlp.add_live(parser)
    add_logs(parser, "where a run for each scenario is written, with a report.html")
    add_form(parser)
    add("--junit", type=path, metavar="FILE", help="write the results as JUnit XML, a case a variant")
    as_json(parser)
    add("-q", "--quiet", action="store_true", help="print only what does not hold")


def run(options: argparse.Namespace) -> int:
    return otlp.sending(options, options.logs, lambda: code_of(lambda: _run(options)))


def _run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.exploring import of_agent
    from chaoslab.scenarios.files import found, is_python
    from chaoslab.scenarios.load import load_all
    from chaoslab.scenarios.python_files import scenarios_of
    from chaoslab.scenarios.running import Result
    from chaoslab.scenarios.tell import broken_off

    if options.chaos_level is not None:
        options.set.append(f"chaos_level={options.chaos_level}")
    options.set += ["anyway=true"] if options.anyway else []
    check_place("--junit", options.junit)
    in_python = [name for name in options.files if is_python(name)]
    others = [Path(name) for name in options.files if name not in in_python]
    try:
        paths = found(others) if others or not in_python else []
    except LookupError as error:
        return refuse(error)
    scenarios = load_all(paths, changed=options.set)
    for name in in_python:
        if options.prompt is not None and ":" in name:
            scenarios += of_agent(name, options.prompt, options.set)
        else:
            scenarios += scenarios_of(name, changed=options.set)
    wanted = matching(scenarios, options.only)
    if options.dry_run:
        return _dry(wanted, options)
    if options.estimate:
        return _estimate(wanted, options)
    start_logs(options.logs)
    results: list[Result] = []
    try:
        with clustered(options, [each.folder for each in wanted]):
            for scenario in wanted:
                results.append(Result(scenario))
                _try(results[-1], options)
                if options.fail_fast and results[-1].state == "failed":
                    break
    except KeyboardInterrupt:
        print(broken_off(results, len(wanted), trials=1 if options.trial else options.trials), file=sys.stderr)
        raise
    if options.junit:
        from chaoslab.scenarios.junit import write

        write(results, options.junit, given_in(options))
    if options.json:
        print_json(scenarios=[_plain(result, options) for result in results])
    elif len(results) > 1:
        print(_sum(results))
    states = {str(result.state) for result in results}
    return FAILED if "failed" in states else INVALID if "invalid" in states else 0


def _try(result: Result, options: argparse.Namespace) -> None:
    """Runs the trials of the result's scenario, and prints what came of them."""
    from chaoslab.record.rulings import RulingState
    from chaoslab.reports.progress import WorkProgress
    from chaoslab.scenarios.running import run
    from chaoslab.scenarios.tell import again

    scenario = result.scenario
    given = {"trials": options.trials, "seed": options.seed, "jobs": options.jobs, "only": options.trial}
    command = partial(again, scenario, given=given_in(options))
    trials = options.trials or scenario.spec.trials
    if options.trial and options.trial > trials:
        print(f"note: {scenario.name} has {trials} trials; {options.trial} is none of them", file=sys.stderr)
    many, quiet = 1 if options.trial else trials, options.quiet or options.json or not sys.stderr.isatty()
    with WorkProgress(many, quiet=quiet, summed=False) as progress:
        for ruling in run(scenario, logs=options.logs, again=command, apart=True, **form_of(options), **given):
            result.add(ruling)
            trial = ruling.trial
            progress.count(trial.seconds, outcome=trial.verdict.outcome, faults=len(trial.met))
            if ruling.state is RulingState.PASSED and len(result.rulings) > 1:
                trial.forget()  # nothing tells more of it, and there may be many
            if options.fail_fast and ruling.state is RulingState.FAILED:
                break
    if not options.json:
        text = _told(result, options)
        if text and not (options.quiet and result.state is RulingState.PASSED):
            print(text, flush=True)
    if result.rulings:
        well = result.state is RulingState.PASSED
        say_report(result.rulings[0].trial.folder, quiet=options.quiet and well, failed=not well)


def _told(result: Result, options: argparse.Namespace) -> str:
    from chaoslab.scenarios.tell import result_text

    return result_text(result, trial=options.trial, given=given_in(options))


def _plain(result: Result, options: argparse.Namespace) -> dict[str, Any]:
    from chaoslab.scenarios.tell import plain

    return plain(result, given_in(options))


def _sum(results: list[Result]) -> str:
    counts = {state: sum(str(result.state) == state for result in results) for state in ("passed", "failed", "invalid")}
    return f"{len(results)} scenarios: " + ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _dry(scenarios: list[Scenario], options: argparse.Namespace) -> int:
    from chaoslab.scenarios.tell import foreseen, foreseen_hits

    given = {"trials": options.trials, "seed": options.seed, "only": options.trial}
    if options.json:
        print_json(scenarios=[foreseen_hits(scenario, **given) for scenario in scenarios])
        return 0
    for scenario in scenarios:
        print("\n".join(foreseen(scenario, **given)))
    return 0


def _estimate(scenarios: list[Scenario], options: argparse.Namespace) -> int:
    from chaoslab.scenarios.estimate import estimated

    given = {"trials": options.trials, "seed": options.seed, "jobs": options.jobs, "only": options.trial}
    return say_estimates((estimated(scenario, logs=options.logs, **given) for scenario in scenarios), options)
