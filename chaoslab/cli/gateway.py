"""`chaoslab gateway`: services behind an address on loopback, for programs in any language."""

from __future__ import annotations

import argparse
import signal
from contextlib import _GeneratorContextManager
from functools import partial
from typing import TYPE_CHECKING

from chaoslab.base.commandline import (
    fill_defaults,
    parse_nonempty,
    parse_path,
    parse_seconds,
    port,
    print_error,
    seconds,
    seed,
)
from chaoslab.base.interrupts import Flag, restore_signal_handlers
from chaoslab.cli import _requirements
from chaoslab.cli._runs_written import add_logs_option, open_logs_or_temp_folder

if TYPE_CHECKING:
    from pathlib import Path

    from chaoslab.core.plan import Plan
    from chaoslab.seams.gateway.routes import GatewayRoute
    from chaoslab.surfaces.gateway import RunningGateway

    MakeGateway = partial[_GeneratorContextManager[RunningGateway]]

HELP = "inject faults between programs in any language and their services"
LOOK_S = 0.2
"""The time between two looks if it may end by itself, in seconds."""
EXAMPLE = "chaoslab gateway --route crm=http://127.0.0.1:9000 --fault stale:crm"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, default=8888, help="0: any free one (default: %(default)s)")
    parser.add_argument(
        "--proxy-port",
        type=port,
        metavar="PORT",
        help="the port of a proxy, for programs that keep their usual hosts; 0: any free one",
    )
    parser.add_argument(
        "--linger",
        type=parse_seconds,
        default=0.0,
        metavar="SECONDS",
        help="after a signal, or once limits have stopped all faults, pass traffic on until none has come for this "
        "long; a second signal ends it at once (default: %(default)s)",
    )
    add_shared_options(parser)


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `chaoslab exec` takes too."""
    parser.add_argument(
        "--route",
        action="append",
        default=[],
        metavar="NAME=URL",
        help="a service, as in crm=http://127.0.0.1:9000; repeatable; with a proxy also a host, as in "
        "api.openai.com, or api.openai.com=http://127.0.0.1:9000 to replace it",
    )
    parser.add_argument(
        "--elsewhere",
        choices=("pass", "refuse"),
        help="with a proxy: the treatment of hosts that no --fault or --route names (default: pass, unread)",
    )
    add_limit_options(parser)
    parser.add_argument(
        "--port-of",
        action="append",
        default=[],
        metavar="NAME=PORT",
        help="a port for this route alone, with the service's own paths, as in crm=9100; 0: any free one",
    )
    add_plan_options(parser, "ROUTE", "crm")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=660.0,
        metavar="SECONDS",
        help="how long a service may be silent (default: %(default)s)",
    )
    _requirements.add_options(parser)
    parser.add_argument(
        "--settle",
        type=parse_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long to wait at the end for requests that may still have an effect (default: %(default)s)",
    )


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Adds what ends all faults."""
    parser.add_argument(
        "--stop-if",
        metavar="BOUND",
        help="make no fault once this share of requests fails, as in 'error_rate > 0.2 over 60s' (needs 10)",
    )
    parser.add_argument(
        "--limits",
        type=parse_nonempty,
        metavar="LIMITS",
        help='a JSON file of limits beyond which no fault is made, or JSON, as in {"faults": 20}',
    )
    parser.add_argument(
        "--audit", type=parse_path, metavar="FILE", help="append to this file who injected what, when and why"
    )
    parser.add_argument("--why", type=parse_nonempty, metavar="TEXT", help="the reason, for --audit")


def add_limits_to_plan(options: argparse.Namespace, plan: Plan) -> Plan:
    """The plan with the limits that the options describe. With any of them, and with an audit, faults hit loopback
    alone unless hosts are named. Raises ValueError: one is wrong."""
    from dataclasses import replace

    from chaoslab.config.limits import load_limits
    from chaoslab.core.limits import Limits

    limits = () if options.limits is None else load_limits(options.limits, "--limits ")
    # An audit is for shared services: without a list of hosts faults hit this machine alone.
    if options.audit is not None and not plan.limits + limits:
        limits = (Limits(hosts=()),)
    return replace(plan, limits=plan.limits + limits)


def parse_stop_if(text: str) -> tuple[float, float]:
    """The share of failed requests (0–1) above which no more faults are made, and the time over which it is taken, in
    seconds, from a text such as "error_rate > 0.2 over 60s". Raises ValueError: it is none; the message says what it
    should be."""
    from chaoslab.campaigns.bounds import LIKE, StopBound

    try:
        stop_bound = StopBound.parse(text)
        if (stop_bound.measure, stop_bound.bound.sign) != ("error_rate", ">") or stop_bound.over_s is None:
            raise ValueError(f"an error_rate above a share, over a time, {LIKE}")
    except ValueError as error:
        raise ValueError(f"--stop-if {text[:60]!r} should be {error}") from None
    return stop_bound.bound.value, stop_bound.over_s


