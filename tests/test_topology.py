"""One table of services and ports, moved together by the base."""

import pytest

from chaoslab.config.topology import MODEL, SERVICES, Ports


def test_the_ports_are_those_that_the_readme_promises() -> None:
    ports = Ports()
    order = ["search", "weather", "movies", "calendar", "calculator", "messaging", "translator", MODEL]
    assert [ports.get_service_port(target) for target in order] == list(range(5000, 5008))
    assert [ports.get_proxy_port(target) for target in order] == list(range(6000, 6008))
    assert (ports.manager_port, ports.toxiproxy_port) == (8000, 8474)
    assert list(SERVICES)[:7] == order[:-1]


@pytest.mark.parametrize("base", [1024, 5000, 15000, 60000])
def test_the_base_moves_them_all_and_no_two_meet(base: int) -> None:
    ports = Ports(base).list_all_ports()
    assert {name: port - base for name, port in ports.items()} == {
        name: port - 5000 for name, port in Ports().list_all_ports().items()
    }
    assert len(set(ports.values())) == len(ports) == 2 * (len(SERVICES) + 1) + 3
    assert max(ports.values()) < 65536


def test_no_service_is_called_as_the_model() -> None:
    assert MODEL not in SERVICES
    with pytest.raises(KeyError):
        Ports().get_service_port("nobody")
