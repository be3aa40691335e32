"""Notes which tests run which lines of the package: a plug-in of pytest, and what Python's children start with.

Python's own monitoring (PEP 669, from 3.12 on) tells of each line once a test. A process of its own, or a fork, writes
each line at once, since nobody knows how it ends. The test is known by the variable that pytest sets.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

NOTES = "MUTATION_NOTES"
"""The environment variable that names the file to note in; each process adds its number."""

_open, _write, _close = os.open, os.write, os.close  # a virtual world puts others in their place
_monitoring: Any = getattr(sys, "monitoring", None)
_TOOL = 4
_hits: set[tuple[str, int]] = set()
_alone = {"yes": True}
_package = f"{Path(__file__).parents[2] / 'chaoslab'}{os.sep}"


def _began(code: CodeType, _: int) -> Any:
    if code.co_filename.startswith(_package):
        _monitoring.set_local_events(_TOOL, code, _monitoring.events.LINE)
    return _monitoring.DISABLE


def _line(code: CodeType, line: int) -> Any:
    hit = code.co_filename, line
    if _alone["yes"] and hit not in _hits:
        _note({"test": os.environ.get("PYTEST_CURRENT_TEST", ""), "lines": _by_file([hit])})
    _hits.add(hit)
    return _monitoring.DISABLE


def _by_file(hits: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for file, line in hits:
        found.setdefault(file[len(_package) :], []).append(line)
    return found


def start() -> None:
    """Notes from here on what this process runs."""
    if _monitoring.get_tool(_TOOL) is None:
        _monitoring.use_tool_id(_TOOL, "noting")
        _monitoring.register_callback(_TOOL, _monitoring.events.PY_START, _began)
        _monitoring.register_callback(_TOOL, _monitoring.events.LINE, _line)
        _monitoring.set_events(_TOOL, _monitoring.events.PY_START)
        os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    _alone["yes"] = True
    _hits.clear()
    _monitoring.restart_events()


def _note(told: dict[str, Any]) -> None:
    """One that may write no more is not made to fail by it."""
    with contextlib.suppress(OSError):
        file = _open(f"{os.environ[NOTES]}.{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _write(file, json.dumps(told).encode() + b"\n")
        finally:
            _close(file)


@contextlib.contextmanager
def _noted(item: pytest.Item, phase: str) -> Iterator[None]:
    _hits.clear()
    _monitoring.restart_events()
    try:
        yield
    finally:
        if _hits:
            _note({"test": f"{item.nodeid} ({phase})", "lines": _by_file(sorted(_hits))})


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _noted(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _noted(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with _noted(item, "call"):
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A worker's reports come to the process that began it, too."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _note({"test": report.nodeid, "took_s": report.duration, "failed": report.failed})


def pytest_collection_finish() -> None:
    _alone["yes"] = False
    start()


class Noted:
    """The notes. `took_s`: of each test that passed; `failed`: those that guard nothing."""

    def __init__(self, notes: Path) -> None:
        self._source = notes.parent
        self.took_s: dict[str, float] = {}
        self.failed: set[str] = set()
        self._calls: dict[tuple[str, int], set[str]] = {}
        self._files: dict[tuple[str, int], set[str]] = {}
        for path in notes.parent.glob(f"{notes.name}.*"):
            for line in path.read_text(encoding="utf-8").splitlines():
                told = json.loads(line)
                if "took_s" in told:
                    self.took_s[told["test"]] = self.took_s.get(told["test"], 0.0) + told["took_s"]
                    self.failed |= {told["test"]} if told["failed"] else set()
                    continue
                test, _, phase = told["test"].rpartition(" ")
                # what a fixture runs once may be meant for all tests of the file
                into, name = (self._calls, test) if phase == "(call)" else (self._files, test.partition("::")[0])
                for file, numbers in told["lines"].items():
                    for number in numbers:
                        into.setdefault((sys.intern(file), number), set()).add(sys.intern(name))

    @cache  # noqa: B019 - there is one
    def _lines(self, module: str) -> dict[int, int]:
        """Each line's number in the source that was noted; lines that it did not have are left out."""
        was = (self._source / module).read_text(encoding="utf-8").splitlines()
        now = Path(module).read_text(encoding="utf-8").splitlines()
        blocks = SequenceMatcher(None, now, was, autojunk=False).get_matching_blocks()
        return {block.a + n + 1: block.b + n + 1 for block in blocks for n in range(block.size)}

    def tests(self, module: str, lines: Iterable[int]) -> list[str]:
        """Those that run one of a module's lines, the quickest first."""
        now = self._lines(module)
        spots = [(module.removeprefix("chaoslab/"), now[line]) for line in lines if line in now]
        own = {test for spot in spots for test in self._calls.get(spot, ())}
        files = {file for spot in spots for file in self._files.get(spot, ())}
        found = [t for t in self.took_s if t in own or t.partition("::")[0] in files]
        return sorted((t for t in found if t not in self.failed), key=lambda test: self.took_s[test])
