"""Programs that know of no gateway are led over its proxy: they ask for their usual hosts, and verify TLS."""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
import pytest
import requests
import trustme

from chaoslab.core.events import CallFinished, FaultWitnessed, LabWarning
from chaoslab.seams.gateway._upstream import read_head
from chaoslab.seams.gateway.forward import _explain_handshake_failure
from chaoslab.wire.http1 import HEAD_MAX
from tests.gateway.parts import history, shop, standing
from tests.seams.lab_parts import eventually


@pytest.mark.parametrize("sent", [b"", b"CONNECT a.test:443 HTTP/1.1\r\n", b"x" * (HEAD_MAX + 1)])
def test_a_connection_without_a_whole_head_is_given_up(sent: bytes) -> None:
    async def read() -> bytes:
        there.setblocking(False)
        return await asyncio.wait_for(read_head(there), 10.0)

    here, there = socket.socketpair()
    with here, there:
        here.sendall(sent)
        if len(sent) <= HEAD_MAX:
            here.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            asyncio.run(read())


NODE = """
const ask = async () => (await fetch("https://api.openai.com/v1/a")).status;
console.log(await ask(), await ask());
"""
GO = """package main
import ("fmt"; "net/http")
func main() {
	for range 2 {
		reply, err := http.Get("https://api.openai.com/v1/a")
		if err != nil { panic(err) }
		reply.Body.Close()
		fmt.Print(reply.StatusCode, " ")
	}
}
"""
CURL = ["-sS", "-w", "%{http_code} ", *["-o", os.devnull, "https://api.openai.com/v1/a"] * 2]
LIMITED = {"fault": "rate_limit", "target": "api.openai.com", "calls": [1]}


def runs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if program == "node":
        known = subprocess.run(["node", "--help"], capture_output=True, text=True, check=True).stdout
        if "--use-env-proxy" not in known:
            pytest.skip("this node's fetch knows no proxy: it needs 22.21 or 24.5")


@pytest.mark.parametrize(("program", "source"), [("curl", ""), ("node", NODE), ("go", GO)])
def test_a_program_is_broken_as_it_is(program: str, source: str, tmp_path: Path) -> None:
    runs(program)
    path = tmp_path / ("a.go" if program == "go" else "a.mjs")
    path.write_text(source)
    words = CURL if program == "curl" else ["run", str(path)] if program == "go" else [str(path)]
    with (
        shop() as server,
        standing(tmp_path / "logs", [f"api.openai.com={server.url}"], LIMITED, elsewhere="pass") as running,
    ):
        done = subprocess.run(
            [program, *words], env=os.environ | dict(running.told), capture_output=True, text=True, check=False
        )
    assert (done.stdout.split(), done.stderr) == (["429", "200"], "")
    told = history(tmp_path / "logs")
    assert [event.fault for _, event in told.find_events(FaultWitnessed)] == ["rate_limit"]
    assert [event.target for _, event in told.find_events(CallFinished)] == ["api.openai.com"] * 2


def test_sdks_are_broken_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop() as server, standing(tmp_path, [f"api.openai.com={server.url}"], LIMITED, elsewhere="pass") as running:
        for name, value in running.told.items():
            monkeypatch.setenv(name, value)
        hello: Any = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}
        with openai.OpenAI(api_key="sk-of-nobody", max_retries=0) as client:
            with pytest.raises(openai.RateLimitError, match="Rate limit reached"):
                client.chat.completions.create(**hello)
            client.chat.completions.create(**hello)
        assert httpx.get("https://api.openai.com/v1/models").status_code == 200
        assert requests.get("https://api.openai.com/v1/models").status_code == 200
    assert [event.ok for _, event in history(tmp_path).find_events(CallFinished)] == [False, True, True, True]


