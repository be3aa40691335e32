"""Tools and manager refuse places of logs and state that cannot be used before they say that they are ready."""

import threading
from pathlib import Path

import pytest

from chaoslab.wire import state_place
from chaoslab.wire.control import ControlDatabase
from tests.cli_parts import Typed

CASES = [
    (["tools", "--logs", "file"], "file: it should be a folder: rename it"),
    (["tools", "--logs", "file/logs"], "file/logs: Not a directory"),
    (["manager", "--logs", "file"], "file: it should be a folder: rename it"),
    (["manager", "--state", "folder"], "folder: this is a folder; name a file in it"),
    (["manager", "--state", "file/state.db"], "file: it should be a folder: rename it"),
    (["manager", "--state", "file"], "file: this is no state of the lab: name another file"),
]


@pytest.mark.parametrize(("arguments", "said"), CASES, ids=[" ".join(arguments) for arguments, _ in CASES])
def test_a_place_that_cannot_be_used_is_one_line(
    arguments: list[str], said: str, here: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed
) -> None:
    def wait(*_: object) -> bool:
        raise AssertionError("it started")

    monkeypatch.setattr(threading.Event, "wait", wait)
    (here / "folder").mkdir()
    (here / "file").write_text("mine")
    assert typed(*arguments) == (2, "", f"{said}\n")
    assert (here / "file").read_text() == "mine"


def test_a_state_of_the_lab_may_have_any_name_and_a_broken_one_its_own(tmp_path: Path) -> None:
    ControlDatabase(tmp_path / "new" / "mine").close()
    state_place.check_state_file(tmp_path / "new" / "mine")
    (tmp_path / "empty").touch()
    state_place.check_state_file(tmp_path / "empty")
    (tmp_path / "state.db").write_text("something wrote over it")
    state_place.check_state_file(tmp_path / "state.db")
