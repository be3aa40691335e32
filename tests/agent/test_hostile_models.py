"""A model that loops, says nothing, or says what no SDK expects: its prompt fails by a name, the next is answered."""

import json
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaoslab.agent.prompts import Prompt
from chaoslab.core import events
from chaoslab.core.exchange import Reply
from chaoslab.record.history import History
from chaoslab.seams.http.tags import AT_ONCE
from tests.agent.session_parts import PRICED, Told, session
from tests.cli_parts import chaoslab, free_base, prompts
from tests.seams.hostile_parts import Answer, Hostile, hostile, never, reply
from tests.seams.lab_parts import Heard, said
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

SDK_TRIES = 3
STEPS_MAX = 4


def completion(*choices: Any, **more: Any) -> bytes:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    whole = {"id": "c", "object": "chat.completion", "created": 0, "model": PRICED, "choices": choices, "usage": usage}
    return reply(json.dumps({**whole, **more}).encode())


def message(**fields: Any) -> bytes:
    return completion({"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": "stop"})


def calls(*arguments: Any, name: Any = "calculate") -> bytes:
    asked = [
        {"id": f"t{n}", "type": "function", "function": {"name": name, "arguments": one}}
        for n, one in enumerate(arguments)
    ]
    return message(content=None, tool_calls=asked)


def no(status: int, **headers: str) -> bytes:
    return reply(b'{"error": {"message": "unwell"}}', *(f"{k}: {v}" for k, v in headers.items()), status=f"{status} No")


def page(text: str) -> bytes:
    return reply(text.encode()).replace(b"application/json", b"text/html")


FINE = message(content="It is 42.")
UNUSED = "the model's reply could not be used: "
BOUND = f"stopped after {STEPS_MAX} model calls"
UNREAD = "the model called calculate with arguments that are no JSON: "


@dataclass(frozen=True)
class Case:
    """The model's answer to all it is asked; how its prompt fails; and after how many requests."""

    answer: bytes
    error_type: str
    error: str
    requests: int = 1


CASES = {
    "the same call for ever": Case(calls('{"expression": "6*7"}'), "loop", BOUND, STEPS_MAX),
    "an unknown tool for ever": Case(calls("{}", name="frobnicate"), "loop", BOUND, STEPS_MAX),
    "a tool without a name": Case(calls("{}", name=None), "loop", BOUND, STEPS_MAX),
    "arguments of a wrong type": Case(calls('{"expression": {"a": 1}}'), "loop", BOUND, STEPS_MAX),
    "arguments that the tool has not": Case(calls('{"expr": "6*7"}'), "loop", BOUND, STEPS_MAX),
    "no arguments": Case(calls(None), "loop", BOUND, STEPS_MAX),
    "an empty answer": Case(message(content=""), "empty", "the model gave an empty answer"),
    "no content": Case(message(content=None), "empty", "the model gave an empty answer"),
    "no choices": Case(completion(), "model", UNUSED),
    "no message": Case(completion({"index": 0, "message": None, "finish_reason": "stop"}), "model", UNUSED),
    "an empty object": Case(reply(b"{}"), "model", UNUSED),
    "a list": Case(reply(b"[]"), "model", UNUSED),
    "null": Case(reply(b"null"), "model", UNUSED),
    "an empty body": Case(reply(b""), "model", UNUSED),
    "content that is a number": Case(message(content=7), "model", UNUSED),
    "calls that are a text": Case(message(content=None, tool_calls="calculate"), "model", UNUSED),
    "a call of nothing": Case(message(content=None, tool_calls=[{"id": "1", "type": "function"}]), "model", UNUSED),
    "arguments that are no JSON": Case(calls("{6*7"), "model", UNREAD + "{6*7"),
    "arguments that never end": Case(calls("[" * 50_000), "model", UNREAD + "[[["),
    "arguments that are a list": Case(calls("[1]"), "model", UNUSED),
    "arguments that are an object": Case(calls({"expression": "6*7"}), "model", UNUSED),
    "arguments that no wire carries": Case(calls('{"expression": "\\ud800"}'), "model", UNUSED),
    "usage that is no number": Case(
        completion({"index": 0, "message": {"role": "assistant", "content": "42"}}, usage={"prompt_tokens": "many"}),
        "model", UNUSED,
    ),
    "half a JSON": Case(reply(b'{"id": "c", "choices": ['), "model", UNUSED),
    "brackets by the thousand": Case(reply(b"[" * 100_000), "model", UNUSED),
    "a page": Case(page("<html>Sign in</html>"), "model", UNUSED),
    "a plain text": Case(page("It is 42."), "model", UNUSED),
    "a redirect": Case(no(307, Location="http://127.0.0.1:9/"), "model", "APIStatusError: Error code: 307"),
    "no such model": Case(no(404), "model", "NotFoundError: Error code: 404"),
    "a key refused in mid-run": Case(no(401), "model", "AuthenticationError: Error code: 401"),
    "500 for ever": Case(no(500), "model", "InternalServerError: Error code: 500", SDK_TRIES),
    "429 for an hour": Case(no(429, **{"Retry-After": "3600"}), "model", "RateLimitError: Error code: 429", SDK_TRIES),
    "more than anybody can read": Case(reply(b" " * 5_000_000), "model", "(model: more than 4194304 bytes", SDK_TRIES),
    "an answer cut short": Case(reply(b'{"id"', length=99), "model", "(peer closed connection", SDK_TRIES),
    "no HTTP": Case(b"\x15\x03\x01\x00\x02\x02\x46", "model", "APIConnectionError: Connection error. (", SDK_TRIES),
    "nothing at all": Case(b"", "model", "(Server disconnected", SDK_TRIES),
}  # fmt: skip


