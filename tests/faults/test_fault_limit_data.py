"""The connection closes after some bytes of the answer."""

from __future__ import annotations

from dataclasses import replace

from chaoslab.core.chain import ActiveFault
from chaoslab.core.events import FaultHealed
from chaoslab.core.exchange import Call, Observation, Toxic
from chaoslab.faults.network.limit_data import LimitData
from chaoslab.wire import fault_lifecycle
from chaoslab.wire.fault_lifecycle import in_toxiproxys_words
from tests.faults.fault_parts import Target, answer, meet

REPLY = answer({"temp": 20})


def test_the_work_is_done_and_the_answer_is_cut_off() -> None:
    met = meet(LimitData(60), target := Target(reply=REPLY))
    assert (met.error, met.reply, len(target.sent)) == ("closed", None, 1)
    assert met.evidence == "closed in the middle of the answer after 0 s"


def test_an_answer_of_so_many_bytes_comes_whole() -> None:
    size = REPLY.wire_bytes
    assert (meet(LimitData(size), Target(reply=REPLY)).reply, meet(LimitData(size)).injected) == (REPLY, False)
    assert meet(LimitData(size - 1), Target(reply=REPLY)).error == "closed"


def test_who_had_an_answer_or_waited_in_vain_met_no_limit() -> None:
    seen = meet(LimitData(60)).seen
    for other in (replace(seen, error=None, status=200), replace(seen, error="timed_out")):
        assert LimitData(60).witnessed(other) is None


def test_a_lane_lets_a_shorter_answer_through_and_says_so() -> None:
    whole = Observation(0.1, 1.0, None, 200, bytes=40)
    call = Call("shop", "GET /", "p1.r1", 1, 1)

    def healed(seen: Observation) -> tuple[bool, str]:
        (event,) = fault_lifecycle.healed([ActiveFault("cut", "limit_data", LimitData(60))], call, seen)
        assert isinstance(event, FaultHealed)
        return event.witnessed, event.idle

    assert healed(whole) == (False, "nothing to cut: the answer has 40 bytes, and 60 are let through")
    for seen in (replace(whole, bytes=61), replace(whole, error="timed_out"), replace(whole, status=None)):
        assert healed(seen) == (False, "")


def test_it_is_the_toxic_of_that_name() -> None:
    assert LimitData(9).toxics() == (Toxic("limit_data", "downstream", {"bytes": 9}),)
    assert in_toxiproxys_words(LimitData(9).toxics()[0]).attributes == {"bytes": 9}
