"""A change that cannot be made in time is answered, and the next one is made."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from chaoslab.base.dice import Dice
from chaoslab.wire.server._catalog import Catalog
from chaoslab.wire.server.rest import RestRequest, answer_request
from tests.wire.wire_parts import DEADLINE_S

NAMED = b'{"name":"p","upstream":"127.0.0.1:9","listen":"localhost:0"}'


def test_a_lookup_that_hangs_is_answered_with_503_and_blocks_nobody_behind_it() -> None:
    """Names are looked up in the loop's threads; here the only one is taken."""
    free = threading.Event()

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        taken = loop.run_in_executor(None, free.wait, DEADLINE_S)
        catalog = Catalog(Dice(1))
        reply = await answer_request(catalog, RestRequest("POST", "/proxies", NAMED), within_s=0.05)
        assert reply.status == 503
        assert b"took longer than 0.05 s" in reply.body
        assert "X-Toxiproxy-Request-Id" in reply.headers
        numbered = await answer_request(
            catalog, RestRequest("POST", "/proxies", NAMED.replace(b"localhost", b"127.0.0.1"))
        )
        assert numbered.status == 201
        assert await answer_request(catalog, RestRequest("DELETE", "/proxies/p"))
        free.set()
        await taken
        named = await answer_request(catalog, RestRequest("POST", "/proxies", NAMED))
        assert named.status == 201
        catalog.stop_proxies()

    asyncio.run(story())
