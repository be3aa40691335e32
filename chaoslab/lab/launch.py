"""Starts a run of the lab in the world that the settings name, and prints its summary and draws its charts."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chaoslab.base import extras
from chaoslab.base.commandline import (
    GATE_FAILED,
    LAB_DOWN,
    PROVES_NOTHING,
    choose_failed_write_exit_code,
    get_interrupt_exit_code,
    print_error,
)
from chaoslab.base.garbage import pause_collector
from chaoslab.base.interrupts import interrupt_outside_imports

if TYPE_CHECKING:
    from chaoslab.analysis.measures.run_report import RunReport
    from chaoslab.config.settings import Settings
    from chaoslab.lab._virtual_lab import LabSpec
    from chaoslab.record.history import History
    from chaoslab.reports.contents import Contents
    from chaoslab.reports.gate import Gate
    from chaoslab.reports.loaded import Loaded

LOGS, STATE, CHARTS = Path("logs"), Path("state/state.db"), Path("charts")
FAILING = "HALLUCINATION_PROB=0.3 SEED=1"
"""Settings with which the agent fails in some trials of the prompts that the lab comes with: a test runs them."""
FEW = 100
"""The most trials that run in one process: for these, starting more would take longer."""


class LabEnd(NamedTuple):
    """The exit code of a start of the lab, and the folder of its run; None if it was refused before there was one."""

    code: int
    folder: Path | None = None


def start_lab(words: Sequence[str], *, gate: Gate | None = None, drawn: bool = True, quiet: bool = False) -> LabEnd:
    """Runs the lab with these settings. Invalid input is reported in one line. `gate`: the requirements on the result.
    `drawn`: draw its charts too. `quiet`: no progress on standard error.

    Raises:
        extras.Incomplete: a package that this needs is not installed.
    """
    from chaoslab.config import settings

    try:
        chosen = settings.load_settings(words)
    except settings.SettingError as error:
        return LabEnd(print_error(error))
    worlds: dict[str, Callable[[Settings, Sequence[str], Gate | None], LabEnd]] = {
        "local": partial(_run_local, drawn=drawn),
        "compose": partial(_run_compose, drawn=drawn),
        "virtual": partial(_run_virtual, drawn=drawn, quiet=quiet),
    }
    return worlds[chosen.world](chosen, words, gate)


# In processes on loopback.


def _run_local(chosen: Settings, words: Sequence[str], gate: Gate | None, *, drawn: bool) -> LabEnd:
    from chaoslab.agent import model
    from chaoslab.base.clock import system
    from chaoslab.base.interrupts import Interrupts
    from chaoslab.config import settings
    from chaoslab.config.topology import WRITERS, Ports
    from chaoslab.record.runs import Run
    from chaoslab.worlds.local import LocalWorld, PortTaken, WorldError, find_free_ports, run_local_world
    from chaoslab.worlds.stopping import OutageRunner

    try:
        check_packages_installed("local")
        read_and_check_inputs(chosen)
        alone = _list_stoppable_services(chosen)
        model.check_model_access(chosen, words)
        _check_toxiproxy(chosen.toxiproxy_url)
        ports = find_free_ports(chosen.base_port, system)
        _check_state_database()
        run = Run.create(LOGS, now=chosen.now, writers=WRITERS)
    except (settings.SettingError, WorldError, OSError) as error:
        return LabEnd(print_error(error))
    if chosen.base_port is None and ports != Ports():
        print(f"some port from {Ports().base} on is taken: this lab starts at {ports.base}")

    def make_world(ports: Ports) -> LocalWorld:
        moved_settings = chosen.override({"BASE_PORT": str(ports.base)})
        return LocalWorld(
            ports, LOGS, STATE, run.folder, settings.build_child_environment(moved_settings), system, alone=alone
        )

    code = 0
    try:
        with (
            Interrupts() as interrupts,
            interrupts.raise_on_signal(),
            run_local_world(
                ports,
                make_world,
                now=chosen.now,
                toxiproxy=not chosen.toxiproxy_url,
                model=not (chosen.groq_api_key or chosen.model_url),
                movable=chosen.base_port is None,
            ) as world,
        ):
            status = f"http://127.0.0.1:{world.ports.manager_port}/status"
            print(f"run {run.name}: the lab is up, status at {status}", flush=True)
            with contextlib.ExitStack() as stack:
                stopper = None
                if alone:
                    manager = str(world.ports.manager_port)
                    stopper = OutageRunner(world, state=STATE, logs=LOGS, clock=system, manager=manager)
                    stack.callback(stopper.close)
                code = world.run_agent(("--run", run.name), stopper=stopper)
    except PortTaken as error:
        return LabEnd(print_error(error))
    except WorldError as error:
        return LabEnd(print_error(error, code=LAB_DOWN))
    except KeyboardInterrupt:
        code = get_interrupt_exit_code()
    return LabEnd(print_end_report(run.folder, code, gate=gate, drawn=drawn), run.folder)


# In containers.


def _run_compose(
    chosen: Settings,
    words: Sequence[str],  # noqa: ARG001 - compose reads .env
    gate: Gate | None,
    *,
    drawn: bool,
) -> LabEnd:
    from chaoslab.base.clock import system
    from chaoslab.config import settings
    from chaoslab.config.topology import Ports
    from chaoslab.record import runs
    from chaoslab.worlds import compose
    from chaoslab.worlds.stopping import OutageRunner

    def make_stopper(containers: compose.Containers) -> OutageRunner:
        return OutageRunner(containers, state=STATE, logs=LOGS, clock=system, manager=str(Ports().manager_port))

    try:
        check_packages_installed("compose")
        read_and_check_inputs(chosen)
        stops = make_stopper if _list_stoppable_services(chosen) else None
        if stops:
            extras.require_extras("a fault of processes with WORLD=compose", "compose")
        folder = LOGS / runs.choose_free_run_name(LOGS, clock=system)
        code = compose.run_in_containers(
            settings.build_child_environment(chosen), run=folder.name, stopper=stops, drawn=drawn
        )
    except (settings.SettingError, compose.WorldError, OSError) as error:
        return LabEnd(print_error(error))
    if gate:
        code = _apply_gate(gate, _build_report_from_logs(folder), 0 if code == PROVES_NOTHING else code)
    return LabEnd(code, folder if folder.exists() else None)


def _describe_missed_faults(gate: Gate, history: History) -> list[str]:
    """A line on each fault that had to be met and was not. Where nobody asked for a gate, a run whose dice have spared
    all its few trials is let pass."""
    from chaoslab.analysis.measures.idle import describe_run_idle_injections
    from chaoslab.analysis.verdict.exposure import compute_exposure

    exposure = compute_exposure(history)
    reason = exposure.no_proof_reason if gate.given or exposure.held else ""
    return list(describe_run_idle_injections(history)) or [reason] * bool(reason)


# In one process, on a clock that jumps.


def _run_virtual(
    chosen: Settings,
    words: Sequence[str],  # noqa: ARG001
    gate: Gate | None,
    *,
    drawn: bool,
    quiet: bool,
) -> LabEnd:
    from chaoslab.config import settings
    from chaoslab.config.topology import WRITERS
    from chaoslab.record.runs import Run

    try:
        with interrupt_outside_imports():
            check_packages_installed("virtual")
            prompts = read_and_check_inputs(chosen)
            spec = make_lab_spec(chosen, prompts)
            from chaoslab.lab._virtual_lab import check_prompts

            check_prompts(prompts, _get_prompts_path(chosen))
        run = Run.create(LOGS, now=spec.now, name=spec.name, writers=WRITERS)
    except (settings.SettingError, OSError) as error:
        return LabEnd(print_error(error))
    run.link_as_latest()
    code = print_end_report(run.folder, run_and_write_trials(spec, run.folder, quiet=quiet), gate=gate, drawn=drawn)
    return LabEnd(code, run.folder)


def make_lab_spec(chosen: Settings, prompt_list: Sequence[Any]) -> LabSpec:
    """The run as a value. Raises SettingError: something in it is real, and this world has no way out."""
    from chaoslab.agent.prompts import prompts_to_json
    from chaoslab.base.identity import hash_value
    from chaoslab.config.scenario import check_world_supports_plan, plan_from_settings

    _refuse_real_services()
    if chosen.groq_api_key or chosen.model_url:
        variable = "GROQ_API_KEY" if chosen.groq_api_key else "MODEL_URL"
        print(
            f"{variable} is not used: the virtual world has no way out, and the offline model answers", file=sys.stderr
        )
        chosen = replace(chosen, groq_api_key="", model_url="")
    _check_trial_dates_in_range(chosen, chosen.count_trials(len(prompt_list)))
    plan = plan_from_settings(chosen)
    check_world_supports_plan(chosen, plan)
    with pause_collector():
        from chaoslab.lab._virtual_lab import LabSpec  # and LangChain, for which no mistake has to wait
    prompts = prompts_to_json(prompt_list)
    name = f"v{chosen.seed}-{hash_value([plan.to_json(), chosen.to_masked_dict(), prompts])}"
    return LabSpec(name, chosen.now, chosen, plan, prompts)


def _refuse_real_services() -> None:
    """Raises SettingError if a service is real: the virtual world has no way out."""
    from chaoslab.agent import config
    from chaoslab.config.settings import SettingError

    real = config.load_config().services
    if real:
        raise SettingError(
            f"agent/config.json points {', '.join(real)} at the real thing, and the virtual world has no way out: "
            f"take {'it' if len(real) == 1 else 'them'} out of there, or use WORLD=local"
        )


def _check_trial_dates_in_range(chosen: Settings, trials: int) -> None:
    """Raises SettingError if the calendar has no room for that many trials; each begins at the end of the one before
    it."""
    from datetime import MAXYEAR, datetime, timedelta

    from chaoslab.config.settings import SettingError

    try:
        datetime.fromisoformat(chosen.now) + timedelta(seconds=chosen.deadline_s) * trials
    except OverflowError:
        raise SettingError(
            f"NOW={chosen.now}, and then {trials} trials of up to DEADLINE_S={chosen.deadline_s:g} seconds, leads "
            f"beyond the year {MAXYEAR}: "
            "choose an earlier NOW or a smaller DEADLINE_S"
        ) from None


def run_and_write_trials(spec: LabSpec, folder: Path, *, quiet: bool = False) -> int:
    """Runs all trials and writes them to the folder; returns the exit code."""
    from chaoslab.base.interrupts import Interrupts
    from chaoslab.core.fault import BrokenFault
    from chaoslab.execution.forked import make_executor
    from chaoslab.execution.pipeline import open_run_folder, run_trials
    from chaoslab.execution.spec import REAL_LIMIT_S
    from chaoslab.execution.workers import WorkerLost
    from chaoslab.record.log import LogLost
    from chaoslab.reports.progress import WorkProgress
    from chaoslab.worlds.virtual.machine.context import Unsupported

    trials = spec.settings.count_trials(len(spec.prompts))
    jobs = spec.settings.jobs or (1 if trials <= FEW else os.cpu_count() or 1)
    if spec.is_sequential and jobs > 1:
        print(
            "COST_LIMIT_USD bounds the whole run, so its trials are done one after the other: JOBS=1", file=sys.stderr
        )
        jobs = 1
    try:
        with Interrupts() as interrupts, WorkProgress(trials, quiet=quiet) as progress:
            does = make_executor(
                jobs,
                REAL_LIMIT_S,
                at_once=spec.is_sequential,
                tell=progress.print_message,
                heard=interrupts.raise_on_signal,
            )
            try:
                with open_run_folder(spec, trials, folder) as book:
                    for result in run_trials(spec, trials, executor=does, book=book):
                        progress.count_trial(result.seconds, outcome=result.outcome, faults=result.witnessed)
            except KeyboardInterrupt:
                return get_interrupt_exit_code()
            except WorkerLost as lost:
                progress.print_message(str(lost))
                return LAB_DOWN
            except (BrokenFault, Unsupported) as error:
                progress.print_message(str(error))
                return 2
    except LogLost as lost:
        print(f"the lab is down: {lost}", file=sys.stderr)
        return LAB_DOWN
    return 0


# Checks before anything is started.


def check_packages_installed(world: str) -> None:
    """Raises Incomplete if a package that a run in this world needs is missing."""
    if world != "compose":
        extras.require_extras(f"WORLD={world}", "tools", "agent", "charts", install="lab")


def read_and_check_inputs(chosen: Settings) -> list[Any]:
    """Reads all inputs of the parts, so that a mistake is found before anything starts; returns the prompts. Raises
    SettingError: an input is invalid; OSError: the lab cannot write to one of its places."""
    from chaoslab.agent import config, prompts
    from chaoslab.config.scenario import plan_from_settings

    plan_from_settings(chosen)
    # raises NotADirectoryError or IsADirectoryError if something else stands where the lab will write
    for folder in (LOGS, STATE.parent, CHARTS):
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it should be a folder: rename it", str(folder))
    if STATE.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it should be a file: delete it", str(STATE))
    prompt_list = prompts.load_prompts(_get_prompts_path(chosen))
    config.load_config()
    return prompt_list


def _list_stoppable_services(chosen: Settings) -> tuple[str, ...]:
    """The services whose processes a fault may stop. Raises SettingError: one is not the lab's own."""
    from chaoslab.agent import config
    from chaoslab.config.scenario import plan_from_settings
    from chaoslab.config.settings import SettingError

    stopped = plan_from_settings(chosen).outage_targets
    for name in config.load_config().services:
        if name in stopped:
            raise SettingError(
                f"FAULTS stops the process of {name}, and agent/config.json points it at the real thing: name the "
                "services that it may stop, as in service_down@weather:0.1"
            )
    return stopped


