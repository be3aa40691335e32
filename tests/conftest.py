"""The order of the tests, and the state of the process that all of them run in.

- The collected tests and what they import are some million objects that no garbage collection has to look at: there is
  none before all are there. The same holds for what is left of a file's tests, such as the libraries that they loaded.
- An example of a property has no deadline: on a busy machine it would be the machine that is tested. There are sixty of
  each, and a thousand with --hypothesis-profile=thorough.
- A file is one worker's alone, so that its fixtures are made once. The longest files come first: the last one that is
  begun decides when the suite ends.
- A test that leaves held what every thread takes when it starts is named: the next one that starts a thread would hang.
- A test that leaves a handler of Ctrl-C fails itself: a later test of its worker would go on after a Ctrl-C.
- The lever of this machine's user is left alone.
- A client of httpx reads the certificates of all authorities, which takes longer than what most tests do with it. Here
  it reads one, which signs nothing; `live` and what asks a registry of packages believe those of the machine.
- A virtual world looks through all modules of the process: those of other files of tests are not among them.
- A worker tells of each test's call, and of what went wrong: that a test is set up and taken down in order is nobody's
  news, and telling of it took a third of what a short test takes.
- A suite that a shell began in the background hears no Ctrl-C, and its children inherit that: those that are sent one
  would not end.
"""

import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from chaoslab.base import levers

if TYPE_CHECKING:
    from tests.cli_parts import Typed

settings.register_profile("untimed", deadline=None, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("untimed")


levers.LEVER = levers.LAB = Path(__file__).parent / "no folder" / "stop"
"""In place of that of whoever runs the tests: a lever that is pulled would end all faults."""

os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).with_name("nobody.pem")))

gc.disable()
MANY = 100
"""So many new modules are worth a collection before the file is through."""
_left_alone = {"modules": 0}
_hidden: dict[str, ModuleType] = {}
"""The modules of the files of tests, by file; in `sys.modules` is that of the file whose turn it is."""


def pytest_collection_finish() -> None:
    tests = [module for name, module in sys.modules.items() if name.startswith("tests.")]
    files = {module.__name__ for module in tests if Path(str(module.__file__)).name.startswith("test_")}
    shared = {
        value.__module__
        for module in tests
        for value in vars(module).values()
        if type(value) is FunctionType or issubclass(type(value), type)  # not isinstance, which would ask a proxy
        if value.__module__ != module.__name__
    }
    for module in [sys.modules.pop(name) for name in files - shared]:
        _hidden[str(module.__file__)] = module
    _leave_alone()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if module := _hidden.get(str(item.path)):
        sys.modules[module.__name__] = module


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    over = nextitem is not None and nextitem.path != item.path
    yield
    if over or len(sys.modules) > _left_alone["modules"] + MANY:
        _leave_alone()
    if over and (module := _hidden.get(str(item.path))):
        del sys.modules[module.__name__]
    starting = getattr(threading, "_shutdown_locks_lock", None)  # there is none from Python 3.13 on
    if starting is not None and starting.locked():
        left_held = not starting.acquire(timeout=60)  # a thread that starts just now has it for a moment
        starting.release()
        assert not left_held, f"{item.nodeid} left threading._shutdown_locks_lock held, so that no thread could start"
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handler is signal.default_int_handler, f"{item.nodeid} left {handler} as the handler of SIGINT"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), f"{item.nodeid} left SIGINT blocked"


def _leave_alone() -> None:
    gc.collect()
    gc.freeze()
    _left_alone["modules"] = len(sys.modules)


ROOT = Path(__file__).parent
LONG = (
    "live/test_compose_up.py",
    "live/test_compose_hard.py",
    "live/test_compose_seed.py",
    "live/test_compose_processes.py",
    "search/test_explore_commands.py",
    "test_readme.py",
    "test_campaigns.py",
    "test_dying_agents.py",
    "test_run.py",
    "worlds/test_local.py",
    "agent/test_main.py",
    "scenarios/test_nothing_met.py",
    "test_process_ends.py",
    "test_cluster.py",
    "hard/test_state_file.py",
    "test_own_chance.py",
    "search/test_explore_command.py",
    "reports/test_charts.py",
    "ui/test_walk.py",
    "test_faults_command.py",
    "verdict/test_count.py",
    "search/test_proof.py",
    "test_from_schema.py",
    "scenarios/test_running.py",
    "gateway/test_exec.py",
    "search/test_certificate.py",
    "test_wheel.py",
    "scenarios/test_gating.py",
    "test_coding_agent.py",
    "wire/test_server_stress.py",
    "hard/test_interrupted.py",
    "gateway/test_mcp_proxy.py",
)
"""The files that take longest, longest first; those that mostly wait stand between those that compute, so that the
workers do not all wait at once."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> "Typed":
    """A call of the command `chaoslab`."""
    from tests.cli_parts import Typed  # and with it much of the lab

    return Typed(capsys)


@pytest.fixture
def two_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has two charts, for a test that asks when or where they are drawn: all take it two seconds."""
    from chaoslab.reports import charts

    drawn = [
        (name, chart) for name, chart in charts._iterate_chart_functions() if name in ("tool_latency", "success_rate")
    ]
    monkeypatch.setattr(charts, "_iterate_chart_functions", lambda: drawn)


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a run nor a sweep has charts, for a test that looks at none."""
    from chaoslab.reports import charts

    monkeypatch.setattr(charts, "_iterate_chart_functions", list)
    monkeypatch.setattr(charts, "draw_multi_run_charts", lambda _: {})


def pytest_configure() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Each worker imports its share of the files first: in a fresh clone each would rewrite the asserts of all."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        files = sorted(path for path in ROOT.rglob("test_*.py") if ROOT / "live" not in path.parents)
        for path in files[int(worker["workerid"][2:]) :: worker["workercount"]]:
            with contextlib.suppress(Exception):  # the collection tells of it
                importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {ROOT / name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path, len(LONG)))
