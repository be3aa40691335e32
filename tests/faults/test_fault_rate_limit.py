"""The service answers that there were too many requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chaoslab.faults.tool.rate_limit import RateLimit
from tests.faults.fault_parts import CALL, WORDS, Meeting, Target, answer, meet


def at(moments: list[float], fault: RateLimit) -> list[Meeting]:
    """A call at each of these seconds of a trial."""
    memory: dict[str, Any] = {}
    return [meet(fault, memory=memory, elapsed_s=moment) for moment in moments]


def waits(met: Meeting) -> str | None:
    assert met.reply is not None
    return met.reply.headers.get("Retry-After") if met.reply.status == 429 else None


def test_the_service_says_so_in_its_own_words_and_is_not_asked() -> None:
    met = meet(RateLimit(), target := Target(), call=replace(CALL, errors=WORDS))
    assert met.reply is not None
    assert (met.reply.status, met.reply.value, met.reply.headers["Retry-After"]) == (429, {"busy": True}, "3")
    assert target.sent == []
    assert met.evidence == "a reply that there were too many requests reached the caller"


def test_the_time_to_wait_may_be_stated() -> None:
    assert waits(meet(RateLimit(retry_after_s=7), call=replace(CALL, errors=WORDS))) == "7"


def test_so_many_pass_in_any_minute_and_the_others_are_told_when_there_is_room() -> None:
    met = at([0, 10, 20, 59.5, 60.5, 61, 70.5], RateLimit(per_minute=2))
    assert [waits(each) for each in met] == [None, None, "40", "0.5", None, "9", None]
    assert [each.injected for each in met] == [False, False, True, True, False, True, False]


def test_a_429_of_the_services_own_is_no_witness() -> None:
    met = meet(RateLimit())
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({}, 429))) is None
