"""The service says that there is no such thing, though there is."""

from __future__ import annotations

from dataclasses import replace

from chaoslab.core.service_spec import ErrorReply
from chaoslab.faults.tool.not_found import NotFound
from tests.faults.fault_parts import CALL, Target, answer, meet


def test_the_target_says_so_in_its_own_words_and_is_not_asked() -> None:
    words = {404: ErrorReply(404, {"gone": True})}
    met = meet(NotFound(), target := Target(), call=replace(CALL, errors=words))
    assert met.reply is not None
    assert (met.reply.status, met.reply.value, target.sent) == (404, {"gone": True}, [])
    assert met.evidence == "a reply that there is no such thing reached the caller"


def test_a_404_of_the_targets_own_is_no_witness() -> None:
    met = meet(NotFound())
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({"real": True}, 404))) is None
    assert met.active.fault.witnessed(replace(met.seen, reply=None)) is None
