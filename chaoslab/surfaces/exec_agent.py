"""Runs a command as the agent of one trial: its output is the answer, and its requests go through a gateway."""

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread

from chaoslab.analysis.verdict.judge import HUNG, judge_trial
from chaoslab.analysis.verdict.ledger import list_effects
from chaoslab.base.child_group import ChildGroup, forward_signals
from chaoslab.base.clock import system
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.registry import suggest_name
from chaoslab.config.settings import copy_environment
from chaoslab.core import events
from chaoslab.core.exchange import Call, UserActs
from chaoslab.core.plan import Plan
from chaoslab.execution.upstreams import make_address_variables, make_no_proxy_variables, make_provider_variables
from chaoslab.execution.workspace import VARIABLE, open_workspace
from chaoslab.reports.gate import BY_ITSELF, Gate
from chaoslab.reports.places import read_history
from chaoslab.scenarios.command_agent import ANSWER_MAX, check_command_exists, resolve_command_files
from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.surfaces import sessions
from chaoslab.surfaces.gateway import (
    RunningGateway,
    decide_exit_code,
    judge_and_report_run,
    log_trial_answer,
    write_run_end,
)

KEYS = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""The ends of names of variables whose values are masked in the logs."""
LOOK_MS = 50
"""The time between two looks if the command has ended, in milliseconds."""
DEADLINE_S = 600.0
"""The longest time for a command, by default, in seconds."""
ATTEMPTS_MAX = 200
"""The most attempts of a command at one request, by default: more are a loop."""
NOT_RUN = 126
"""The exit code for a command that is there and cannot be run, as shells have it."""
CommandResult = tuple[str, int, str]
"""A command's output, its exit code, and the words for its failure."""


def parse_variables(texts: Sequence[str], routes: Mapping[str, GatewayRoute]) -> dict[str, str]:
    """Routes by variable, from texts such as "CRM_URL=crm". Raises ValueError, LookupError: one is wrong."""
    routes_by_variable = {}
    for text in texts:
        name, equals, route = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--env {text[:60]} should be a variable and a route, as in CRM_URL=crm")
        if route not in routes:
            raise LookupError(f"--env {text[:60]} names no route: {suggest_name(route, routes)}")
        routes_by_variable[name] = route
    return routes_by_variable


