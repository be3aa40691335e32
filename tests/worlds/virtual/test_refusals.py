"""Virtual time refuses at once what it cannot carry, in one line: what, where, what to do; this ends the trial."""

import _socket
import asyncio
import concurrent.futures.process
import contextlib
import importlib
import multiprocessing
import os
import pickle
import queue
import resource
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop

from chaoslab.worlds.virtual.machine.context import ProcessEnded, Unsupported
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches, refusals
from tests.worlds.virtual.patch_parts import named, run, take_out, world

TRUE = ["true"]
NOTHING: Any = None

CASES: list[tuple[str, Callable[[], Any], str]] = [
    ("Popen", lambda: subprocess.Popen(TRUE), "a subprocess"),
    ("subprocess.run", lambda: subprocess.run(TRUE, check=False), "a subprocess"),
    ("os.popen", lambda: os.popen("true"), "a subprocess"),
    ("os.system", lambda: os.system("true"), "a program run by os.system"),
    ("os.posix_spawn", lambda: os.posix_spawn("/bin/true", TRUE, {}), "a program run by os.posix_spawn"),
    ("os.posix_spawnp", lambda: os.posix_spawnp("true", TRUE, {}), "a program run by os.posix_spawnp"),
    ("os.fork", lambda: os.fork(), "a process of its own (os.fork)"),
    ("os.forkpty", lambda: os.forkpty(), "a process of its own (os.forkpty)"),
    ("os.spawnl", lambda: os.spawnl(os.P_WAIT, "/bin/true", "true"), "a process of its own (os.fork)"),
    ("Process", lambda: multiprocessing.Process(target=print).start(), "a process of multiprocessing"),
    ("Pool", lambda: multiprocessing.Pool(1), "a process of multiprocessing"),
    ("executor", lambda: concurrent.futures.ProcessPoolExecutor(1), "a pool of processes"),
    ("process_time", lambda: time.process_time(), "the clock time.process_time of the processor"),
    ("process_time_ns", lambda: time.process_time_ns(), "the clock time.process_time_ns of the processor"),
    ("thread_time", lambda: time.thread_time(), "the clock time.thread_time of the processor"),
    ("thread_time_ns", lambda: time.thread_time_ns(), "the clock time.thread_time_ns of the processor"),
    ("os.times", lambda: os.times(), "the clock os.times of the processor"),
    ("getrusage", lambda: resource.getrusage(resource.RUSAGE_SELF), "the clock resource.getrusage of the processor"),
    ("alarm", lambda: signal.alarm(0), "a wait with signal.alarm"),
    ("setitimer", lambda: signal.setitimer(signal.ITIMER_REAL, 0), "a wait with signal.setitimer"),
    ("sigwait", lambda: signal.sigwait({signal.SIGUSR1}), "a wait with signal.sigwait"),
    ("sigtimedwait", lambda: signal.sigtimedwait({signal.SIGUSR1}, 0), "a wait with signal.sigtimedwait"),
    ("epoll", lambda: select.epoll(), "waiting for files with select.epoll"),
    ("DefaultSelector", lambda: selectors.DefaultSelector(), "waiting for files with select.epoll"),
    ("policy", lambda: asyncio.set_event_loop_policy(None), "a policy of event loops"),
    ("fromfd", lambda: socket.fromfd(0, socket.AF_INET, socket.SOCK_STREAM), "a real socket made with socket.fromfd"),
    ("_socket.socket", lambda: _socket.socket(), "a real socket by _socket.socket"),
    ("_socket.SocketType", lambda: _socket.SocketType(), "a real socket by _socket.socket"),
    ("socket.SocketType", lambda: socket.SocketType(), "a real socket by _socket.socket"),
    ("_socket.getaddrinfo", lambda: _socket.getaddrinfo("example.com", 80), "a real socket by _socket.getaddrinfo"),
    ("_socket.socketpair", lambda: _socket.socketpair(), "a real socket by _socket.socketpair"),
    ("create_server", lambda: socket.create_server(("127.0.0.1", 0)), "a socket that listens"),
    ("uvloop.Loop", lambda: uvloop.Loop(), "uvloop.Loop"),
    ("uvloop.new_event_loop", lambda: uvloop.new_event_loop(), "uvloop.new_event_loop"),
    ("uvloop.run", lambda: uvloop.run(NOTHING), "uvloop.run"),
]


@pytest.fixture(scope="module")
def refused() -> dict[str, BaseException | None]:
    """The outcome of each."""

    def outcome(do: Callable[[], Any]) -> BaseException | None:
        try:
            world().run_program(do)
        except Unsupported as error:
            return error
        return None

    with Patches():
        return {name: outcome(do) for name, do, _ in CASES}


@pytest.mark.parametrize(("name", "what"), [(name, what) for name, _, what in CASES])
def test_each_is_refused_in_one_line_that_names_the_caller(
    name: str, what: str, refused: dict[str, BaseException | None]
) -> None:
    said = str(refused[name])
    assert said.startswith(f"{what} (in test_refusals.py, line ")
    assert ", <lambda>) is not covered by virtual time: " in said
    process = what.startswith(("a subprocess", "a program", "a process of", "a pool of processes"))
    otherwise = (
        "run the agent as a command of `chaoslab exec`, in real time" if process else "run in real time (world='local')"
    )
    assert said.endswith(f", or {otherwise}")
    assert "\n" not in said


