"""The embedded server says in one line what Toxiproxy ignores without a word, and ignores it too."""

import asyncio
import json
from typing import Any

import pytest

from chaoslab.base.dice import Dice
from chaoslab.wire.server._catalog import Catalog

UPSTREAM = {"name": "crm", "upstream": "127.0.0.1:9", "enabled": False}


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (UPSTREAM, ""),
        (UPSTREAM | {"toxics": []}, ""),
        (
            UPSTREAM | {"toxics": [{"type": "latency"}]},
            "toxiproxy: the toxics of the proxy 'crm' are ignored: add them with POST '/proxies/crm/toxics'\n",
        ),
        (
            UPSTREAM | {"upstream": "http://127.0.0.1:9"},
            "toxiproxy: the upstream 'http://127.0.0.1:9' is no host:port, so that every connection to it "
            "just ends\n",
        ),
    ],
)  # fmt: skip
def test_what_is_ignored_is_said(wish: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        await Catalog(Dice(1)).populate_proxies(json.dumps([wish]).encode())

    asyncio.run(story())
    assert capsys.readouterr().err == said


def test_a_proxy_that_is_populated_with_another_upstream_gives_its_place_to_a_new_one() -> None:
    async def story() -> None:
        catalog = Catalog(Dice(1))
        wish = UPSTREAM | {"enabled": True, "listen": "127.0.0.1:0"}
        (old,) = await catalog.populate_proxies(json.dumps([wish]).encode())
        moved = wish | {"listen": old.listen, "upstream": "127.0.0.1:10"}
        (new,) = await catalog.populate_proxies(json.dumps([moved]).encode())
        assert (old.enabled, new.enabled, new.listen, new.upstream) == (False, True, old.listen, "127.0.0.1:10")
        new.stop()

    asyncio.run(story())
