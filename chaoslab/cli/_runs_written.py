"""The folder of runs, the reports beside their logs, the cluster and the cost: of the commands that run scenarios."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.commandline import filled, path, print_json

if TYPE_CHECKING:
    from chaoslab.execution.estimate import CostEstimate


def add_logs(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds `--logs` and `--no-logs`. `what`: the help of the first."""
    parser.add_argument("--logs", type=path, default=Path("logs"), help=f"{what} (default: %(default)s)")
    parser.add_argument("--no-logs", dest="logs", action="store_const", const=None, help="write no runs")


def add_form(parser: argparse.ArgumentParser) -> None:
    """Adds `--keep`."""
    parser.add_argument(
        "--keep", choices=("all", "failed"), default="all",
        help="failed: of trials that ended well only beginning, effects, answer and counts (default: %(default)s)",
    )  # fmt: skip


def form_of(options: argparse.Namespace) -> dict[str, Any]:
    """The form of the logs, if any are written."""
    return {} if options.logs is None else {"keep": options.keep}


def start_logs(logs: Path | None) -> None:
    """Makes the folder if there is none. Git leaves a folder alone that was made here, as nobody commits its runs.
    Raises OSError: it cannot be made."""
    if logs is None or logs.exists():
        return
    logs.mkdir(parents=True)
    (logs / ".gitignore").write_text("*\n")


def say_report(folder: Path | None, *, quiet: bool = False, failed: bool = False) -> None:
    """Writes the HTML of a run into its folder, and says where, or why there is none. `quiet`: only writes it.
    `failed`: says what to change first, too, if the run shows that."""
    from chaoslab.reports import formats
    from chaoslab.reports.page import wrapped

    if folder is None:
        return
    try:
        file, contents = formats.html_beside(folder)
        remedies = [one.do for one in contents.advice if failed and not one.of_run]
        first = wrapped(f"change first: {remedies[0]}") if remedies else []
        said = "\n".join([*first, f"report {file}"])
    except OSError as error:
        said, quiet = f"report none: {error}", False
    if not quiet:
        print(said, file=sys.stderr, flush=True)


LEAST = 2
"""One process would be this one."""


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster", type=filled, metavar="ADDRESS", help="local, or a Dask scheduler's address: its workers do it"
    )


@contextmanager
def clustered(options: argparse.Namespace, folders: Iterable[Path | None]) -> Iterator[None]:
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

    own = list(dict.fromkeys(each for each in folders if each is not None))
    try:
        workers = options.jobs if options.jobs > 1 else None
        with cluster(options.cluster, workers=workers, folders=own, tell=tell) as width:
            options.jobs = max(LEAST, width)
            yield
    except (NoCluster, Incomplete) as error:
        raise ScenarioError(str(error)) from None


def say_estimates(estimates: Iterable[CostEstimate], options: argparse.Namespace) -> int:
    """Prints each estimate as it is made, and the sum of several; returns the exit code."""
    from chaoslab.execution.estimate import summed

    found: list[CostEstimate] = []
    for each in estimates:
        found.append(each)
        if not options.json:
            print("\n".join(each.lines()), flush=True)
    if options.json:
        print_json(estimates=[each.plain() for each in found], sum=summed(found).plain())
    elif len(found) > 1:
        print("\n".join(summed(found).lines()))
    return 0
