"""The connection is reset in mid-exchange, before the service saw the request or after it did the work."""

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Toxic
from chaoslab.faults.network.reset_peer import ResetPeer
from tests.faults.fault_parts import Target, meet, saw


def test_upstream_the_service_never_hears_of_it() -> None:
    target = Target()
    met = meet(ResetPeer(stream="upstream"), target)
    assert (met.error, target.sent, met.injected) == ("reset", [], True)
    assert met.evidence == "connection reset after 0 s"


def test_downstream_the_work_is_done_before_the_reset() -> None:
    target = Target()
    met = meet(ResetPeer(0.3, stream="downstream"), target)
    assert (met.error, len(target.sent), target.now_s) == ("reset", 1, 0.3)
    assert met.evidence == "connection reset after 0.300 s"


def test_the_stream_is_drawn_unless_it_is_named() -> None:
    drawn = [ResetPeer().draw(Dice(1, n)) for n in range(50)]
    assert drawn == [ResetPeer().draw(Dice(1, n)) for n in range(50)]
    assert {fault.stream for fault in drawn} == {"upstream", "downstream"}
    assert {ResetPeer(stream="downstream").draw(Dice(n)).stream for n in range(50)} == {"downstream"}


def test_the_toxic_is_toxiproxys_own() -> None:
    assert ResetPeer(0.3, "upstream").toxics() == (Toxic("reset_peer", "upstream", {"after_s": 0.3}),)


def test_only_a_reset_is_its_witness() -> None:
    assert ResetPeer(0.0, "upstream").witnessed(saw(error="reset"))
    for other in (None, "timed_out", "refused", "closed"):
        assert ResetPeer(0.0, "upstream").witnessed(saw(error=other)) is None
