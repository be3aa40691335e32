"""A tool that answers garbage, too much, too slowly or never: the model is told, the log says it, the run goes on."""

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain_core.tools import ToolException

from chaoslab.agent.config import Config
from chaoslab.agent.tools import Toolbox
from chaoslab.base.clock import system
from chaoslab.base.identity import TrialId
from chaoslab.config.settings import Settings
from chaoslab.core import events
from chaoslab.core.plan import Plan
from chaoslab.flask_tools.calculator import SERVICE
from chaoslab.record.history import History
from chaoslab.wire.http1 import BODY_MAX
from tests.seams import virtual_parts
from tests.seams.hostile_parts import Answer, Hostile, for_ever, hostile, hostile_host, never, reply
from tests.seams.lab_parts import Bench, bench, embedded
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

DEADLINE_S = 2.5
FINE = reply(b'{"expression": "6*7", "result": 42, "text": "42"}')
MEGABYTE = b" " * (1 << 20)
CHUNKED = "Transfer-Encoding: chunked"
BOMB = gzip.compress(bytes(64 << 20), 1)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass(frozen=True)
class Use:
    """One use of a tool: what the model was told, the calls that the log has of it, what the service could send."""

    said: str
    calls: list[events.CallFinished]
    sent: int


async def worked(
    lab: Bench | virtual_parts.Bench, server: Hostile, uses: int, chosen: Mapping[str, int | str]
) -> list[Use]:
    """With that lab, over that server."""
    made, seam = [], lab.seam
    settings = Settings(**{"tool_limit": 0, "fallback": "none", **chosen})  # type: ignore[arg-type]
    config = Config(retry_wait_s=0.001)
    toolbox = Toolbox(lab.client, seam.targets, {"calculator": SERVICE}, config, settings, seam.log, system)
    with seam.open_trial(TrialId(lab.run.name, 1)):
        for _ in range(uses):
            before, logged = server.sent, len(finished(lab))
            try:
                said = await toolbox.call_tool(SERVICE, SERVICE.tools[0], {"expression": "6*7"})
            except ToolException as error:
                said = str(error)
            made.append(Use(said, finished(lab)[logged:], server.sent - before))
    return made


def used(folder: Path, *answers: Answer, uses: int, **chosen: int | str) -> list[Use]:
    """The calculator, used so often over a service that answers so in turn."""

    async def story(url: str, server: Hostile) -> list[Use]:
        sites = {"calculator": server.address}
        async with bench(folder, url, Plan(1), sites, deadline_s=DEADLINE_S) as lab:
            return await worked(lab, server, uses, chosen)

    with embedded() as url, hostile(*answers) as server:
        return asyncio.run(story(url, server))


def used_virtually(folder: Path, *answers: Answer, uses: int) -> list[Use]:
    """The same in virtual time."""

    async def story() -> list[Use]:
        server = hostile_host("calculator", *answers)
        async with virtual_parts.bench(folder, Plan(1), ["calculator"], deadline_s=DEADLINE_S) as lab:
            return await worked(lab, server, uses, {})

    return virtual_parts.virtually(story)


def finished(lab: Bench | virtual_parts.Bench) -> list[events.CallFinished]:
    return [event for _, event in History.read(lab.run.folder).find_events(events.CallFinished)]


NOT_HTTP = "an answer that is not HTTP as it should be"
NOT_JSON = "calculator answered what is not JSON: "
TOO_MUCH = f"more than {BODY_MAX} bytes"
GARBAGE: dict[str, tuple[Answer, str, str]] = {
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", "closed", "calculator did not answer: Server disconnected"),
    "no text": (b"\x15\x03\x01\x00\x02\x02\x46", "garbled", "calculator did not answer: "),
    "nothing": (b"", "closed", ""),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", "closed", ""),
    "a status that is none": (b"HTTP/1.1 okay\r\n\r\n{}", "garbled", ""),
    "a length that is none": (reply(b"{}", length="some"), "garbled", ""),
    "two lengths": (reply(b"{}", "Content-Length: 9"), "garbled", ""),
    "a length too long": (reply(b'{"result": 42}', length=99), "closed", ""),
    "a length too short": (reply(b'{"result": 42}', length=9), "status 200, and no JSON", NOT_JSON + '{"result"'),
    "a chunk that is none": (reply(b"zz\r\n{}\r\n", CHUNKED, length=None), "garbled", ""),
    "headers for ever": (for_ever(b"X-More: and more\r\n", first=b"HTTP/1.1 200 OK\r\n"), "garbled", ""),
    "a header for ever": (for_ever(b"more" * 256, first=b"HTTP/1.1 200 OK\r\nX-Long: "), "garbled", ""),
    "no JSON": (reply(b"{'result': 42}"), "status 200, and no JSON", NOT_JSON + "{'result': 42}"),
    "a page": (reply(b"<html>Sign in</html>"), "status 200, and no JSON", NOT_JSON + "<html>Sign in</html>"),
    "no UTF-8": (reply(b'{"text": "\xff\xfe"}'), "status 200, and no JSON", NOT_JSON + '{"text": "\ufffd\ufffd"}'),
    "brackets by the thousand": (reply(b"[" * 100_000), "status 200, and no JSON", NOT_JSON + "[[["),
    "a redirect": (
        reply(b"", "Location: http://127.0.0.1:9/", status="302 Found"),
        "status 302",
        "calculator answered 302: ",
    ),
    "no gzip": (reply(b'{"result": 42}', "Content-Encoding: gzip"), "garbled", NOT_HTTP),
    "half a gzip": (reply(gzip.compress(b'{"result": 42}')[:-9], "Content-Encoding: gzip"), "garbled", NOT_HTTP),
    "a packing that nobody asked for": (reply(b"\x0b\x02", "Content-Encoding: br"), "garbled", NOT_HTTP),
    "a gzip bomb": (reply(BOMB, "Content-Encoding: gzip"), "too_large", TOO_MUCH),
    "a bomb in a bomb": (reply(gzip.compress(BOMB, 1), "Content-Encoding: gzip, gzip"), "garbled", NOT_HTTP),
    "a gigabyte": (for_ever(MEGABYTE, first=reply(b"", length=1 << 30)), "too_large", TOO_MUCH),
    "a gigabyte in chunks": (for_ever(chunk(MEGABYTE), first=reply(b"", CHUNKED, length=None)), "too_large", TOO_MUCH),
    "a gigabyte to the end": (for_ever(MEGABYTE, first=reply(b"", length=None)), "too_large", TOO_MUCH),
}
SLOW: dict[str, Answer] = {
    "a byte now and then": for_ever(b" ", first=reply(b"", length=1 << 20), pause_s=0.05),
    "interim answers for ever": for_ever(b"HTTP/1.1 100 Continue\r\n\r\n", pause_s=0.01),
    "never": never,
}


