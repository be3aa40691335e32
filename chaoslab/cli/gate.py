"""`chaoslab gate`: did scenarios become worse than a baseline? Those on one run are in `_requirements.py`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    make_integer_type,
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
from chaoslab.cli.compare import add_open_max_option, parse_alpha

if TYPE_CHECKING:
    from chaoslab.scenarios.baseline import Suite
    from chaoslab.scenarios.gating import GatedScenario, ScenarioGate
    from chaoslab.scenarios.scenario import Scenario

HELP = "compare scenarios with a baseline: exit code 1 if one got worse, 4 if too little is known"
EXAMPLE = "chaoslab gate tests/chaos --baseline chaos-baseline.json --budget 3m"
IS_APART = True
TRIALS = 200
TRIALS_MAX = 20_000


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", type=parse_path, nargs="+", metavar="SCENARIO", help="scenario files, or folders of them")
    add("--baseline", type=parse_path, required=True, metavar="FILE", help="a JSON file of earlier trials")
    add("--write", action="store_true", help="write the baseline from the present code")
    add("--alpha", type=parse_alpha, default=0.05, help="the chance of a false alarm (%(default)s)")
    add_open_max_option(parser)
    add(
        "--harm-budget",
        type=make_integer_type(0, 10**6),
        default=0,
        metavar="N",
        help="new trials with harm that are allowed (0)",
    )
    add(
        "--budget",
        type=_parse_budget,
        metavar="AMOUNT",
        help="at most this many trials of all scenarios, or a time as 3m (200 each)",
    )
    add("--seed", type=seed, help="seed of the faults' dice, instead of the scenarios'")
    add("--jobs", type=make_integer_type(1, 1024), default=1, help="processes (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value of all scenarios")
    add("-k", dest="only", default="", metavar="TEXT", help="only scenarios with this text in their name")
    add("--markdown", type=parse_path, metavar="FILE", help="write the result for a pull request")
    add("--junit", type=parse_path, metavar="FILE", help="write the result as JUnit XML")
    add("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


def _parse_budget(text: str) -> int | float:
    from chaoslab.base.parsers import parse_duration

    # A number alone is of trials; with a unit it is a time.
    if text.isdecimal():
        return make_integer_type(1, TRIALS_MAX)(text)
    try:
        return parse_duration(text)
    except ValueError:
        message = f"{text[:60]} should be a number of trials, as in 200, or a time, as in 3m or 90s"
        raise argparse.ArgumentTypeError(message) from None


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.baseline import Baseline
    from chaoslab.scenarios.gating import ScenarioGate, make_gated_scenarios, recheck_worse_scenarios, run_gate

    for name in ("baseline", "markdown", "junit"):
        require_writable(f"--{name}", getattr(options, name))
    try:
        chosen = _load_scenarios(options)
    except LookupError as error:
        return print_error(error)
    if options.write:
        return _write_baseline(chosen, options)
    baseline = Baseline.read(options.baseline)
    suites = [
        (scenario, baseline.get_matching_suite(options.baseline, scenario, _choose_seed(scenario, options)))
        for scenario in chosen
    ]

    def print_progress(gated: GatedScenario) -> None:
        if not options.quiet:
            progress_line = f"{gated.scenario.name}: {len(gated.found.pairs)} pairs: {gated.found.verdict}"
            print(progress_line, file=sys.stderr, flush=True)

    budget = TRIALS * len(chosen) if options.budget is None else options.budget
    of_time = isinstance(budget, float)
    scenarios = make_gated_scenarios(
        suites, options.alpha, jobs=options.jobs, given=list_rerun_options(options), open_max=options.open_max
    )
    result = ScenarioGate(
        options.harm_budget,
        scenarios,
        [*baseline.age_warnings, *_describe_short_baselines(suites, baseline.date_and_revision)],
    )
    trials = TRIALS_MAX * len(chosen) if of_time else int(budget)
    with print_on_interrupt(lambda: result.summary_line):
        run_gate(result, trials=trials, seconds=budget if of_time else None, tell=print_progress)
        recheck_worse_scenarios(result, baseline.revision, options.set, jobs=options.jobs)
    return _print_result(result, options)


def _load_scenarios(options: argparse.Namespace) -> list[Scenario]:
    """The scenarios. Raises LookupError: there is none, or two are called alike."""
    from chaoslab.scenarios.files import find_scenario_files
    from chaoslab.scenarios.load import load_scenarios_of_files

    chosen = select_scenarios(
        load_scenarios_of_files(find_scenario_files(options.files), changed=options.set), options.only
    )
    names = [scenario.name for scenario in chosen]
    # A baseline keeps its trials by the scenario's name.
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise LookupError(f"two scenarios are called {twice!r}, and a baseline has one of a name: rename one")
    return chosen


def _choose_seed(scenario: Scenario, options: argparse.Namespace) -> int:
    seed: int = scenario.spec.seed if options.seed is None else options.seed
    return seed


def _describe_short_baselines(suites: list[tuple[Scenario, Suite]], baseline_words: str) -> list[str]:
    """A line on each scenario whose baseline has too few trials for a verdict."""
    from chaoslab.search.pairs import LEAST

    return [
        f"the baseline ({baseline_words}) has {len(suite.rows)} trials of {scenario.name}, and a verdict needs "
        f"{LEAST}: "
        f"--write --budget {TRIALS} makes more"
        for scenario, suite in suites
        if len(suite.rows) < LEAST
    ]


def _write_baseline(chosen: list[Scenario], options: argparse.Namespace) -> int:
    from chaoslab.record.provenance import read_git_commit
    from chaoslab.scenarios.baseline import Baseline, Suite
    from chaoslab.scenarios.sides import ScenarioSide

    if isinstance(options.budget, float):
        return print_error(ValueError("a baseline has a number of trials: give --write a --budget such as 200"))
    # Rounded down: a budget is a most.
    each_has = TRIALS if options.budget is None else options.budget // len(chosen)
    if not each_has:
        return print_error(ValueError(f"{options.budget} trials are too few for {len(chosen)} scenarios"))
    suites, unfit = list[Suite](), list[str]()
    for scenario in chosen:
        scenario_seed = _choose_seed(scenario, options)
        with print_on_interrupt(
            lambda: f"{len(suites)} of {len(chosen)} scenarios are done, and no baseline was written"
        ):
            rows = ScenarioSide(scenario, scenario_seed, options.jobs).produce_trials(range(1, each_has + 1))
            suites.append(Suite.from_sides(scenario, scenario_seed, rows))
        if unfit_reason := suites[-1].explain_unfit(options.open_max):
            unfit.append(f"{scenario.name}: no baseline: {unfit_reason}")
        if not options.json:
            well_count, done_count = suites[-1].count_standings("well"), suites[-1].count_standings("done")
            labelled_counts = [
                (well_count, "ended well"),
                *([(done_count, "done as asked")] if done_count.judged_count else []),
            ]
            parts = [
                f"{labelled.well} of {labelled.judged_count} {label}, {labelled.open} open"
                for labelled, label in labelled_counts
            ]
            print(f"{scenario.name}: {'; '.join(parts)}; {suites[-1].harm_count} with harm")
    if unfit:
        print("\n".join([*unfit, f"nothing is written to {options.baseline}"]), file=sys.stderr)
        return PROVES_NOTHING
    baseline = Baseline.create_now(suites, options.baseline)
    baseline.save(options.baseline)
    if options.json:
        print_json(baseline=str(options.baseline), trials={labelled.name: len(labelled.rows) for labelled in suites})
    else:
        print(f"written: {options.baseline}, {baseline.date_and_revision}")
        # A gate that fails asks the baseline's own commit again, which is not known then.
        if read_git_commit() and not baseline.revision:
            print("it names no revision, since changes are not committed: a failed gate will not be rechecked")
    return 0


def _print_result(result: ScenarioGate, options: argparse.Namespace) -> int:
    """Prints and writes the result, and returns the exit code."""
    from chaoslab.config.settings import read_variable
    from chaoslab.reports.formats import write_file
    from chaoslab.scenarios.gating import build_junit_cases, render_markdown, render_workflow_commands
    from chaoslab.scenarios.junit import render_document

    if options.markdown:
        write_file(render_markdown(result), options.markdown)
    if options.junit:
        write_file(render_document(build_junit_cases(result)), options.junit)
    if options.json:
        print_json(
            passed=not result.exit_code,
            said=result.summary_line,
            notes=result.notes,
            scenarios=[
                {
                    "name": gated.scenario.name,
                    "new_harm": gated.newly_harmed_trials,
                    **gated.found.to_json_values(),
                    "asked_again": None if gated.repeated is None else gated.repeated.to_json_values(),
                    "not_asked_again": gated.alone,
                }
                for gated in result.scenarios
            ],
        )
        return result.exit_code
    print(
        "\n".join([result.summary_line, *result.render_gate_lines()] if options.quiet else result.render_gate_lines())
    )
    # GitHub shows these as annotations; elsewhere they are noise.
    if read_variable("GITHUB_ACTIONS") == "true":
        print("\n".join(render_workflow_commands(result)))
    return result.exit_code
