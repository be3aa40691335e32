"""Every patch of threads and sockets is there for something: without it, a story that it carries breaks.

A story without its remedy may wait for real, for ever. So it is told in a process of its own that an alarm ends. All of
these are forks of one, which has loaded everything already, and each story is told there with all remedies too: that is
what it can be compared to.
"""

import asyncio
import fcntl
import functools
import gc
import json
import logging
import os
import queue
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from chaoslab.worlds.virtual import patches as installed
from chaoslab.worlds.virtual.machine.context import Unsupported, within
from chaoslab.worlds.virtual.network.network import TRIP_S
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patch, Patches
from tests.waiting import together
from tests.worlds.virtual.machine_parts import a_world, answers, now

ALARM_S = 2.0
PATIENCE_S = 100.0  # for a story with all its remedies, which should not wait at all
AT_ONCE = 8  # many of those that fail wait for the alarm


def a_lock() -> None:
    lock = threading.Lock()

    def work() -> None:
        with lock:
            time.sleep(1)

    together(work, work)
    assert now() == 2.0


OLD_LOCK = threading.Lock()


class Keeper:
    lock = threading.Lock()


def an_old_lock() -> None:
    def work(lock: Any) -> None:
        with lock:
            time.sleep(1)

    together(lambda: work(OLD_LOCK), lambda: work(OLD_LOCK))
    together(lambda: work(Keeper.lock), lambda: work(Keeper.lock))
    assert now() == 4.0


def a_reentrant_lock() -> None:
    lock, seen = threading.RLock(), list[float]()

    def work() -> None:
        with lock:
            time.sleep(1)
            seen.append(now())

    together(work, work)
    assert seen == [1.0, 2.0]


def a_thread_knows_itself() -> None:
    names: list[str] = []
    together(*[lambda: names.append(threading.current_thread().name.partition(" ")[0])] * 2)
    assert names == ["Thread-1", "Thread-2"]
    assert threading.current_thread() is threading.main_thread()


def native_numbers() -> None:
    numbers: list[int] = []
    together(*[lambda: numbers.append(threading.get_native_id())] * 2)
    assert len({*numbers, threading.get_native_id()}) == 3


def threads() -> None:
    together(lambda: time.sleep(1000), lambda: time.sleep(2000))
    assert now() == 2000.0


def threads_that_are_ended() -> None:
    threading.excepthook = lambda _: os._exit(1)
    threading.Thread(target=lambda: time.sleep(1e6)).start()


def workers_that_are_ended() -> None:
    class Fatal(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
            os._exit(1)

    logging.getLogger().addHandler(Fatal())
    ThreadPoolExecutor(1).submit(int).result()


def the_size_of_a_pool() -> None:
    assert ThreadPoolExecutor()._max_workers == 8


def the_name_of_a_pool() -> None:
    assert ThreadPoolExecutor().submit(lambda: threading.current_thread().name).result() == "ThreadPoolExecutor-0_0"


def a_simple_queue() -> None:
    threads_queue: queue.SimpleQueue[int] = queue.SimpleQueue()
    threading.Timer(5, threads_queue.put, (1,)).start()
    assert (threads_queue.get(), now()) == (1, 5.0)


OLD_QUEUE: queue.SimpleQueue[int] = queue.SimpleQueue()


class KeeperOfQueue:
    queue = queue.SimpleQueue[int]()


def an_old_queue() -> None:
    threading.Timer(5, OLD_QUEUE.put, (1,)).start()
    threading.Timer(6, KeeperOfQueue.queue.put, (2,)).start()
    assert (OLD_QUEUE.get(), KeeperOfQueue.queue.get(), now()) == (1, 2, 6.0)
    assert isinstance(OLD_QUEUE, queue.SimpleQueue)


@dataclass
class Job:
    """The function that its initializer calls is in a closure of it."""

    lock: Any = field(default_factory=threading.Lock)


def _in_a_closure() -> Any:
    class Job:
        def make(self) -> Any:
            return new_lock() if new_lock is not None else lock

    locks: list[Any] = []
    for lock in locks:  # so its cell is empty
        assert lock
    new_lock: Any = threading.Lock
    return Job


JobOfClosure = _in_a_closure()
LOCKS: defaultdict[str, Any] = defaultdict(threading.Lock)
MAKE_LOCK = functools.partial(threading.Lock)


def locks_of_old_factories() -> None:
    def work(lock: Any) -> None:
        with lock:
            time.sleep(1)

    for make in (lambda: Job().lock, lambda: LOCKS["one"], MAKE_LOCK, JobOfClosure().make):
        lock = make()
        together(lambda lock=lock: work(lock), lambda lock=lock: work(lock))  # type: ignore[misc]
    assert now() == 8.0


OLD = ThreadPoolExecutor(1)


def an_old_pool() -> None:
    OLD.submit(time.sleep, 1000).result()
    assert now() == 1000.0


def a_pool_asked_by_many() -> None:
    with ThreadPoolExecutor(9) as one, ThreadPoolExecutor(9) as two:
        together(*[lambda: one.submit(time.sleep, 1).result(), lambda: two.submit(time.sleep, 1).result()] * 4)
    assert now() == 1.0


def the_order_of_futures() -> None:
    with ThreadPoolExecutor(300) as pool:
        jobs = [pool.submit(time.sleep, 1) for _ in range(300)]
        rest = [object() for _ in range(10)]
        assert [jobs.index(job) for job in futures.wait(jobs).done] == list(range(300)), rest


MANY = 300


async def _in_order(many: Sequence[asyncio.Future[Any]]) -> None:
    rest = [object() for _ in range(10)]
    done, _ = await asyncio.wait(many)
    assert [many.index(each) for each in done] == list(range(MANY)), rest


def the_order_of_futures_made_by_hand() -> None:
    async def story() -> None:
        many: list[asyncio.Future[Any]] = [asyncio.Future() for _ in range(MANY)]
        for each in many:
            asyncio.get_running_loop().call_later(1, each.set_result, 1)
        await _in_order(many)

    asyncio.run(story())


def the_order_of_what_is_gathered() -> None:
    async def story() -> None:
        await _in_order([asyncio.gather(asyncio.sleep(1)) for _ in range(MANY)])

    asyncio.run(story())


def the_order_of_a_factorys_tasks() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **kwargs: asyncio.Task(coro, loop=loop, **kwargs))
        await _in_order([asyncio.create_task(asyncio.sleep(1)) for _ in range(MANY)])

    asyncio.run(story())


