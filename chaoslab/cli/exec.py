"""`chaoslab exec`: runs a command as the agent, with its services behind a gateway."""

import argparse
from collections.abc import Sequence

from chaoslab.base import parsers
from chaoslab.base.commandline import (
    fill_defaults,
    make_argument_type,
    make_integer_type,
    parse_nonempty,
    port,
    print_error,
)
from chaoslab.cli import _requirements, gateway
from chaoslab.cli._runs_written import open_logs_or_temp_folder

HELP = "run a command in any language as the agent, with faults in its requests, and judge it"
EXAMPLE = "chaoslab exec --route crm=http://127.0.0.1:9000 -- node agent.js"
RESUMES, WISHES = 1, 1
"""The defaults of --resumes and --wishes."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, default=0, help="the gateway's port; 0 (default): any free one")
    parser.add_argument(
        "--proxy",
        action="store_true",
        help="route the command's requests through a proxy; no address need be set: --fault rate_limit:api.openai.com",
    )
    parser.add_argument(
        "--levers",
        action="store_true",
        help="enable the control address, by which faults are paused and the like, and print it",
    )
    gateway.add_shared_options(parser)
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=ROUTE",
        help="put a route's address into this variable too, as in SHOP=crm; CRM_URL has that of crm by itself",
    )
    parser.add_argument(
        "--deadline",
        type=make_argument_type(parsers.parse_duration),
        default=600.0,
        metavar="TIME",
        help="a command that takes longer counts as hung, as in 90s or 10min (600s)",
    )
    parser.add_argument(
        "--attempts-max",
        type=make_integer_type(1, 1_000_000),
        default=200,
        metavar="N",
        help="a command that repeats one request more often is in a loop, and counts as hung (%(default)s)",
    )
    add_resume_options(parser)
    parser.add_argument(
        "--files",
        metavar="DIR",
        help="run it in a copy of this folder; a change that a first run without faults did not make is harm",
    )
    gateway.add_expectation_options(parser, fact="a text that the answer must contain", like="POST /refunds")
    parser.add_argument(
        "--wishes",
        type=make_integer_type(1, 1000),
        metavar="N",
        help=f"how often the effects are to happen where event_twice asks again ({WISHES}: it is the same event)",
    )
    parser.add_argument("words", nargs="+", metavar="COMMAND", help="after --: the command and its arguments")


def add_resume_options(parser: argparse.ArgumentParser, condition: str = "") -> None:
    """Adds what goes on when a fault has killed the command. `condition`: the beginning of the help."""
    parser.add_argument(
        "--resume-with",
        metavar="COMMAND",
        type=parse_nonempty,
        help=f"{condition}the command that resumes after agent_dies has killed it, as one string",
    )
    parser.add_argument(
        "--resumes",
        type=make_integer_type(0, 1000),
        metavar="N",
        help=f"{condition}resume at most this many times ({RESUMES})",
    )


def check_resume_options(options: argparse.Namespace, options_given: Sequence[str]) -> None:
    """Raises ValueError: --resumes is among the options given, and nothing would resume. 0 says that nothing does."""
    if "--resumes" in options_given and options.resumes and not options.resume_with:
        raise ValueError(
            f"--resumes {options.resumes} is how often --resume-with resumes the command: add --resume-with COMMAND"
        )


def run(options: argparse.Namespace) -> int:
    import shlex
    from functools import partial

    from chaoslab.core.plan import Plan
    from chaoslab.execution.upstreams import check_no_doubled_paths
    from chaoslab.execution.workspace import parse_folder
    from chaoslab.surfaces import exec_agent
    from chaoslab.surfaces.gateway import make_prompt_start_event, parse_effects_option, warn_of_unreachable_routes

    options_given = fill_defaults(options, {"resumes": RESUMES, "wishes": WISHES})
    try:
        check_resume_options(options, options_given)
        with open_logs_or_temp_folder(options.logs) as logs:
            files = None if options.files is None else parse_folder(options.files, option="--files")
            resume = shlex.split(options.resume_with or "")
            routes, plan, make_gateway = gateway.prepare_gateway(
                options,
                logs,
                0 if options.proxy else None,
                "--proxy",
                mortal=bool(resume) or not options.resumes,
                command=True,
            )
            check_no_doubled_paths(routes)
            variables = exec_agent.parse_variables(options.env, routes)
            if "--wishes" in options_given and not any(
                choice.fault == "event_twice" for i in plan.injections for choice in i.choices
            ):
                raise ValueError("--wishes is about an event that comes again: give --fault event_twice:ROUTE too")
            started = make_prompt_start_event(
                " ".join(options.words), options.fact, parse_effects_option(options.effects), wishes=options.wishes
            )
            warn_of_unreachable_routes(routes)
            if files is not None and started.effects is None:
                calm = partial(make_gateway.func, routes, Plan(plan.seed), **make_gateway.keywords)
                started = exec_agent.learn_expected_effects(
                    options.words,
                    variables,
                    routes,
                    calm,
                    started=started,
                    files=files,
                    settle_s=options.settle,
                    deadline_s=options.deadline,
                    wishes=options.wishes,
                )
            return exec_agent.run_with_faults(
                options.words,
                variables,
                routes,
                plan,
                make_gateway,
                started=started,
                kept=options.logs is not None,
                settle_s=options.settle,
                gate=_requirements.build_gate_or_default(options),
                levers=options.levers,
                deadline_s=options.deadline,
                attempts_max=options.attempts_max,
                resume=resume,
                files=files,
                resumes=options.resumes,
            )
    except (ValueError, TypeError, LookupError, OSError) as error:
        return print_error(error)
