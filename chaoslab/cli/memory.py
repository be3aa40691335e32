"""`chaoslab memory`: what past runs taught, in one file beside the logs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base import former
from chaoslab.base.commandline import (
    add_json_option,
    make_integer_type,
    parse_nonempty,
    print_error,
    print_json,
)
from chaoslab.cli._runs_written import add_logs_option

if TYPE_CHECKING:
    from chaoslab.memory.store import Memory

HELP = "keep what past runs taught in logs/memory.db: experiments, safe doses, relations, lessons"
EXAMPLE = "chaoslab memory add logs/*"
DOES = ("show", "add", "note", "predict", "forget")
SHOWN = 40
"""The most lines that are shown."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "does",
        metavar="ACTION",
        nargs="?",
        type=_parse_action,
        choices=DOES,
        default="show",
        help="show (the default), add, note, predict or forget",
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="*",
        type=parse_nonempty,
        help="add: folders of runs; note: a text; predict: a run's folder or a scenario's file; forget: a run; show: a "
        "table (lessons, components, ranges, relations, experiments or runs)",
    )
    add_logs_option(parser, "the folder of runs and of the memory")
    parser.add_argument("--subject", type=parse_nonempty, help="forget, show, note: this agent")
    parser.add_argument("--target", type=parse_nonempty, help="forget, show, note: this target")
    parser.add_argument("--fault", type=parse_nonempty, help="note: the fault that it met")
    for name, meaning in (
        ("tried", "trials met it alone (1)"),
        ("bad", "of them ended badly (0)"),
        ("harm", "did harm (0)"),
    ):
        parser.add_argument(f"--{name}", type=make_integer_type(0, 10**6), metavar="N", help=f"note: so many {meaning}")
    parser.add_argument("--again", action="store_true", help="add: also forgotten runs")
    add_json_option(parser)


def _parse_action(text: str) -> str:
    if text in former.MEMORY_ACTIONS:
        raise argparse.ArgumentTypeError(former.MEMORY_ACTIONS[text])
    return text


def run(options: argparse.Namespace) -> int:
    from chaoslab.cli._ended import run_for_exit_code

    return run_for_exit_code(lambda: _run_action(options), LookupError, ValueError)


def _run_action(options: argparse.Namespace) -> int:
    from chaoslab.memory.store import FILE, Memory, add_note, memory

    if options.does == "add":
        store = Memory(options.logs / FILE, make=True)
        if store.laid_aside:
            print(f"{store.path} is made anew; the old one: {store.laid_aside}", file=sys.stderr)
        added = store.add(_find_run_folders(options.what or [str(options.logs)]), again=options.again)
        for skip_reason in added.skipped:
            print(f"skipped: {skip_reason}", file=sys.stderr)
        if options.json:
            print_json(new=added.new, changed=added.changed, known=added.known, skipped=[*added.skipped])
        else:
            print(f"{added}: {store.path}")
        return 0
    if options.does == "note":
        evidence = {name: getattr(options, name) for name in ("target", "fault", "tried", "bad", "harm")}
        evidence = {name: value for name, value in evidence.items() if value is not None}
        add_note(options.logs, options.subject or "", " ".join(options.what), **evidence)
        print(f"noted: {options.logs / FILE}")
        return 0
    store = memory(options.logs)
    return {
        "show": _print_table,
        "predict": _print_prediction,
        "forget": _forget_runs,
    }[options.does](store, options)


def _find_run_folders(names: Sequence[str]) -> list[Path]:
    """The folders of runs that are meant: those given, and those in a folder of runs."""
    from chaoslab.record import runs
    from chaoslab.record.lines import list_log_files

    folders: list[Path] = []
    for named_path in map(Path, names):
        if named_path.is_symlink() and named_path.name == "latest":
            continue
        if not named_path.exists():
            raise LookupError(f"{named_path}: there is no such folder: name the folders of runs, as in logs/*")
        if named_path.is_dir():
            folders += (
                [named_path]
                if list_log_files(named_path) or (named_path / "run.json").is_file()
                # Oldest first: evidence is kept in the order of the runs.
                else reversed(runs.list_runs_newest_first(named_path))
            )
    return folders


def _print_table(store: Memory, options: argparse.Namespace) -> int:
    (table, *extra_tables) = options.what or ["lessons"]
    if extra_tables:
        return print_error(ValueError(f"show takes one table, and these are {len(options.what)}"))
    columns, rows = store.read_table(table)
    for name in ("subject", "target"):
        filter_value = getattr(options, name)
        if filter_value and name in columns:
            rows = [row for row in rows if row[columns.index(name)] == filter_value]
    if options.json:
        print_json(table=table, rows=[dict(zip(columns, row, strict=True)) for row in rows])
        return 0
    print(store)
    if table == "lessons":
        lines = [f"{subject}: {lesson}" for subject, _, lesson in rows[:SHOWN]]
    else:
        lines = [" | ".join(columns), *(" | ".join(map(_format_cell, row)) for row in rows[:SHOWN])]
    print("\n".join(lines))
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} more: --json has all")
    return 0


def _format_cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _print_prediction(store: Memory, options: argparse.Namespace) -> int:
    from chaoslab.memory.planning import predict_run, predict_scenario
    from chaoslab.memory.plans import prediction_to_dict
    from chaoslab.reports.places import find_run_folder
    from chaoslab.scenarios.load import load_file_scenarios
    from chaoslab.scenarios.located import SUFFIXES

    if len(options.what) != 1:
        return print_error(ValueError("predict takes one run's folder, or one scenario's file"))
    (subject,) = options.what
    if Path(subject).suffix in SUFFIXES:
        predictions = [
            (scenario.name, predict_scenario(store, scenario)) for scenario in load_file_scenarios(Path(subject))
        ]
        data = [{"name": name, **prediction_to_dict(prediction)} for name, prediction in predictions]
        lines = [f"{name}: {prediction}" for name, prediction in predictions]
    else:
        run_prediction = predict_run(store, find_run_folder(subject, logs=options.logs))
        data, lines = [{"name": subject, **run_prediction.to_dict()}], [f"{subject}: {run_prediction}"]
    if options.json:
        print_json(predictions=data)
    else:
        print("\n".join(lines))
    return 0


def _forget_runs(store: Memory, options: argparse.Namespace) -> int:
    criteria = {
        "run": options.what[0] if options.what else "",
        "subject": options.subject or "",
        "target": options.target or "",
    }
    if sum(map(bool, criteria.values())) != 1 or len(options.what) > 1:
        return print_error(ValueError("forget takes one of a run, --subject and --target"))
    forgotten_count = store.forget(**criteria)
    print(f"forgotten: {forgotten_count} {'experiments' if options.target else 'runs'}")
    return 0
