"""A gateway on loopback, put together: its plan, its run folder and its log."""

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chaoslab.analysis.measures.idle import describe_run_idle_injections
from chaoslab.analysis.verdict.judge import judge_trial
from chaoslab.analysis.verdict.standing import Standing, get_outcome_standing
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base import files
from chaoslab.base.clock import format_iso, system
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.identity import make_nth_trial_id
from chaoslab.base.jsonable import to_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.campaigns.gateways import register_gateway
from chaoslab.config.limits import add_environment_limits
from chaoslab.config.settings import copy_environment, load_secret_names
from chaoslab.core import events
from chaoslab.core.events import Event
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.inject import check_injections, inject
from chaoslab.core.limits import Limits, parse_limits
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution.upstreams import (
    GRACE_S,
    MODEL,
    PROXIES,
    UPSTREAM_S,
    check_allowed_hosts,
    check_no_clock_faults,
    check_no_refusing_faults,
    is_model_route,
    open_gateway,
    prepare_proxy_variables,
)
from chaoslab.model import formats
from chaoslab.model.prices import compute_cost_usd
from chaoslab.record.audit import Audit
from chaoslab.record.history import History
from chaoslab.record.log import Log
from chaoslab.record.runs import Run
from chaoslab.record.trial_log import DeferredEvent, TrialLog
from chaoslab.reports.gate import Gate, apply_gate
from chaoslab.reports.places import read_history
from chaoslab.seams.gateway.controls import PATH, Controls
from chaoslab.seams.gateway.routes import (
    GatewayRoute,
    ensure_reachable,
    is_host_name,
    is_loopback_host,
    make_host_route,
)
from chaoslab.seams.gateway.shared import LOOK_S, Gateway
from chaoslab.seams.services.seam import ServiceSeam
from chaoslab.surfaces import levers

HANG_S = 660.0
"""The longest time for which a client that does not give up waits for an answer that never comes, in seconds: beyond
that of the SDKs of models."""

SETTLE_S = 30.0
"""The time for requests that may have an effect yet to go on after the answer, by default, in seconds."""


class LiveLog(TrialLog):
    """The log of a trial in real time. Each event is written when it is noted, and none is kept. `audit`: told before
    of those about faults."""

    audit: Audit | None

    def __init__(self, run: Run, log: Log) -> None:
        super().__init__(make_nth_trial_id(run.name, 0, 1), began=system.utc())
        self.run, self.log, self.audit = run, log, None

    def note_event(self, noted: Event) -> None:
        if self.audit is not None:
            self.audit.write_fault_line(noted)
        self.log.write(noted, trial=self.key)

    def note_call_phase(self, noted: DeferredEvent, text_part: str) -> float:
        now_s = self._now()
        self.note_event(noted.make_phase_event(text_part, self.requests, round(now_s - self.origin, 6)))
        return now_s

    def hide_secrets(self, secrets: Iterable[str]) -> None:
        self.log.hide_secrets(secrets)


