"""The program that a warm start runs in place of Python: it stands for the child that the server forks.

It hands over what it was given, passes signals on and ends as the child ends; when it is killed, the server kills the
child. It imports only what is built into Python, so it costs little. `tests.warm.python` adds the line that calls
`main`.
"""

import _signal  # type: ignore[import-not-found]
import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from select import select

PASSED_ON = {_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2}


def main(python: str, address: str, settled: tuple[str, ...], known: dict[bytes, bytes]) -> None:
    """`python`: the real one. `settled`, `known`: variables that begin so must have these values."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, PASSED_ON)
    given = sys.argv[1:]
    module = given[1:] if given[:1] == ["-P"] else given
    own = {name: value for name, value in os.environb.items() if f"{name.decode('latin-1')}=".startswith(settled)}
    stands_in = module[:2] == ["-m", "chaoslab"] or module[:1] == ["-c"]
    server = _server(address) if stands_in and own == known else None
    if server is None:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, PASSED_ON)
        os.execv(python, [python, *given])
    assert server is not None
    _hand_over(server, module, safe=module is not given)
    child = int.from_bytes(_read(server), "big")

    def pass_on(number: int, _: object) -> None:
        try:  # contextlib is a library to load
            os.kill(child, number)
        except ProcessLookupError:
            return

    woken, wakes = os.pipe()  # a signal that comes right before a wait would else be looked at after it
    for end in (woken, wakes):
        os.set_blocking(end, False)
    _signal.set_wakeup_fd(wakes)
    for number in PASSED_ON:  # also what is ignored here: the child may have a handler of its own, as chaoslab has
        _signal.signal(number, pass_on)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, PASSED_ON)
    while server.fileno() not in select([server.fileno(), woken], [], [])[0]:
        os.read(woken, 64)
    status = int.from_bytes(_read(server), "big")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in PASSED_ON:
            _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def _server(address: str) -> "socket | None":
    """None: it is gone, or a stream is closed, which only a real start can tell."""
    server = socket(AF_UNIX, SOCK_STREAM)
    try:
        for number in range(3):
            os.fstat(number)
        if server.fileno() < 3:
            return None
        server.connect(address)
    except OSError:
        return None
    return server


def _hand_over(server: socket, arguments: list[str], *, safe: bool) -> None:
    pid, mask = os.getpid(), os.umask(0o77)
    os.umask(mask)
    request = marshal.dumps(
        {
            "arguments": arguments[2:], "program": arguments[1] if arguments[0] == "-c" else None, "client": pid,
            "executable": sys.argv[0], "safe": safe, "folder": os.getcwdb(),
            "environment": dict(os.environb), "umask": mask, "leads_session": os.getsid(0) == pid,
            "leads_group": os.getpgid(0) == pid,
            "ignored": [number for number in PASSED_ON if _signal.getsignal(number) == _signal.SIG_IGN],
        }
    )  # fmt: skip
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    server.sendmsg([len(request).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
    server.sendall(request)


def _read(server: socket) -> bytes:
    """Four bytes; without them the server is gone, and the child with it."""
    data = b""
    while len(data) < 4:
        try:
            more = server.recv(4 - len(data))
        except ConnectionError:
            more = b""
        if not more:
            os._exit(70)
        data += more
    return data