def an_event_loop() -> None:
    asyncio.run(asyncio.sleep(3600))
    assert now() == 3600.0


def a_loop_by_hand() -> None:
    loop = asyncio.SelectorEventLoop()
    loop.run_until_complete(asyncio.sleep(3600))
    loop.close()
    assert now() == 3600.0


def a_socket() -> None:
    assert requests.get("http://127.0.0.1:9/", timeout=1).text == "ok"


def a_kept_connection() -> None:
    with requests.Session() as session:
        session.get("http://127.0.0.1:9/", timeout=1)
        begun = time.monotonic()
        session.get("http://127.0.0.1:9/", timeout=1)
        assert round((time.monotonic() - begun) / TRIP_S) == 2


def a_select() -> None:
    assert select.select([socket.create_connection(("127.0.0.1", 9))], [], [], 5) == ([], [], [])
    assert now() == 5.0


def a_name() -> None:
    """With this flag the real thing asks nobody."""
    (found,) = socket.getaddrinfo("tools", 80, flags=socket.AI_NUMERICHOST)
    assert str(found[4][0]).startswith("10.77.")


def the_machines_name() -> None:
    assert socket.gethostname() == "localhost"


def a_pair() -> None:
    socket.socketpair()


def tls() -> None:
    context = ssl.create_default_context()
    wrapped = context.wrap_socket(socket.create_connection(("127.0.0.1", 9)), server_hostname="x")
    wrapped.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert wrapped.recv(8) == b"HTTP/1.1"


def tls_in_memory() -> None:
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(coming, going, server_hostname="x")
    tls.do_handshake()
    tls.write(b"hello")
    assert going.read() == b"hello"


def no_proxy() -> None:
    os.environ["HTTP_PROXY"] = "http://proxy.example:3128"
    assert requests.get("http://127.0.0.1:9/", timeout=1).text == "ok"


def a_files_lock() -> None:
    with tempfile.NamedTemporaryFile() as file:

        def hold() -> None:
            with open(file.name) as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                time.sleep(60)

        threading.Thread(target=hold).start()
        time.sleep(1)
        with open(file.name) as wanted:
            fcntl.flock(wanted, fcntl.LOCK_EX)
            assert 60 <= now() <= 62


def a_record_lock() -> None:
    """The lock of another process would stop this one."""
    with tempfile.NamedTemporaryFile() as file:
        held = f"f = open({file.name!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
        code = f"import fcntl, sys; {held}"
        with within(None):
            other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert other.stdout is not None
            other.stdout.readline()
        try:
            fcntl.lockf(file, fcntl.LOCK_EX)
        finally:
            with within(None):
                other.communicate()


def the_end_of_the_process() -> None:
    import _thread

    _thread.interrupt_main()


