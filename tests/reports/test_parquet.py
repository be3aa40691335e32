"""`chaoslab report --format parquet`: a file for each table, which reads back as it was."""

import sys
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.base.extras import install_line
from chaoslab.reports._columns import COLUMNS
from tests.cli_parts import Typed


def price(*, item: str) -> int:
    return len(item)


def agent(_prompt: str) -> str:
    try:
        return f"It costs {price(item='pen')}."
    except Exception:  # noqa: BLE001
        return "I could not find the price."


@pytest.fixture
def run(tmp_path: Path) -> Path:
    faults = [lab.inject("server_error", "price", chance=0.5)]
    list(lab.run_many(agent, "x", trials=4, reads=[price], faults=faults, logs=tmp_path / "logs"))
    return (tmp_path / "logs" / "latest").resolve()


def test_the_tables_read_back_as_they_were(run: Path, typed: Typed) -> None:
    import pandas as pd

    assert typed.out("report", run, "--format", "parquet").split() == [f"{run}/{name}.parquet" for name in COLUMNS]
    frames = lab.load(str(run))
    assert len(frames.trials) == 4
    for name in COLUMNS:
        pd.testing.assert_frame_equal(pd.read_parquet(run / f"{name}.parquet"), getattr(frames, name))
    assert not list(run.glob(".*.part"))


def test_without_pyarrow_a_line_says_what_to_install(run: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = typed.refused("report", run, "--format", "parquet")
    assert f"needs pyarrow, which is not installed: {install_line('parquet')}" in said


def test_a_place_that_cannot_be_written_is_one_line(run: Path, typed: Typed) -> None:
    (run.parent / "file").write_text("")
    error = typed.refused("report", run, "--format", "parquet", "--out", run.parent / "file")
    assert error.startswith(f"cannot write {run.parent / 'file'}: ")
