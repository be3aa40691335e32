"""The option `--cluster` of the commands that run trials in several processes."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaoslab.base.commandline import filled

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
