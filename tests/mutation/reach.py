"""In the copy in which mutants live: notes which tests reach which functions of a module, and has pytest run only
those, the quickest first.

A plugin of pytest, and at the same time what the module's functions are made to call when nothing in them is changed
yet. The test that runs is known by the environment variable that pytest sets, so that threads, greenlets and processes
that a test starts are seen as well.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Iterator
from math import inf
from pathlib import Path

import hypothesis
import pytest

NOTES = "MUTATION_NOTES"
"""The environment variable that names the files to note in; without it nothing is noted.

Each process adds its number to the name.
"""
CHOSEN = "MUTATION_TESTS"
"""The one that names a file with the tests to run, in that order."""

_seen: set[tuple[str, str]] = set()


def reached(function: str) -> None:
    """Called by every function of the module as it begins."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if NOTES in os.environ and (test, function) not in _seen:
        _seen.add((test, function))
        _note({"test": test, "function": function})


def _note(told: dict[str, str | float]) -> None:
    """Each process has a file of its own; one that may write no more is not made to fail by it."""
    with contextlib.suppress(OSError):
        file = os.open(f"{os.environ[NOTES]}.{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps(told).encode() + b"\n")
        finally:
            os.close(file)


def instrumented(source: bytes, prefix: str = "") -> str:
    """The module with a call of `reached` at the beginning of every function. `prefix`: before the names of them,
    as in "module|"."""
    tree = ast.parse(source)
    for function, where in _functions(tree, ()):
        at = 1 if ast.get_docstring(function) is not None else 0
        function.body.insert(at, ast.parse(f"__import__('reach').reached({prefix + '.'.join(where)!r})").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def _functions(
    node: ast.AST, where: tuple[str, ...]
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, tuple[str, ...]]]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            yield part, (*where, part.name)
        name = (
            getattr(part, "name", None)
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else None
        )
        yield from _functions(part, (*where, name) if name else where)


class Reached:
    """Each test's time, and the functions that it, or a fixture that it shares with its file, has called."""

    def __init__(self, notes: Path) -> None:
        self.took_s: dict[str, float] = {}
        self._tests: dict[str, set[str]] = {}
        self._files: dict[str, set[str]] = {}
        for line in (line for file in notes.parent.glob(f"{notes.name}.*") for line in file.read_text().splitlines()):
            told = json.loads(line)
            if "took_s" in told:
                self.took_s[told["test"]] = self.took_s.get(told["test"], 0.0) + told["took_s"]
                continue
            test, _, phase = told["test"].rpartition(" ")
            for function in (told["function"], told["function"].partition("|")[0]):
                if phase == "(call)":
                    self._tests.setdefault(function, set()).add(test)
                else:  # in a fixture, or while a file is imported
                    self._files.setdefault(function, set()).add(test.partition("::")[0])

    def tests(self, function: str) -> list[str]:
        """Those that reach it, the quickest first; all when nobody does, or none can be told apart."""
        files = self._files.get(function, set())
        own = self._tests.get(function, set())
        found = [test for test in self.took_s if test in own or test.partition("::")[0] in files or "" in files]
        return sorted(found or self.took_s, key=lambda test: self.took_s[test])


# The plugin.


def pytest_configure() -> None:
    """A machine that is busy with mutants is slow, and what one of them made fail is no example for the next."""
    hypothesis.settings.register_profile("mutation", deadline=None, database=None)
    hypothesis.settings.load_profile("mutation")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHOSEN in os.environ:
        order = {test: n for n, test in enumerate(json.loads(Path(os.environ[CHOSEN]).read_text()))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test that fails guards nothing: it takes for ever. A worker's reports come to the process that began it."""
    if NOTES in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        _note({"test": report.nodeid, "took_s": inf if report.failed else report.duration})
