"""`chaoslab gateway`: services behind an address on loopback, for programs in any language."""

from __future__ import annotations

import argparse
import signal
from contextlib import _GeneratorContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base.commandline import parse_nonempty, path, port, refuse, seconds, seconds_from_0, seed, whole_number
from chaoslab.base.interrupts import Flag
from chaoslab.cli import _requirements

if TYPE_CHECKING:
    from chaoslab.core.plan import Plan
    from chaoslab.seams.gateway.routes import GatewayRoute
    from chaoslab.surfaces.gateway import RunningGateway

    MakeGateway = partial[_GeneratorContextManager[RunningGateway]]

HELP = "stand between programs in any language and their services, and break what passes"
LOOK_S = 0.2
"""The time between two looks if it may end by itself, in seconds."""
EXAMPLE = "chaoslab gateway --route crm=http://127.0.0.1:9000 --fault stale:crm"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, default=8888, help="0 is any free one (default: %(default)s)")
    parser.add_argument(
        "--proxy-port", type=port, metavar="PORT",
        help="a port of a proxy, for programs that ask for their usual hosts; 0 is any free one",
    )  # fmt: skip
    parser.add_argument(
        "--linger", type=seconds_from_0, default=0.0, metavar="SECONDS",
        help="asked to end, or once its limits have ended all faults, pass on what still comes, and end when nothing "
        "has come for so long; a second signal ends it at once (default: %(default)s)",
    )  # fmt: skip
    add_shared_options(parser)


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `chaoslab exec` takes too."""
    parser.add_argument(
        "--route", action="append", default=[], metavar="NAME=URL",
        help="a service, as in crm=http://127.0.0.1:9000; several may be given; with a proxy a host too, as in "
        "api.openai.com, or api.openai.com=http://127.0.0.1:9000 for another in its place",
    )  # fmt: skip
    parser.add_argument(
        "--elsewhere", choices=("pass", "refuse"), default="pass",
        help="with a proxy, the fate of hosts that neither --fault nor --route names (default: %(default)s, unread)",
    )  # fmt: skip
    add_bounds(parser)
    parser.add_argument(
        "--port-of", action="append", default=[], metavar="NAME=PORT",
        help="a further port for one route, whose paths are the service's own, as in crm=9100; 0 is any free one",
    )  # fmt: skip
    add_plan_options(parser, "ROUTE", "crm")
    parser.add_argument(
        "--timeout", type=seconds, default=660.0, metavar="SECONDS",
        help="the longest silence of a service (default: %(default)s)",
    )  # fmt: skip
    _requirements.arguments(parser)
    parser.add_argument(
        "--settle", type=seconds_from_0, default=30.0, metavar="SECONDS",
        help="the longest wait, at the end, for requests that may have an effect yet (default: %(default)s)",
    )  # fmt: skip


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Adds what ends all faults."""
    parser.add_argument("--max-faults", type=whole_number(1, 10**9), metavar="N", help="make at most so many faults")
    parser.add_argument("--until", type=seconds, metavar="SECONDS", help="make no fault after this time")
    parser.add_argument(
        "--stop-if", metavar="BOUND",
        help="make no fault once so many requests failed, as in 'error_rate > 0.2 over 60s'; of 10 at least",
    )  # fmt: skip
    parser.add_argument(
        "--lease", type=seconds, metavar="SECONDS",
        help="make no fault once the lever `renew` was not asked for so long",
    )  # fmt: skip
    parser.add_argument(
        "--limits", type=path, metavar="FILE", help="a JSON file of limits beyond which no fault is made"
    )
    parser.add_argument(
        "--hosts", type=path, metavar="FILE",
        help="a file of the only hosts beside loopback that faults may hit, one a line",
    )  # fmt: skip
    parser.add_argument("--shadow", action="store_true", help="hit nothing: log what would be hit")
    parser.add_argument("--audit", type=path, metavar="FILE", help="append who broke what, when and why to this file")
    parser.add_argument("--why", type=parse_nonempty, metavar="TEXT", help="the reason, for --audit")


def limits_of(options: argparse.Namespace, plan: Plan) -> Plan:
    """The plan with the limits that the options describe. With any of them, and with an audit, faults hit loopback
    alone unless hosts are named. Raises ValueError: a file is wrong."""
    from dataclasses import replace

    from chaoslab.base import files
    from chaoslab.config.limits import of_file
    from chaoslab.core.limits import Limits

    limits = [] if options.limits is None else [*of_file(options.limits)]
    if options.hosts is not None:
        try:
            lines = files.load_text(options.hosts).split("\n")
        except files.Unreadable as error:
            raise ValueError(f"--hosts {options.hosts} {error}") from None
        # A line may have a comment.
        limits.append(Limits(hosts=tuple(host for line in lines if (host := line.partition("#")[0].strip()))))
    # An audit is for shared services: without a list of hosts faults hit this machine alone.
    elif options.audit is not None and not plan.limits + tuple(limits):
        limits.append(Limits(hosts=()))
    if options.shadow:
        limits.append(Limits(shadow=True))
    return replace(plan, limits=plan.limits + tuple(limits))


def parse_stop_if(text: str) -> tuple[float, float]:
    """The share of failed requests (0–1) above which no more faults are made, and the time over which it is taken, in
    seconds, from a text such as "error_rate > 0.2 over 60s". Raises ValueError: it is none; the message says what it
    should be."""
    from chaoslab.campaigns.bounds import LIKE, StopBound

    try:
        stop_bound = StopBound.build(text)
        if (stop_bound.measure, stop_bound.bound.sign) != ("error_rate", ">") or stop_bound.over_s is None:
            raise ValueError(f"an error_rate above a share, over a time, {LIKE}")
    except ValueError as error:
        raise ValueError(f"--stop-if {text[:60]!r} should be {error}") from None
    return stop_bound.bound.value, stop_bound.over_s


