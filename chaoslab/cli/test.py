"""`chaoslab test`: runs scenarios and tells which hold."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import (
    add_json_option,
    make_integer_type,
    parse_nonempty,
    parse_path,
    print_error,
    print_json,
    seed,
)
from chaoslab.cli._ended import list_rerun_options, require_writable, run_for_exit_code, select_scenarios
from chaoslab.cli._runs_written import (
    add_cluster_option,
    add_keep_option,
    add_logs_option,
    get_log_options,
    make_logs_folder,
    use_cluster,
    write_html_report,
)

if TYPE_CHECKING:
    from chaoslab.scenarios.running import Result
    from chaoslab.scenarios.scenario import Scenario

HELP = "run scenarios: exit code 0 if all pass, 1 if one fails, 4 if one proves nothing"
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
        help="scenario files or folders, or FILE.py or module:name in Python",
    )
    add("--prompt", help="the prompt, if an agent module:name is given instead of a scenario")
    add("-n", "--trials", type=make_integer_type(1, 1_000_000), help="trials per scenario, instead of its own number")
    add("--seed", type=seed, help="seed of the faults' dice, instead of its own")
    add("--jobs", type=make_integer_type(1, 1024), default=1, help="processes, 1 by default")
    add_cluster_option(parser)
    add("--trial", type=make_integer_type(1, 1_000_000), help="run only this trial, from 1, and print its story")
    add("--fail-fast", action="store_true", help="stop at the first trial that fails")
    add("--dry-run", action="store_true", help="run nothing, only list the calls that would be hit")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value instead of the file's")
    add("--chaos-level", metavar="LEVEL", help="from 0 to 10, instead of the file's")
    add("--anyway", action="store_true", help="run even if the trial without faults fails")
    add("-k", dest="only", default="", metavar="TEXT", help="only scenarios with this text in their name")
    add_logs_option(parser, "the folder of runs, one per scenario, each with a report.html", optional=True)
    add_keep_option(parser)
    add("--junit", type=parse_path, metavar="FILE", help="write the results as JUnit XML, one case per variant")
    add_json_option(parser)
    add("-q", "--quiet", action="store_true", help="print only failures, in five lines at most")


def run(options: argparse.Namespace) -> int:
    return run_for_exit_code(lambda: _run_scenarios(options))


def _run_scenarios(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.exploring import make_agent_scenario
    from chaoslab.scenarios.files import find_scenario_files, is_python_source
    from chaoslab.scenarios.load import load_scenarios_of_files
    from chaoslab.scenarios.python_files import load_python_scenarios
    from chaoslab.scenarios.running import Result
    from chaoslab.scenarios.tell import describe_interruption

    # It changes the file's value, so a trial that is run again has it too.
    if options.chaos_level is not None:
        options.set.append(f"chaos_level={options.chaos_level}")
    options.set += ["anyway=true"] if options.anyway else []
    require_writable("--junit", options.junit)
    in_python = [name for name in options.files if is_python_source(name)]
    scenario_files = [Path(name) for name in options.files if name not in in_python]
    try:
        # Without any name the folder here is looked through; with Python alone it is not.
        paths = find_scenario_files(scenario_files) if scenario_files or not in_python else []
    except LookupError as error:
        return print_error(error)
    scenarios = load_scenarios_of_files(paths, changed=options.set)
    for name in in_python:
        # A module without a prompt holds scenarios.
        if options.prompt is not None and ":" in name:
            scenarios += make_agent_scenario(name, options.prompt, options.set)
        else:
            scenarios += load_python_scenarios(name, changed=options.set)
    chosen = select_scenarios(scenarios, options.only)
    if options.dry_run:
        return _print_dry_run(chosen, options)
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
    finally:
        # Also when a later scenario is refused.
        if options.quiet and not options.json:
            print(_render_not_passed_results(results, options))
    if options.junit:
        from chaoslab.scenarios.junit import write_junit

        write_junit(results, options.junit, list_rerun_options(options))
    if options.json:
        print_json(scenarios=[_result_to_json(result, options) for result in results])
    elif len(results) > 1 and not options.quiet:
        print(_summarize_results(results))
    states = {str(result.state) for result in results}
    return FAILED if "failed" in states else INVALID if "invalid" in states else 0


def _run_scenario(result: Result, options: argparse.Namespace) -> None:
    """Runs the trials of the result's scenario, and prints what came of them."""
    from chaoslab.record.rulings import RulingState
    from chaoslab.reports.progress import WorkProgress
    from chaoslab.scenarios.running import run_scenario
    from chaoslab.scenarios.tell import make_rerun_command

    scenario = result.scenario
    run_options = {"trials": options.trials, "seed": options.seed, "jobs": options.jobs, "only": options.trial}
    command = partial(make_rerun_command, scenario, given=list_rerun_options(options))
    trials = options.trials or scenario.spec.trials
    if options.trial and options.trial > trials:
        print(f"note: {scenario.name} has {trials} trials; {options.trial} is none of them", file=sys.stderr)
    # A bar in a file is only noise.
    many, quiet = 1 if options.trial else trials, options.quiet or options.json or not sys.stderr.isatty()
    with WorkProgress(many, quiet=quiet, summed=False) as progress:
        for ruling in run_scenario(
            scenario, logs=options.logs, again=command, apart=True, **get_log_options(options), **run_options
        ):
            result.add_ruling(ruling)
            trial = ruling.trial
            progress.count_trial(trial.seconds, outcome=trial.verdict.outcome, faults=len(trial.met))
            if ruling.state is RulingState.PASSED and len(result.rulings) > 1:
                trial.forget()  # nothing tells more of it, and there may be many
            if options.fail_fast and ruling.state is RulingState.FAILED:
                break
    if not options.json and not options.quiet:
        print(_render_result(result, options), flush=True)
    if result.rulings:
        well = result.state is RulingState.PASSED
        write_html_report(result.rulings[0].trial.folder, quiet=options.quiet, failed=not well)


def _render_result(result: Result, options: argparse.Namespace) -> str:
    from chaoslab.scenarios.tell import render_result

    brief = options.quiet and not options.trial
    return render_result(result, trial=options.trial, given=list_rerun_options(options), brief=brief)


def _render_not_passed_results(results: list[Result], options: argparse.Namespace) -> str:
    tried = [result for result in results if result.rulings]
    # The worst comes first, since -q prints a few lines alone.
    not_passed = sorted(
        (result for result in tried if str(result.state) != "passed"), key=lambda result: str(result.state) != "failed"
    )
    summary = [_summarize_results(tried)] if len(tried) > 1 and not_passed else []
    return "\n".join([*summary, *(_render_result(result, options) for result in not_passed)])


def _result_to_json(result: Result, options: argparse.Namespace) -> dict[str, Any]:
    from chaoslab.scenarios.tell import result_to_json

    return result_to_json(result, list_rerun_options(options))


def _summarize_results(results: list[Result]) -> str:
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
