"""A long or strange request is read in a time that grows with its length, or is refused as too long."""

import json
import subprocess
import sys

import pytest
from werkzeug.test import Client

from chaoslab.model._chat import REQUEST_MAX, answer_conversation
from chaoslab.model.endpoint import create_app
from tests.model.seven_tools import TOOLS

CPU_S = 30
"""CPU time for what is read here; it takes some 5 s.

One rule that takes the square of the length takes minutes.
"""
RUNS = ("7", "_", "1.", "-1", "(", ".", "hundred ")
PIECES = (
    *"7aA_éx ,.;:!?&%$€§()\n\t-'\"`“‘„«’", "-1", "1.", "1,", "1,234", "a and ", "Oslo, ", "a-", "1e", "2^", "a! ",
    "A. ", "; ",
    "then ", "please ", "if ", "hundred ", "one and ", "square root of ", "sqrt(", "1 + ", "at 3 ", "on monday ",
    "2026-06-01 ",
    "Oslo and ", "sum ", "add ", "{}", "5 % ", "Is ", "‘a ", "'a ", " ,", "\n ", "()", "of ", "to Ana ", '"a" ',
)  # fmt: skip
BEGIN = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
given, length = json.loads(sys.argv[1])
"""
RULES = """
from datetime import datetime
from chaoslab.model import _chat as chat, _conditions as conditions, _dates as dates, _reading as reading
from chaoslab.model._expressions import extract_arithmetic
from chaoslab.flask_tools.arithmetic import Wrong, calculate
from chaoslab.flask_tools.translator import detect_language, translate_text

def computed(text):
    try:
        calculate(text)
    except Wrong:
        pass

def arithmetic(text):
    return extract_arithmetic(text), extract_arithmetic(text, it=True), computed(text)

def clauses(text):
    text = reading.collapse_spaces(text)
    sentences = reading.split_sentences(text)
    return sentences, reading.split_clauses(text, frozenset({"find"})), reading.is_request_sentence(text, frozenset())

def times(text):
    return dates.parse_days_and_times(reading.collapse_spaces(text), datetime(2026, 6, 1)), dates.parse_today_line(text)

def told(text):
    return chat.parse_tool_result(f"Error: {text}"), chat.parse_tool_result(text, "error")

def translated(text):
    return detect_language(text), translate_text(text, "en", "fr"), translate_text(text + "hello", "en", "fr")

for piece in given:
    text = piece * (length // len(piece))
    for read in (arithmetic, clauses, times, told, translated, conditions.condition_to_question,
        conditions.make_condition):
        read(text)
        read(text + "x")
"""
WHOLE = """
from chaoslab.model._chat import answer_conversation
pieces, tools = given
for number, piece in enumerate(pieces):
    begins, ends = (("What is ", " x"), ("", "7 to Ana"))[number % 2]
    text = begins + (piece * length)[: length - len(begins + ends)] + ends
    answer_conversation([{"role": "user", "content": text}], tools)
"""


@pytest.mark.parametrize(
    ("program", "given"),
    [(RULES, [RUNS, 5 * REQUEST_MAX]), (WHOLE, [[PIECES, TOOLS], REQUEST_MAX])],
    ids=["rules", "whole"],
)
def test_what_is_read_takes_no_more_than_its_length(program: str, given: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program, json.dumps(given)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def asked(content: object) -> tuple[int, dict[str, object]]:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "x" * 10_000}, {"role": "user", "content": content}],
    }
    reply = Client(create_app()).post("/openai/v1/chat/completions", json=body)
    return reply.status_code, reply.get_json()


@pytest.mark.parametrize("content", ["7" * 20_000, [{"type": "text", "text": "7" * 10_000}] * 2])
def test_a_request_that_is_too_long_is_refused_as_a_provider_would(content: object) -> None:
    error = {
        "message": f"Please reduce the length of the messages: message 1 has 20000 characters, and {REQUEST_MAX} are "
        "read.",
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
    said = answer_conversation([today, {"role": "user", "content": request_}], TOOLS)
    assert "the calendar ends before that" in said.content
    assert not said.tool_calls
