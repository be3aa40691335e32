"""Has the lab's modules loaded and the libraries that they use, and forks a child for each start that a client hands
over.

It ends when stdin closes.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import importlib.util
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TextIO

LIBRARIES = (
    "anyio._backends._asyncio", "concurrent.futures.process", "concurrent.futures.thread", "flask", "greenlet",
    "groq.resources.chat", "h11", "http.server", "httpcore", "httpx", "langchain.agents", "langchain_groq",
    "matplotlib.axes", "matplotlib.backends.backend_agg", "matplotlib.figure", "multiprocessing.pool",
    "multiprocessing.queues", "rich.live", "rich.progress", "sqlite3", "time_machine", "urllib3", "uvloop",
    "waitress.server",
)  # fmt: skip
LAB = "chaoslab"
PARTS = (f"{LAB}.agent", f"{LAB}.flask_tools", f"{LAB}.proxy_manager")
LEFT = {"__main__", "builtins", "sys"}
"""Modules that Python itself needs up to its end."""
CHARTS = "chaoslab.reports.charts"
RUNS = ("lab", "run")
"""Commands that leave charts behind, which most of their tests only count."""
DRAWN = "CHAOSLAB_WARM_DRAWN"
"""The variable that asks for them all the same."""
BLANK = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c63f80f0001010100b138f6140000000049454e44ae426082"
)
"""A PNG of one pixel."""


class Own(NamedTuple):
    """The lab's modules as the server has loaded them. `files`: what each file was like then."""

    origin: str | None
    modules: dict[str, ModuleType]
    files: dict[str, tuple[int, int, int]]

    @classmethod
    def loaded(cls) -> Own:
        package = importlib.import_module(LAB)
        for outer in (LAB, *PARTS):  # the parts lie elsewhere, and are there if any module before them takes them
            folders = sys.modules[outer].__path__ if outer in sys.modules else []
            for found in pkgutil.walk_packages(folders, f"{outer}."):
                if found.name != f"{LAB}.__main__":
                    importlib.import_module(found.name)
        modules = {name: module for name, module in sys.modules.items() if name.split(".")[0] == LAB}
        return cls(
            package.__file__, modules, {file: _state(file) for each in modules.values() if (file := each.__file__)}
        )

    def kept(self) -> None:
        """In a child: its modules too, unless it would find others, or a file has changed meanwhile."""
        package = sys.modules.pop(LAB)
        found = importlib.util.find_spec(LAB)
        if found is not None and found.origin == self.origin and self._unchanged():
            sys.modules[LAB] = package
            return
        for other in self.modules.keys() - {LAB}:
            sys.modules.pop(other)

    def _unchanged(self) -> bool:
        try:
            return all(_state(file) == state for file, state in self.files.items())
        except OSError:
            return False


def _try_once() -> None:
    """One trial in virtual time, a line of a log that is read, and the templates of pages: what the lab and its
    libraries find out once a process takes longer than a trial."""
    from jinja2 import Environment

    from chaoslab.agent import prompts
    from chaoslab.config.settings import Settings
    from chaoslab.execution.spec import TrialSpec
    from chaoslab.lab.launch import make_lab_spec
    from chaoslab.record.lines import parse_line
    from chaoslab.reports.formats import html

    spec = make_lab_spec(Settings().override({"WORLD": "virtual"}), prompts.load_prompts(prompts.FILE)[:1])
    with spec.open_runner() as trial:
        trial(TrialSpec(0))
    parse_line(b"{}")
    for template in ("base.html", "page.html"):
        html._make_template_environment(Environment).get_template(template)
    assert threading.active_count() == 1, "who has threads should not fork"


def _over(kept: Mapping[str, ModuleType], codes: Sequence[int]) -> None:
    """The last that a child does before Python takes the modules apart, which takes longer than many a command: it
    takes its own apart, and ends with its code, if that is known. Else Python does it without those that were kept."""
    if not codes:
        for name in kept.keys() - LEFT:
            sys.modules.pop(name, None)
        return
    for name in [name for name, module in sys.modules.items() if kept.get(name) is not module]:
        sys.modules.pop(name)
    gc.collect()
    try:
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            if stream is not None:
                with contextlib.suppress(ValueError):  # it is closed, or its buffer is another stream's
                    stream.flush()
    except Exception:  # noqa: BLE001 - Python says it, and has a code for it
        return
    os._exit(codes[0])


def _state(file: str) -> tuple[int, int, int]:
    found = os.stat(file)
    return found.st_ino, found.st_size, found.st_mtime_ns


class Start(NamedTuple):
    """A request and the streams that a client hands over with it."""

    request: dict[str, Any]
    streams: list[int]


def main(address: str) -> None:
    """Serves at that address. Returns when it is over, in each child too."""
    sys.path.pop(0)  # this folder
    gc.disable()  # there would be a hundred collections of what stays for good
    kept: dict[str, Any] = {}
    codes: list[int] = []
    atexit.register(_over, kept, codes)  # the first, so it is done last
    for name in LIBRARIES:
        importlib.import_module(name)
    own = Own.loaded()
    _try_once()
    kept.update(sys.modules, itself=kept)  # a cycle, which is never collected as it is frozen
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    gc.collect()
    gc.freeze()  # else each child would copy the memory of all that, to count references in it
    gc.enable()
    start = served(address)
    if start is not None:
        try:
            become(start, own)
        except SystemExit as ended:
            if ended.code is None or (isinstance(ended.code, int) and 0 <= ended.code < 256):
                codes.append(ended.code or 0)
            raise
        codes.append(0)


