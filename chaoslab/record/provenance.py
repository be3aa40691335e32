"""The provenance of a run: digests of the lab's own code, and versions of the packages it runs on. Two runs can only be
equal if these are."""

import hashlib
import os
import platform
import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from chaoslab.core.events import VERSION

PACKAGE = __name__.partition(".")[0]
OWN = ("agent", PACKAGE, "flask_tools")
PARTS = ("agent", "flask_tools", "proxy_manager")
"""Folders of the package that are not in every container."""
ABSENT = "not there"
OTHERS = ("groq", "httpx", "langchain", "langchain-core", "langchain-groq", "langgraph")


def collect_versions() -> dict[str, str]:
    """By name: the log's version, Python's, a digest of each of the lab's packages, and the versions of other
    packages."""
    digests = {"log": str(VERSION), "python": ".".join(platform.python_version_tuple()[:2])}
    digests |= {name: digest_package(name) for name in OWN}
    return digests | {name: _find_version(name) for name in OTHERS}


def read_git_commit(folder: Path | None = None) -> str:
    """The commit of the Git work tree around the folder (by default the current one), in 12 hex digits; empty if there
    is none or it cannot be read. What is changed and not committed is not told."""
    start_folder = (folder or Path()).absolute()
    git = next(
        (git_folder / ".git" for git_folder in (start_folder, *start_folder.parents) if (git_folder / ".git").exists()),
        None,
    )
    try:
        commit = _read_head_commit(git) if git is not None else ""
    except (OSError, ValueError):
        return ""
    return commit[:12] if re.fullmatch(r"[0-9a-f]{40,64}", commit) else ""


def digest_uncommitted_changes(*, but: Path | None = None) -> str:
    """A digest of what is changed in the Git work tree around the current folder and not committed, in 12 hex digits;
    empty if nothing is, or Git cannot tell. Of new files that Git does not know, Python's count. `but`: a file whose
    changes do not count."""
    root = next((place for place in (Path.cwd(), *Path.cwd().parents) if (place / ".git").exists()), None)
    return "" if root is None else digest_worktree(root, but)


@cache  # once a process, which runs the code that it has loaded; and a work tree may be large
def digest_worktree(root: Path, but: Path | None) -> str:
    """The same for the work tree with this root."""
    more = [] if but is None else ["--", ".", f":(exclude){os.path.relpath(but.absolute(), root)}"]
    # Both places are named, since a hook of Git has others of its own in the environment.
    git = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}"]

    def run_git(*words: str) -> bytes:
        command = [*git, *words, *more]
        return subprocess.run(command, cwd=root, check=True, stdin=subprocess.DEVNULL, capture_output=True).stdout

    try:
        # --no-ext-diff: a user's own program for differences prints what it likes.
        patch = run_git("diff", "--no-ext-diff", "--binary", "HEAD")
        # Python's alone: an agent may lie in a new file, while logs and reports, which each run adds to, are no change.
        for name in run_git("ls-files", "-z", "--others", "--exclude-standard").split(b"\0"):
            if name.endswith(b".py"):
                patch += name + b"\0" + (root / os.fsdecode(name)).read_bytes()
    except (OSError, subprocess.CalledProcessError):
        return ""
    return hashlib.blake2b(patch, digest_size=6).hexdigest() if patch else ""


def _read_head_commit(git: Path) -> str:
    """The text that a repository's HEAD leads to; in a linked work tree `.git` is a file that names the place."""
    if git.is_file():
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    kind, _, name = (git / "HEAD").read_text().strip().partition("ref: ")
    if not name:
        return kind
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    # Git's own order: a ref in a file of its own is newer than a packed one.
    for git_folder in (git / name, common / name):
        if git_folder.is_file():
            return git_folder.read_text().strip()
    packed = (line.split() for line in (common / "packed-refs").read_text().splitlines())
    return next((head_words[0] for head_words in packed if head_words[1:] == [name]), "")


def describe_version_changes(recorded: dict[str, str], now: dict[str, str]) -> list[str]:
    """The differences in words: "agent has changed", "langchain is 1.4.8, was 1.4.7"."""
    lines = []
    for name in sorted(recorded.keys() | now.keys()):
        was, is_now = recorded.get(name, ABSENT), now.get(name, ABSENT)
        if was != is_now and not (name in OWN and was == ABSENT):  # each container holds only what it runs
            lines.append(f"{name} has changed" if name in OWN else f"{name} is {is_now}, was {was}")
    return lines


@cache  # once a process, as above: it reads 700 files, and a run from Python may be one of thousands
def digest_package(name: str) -> str:
    """A digest of all code and data in a folder of the package. The digest of the package itself leaves out `PARTS`."""
    # A part lies in the package where that is installed, and beside it in a checkout (setup.py).
    spec = find_spec(name if name == PACKAGE else f"{PACKAGE}.{name}")
    if spec is None or not spec.submodule_search_locations:
        return ABSENT
    hasher, places = hashlib.blake2b(digest_size=6), list[tuple[list[str], str]]()
    root = spec.submodule_search_locations[0]
    for folder, inner, files in os.walk(root):  # a Path each would take as long again
        folder_parts = [chunk for chunk in folder.removeprefix(root).split(os.sep) if chunk]
        inner[:] = [name for name in inner if name != "__pycache__" and (folder_parts or name not in PARTS)]
        places += (
            ([*folder_parts, name], f"{folder}{os.sep}{name}") for name in files if name.endswith((".py", ".json"))
        )
    # Sorted, since os.walk has the order of the file system.
    for parts, path in sorted(places):
        with open(path, "rb") as file:
            # A zero byte behind each, so that text which moves from one file into the next is a change.
            hasher.update("/".join(parts).encode() + b"\0" + file.read() + b"\0")
    return hasher.hexdigest()


def _find_version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT
