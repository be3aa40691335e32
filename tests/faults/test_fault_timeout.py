"""Nothing arrives any more: the caller's deadline, or the connection's end, is all that it meets."""

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Toxic
from chaoslab.faults.network.timeout import Timeout
from tests.faults.fault_parts import Target, meet, saw


def test_never_answering_ends_at_the_callers_deadline() -> None:
    target = Target(deadline_s=2.0)
    met = meet(Timeout(stream="upstream"), target)
    assert (met.error, target.now_s, met.injected) == ("timed_out", 2.0, True)
    assert met.evidence == "no answer within the deadline of 2.00 s"


def test_downstream_the_work_was_done_and_upstream_it_was_not() -> None:
    up, down = Target(), Target()
    meet(Timeout(stream="upstream"), up)
    meet(Timeout(stream="downstream"), down)
    assert (len(up.sent), len(down.sent)) == (0, 1)


def test_a_timeout_with_an_end_closes_the_connection_before_the_deadline() -> None:
    target = Target()
    met = meet(Timeout(0.5, stream="downstream"), target)
    assert (met.error, target.now_s) == ("closed", 0.5)
    assert met.evidence == "closed without an answer after 0.500 s"


def test_a_call_that_fails_by_itself_meets_no_timeout() -> None:
    met = meet(Timeout(stream="downstream"), Target(fails="refused"))
    assert (met.error, met.injected, met.evidence) == ("refused", False, None)


def test_the_stream_is_drawn_unless_it_is_named() -> None:
    drawn = [Timeout(0.5).draw(Dice(1, n)) for n in range(50)]
    assert drawn == [Timeout(0.5).draw(Dice(1, n)) for n in range(50)]
    assert {fault.stream for fault in drawn} == {"upstream", "downstream"}
    assert {Timeout(stream="upstream").draw(Dice(n)).stream for n in range(50)} == {"upstream"}


def test_the_toxic_is_toxiproxys_own() -> None:
    assert Timeout(0.5, "upstream").toxics() == (Toxic("timeout", "upstream", {"after_s": 0.5}),)


def test_the_watch_of_another_process_may_run_two_milliseconds_ahead() -> None:
    silent, ended = Timeout(0.0, "upstream"), Timeout(0.5, "upstream")
    assert silent.witnessed(saw(error="timed_out", after_s=2.0 - 0.002))
    assert silent.witnessed(saw(error="timed_out", after_s=1.9975)) is None
    assert ended.witnessed(saw(error="closed", after_s=0.5 - 0.002))
    assert ended.witnessed(saw(error="closed", after_s=0.4975)) is None


def test_what_is_no_witness() -> None:
    silent, ended = Timeout(0.0, "upstream"), Timeout(0.5, "upstream")
    assert silent.witnessed(saw()) is None
    assert silent.witnessed(saw(error="timed_out", after_s=0.3)) is None  # some other, shorter deadline
    assert silent.witnessed(saw(error="closed", after_s=1.0)) is None  # this one never closes
    for error in (None, "closed", "refused"):  # something else came of it at the last moment
        assert silent.witnessed(saw(error=error, after_s=2.0)) is None
    for error in (None, "refused", "timed_out"):
        assert ended.witnessed(saw(error=error, after_s=0.5)) is None
    assert ended.witnessed(saw(error="closed", after_s=0.2)) is None  # somebody else closed it
    assert ended.witnessed(saw(error="reset", after_s=0.5))
