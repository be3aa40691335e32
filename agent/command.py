"""The command `chaoslab agent`: works through the prompts, in a lab whose other parts are running."""

import argparse
import asyncio
import contextlib
import sqlite3
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import httpx

from chaoslab.agent import assembly, display, prompts
from chaoslab.agent.asked import AgentInput
from chaoslab.agent.config import Config
from chaoslab.agent.session import Session, SessionProgress, TwinOf
from chaoslab.agent.tools import Toolbox, check_part_versions, discover_services
from chaoslab.base.clock import Clock, system
from chaoslab.base.commandline import INTERRUPTED, LAB_DOWN, get_interrupt_exit_code, print_error
from chaoslab.base.interrupts import Interrupts
from chaoslab.config.part_version import compute_version_digests
from chaoslab.config.scenario import plan_from_settings
from chaoslab.config.settings import SettingError, Settings, turn_tracing_off
from chaoslab.config.topology import BASE_PORT, MODEL, WRITERS, Ports
from chaoslab.core.events import RunStarted
from chaoslab.core.fault import BrokenFault
from chaoslab.core.plan import Plan
from chaoslab.model.prices import compute_cost_usd
from chaoslab.record.log import LogLost
from chaoslab.record.runs import Run
from chaoslab.seams.http.process_faults import OutageRequests, ProcessFaults
from chaoslab.seams.http.seam import HttpSeam
from chaoslab.seams.http.tags import Target
from chaoslab.wire.control import ControlDatabase, explain_database_error
from chaoslab.wire.lanes import MENDING_S, Health, LabDown, Lanes

READY_S = 20.0
# The timeout of a health check: longer than a manager needs to detect that its loop is stuck.
HEALTH_S = 8.0


class MakesTwins(Protocol):
    """`chaoslab.lab.twins.twins`, which stands above this part."""

    def __call__(
        self,
        chosen: Settings,
        config: Config,
        prompt_list: Sequence[prompts.Prompt],
        file: Path,
        tell: Callable[[str], None],
        /,
    ) -> contextlib.AbstractContextManager[TwinOf]: ...


def run_agent(options: argparse.Namespace, asked_agent: AgentInput, twins: MakesTwins) -> tuple[int, Path | None]:
    """Runs the command. Returns its exit code (0 after all prompts, 2 for invalid input, 3 if the lab failed, 130 if
    interrupted) and the folder of its run, if there is one."""
    try:
        new_run = (
            Run.open(options.logs, options.run)
            if options.run
            else Run.create(options.logs, now=asked_agent.chosen.now, folder=options.new_run, writers=WRITERS)
        )
    except (SettingError, LookupError) as error:
        return print_error(error), None
    except OSError as error:
        print(f"{error.filename or options.logs}: {error.strerror or error}", file=sys.stderr)
        return 2, None
    return _run_to_exit_code(options, asked_agent, twins, new_run), new_run.folder


def _run_to_exit_code(options: argparse.Namespace, asked_agent: AgentInput, twins: MakesTwins, new_run: Run) -> int:
    """Carries the run out; returns the exit code."""
    turn_tracing_off()
    lifeline_message = bytearray()
    try:
        with (
            # The signals come first: Ctrl-C may come while the twins are made.
            Interrupts() as interrupts,
            twins(asked_agent.chosen, asked_agent.config, asked_agent.prompts, asked_agent.file, _warn) as twin_of,
            asyncio.Runner() as runner,
        ):
            if options.lifeline:
                from chaoslab.base.lifeline import terminate_on_stdin_end

                # The supervisor holds the other end of stdin, by which it says that the lab is down.
                lifeline_message = terminate_on_stdin_end()
            return runner.run(
                _run_session(
                    asked_agent,
                    new_run,
                    twin_of,
                    options.state,
                    system,
                    lifeline_message,
                    interrupts,
                    reported=options.report,
                )
            )
    except SettingError as error:
        return print_error(error)
    except (BrokenFault, LabDown, LogLost) as error:
        print(f"the lab is down: {error}", file=sys.stderr)
        return LAB_DOWN
    except sqlite3.Error as error:
        print(f"the lab is down: {explain_database_error(options.state, error)}", file=sys.stderr)
        return LAB_DOWN
    except (asyncio.CancelledError, KeyboardInterrupt):
        if lifeline_message:
            print(f"the lab is down: {lifeline_message.decode()}", file=sys.stderr)
        return LAB_DOWN if lifeline_message else get_interrupt_exit_code()