@dataclass(frozen=True)
class RunningGateway:
    """A gateway that answers. `address`: that of all routes, as in "http://127.0.0.1:8888"."""

    address: str
    book: LiveLog
    shared: Gateway
    seam: ServiceSeam
    told: Mapping[str, str]
    """The variables that lead programs to the proxy, if there is one."""

    def end_trial(
        self,
        finish: Callable[[], object] = lambda: None,
        *,
        settle_s: float = 0.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Ends the trial: what its clients ask after that is no part of it. `finish` writes its answer, after which
        requests that may have an effect yet go on for `settle_s`, or until it is `stopped`."""
        self.shared.wait_until_idle(GRACE_S)
        finish()
        acting, until_s = self.shared.list_pending_requests(), system.monotonic() + settle_s
        if acting and settle_s:
            # A request may have an effect yet after its caller has gone.
            message = f"chaoslab: waiting up to {settle_s:g} s for {_format_requests(acting)} (Ctrl-C: no longer)"
            print(message, file=sys.stderr, flush=True)
        try:
            while acting and system.monotonic() < until_s and not stopped():
                system.sleep(LOOK_S)
                acting = self.shared.list_pending_requests()
        except KeyboardInterrupt:
            pass
        self.shared.end_trial()
        if acting:
            message = f"still under way after the answer, so what it does is not known: {_format_requests(acting)}"
            self.shared.warn(message)
            print(f"warning: {message}", file=sys.stderr, flush=True)

    @property
    def control_url(self) -> str:
        """The address of the levers, which holds their token."""
        assert self.shared.controls is not None
        return f"{self.address}{PATH}{self.shared.controls.token}"

    def make_route_url(self, route: str) -> str:
        """The address under which a program asks for a route's service."""
        return get_route_url(route, self.address, self.shared)


def _format_requests(requests: Sequence[str]) -> str:
    suffix = f" and {len(requests) - 3} more" if len(requests) > 3 else ""
    return ", ".join(requests[:3]) + suffix


def parse_ports(texts: Sequence[str], routes: Mapping[str, GatewayRoute]) -> dict[str, int]:
    """Ports by route, from texts such as "crm=9100". Raises ValueError, LookupError: one is wrong."""
    ports: dict[str, int] = {}
    for text in texts:
        option_text = f"--port-of {text[:60]}"
        route, _, number = text.partition("=")
        if not route or not re.fullmatch("[0-9]{1,5}", number) or int(number) > 65535:
            raise ValueError(
                f"{option_text} should be a route and a port from 0 to 65535, as in crm=9100; 0 is any free one"
            )
        if route not in routes:
            raise LookupError(f"{option_text} names no route: {suggest_name(route, routes)}")
        if route in ports:
            raise ValueError(f"{option_text} gives the route {route} a second port: it has {ports[route]}")
        ports[route] = int(number)
    return ports


def warn_of_unreachable_routes(routes: Mapping[str, GatewayRoute]) -> None:
    """Says on stderr which services on this machine take no connection now. A program may need none of them."""
    for route in routes.values():
        # This machine alone: nobody outside was meant to be asked before a program does.
        try:
            ensure_reachable(route, only_here=True)
        except LookupError as error:
            print(f"warning: {error.args[0]}", file=sys.stderr, flush=True)


_PLAN = ("seed", "faults", "limits")
"""The keys of a plan's file."""


def parse_plan(
    faults: Sequence[str],
    file: Path | None,
    seed: int | None,
    routes: dict[str, GatewayRoute] | None,
    *,
    hosts: bool = False,
    mortal: bool = False,
    command: bool = False,
) -> Plan:
    """The plan from `--fault` options, a file, or both. A fault is "name:route", or JSON as in {"fault": "latency",
    "target": "crm", "delay_s": 2}; a lost reply given by its name alone is that of the first call that changes
    something. A file holds a list of such objects, or {"seed": …, "faults": […], "limits": {…}}.
    `routes` of None: the targets are not known yet, so any name is one. `hosts`: hosts that faults name become routes
    too. `mortal`: the agent may be killed. `command`: it is a command, which can be run again. Raises ValueError,
    LookupError, TypeError: one of them is wrong; OSError: the file cannot be read."""
    limits: tuple[Limits, ...] = ()
    entries: list[tuple[str, Any]] = [
        (f"--fault {text[:60]}", _parse_fault_text(text, tools=routes is None)) for text in faults
    ]
    if file is not None:
        content = _read_json(str(file), files.read_json, file)
        if isinstance(content, Mapping):
            if unknown := [name for name in content if name not in _PLAN]:
                raise LookupError(f"{file} has no key '{unknown[0][:60]}': {suggest_name(unknown[0], _PLAN)}")
            # The option counts more than the file.
            seed = content.get("seed") if seed is None else seed
            try:
                limits = parse_limits(content.get("limits", ()))
            except (ValueError, LookupError) as error:
                raise type(error)(f"{file}: {error.args[0]}") from None
            content = content.get("faults", [])
        if not isinstance(content, list):
            raise ValueError(f"{file} should hold a list of faults, or an object with seed and faults")
        entries += [(f"{file}, fault {number}", entry) for number, entry in enumerate(content, 1)]
    injections = [_parse_injection(location, entry) for location, entry in entries]
    check_no_clock_faults(injections)
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ValueError(f"the seed is {seed!r}: it should be a whole number from 0")
    seed = 1 if seed is None else seed
    if routes is None:
        names = [target for injection in injections for target in injection.targets]
        return add_environment_limits(Plan(seed, check_injections(injections, names, stdio=True), limits))
    for injection in injections:
        for target in set(injection.targets).difference(routes):
            if hosts and not is_host_name(target):
                raise LookupError(f"'{injection.name}' names neither a route nor a host, as in api.openai.com")
            if not is_host_name(target):
                continue
            if not hosts:
                commands = "exec --proxy, gateway --proxy-port"
                raise LookupError(f"'{injection.name}' is for a host, and only a proxy knows those: {commands}")
            routes[target] = make_host_route(target)
    models = [name for name in routes if is_model_route(routes[name])]
    objects = [
        name for name in models if formats.has_object_arguments(routes[name].host) or formats.has_object_arguments(name)
    ]
    checked = check_injections(
        injections,
        list(routes),
        models=models,
        may_be=routes,
        objects=objects,
        mortal=mortal,
        user=("event_twice",) if command else (),
    )
    check_no_refusing_faults(checked, routes)
    return add_environment_limits(Plan(seed, checked, limits))


def _parse_fault_text(text: str, *, tools: bool) -> Any:
    """The data of a `--fault`. `tools`: its target is a tool, or a pattern of tools, and no route."""
    if text.lstrip().startswith("{"):
        return _read_json(f"--fault {text[:60]}", files.parse_json, text)
    fault, colon, target = text.partition(":")
    if not colon or not target:
        raise ValueError(f"--fault {text[:60]} should be a fault and a route, as in lost_reply:crm, or JSON")
    return {
        "fault": fault,
        "target": target,
        **_choose_default_triggers(fault, tool=tools and not set("*?[") & set(target)),
    }


def _choose_default_triggers(fault: str, *, tool: bool) -> dict[str, Any]:
    """The triggers of a fault that is given by its name and a target alone: one about calls that change something hits
    the first of them. `tool`: its target is one tool, which the user has chosen."""
    try:
        of_effect = get_trait(load_fault(fault), "of_effect")
    except LookupError:  # which `inject` tells
        return {}
    if not of_effect:
        return {}
    # A tool that was named is the one that is meant, whatever it does.
    return {"max_times": 1} if tool else {"changes": True, "max_times": 1}


def _read_json(name: str, read: Callable[[Any], Any], source: str | Path) -> Any:
    try:
        return read(source)
    except files.Unreadable as error:
        raise ValueError(f"{name} {error}") from None


def _parse_injection(location: str, entry: Any) -> Injection:
    example = '{"fault": "latency", "target": "crm", "delay_s": 2}'
    if not isinstance(entry, Mapping) or not {"fault", "target"} <= entry.keys():
        raise ValueError(f"{location} should be as in {example}")
    try:
        # bind first: it tells of a missing or unknown argument in Python's own words, without the call.
        signature(inject).bind(**entry)
        return inject(**entry)
    except (ValueError, TypeError, LookupError) as error:
        raise type(error)(f"{location}: {error.args[0] if error.args else error}") from None


@contextmanager
def run_gateway(
    routes: Mapping[str, GatewayRoute],
    plan: Plan,
    *,
    logs: Path,
    started: events.PromptStarted,
    port: int = 0,
    ports: Mapping[str, int] | None = None,
    timeout_s: float = UPSTREAM_S,
    secrets: Sequence[str] = (),
    stop: Callable[[], object] | None = None,
    stop_if: tuple[float, float] | None = None,
    proxy: tuple[int, str] | None = None,
    audit: Audit | None = None,
) -> Iterator[RunningGateway]:
    """A context with a gateway that answers on loopback. `port`: of all routes, which are told apart by their paths;
    `ports`: the further ones of single routes. 0 takes any free one. `stop` ends it: given, it has levers.
    `stop_if`: as `Controls` takes it. `proxy`: the port of a proxy, and what it does with hosts that are no routes
    (pass or refuse). `audit` is told of each fault. Raises OSError: the port is taken, or the logs cannot be written;
    ValueError: a fault would hit a host that the plan's limits do not allow."""
    check_allowed_hosts(plan, routes)
    models = {name: MODEL for name in routes if is_model_route(routes[name])}
    seam = ServiceSeam(plan, timeout_s=HANG_S, models=models, price=compute_cost_usd, in_order=False)
    with (
        open_gateway(routes, seam, port=port, ports=ports, timeout_s=timeout_s, proxy=proxy) as (address, shared),
        # Of a proxy alone: its authority is made for one run, and goes with it.
        tempfile.TemporaryDirectory(prefix="chaoslab-") if proxy is not None else nullcontext("") as folder,
        open_live_log(
            plan,
            logs=logs,
            settings={f"ROUTE_{name.upper()}": route.url for name, route in routes.items()},
            started=started,
            secrets=secrets,
        ) as book,
        closing(audit) if audit is not None else nullcontext(),
        ExitStack() as stack,
    ):
        shared.environment = copy_environment()
        shared.warn = lambda message: book.note_event(events.LabWarning(message=message))
        if audit is not None:
            book.audit, audit.run = audit, str(book.run.folder)
        seam.begin_trial(book, TrialMemory(plan, book.key, note=book.note_event))
        shared.controls = Controls(seam, shared.warn, stop, stop_if)
        if stop is not None:
            lever_place = levers.ControlEndpoint(int(address.rpartition(":")[2]), shared.controls.token)
            # Last, so that the file with the token is gone first.
            stack.enter_context(levers.publish_control_endpoint(book.run.folder, lever_place))
        urls = {route.url: get_route_url(name, address, shared) for name, route in routes.items()}
        stack.enter_context(register_gateway(urls))
        # A route of another name has an address at the gateway, which is asked past the proxy.
        variables = prepare_proxy_variables(shared, folder, near=any(make_host_route(name).is_local for name in routes))
        yield RunningGateway(address, book, shared, seam, variables)


def get_route_url(route: str, address: str, shared: Gateway) -> str:
    """The address under which the gateway at this address is asked for a route's service."""
    return shared.addresses.get(route) or f"{address}/{route}"


@contextmanager
def open_live_log(
    plan: Plan,
    *,
    logs: Path,
    settings: Mapping[str, str],
    started: events.PromptStarted,
    secrets: Sequence[str] = (),
    run: Run | None = None,
) -> Iterator[LiveLog]:
    """A context with the log of a run of one trial, which has begun. `started`: its first event.
    `write_trial_and_run_end` writes its end. `run`: one that goes on. Raises OSError: it cannot be written."""
    load_secret_names()
    if run is not None:
        with run.open_log("info", secrets=secrets) as log:
            run.link_as_latest()
            yield LiveLog(run, log)
        return
    now = format_iso(system.utc())
    run = Run.create(logs, now=now)
    with run.open_log("info", secrets=secrets) as log:
        log.write(
            # The settings and the plan first: without them no reader knows a log.
            events.RunStarted(
                seed=plan.seed,
                settings=dict(settings),
                plan=plan.to_json(),
                prompts=1,
                now=now,
                model="",
                world="local",
                code={"log": str(events.VERSION)},
            )
        )
        run.link_as_latest()
        book = LiveLog(run, log)
        book.note_event(started)
        yield book


def check_proxy_loop(environment: Mapping[str, str], *ports: int | None) -> None:
    """Checks that no proxy in the environment is the gateway itself, at one of these ports. Raises ValueError: one
    is."""
    for name in PROXIES:
        value = environment.get(name, "")
        # Without a scheme urlsplit sees no host in it.
        parts = urlsplit(value if "://" in value else f"http://{value}")
        if value and is_loopback_host(parts.hostname or "") and parts.port and parts.port in ports:
            raise ValueError(f"{name} leads to port {parts.port}, the gateway's own: a loop; unset it for the gateway")


def write_trial_and_run_end(book: LiveLog, *, prompt: str, answer: str, seconds: float) -> None:
    """Writes the end of the trial and of the run."""
    log_trial_answer(book, prompt=prompt, answer=answer, seconds=seconds)
    write_run_end(book, ok=True)


def log_trial_answer(
    book: LiveLog, *, prompt: str, answer: str, error: str = "", kind: str = "agent", seconds: float
) -> None:
    """Writes the answer of the trial, or its failure, which is of this kind of error."""
    kind, status = (kind, "failed") if error else ("none", "ok")
    book.note_event(
        events.PromptAttempt(
            prompt_index=1,
            prompt=prompt,
            response=answer,
            status="error" if error else "ok",
            start_time=format_iso(book.began),
            end_time=format_iso(system.utc()),
            duration_s=round(seconds, 6),
            error_type=kind,
            prompt_attempt=1,
            error=error[:2000],
        )
    )
    book.note_event(
        events.PromptFinished(
            prompt_index=1,
            prompt=prompt,
            status=status,
            answer=answer,
            attempts=1,
            duration_s=round(seconds, 6),
            error_type=kind,
        )
    )


def decide_exit_code(history: History, gate: Gate, verdict: Verdict, key: str) -> int:
    """The exit code for a run of one trial; says to standard error what the verdict does not say. Where nobody asked
    for a gate: 0 if the trial ended well, 1 if it ended badly or left something undone, 4 if it is open or no fault was
    met."""
    unmet, started = list(describe_run_idle_injections(history)), history.find_first_event(events.RunStarted)
    planned = [i.name for i in Plan.from_json(started.plan).injections if i.may_hit] if started is not None else []
    if planned and not unmet and history.find_first_event(events.FaultWitnessed) is None:
        unmet = [f"nothing met a fault ({to_one_line(', '.join(planned), 100)})"]
    ruling = apply_gate(gate, {key: verdict}, unmet=unmet)
    if gate.given or unmet:
        print(f"chaoslab: {ruling.line}", file=sys.stderr, flush=True)
    if gate.given:
        return ruling.code
    standing = get_outcome_standing(str(verdict.outcome))
    # What was left undone is bad even where words may have admitted it.
    if standing is Standing.BAD or verdict.done is False:
        return GATE_FAILED
    return PROVES_NOTHING if unmet or standing is Standing.OPEN else 0


def parse_effects_option(text: str | None) -> list[dict[str, Any]] | None:
    """The effects that were stated as JSON. Raises ValueError: it is no list of effects."""
    if text is None:
        return None
    value = _read_json("--effects", files.parse_json, text)
    example = '[{"effect": "POST /refunds", "order": 17}]'
    if not isinstance(value, list) or not all(isinstance(effect, dict) and "effect" in effect for effect in value):
        raise ValueError(f"--effects should be a list, as in {example}")
    return value


def make_prompt_start_event(
    prompt: str, facts: Sequence[str], effects: Sequence[Mapping[str, Any]] | None, *, wishes: int = 1
) -> events.PromptStarted:
    """The first event of a trial about which these facts and effects are stated; effects of None state nothing.
    `wishes`: how often the effects are wished for."""
    effect_list = None if effects is None else [dict(effect) for effect in effects] * wishes
    return events.PromptStarted(
        prompt_index=1,
        prompt=prompt,
        facts=[[fact] for fact in facts],
        effects=effect_list,
        stated=bool(facts) or effects is not None,
    )


def judge_and_report_run(
    book: LiveLog, started: events.PromptStarted, gate: Gate, code: int, *, kept: bool = True, passes: bool = False
) -> int:
    """Prints the verdict of a run of one trial to standard error. Returns the exit code of `decide_exit_code`, but the
    command's own where that failed and no gate was asked for. `kept`: its folder stays, and is named. `passes`: it only
    passes traffic on, so where nothing was stated, asked for or done wrong, nothing is said and the code is the
    command's."""
    history = read_history(str(book.run.folder))
    verdict = judge_trial(history, book.key)
    if passes and not (started.stated or gate.given or verdict.harm):
        unmet = next(iter(describe_run_idle_injections(history)), "")
        if unmet:
            print(f"chaoslab: {unmet}", file=sys.stderr, flush=True)
        return code or (PROVES_NOTHING if unmet else 0)
    remedy = "" if started.stated or verdict.outcome is not Outcome.UNKNOWN else ": --effects and --fact state it"
    hint = f" ({verdict.hint})" if verdict.hint else ""
    text = f"chaoslab: {verdict.outcome} – {verdict.why}{hint}{remedy}{f' ({book.run.folder})' if kept else ''}"
    print(text, file=sys.stderr, flush=True)
    gate_code = decide_exit_code(history, gate, verdict, book.key)
    # A command that failed by itself says more by its code than a gate that nobody asked for.
    is_own_failure = code and not verdict.harm and (verdict.outcome is Outcome.FAILED or gate_code == PROVES_NOTHING)
    return code if is_own_failure and not gate.given else gate_code or code


def write_run_end(book: LiveLog, *, ok: bool) -> None:
    """Writes the end of the run."""
    book.log.write(
        events.RunFinished(
            received=1,
            processed=1,
            succeeded=int(ok),
            duration_s=round(system.monotonic() - book.run.origin, 6),
            reason="done",
        )
    )
