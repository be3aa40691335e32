"""What others wrote for Toxiproxy works with the embedded server: toxiproxy-python's own classes, and toxiproxy-cli."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from wire_parts import dial, echo, embedded, read_exactly, upstream


@pytest.fixture
def package() -> Iterator[Any]:
    """toxiproxy-python, pointed at an embedded server; its endpoint is one for the whole process, so it is put back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import toxiproxy
        from toxiproxy.api import APIConsumer
    before = (APIConsumer.host, APIConsumer.port)
    with embedded() as url:
        server = toxiproxy.Toxiproxy()
        server.update_api_consumer("127.0.0.1", int(url.rpartition(":")[2]))
        yield server
    server.update_api_consumer(*before)


def test_toxiproxy_python_does_all_that_it_can_do(package: Any) -> None:
    with upstream(echo) as address:
        assert package.running()
        assert package.version() == b'{"version": "2.12.0"}\n'
        proxy = package.create(name="p", upstream=address)
        proxy.add_toxic(type="latency", attributes={"latency": 5})
        assert {name: toxic.attributes for name, toxic in proxy.toxics().items()} == {
            "latency_downstream": {"latency": 5, "jitter": 0}
        }
        assert proxy.get_toxic("latency_downstream").type == "latency"
        with dial(proxy.listen) as connection:
            connection.sendall(b"x")
            assert read_exactly(connection, 1) == b"x"
        with proxy.down(), pytest.raises(ConnectionRefusedError):
            dial(proxy.listen)
        assert proxy.destroy_toxic("latency_downstream")
        assert package.populate([{"name": "q", "upstream": address, "listen": "127.0.0.1:0"}])[0].name == "q"
        assert sorted(package.proxies()) == ["p", "q"]
        assert package.reset()
        package.destroy_all()
        assert package.proxies() == {}


def test_toxiproxy_pythons_errors_arrive_as_such(package: Any) -> None:
    from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

    proxy = package.create(name="p", upstream="127.0.0.1:9")
    with pytest.raises(ProxyExists):
        package.create(name="p", upstream="127.0.0.1:9")
    with pytest.raises(InvalidToxic):
        proxy.add_toxic(type="latencey")
    with pytest.raises(NotFound):
        proxy.destroy_toxic("none")


def test_a_session_with_toxiproxy_cli() -> None:
    binary = shutil.which("toxiproxy-cli")
    if binary is None:
        pytest.skip("toxiproxy-cli is not on PATH")
    with embedded() as url:

        def cli(*words: str, fails: bool = False) -> str:
            done = subprocess.run(
                [binary, "--host", url, *words], capture_output=True, text=True, timeout=20, check=False
            )
            assert (done.returncode != 0) == fails, done.stdout + done.stderr
            return done.stdout + done.stderr

        assert "Created new proxy p" in cli("create", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:9", "p")
        add = ["toxic", "add", "--type", "latency", "--toxicName", "t"]
        assert "Added downstream latency toxic 't' on proxy 'p'" in cli(*add, "--attribute", "latency=100", "p")
        assert "already exists" in cli(*add, "p", fails=True)
        assert "jitter=0" in cli("inspect", "p")
        assert "Updated toxic 't' on proxy 'p'" in cli("toxic", "update", "--toxicName", "t", "-a", "jitter=7", "p")
        shown = cli("inspect", "p")
        assert "jitter=7" in shown
        assert "latency=100" in shown
        assert "Removed toxic 't' on proxy 'p'" in cli("toxic", "remove", "--toxicName", "t", "p")
        assert "now disabled" in cli("toggle", "p")
        assert "disabled" in cli("list")
        assert "Deleted proxy p" in cli("delete", "p")
        assert "not found" in cli("inspect", "p", fails=True)