def _warn(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _run_session(
    asked_agent: AgentInput,
    run: Run,
    twin_of: TwinOf,
    state: Path,
    clock: Clock,
    lifeline_message: bytearray,
    interrupts: Interrupts,
    *,
    reported: bool,
) -> int:
    """Sets up the session and runs it. `lifeline_message`: the supervisor's message if the lab is down. `reported`:
    a report follows."""
    chosen, config, prompt_list = asked_agent.chosen, asked_agent.config, asked_agent.prompts
    ports = Ports(chosen.base_port or BASE_PORT)
    manager = f"http://{config.manager_host}:{ports.manager_port}"
    task = asyncio.current_task()
    assert task is not None
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(interrupts.cancel_on_signal(task))
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it speaks HTTP alone; to read certificates takes 50 ms
        plain = await stack.enter_async_context(httpx.AsyncClient(timeout=5, trust_env=False, verify=nobody))
        services = await discover_services(plain, config, ports)
        assembly.check_prompts(prompt_list, asked_agent.file, services.values())
        targets = assembly.make_targets(services, config, ports, chosen)
        await check_part_versions(plain, targets, manager, compute_version_digests(chosen))
        plan = plan_from_settings(chosen)
        try:
            control = stack.enter_context(contextlib.closing(ControlDatabase(state, manager=str(ports.manager_port))))
            secrets = [chosen.groq_api_key, *(real.secret for real in config.services.values())]
            info, agent_log = (
                stack.enter_context(run.open_log(name, clock=clock, secrets=secrets)) for name in ("info", "agent")
            )
            # Not before its logs are open: `latest` names a run that began, not one whose parts never came up.
            run.link_as_latest()
        except sqlite3.Error as error:
            raise SettingError(explain_database_error(state, error)) from error
        except OSError as error:
            raise SettingError(
                f"{error.filename or run.folder} cannot be written: {error.strerror or error}"
            ) from error
        await _open_lanes(run, control, plan.to_json(), targets, clock, lambda: _fetch_health(plain, manager))
        if reported:  # now, since `docker compose up` shows nothing of what its parts say after Ctrl-C
            print(f"run {run.name}: its report will be {run.folder}/report.html, also after Ctrl-C", flush=True)
        lanes = Lanes(state, run.name, clock=clock, healthy=lambda: _fetch_health(plain, manager), poll_s=config.poll_s)
        stack.callback(lanes.close)
        progress = SessionProgress(chosen.count_trials(len(prompt_list)))
        processes = None
        if plan.outage_targets:
            requests = stack.enter_context(contextlib.closing(OutageRequests(state, run.name, clock=clock)))
            processes = ProcessFaults(requests, clock)
        seam = HttpSeam(
            plan=plan, targets=targets, lanes=lanes, log=info, clock=clock, price=compute_cost_usd, processes=processes
        )

        def change_plan(plan: Plan) -> None:
            control.set_plan(run.name, plan.to_json())
            seam.change_plan(plan)

        # No timeout of the client's own: each target has one, which the seam keeps.
        client = await stack.enter_async_context(httpx.AsyncClient(transport=seam, timeout=None))
        toolbox = Toolbox(client, targets, services, config, chosen, info, clock)
        session = Session(
            chosen,
            config,
            run,
            seam,
            toolbox,
            assembly.build_agent(chosen, targets[MODEL].url, client, toolbox),
            info,
            agent_log,
            clock,
            progress,
            change_plan=change_plan,
        )
        run_display = display.choose_display(run.folder)
        started = assembly.make_run_start_event(chosen, plan, prompt_list, progress.prompts, run.now)
        return await _run_with_display(
            session, started, prompt_list, twin_of, run_display, config, control, run, lifeline_message
        )


async def _run_with_display(
    session: Session,
    started: RunStarted,
    prompt_list: list[prompts.Prompt],
    twin_of: TwinOf,
    run_display: display.PlainDisplay | display.LiveDisplay,
    config: Config,
    control: ControlDatabase,
    run: Run,
    lifeline_message: bytearray,
) -> int:
    """Runs the session with its display. The end of a begun run is logged before anything that may be slow or fail,
    since stopping a container ends in a kill."""
    screen = asyncio.ensure_future(run_display.show_progress(config.progress_s))
    reason, code = "broken", 0
    session.info.write(started)
    try:
        await session.run(prompt_list, twin_of)
        await _wait_for_pending_lanes(control, run.name, session.clock)
        reason = "done"
    except asyncio.CancelledError:
        # A lab that is down cancels this task as Ctrl-C does; its message tells the two apart.
        if lifeline_message:
            reason = "lab_down"
            raise LabDown(lifeline_message.decode()) from None
        reason, code = "interrupted", INTERRUPTED
    except (LabDown, LogLost, sqlite3.Error):
        reason = "lab_down"
        raise
    finally:
        try:
            session.log_run_end(reason)
        finally:
            with contextlib.suppress(sqlite3.Error):  # the error was reported already
                control.end_run(run.name)
            screen.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await screen
    return code


async def _wait_for_pending_lanes(control: ControlDatabase, run: str, clock: Clock) -> None:
    """Waits until the manager has logged the result of the last lane. Raises LabDown: it could not, or there is no
    manager."""
    began_s = clock.monotonic()
    while control.list_pending_calls([run]):
        if clock.monotonic() - began_s > MENDING_S:
            raise LabDown("the proxy manager has not said what became of the last lane")
        await clock.sleep_async(0.005)
    state, error = control.get_run_state(run)
    if state != "ready":
        raise LabDown(error or "the manager has forgotten the run")


async def _open_lanes(
    run: Run,
    control: ControlDatabase,
    plan: dict[str, Any],
    targets: dict[str, Target],
    clock: Clock,
    healthy: Callable[[], Awaitable[Health]],
) -> None:
    """Asks the manager for the run's lanes and waits for them. Raises LabDown: there is no manager, or it cannot make
    them."""
    began_s = clock.monotonic()
    while (health := await healthy()).trouble or health.recovering:
        if clock.monotonic() - began_s > READY_S:
            raise LabDown(health.trouble or "Toxiproxy does not come back")
        await clock.sleep_async(0.1)
    control.request_run_setup(
        run.name, plan=plan, targets={name: assembly.parse_host_port(t.url) for name, t in targets.items()}
    )
    try:
        while (state_and_reason := control.get_run_state(run.name))[0] != "ready":
            if state_and_reason[0] in ("failed", "missing"):
                raise LabDown(state_and_reason[1] or "the manager has forgotten the run")
            if clock.monotonic() - began_s > READY_S:
                raise LabDown((await healthy()).trouble or "the proxy manager does not make the run's lanes")
            await clock.sleep_async(0.005)
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # an abandoned request would get lanes without an agent
            control.end_run(run.name)
        raise


async def _fetch_health(plain: httpx.AsyncClient, manager: str) -> Health:
    """The lab's health by the manager; a missing manager is a trouble too."""
    try:
        report = (await plain.get(f"{manager}/health", timeout=HEALTH_S)).json()
        return Health(str(report["trouble"]), int(report["epoch"]), bool(report["recovering"]))
    except (httpx.HTTPError, ValueError, KeyError) as error:
        return Health(f"no proxy manager answers at {manager} ({error or type(error).__name__})")