def by_signal(number: int) -> Callable[[], Any]:
    return lambda: os.kill(os.getpid(), number)


ENDS: list[tuple[str, Callable[[], Any]]] = [
    ("os._exit", lambda: os._exit(0)),
    ("os.abort", lambda: os.abort()),
    ("os.execv", lambda: os.execvp("true", TRUE)),
    ("os.execve", lambda: os.execle("/bin/true", "true", {})),
    ("os.kill with SIGKILL", by_signal(signal.SIGKILL)),
    ("os.kill with SIGSTOP", by_signal(signal.SIGSTOP)),
    ("os.kill with SIGINT", by_signal(signal.SIGINT)),
    ("os.kill with SIGTERM", lambda: os.kill(0, signal.SIGTERM)),
    ("os.killpg with SIGTERM", lambda: os.killpg(os.getpgrp(), signal.SIGTERM)),
    ("signal.raise_signal with SIGABRT", lambda: signal.raise_signal(signal.SIGABRT)),
    ("signal.pthread_kill with SIGTERM", lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)),
]


def swallowed(do: Callable[[], Any]) -> None:
    """As a framework may."""
    with contextlib.suppress(BaseException):
        do()


def in_a_thread(do: Callable[[], Any]) -> None:
    thread = threading.Thread(target=do)
    thread.start()
    thread.join()


def in_a_pool(do: Callable[[], Any]) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(do)


def in_a_task(do: Callable[[], Any]) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(1, do)
        await asyncio.sleep(2)

    asyncio.run(main())


