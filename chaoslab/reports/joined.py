"""Several runs as one table each, told apart by the column `run`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from chaoslab.analysis.measures.section import Section
from chaoslab.reports._types import DataFrame
from chaoslab.reports.frames import Frames


class Joined(Frames):
    """Several runs in one table each. Of runs with one name, the column `run` counts the later ones, as in "paid (2)".
    `only`: the names of the tables to keep of each run, of which nothing else is held then."""

    def __init__(self, runs: Iterable[Frames], *, only: Sequence[str] = ()) -> None:
        named: Counter[str] = Counter()
        each: list[tuple[str, Callable[[str], DataFrame]]] = []
        for run in runs:
            named[run.name] += 1
            again = f" ({named[run.name]})" if named[run.name] > 1 else ""
            kept = {table: Section.of(partial(run._table, table)) for table in only}
            each.append((again, partial(_value, kept) if only else run._table))
        vars(self).update(_each=each)

    def _table(self, name: str) -> DataFrame:
        """The tables of the runs, one below the other.

        Raises:
            Unknown: a measure raised. KeyError: `only` lacks it.
        """
        import pandas as pd

        found = [(again, of(name)) for again, of in vars(self)["_each"]]
        tables = [table.assign(run=table["run"] + again) if again else table for again, table in found]
        return pd.concat(tables, ignore_index=True)


def _value(kept: Mapping[str, Section[DataFrame]], name: str) -> DataFrame:
    return kept[name].value
