"""The service fails for a reason of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaoslab.base.dice import Dice
from chaoslab.faults.tool.server_error import STATUSES, ServerError
from tests.faults.fault_parts import Target, answer, meet


@pytest.mark.parametrize("status", STATUSES)
def test_the_service_answers_with_the_status_and_is_not_asked(status: int) -> None:
    met = meet(ServerError(status), target := Target())
    assert met.reply is not None
    assert (met.reply.status, target.sent) == (status, [])
    assert met.evidence == f"the service's own error {status} reached the caller"


def test_the_status_is_drawn_unless_it_is_named() -> None:
    assert {ServerError().draw(Dice(1, n)).status for n in range(100)} == set(STATUSES)
    assert ServerError(504).draw(Dice(1)) == ServerError(504)


@pytest.mark.parametrize("status", [499, 600, -1])
def test_a_status_that_is_no_servers_error_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match=f"status of server_error is {status}: it should be from 500 to 599, or 0"):
        ServerError(status)


def test_an_error_of_the_services_own_is_no_witness() -> None:
    met = meet(ServerError(500))
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({"error": "real"}, 500))) is None