def _get_prompts_path(chosen: Settings) -> Path:
    from chaoslab.agent.prompts import FILE

    return Path(chosen.prompts or FILE)


def _check_state_database() -> None:
    """Opens the shared state as the manager will. Raises WorldError: it cannot be used."""
    import sqlite3

    from chaoslab.wire.control import ControlDatabase, explain_database_error
    from chaoslab.worlds.local import WorldError

    try:
        ControlDatabase.open_fresh(STATE).close()
    except sqlite3.Error as error:
        raise WorldError(explain_database_error(STATE, error)) from error


def _check_toxiproxy(url: str) -> None:
    """Raises SettingError if a Toxiproxy was named and none answers there."""
    from chaoslab.config.settings import SettingError

    if not url:
        return
    from chaoslab.wire.proxies import ToxiproxyError
    from chaoslab.wire.toxiproxy_package import ToxiproxyServer

    with ToxiproxyServer(url, read_timeout_s=5.0) as toxiproxy:
        try:
            toxiproxy.version()
        except ToxiproxyError as error:
            raise SettingError(
                f"TOXIPROXY_URL={url} is no Toxiproxy: {error}; leave it empty for the embedded one"
            ) from None


# The end of a run.


def print_end_report(
    folder: Path,
    code: int,
    *,
    program: str | None = None,
    gate: Gate | None = None,
    run: Loaded | None = None,
    drawn: bool = True,
) -> int:
    """Prints the run's summary, the gate's ruling, the paths of logs and charts, and the next command; returns the exit
    code. `run`: the run, if it was read. `drawn`: draws the charts."""
    with interrupt_outside_imports():
        return _print_end_report(folder, code, program, gate, run, drawn=drawn)


