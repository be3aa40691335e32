"""A run's tables as Parquet files, one a table, with the types of their columns."""

from pathlib import Path

from chaoslab.base import extras
from chaoslab.base.files import replacing
from chaoslab.reports._columns import COLUMNS
from chaoslab.reports.frames import Frames


def write(run: Frames, folder: Path) -> list[Path]:
    """Writes `trials.parquet` and so on into the folder; each file is replaced as a whole. Raises Incomplete: pandas or
    pyarrow is not installed. OSError: a file could not be written."""
    extras.check("a Parquet file", "parquet")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in COLUMNS:
        path = folder / f"{name}.parquet"
        with replacing(path) as part:
            getattr(run, name).to_parquet(part, engine="pyarrow", index=False)
        paths.append(path)
    return paths