def prepare_gateway(
    options: argparse.Namespace,
    logs: Path,
    proxy_port: int | None,
    named: str,
    *,
    mortal: bool = False,
    command: bool = False,
) -> tuple[dict[str, GatewayRoute], Plan, MakeGateway]:
    """The routes, the plan, and a function that makes the gateway which the options describe. `logs`: the folder of its
    run; `named`: the option for a proxy. `mortal`: the agent may be killed. `command`: it can be run again. Raises
    ValueError, TypeError, LookupError, OSError: one is wrong."""
    from chaoslab.config.settings import copy_environment
    from chaoslab.record.audit import Audit
    from chaoslab.seams.gateway.routes import parse_routes
    from chaoslab.surfaces.gateway import check_proxy_loop, parse_plan, parse_ports, run_gateway

    proxied = proxy_port is not None
    if fill_defaults(options, {"elsewhere": "pass"}) and not proxied:
        raise ValueError(f"--elsewhere is about the proxy: it needs {named}")
    known_routes = parse_routes(options.route, hosts=proxied)
    ports = parse_ports(options.port_of, known_routes)
    plan = add_limits_to_plan(
        options,
        parse_plan(
            options.fault, options.plan, options.seed, known_routes, hosts=proxied, mortal=mortal, command=command
        ),
    )
    failure_bound = None if options.stop_if is None else parse_stop_if(options.stop_if)
    audit = None if options.audit is None else Audit(options.audit, why=options.why or "")
    check_proxy_loop(copy_environment(), options.port, proxy_port)
    return (
        known_routes,
        plan,
        partial(
            run_gateway,
            known_routes,
            plan,
            logs=logs,
            port=options.port,
            ports=ports,
            timeout_s=options.timeout,
            stop_if=failure_bound,
            proxy=None if proxy_port is None else (proxy_port, options.elsewhere),
            audit=audit,
        ),
    )


def add_plan_options(parser: argparse.ArgumentParser, target: str, like: str) -> None:
    """Adds what a plan is made of. `target`: the word for what a fault hits; `like`: one of these."""
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar=f"FAULT:{target}",
        help=f"a fault: lost_reply:{like} (hits the first call that changes something), or JSON: "
        f'{{"fault": "latency", "target": "{like}", "delay_s": 2}}',
    )
    parser.add_argument("--plan", type=parse_path, metavar="FILE", help="a JSON file with a list of faults")
    parser.add_argument("--seed", type=seed, help="seed of all dice (default: the plan's, or 1)")
    add_logs_option(parser, optional=True)


def add_expectation_options(parser: argparse.ArgumentParser, *, fact: str, like: str) -> None:
    """Adds what states a right end. `fact`: the help for a fact; `like`: an effect."""
    parser.add_argument("--fact", type=parse_nonempty, action="append", default=[], metavar="TEXT", help=fact)
    parser.add_argument(
        "--effects", metavar="JSON", help=f'the only effects that must happen, as in [{{"effect": "{like}"}}]'
    )


def run(options: argparse.Namespace) -> int:
    from chaoslab.base.clock import system
    from chaoslab.core.events import PromptStarted
    from chaoslab.surfaces.gateway import (
        judge_and_report_run,
        log_trial_answer,
        warn_of_unreachable_routes,
        write_run_end,
    )

    drain_asked, stopped = Flag(), Flag()
    started = PromptStarted(prompt_index=1, prompt="all requests at the gateway", effects=None)

    def handle_signal(*_: object) -> None:
        # The first signal asks it to drain, the second ends it; without --linger the first does.
        (stopped if drain_asked.is_set() or not options.linger else drain_asked).set()

    try:
        with restore_signal_handlers(), open_logs_or_temp_folder(options.logs) as logs:
            known_routes, _, make_gateway = prepare_gateway(options, logs, options.proxy_port, "--proxy-port")
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, handle_signal)
            with make_gateway(started=started, stop=stopped.set) as running:
                for name, route in known_routes.items():
                    print(f"{name}: {running.make_route_url(name)} leads to {route.url}", flush=True)
                if running.told:
                    print("proxy:", *(f"{name}={value}" for name, value in running.told.items()), flush=True)
                warn_of_unreachable_routes(known_routes)
                folder = running.book.run.folder if options.logs else "no file"
                print(f"ready: gateway on {running.address}, logs in {folder}", flush=True)
                print(f"levers: {running.control_url}/status", flush=True)
                while not stopped.is_set() and not (
                    options.linger and _is_drained(running, options.linger, drain_asked)
                ):
                    stopped.wait(LOOK_S if options.linger else None)
                # Cleared, so that a further signal ends the waiting for requests.
                stopped.clear()
                seconds = system.monotonic() - running.book.origin
                answer = "the gateway was stopped"
                finish = partial(log_trial_answer, running.book, prompt=started.prompt, answer=answer, seconds=seconds)
                running.end_trial(finish, settle_s=options.settle, stopped=stopped.is_set)
                write_run_end(running.book, ok=True)
            gate = _requirements.build_gate_or_default(options)
            return judge_and_report_run(running.book, started, gate, 0, kept=options.logs is not None, passes=True)
    except (ValueError, TypeError, LookupError, OSError) as error:
        return print_error(error)


def _is_drained(running: RunningGateway, linger_s: float, drain_asked: Flag) -> bool:
    """True if a gateway that makes no more faults is not asked any more."""
    controls = running.shared.controls
    assert controls is not None
    if drain_asked.is_set():
        controls.stop_faults()
    return bool(controls.fault_stop_reason) and running.shared.idle_s >= linger_s