@pytest.fixture(scope="module")
def garbage(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Use, Use]]:
    """All of it in one run: each hostile answer, and the use after it, which is answered well."""
    answers = [answer for hostile_one, *_ in GARBAGE.values() for answer in (hostile_one, FINE)]
    uses = used(tmp_path_factory.mktemp("garbage"), *answers, uses=len(answers))
    return dict(zip(GARBAGE, zip(uses[::2], uses[1::2], strict=True), strict=True))


def check(bad: Use, good: Use, error: str) -> None:
    """The bad use is one failed call that the model is told of; the good one is not the worse for it."""
    (call,) = bad.calls
    assert (call.ok, call.error, call.via) == (False, error, "proxy")
    assert bad.said.startswith("Error: ")
    assert len(bad.said) < 600
    (call,) = good.calls
    assert (call.ok, json.loads(good.said)["result"]) == (True, 42)


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_hostile_answer_is_one_failed_call_and_the_next_is_fine(
    garbage: dict[str, tuple[Use, Use]], kind: str
) -> None:
    bad, good = garbage[kind]
    _, error, text = GARBAGE[kind]
    check(bad, good, error)
    assert text in bad.said
    assert bad.sent < 8 * BODY_MAX


@pytest.mark.parametrize("kind", SLOW)
def test_the_deadline_bounds_the_whole_attempt(tmp_path: Path, kind: str) -> None:
    bad, good = used_virtually(tmp_path, SLOW[kind], FINE, uses=2)
    check(bad, good, "timed_out")
    assert "calculator: timed out after 2.5 s" in bad.said
    assert bad.calls[0].duration_s == pytest.approx(DEADLINE_S, abs=1e-3)


def test_the_deadline_bounds_an_attempt_over_sockets_as_well(tmp_path: Path) -> None:
    bad, good = used(tmp_path, SLOW["a byte now and then"], FINE, uses=2)
    check(bad, good, "timed_out")
    assert "calculator: timed out after 2." in bad.said
    assert bad.calls[0].duration_s >= DEADLINE_S


def test_a_bomb_is_not_unpacked_beyond_the_bound(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        used(tmp_path, reply(BOMB, "Content-Encoding: gzip"), uses=1)
        assert tracemalloc.get_traced_memory()[1] < 8 * BODY_MAX < 64 << 20
    finally:
        tracemalloc.stop()


def test_what_is_garbage_once_is_asked_again_under_the_same_id(tmp_path: Path) -> None:
    (use,) = used(tmp_path, reply(b"<html>"), FINE, uses=1, tool_limit=1)
    bad, good = use.calls
    assert json.loads(use.said)["result"] == 42
    assert (bad.request_id, bad.ok, good.request_id, good.ok) == (good.request_id, False, bad.request_id, True)


def test_packed_answers_are_read_as_ever(tmp_path: Path) -> None:
    (use,) = used(tmp_path, reply(gzip.compress(b'{"result": 42}'), "Content-Encoding: gzip"), uses=1)
    assert json.loads(use.said) == {"result": 42}


def test_text_that_no_model_could_be_sent_is_mended(tmp_path: Path) -> None:
    (use,) = used(tmp_path, reply(b'{"text": "half \\ud83d a face"}'), uses=1)
    assert json.loads(use.said.encode()) == {"text": "half ? a face"}
