"""`chaoslab stress`: the share of trials that pass at each level of chaos, and where it breaks."""

import argparse
import json
import sys

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    make_integer_type,
    parse_path,
    print_document,
    print_error,
    seed,
)
from chaoslab.base.parsers import parse_chaos_level
from chaoslab.cli._ended import print_on_interrupt, require_writable, run_for_exit_code
from chaoslab.cli._runs_written import (
    add_cluster_option,
    add_keep_option,
    add_logs_option,
    get_log_options,
    make_logs_folder,
    use_cluster,
    write_html_report,
)

HELP = "run a scenario at rising levels of chaos, and measure where it breaks"
EXAMPLE = "chaoslab stress refund.chaos.yml --iterations 200"
IS_APART = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="SCENARIO", type=parse_path, help="a scenario file")
    parser.add_argument(
        "--iterations", type=make_integer_type(1, 1_000_000), default=50, help="trials at each level (%(default)s)"
    )
    parser.add_argument("--levels", type=_parse_levels, default="0,0.25,0.5,1,2", help="the levels (%(default)s)")
    parser.add_argument("--seed", type=seed, help="seed of the faults' dice, instead of the scenario's")
    parser.add_argument("--jobs", type=make_integer_type(1, 1024), default=1, help="processes (%(default)s)")
    add_cluster_option(parser)
    parser.add_argument("--chart", type=parse_path, metavar="FILE", help="also draw it, as .png or .svg")
    add_logs_option(parser, "the folder of runs, one per level, each with a report.html", optional=True)
    add_keep_option(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


def _parse_levels(text: str) -> list[float]:
    try:
        levels = [parse_chaos_level(level_text) for level_text in text.split(",")]
    except ValueError:
        levels = []
    # Twice the same level would be one point of two runs.
    if not levels or len(set(levels)) < len(levels):
        raise argparse.ArgumentTypeError(f"{text[:60]} should be levels from 0 to 10, each once, with commas")
    return sorted(levels)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras

    extras.require_extras("chaoslab stress", *(["charts"] if options.chart else []))
    if options.chart and not options.chart.is_dir() and options.chart.suffix not in (".png", ".svg"):
        return print_error(ValueError(f"--chart {options.chart} should end in .png or .svg; its table is printed"))
    return run_for_exit_code(lambda: _run_stress(options))


def _run_stress(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.load import load_file_scenarios
    from chaoslab.scenarios.stress import (
        StressLevel,
        draw_pass_rate_chart,
        explain_unproven_levels,
        group_by_scenario,
        levels_to_json,
        render_levels,
        run_stress_levels,
    )

    require_writable("--chart", options.chart)
    # Once before all levels, so that an error in the file is told at once.
    load_file_scenarios(options.file)
    make_logs_folder(options.logs)
    levels: list[StressLevel] = []
    with (
        print_on_interrupt(lambda: "; ".join(map(str, levels)) or "no level is done"),
        use_cluster(options, [options.file.parent]),
    ):
        for step in run_stress_levels(
            options.file,
            options.levels,
            options.iterations,
            seed=options.seed,
            jobs=options.jobs,
            logs=options.logs,
            **get_log_options(options),
        ):
            levels.append(step)
            if not options.quiet:
                print(step, file=sys.stderr, flush=True)
            write_html_report(step.folder, quiet=options.quiet, failed=step.is_broken)
    if options.json:
        print_document(json.dumps(levels_to_json(levels), indent=2))
    else:
        print(render_levels(levels, brief=options.quiet))
    if options.chart:
        try:
            draw_pass_rate_chart(levels, options.chart)
        except OSError as error:
            return print_error(OSError(f"{options.chart} cannot be written: {error.strerror}"))
        print(f"chart {options.chart}", file=sys.stderr)
    return PROVES_NOTHING if any(map(explain_unproven_levels, group_by_scenario(levels).values())) else 0
