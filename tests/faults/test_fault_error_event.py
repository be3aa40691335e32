"""The stream says in its middle that the answer has failed, behind a status of success."""

from __future__ import annotations

from typing import Any

import pytest

import chaoslab as lab
from chaoslab.core.stream import json_of
from chaoslab.faults.stream.cut import EVENTS_MAX
from chaoslab.faults.stream.error_event import ErrorEvent
from tests.faults.answer_parts import FORMATS, pipes_over, retold, streamed
from tests.faults.fault_parts import Target, meet
from tests.seams.stream_parts import Timetable, drawn_over, events, read

SAYS: dict[str, dict[str, Any]] = {
    "chat": {"error": {"type": "server_error"}},
    "responses": {"type": "error", "code": "server_error", "sequence_number": 2},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error"}},
    "gemini": {"error": {"code": 503, "status": "UNAVAILABLE"}},
}
"""A part of the event of each format."""


@pytest.mark.parametrize("name", FORMATS)
def test_the_stream_ends_with_the_providers_own_event_for_an_error(name: str) -> None:
    sent = [event.replace(b"\r\n", b"\n") for event in streamed(name, "It is warm in Oslo, and it stays so.")]
    notes = read(Timetable(sent), *pipes_over(ErrorEvent(2), name))
    *before, last = notes.body.removesuffix(b"\n\n").split(b"\n\n")
    assert (before, notes.error) == ([event.removesuffix(b"\n\n") for event in sent[:2]], None)
    said = json_of(last + b"\n\n")
    for key, value in SAYS[name].items():
        assert said[key].items() >= value.items() if isinstance(value, dict) else said[key] == value
    assert last.startswith(b"event: error\n") or name == "gemini"


def test_it_is_met_by_a_reader_who_comes_so_far() -> None:
    sent = streamed("chat", "It is warm in Oslo.")
    assert retold(ErrorEvent(2), "chat", sent, stops_after=5).evidence == "an error came in the stream after 2 events"
    assert retold(ErrorEvent(2), "chat", sent, stops_after=2).evidence is None


def test_a_shorter_stream_has_nothing_to_break() -> None:
    short = read(Timetable(events(2)), *pipes_over(ErrorEvent(3), "chat"))
    assert short.body == b"".join(events(2))


def test_a_whole_reply_passes_unchanged() -> None:
    met = meet(ErrorEvent(2), target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    assert drawn_over(ErrorEvent()) == {ErrorEvent(n) for n in range(1, EVENTS_MAX + 1)}


@pytest.mark.parametrize("host", ["api.openai.com", "api.anthropic.com"])
def test_an_sdk_raises_it(host: str) -> None:
    import anthropic
    import openai

    def chat(_: str) -> str:
        asked: Any = [{"role": "user", "content": "What is 17 * 3?"}]
        words = ""
        try:
            if host == "api.openai.com":
                chunks: Any = openai.OpenAI(api_key="none").chat.completions.create(
                    model="gpt-5", messages=asked, stream=True
                )  # fmt: skip
                for chunk in chunks:
                    words += chunk.choices[0].delta.content or ""
            else:
                client = anthropic.Anthropic(api_key="none")
                with client.messages.stream(model="claude", max_tokens=99, messages=asked) as told:
                    words = told.get_final_text()
        except (openai.APIError, anthropic.APIError) as error:
            return f"{type(error).__name__}: {error}"
        return words

    fault = lab.inject("error_event", host, after_events=2)
    trial = lab.run(chat, "x", services={host: lab.offline_model()}, faults=[fault], twin=False)
    said = {"api.openai.com": "APIError: The server had an error", "api.anthropic.com": "Overloaded"}[host]
    assert said in str(trial.answer)
