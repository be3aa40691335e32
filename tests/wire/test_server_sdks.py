"""Clients written for Toxiproxy work with the embedded server: toxiproxy-python's own classes."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.wire.wire_parts import dial, echo, embedded, read_exactly, upstream


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
