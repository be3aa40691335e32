"""Tries mutants in a copy of the tree: reads a line of JSON for each, and answers with one.

The tests are collected once; each mutant is a fork of that process in which its function has the mutant's code. A
mutant outside of all functions needs a fresh import, as does one that lived: it is a fork of a process that has loaded
none of the lab. The file is changed as well meanwhile, for the processes that tests start.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import hypothesis.database
import pytest

KILLED, HUNG, SURVIVED, NOT_RUN = "killed", "timed out", "survived", "not run"
LOADED = ("httpx", "pydantic", "yaml", "msgspec", "flask", "langchain_core.messages", "langchain_core.tools", "openai")
"""Modules that many tests load and that are none of the lab's."""
PYTEST = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "-W", "ignore")
PATIENCE = 2
SPARE_S = 10
MEMORY_MAX = 6 << 30
_NOT_FOUND = 77


class Asked(NamedTuple):
    """A mutant and its tests. `function`: the outermost one around it and the line where that begins, if there is one.
    `sure`: those of the tests that it meets once more in a fresh import. `took_s`: what all took once. `more`: files of
    which all tests that are not `known` count as well.
    """

    module: str
    begin: int
    end: int
    code: str
    function: tuple[str, int] | None
    tests: list[str]
    sure: list[str]
    took_s: float
    more: list[str]
    known: list[str]

    def of(self, right: bytes) -> bytes:
        return right[: self.begin] + self.code.encode() + right[self.end :]


