"""A service behind a proxy that the environment names is asked over it; one on this machine never is."""

import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import trustme

from chaoslab.core.events import CallFinished
from chaoslab.execution.upstreams import make_no_proxy_variables
from chaoslab.seams.gateway import _upstream as upstream
from chaoslab.seams.gateway.routes import ensure_reachable, parse_routes
from tests.gateway.parts import history, shop, standing

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A proxy that answers for all hosts itself; `asked` holds the heads that it was sent, `says` its own status."""
    authority, found = trustme.CA(), SimpleNamespace(asked=[], says=b"200 OK")
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("api.test").configure_cert(theirs)
    authority.configure_trust(ours)
    monkeypatch.setattr(upstream, "_make_tls_context", lambda: ours)

    def serve(line: socket.socket) -> None:
        with suppress(OSError), line:
            found.asked.append(line.recv(65536))
            if found.asked[-1].startswith(b"CONNECT "):
                line.sendall(b"HTTP/1.1 " + found.says + b"\r\n\r\n")
                if found.says != b"200 OK":
                    return
                with theirs.wrap_socket(line, server_side=True) as inner:
                    found.asked.append(inner.recv(65536))
                    inner.sendall(OK)
                return
            line.sendall(OK)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        found.url = f"http://me:pass-of-a-user@127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", found.url)
        monkeypatch.setenv("http_proxy", found.url)
        yield found
        listener.shutdown(socket.SHUT_RDWR)


def test_both_schemes_go_over_it_and_its_password_is_not_written_down(proxy: Any, tmp_path: Path) -> None:
    with (
        shop() as server,
        standing(tmp_path, ["a=https://api.test/v1", "b=http://b.test", f"c={server.url}"]) as running,
        httpx.Client(trust_env=False) as client,
    ):
        assert (
            client.get(running.make_route_url("a") + "/x").text
            == client.get(running.make_route_url("b") + "/y?z").text
            == "ok"
        )
        assert client.get(running.make_route_url("c") + "/price").json()["path"] == "/price"
        proxy.says = b"403 Forbidden"
        refused = client.get(running.make_route_url("a") + "/x")
    assert (refused.status_code, refused.json()["error"].partition(": ")[2]) == (502, "the proxy 127.0.0.1 says 403")
    firsts = [each.split(b"\r\n")[0] for each in proxy.asked[:3]]
    assert firsts == [b"CONNECT api.test:443 HTTP/1.1", b"GET /v1/x HTTP/1.1", b"GET http://b.test/y?z HTTP/1.1"]
    assert [b"Proxy-Authorization: Basic " in each for each in proxy.asked[:3]] == [True, False, True]
    assert "pass-of-a-user" not in (tmp_path / "latest" / "info.log").read_text()


@pytest.mark.parametrize("route", ["api.test", "b.test"])  # it is a route, or passes unread
def test_the_proxy_of_programs_asks_over_it_too(route: str, proxy: Any, tmp_path: Path) -> None:
    with standing(tmp_path, [route], elsewhere="pass") as running:
        believed = upstream._make_tls_context()
        believed.load_verify_locations(running.told["SSL_CERT_FILE"])
        with httpx.Client(proxy=running.told["HTTPS_PROXY"], verify=believed, trust_env=False) as client:
            assert client.get("https://api.test/x").text == "ok"
            proxy.says = b"403 Forbidden"
            with suppress(httpx.ProxyError):  # the answer to its CONNECT
                assert client.get("https://api.test:444/x").status_code == 502
    assert proxy.asked[0].startswith(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: ")
    assert [event.target for _, event in history(tmp_path).find_events(CallFinished)] == [route] * 2 * (
        route == "api.test"
    )


def test_a_proxy_that_answers_garbage_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer() -> None:
        for _ in range(2):
            with listener.accept()[0] as line:
                line.recv(65536)
                line.sendall(b"hello\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, daemon=True).start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listener.getsockname()[1]}")
        with standing(tmp_path, ["a=https://api.test"], elsewhere="pass") as running:
            said = httpx.get(running.make_route_url("a"), trust_env=False).json()["error"]
            with pytest.raises(httpx.ProxyError, match="502"):
                httpx.get("https://b.test", proxy=running.told["HTTPS_PROXY"], trust_env=False)
    assert said == "the upstream a (https://api.test) gave no answer: the proxy 127.0.0.1 says hello"


@pytest.mark.parametrize(
    ("given", "sent"),
    [("me:word@", b"me:word"), ("me@", b"me:"), ("m%40e:w%3Ao%2Frd@", b"m@e:w:o/rd"), ("", None), (":word@", None)],
)
def test_a_proxy_is_sent_the_name_and_the_password_of_its_address(given: str, sent: bytes | None) -> None:
    fields = dict(upstream.build_proxy_credentials(urlsplit(f"http://{given}proxy.test:3128")))
    assert fields == ({} if sent is None else {"Proxy-Authorization": "Basic " + b64encode(sent).decode()})


def test_a_program_is_told_that_this_machine_needs_none() -> None:
    assert make_no_proxy_variables({"NO_PROXY": "inner.test"}) == {
        "NO_PROXY": "inner.test,127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"
    }  # fmt: skip


def test_what_is_elsewhere_is_not_asked_whether_it_is_there() -> None:
    far, near = parse_routes(["a=https://nowhere.invalid", "b=http://127.0.0.1:1"]).values()
    ensure_reachable(far, only_here=True)
    for where, only_here in ((far, False), (near, True)):
        with pytest.raises(LookupError, match=r"^the upstream . \(.*\) cannot be reached: .*: start it first$"):
            ensure_reachable(where, only_here=only_here)