@contextmanager
def program(told: Any, verify: Any = None) -> Iterator[httpx.Client]:
    """A program that reads its proxy and its certificates from the environment."""
    believed = verify or ssl.create_default_context(cafile=told["SSL_CERT_FILE"])
    with httpx.Client(proxy=told["HTTPS_PROXY"], verify=believed, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def elsewhere(authority: trustme.CA) -> Iterator[str]:
    """A service with TLS of its own at a host that is no route: its host and port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    def serve() -> None:
        with suppress(OSError):
            while True:
                line, _ = listener.accept()
                with suppress(OSError), context.wrap_socket(line, server_side=True) as inner:
                    inner.recv(65536)
                    inner.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nunread")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def warnings(logs: Path) -> list[str]:
    return [event.message for _, event in history(logs).find_events(LabWarning)]


def test_other_hosts_pass_unread(elsewhere: str, authority: trustme.CA, tmp_path: Path) -> None:
    theirs = ssl.create_default_context()
    authority.configure_trust(theirs)
    with (
        shop() as server,
        standing(tmp_path, ["api.test"], elsewhere="pass") as running,
        program(running.told, theirs) as client,  # which believes in the service's own authority alone
    ):
        assert client.get(f"https://{elsewhere}/x").text == "unread"
        passed = client.get(f"{server.url}/price").json()
        assert (passed["path"], passed["headers"]["Accept-Encoding"]) == ("/price", client.headers["Accept-Encoding"])
        down = client.post("http://127.0.0.1:1/x")
        assert (down.status_code, down.json()["error"].endswith("Connection refused")) == (502, True)
        with pytest.raises(httpx.ProxyError, match="502 Bad Gateway"):
            client.get("https://127.0.0.1:1/x")
    told = warnings(tmp_path)
    assert told[0] == f"{elsewhere} is no route: what goes there passes unread"
    assert len(told) == 3
    assert not [*history(tmp_path).find_events(CallFinished)]


def test_other_hosts_are_refused(elsewhere: str, tmp_path: Path) -> None:
    words = "the host 127.0.0.1 is no route: name it with --route 127.0.0.1, or let it by: --elsewhere pass"
    with standing(tmp_path, ["api.test"], elsewhere="refuse") as running, program(running.told) as client:
        with pytest.raises(httpx.ProxyError, match="403 Forbidden"):
            client.get(f"https://{elsewhere}/x")
        assert client.get(f"http://{elsewhere}/x").json() == {"error": words}
    assert warnings(tmp_path) == [words]


def test_a_program_that_does_not_believe_is_told_what_to_set(tmp_path: Path, capsys: Any) -> None:
    with (
        standing(tmp_path, ["api.test=http://127.0.0.1:1"], elsewhere="pass") as running,
        program(running.told, ssl.create_default_context()) as client,
    ):
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            client.get("https://api.test/x")
        eventually(lambda: bool(warnings(tmp_path)))
    (told,) = warnings(tmp_path)
    assert told.startswith("the program does not speak TLS for api.test: it does not believe in the authority made for")
    assert "should read one of SSL_CERT_FILE, REQUESTS_CA_BUNDLE, " in told
    assert capsys.readouterr().err == f"warning: {told}\n"


def asked(address: str, *parts: bytes) -> bytes:
    """The whole answer to these bytes, each part after an answer to the one before it."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        found = b""
        with suppress(ConnectionResetError):
            for part in parts:
                line.sendall(part)
                found = line.recv(65536) if part is not parts[-1] else b""
            while more := line.recv(65536):
                found += more
        return found


@pytest.mark.parametrize(
    ("bytes_", "status", "words"),
    [
        (
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            400,
            b"this is the port of a proxy: HTTP_PROXY should be http://",
        ),
        (b"GET ftp://a.test:21/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, b"this is the port of a proxy"),
        (b"CONNECT :443 HTTP/1.1\r\n\r\n", 400, b"CONNECT should name a host, as in api.openai.com:443"),
        (b"CONNECT a.test:x HTTP/1.1\r\n\r\n", 400, b"CONNECT should name a host"),
        (b"CONNECT OWN HTTP/1.1\r\n\r\n", 508, b"OWN leads back to this gateway: a loop"),
        (b"GET http://OWN/ HTTP/1.1\r\nHost: OWN\r\n\r\n", 508, b"OWN leads back to this gateway: a loop"),
    ],
)
def test_what_no_program_means_is_told_in_one_line(bytes_: bytes, status: int, words: bytes, tmp_path: Path) -> None:
    with standing(tmp_path, ["api.test"], elsewhere="pass") as running:
        own = running.told["HTTP_PROXY"].removeprefix("http://").encode()
        found = asked(running.told["HTTP_PROXY"], bytes_.replace(b"OWN", own))
    assert found.startswith(b"HTTP/1.1 %d " % status)
    assert words.replace(b"OWN", own) in found


def test_a_service_is_its_route_by_its_own_address_and_by_the_gateways(tmp_path: Path) -> None:
    with (
        shop() as server,
        standing(tmp_path, [f"crm={server.url}"], elsewhere="refuse") as running,
        httpx.Client(proxy=running.told["HTTP_PROXY"], trust_env=False) as client,
    ):
        for url in (server.url, f"{running.address}/crm"):
            assert client.get(f"{url}/price").json()["path"] == "/price"
    assert [event.target for _, event in history(tmp_path).find_events(CallFinished)] == ["crm"] * 2


def test_plain_http_through_a_tunnel_is_read(tmp_path: Path) -> None:
    with shop() as server:
        host = server.url.removeprefix("http://")
        with standing(tmp_path, [f"{host}={server.url}"], elsewhere="refuse") as running:
            head = f"GET /price HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            found = asked(running.told["HTTP_PROXY"], f"CONNECT {host} HTTP/1.1\r\n\r\n".encode(), head.encode())
    assert found.startswith(b"HTTP/1.1 200 ")
    assert b'"path": "/price"' in found
    assert [event.target for _, event in history(tmp_path).find_events(CallFinished)] == [host]


@pytest.mark.parametrize(("elsewhere", "passed"), [("pass", True), ("refuse", False)])
def test_what_is_neither_tls_nor_http_is_said(elsewhere: str, passed: bool, tmp_path: Path, capsys: Any) -> None:
    def echo() -> None:
        with suppress(OSError):
            line, _ = listener.accept()
            with line:
                line.sendall(line.recv(100).upper())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=echo, daemon=True)
        thread.start()
        with standing(tmp_path, [where], elsewhere=elsewhere) as running:
            found = asked(running.told["HTTP_PROXY"], f"CONNECT {where} HTTP/1.1\r\n\r\n".encode(), b"*1 ping\r\n")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert found == (b"*1 PING\r\n" if passed else b"")
    what = "passes unread, so no fault can hit it" if passed else "is refused: --elsewhere pass lets it by"
    assert warnings(tmp_path) == [f"what goes to {where} is neither TLS nor HTTP: it {what}"]
    assert capsys.readouterr().err.startswith("warning: what goes to ")


def test_a_port_in_use_is_said_and_nothing_is_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(OSError, match="Address already in use: choose another --proxy-port"),
            standing(tmp_path, ["api.test"], elsewhere="pass", proxy_port=port),
        ):
            pass
    assert not [*tmp_path.iterdir()]