def _print_end_report(
    folder: Path, code: int, program: str | None, gate: Gate | None, run: Loaded | None, *, drawn: bool
) -> int:
    from chaoslab.reports.loaded import Loaded

    try:
        if run is None and (report_found := _build_report_from_logs(folder)) is not None:
            run = Loaded(folder, report_found)
    except OSError as error:
        return print_error(error, code=code or 2)
    if run is None:
        return _apply_gate(gate, None, code)
    from chaoslab.reports.contents import Contents
    from chaoslab.reports.formats import terminal

    report = run.measures
    contents = Contents(folder, report, str(folder), program or _get_program_name())
    print("\n" + terminal.render_short_summary(contents), flush=True)
    code = _apply_gate(gate, report, code, () if gate is None else _describe_missed_faults(gate, run.history))
    if code or (gate and gate.given):
        print()  # after the ruling
    latest = folder.resolve() == (LOGS / "latest").resolve()
    print(f"logs    {folder}/{f'  (also {LOGS}/latest)' if latest else ''}")
    unwritten = _write_report(run, folder, code)
    if failed := max(unwritten, _draw_charts(run, folder) if drawn else 0):
        return code or failed
    for step in _list_next_commands(run.history, contents, "latest" if latest else contents.shell_quoted_run):
        print(f"next    {step}")
    return code


