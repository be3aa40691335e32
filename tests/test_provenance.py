"""A run names the versions that made it, and a difference is said by name."""

import os
import subprocess
from pathlib import Path

import pytest

from chaoslab.record import provenance
from chaoslab.record.provenance import (
    ABSENT,
    OTHERS,
    OWN,
    collect_versions,
    describe_version_changes,
    digest_uncommitted_changes,
    read_git_commit,
)
from chaoslab.record.runs import Run, read_revision


def test_it_names_the_log_python_our_own_code_and_what_it_runs_on() -> None:
    found = collect_versions()
    assert set(found) == {"log", "python", *OWN, *OTHERS}
    assert ABSENT not in found.values()
    assert collect_versions() == found


def test_a_process_reads_its_code_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = collect_versions()
    monkeypatch.setattr(os, "walk", None)
    assert collect_versions() == found


def test_a_difference_is_said_by_name() -> None:
    now = collect_versions()
    before = {**now, "agent": "0" * 12, "langchain": "1.0", "python": ABSENT}
    assert describe_version_changes(before, now) == [
        "agent has changed",
        f"langchain is {now['langchain']}, was 1.0",
        f"python is {now['python']}, was {ABSENT}",
    ]
    assert describe_version_changes(now, now) == []


def test_a_container_that_did_not_hold_a_part_says_nothing_about_it() -> None:
    assert describe_version_changes({**collect_versions(), "flask_tools": ABSENT}, collect_versions()) == []


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".git/HEAD": COMMIT}, COMMIT[:12]),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{COMMIT}\n"}, COMMIT[:12]),
        ({".git/HEAD": "ref: refs/heads/main", ".git/packed-refs": f"# pack\n{COMMIT} refs/heads/main\n"}, COMMIT[:12]),
        (
            {
                ".git": "gitdir: main/.git/worktrees/one\n",
                "main/.git/worktrees/one/HEAD": "ref: refs/heads/one",
                "main/.git/worktrees/one/commondir": "../..",
                "main/.git/refs/heads/one": COMMIT,
            },
            COMMIT[:12],
        ),
        ({".git/HEAD": "ref: refs/heads/new"}, ""),
        ({".git/HEAD": "no commit at all"}, ""),
        ({".git/config": ""}, ""),
    ],
    ids=["detached", "branch", "packed", "work tree", "no commit yet", "nonsense", "no HEAD"],
)
def test_a_run_keeps_the_commit_that_is_checked_out(
    files: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "src").mkdir()
    assert read_git_commit(tmp_path / "src") == expected
    monkeypatch.chdir(tmp_path / "src")
    made = Run.create(tmp_path / "logs", now="2026-06-01T09:00:00Z", name="v1-any")
    assert read_revision(made.folder) == expected


def forget_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask Git each time, as a process of its own does. The cache itself stays, since virtual time may not ask."""
    monkeypatch.setattr(provenance, "digest_worktree", provenance.digest_worktree.__wrapped__)


def test_what_is_changed_and_not_committed_is_told_by_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_changes(monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert digest_uncommitted_changes() == ""
    agent, helper = Path("agent.py"), Path("helper.py")
    agent.write_text("import helper\n")
    helper.write_text("A = 1\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@x.test"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *words], check=True)
    assert digest_uncommitted_changes() == ""
    found = set()
    for text in ("A = 2\n", "A = 3\n"):
        helper.write_text(text)
        found.add(digest_uncommitted_changes())
        made = Run.create(tmp_path / f"logs{text[4]}", now="2026-06-01T09:00:00Z", name="v1-any")
        assert read_revision(made.folder, "changed") in found
    assert len(found) == 2
    assert all(found)
    assert digest_uncommitted_changes(but=helper) == ""


def test_a_new_python_file_is_a_change_and_a_new_report_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_changes(monkeypatch)
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@x.test"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "first"]):
        subprocess.run([*git, *words], check=True)
    digests = []
    for name, text in (("report.html", "x"), ("new.py", "A = 1\n"), ("new.py", "A = 2\n"), (".gitignore", "new.py\n")):
        Path(name).write_text(text)
        digests.append(digest_uncommitted_changes())
    assert digests[0] == digests[3] == ""
    assert len({*digests}) == 3