def test_a_key_is_never_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    with (
        shop() as server,
        standing(tmp_path / "logs", [f"api.test={server.url}"], elsewhere="pass") as running,
        program(running.told) as client,
    ):
        assert len(client.get("https://api.test/big").content) == 3_000_002  # more than a connection holds
        written = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert Path(running.told["SSL_CERT_FILE"]) in written
        assert not [path for path in written if b"PRIVATE KEY" in path.read_bytes()]
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_handshake_that_ended_otherwise_is_told_in_its_own_words() -> None:
    assert _explain_handshake_failure(ValueError("it is no name")) == "it is no name"


def test_a_hosts_whole_name_with_its_dot_is_the_same_host(tmp_path: Path) -> None:
    with (
        shop() as server,
        standing(tmp_path, [f"api.test={server.url}"], elsewhere="refuse") as running,
        httpx.Client(proxy=running.told["HTTP_PROXY"], trust_env=False) as client,
    ):
        for host in ("api.test", "api.test."):
            assert client.get(f"http://{host}/price").json()["path"] == "/price"
    assert [event.target for _, event in history(tmp_path).find_events(CallFinished)] == ["api.test"] * 2


def test_what_goes_to_a_host_that_nobody_named_is_passed_on_as_it_comes(tmp_path: Path) -> None:
    """The service answers before the program has sent all of its request."""
    with (
        socket.create_server(("127.0.0.1", 0)) as service,
        standing(tmp_path, ["api.test"], elsewhere="pass") as running,
    ):
        port, proxy = service.getsockname()[1], urlsplit(running.told["HTTP_PROXY"])
        head = f"POST http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n\r\n"
        with socket.create_connection((proxy.hostname or "", proxy.port or 0), 30) as program:
            program.sendall(head.encode() + b"first")
            line, _ = service.accept()
            with line:
                line.settimeout(30)
                got = b""
                while not got.endswith(b"first"):
                    got += line.recv(4096)
                line.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
                answer = b""
                while not answer.endswith(b"no"):
                    answer += program.recv(4096)
    assert answer.startswith(b"HTTP/1.1 401 ")
