"""No web page reaches a server of the lab's, neither by a foreign origin nor by a name of its own that leads here."""

from pathlib import Path

import pytest
from werkzeug.test import Client

from chaoslab.base.web_pages import find_refusal_reason
from chaoslab.flask_tools.app import create_app
from chaoslab.model import endpoint

HERE = [
    "127.0.0.1:8474", "localhost:8474", "LOCALHOST", "[::1]:8474", "weather:5001", "toxiproxy", "192.168.0.7:8474",
    "host.docker.internal:8474", "box.local", "x.localhost:1", "lab.svc.cluster.local:80", None, "",
]  # fmt: skip
ELSEWHERE = [
    "evil.com",
    "evil.com:8474",
    "127.0.0.1.nip.io:8474",
    "localhost.evil.com",
    "evil.com.:8474",
    "EVIL.COM",
    "[evil.com",
]


@pytest.mark.parametrize("host", HERE)
def test_a_client_on_this_machine_or_in_a_container_passes(host: str | None) -> None:
    assert find_refusal_reason(host, None) == ""


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_name_that_leads_here_does_not(host: str) -> None:
    assert find_refusal_reason(host, None) == find_refusal_reason(host, f"http://{host}") == "host not allowed"


@pytest.mark.parametrize(
    "origin", ["http://evil.com", "null", "", "http://localhost:3000", "https://127.0.0.1", "file://"]
)
def test_another_server_s_page_does_not(origin: str) -> None:
    assert find_refusal_reason("127.0.0.1:8474", origin) == "origin not allowed"


def test_a_page_of_the_server_s_own_passes() -> None:
    assert find_refusal_reason("127.0.0.1:8474", "http://127.0.0.1:8474") == ""


def test_a_tool_has_no_effect_for_a_page_and_answers_in_its_own_format(tmp_path: Path) -> None:
    client = create_app("messaging", logs=tmp_path, now="2026-07-01T09:00:00+00:00").test_client()
    words = '{"channel": "#general", "text": "hi"}'
    page = {"Origin": "http://evil.com", "Content-Type": "text/plain"}
    reply = client.post("/api/chat.postMessage", data=words, headers=page)
    assert (reply.status_code, reply.json) == (
        403,
        {"ok": False, "error": "fatal_error", "detail": "origin not allowed"},
    )
    assert client.get("/tools", headers={"Host": "evil.com"}).status_code == 403
    assert client.get("/tools", headers={"Host": "messaging:5005"}).status_code == 200
    assert not list(tmp_path.iterdir())


def test_nor_does_the_offline_model_answer_one() -> None:
    client = Client(endpoint.create_app())
    assert client.get("/v1/models").status_code == 200
    reply = client.get("/v1/models", headers={"Origin": "http://evil.com"})
    assert (reply.status_code, reply.json) == (
        403,
        {"error": {"message": "origin not allowed", "type": "invalid_request_error"}},
    )
