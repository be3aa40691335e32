"""`chaoslab test`: runs scenarios and tells which hold."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import as_json, parse_nonempty, path, print_json, refuse, seed, whole_number
from chaoslab.cli import otlp
from chaoslab.cli._ended import check_place, exit_code_of, rerun_options, select_scenarios
from chaoslab.cli._runs_written import (
    add_cluster,
    add_keep,
    add_logs,
    log_form_of,
    make_logs_folder,
    print_estimates,
    print_report,
    use_cluster,
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
        type=parse_nonempty,
        nargs="*",
        metavar="SCENARIO",
        help="scenario files, folders of them, or FILE.py or module:name in Python",
    )
    add("--prompt", help="what the agent module:name is asked, which is no scenario")
    add("-n", "--trials", type=whole_number(1, 1_000_000), help="trials of each scenario, in place of its own number")
    add("--seed", type=seed, help="seed of the faults' dice, in place of its own")
    add("--jobs", type=whole_number(1, 1024), default=1, help="processes, 1 by default")
    add_cluster(parser)
    add("--trial", type=whole_number(1, 1_000_000), help="this trial alone, from 1, with its story")
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
    add_keep(parser)
    add("--junit", type=path, metavar="FILE", help="write the results as JUnit XML, a case a variant")
    as_json(parser)
    add("-q", "--quiet", action="store_true", help="print only what does not hold, in five lines at most")


def run(options: argparse.Namespace) -> int:
    return otlp.sending(options, options.logs, lambda: exit_code_of(lambda: _run(options)))


def _run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.exploring import make_agent_scenario
    from chaoslab.scenarios.files import find_scenario_files, is_python
    from chaoslab.scenarios.load import load_all
    from chaoslab.scenarios.python_files import load_python_scenarios
    from chaoslab.scenarios.running import Result
    from chaoslab.scenarios.tell import describe_interruption

    # It changes the file's value, so a trial that is run again has it too.
    if options.chaos_level is not None:
        options.set.append(f"chaos_level={options.chaos_level}")
    options.set += ["anyway=true"] if options.anyway else []
    check_place("--junit", options.junit)
    in_python = [name for name in options.files if is_python(name)]
    scenario_files = [Path(name) for name in options.files if name not in in_python]
    try:
        # Without any name the folder here is looked through; with Python alone it is not.
        paths = find_scenario_files(scenario_files) if scenario_files or not in_python else []
    except LookupError as error:
        return refuse(error)
    scenarios = load_all(paths, changed=options.set)
    for name in in_python:
        # A module without a prompt holds scenarios.
        if options.prompt is not None and ":" in name:
            scenarios += make_agent_scenario(name, options.prompt, options.set)
        else:
            scenarios += load_python_scenarios(name, changed=options.set)
    chosen = select_scenarios(scenarios, options.only)
    if options.dry_run:
        return _print_dry_run(chosen, options)
    if options.estimate:
        return _estimate(chosen, options)
    make_logs_folder(options.logs)
    results: list[Result] = []
    try:
        with use_cluster(options, [chosen_scenario.folder for chosen_scenario in chosen]):
            for scenario in chosen:
                results.append(Result(scenario))
                _run_scenario(results[-1], options)
                if options.fail_fast and results[-1].state == "failed":
                    break
    except KeyboardInterrupt:
        print(
            describe_interruption(results, len(chosen), trials=1 if options.trial else options.trials), file=sys.stderr
        )
        raise
    if options.junit:
        from chaoslab.scenarios.junit import write

        write(results, options.junit, rerun_options(options))
    if options.json:
        print_json(scenarios=[_result_data(result, options) for result in results])
    elif len(results) > 1 and not options.quiet:
        print(_summarize(results))
    elif options.quiet:
        not_passed = [result for result in results if str(result.state) != "passed"]
        # The worst comes first, since -q prints a few lines alone.
        not_passed.sort(key=lambda result: str(result.state) != "failed")
        print("\n".join([
            *([_summarize(results)] if len(results) > 1 and not_passed else []),
            *(_render_result(result, options) for result in not_passed),
        ]))  # fmt: skip
    states = {str(result.state) for result in results}
    return FAILED if "failed" in states else INVALID if "invalid" in states else 0


def _run_scenario(result: Result, options: argparse.Namespace) -> None:
    """Runs the trials of the result's scenario, and prints what came of them."""
    from chaoslab.record.rulings import RulingState
    from chaoslab.reports.progress import WorkProgress
    from chaoslab.scenarios.running import run
    from chaoslab.scenarios.tell import rerun_command

    scenario = result.scenario
    run_options = {"trials": options.trials, "seed": options.seed, "jobs": options.jobs, "only": options.trial}
    command = partial(rerun_command, scenario, given=rerun_options(options))
    trials = options.trials or scenario.spec.trials
    if options.trial and options.trial > trials:
        print(f"note: {scenario.name} has {trials} trials; {options.trial} is none of them", file=sys.stderr)
    # A bar in a file is only noise.
    many, quiet = 1 if options.trial else trials, options.quiet or options.json or not sys.stderr.isatty()
    with WorkProgress(many, quiet=quiet, summed=False) as progress:
        for ruling in run(
            scenario, logs=options.logs, again=command, apart=True, **log_form_of(options), **run_options
        ):
            result.add(ruling)
            trial = ruling.trial
            progress.count(trial.seconds, outcome=trial.verdict.outcome, faults=len(trial.met))
            if ruling.state is RulingState.PASSED and len(result.rulings) > 1:
                trial.forget()  # nothing tells more of it, and there may be many
            if options.fail_fast and ruling.state is RulingState.FAILED:
                break
    if not options.json and not options.quiet:
        print(_render_result(result, options), flush=True)
    if result.rulings:
        well = result.state is RulingState.PASSED
        print_report(result.rulings[0].trial.folder, quiet=options.quiet, failed=not well)


def _render_result(result: Result, options: argparse.Namespace) -> str:
    from chaoslab.scenarios.tell import render_result

    brief = options.quiet and not options.trial
    return render_result(result, trial=options.trial, given=rerun_options(options), brief=brief)


def _result_data(result: Result, options: argparse.Namespace) -> dict[str, Any]:
    from chaoslab.scenarios.tell import to_plain

    return to_plain(result, rerun_options(options))


def _summarize(results: list[Result]) -> str:
    counts = {state: sum(str(result.state) == state for result in results) for state in ("passed", "failed", "invalid")}
    return f"{len(results)} scenarios: " + ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _print_dry_run(scenarios: list[Scenario], options: argparse.Namespace) -> int:
    from chaoslab.scenarios.tell import forecast_hits, render_forecast

    plan_options = {"trials": options.trials, "seed": options.seed, "only": options.trial}
    if options.json:
        print_json(scenarios=[forecast_hits(scenario, **plan_options) for scenario in scenarios])
        return 0
    for scenario in scenarios:
        print("\n".join(render_forecast(scenario, **plan_options)))
    return 0


def _estimate(scenarios: list[Scenario], options: argparse.Namespace) -> int:
    from chaoslab.scenarios.estimate import estimate_scenario

    run_options = {"trials": options.trials, "seed": options.seed, "jobs": options.jobs, "only": options.trial}
    return print_estimates(
        (estimate_scenario(scenario, logs=options.logs, **run_options) for scenario in scenarios), options
    )