def _list_next_commands(history: History, contents: Contents, run: str) -> Iterator[str]:
    """The commands that show most: the story of a trial that met a fault; after a run of the lab without a failure, one
    with some."""
    from chaoslab.core.events import FaultWitnessed, RunStarted

    started, is_well = history.find_first_event(RunStarted), contents.worst_row is None
    is_of_lab = started is not None and "PROMPTS" in started.settings
    if any(history.find_events(FaultWitnessed)) or not is_well or not is_of_lab:
        yield f"{contents.program} show {run}" + (
            f" --trial {contents.trials_worst_first[0]}" if contents.trials_worst_first else ""
        )
    if started is not None and is_of_lab and is_well:
        world = f" WORLD={started.world}" if started.world == "virtual" else ""
        command = "make compose" if started.world == "compose" else f"{contents.program} lab{world}"
        yield f"{command} {FAILING}: to see failures, as tools answer wrongly there and the agent believes some of it"


def _draw_charts(run: Loaded, folder: Path) -> int:
    """Draws the run's charts into its folder, and into CHARTS for the latest run; returns the exit code."""
    from chaoslab.reports import charts
    from chaoslab.reports.page import wrap_text

    try:
        figures = charts.draw_charts(run)
        pictures, empty = charts.render_pngs(figures), charts.find_blank_charts(figures)
    except extras.Incomplete as error:
        print(f"no charts: {error}", file=sys.stderr)
        return 2
    places = charts.choose_chart_folders(folder / "charts", out=CHARTS, logs=LOGS)
    paths, complaints, failed = charts.replace_charts(pictures, places, without=empty)
    first, *other_folders = dict.fromkeys(f"{path.parent}/" for path in paths) or [""]
    note = "".join(f"  (also {other_folder})" for other_folder in other_folders)
    if complaints and first == f"{CHARTS}/":  # a full disk was already reported when the run was written
        note = f"  ({complaints[0]})"
    else:
        for complaint in complaints:
            print(complaint, file=sys.stderr)
    if first:
        print(f"charts  {first}{note}")
        for line in charts.describe_blank_charts(empty):
            print("\n".join(wrap_text(line, indent=" " * 8)))
    return failed


