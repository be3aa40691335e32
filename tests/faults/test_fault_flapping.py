"""The service comes and goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaoslab.core.inject import inject
from chaoslab.faults.tool.flapping import Flapping
from tests.faults.fault_parts import Target, answer, meet


def test_it_is_up_and_down_by_turns_from_the_beginning_of_the_trial() -> None:
    moments = [0, 9.9, 10, 11.9, 12, 21.9, 22, 23.9, 24]
    met = [meet(Flapping(up_s=10, down_s=2), elapsed_s=moment) for moment in moments]
    assert [each.reply.status for each in met if each.reply] == [200, 200, 503, 503, 200, 200, 503, 503, 200]
    assert [bool(each.evidence) for each in met] == [each.injected for each in met]
    assert sum(each.injected for each in met) == 4


def test_while_it_is_down_it_is_not_asked() -> None:
    met = meet(Flapping(up_s=1, down_s=1), target := Target(), elapsed_s=1.5)
    assert target.sent == []
    assert met.evidence == "a reply that the service is down reached the caller"
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({}, 503))) is None


def test_a_time_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"down_s of flapping is 0: it should be a number from 0\.001 to 86400"):
        inject("flapping", "crm", down_s=0)