REFUSED = {a_pair: "socketpair", the_end_of_the_process: "interrupt_main"}
STARTING = "start_new_thread _start_joinable_thread _set_sentinel _ThreadHandle _make_thread_handle"
REMEDIES: list[tuple[Callable[[], None], str]] = [
    (a_lock, "Lock _allocate_lock"),
    (an_old_lock, "OLD_LOCK"),
    (an_old_lock, "lock"),
    (a_reentrant_lock, "RLock"),
    (a_thread_knows_itself, "get_ident"),
    (native_numbers, "get_native_id"),
    (a_thread_knows_itself, "_counter"),
    (threads, STARTING),
    (threads_that_are_ended, "_make_invoke_excepthook"),
    (workers_that_are_ended, "filters"),
    (the_size_of_a_pool, "cpu_count process_cpu_count sched_getaffinity"),
    (the_name_of_a_pool, "_counter"),
    (a_simple_queue, "SimpleQueue"),
    (an_old_queue, "OLD_QUEUE"),
    (an_old_queue, "queue"),
    (locks_of_old_factories, "Lock _allocate_lock"),
    (an_old_pool, "submit"),
    (a_pool_asked_by_many, "_global_shutdown_lock"),
    (the_order_of_futures, "__hash__"),
    (the_order_of_futures_made_by_hand, "Future"),
    (the_order_of_what_is_gathered, "__hash__"),
    (the_order_of_a_factorys_tasks, "Task"),
    (the_end_of_the_process, "interrupt_main"),
    (an_event_loop, "new_event_loop __init__"),
    (a_loop_by_hand, "__init__"),
    (a_socket, "socket"),
    (a_kept_connection, "poll"),
    (a_select, "select"),
    (a_name, "getaddrinfo"),
    (the_machines_name, "gethostname"),
    (a_pair, "socketpair"),
    (tls, "wrap_socket"),
    (tls_in_memory, "wrap_bio"),
    (no_proxy, "getproxies getproxies_environment"),
    (a_files_lock, "flock"),
    (a_record_lock, "lockf"),
]


def _tell(story: Callable[[], None]) -> None:
    world = a_world({"tools": answers})
    serve_application(world.network, "127.0.0.1", 9, answers)
    if story not in REFUSED:
        world.run_program(story)
        return
    with pytest.raises(Unsupported) as refusal:
        world.run_program(story)
    assert str(refusal.value).startswith(REFUSED[story])


def tell_without(name: str, remedy: str) -> None:
    every = installed.iterate_patches

    def without() -> Iterable[Patch]:
        return [patch for patch in every() if patch.name not in remedy.split()]

    installed.iterate_patches = without
    threading.Thread(target=int).start()  # no world's thread is the process's first
    OLD.submit(int).result()  # its worker is older than any world
    with Patches():
        signal.setitimer(signal.ITIMER_REAL, ALARM_S if remedy else PATIENCE_S)
        _tell(globals()[name])


def tell_all(cases: Sequence[tuple[str, str]], folder: str) -> None:
    """Each in a fork, which ends with 0 if the story can be told; what it says on stderr is `folder/<its number>`."""
    at_work: dict[int, int] = {}
    codes = [0] * len(cases)
    os.cpu_count = lambda: 60
    with Patches():
        pass  # so that all know where to look
    gc.collect()
    gc.freeze()  # else each fork's collections copy all pages

    def one_ends() -> None:
        pid, status = os.wait()
        codes[at_work.pop(pid)] = os.waitstatus_to_exitcode(status)

    for number, case in enumerate(cases):
        if len(at_work) == AT_ONCE:
            one_ends()
        if child := os.fork():
            at_work[child] = number
            continue
        try:
            os.dup2(os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
            tell_without(*case)
        except BaseException:  # noqa: BLE001 - a fork goes no further
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    while at_work:
        one_ends()
    print(json.dumps(codes))


STORIES = list(dict.fromkeys(story for story, _ in REMEDIES))
CASES = [*((story.__name__, "") for story in STORIES), *((story.__name__, remedy) for story, remedy in REMEDIES)]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[int, str]]:
    """The outcome of each story without each remedy: the exit code of its process, and what that said."""
    folder: Path = tmp_path_factory.mktemp("told")
    code = f"from tests.worlds.virtual import test_remedies; test_remedies.tell_all({CASES!r}, {str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    words = [(folder / str(number)).read_text() for number in range(len(CASES))]
    return dict(zip(CASES, zip(json.loads(done.stdout), words, strict=True), strict=True))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_with_its_remedy_a_story_can_be_told(
    story: Callable[[], None], told: dict[tuple[str, str], tuple[int, str]]
) -> None:
    code, words = told[story.__name__, ""]
    assert code == 0, words


@pytest.mark.parametrize(
    ("story", "remedy"), REMEDIES, ids=[f"{story.__name__}-{remedy}" for story, remedy in REMEDIES]
)
def test_without_its_remedy_it_cannot(
    story: Callable[[], None], remedy: str, told: dict[tuple[str, str], tuple[int, str]]
) -> None:
    code, words = told[story.__name__, remedy]
    assert code != 0
    assert "ImportError" not in words


def test_all_that_these_stories_leave_alone_is_told_elsewhere() -> None:
    """A new patch of threads, order or sockets needs a story here, or stands here with the test that has one."""
    # Without these, names would be asked for, and the process's timeout be set: test_clients.
    names = "gethostbyname gethostbyname_ex gethostbyaddr getnameinfo"
    elsewhere = {*names.split(), "setdefaulttimeout", "getdefaulttimeout"}
    known = {name for _, remedy in REMEDIES for name in remedy.split()} | elsewhere
    from chaoslab.worlds.virtual.machine import _locks as locks
    from chaoslab.worlds.virtual.patches import set_order, sockets
    from chaoslab.worlds.virtual.patches import threads as of_threads

    every = [patch for module in (of_threads, set_order, sockets) for patch in module.patches()]
    named = {patch.name for patch in every if not isinstance(patch.value, locks.Lock | locks.SimpleQueue)}
    assert named - known == set()
