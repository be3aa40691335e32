"""The answer's JSON is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Reply
from chaoslab.faults.tool.malformed_json import MalformedJson
from tests.faults.fault_parts import Target, answer, meet

LEAVES = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(value=JSON, part=st.floats(0.01, 0.99))
def test_whatever_the_answer_was_it_is_no_json_any_more(value: Any, part: float) -> None:
    met = meet(MalformedJson(part), target := Target(reply=answer(value)))
    assert met.reply is not None
    assert (met.reply.status, len(target.sent)) == (200, 1)
    with pytest.raises(json.JSONDecodeError):
        json.loads(met.reply.body)
    assert met.evidence == f"an answer that is no JSON, of {len(met.reply.body)} bytes, reached the caller"


def test_the_headers_stay_but_for_the_length() -> None:
    reply = answer({"temp": 20}, headers={"Content-Type": "application/json", "Content-Length": "12", "ETag": "x"})
    met = meet(MalformedJson(0.5), Target(reply=reply))
    assert met.reply is not None
    assert (dict(met.reply.headers), met.reply.body) == (
        {"Content-Type": "application/json", "ETag": "x"}, b'{"temp',
    )  # fmt: skip


def test_what_is_no_json_passes_unchanged() -> None:
    met = meet(MalformedJson(0.5), Target(reply=Reply(200, {}, b"<p>hello</p>")))
    assert (met.injected, met.evidence) == (False, None)


def test_where_is_drawn_unless_it_is_said() -> None:
    drawn = {MalformedJson().draw(Dice(1, n)).part for n in range(50)}
    assert len(drawn) > 40
    assert all(0.2 <= part <= 0.9 for part in drawn)
    assert MalformedJson(0.3).draw(Dice(1)) == MalformedJson(0.3)


def test_another_answer_is_no_witness() -> None:
    met = meet(MalformedJson(0.5))
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({"temp": 20}))) is None
