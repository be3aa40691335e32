"""`chaoslab stress`: the share of trials that pass at each level of chaos, and where it breaks."""

import argparse
import json
import sys

from chaoslab.base.commandline import PROVES_NOTHING, as_json, path, refuse, seed, whole
from chaoslab.base.parsers import chaos_level
from chaoslab.cli import otlp
from chaoslab.cli._ended import check_place, code_of, telling
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

HELP = "run a scenario at rising levels of chaos and tell where it breaks"
EXAMPLE = "chaoslab stress refund.chaos.yml --iterations 200"
IS_APART = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="SCENARIO", type=path, help="a scenario file")
    parser.add_argument("--iterations", type=whole(1, 1_000_000), default=50, help="trials at each level (%(default)s)")
    parser.add_argument("--levels", type=_levels, default="0,0.25,0.5,1,2", help="the levels (%(default)s)")
    parser.add_argument("--seed", type=seed, help="of the faults' dice, in place of the scenario's own")
    parser.add_argument("--jobs", type=whole(1, 1024), default=1, help="processes (%(default)s)")
    add_cluster(parser)
    parser.add_argument("--estimate", action="store_true", help="only tell what the trials would cost")
    parser.add_argument("--chart", type=path, metavar="FILE", help="draw it too: a .png, .svg or .html")
    otlp.add_live(parser)
    add_logs(parser, "where a run for each level is written, with a report.html")
    add_form(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress")
    as_json(parser)


def _levels(text: str) -> list[float]:
    try:
        found = [chaos_level(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text[:60]} should be levels from 0 to 10, each once, with commas")
    return sorted(found)


def run(options: argparse.Namespace) -> int:
    from chaoslab.base import extras

    extras.check("chaoslab stress", *(["charts"] if options.chart else []))
    if options.chart and not options.chart.is_dir() and options.chart.suffix not in (".png", ".svg", ".html"):
        return refuse(ValueError(f"--chart {options.chart} should end in .png, .svg or .html"))
    return otlp.sending(options, options.logs, lambda: code_of(lambda: _run(options)))


def _run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.load import load
    from chaoslab.scenarios.stress import StressLevel, by_scenario, chart, levels_text, plain, stress, unproven_text

    check_place("--chart", options.chart)
    load(options.file)
    if options.estimate:
        from chaoslab.scenarios.estimate import of_levels

        given = {"seed": options.seed, "jobs": options.jobs, "logs": options.logs}
        return say_estimates(of_levels(options.file, options.levels, options.iterations, **given), options)
    start_logs(options.logs)
    found: list[StressLevel] = []
    with telling(lambda: "; ".join(map(str, found)) or "no level is done"), clustered(options, [options.file.parent]):
        for step in stress(
            options.file,
            options.levels,
            options.iterations,
            seed=options.seed,
            jobs=options.jobs,
            logs=options.logs,
            **form_of(options),
        ):
            found.append(step)
            if not options.quiet:
                print(step, file=sys.stderr, flush=True)
            say_report(step.folder, quiet=options.quiet, failed=step.breaks)
    print(json.dumps(plain(found), indent=2) if options.json else levels_text(found))
    if options.chart:
        try:
            chart(found, options.chart)
        except OSError as error:
            return refuse(OSError(f"{options.chart} cannot be written: {error.strerror}"))
        print(f"chart {options.chart}", file=sys.stderr)
    return PROVES_NOTHING if any(map(unproven_text, by_scenario(found).values())) else 0