@pytest.mark.parametrize(("how", "do"), ENDS, ids=[how for how, _ in ENDS])
@pytest.mark.parametrize("within", [lambda do: do(), swallowed, in_a_thread, in_a_pool, in_a_task])
def test_what_ends_the_process_ends_the_trial_as_failed(
    how: str, do: Callable[[], Any], within: Callable[[Callable[[], Any]], None]
) -> None:
    """A child process would be gone without a word, and this one too."""
    with Patches(), pytest.raises(ProcessEnded) as error:
        world().run_program(lambda: within(do))
    assert str(error.value).startswith("it ended the process at ")
    assert str(error.value).endswith(f" ({how})")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_a_signal_that_ends_nothing_is_the_programs_own() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    try:
        run(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        run(by_signal(signal.SIGCHLD))
        run(by_signal(0))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert came == [signal.SIGUSR1]


@pytest.mark.parametrize("send", [lambda: os.kill(0, signal.SIGUSR1), lambda: os.killpg(os.getpgrp(), signal.SIGUSR1)])
def test_a_signal_to_the_group_ends_the_trial_though_the_program_has_a_handler(send: Callable[[], Any]) -> None:
    """Others of the group have none."""
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    try:
        with Patches(), pytest.raises(ProcessEnded, match="with SIGUSR1"):
            world().run_program(send)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert came == []


def test_no_signal_leaves_the_process() -> None:
    with Patches(), pytest.raises(Unsupported, match=r"a signal to another process \(in test_refusals.py"):
        world().run_program(lambda: os.kill(os.getppid(), signal.SIGURG))


HARMLESS: list[tuple[str, Callable[[], Any], tuple[tuple[Any, str], ...]]] = [
    ("process_time", lambda: time.process_time(), ((time, "process_time"),)),
    ("times", lambda: os.times(), ((os, "times"),)),
    ("getrusage", lambda: resource.getrusage(resource.RUSAGE_SELF), ((resource, "getrusage"),)),
    ("alarm", lambda: signal.alarm(0), ((signal, "alarm"),)),
    ("epoll", lambda: select.epoll().close(), ((select, "epoll"),)),
    ("DefaultSelector", lambda: selectors.DefaultSelector().close(), ((select, "epoll"),)),
    ("uvloop.Loop", lambda: uvloop.Loop().close(), ((uvloop, "Loop"),)),
    ("system", lambda: os.system("true"), ((os, "system"),)),
]


@pytest.mark.parametrize(("do", "remedies"), named(HARMLESS))
def test_each_refusal_is_its_own_remedys_and_only_a_worlds(
    do: Callable[[], Any], remedies: tuple[tuple[Any, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Patches():
        with pytest.raises(Unsupported):
            world().run_program(do)
        do()
    take_out(monkeypatch, *remedies)
    run(do)


def test_outside_of_worlds_processes_loops_and_sockets_are_as_ever() -> None:
    with Patches():
        assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"
        assert asyncio.run(asyncio.sleep(0, "slept")) == "slept"
        with select.epoll() as polled:
            assert isinstance(polled, select.epoll)
        with selectors.PollSelector(), selectors.DefaultSelector():
            pass
        with socket.create_server(("127.0.0.1", 0)) as server:
            assert server.getsockname()[1]


GRPC = ("grpc", "grpc._cython", "grpc._cython.cygrpc")


@pytest.fixture
def grpc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module to import. gRPC itself is not installed."""
    folder = tmp_path / "grpc" / "_cython"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    (folder / "cygrpc.py").write_text("class Channel: ...\nclass AioChannel: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield GRPC[-1]
    for name in GRPC:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("kind", ["Channel", "AioChannel"])
def test_a_library_in_c_is_refused_if_it_is_loaded(kind: str, grpc: str) -> None:
    module = importlib.import_module(grpc)
    real = getattr(module, kind)
    with pytest.raises(
        Unsupported, match=r"^a gRPC channel \(in test_refusals.py.*: reach the service over HTTP, or run"
    ):
        run(lambda: getattr(module, kind)())
    assert getattr(module, kind) is real


def test_a_library_that_is_imported_only_then_is_refused_at_once(grpc: str) -> None:
    with pytest.raises(Unsupported, match="a gRPC channel"):
        run(lambda: importlib.import_module(grpc).Channel())
    assert type(sys.modules[grpc].Channel) is type


def test_every_module_of_the_table_is_there_or_comes_later() -> None:
    with Patches():
        for refusal in refusals.LOADED:
            assert refusal.module in sys.modules


def test_a_refusal_ends_the_trial_though_the_program_went_on() -> None:
    went_on = []

    def work() -> str:
        swallowed(lambda: os.system("true"))
        went_on.append(1)
        return "fine"

    with pytest.raises(Unsupported, match=r"os.system \(in test_refusals.py, line \d+, <lambda>\)"):
        run(work)
    assert went_on


def test_a_refusal_is_said_first_though_the_program_failed_or_hung_for_it() -> None:
    def fail() -> None:
        swallowed(lambda: os.system("true"))
        raise RuntimeError("no answer")

    async def hang() -> None:
        swallowed(lambda: os.fork())
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Unsupported, match=r"os\.system"):
        run(fail)
    with Patches(), pytest.raises(Unsupported, match=r"os\.fork"):
        world().run_program_async(hang)


def test_the_first_of_two_refusals_is_the_one_that_is_told() -> None:
    def work() -> None:
        swallowed(lambda: os.system("true"))
        os.fork()

    with pytest.raises(Unsupported, match=r"os\.system"):
        run(work)


@pytest.mark.parametrize("called", [swallowed, lambda do: do()], ids=["swallowed", "raised"])
def test_a_refusal_in_a_thread_ends_the_trial(called: Callable[[Callable[[], Any]], None]) -> None:
    async def work() -> str:
        await asyncio.to_thread(called, lambda: os.system("true"))
        return "fine"

    with Patches(), pytest.raises(Unsupported, match=r"os\.system"):
        world().run_program_async(work)


def test_a_refusal_in_a_service_ends_the_trial() -> None:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:  # noqa: ARG001
        swallowed(lambda: os.system("true"))
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    async def work() -> str:
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get("http://search/")).text

    own = world()
    serve_application(own.network, "search", 80, app)
    with Patches(), pytest.raises(Unsupported, match=r"os\.system"):
        own.run_program_async(work)


@pytest.fixture
def foreign() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Has a real thread do something while the caller, a world's thread, really waits, as a library in C does."""
    asked: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
    answered: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work() -> None:
        while do := asked.get(timeout=60):
            try:
                answered.put(do())
            except BaseException as error:  # noqa: BLE001 - it is what the caller asks about
                answered.put(error)

    real = threading.Thread(target=work)
    real.start()

    def have(do: Callable[[], Any]) -> Any:
        asked.put(do)
        return answered.get(timeout=60)

    yield have
    asked.put(None)
    real.join()


def test_a_foreign_thread_that_touches_the_loop_ends_the_trial(foreign: Callable[[Callable[[], Any]], Any]) -> None:
    raised: list[BaseException] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        raised.append(foreign(lambda: loop.call_soon_threadsafe(done.set_result, 1)))
        await done

    with Patches(), pytest.raises(Unsupported, match="a thread of the process that runs no world") as refused:
        world().run_program_async(work)
    assert raised == [refused.value]


def test_a_foreign_thread_that_wakes_a_thread_of_the_world_ends_the_trial_though_it_was_over(
    foreign: Callable[[Callable[[], Any]], Any],
) -> None:
    from chaoslab.worlds.virtual.machine.machine import Waiter

    own = world()

    def work() -> str:
        assert isinstance(foreign(Waiter(own.machine).wake), Unsupported)
        return "fine"

    with Patches(), pytest.raises(Unsupported, match="a thread of the process that runs no world"):
        own.run_program(work)


def test_the_caller_that_is_named_is_the_programs_own_and_not_the_librarys() -> None:
    def my_tool() -> None:
        httpx.get("http://elsewhere.test/", trust_env=False)

    with pytest.raises(Unsupported, match=r"elsewhere\.test.* \(in test_refusals\.py, line \d+, my_tool\)"):
        run(my_tool)
