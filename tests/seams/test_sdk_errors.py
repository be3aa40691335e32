"""The SDKs of Groq, OpenAI and Anthropic under each fault, synchronous and asynchronous, whole and streamed: what they
raise, and how often they ask. All of a row is one trial, with a host for each client."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.events import CallFinished, FaultWitnessed
from tests.seams import sdk_table
from tests.seams.sdk_table import ANSWER, KINDS, NOTHING, PART, SAID, SDKS, TABLE, Cell, Row
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

CLIENTS = {
    "groq": ("Groq", "AsyncGroq"), "openai": ("OpenAI", "AsyncOpenAI"), "anthropic": ("Anthropic", "AsyncAnthropic")
}  # fmt: skip
WAYS = [(sdk, kind, waits) for sdk in SDKS for kind in KINDS for waits in (False, True)]
"""The SDK, the kind of answer, and True for its asynchronous client."""
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "sdk-errors.md"
TIMEOUT_S = 20.0
Way = tuple[str, str, bool]


def host(way: Way) -> str:
    sdk, kind, waits = way
    return f"{sdk}.{kind}.{'async' if waits else 'sync'}.test"


def asked(way: Way) -> str:
    """The words of the model's answer, as its SDK gives them."""
    import importlib

    sdk, kind, waits = way
    client = getattr(importlib.import_module(sdk), CLIENTS[sdk][waits])(
        base_url=f"http://{host(way)}", api_key="none", timeout=TIMEOUT_S
    )
    wanted: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Do it."}]}
    if kind == "streamed":
        wanted["stream"] = True
    if sdk == "anthropic":
        wanted["max_tokens"] = 99
    ask = client.messages.create if sdk == "anthropic" else client.chat.completions.create

    def at_once() -> str:
        with client:
            if kind == "whole":
                return words(sdk, ask(**wanted))
            with ask(**wanted) as stream:
                return "".join(piece(sdk, event) for event in stream)

    async def in_a_loop() -> str:
        async with client:
            if kind == "whole":
                return words(sdk, await ask(**wanted))
            async with await ask(**wanted) as stream:
                return "".join([piece(sdk, event) async for event in stream])

    return asyncio.run(in_a_loop()) if waits else at_once()


def words(sdk: str, reply: Any) -> str:
    return str(reply.content[0].text if sdk == "anthropic" else reply.choices[0].message.content)


def piece(sdk: str, event: Any) -> str:
    if sdk == "anthropic":
        return str(event.delta.text) if event.type == "content_block_delta" else ""
    return (event.choices[0].delta.content or "") if event.choices else ""


def outcome(way: Way) -> str:
    """The class of what the SDK raises, with its package if that is another one; else the kind of its answer."""
    try:
        said = asked(way)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        package = type(error).__module__.partition(".")[0]
        name = type(error).__name__
        return name if package in (way[0], "builtins") else f"{package}.{name}"
    if not said:
        return NOTHING
    return ANSWER if said == SAID else PART if SAID.startswith(said) else said


def seen(row: Row) -> tuple[dict[Way, Cell], list[str]]:
    """The outcome for each client, and the hosts whose clients met the fault."""
    hosts = [host(way) for way in WAYS]
    trial = lab.run(
        lambda _: {way: outcome(way) for way in WAYS},
        "ask",
        services={name: lab.scripted([SAID]) for name in hosts},
        faults=[lab.inject(row.fault, hosts, **row.params)],
        twin=False,
    )
    assert trial.error is None, trial.story()
    requests = Counter(event.target for _, event in trial.history.find_events(CallFinished))
    met = [event.target for _, event in trial.history.find_events(FaultWitnessed)]
    return {way: (trial.answer[way], requests[host(way)]) for way in WAYS}, met


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_each_client_raises_and_retries_as_the_table_says(row: Row) -> None:
    found, met = seen(row)
    assert found == {(sdk, kind, waits): row.cell(sdk, kind) for sdk, kind, waits in WAYS}
    spared = {host(way) for way in WAYS if row.cell(*way[:2])[0] == ANSWER}
    assert Counter(met) == {host(way): found[way][1] for way in WAYS if host(way) not in spared}


def test_a_model_without_a_fault_is_asked_once() -> None:
    found, _ = seen(Row("server_error", (ANSWER, 1), params={"status": 500, "chance": 0}))
    assert set(found.values()) == {(ANSWER, 1)}


def test_the_page_holds_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == sdk_table.page(), f"python -m tests.seams.sdk_table > {PAGE}"
