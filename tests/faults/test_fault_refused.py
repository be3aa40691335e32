"""Nobody listens: the call never leaves."""

from chaoslab.base.dice import Dice
from chaoslab.faults.network.refused import Refused
from tests.faults.fault_parts import Target, meet, saw


def test_the_call_never_leaves() -> None:
    target = Target()
    met = meet(Refused(), target)
    assert (met.error, target.sent, target.now_s, met.injected) == ("refused", [], 0.0, True)
    assert met.evidence == "connection refused"


def test_nothing_is_drawn_and_it_needs_no_lane_and_no_toxics() -> None:
    assert Refused().draw(Dice(1)) == Refused()
    assert (Refused.refuses, Refused().toxics()) == (True, ())


def test_only_a_refusal_is_its_witness() -> None:
    for other in (None, "timed_out", "reset", "closed"):
        assert Refused().witnessed(saw(error=other)) is None
