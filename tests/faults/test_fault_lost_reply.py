"""The service does the work; its answer never arrives."""

from chaoslab.base.dice import Dice
from chaoslab.core.exchange import Observation
from chaoslab.faults.tool.lost_reply import LostReply
from tests.faults.fault_parts import Target, answer, meet, saw


def test_the_work_is_done_once_and_the_caller_hears_nothing_until_its_deadline() -> None:
    target = Target(deadline_s=2.0)
    met = meet(LostReply(), target)
    assert (met.reply, met.error, len(target.sent), target.now_s) == (None, "timed_out", 1, 2.0)
    assert met.injected
    assert met.evidence == "the work was done, no answer within 2 s"


def test_a_call_that_could_not_be_sent_has_no_reply_to_lose() -> None:
    met = meet(LostReply(), Target(fails="refused"))
    assert (met.error, met.injected, met.evidence) == ("refused", False, None)


def test_nothing_is_drawn_and_nothing_is_on_the_wire() -> None:
    assert LostReply().draw(Dice(1)) == LostReply()
    assert LostReply().toxics() == ()


def test_only_silence_is_its_witness() -> None:
    assert LostReply().witnessed(saw(error="timed_out"))
    assert LostReply().witnessed(saw()) is None
    assert LostReply().witnessed(saw(error="reset")) is None
    assert LostReply().witnessed(Observation(2.0, 2.0, "timed_out", reply=answer({}))) is None
