"""Runs a command as the agent of one trial: its output is the answer, and its requests go through a gateway."""

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from chaoslab.analysis.verdict.judge import HUNG, judge
from chaoslab.analysis.verdict.ledger import list_effects
from chaoslab.base.child_group import ChildGroup, forward_signals
from chaoslab.base.clock import system
from chaoslab.base.commandline import GATE_FAILED, PROVES_NOTHING
from chaoslab.base.registry import did_you_mean
from chaoslab.config.settings import inherited
from chaoslab.core import events
from chaoslab.core.exchange import Call, UserActs
from chaoslab.core.plan import Plan
from chaoslab.execution.upstreams import bypass_proxy, provider_variables
from chaoslab.execution.workspace import VARIABLE, open_workspace
from chaoslab.reports.gate import BY_ITSELF, Gate
from chaoslab.reports.places import read_history
from chaoslab.scenarios.command_agent import ANSWER_MAX, check_command, find_files
from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.surfaces import sessions
from chaoslab.surfaces.gateway import RunningGateway, judge_run, rule_on_trial, write_answer, write_run_end

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


def parse_variables(texts: Sequence[str], routes: Mapping[str, GatewayRoute]) -> dict[str, str]:
    """Routes by variable, from texts such as "CRM_URL=crm". Raises ValueError, LookupError: one is wrong."""
    routes_by_variable = {}
    for text in texts:
        name, equals, route = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--env {text[:60]} should be a variable and a route, as in CRM_URL=crm")
        if route not in routes:
            raise LookupError(f"--env {text[:60]} names no route: {did_you_mean(route, routes)}")
        routes_by_variable[name] = route
    return routes_by_variable


def run(
    command: Sequence[str], address_variables: Mapping[str, str], routes: Mapping[str, GatewayRoute], plan: Plan,
    open_gateway: Callable[..., AbstractContextManager[RunningGateway]], *, started: events.PromptStarted, logs: Path,
    settle_s: float, gate: Gate = BY_ITSELF, levers: bool = False, deadline_s: float = DEADLINE_S,
    attempts_max: int = ATTEMPTS_MAX, resume: Sequence[str] = (), resumes: int = 1, files: Path | None = None,
) -> int:  # fmt: skip
    """Runs a command and prints the verdict to standard error. Returns the exit code that the gate asks for, else the
    command's, which is 128 and the number of the signal that ended it, if one did. `address_variables`: routes by
    the variables that
    shall hold their addresses; `open_gateway`: makes the gateway; `levers`: they are there, and told; `settle_s`: as in
    `RunningGateway.end`; `deadline_s`, `attempts_max`: a command that takes longer, or tries one request more often, is
    ended and has hung. `resume`: the command that goes on, at most `resumes` times, when a fault has killed it.
    `files`: a folder, in a copy of which it runs. Raises LookupError: there is no such command. OSError: the port is
    taken, or no log can be written."""
    # Before the gateway: a command that is not there would leave a run without a trial.
    check_command(command)
    if resume:
        check_command(resume)
    environment = inherited()
    # Short values, such as "true", would be masked in every text.
    secrets = [value for name, value in environment.items() if name.upper().endswith(KEYS) and len(value) > 7]
    stop = partial(os.kill, os.getpid(), signal.SIGTERM) if levers else None
    with (
        nullcontext() if files is None else open_workspace(files, enters=False) as workspace,
        open_gateway(started=started, secrets=secrets, stop=stop) as running,
    ):
        if levers:
            print(f"levers: {running.levers}/status", file=sys.stderr, flush=True)
        began_s = system.monotonic()
        environment_told = _make_environment(environment, address_variables, routes, running)
        session = running.book.run.name
        ending = CommandEnding(until_s=began_s + deadline_s, deadline_s=deadline_s)
        # A command that repeats a refused request made a thousand of them in five seconds.
        running.seam.attempts_max, running.seam.runaway = attempts_max, ending.end

        def kill(call: Call) -> None:
            died = events.AgentDied(at=call.at, tool=call.tool)
            running.book.note(died)
            ending.kill(died.call_name)

        due: list[UserActs] = []

        def act(step: UserActs, _: Call) -> bool:
            due.append(step)
            return len(due) == 1

        folder = None if workspace is None else workspace.folder

        def run_command() -> tuple[str, int, str]:
            outcome = _run_command(command, environment_told, ending, folder)
            for nth in range(1, resumes * bool(resume) + 1):
                if ending.killed:
                    ending.killed = ""
                    running.book.note(events.AgentResumed(nth=nth))
                    outcome = _run_command(resume, environment_told, ending, folder)
            return outcome

        running.seam.kill, running.seam.memory.user = kill, act
        answer, code, error = run_command()
        if due and not error:
            running.book.note(events.EventRepeated(turn=1, prompt=started.prompt))
            again_s = system.monotonic()
            repeat, code, error = run_command()
            repeat_s = round(system.monotonic() - again_s, 6)
            running.book.note(events.RepeatAnswered(turn=1, answer=repeat.strip(), duration_s=repeat_s))
        seconds = system.monotonic() - began_s

        def finish() -> None:
            for injection, target, request in plan.named:
                if request > (request_count := running.book.requests.made(target)):
                    running.book.note(
                        events.FaultUnreached(
                            injection=injection.name, target=target, request=request, made=request_count
                        )
                    )
            for effect in () if workspace is None else workspace.list_effects():
                running.book.note(effect)
            # Ended from outside: it has hung, and did not fail.
            kind = HUNG if ending.why else "agent"
            write_answer(
                running.book, prompt=started.prompt, answer=answer.strip(), error=error, kind=kind, seconds=seconds
            )

        running.end(finish, settle_s=settle_s)
        write_run_end(running.book, ok=not error)
    exit_code = judge_run(running.book, started, gate, code, logs=logs)
    server_codes = [judge_servers(name, gate, logs) for name in sessions.take_runs(logs, session)]
    if not server_codes:
        return exit_code
    if not plan.injections and not started.stated and exit_code == PROVES_NOTHING:
        exit_code = 0  # nothing of its own was to be judged
    return next((code for code in (GATE_FAILED, PROVES_NOTHING) if code in (exit_code, *server_codes)), exit_code)


