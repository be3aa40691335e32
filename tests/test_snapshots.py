"""Snapshots of a folder, and the changes between two."""

import os
from pathlib import Path

import pytest

from chaoslab.base import snapshots
from chaoslab.base.snapshots import Change, compare_snapshots, take_snapshot


def changes(folder: Path, before: dict[str, snapshots.Entry]) -> list[Change]:
    return compare_snapshots(before, take_snapshot(folder))


def test_what_git_and_caches_keep_is_no_change_but_that_it_is_gone_is(tmp_path: Path) -> None:
    for name in (".git/index", "__pycache__/a.pyc", "a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")
    before = take_snapshot(tmp_path)
    assert list(before) == [".git", "a.py"]
    (tmp_path / ".git/index").write_text("2", encoding="utf-8")
    (tmp_path / "__pycache__/a.pyc").unlink()
    assert changes(tmp_path, before) == []
    (tmp_path / ".git").rename(tmp_path.parent / "git")
    assert [(change.verb, change.what) for change in changes(tmp_path, before)] == [("delete", ".git")]


def test_a_diff_tells_ends_of_lines_and_a_digest_what_no_diff_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "DIFF_MAX", 40)
    (tmp_path / "end").write_bytes(b"a\nb\n")
    (tmp_path / "bytes").write_bytes(b"\0\1")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    before = take_snapshot(tmp_path)
    (tmp_path / "end").write_bytes(b"a\nb")
    (tmp_path / "bytes").write_bytes(b"\0\2")
    (tmp_path / "latin").write_text("café", encoding="utf-8")
    (tmp_path / "long").write_text("x" * 100, encoding="utf-8")
    found = {change.what: change.content for change in changes(tmp_path, before)}
    assert found["end"] == {"diff": "@@ -2 +2 @@\n-b\n+b\n\\ no end of line"}
    assert set(found["bytes"]) == set(found["latin"]) == {"sha256"}
    assert set(found["long"]) == {"diff", "sha256"}


def test_links_are_not_followed_and_modes_count(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "a").write_text("a", encoding="utf-8")
    (inside / "run.sh").write_text("a", encoding="utf-8")
    os.mkfifo(inside / "pipe")
    (inside / "link").symlink_to(outside)
    before = take_snapshot(inside)
    assert list(before) == ["link", "run.sh"]
    (outside / "a").write_text("b", encoding="utf-8")
    (inside / "run.sh").chmod(0o700)
    assert [(change.what, change.content) for change in changes(inside, before)] == [("run.sh", {"executable": True})]


def test_a_folder_of_too_many_files_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "FILES_MAX", 1)
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    with pytest.raises(ValueError, match="has more than 1 files: name a smaller folder"):
        take_snapshot(tmp_path)
