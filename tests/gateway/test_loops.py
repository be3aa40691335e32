"""A request that comes back to a gateway over another one, or at once, ends there and is told in one line."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from chaoslab.core.events import CallFinished, LabWarning
from tests.free_ports import free_port
from tests.gateway.parts import history, shop, standing


def told(logs: Path) -> list[str]:
    return [event.message for _, event in history(logs).find_events(LabWarning)]


@pytest.mark.parametrize("over", [True, False])
def test_a_route_that_leads_back_is_a_loop(over: bool, tmp_path: Path, capsys: Any) -> None:
    here, there = free_port(), free_port()
    with (
        standing(tmp_path / "there", [f"crm=http://127.0.0.1:{here}/crm"], port=there),
        standing(tmp_path, [f"crm=http://127.0.0.1:{there if over else here}/crm"], port=here) as running,
    ):
        reply = httpx.post(f"{running.make_route_url('crm')}/orders", json={"order": 17}, timeout=20)
    words = "/crm/orders leads back to this gateway: a loop"
    assert (reply.status_code, reply.json()) == (508, {"error": words})
    assert told(tmp_path) == [words]
    assert capsys.readouterr().err == f"warning: {words}\n"
    assert {event.status for _, event in history(tmp_path).find_events(CallFinished)} == {508}


def test_proxies_that_ask_one_over_the_other_are_a_loop(tmp_path: Path, capsys: Any) -> None:
    with (
        standing(tmp_path / "there", ["api.test"], elsewhere="pass") as second,
        standing(tmp_path, ["api.test"], elsewhere="pass") as running,
    ):
        for one, other in ((running, second), (second, running)):
            one.shared.environment = {"ALL_PROXY": other.shared.proxy}
        with httpx.Client(proxy=running.shared.proxy, timeout=20) as client:
            with pytest.raises(httpx.ProxyError, match="502 Bad Gateway"):
                client.get("https://far.test/")
            reply = client.get("http://far.test/x")
    assert reply.status_code == 508
    words = [f"{where} leads back to this gateway: a loop" for where in ("far.test:443", "http://far.test/x")]
    assert [each for each in told(tmp_path) if "loop" in each] == words
    assert capsys.readouterr().err == "".join(f"warning: {each}\n" for each in words)


def test_a_service_sees_no_mark_where_no_loop_may_be(tmp_path: Path) -> None:
    with shop() as server, standing(tmp_path, [f"crm={server.url}"]) as running:
        assert "Chaoslab-Hop" not in httpx.get(f"{running.make_route_url('crm')}/x").json()["headers"]
