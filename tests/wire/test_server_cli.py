"""A whole session of toxiproxy-cli does the same against the embedded server as against the real one."""

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.waiting import HUNG_S
from tests.wire.wire_parts import dial, echo, embedded, read_exactly, real, upstream

PORT = re.compile(r"127\.0\.0\.1:[0-9]{5}")


class Terminal:
    """One server's: what was typed, what it printed, and how it ended."""

    def __init__(self, url: str) -> None:
        binary = shutil.which("toxiproxy-cli")
        if binary is None:
            pytest.skip("toxiproxy-cli is not on PATH")
        self._command = [binary, "--host", url]
        self.typescript: list[tuple[str, str, str, int]] = []

    def __call__(self, line: str) -> str:
        done = subprocess.run(
            [*self._command, *line.split()], capture_output=True, text=True, timeout=HUNG_S, check=False
        )
        said, complained = (PORT.sub("127.0.0.1:port", text) for text in (done.stdout, done.stderr))
        self.typescript.append((PORT.sub("127.0.0.1:port", line), said, complained, done.returncode))
        return done.stdout


@pytest.fixture(scope="module")
def own() -> Iterator[Terminal]:
    with upstream(echo) as address, embedded() as url:
        terminal = Terminal(url)
        session(terminal, address)
        yield terminal


def session(cli: Terminal, address: str) -> None:
    """Everything that toxiproxy-cli can do, right and wrong; the proxy does meanwhile what it was told."""
    cli("list")
    cli(f"create --listen 127.0.0.1:0 --upstream {address} redis")
    cli(f"create --listen 127.0.0.1:0 --upstream {address} redis")
    cli("create --listen 127.0.0.1:0 --upstream 127.0.0.1:9 other")
    cli(f"create --listen nowhere --upstream {address} third")
    cli("toxic add --type latency --toxicName slow --attribute latency=1 --attribute jitter=0 redis")
    cli("toxic add --type latency --toxicName slow redis")
    cli("toxic add -t bandwidth -a rate=1000 --upstream --toxicity 0.5 redis")
    cli("toxic add -t limit_data -a bytes=3 -n cut redis")
    cli("toxic add -t gravity redis")
    cli("toxic add -t slicer -a average_size=x redis")
    cli("toxic add -t noop nobody")
    cli("inspect redis")
    listen = re.findall(r"^redis\t(\S+)", cli("list"), re.MULTILINE)[0]
    with dial(listen) as connection:
        connection.sendall(b"hello")
        assert read_exactly(connection, 3) == b"hel"
        assert connection.recv(1) == b""
    cli("toxic update -n slow -a jitter=7 --toxicity 0.25 redis")
    cli("toxic update -n slow -a latency=lots redis")
    cli("toxic update -n none -a latency=1 redis")
    cli("inspect redis")
    cli("toxic remove -n slow redis")
    cli("toxic delete -n slow redis")
    cli("toxic remove -n cut redis")
    cli("toggle redis")
    cli("list")
    with pytest.raises(ConnectionRefusedError):
        dial(listen)
    cli("toggle redis")
    with dial(listen) as connection:
        connection.sendall(b"again")
        assert read_exactly(connection, 5) == b"again"
    cli("inspect redis")
    cli("delete redis")
    cli("delete redis")
    cli("inspect redis")
    cli("toggle redis")
    cli("list")


def test_a_session_says_what_was_done(own: Terminal) -> None:
    said = "".join(printed for _, printed, _, _ in own.typescript)
    for line in (
        "Created new proxy redis",
        "Added downstream latency toxic 'slow' on proxy 'redis'",
        "Updated toxic 'slow' on proxy 'redis'",
        "Removed toxic 'slow' on proxy 'redis'",
        "Proxy redis is now disabled",
        "Proxy redis is now enabled",
        "Deleted proxy redis",
    ):
        assert said.count(line + "\n") == 1
    assert "slow\ttype=latency\tstream=downstream\ttoxicity=0.25\tattributes=[\tjitter=7\tlatency=1\t]\n" in said
    refused = [line for line, _, complaint, code in own.typescript if code != 0 and complaint]
    assert refused == [
        "create --listen 127.0.0.1:0 --upstream 127.0.0.1:port redis",
        "create --listen nowhere --upstream 127.0.0.1:port third",
        "toxic add --type latency --toxicName slow redis",
        "toxic add -t gravity redis",
        "toxic add -t slicer -a average_size=x redis",
        "toxic add -t noop nobody",
        "toxic update -n slow -a latency=lots redis",
        "toxic update -n none -a latency=1 redis",
        "toxic delete -n slow redis",
        "delete redis",
        "inspect redis",
        "toggle redis",
    ]


def test_the_same_session_looks_the_same_on_the_real_server(own: Terminal) -> None:
    with upstream(echo) as address, real() as url:
        terminal = Terminal(url)
        session(terminal, address)
    assert without_reasons(own) == without_reasons(terminal)


def without_reasons(terminal: Terminal) -> list[tuple[str, str, bool, int]]:
    """The session without the words of refusals, which are each server's own."""
    return [(line, said, bool(complaint), code) for line, said, complaint, code in terminal.typescript]
