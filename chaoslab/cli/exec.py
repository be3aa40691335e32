"""`chaoslab exec`: runs a command as the agent, with its services behind a gateway."""

import argparse

from chaoslab.base import parsers
from chaoslab.base.commandline import make_type, port, refuse, whole_number
from chaoslab.cli import _requirements, gateway

HELP = "run a command in any language as the agent, its requests broken on the way, and judge it"
EXAMPLE = "chaoslab exec --route crm=http://127.0.0.1:9000 -- node agent.js"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, default=0, help="of the gateway; 0 is any free one (default)")
    parser.add_argument(
        "--proxy", action="store_true",
        help="lead the command's requests over a proxy, so that it needs no address: --fault rate_limit:api.openai.com",
    )  # fmt: skip
    parser.add_argument(
        "--levers", action="store_true", help="print the address of levers, to pause faults and the like, and take them"
    )
    gateway.add_shared_options(parser)
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=ROUTE",
        help="a variable that shall hold a route's address, as in CRM_URL=crm",
    )  # fmt: skip
    parser.add_argument(
        "--deadline",
        type=make_type(parsers.duration),
        default=600.0,
        metavar="TIME",
        help="a command that takes longer has hung, as in 90s or 10min (600s)",
    )
    parser.add_argument(
        "--attempts-max",
        type=whole_number(1, 1_000_000),
        default=200,
        metavar="N",
        help="a command that tries one request more often is in a loop, and has hung (%(default)s)",
    )
    parser.add_argument(
        "--resume-with", metavar="COMMAND", help="what goes on when agent_dies has killed the command: one text"
    )
    parser.add_argument(
        "--resumes", type=whole_number(0, 1000), default=1, metavar="N", help="the most times it goes on (%(default)s)"
    )
    parser.add_argument(
        "--files", metavar="DIR",
        help="run it in a copy of this folder; all that it does there beyond a first run without faults is harm",
    )  # fmt: skip
    gateway.add_statement_options(parser, fact="a text that the answer must show", like="POST /refunds")
    parser.add_argument("words", nargs="+", metavar="COMMAND", help="after --: the command and its arguments")


def run(options: argparse.Namespace) -> int:
    import shlex
    from functools import partial

    from chaoslab.core.plan import Plan
    from chaoslab.execution.upstreams import check_bases
    from chaoslab.execution.workspace import parse_folder
    from chaoslab.surfaces import exec_agent
    from chaoslab.surfaces.gateway import make_prompt_start, parse_effects, warn_of_unreached

    try:
        files = None if options.files is None else parse_folder(options.files, option="--files")
        resume = shlex.split(options.resume_with or "")
        routes, plan, make_gateway = gateway.prepare_gateway(
            options, 0 if options.proxy else None, "--proxy", mortal=bool(resume) or not options.resumes, command=True
        )
        check_bases(routes)
        variables = exec_agent.parse_variables(options.env, routes)
        started = make_prompt_start(" ".join(options.words), options.fact, parse_effects(options.effects))
        warn_of_unreached(routes)
        if files is not None and started.effects is None:
            calm = partial(make_gateway.func, routes, Plan(plan.seed), **make_gateway.keywords)
            started = exec_agent.run_calm(
                options.words, variables, routes, calm, started=started, files=files, settle_s=options.settle,
                deadline_s=options.deadline,
            )  # fmt: skip
        return exec_agent.run(
            options.words,
            variables,
            routes,
            plan,
            make_gateway,
            started=started,
            logs=options.logs,
            settle_s=options.settle,
            gate=_requirements.gate_or_default(options),
            levers=options.levers or options.lease is not None,
            deadline_s=options.deadline,
            attempts_max=options.attempts_max,
            resume=resume,
            files=files,
            resumes=options.resumes,
        )
    except (ValueError, TypeError, LookupError, OSError) as error:
        return refuse(error)
