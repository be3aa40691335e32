"""Files that the lab writes: as a whole, where they may be written, and with errors that name them."""

import errno
import os
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.base.files import replace_file
from chaoslab.record.runs import Run
from chaoslab.reports import charts


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with replace_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert (path.read_text(), os.listdir(tmp_path)) == ("new", ["a.json"])


def test_an_error_names_the_file_and_not_the_one_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "a.json"
    with pytest.raises(FileNotFoundError) as error, replace_file(path) as part:
        part.write_text("new")
    assert (str(error.value.filename), error.value.filename2) == (str(path), None)
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError, match="folder") as refused, replace_file(path) as part:
        part.write_text("new")
    assert (str(refused.value.filename), os.listdir(tmp_path)) == (str(path), ["folder"])
    assert str(refused.value).endswith(f"{str(path)!r}")


def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (link := tmp_path / "link").symlink_to(os.devnull)
    for path, kind in ((pipe, "a named pipe"), (link, "a device")):
        with (
            pytest.raises(OSError, match=f"it is {kind}, and only regular files are replaced") as error,
            replace_file(path),
        ):
            pass
        assert error.value.filename == str(path)
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_an_error_of_another_file_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error, replace_file(tmp_path / "a"):
        (tmp_path / "b").read_text()
    assert error.value.filename == str(tmp_path / "b")


def test_a_picture_that_cannot_be_written_leaves_all_others_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"old")
    (tmp_path / "b.png").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        charts.write_charts({"a.png": b"new", "b.png": b"new"}, tmp_path)
    assert error.value.filename == str(tmp_path / "b.png")
    assert ((tmp_path / "a.png").read_bytes(), sorted(os.listdir(tmp_path))) == (b"old", ["a.png", "b.png"])


def test_no_agent_begins_where_its_logs_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="it should be a folder: rename it"):
        lab.run(began.append, "go", logs=tmp_path / "file", twin=True)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path or not mode & os.W_OK)
    with pytest.raises(PermissionError) as error:
        lab.run(began.append, "go", logs=tmp_path, twin=True)
    assert (error.value.errno, error.value.strerror, error.value.filename) == (
        errno.EACCES,
        "nothing can be written into it: make it writable",
        str(tmp_path),
    )
    assert (began, os.listdir(tmp_path)) == ([], ["file"])


def test_the_folder_of_runs_is_made(tmp_path: Path) -> None:
    Run.prepare_logs_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
