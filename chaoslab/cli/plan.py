"""`chaoslab plan`: the next experiments, by what past runs taught."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    make_integer_type,
    parse_nonempty,
    print_json,
    seed,
)
from chaoslab.cli._ended import run_for_exit_code, select_scenario
from chaoslab.cli._runs_written import add_logs_option

if TYPE_CHECKING:
    from chaoslab.memory.plans import RunProposal

HELP = "propose the most informative experiments, with reason, risk, cost and command; --run runs them"
EXAMPLE = "chaoslab plan refund.chaos.yml --budget 200 --run"
IS_APART = True
FAILED = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "what",
        metavar="SCENARIO|AGENT",
        nargs="?",
        type=parse_nonempty,
        help="a scenario file, module:name of an agent, or the name of one that the memory knows",
    )
    add("--prompt", help="the prompt, if no scenario has one")
    add("--target", action="append", default=[], metavar="NAME", help="only at this target; repeatable")
    add("--tries", action="append", default=[], metavar="FAULT", help="only this fault; repeatable")
    add("--budget", metavar="200|10m", help="with --run: trials, or a time (200)")
    add("--run", action="store_true", help="run the best one, learn from it, and repeat")
    add("-n", dest="n", type=make_integer_type(1, 1000), default=5, help="number of proposals (%(default)s)")
    add("--risk", type=_parse_share, default=1.0, metavar="0–1", help="the highest risk allowed (%(default)s)")
    add(
        "--share",
        type=_parse_share,
        default=1.0,
        metavar="10%%",
        help="share of the traffic that a fault may hit (all)",
    )
    add(
        "--critical",
        action="append",
        type=_parse_critical_target,
        default=[],
        metavar="TARGET=0–1",
        help="how critical a target is",
    )
    add("--seed", type=seed, default=0, help="seed of the planner's dice (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a value instead of the file's")
    add("-k", dest="only", default="", metavar="TEXT", help="only the scenario with this text in its name")
    add_logs_option(parser, "the folder of runs and of the memory")
    add("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


def _parse_share(text: str) -> float:
    from chaoslab.search.planning.design import parse_field_value

    try:
        value = float(parse_field_value("it", text) if "%" in text else text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text[:60]} should be a number from 0 to 1, or a share as in 10%")
    return value


def _parse_critical_target(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text[:60]} should be a target and a number, as in charge=0.9")
    return name, _parse_share(value)


def run(options: argparse.Namespace) -> int:
    return run_for_exit_code(lambda: _print_plan(options), LookupError, ValueError)


def _print_plan(options: argparse.Namespace) -> int:
    from chaoslab.base import levers
    from chaoslab.memory.planning import plan
    from chaoslab.scenarios.exploring import explain_unproven_search, make_agent_scenario
    from chaoslab.scenarios.load import load_file_scenarios
    from chaoslab.scenarios.located import SUFFIXES

    scenario, subject = None, options.what or ""
    # A colon tells module:name from the name of a subject.
    if Path(subject).suffix in SUFFIXES or ":" in subject:
        candidates = (
            load_file_scenarios(Path(subject), changed=options.set)
            if Path(subject).suffix in SUFFIXES
            else make_agent_scenario(subject, options.prompt, options.set)
        )
        scenario = select_scenario(candidates, options.only, subject)

    def print_proposed_run(proposal_run: RunProposal) -> None:
        if not options.quiet:
            print(proposal_run, file=sys.stderr, flush=True)

    proposed_plan = plan(
        options.logs,
        scenario,
        subject="" if scenario else subject,
        targets=options.target,
        tries=options.tries,
        budget=options.budget,
        n=options.n,
        risk=options.risk,
        seed=options.seed,
        share=options.share,
        critical=dict(options.critical),
        run=options.run,
        logs=options.logs,
        tell=print_proposed_run,
        changed=options.set,
    )
    if options.json:
        print_json(
            subject=proposed_plan.subject,
            proposals=[proposal.to_dict() for proposal in proposed_plan],
            left_out=[*proposed_plan.left_out],
            done=[proposal.to_dict() for proposal in proposed_plan.done],
            run=None if proposed_plan.folder is None else str(proposed_plan.folder),
        )
    else:
        print(proposed_plan)
    if any(proposal.tried.failed for proposal in proposed_plan.done):
        return FAILED
    if options.run and (
        unproven_reason := levers.describe_pulled_lever()
        or explain_unproven_search([proposal.tried for proposal in proposed_plan.done])
    ):
        print(f"this proves nothing: {unproven_reason}", file=sys.stderr)
        return PROVES_NOTHING
    return 0