def _forked(child: Callable[[], int], *, limit_s: float) -> tuple[str, str]:
    """A child's end, and the last that it said."""
    with tempfile.TemporaryFile("w+b") as said:
        if not (pid := os.fork()):
            code = 1
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 2))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
                nothing = os.open(os.devnull, os.O_RDWR)
                for there, here in ((nothing, 0), (said.fileno(), 1), (said.fileno(), 2)):
                    os.dup2(there, here)
                code = child()
            except BaseException as error:  # noqa: BLE001 - whatever the mutant does, it was noticed
                os.write(2, repr(error).encode())
            os._exit(code)
        # A child that waits for ever is ended by an alarm of this process.
        late: list[int] = []

        def end_it(*_: object) -> None:
            late.append(pid)
            _end(pid)

        signal.signal(signal.SIGALRM, end_it)
        signal.setitimer(signal.ITIMER_REAL, 2 * limit_s)
        _, status = os.waitpid(pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end(pid)
        said.seek(0)
        told = said.read().decode(errors="replace")[-2000:]
    shutil.rmtree(_base(pid), ignore_errors=True)
    if late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return HUNG, told
    code = os.waitstatus_to_exitcode(status)
    return {0: SURVIVED, _NOT_FOUND: NOT_RUN}.get(code, KILLED), told


def _end(group: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def _base(pid: int) -> Path:
    return Path(tempfile.gettempdir()) / f"mutant-{pid}"


def _forget_examples() -> None:
    """An example that one mutant made fail is none for the next."""
    for name in ("save", "delete", "move"):
        setattr(hypothesis.database.DirectoryBasedExampleDatabase, name, lambda *_: None)
    hypothesis.database.DirectoryBasedExampleDatabase.fetch = lambda *_: iter(())  # type: ignore[method-assign]


def _fresh(asked: Asked) -> int:
    """Runs tests that import the mutant from its file."""
    _forget_examples()
    sure, known, more = {*asked.sure}, {*asked.known}, {*asked.more}

    class Chosen:
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            names = [item.nodeid for item in items]
            chosen = [name in sure or (name not in known and name.partition("::")[0] in more) for name in names]
            items[:] = [item for item, wanted in zip(items, chosen, strict=True) if wanted]

    files = dict.fromkeys([*asked.more, *(test.partition("::")[0] for test in asked.sure)])
    code = int(pytest.main([*PYTEST, f"--basetemp={_base(os.getpid())}", *files], plugins=[Chosen()]))
    return _NOT_FOUND if code == pytest.ExitCode.NO_TESTS_COLLECTED else code


class Collected:
    """A plug-in of pytest that runs, in place of all tests, those of each mutant that is asked for, in a fork."""

    def __init__(self, ask: Any, answer: Any) -> None:
        self._ask, self._answer = ask, answer

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        found: dict[tuple[str, str], list[FunctionType]] = {}
        gc.unfreeze()
        for each in gc.get_objects():
            if type(each) is FunctionType:
                found.setdefault((each.__code__.co_filename, each.__code__.co_qualname), []).append(each)
        gc.collect()
        gc.freeze()
        gc.disable()
        _say(self._answer, "ready")
        for line in self._ask:
            asked = Asked(*json.loads(line))
            _say(self._answer, _forked(partial(_met, asked, items, found), limit_s=_limit_s(asked)))
        return True


def _met(asked: Asked, items: dict[str, pytest.Item], found: dict[tuple[str, str], list[FunctionType]]) -> int:
    assert asked.function is not None
    name, line = asked.function
    file = str(Path.cwd() / asked.module)
    every = [*_codes(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True))]
    outer = next((each for each in every if (each.co_qualname, each.co_firstlineno) == (name, line)), None)
    if outer is None:
        return _NOT_FOUND
    changed = 0
    for code in (outer, *_codes(outer)):
        for function in found.get((file, code.co_qualname), ()):
            old = function.__code__
            if len(old.co_freevars) == len(code.co_freevars) and (code is not outer or old.co_firstlineno == line):
                function.__code__ = code
                changed += code is outer
    if not changed:
        return _NOT_FOUND
    _forget_examples()
    gc.collect = lambda *_: 0
    known = {*asked.known}
    newer = [item for name, item in items.items() if name.partition("::")[0] in asked.more and name not in known]
    tests = [*newer, *(items[test] for test in asked.tests if test in items)]
    if not tests:
        return _NOT_FOUND
    config = tests[0].config
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp, factory._given_basetemp = None, _base(os.getpid())
    failed: list[str] = []

    class Reports:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    config.pluginmanager.register(Reports())
    if terminal := config.pluginmanager.getplugin("terminalreporter"):
        config.pluginmanager.unregister(terminal)
    for item, following in zip(tests, [*tests[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            os.write(2, f"FAILED {failed[0]}".encode())
            return 1
    return 0


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


def _limit_s(asked: Asked) -> float:
    return SPARE_S + PATIENCE * asked.took_s


def _say(to: Any, told: object) -> None:
    to.write(json.dumps(told) + "\n")
    to.flush()


def _collecting(files: list[str]) -> tuple[Any, Any]:
    """The pipes of a fork that collects these files."""
    ask_in, ask_out = os.pipe()
    answer_in, answer_out = os.pipe()
    if not os.fork():
        os.close(ask_out)
        os.close(answer_in)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        plugin = Collected(os.fdopen(ask_in), os.fdopen(answer_out, "w"))
        os._exit(int(pytest.main([*PYTEST, "-s", *files], plugins=[plugin])))
    os.close(ask_in)
    os.close(answer_out)
    return os.fdopen(ask_out, "w"), os.fdopen(answer_in)


def main() -> None:
    """The first line is a list of files of tests; each other one a mutant, as `Asked` has it."""
    for name in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    asking, answering = _collecting(json.loads(sys.stdin.readline()))
    if not answering.readline():
        sys.exit("the tests could not be collected")
    for line in sys.stdin:
        asked = Asked(*json.loads(line))
        ended: Sequence[str] = (NOT_RUN, "no test reaches it")
        right = Path(asked.module).read_bytes()
        try:
            Path(asked.module).write_bytes(asked.of(right))
            if asked.function and (asked.tests or asked.more):
                asking.write(line)
                asking.flush()
                ended = json.loads(answering.readline())
            if ended[0] in (SURVIVED, NOT_RUN) and (asked.sure or asked.more):
                ended = _forked(partial(_fresh, asked), limit_s=_limit_s(asked))
        finally:
            Path(asked.module).write_bytes(right)
        _say(sys.stdout, ended)


if __name__ == "__main__":
    main()
