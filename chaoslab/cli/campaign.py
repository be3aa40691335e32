"""`chaoslab campaign`: experiments in a row, under a steady state, with stop conditions and a rollback."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from chaoslab.base.commandline import add_json_option, parse_nonempty, parse_path, print_error, print_json
from chaoslab.cli._ended import wrap_for_exit_code
from chaoslab.cli._runs_written import add_logs_option, make_logs_folder

if TYPE_CHECKING:
    from chaoslab.campaigns.journal import JournalContents
    from chaoslab.campaigns.load import Campaign

HELP = "run experiments in sequence or on a schedule, with a steady state, stop conditions and rollback"
EXAMPLE = "chaoslab campaign run shop.campaign.yml"
CODES = {"held": 0, "unproven": 4, "not begun": 4, "broken": 3}
"""The exit codes of a campaign's ends; of all others it is 1."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("do", choices=("run", "check", "status", "pause", "resume", "stop"), help="check runs nothing")
    parser.add_argument("file", type=parse_path, metavar="FILE", help="the campaign, in YAML, JSON or TOML")
    add_logs_option(parser, "the folder of campaigns, each with its runs, journal and page", default="campaigns")
    parser.add_argument("--fresh", action="store_true", help="with run: restart an interrupted campaign")
    parser.add_argument("--why", type=parse_nonempty, metavar="TEXT", help="with stop and pause: the reason")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.campaigns.load import campaign_to_json, load_campaign
    from chaoslab.reports.page import format_count

    campaign = load_campaign(options.file)
    if options.do == "check":
        if options.json:
            print_json(**campaign_to_json(campaign))
        else:
            steps, probes = format_count(len(campaign.units), "step"), format_count(len(campaign.spec.steady), "probe")
            print(f"{options.file}: {steps}, {probes}: nothing is wrong")
        return 0
    if options.do == "run":
        return _run_campaign(campaign, options)
    from chaoslab.campaigns.journal import read_journal
    from chaoslab.campaigns.running import apply_campaign_action

    folder = options.logs / campaign.folder_name
    if options.do != "status":
        try:
            print(
                f"{campaign.spec.campaign}: "
                f"{apply_campaign_action(folder, options.do, options.why or f'campaign {options.do}')}"
            )
        except LookupError as error:
            return print_error(error)
        return 0
    story = read_journal(folder)
    if not story.instance:
        return print_error(LookupError(f"{campaign.spec.campaign} was never run in {options.logs}"))
    return _print_report(campaign, story, options)


def _run_campaign(campaign: Campaign, options: argparse.Namespace) -> int:
    from chaoslab.campaigns.running import AlreadyRunning, CampaignRunner

    make_logs_folder(options.logs)

    def print_progress(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr, flush=True)

    runner = CampaignRunner(campaign, options.logs, tell=print_progress)
    try:
        story = runner.run(fresh=options.fresh)
    except AlreadyRunning as error:
        return print_error(error)
    # What was done so far is told, and how much was taken back.
    except KeyboardInterrupt:
        _print_report(campaign, runner.journal_contents, options)
        raise
    return _print_report(campaign, story, options)


def _print_report(campaign: Campaign, story: JournalContents, options: argparse.Namespace) -> int:
    """Prints the report, and returns the exit code."""
    from chaoslab.campaigns.presence import find_presence
    from chaoslab.campaigns.report import journal_to_json, render_report_text

    presence = find_presence(options.logs / campaign.folder_name, story, campaign.spec.lease)
    if options.json:
        print_json(campaign=campaign.spec.campaign, **journal_to_json(story, presence))
    else:
        print(render_report_text(story, campaign.spec.campaign, presence, campaign.file.name))
    # What was not undone is worst, whatever else the end says.
    return 1 if story.not_undone else CODES.get(story.ended, 1) if story.ended else 0
