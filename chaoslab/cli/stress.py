"""`chaoslab stress`: the share of trials that pass at each level of chaos, and where it breaks."""

import argparse
import json
import sys

from chaoslab.base.commandline import PROVES_NOTHING, as_json, path, refuse, seed, whole_number
from chaoslab.base.parsers import chaos_level
from chaoslab.cli import otlp
from chaoslab.cli._ended import check_place, exit_code_of, report_interrupt
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

HELP = "run a scenario at rising levels of chaos and tell where it breaks"
EXAMPLE = "chaoslab stress refund.chaos.yml --iterations 200"
IS_APART = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="SCENARIO", type=path, help="a scenario file")
    parser.add_argument(
        "--iterations", type=whole_number(1, 1_000_000), default=50, help="trials at each level (%(default)s)"
    )
    parser.add_argument("--levels", type=_parse_levels, default="0,0.25,0.5,1,2", help="the levels (%(default)s)")
    parser.add_argument("--seed", type=seed, help="of the faults' dice, in place of the scenario's own")
    parser.add_argument("--jobs", type=whole_number(1, 1024), default=1, help="processes (%(default)s)")
    add_cluster(parser)
    parser.add_argument("--estimate", action="store_true", help="only tell what the trials would cost")
    parser.add_argument("--chart", type=path, metavar="FILE", help="draw it too: a .png or .svg")
    otlp.add_live(parser)
    add_logs(parser, "where a run for each level is written, with a report.html")
    add_keep(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    as_json(parser)


def _parse_levels(text: str) -> list[float]:
    try:
        levels = [chaos_level(level_text) for level_text in text.split(",")]
    except ValueError:
        levels = []
    # Twice the same level would be one point of two runs.
    if not levels or len(set(levels)) < len(levels):
        raise argparse.ArgumentTypeError(f"{text[:60]} should be levels from 0 to 10, each once, with commas")
    return sorted(levels)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras

    extras.check("chaoslab stress", *(["charts"] if options.chart else []))
    if options.chart and not options.chart.is_dir() and options.chart.suffix not in (".png", ".svg"):
        return refuse(ValueError(f"--chart {options.chart} should end in .png or .svg; its table is printed"))
    return otlp.sending(options, options.logs, lambda: exit_code_of(lambda: _run(options)))


def _run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.load import load
    from chaoslab.scenarios.stress import (
        StressLevel,
        draw_chart,
        explain_unproven_levels,
        group_by_scenario,
        render_levels,
        stress,
        to_plain,
    )

    check_place("--chart", options.chart)
    # Once before all levels, so that an error in the file is told at once.
    load(options.file)
    if options.estimate:
        from chaoslab.scenarios.estimate import estimate_levels

        estimate_options = {"seed": options.seed, "jobs": options.jobs, "logs": options.logs}
        return print_estimates(
            estimate_levels(options.file, options.levels, options.iterations, **estimate_options), options
        )
    make_logs_folder(options.logs)
    levels: list[StressLevel] = []
    with (
        report_interrupt(lambda: "; ".join(map(str, levels)) or "no level is done"),
        use_cluster(options, [options.file.parent]),
    ):
        for step in stress(
            options.file,
            options.levels,
            options.iterations,
            seed=options.seed,
            jobs=options.jobs,
            logs=options.logs,
            **log_form_of(options),
        ):
            levels.append(step)
            if not options.quiet:
                print(step, file=sys.stderr, flush=True)
            print_report(step.folder, quiet=options.quiet, failed=step.breaks)
    print(json.dumps(to_plain(levels), indent=2) if options.json else render_levels(levels, brief=options.quiet))
    if options.chart:
        try:
            draw_chart(levels, options.chart)
        except OSError as error:
            return refuse(OSError(f"{options.chart} cannot be written: {error.strerror}"))
        print(f"chart {options.chart}", file=sys.stderr)
    return PROVES_NOTHING if any(map(explain_unproven_levels, group_by_scenario(levels).values())) else 0