def answering(by_prompt: dict[str, Answer]) -> Answer:
    """A model that answers each prompt in its own way, and every other well."""

    def answer(server: Hostile, connection: socket.socket) -> None:
        heard = server.heard[-1]
        found = by_prompt.get(prompt_of(heard), FINE) if heard.method == "POST" else no(404)
        if isinstance(found, bytes):
            server.say(connection, found)
        else:
            found(server, connection)

    return answer


def prompt_of(heard: Heard) -> str:
    return next(str(m["content"]) for m in heard.json["messages"] if m["role"] == "user")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """One run over all of them; after each, a prompt that the model answers well."""
    asked = [Prompt(prompt=text) for kind in CASES for text in (kind, f"after {kind}")]
    model = [answering({kind: case.answer for kind, case in CASES.items()})]
    return session(
        tmp_path_factory.mktemp("models"),
        [],
        prompts=asked,
        model=model,
        prompt_limit=0,
        steps_max=STEPS_MAX,
        deadline_s=10.0,
    )


@pytest.mark.parametrize("kind", CASES)
def test_its_prompt_fails_by_a_name_and_the_next_one_is_answered(told: Told, kind: str) -> None:
    case = CASES[kind]
    (attempt,) = [event for event in told.of(events.PromptAttempt) if event.prompt == kind]
    assert (attempt.status, attempt.error_type, attempt.response) == ("error", case.error_type, "")
    assert case.error in attempt.error
    assert len(attempt.error) <= 500
    (ended,) = [event for event in told.of(events.PromptFinished) if event.prompt == kind]
    assert (ended.status, ended.error_type) == ("failed", case.error_type)
    assert sum(prompt_of(heard) == kind for heard in told.model) == case.requests
    (after,) = [event for event in told.of(events.PromptFinished) if event.prompt == f"after {kind}"]
    assert (after.status, after.answer) == ("ok", "It is 42.")


def test_a_model_that_never_answers_is_left_at_the_deadline_of_each_try(tmp_path: Path) -> None:
    asked = [Prompt(prompt="never"), Prompt(prompt="after")]
    told = session(tmp_path, [], prompts=asked, model=[answering({"never": never})], prompt_limit=0, deadline_s=15.0)
    assert told.errors == ["model", "none"]
    assert "APITimeoutError" in told.of(events.PromptAttempt)[0].error
    made = [call for call in told.of(events.CallFinished) if call.target == "model"]
    assert [call.error for call in made] == ["timed_out"] * SDK_TRIES + [None]
    assert [round(call.duration_s) for call in made] == [15] * SDK_TRIES + [0]


def test_hundreds_of_calls_in_one_message_wait_in_line(tmp_path: Path) -> None:
    busy, most = 0, 0

    def answer(heard: Heard) -> Reply:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        threading.Event().wait(1)
        busy -= 1
        return said({"expression": heard.json["expression"], "result": 42, "text": "42"})

    hundreds = calls(*(json.dumps({"expression": f"{n}*7"}) for n in range(200)))
    told = session(tmp_path, [], model=[hundreds, FINE], sums=answer, deadline_s=10.0)
    assert told.errors == ["none"]
    assert sorted(heard.json["expression"] for heard in told.tools["calculator"]) == sorted(
        f"{n}*7" for n in range(200)
    )
    made = [call for call in told.of(events.CallFinished) if call.target == "calculator"]
    assert Counter((call.ok, call.via) for call in made) == {(True, "proxy"): 200}
    assert most == AT_ONCE


def test_nothing_of_it_is_seen_on_the_terminal_but_which_prompts_failed(tmp_path: Path) -> None:
    odd = {
        "a": completion(),
        "b": message(content=[{"type": "text", "text": "half \ud83d a face"}]),
        "c": calls("{6*7"),
        "d": page("<html>"),
    }
    with hostile(answering(dict(odd))) as model:
        settings = (f"MODEL_URL={model.url}", f"BASE_PORT={free_base()}", "TOXIC_PROB=0", "PROMPT_LIMIT=0")
        done = chaoslab(tmp_path, "lab", prompts(tmp_path, [*odd, "e"]), *settings)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("prompts 1, 2, 3, 4, 5: nothing to judge the answers by, since no facts or effects")
    assert [line.split()[2] for line in done.stdout.splitlines() if line.startswith("trial ")] == [
        "no", "answered", "no", "no", "answered",
    ]  # fmt: skip
    answers = [
        event.answer for _, event in History.read(tmp_path / "logs" / "latest").find_events(events.PromptFinished)
    ]
    assert answers == ["", "half ? a face", "", "", "It is 42."]
    shown = chaoslab(tmp_path, "show", "latest")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "half ? a face" in shown.stdout
