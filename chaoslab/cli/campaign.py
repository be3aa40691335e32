"""`chaoslab campaign`: experiments in a row, under a steady state, with stop conditions and a rollback."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import as_json, parse_nonempty, path, print_json, refuse
from chaoslab.cli._ended import returns_exit_code
from chaoslab.cli._runs_written import make_logs_folder

if TYPE_CHECKING:
    from chaoslab.campaigns.journal import JournalStory
    from chaoslab.campaigns.load import Campaign

HELP = "run experiments in a row or by a schedule, with a steady state, stop conditions and a rollback"
EXAMPLE = "chaoslab campaign run shop.campaign.yml"
CODES = {"held": 0, "unproven": 4, "not begun": 4, "broken": 3}
"""The exit codes of a campaign's ends; of all others it is 1."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("do", choices=("run", "check", "status", "pause", "resume", "stop"), help="check runs nothing")
    parser.add_argument("file", type=path, metavar="FILE", help="the campaign, in YAML, JSON or TOML")
    parser.add_argument(
        "--logs", type=path, default=Path("campaigns"),
        help="the folder of campaigns, each with its runs, its journal and its page (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="with run: begin anew one that was broken off")
    parser.add_argument("--why", type=parse_nonempty, metavar="TEXT", help="with stop and pause: the reason")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    as_json(parser)


@returns_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.campaigns.load import load, to_plain
    from chaoslab.reports.page import count

    campaign = load(options.file)
    if options.do == "check":
        if options.json:
            print_json(**to_plain(campaign))
        else:
            steps, probes = count(len(campaign.units), "step"), count(len(campaign.spec.steady), "probe")
            print(f"{options.file}: {steps}, {probes}: nothing is wrong")
        return 0
    if options.do == "run":
        return _run_campaign(campaign, options)
    from chaoslab.campaigns.journal import read
    from chaoslab.campaigns.running import run_action

    folder = options.logs / campaign.slug
    if options.do != "status":
        try:
            print(
                f"{campaign.spec.campaign}: {run_action(folder, options.do, options.why or f'campaign {options.do}')}"
            )
        except LookupError as error:
            return refuse(error)
        return 0
    story = read(folder)
    if not story.instance:
        return refuse(LookupError(f"{campaign.spec.campaign} was never run in {options.logs}"))
    return _print_report(campaign, story, folder, options)


def _run_campaign(campaign: Campaign, options: argparse.Namespace) -> int:
    from chaoslab.campaigns.running import AlreadyRunning, Runner

    make_logs_folder(options.logs)

    def tell(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    runner = Runner(campaign, options.logs, tell=tell)
    try:
        story = runner.run(fresh=options.fresh)
    except AlreadyRunning as error:
        return refuse(error)
    # What was done so far is told, and how much was taken back.
    except KeyboardInterrupt:
        _print_report(campaign, runner.story, runner.folder, options)
        raise
    return _print_report(campaign, story, runner.folder, options)


def _print_report(campaign: Campaign, story: JournalStory, folder: Path, options: argparse.Namespace) -> int:
    """Prints the report, and returns the exit code."""
    from chaoslab.campaigns.report import page, plain, text

    written = page(folder)
    if options.json:
        print_json(campaign=campaign.spec.campaign, page=str(written or ""), **plain(story))
    else:
        print(text(story, campaign.spec.campaign))
        if written is not None:
            print(f"page {written}")
    # What was not undone is worst, whatever else the end says.
    return 1 if story.not_undone else CODES.get(story.ended, 1) if story.ended else 0
