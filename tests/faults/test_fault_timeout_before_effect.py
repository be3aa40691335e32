"""The request is lost on its way: the service never hears of it, and the caller waits in vain."""

from __future__ import annotations

from dataclasses import replace

from chaoslab.faults.tool.timeout_before_effect import TimeoutBeforeEffect
from tests.faults.fault_parts import CALL, Target, meet


def test_nothing_is_asked_and_the_caller_waits_until_its_deadline() -> None:
    met = meet(TimeoutBeforeEffect(), target := Target())
    assert (met.error, met.reply, target.sent, met.seen.duration_s) == ("timed_out", None, [], 2.0)
    assert met.evidence == "nothing was asked, no answer within 2 s"


def test_a_timeout_after_the_work_was_asked_for_is_no_witness() -> None:
    met = meet(TimeoutBeforeEffect())
    assert met.active.fault.witnessed(replace(met.seen, sent=CALL)) is None
    assert met.active.fault.witnessed(replace(met.seen, error="reset")) is None
