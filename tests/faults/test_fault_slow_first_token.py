"""The model thinks for long before it says its first word."""

from __future__ import annotations

from dataclasses import replace

from chaoslab.core.stream import Streamed
from chaoslab.faults.stream.slow_first_token import SlowFirstToken
from tests.faults.fault_parts import Target, meet

SLOW = SlowFirstToken(1.5)


def test_the_answer_is_the_same_and_begins_late() -> None:
    met = meet(SLOW, target := Target())
    assert (met.reply, target.now_s) == (target.reply, 1.5)
    assert met.evidence == "the first byte came after 1.500 s, at least 1.500 s were armed"


def test_who_does_not_wait_so_long_has_nothing() -> None:
    met = meet(SLOW, Target(deadline_s=1.0))
    assert (met.error, met.evidence) == ("timed_out", "nothing had come after 1.000 s")


def test_the_first_byte_of_a_stream_counts_and_not_its_end() -> None:
    seen = meet(SLOW).seen
    assert SLOW.witnessed(replace(seen, duration_s=9.0, streamed=Streamed(first_byte_s=1.6)))
    assert SLOW.witnessed(replace(seen, duration_s=9.0, streamed=Streamed(first_byte_s=0.2))) is None
    assert SLOW.witnessed(replace(seen, error="reset")) is None
    assert SLOW.witnessed(replace(seen, error="timed_out", duration_s=1.0)) is None
