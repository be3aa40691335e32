"""However long and strange a request is, it is read in a time that grows with its length, or refused as too long."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from seven_tools import TOOLS
from werkzeug.test import Client

from chaoslab.model.chat import REQUEST_MAX, answer
from chaoslab.model.endpoint import create_app

LIMIT_S = 25
"""All that is read here takes some 3 s. One rule that takes the square of the length takes minutes."""
PIECES = (
    "7", "a", "A", "_", " ", "\n", "'", '"', "`", "“", "‘a ", "„", ",", "(", ")", "()", "-", "-1", ".", "1.", "1,", "1,234", "a and ", "Oslo, ",
    "a-",
    "1e",
    "2^", "a! ", "A. ", "; ", "then ", "please ", "if ", "hundred ", "one and ", "square root of ", "sqrt(", "1 + ", "at 3 ", "on monday ",
    "2026-06-01 ",
    "Oslo and ", "sum ", "add ", "{}", "é", "5 % ", "Is ",
)  # fmt: skip
READERS = """
import sys, json
from datetime import datetime
from chaoslab.model import conditions, dates, reading, telling
from chaoslab.model.expressions import expression
from flask_tools.arithmetic import Wrong, calculate
from flask_tools.translator import detect, render
now, length = datetime(2026, 6, 1), 20_000
def compute(text):
    try:
        calculate(text)
    except Wrong:
        pass
readers = [
    expression, lambda text: expression(text, it=True), reading.sentences, lambda text: reading.clauses(text, frozenset({"find"})),
    reading.bare,
    lambda text: dates.when(text, now), dates.today, conditions.question, conditions.condition,
    lambda text: telling.reading(f"Error: {text}"), lambda text: telling.reading(text, "error"),
    compute, detect, lambda text: render(text, "en", "fr"), lambda text: render(f"{text}hello", "en", "fr"),
]
for piece in json.loads(sys.argv[1]):
    for read in readers:
        for text in (piece * (length // len(piece)), piece * (length // len(piece)) + "x"):
            read(text)
"""
ANSWERS = """
import sys, json
from chaoslab.model.chat import REQUEST_MAX, answer
pieces, tools = json.loads(sys.argv[1])
for piece in pieces:
    text = "What is " + piece * REQUEST_MAX
    answer([{"role": "user", "content": text[:REQUEST_MAX]}], tools)
"""


@pytest.mark.parametrize(("program", "given"), [(READERS, PIECES), (ANSWERS, (PIECES, TOOLS))], ids=["rules", "whole"])
def test_what_is_read_takes_no_more_than_its_length(program: str, given: object) -> None:
    subprocess.run([sys.executable, "-c", program, json.dumps(given)], check=True, timeout=LIMIT_S)


def asked(content: object) -> tuple[int, dict[str, object]]:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "x" * 10_000}, {"role": "user", "content": content}],
    }
    reply = Client(create_app()).post("/v1/chat/completions", json=body)
    return reply.status_code, reply.get_json()


@pytest.mark.parametrize("content", ["7" * 20_000, [{"type": "text", "text": "7" * 10_000}] * 2])
def test_a_request_that_is_too_long_is_refused_as_a_provider_would(content: object) -> None:
    error = {
        "message": f"Please reduce the length of the messages: message 1 has 20000 characters, and {REQUEST_MAX} are read.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
    assert asked(content) == (400, {"error": error})


def test_one_of_the_greatest_length_is_read() -> None:
    status, reply = asked("What is 6 * 7?".ljust(REQUEST_MAX))
    assert (status, reply["object"]) == (200, "chat.completion")


@pytest.mark.parametrize(
    "request_",
    [
        "Schedule lunch in 99999999999 days",
        "What is on my calendar in 3000000 days?",
        "Book a meeting tomorrow at 3pm for 99999999999999 hours",
        "Schedule lunch on 9999-12-31 at 23:30",
        "What is on my calendar on 9999-12-31?",
    ],
)
def test_a_day_that_no_calendar_has_is_said(request_: str) -> None:
    today = {"role": "system", "content": "Today is Monday 2026-06-01, 09:00 UTC."}
    said = answer([today, {"role": "user", "content": request_}], TOOLS)
    assert "the calendar ends before that" in said.content
    assert not said.tool_calls