def run_calm(
    command: Sequence[str], address_variables: Mapping[str, str], routes: Mapping[str, GatewayRoute],
    open_gateway: Callable[..., AbstractContextManager[RunningGateway]], *, started: events.PromptStarted, files: Path,
    settle_s: float, deadline_s: float = DEADLINE_S,
) -> events.PromptStarted:  # fmt: skip
    """The beginning of a trial beside a run of the command without faults, in a copy of the folder: all that this did
    to the files, and its requests that changed something. Raises ValueError: it fails."""
    check_command(command)
    print("chaoslab: first without faults", file=sys.stderr, flush=True)
    with (
        TemporaryDirectory(prefix="chaoslab-") as logs,
        open_workspace(files, enters=False) as workspace,
        open_gateway(started=started, logs=Path(logs)) as running,
    ):
        environment = _make_environment(inherited(), address_variables, routes, running)
        ending = CommandEnding(until_s=system.monotonic() + deadline_s, deadline_s=deadline_s)
        _, _, error = _run_command(command, environment, ending, workspace.folder, tells=False)
        running.end(settle_s=settle_s)
        if error:
            raise ValueError(f"without faults too, {error}: there is nothing to compare with")
        history = read_history(running.book.run.name, logs=Path(logs))
        requests = [{"effect": effect.effect} for effect in list_effects(history, running.book.key)]
        changes = [{"effect": effect.effect, **effect.content} for effect in workspace.list_effects()]
    return replace(started, effects=[*requests, *changes], stated=True)


def _make_environment(
    environment: Mapping[str, str], address_variables: Mapping[str, str], routes: Mapping[str, GatewayRoute],
    running: RunningGateway,
) -> dict[str, str]:  # fmt: skip
    """The variables of a command whose requests go through the gateway."""
    return {
        **environment, **bypass_proxy(environment), **provider_variables(routes, running.url), **running.told,
        sessions.VARIABLE: running.book.run.name,
        **{name: running.url(route) for name, route in address_variables.items()},
    }  # fmt: skip


def judge_servers(name: str, gate: Gate, logs: Path) -> int:
    """Prints the verdict on what a command did at a server of MCP, behind a proxy of its own. Returns the exit code."""
    history = read_history(name, logs=logs)
    verdict = judge(history, key := history.trials[0])
    message = f"chaoslab: its MCP server: {verdict.outcome} – {verdict.why} ({logs / name})"
    print(message, file=sys.stderr, flush=True)
    return rule_on_trial(history, gate, verdict, key)


@dataclass
class CommandEnding:
    """The reason why a command has to end before it does so by itself. `why`: empty if there is none."""

    until_s: float
    deadline_s: float
    why: str = ""
    killed: str = ""
    """The call at which a fault has killed it; empty if none has."""
    child: ChildGroup | None = None

    def kill(self, place: str) -> None:
        """Kills it and its children, at once. It may be called from any thread."""
        # Set before the signal: its end may be seen at once.
        self.killed = place
        if self.child is not None:
            self.child.send(signal.SIGKILL)

    def end(self, reason: str) -> None:
        """Has the command ended, at the next look. It may be called from any thread."""
        self.why = self.why or reason

    @property
    def due(self) -> bool:
        if not self.why and system.monotonic() > self.until_s:
            self.why = f"it did not end within {self.deadline_s:g} s"
        return bool(self.why)


def _run_command(
    command: Sequence[str], environment: Mapping[str, str], ending: CommandEnding, folder: Path | None = None, *,
    tells: bool = True,
) -> tuple[str, int, str]:  # fmt: skip
    """The command's output, its exit code, and the words for its failure. `folder`: where it runs; `tells`: its output
    is passed on."""
    words = command if folder is None else find_files(command, Path.cwd())
    variables = environment if folder is None else {**environment, VARIABLE: str(folder)}
    try:
        child = ChildGroup(words, stdin=None, environment=variables, folder=folder)
    except OSError as error:
        message = f"the command {command[0]!r} cannot be run: {error.strerror}"
        # As a shell does that finds a file which it cannot run.
        print(message, file=sys.stderr, flush=True)
        return "", NOT_RUN, message
    ending.child = child
    with child, forward_signals(child.send):
        answer = _pass_output(child, ending, tells=tells)
        # close ends its children too; wait lets them go on.
        code = child.close() if ending.why else child.wait()
    if ending.why:
        # 0: the reason stands for a code, which would be that of the signal.
        return answer, 0, ending.why
    if ending.killed:
        return answer, 128 + signal.SIGKILL, f"killed at {ending.killed}"
    if code < 0:
        return answer, 128 - code, f"the command was ended by {signal.Signals(-code).name}"
    return answer, code, f"the command ended with exit code {code}" if code else ""


def _pass_output(child: ChildGroup, ending: CommandEnding, *, tells: bool) -> str:
    """The text of a command's output, which is passed on to standard output as it comes if it `tells`. It ends with the
    command, even if a child that it left behind holds the output, or when the command has to end."""
    output, poll, stream = bytearray(), select.poll(), child.stdout
    poll.register(stream, select.POLLIN)
    while True:
        # Asked before the output is looked at, so that what was written before the end is read.
        is_over = child.poll() is not None or ending.due
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
