"""No web page reaches a server of the lab's, neither by a foreign origin nor by a name of its own that leads here."""

from __future__ import annotations

import pytest

from chaoslab.base.web_pages import refused

HERE = [
    "127.0.0.1:8474", "localhost:8474", "LOCALHOST", "[::1]:8474", "weather:5001", "toxiproxy", "192.168.0.7:8474",
    "host.docker.internal:8474", "box.local", "x.localhost:1", "lab.svc.cluster.local:80", None, "",
]  # fmt: skip
ELSEWHERE = ["evil.com", "evil.com:8474", "127.0.0.1.nip.io:8474", "localhost.evil.com", "evil.com.:8474", "EVIL.COM"]


@pytest.mark.parametrize("host", HERE)
def test_a_client_on_this_machine_or_in_a_container_passes(host: str | None) -> None:
    assert refused(host, None) == ""


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_name_that_leads_here_does_not(host: str) -> None:
    assert refused(host, None) == refused(host, f"http://{host}") == "host not allowed"


@pytest.mark.parametrize(
    "origin", ["http://evil.com", "null", "", "http://localhost:3000", "https://127.0.0.1", "file://"]
)
def test_another_server_s_page_does_not(origin: str) -> None:
    assert refused("127.0.0.1:8474", origin) == "origin not allowed"


def test_a_page_of_the_server_s_own_passes() -> None:
    assert refused("127.0.0.1:8474", "http://127.0.0.1:8474") == ""