def run_with_faults(
    command: Sequence[str],
    address_variables: Mapping[str, str],
    routes: Mapping[str, GatewayRoute],
    plan: Plan,
    open_gateway: Callable[..., AbstractContextManager[RunningGateway]],
    *,
    started: events.PromptStarted,
    settle_s: float,
    kept: bool = True,
    gate: Gate = BY_ITSELF,
    levers: bool = False,
    deadline_s: float = DEADLINE_S,
    attempts_max: int = ATTEMPTS_MAX,
    resume: Sequence[str] = (),
    resumes: int = 1,
    files: Path | None = None,
) -> int:
    """Runs a command and prints the verdict to standard error. Returns the exit code that the gate asks for, else the
    command's, which is 128 and the number of the signal that ended it, if one did. `address_variables`: routes by
    the variables that hold their addresses; `open_gateway`: makes the gateway; `levers`: it has levers, and prints
    their address; `settle_s`: as in `RunningGateway.request_end`; `kept`: as in `judge_and_report_run`; `deadline_s`,
    `attempts_max`: a
    command that takes longer, or tries one request more often, is ended and has hung. `resume`: the command that goes
    on, at most `resumes` times, when a fault has killed it. `files`: a folder, in a copy of which it runs. Raises
    LookupError: there is no such command. OSError: the port is taken, or no log can be written."""
    # Before the gateway: a command that is not there would leave a run without a trial.
    check_command_exists(command)
    if resume:
        check_command_exists(resume)
    environment = copy_environment()
    # Short values, such as "true", would be masked in every text.
    secrets = [value for name, value in environment.items() if name.upper().endswith(KEYS) and len(value) > 7]
    stop = partial(os.kill, os.getpid(), signal.SIGTERM) if levers else None
    with (
        nullcontext() if files is None else open_workspace(files, enters=False) as workspace,
        open_gateway(started=started, secrets=secrets, stop=stop) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        if levers:
            print(f"levers: {running.control_url}/status", file=sys.stderr, flush=True)
        began_s = system.monotonic()
        environment_told = _make_environment(environment, address_variables, routes, running)
        session = running.book.run.name
        ending = CommandEnding(until_s=began_s + deadline_s, deadline_s=deadline_s)
        # A command that repeats a refused request made a thousand of them in five seconds.
        running.seam.attempts_max, running.seam.runaway = attempts_max, ending.request_end

        def kill_command(call: Call) -> None:
            died = events.AgentDied(at=call.attempt_ref, tool=call.tool)
            running.book.note_event(died)
            ending.kill_processes(died.call_name)

        due: list[UserActs] = []
        beside: list[Future[CommandResult]] = []
        began_again_s = [began_s]
        folder = None if workspace is None else workspace.folder

        def log_prompt_repeat(*, at_once: bool) -> None:
            began_again_s.append(system.monotonic())
            running.book.note_event(events.EventRepeated(turn=1, prompt=started.prompt, at_once=at_once))

        def queue_user_act(step: UserActs, _: Call) -> bool:
            due.append(step)
            if len(due) > 1:
                return False
            if step.deed == "at_once":
                log_prompt_repeat(at_once=True)
                beside.append(pool.submit(_run_command, command, environment_told, ending, folder, tells=False))
            return True

        def run_command() -> CommandResult:
            outcome = _run_command(command, environment_told, ending, folder)
            for nth in range(1, resumes * bool(resume) + 1):
                if ending.killed:
                    ending.killed = ""
                    running.book.note_event(events.AgentResumed(nth=nth))
                    outcome = _run_command(resume, environment_told, ending, folder)
            return outcome

        running.seam.kill, running.seam.memory.user = kill_command, queue_user_act
        answer, code, error = run_command()
        if beside or (due and not error):
            if beside:
                with forward_signals(ending.send_signal):
                    repeat, repeat_code, repeat_error = beside[0].result()
                print(repeat, end="", flush=True)
            else:
                log_prompt_repeat(at_once=False)
                repeat, repeat_code, repeat_error = run_command()
            repeat_s = round(system.monotonic() - began_again_s[-1], 6)
            running.book.note_event(events.RepeatAnswered(turn=1, answer=repeat.strip(), duration_s=repeat_s))
            code, error = code or repeat_code, error or repeat_error
        seconds = system.monotonic() - began_s

        def log_final_events() -> None:
            for injection, target, request in plan.numbered_requests:
                if request > (request_count := running.book.requests.count_requests(target)):
                    running.book.note_event(
                        events.FaultUnreached(
                            injection=injection.name, target=target, request=request, made=request_count
                        )
                    )
            for effect in () if workspace is None else workspace.list_effects():
                running.book.note_event(effect)
            # Ended from outside: it has hung, and did not fail.
            kind = HUNG if ending.why else "agent"
            log_trial_answer(
                running.book, prompt=started.prompt, answer=answer.strip(), error=error, kind=kind, seconds=seconds
            )

        running.end_trial(log_final_events, settle_s=settle_s)
        write_run_end(running.book, ok=not error)
    exit_code = judge_and_report_run(running.book, started, gate, code, kept=kept)
    logs = running.book.run.folder.parent
    server_codes = [
        print_mcp_server_verdict(logs / name, gate, kept=kept) for name in sessions.pop_run_names(logs, session)
    ]
    if not server_codes:
        return exit_code
    if not plan.injections and not started.stated and exit_code == PROVES_NOTHING:
        exit_code = 0  # nothing of its own was to be judged
    return next((code for code in (GATE_FAILED, PROVES_NOTHING) if code in (exit_code, *server_codes)), exit_code)


def learn_expected_effects(
    command: Sequence[str],
    address_variables: Mapping[str, str],
    routes: Mapping[str, GatewayRoute],
    open_gateway: Callable[..., AbstractContextManager[RunningGateway]],
    *,
    started: events.PromptStarted,
    files: Path,
    settle_s: float,
    deadline_s: float = DEADLINE_S,
    wishes: int = 1,
) -> events.PromptStarted:
    """The beginning of a trial beside a run of the command without faults, in a copy of the folder: all that this did
    to the files, and its requests that changed something, each wished so often. Raises ValueError: it fails."""
    check_command_exists(command)
    print("chaoslab: first without faults", file=sys.stderr, flush=True)
    with (
        TemporaryDirectory(prefix="chaoslab-") as logs,
        open_workspace(files, enters=False) as workspace,
        open_gateway(started=started, logs=Path(logs)) as running,
    ):
        environment = _make_environment(copy_environment(), address_variables, routes, running)
        ending = CommandEnding(until_s=system.monotonic() + deadline_s, deadline_s=deadline_s)
        _, _, error = _run_command(command, environment, ending, workspace.folder, tells=False)
        running.end_trial(settle_s=settle_s)
        if error:
            raise ValueError(f"without faults too, {error}: there is nothing to compare with")
        history = read_history(running.book.run.name, logs=Path(logs))
        requests = [{"effect": effect.effect} for effect in list_effects(history, running.book.key)] * wishes
        changes = [{"effect": effect.effect, **effect.content} for effect in workspace.list_effects()]
    return replace(started, effects=[*requests, *changes], stated=True)


def _make_environment(
    environment: Mapping[str, str],
    address_variables: Mapping[str, str],
    routes: Mapping[str, GatewayRoute],
    running: RunningGateway,
) -> dict[str, str]:
    """The variables of a command whose requests go through the gateway."""
    return {
        **environment, **make_no_proxy_variables(environment),
        **make_address_variables(routes, running.make_route_url),
        **make_provider_variables(routes, running.make_route_url), **running.told,
        sessions.VARIABLE: running.book.run.name, sessions.LOGS: str(running.book.run.folder.parent.absolute()),
        **{name: running.make_route_url(route) for name, route in address_variables.items()},
    }  # fmt: skip


def print_mcp_server_verdict(folder: Path, gate: Gate, *, kept: bool) -> int:
    """Prints the verdict on what a command did at a server of MCP, behind a proxy of its own. Returns the exit code."""
    history = read_history(str(folder))
    verdict = judge_trial(history, key := history.trials[0])
    message = f"chaoslab: its MCP server: {verdict.outcome} – {verdict.why}{f' ({folder})' if kept else ''}"
    print(message, file=sys.stderr, flush=True)
    return decide_exit_code(history, gate, verdict, key)


@dataclass
class CommandEnding:
    """The reason why a command has to end before it does so by itself. `why`: empty if there is none."""

    until_s: float
    deadline_s: float
    why: str = ""
    killed: str = ""
    """The call at which a fault has killed it; empty if none has."""
    running: list[ChildGroup] = field(default_factory=list)

    def add_process(self, child: ChildGroup) -> None:
        """Takes a process of the command."""
        self.running.append(child)
        if self.killed:  # its first request came before this
            child.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Sends a signal to all processes of the command."""
        for child in [*self.running]:
            child.send_signal(number)

    def kill_processes(self, place: str) -> None:
        """Kills it and its children, at once. It may be called from any thread."""
        # Set before the signal: its end may be seen at once.
        self.killed = place
        self.send_signal(signal.SIGKILL)

    def request_end(self, reason: str) -> None:
        """Has the command ended, at the next look. It may be called from any thread."""
        self.why = self.why or reason

    @property
    def is_due(self) -> bool:
        if not self.why and system.monotonic() > self.until_s:
            self.why = f"it did not end within {self.deadline_s:g} s"
        return bool(self.why)


def _run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    ending: CommandEnding,
    folder: Path | None = None,
    *,
    tells: bool = True,
) -> CommandResult:
    """Runs the command. `folder`: where it runs; `tells`: its output is passed on."""
    words = command if folder is None else resolve_command_files(command, Path.cwd())
    variables = environment if folder is None else {**environment, VARIABLE: str(folder)}
    try:
        child = ChildGroup(words, stdin=None, environment=variables, folder=folder)
    except OSError as error:
        message = f"the command {command[0]!r} cannot be run: {error.strerror}"
        # As a shell does that finds a file which it cannot run.
        print(message, file=sys.stderr, flush=True)
        return "", NOT_RUN, message
    ending.add_process(child)
    # Only the main thread hears signals: it passes them on to what runs beside, too.
    signals = forward_signals(ending.send_signal) if current_thread() is main_thread() else nullcontext()
    with child, signals:
        answer = _forward_output(child, ending, tells=tells)
        # close ends its children too; wait lets them go on.
        code = child.kill_and_wait() if ending.why else child.wait()
        ending.running.remove(child)
    if ending.why:
        # 0: the reason stands for a code, which would be that of the signal.
        return answer, 0, ending.why
    if ending.killed:
        return answer, 128 + signal.SIGKILL, f"killed at {ending.killed}"
    if code < 0:
        return answer, 128 - code, f"the command was ended by {signal.Signals(-code).name}"
    return answer, code, f"the command ended with exit code {code}" if code else ""


def _forward_output(child: ChildGroup, ending: CommandEnding, *, tells: bool) -> str:
    """The text of a command's output, which is passed on to standard output as it comes if it `tells`. It ends with the
    command, even if a child that it left behind holds the output, or when the command has to end."""
    output, poll, stream = bytearray(), select.poll(), child.stdout
    poll.register(stream, select.POLLIN)
    while True:
        # Asked before the output is looked at, so that what was written before the end is read.
        is_over = child.poll_exit_code() is not None or ending.is_due
        # Short, since a child that it left behind may hold the output open for ever.
        if not poll.poll(0 if is_over else LOOK_MS):
            if is_over:
                break
            continue
        if not (chunk := os.read(stream.fileno(), 65536)):
            break
        if tells:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        # All is passed on; only so much is kept, as a command may write for hours.
        output += chunk[: ANSWER_MAX - len(output)]
    # A command may write what is no UTF-8.
    return output.decode("utf-8", "replace")
