"""The folder of runs, the reports beside their logs, the cluster and the cost: of the commands that run scenarios."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import parse_nonempty, path, print_json

if TYPE_CHECKING:
    from chaoslab.execution.estimate import CostEstimate


def add_logs(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Adds `--logs` and `--no-logs`. `help_text`: the help of the first."""
    parser.add_argument("--logs", type=path, default=Path("logs"), help=f"{help_text} (default: %(default)s)")
    parser.add_argument("--no-logs", dest="logs", action="store_const", const=None, help="write no runs")


def add_keep(parser: argparse.ArgumentParser) -> None:
    """Adds `--keep`."""
    parser.add_argument(
        "--keep", choices=("all", "failed"), default="all",
        help="failed: of trials that ended well only beginning, effects, answer and counts (default: %(default)s)",
    )  # fmt: skip


def log_form_of(options: argparse.Namespace) -> dict[str, Any]:
    """The form of the logs, if any are written."""
    return {} if options.logs is None else {"keep": options.keep}


def make_logs_folder(logs: Path | None) -> None:
    """Makes the folder if there is none. Git leaves a folder alone that was made here, as nobody commits its runs.
    Raises OSError: it cannot be made."""
    if logs is None or logs.exists():
        return
    logs.mkdir(parents=True)
    (logs / ".gitignore").write_text("*\n")


def print_report(folder: Path | None, *, quiet: bool = False, failed: bool = False) -> None:
    """Writes the HTML of a run into its folder, and says where, or why there is none. `quiet`: only writes it.
    `failed`: says what to change first, too, if the run shows that."""
    from chaoslab.reports import formats
    from chaoslab.reports.page import wrap

    if folder is None:
        return
    try:
        file, contents = formats.write_html_beside(folder)
        remedies = [advice.do for advice in contents.advice if failed and not advice.of_run]
        remedy_lines = wrap(f"change first: {remedies[0]}") if remedies else []
        message = "\n".join([*remedy_lines, f"report {file}"])
    except OSError as error:
        message, quiet = f"report none: {error}", False
    if not quiet:
        print(message, file=sys.stderr, flush=True)


LEAST = 2
"""One process would be this one."""


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        type=parse_nonempty,
        metavar="ADDRESS",
        help="local, or a Dask scheduler's address: its workers do it",
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

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    module_folders = list(dict.fromkeys(folder for folder in folders if folder is not None))
    try:
        workers = options.jobs if options.jobs > 1 else None
        with cluster(options.cluster, workers=workers, folders=module_folders, tell=tell) as width:
            options.jobs = max(LEAST, width)
            yield
    except (NoCluster, Incomplete) as error:
        raise ScenarioError(str(error)) from None


def print_estimates(estimates: Iterable[CostEstimate], options: argparse.Namespace) -> int:
    """Prints each estimate as it is made, and the sum of several; returns the exit code."""
    from chaoslab.execution.estimate import sum_estimates

    printed: list[CostEstimate] = []
    for estimate in estimates:
        printed.append(estimate)
        if not options.json:
            print("\n".join(estimate.lines()), flush=True)
    if options.json:
        print_json(estimates=[estimate.plain() for estimate in printed], sum=sum_estimates(printed).plain())
    elif len(printed) > 1:
        print("\n".join(sum_estimates(printed).lines()))
    return 0