def _write_report(run: Loaded, folder: Path, code: int) -> int:
    """Writes the run's report beside its logs; returns the exit code. That it cannot be written the run has said
    already if its own `code` is not 0."""
    from chaoslab.base.jsonable import to_one_line
    from chaoslab.reports import formats
    from chaoslab.reports.contents import NAME

    try:
        contents = replace(run.report().contents, where=to_one_line(str(folder), NAME))
        paths = formats.write_files(formats.render_files(formats.HTML, contents), folder)
    except OSError as error:
        reason = f"cannot write {folder / 'report.html'}: {error.strerror or error}"
        print(f"report  {reason}" if code else reason, file=sys.stdout if code else sys.stderr)
        return choose_failed_write_exit_code(error)
    print(f"report  {paths[0]}")
    return 0


def _build_report_from_logs(folder: Path) -> RunReport | None:
    """The report of the run in the folder; None if the run never began."""
    from chaoslab.analysis.measures.run_report import RunReport

    try:
        report = RunReport.from_folder(folder)
    except FileNotFoundError:
        return None
    return report if report.started else None


def _apply_gate(gate: Gate | None, report: RunReport | None, code: int, unmet: Sequence[str] = ()) -> int:
    """The exit code after the gate's check of the run; prints the ruling, and the damage that nobody injected, with
    which no run is green. `gate`: None if the run was made before. `unmet`: as in `gate.rule`."""
    if gate is None or (code and not (gate and gate.given)):
        return code
    from chaoslab.reports.contents.headline import describe_uninjected_damage
    from chaoslab.reports.gate import apply_gate

    if code:
        print("gate not applied: the run did not finish", file=sys.stderr, flush=True)
        return code
    hit = describe_uninjected_damage(report) if report is not None else ""
    if hit:
        print(f"not green: {hit}", file=sys.stderr, flush=True)
    if not gate:
        return PROVES_NOTHING if hit else 0
    if report is None:
        print("gate FAILED: the run has left no logs here", file=sys.stderr, flush=True)
        return GATE_FAILED
    ruling = apply_gate(
        gate, report.verdicts, untried=report.untried_injections, unmet=unmet, lost=report.lost_trial_count
    )
    if gate.given or not ruling.passed:
        print(ruling.line, file=sys.stdout if ruling.passed else sys.stderr, flush=True)
    return ruling.code or (PROVES_NOTHING if hit else 0)


def _get_program_name() -> str:
    """This command, as the user can type it again: by its name alone where that finds it."""
    from chaoslab.config.settings import read_variable

    if variable := read_variable("CHAOSLAB_PROGRAM"):
        return variable
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return "python -m chaoslab"
    path_found = shutil.which(program.name)
    return (
        program.name
        if path_found is not None and os.path.realpath(path_found) == os.path.realpath(program)
        else str(program)
    )