def prepare_gateway(
    options: argparse.Namespace, proxy_port: int | None, named: str, *, mortal: bool = False, command: bool = False
) -> tuple[dict[str, GatewayRoute], Plan, MakeGateway]:
    """The routes, the plan, and a function that makes the gateway which the options describe. `named`: the option for a
    proxy. `mortal`: the agent may be killed. `command`: it can be run again. Raises ValueError, TypeError, LookupError,
    OSError: one is wrong."""
    from chaoslab.config.settings import inherited
    from chaoslab.record.audit import Audit
    from chaoslab.seams.gateway.controls import Bounds
    from chaoslab.seams.gateway.routes import parse_routes
    from chaoslab.surfaces.gateway import check_loop, gateway, parse_plan, parse_ports

    proxied = proxy_port is not None
    if not proxied and options.elsewhere == "refuse":
        raise ValueError(f"--elsewhere is about the proxy: it needs {named}")
    known_routes = parse_routes(options.route, hosts=proxied)
    ports = parse_ports(options.port_of, known_routes)
    plan = limits_of(
        options,
        parse_plan(
            options.fault, options.plan, options.seed, known_routes, hosts=proxied, mortal=mortal, command=command
        ),
    )
    failure_bound = None if options.stop_if is None else parse_stop_if(options.stop_if)
    audit = None if options.audit is None else Audit(options.audit, why=options.why or "")
    check_loop(inherited(), options.port, proxy_port)
    return known_routes, plan, partial(
        gateway, known_routes, plan, logs=options.logs, port=options.port, ports=ports, timeout_s=options.timeout,
        bounds=Bounds(options.max_faults, options.until, failure_bound, options.lease),
        proxy=None if proxy_port is None else (proxy_port, options.elsewhere), audit=audit,
    )  # fmt: skip


def add_plan_options(parser: argparse.ArgumentParser, target: str, like: str) -> None:
    """Adds what a plan is made of. `target`: the word for what a fault hits; `like`: one of these."""
    parser.add_argument(
        "--fault", action="append", default=[], metavar=f"FAULT:{target}",
        help=f'a fault: lost_reply:{like} (of the first call that changes something), or JSON such as '
        f'{{"fault": "latency", "target": "{like}", "delay_s": 2}}',
    )  # fmt: skip
    parser.add_argument("--plan", type=path, metavar="FILE", help="a JSON file with a list of faults")
    parser.add_argument("--seed", type=seed, help="of all dice (default: the plan's, or 1)")
    parser.add_argument("--logs", type=path, default=Path("logs"), help="the folder of runs (default: %(default)s)")


def add_statement_options(parser: argparse.ArgumentParser, *, fact: str, like: str) -> None:
    """Adds what states a right end. `fact`: the help for a fact; `like`: an effect."""
    parser.add_argument("--fact", type=parse_nonempty, action="append", default=[], metavar="TEXT", help=fact)
    parser.add_argument(
        "--effects", metavar="JSON", help=f'what must happen and nothing else, as in [{{"effect": "{like}"}}]'
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.clock import system
    from chaoslab.core.events import PromptStarted
    from chaoslab.surfaces.gateway import judge_run, warn_of_unreached, write_answer, write_run_end

    drain_asked, stopped = Flag(), Flag()
    started = PromptStarted(prompt_index=1, prompt="all requests at the gateway", effects=None)

    def hear(*_: object) -> None:
        # The first signal asks it to drain, the second ends it; without --linger the first does.
        (stopped if drain_asked.is_set() or not options.linger else drain_asked).set()

    try:
        known_routes, _, make_gateway = prepare_gateway(options, options.proxy_port, "--proxy-port")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, hear)
        with make_gateway(started=started, stop=stopped.set) as running:
            for name, route in known_routes.items():
                print(f"{name}: {running.url(name)} leads to {route.url}", flush=True)
            if running.told:
                print("proxy:", *(f"{name}={value}" for name, value in running.told.items()), flush=True)
            warn_of_unreached(known_routes)
            print(f"ready: gateway on {running.address}, logs in {running.book.run.folder}", flush=True)
            print(f"levers: {running.levers}/status", flush=True)
            while not stopped.is_set() and not (options.linger and _is_over(running, options.linger, drain_asked)):
                stopped.wait(LOOK_S if options.linger else None)
            # Cleared, so that a further signal ends the waiting for requests.
            stopped.clear()
            seconds = system.monotonic() - running.book.origin
            answer = "the gateway was stopped"
            finish = partial(write_answer, running.book, prompt=started.prompt, answer=answer, seconds=seconds)
            running.end(finish, settle_s=options.settle, stopped=stopped.is_set)
            write_run_end(running.book, ok=True)
        gate = _requirements.gate_or_default(options)
        return judge_run(running.book, started, gate, 0, logs=options.logs, passes=True)
    except (ValueError, TypeError, LookupError, OSError) as error:
        return refuse(error)


def _is_over(running: RunningGateway, linger_s: float, drain_asked: Flag) -> bool:
    """True if a gateway that makes no more faults is not asked any more."""
    controls = running.shared.controls
    assert controls is not None
    if drain_asked.is_set():
        controls.pass_on()
    return bool(controls.ended) and running.shared.quiet_s >= linger_s
