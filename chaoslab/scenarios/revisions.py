"""Sides whose code is that of a Git revision, in a work tree of its own, and sides with another environment."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from chaoslab.base.jsonable import to_one_line
from chaoslab.config.settings import copy_environment
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.sides import ComparisonSide
from chaoslab.search.pairs import Side

MODEL = "MODEL"
"""The variable of the environment in which an agent finds the name of its model."""
SHOWN = 300


@dataclass(frozen=True)
class SideWork:
    """The scenarios of a side. `changed`: values in place of the file's. `only`: a text in the scenario's name. `seed`:
    None for the scenario's own."""

    file: Path
    changed: Sequence[str] = ()
    only: str = ""
    seed: int | None = None
    jobs: int = 1


@dataclass
class ChildSide:
    """The trials of a side in a process of its own. `where`: its name in errors."""

    where: str
    _process: subprocess.Popen[str]
    _errors: IO[str]
    _unread: int = field(default=0, init=False)

    @cached_property
    def round_size(self) -> int:
        return int(self._read_json())  # the first line that the child prints

    def produce_trials(self, numbers: Sequence[int]) -> Iterable[Side]:
        assert self.round_size
        self._send_json([*numbers])
        self._unread = len(numbers)
        return self._iterate_child_trials()  # read as it is asked for, so that the other side's process works meanwhile

    def explain_cause(self, number: int) -> str:
        # The child answers in order: its first line is the period.
        assert self.round_size
        # What is still to come of the last round is read first, or it would be taken for the answer.
        for _ in self._iterate_child_trials():
            pass
        self._send_json(number)
        return str(self._read_json())

    def _iterate_child_trials(self) -> Iterator[Side]:
        while self._unread:
            row = self._read_json()
            self._unread -= 1
            story = row["story"]
            yield Side(
                **{
                    **vars(Side.from_json_values(row["side"])),
                    "story": None if story is None else lambda story_data=story: story_data,
                }
            )

    def _send_json(self, value: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()
        # It has ended: reading tells why.
        except BrokenPipeError:
            self._read_json()

    def _read_json(self) -> Any:
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        if text:
            return json.loads(text)
        code = self._process.wait()
        # Its errors went into a file, since a full pipe would hold the child up.
        self._errors.seek(0)
        lines = [error_line for error_line in self._errors.readlines() if error_line.strip()] or [
            f"its process ended with {code}"
        ]
        raise ScenarioError(to_one_line(f"{self.where}: {lines[-1].strip()}", SHOWN))


@contextmanager
def open_child_side(
    label: str,
    side_work: SideWork,
    *,
    folder: Path | None = None,
    root: str = "",
    more: Mapping[str, str] | None = None,
) -> Iterator[ChildSide]:
    """A context with a side in a process of its own. `folder`: where it runs. `root`: the work tree whose modules it
    must not find. `more`: variables of its environment."""
    # A hook of Git sets variables that lead Git to another work tree.
    environment = {**_copy_environment_sans_git(), **(more or {})}
    source = (folder or Path()) / "src"
    if root and source.is_dir():
        # With a src layout an installed package would be found first, and that is no revision's.
        environment["PYTHONPATH"] = ":".join(filter(None, [str(source), environment.get("PYTHONPATH", "")]))
    # replace: what a user's module prints may be of any encoding.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            # -P: the current folder must not come first, where a file may be called like a module of the lab.
            [sys.executable, "-P", "-m", "chaoslab.scenarios.rows"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        )
        side = ChildSide(label, process, errors)
        try:
            side._send_json(
                {**vars(side_work), "file": str(side_work.file), "changed": [*side_work.changed], "root": root}
            )
            yield side
        finally:
            process.kill()
            process.communicate()


@contextmanager
def open_revision_side(side_work: SideWork, name: str) -> Iterator[ComparisonSide]:
    """A context with a side as a revision has its code. The scenario's file is that of now, so that all revisions have
    the same trials. An empty name stands for the work tree as it is. Raises ScenarioError: there is no such revision,
    or the file lies in no work tree."""
    root, current = _find_git_root(side_work.file), Path.cwd().resolve()
    inside = side_work.file.resolve().relative_to(root)
    beside = current.relative_to(root) if current.is_relative_to(root) else Path()
    # By its place from the folder in which it runs, which is another one in the work tree.
    own_work = replace(side_work, file=Path(os.path.relpath(root / inside, root / beside)))
    with ExitStack() as stack:
        if not name:
            yield stack.enter_context(open_child_side("the work tree", own_work, folder=root / beside))
            return
        commit = _resolve_commit(root, name)
        above = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaoslab-")))
        # Resolved: on some systems the temporary folder is a link.
        tree = above.resolve() / "tree"
        _run_git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        # Git keeps a note of each work tree until it is removed.
        stack.callback(_run_git, root, "worktree", "remove", "--force", str(tree))
        for folder in (tree / beside, (tree / inside).parent):
            folder.mkdir(parents=True, exist_ok=True)
        # The scenario of now on the code of then: the trials are the same.
        shutil.copyfile(side_work.file, tree / inside)
        yield stack.enter_context(open_child_side(f"revision {name}", own_work, folder=tree / beside, root=str(root)))


@contextmanager
def open_revision_sides(side_work: SideWork, names: Sequence[str]) -> Iterator[tuple[ComparisonSide, ComparisonSide]]:
    """A context with the sides of one or two revisions. The second is the work tree if there is one name."""
    if not 0 < len(names) < 3:
        raise ScenarioError(f"there are {len(names)} revisions: give the base's, and the new one's or none for now's")
    with (
        open_revision_side(side_work, names[0]) as base,
        open_revision_side(side_work, names[1] if len(names) > 1 else "") as new,
    ):
        yield base, new


@contextmanager
def open_model_sides(side_work: SideWork, name: str) -> Iterator[tuple[ComparisonSide, ComparisonSide]]:
    """A context with both sides of one agent, the new one with another model."""
    with (
        open_child_side("the base", side_work) as base,
        open_child_side(f"model {name}", side_work, more={MODEL: name}) as new,
    ):
        yield base, new


def _find_git_root(file: Path) -> Path:
    """The top of the Git work tree that the file lies in. Raises ScenarioError: it lies in none, or there is no Git."""
    if not file.is_file():
        raise ScenarioError(f"{file} cannot be read: there is no such file")
    try:
        return Path(_run_git(file.resolve().parent, "rev-parse", "--show-toplevel")).resolve()
    except ScenarioError as error:
        if "not a git repository" not in str(error):
            raise
        raise ScenarioError(f"{file} lies in no Git work tree, so there are no revisions of its code") from None


def _resolve_commit(root: Path, name: str) -> str:
    """The commit of a revision. Raises ScenarioError: there is none."""
    try:
        # --end-of-options, since a revision could begin with a dash.
        return _run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except ScenarioError:
        raise ScenarioError(f"Git knows no revision {name!r:.60}: give a branch, a tag or a commit") from None


def _run_git(folder: Path, *arguments: str) -> str:
    """The output of Git. Raises ScenarioError: it fails, or is not installed."""
    try:
        completed = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            env=_copy_environment_sans_git(),
            # Git may ask for a password, for ever.
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise ScenarioError("revisions need git, which is not installed") from None
    if completed.returncode:
        # The first line says what is wrong; hints follow.
        message = (completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"])[0]
        raise ScenarioError(to_one_line(f"git {arguments[0]}: {message.removeprefix('fatal: ')}", SHOWN))
    return completed.stdout.strip()


def _copy_environment_sans_git() -> dict[str, str]:
    """The environment without what a hook of Git says of its own work tree."""
    return {name: value for name, value in copy_environment().items() if not name.startswith("GIT_")}