def served(address: str) -> Start | None:
    """Returns in each child, and without a start at the end of the server itself.

    A link beside the address leads from each client's number to that of its child.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    selector = selectors.DefaultSelector()
    for what in (listener, woken, 0):
        selector.register(what, selectors.EVENT_READ)
    print("ready", flush=True)
    os.dup2(2, 1)
    clients: dict[socket.socket, int] = {}
    notes: dict[socket.socket, str] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client = listener.accept()[0]
                start = _received(client)
                if start is None:
                    client.close()
                    continue
                if not (child := os.fork()):
                    _let_go(selector, (listener, client, *clients), (woken, wakes))
                    return start
                for fd in start.streams:
                    os.close(fd)
                clients[client], notes[client] = child, f"{address}.{start.request['client']}"
                os.symlink(str(child), notes[client])
                selector.register(client, selectors.EVENT_READ)
                _tell(client, child)
            elif key.fileobj == woken:
                os.read(woken, 4096)
                for client, status in _ended(clients):
                    _tell(client, status)
                    if client in selector.get_map():
                        selector.unregister(client)
                    os.unlink(notes.pop(client))
                    del clients[client]
                    client.close()
            elif key.fileobj == 0:  # whoever started this is gone
                for child in clients.values():
                    os.kill(child, signal.SIGKILL)
                return None
            elif child := clients.get(key.fileobj, 0):  # type: ignore[call-overload]  # the client was killed
                os.kill(child, signal.SIGKILL)
                selector.unregister(key.fileobj)


def _let_go(selector: selectors.BaseSelector, sockets: Iterable[socket.socket], pipe: Iterable[int]) -> None:
    """In a child: what is the server's alone."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    selector.close()
    for held in sockets:
        held.close()
    for fd in pipe:
        os.close(fd)


def _ended(clients: Mapping[socket.socket, int]) -> list[tuple[socket.socket, int]]:
    """The clients whose child has ended, each with its status."""
    waited = {client: os.waitpid(child, os.WNOHANG) for client, child in clients.items()}
    return [(client, status) for client, (ended, status) in waited.items() if ended]


def _tell(client: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        client.sendall(number.to_bytes(4, "big"))


def _received(client: socket.socket) -> Start | None:
    """None: the client was killed before it had said everything."""
    fds = array.array("i")
    head, said, *_ = client.recvmsg(4, socket.CMSG_SPACE(3 * fds.itemsize))
    for _, _, data in said:
        fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    body, size = b"", int.from_bytes(head, "big")
    while len(body) < size and (more := client.recv(size - len(body))):
        body += more
    if len(body) < size or not size:
        for fd in fds:
            os.close(fd)
        return None
    return Start(marshal.loads(body), list(fds))


def become(start: Start, own: Own) -> None:
    """This process as `python -m chaoslab`, or `python -c`, would be after it had loaded the libraries."""
    asked = start.request
    if asked["leads_session"]:
        os.setsid()
    elif asked["leads_group"]:
        os.setpgid(0, 0)
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        heard = signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL
        signal.signal(each, signal.SIG_IGN if each in asked["ignored"] else heard)
    os.umask(asked["umask"])
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environb.update(asked["environment"])
    for number, fd in enumerate(start.streams):
        os.dup2(fd, number)
        os.close(fd)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.executable = asked["executable"]
    program = asked["program"]
    sys.argv = ["-m" if program is None else "-c", *asked["arguments"]]
    if not asked["safe"]:
        sys.path.insert(0, os.getcwd() if program is None else "")
    own.kept()
    if program is not None:
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))  # noqa: S102 - as Python does
        return
    if asked["arguments"][:1] and asked["arguments"][0] in RUNS and DRAWN not in os.environ:
        _leave_charts_blank()
    runpy.run_module("chaoslab", run_name="__main__", alter_sys=True)


def _leave_charts_blank() -> None:
    """A run leaves its charts as pictures of one pixel: drawing them takes longer than most runs."""
    charts: Any = sys.modules.get(CHARTS)
    if charts is None:  # another chaoslab
        return
    draw = charts._encode_png
    fakes = {
        "draw_charts": lambda _: dict.fromkeys(name for name, _ in charts._iterate_chart_functions()),
        "_encode_png": lambda figure: draw(figure) if figure else BLANK,
        "read_blank_reason": lambda _: "",
    }
    for name, fake in fakes.items():
        getattr(charts, name)  # one that was renamed would be drawn by every run
        setattr(charts, name, fake)


def _stream(fd: int, like: TextIO) -> TextIO:
    """As Python makes it when it starts."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    binary = open(fd, "wb" if fd else "rb", buffering=0 if fd and unbuffered else -1, closefd=False)  # noqa: SIM115
    by_line = not unbuffered and (fd == 2 or os.isatty(fd))
    return io.TextIOWrapper(
        binary,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=by_line,
        write_through=unbuffered,
    )


if __name__ == "__main__":
    main(sys.argv[1])
