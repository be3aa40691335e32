"""The runs that `chaoslab test` and `chaoslab stress` write: the folder, and a report beside each run's logs."""

import argparse
import sys
from pathlib import Path
from typing import Any

from chaoslab.base.commandline import path


def add_logs(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds `--logs` and `--no-logs`. `what`: the help of the first."""
    parser.add_argument("--logs", type=path, default=Path("logs"), help=f"{what} (default: %(default)s)")
    parser.add_argument("--no-logs", dest="logs", action="store_const", const=None, help="write no runs")


def add_form(parser: argparse.ArgumentParser) -> None:
    """Adds `--log-as` and `--keep`."""
    parser.add_argument(
        "--log-as", choices=("lines", "packs", "tables"), default="lines",
        help="text, compressed packs of some thousand trials, or packs with Parquet tables (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--keep", choices=("all", "failed"), default="all",
        help="failed: of trials that ended well only beginning, effects, answer and counts (default: %(default)s)",
    )  # fmt: skip


def form_of(options: argparse.Namespace) -> dict[str, Any]:
    """The form of the logs, if any are written."""
    return {} if options.logs is None else {"log_as": options.log_as, "keep": options.keep}


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
    from chaoslab.base.extras import Incomplete
    from chaoslab.reports import formats
    from chaoslab.reports.page import wrapped

    if folder is None:
        return
    try:
        file, contents = formats.html_beside(folder)
        remedies = [one.do for one in contents.advice if failed and not one.of_run]
        first = wrapped(f"change first: {remedies[0]}") if remedies else []
        said = "\n".join([*first, f"report {file}"])
    except (Incomplete, OSError) as error:
        said, quiet = f"report none: {error}", quiet and isinstance(error, Incomplete)
    if not quiet:
        print(said, file=sys.stderr, flush=True)
