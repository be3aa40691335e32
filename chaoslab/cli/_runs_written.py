"""The folder of runs, the reports beside their logs, and the cluster: of the commands that make runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chaoslab.base.commandline import parse_nonempty, parse_path


def add_logs_option(
    parser: argparse.ArgumentParser,
    help_text: str = "the folder of runs",
    *,
    default: str = "logs",
    optional: bool = False,
) -> None:
    """Adds `--logs`. `optional`: and `--no-logs`, of a command that makes runs whose logs nothing else needs."""
    parser.add_argument("--logs", type=parse_path, default=Path(default), help=f"{help_text} (default: %(default)s)")
    if optional:
        parser.add_argument("--no-logs", dest="logs", action="store_const", const=None, help="keep no logs")


@contextmanager
def open_logs_or_temp_folder(logs: Path | None) -> Iterator[Path]:
    """A context with the folder for a run whose verdict is read from its log: a temporary one with `--no-logs`."""
    if logs is not None:
        yield logs
        return
    with TemporaryDirectory(prefix="chaoslab-") as folder:
        yield Path(folder)


def add_keep_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--keep`."""
    parser.add_argument(
        "--keep",
        choices=("all", "failed"),
        default="all",
        help="failed: of passed trials log only beginning, effects, answer and counts (default: %(default)s)",
    )


def get_log_options(options: argparse.Namespace) -> dict[str, Any]:
    """The form of the logs, if any are written."""
    return {} if options.logs is None else {"keep": options.keep}


def make_logs_folder(logs: Path | None) -> None:
    """Makes the folder if there is none. Git leaves a folder alone that was made here, as nobody commits its runs.
    Raises OSError: it cannot be made."""
    if logs is None or logs.exists():
        return
    logs.mkdir(parents=True)
    (logs / ".gitignore").write_text("*\n")


def write_html_report(folder: Path | None, *, quiet: bool = False, failed: bool = False) -> None:
    """Writes the HTML of a run into its folder, and says where, or why there is none. `quiet`: only writes it.
    `failed`: says what to change first, too, if the run shows that."""
    from chaoslab.reports import formats
    from chaoslab.reports.page import wrap_text

    if folder is None:
        return
    try:
        file, contents = formats.write_html_report(folder)
        remedies = [advice.do for advice in contents.advice if failed and not advice.of_run]
        remedy_lines = wrap_text(f"change first: {remedies[0]}") if remedies else []
        message = "\n".join([*remedy_lines, f"report {file}"])
    except OSError as error:
        message, quiet = f"no report: {error.filename}: {error.strerror}", False
    if not quiet:
        print(message, file=sys.stderr, flush=True)


LEAST = 2
"""One process would be this one."""


def add_cluster_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        type=parse_nonempty,
        metavar="ADDRESS",
        help="local, or a Dask scheduler's address: its workers run the trials",
    )


@contextmanager
def use_cluster(options: argparse.Namespace, folders: Iterable[Path | None]) -> Iterator[None]:
    """A context in which the trials go to the cluster, if one is named. `folders`: those of the agents' modules. Raises
    ScenarioError: the cluster cannot be used."""
    if options.cluster is None:
        yield
        return
    from chaoslab.base.extras import Incomplete
    from chaoslab.execution.cluster import NoCluster, cluster
    from chaoslab.scenarios.located import ScenarioError

    def print_to_stderr(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    module_folders = list(dict.fromkeys(folder for folder in folders if folder is not None))
    try:
        workers = options.jobs if options.jobs > 1 else None
        with cluster(options.cluster, workers=workers, folders=module_folders, tell=print_to_stderr) as width:
            options.jobs = max(LEAST, width)
            yield
    except (NoCluster, Incomplete) as error:
        raise ScenarioError(str(error)) from None
