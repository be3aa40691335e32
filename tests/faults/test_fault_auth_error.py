"""The service takes the caller's key no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from chaoslab.core.inject import inject
from chaoslab.faults.tool.auth_error import AuthError
from tests.faults.fault_parts import Target, answer, meet


@pytest.mark.parametrize("status", [401, 403])
def test_the_service_refuses_and_is_not_asked(status: Literal[401, 403]) -> None:
    met = meet(AuthError(status), target := Target())
    assert met.reply is not None
    assert (met.reply.status, target.sent) == (status, [])
    assert met.evidence == f"the service's own error {status} reached the caller"


def test_another_status_is_refused() -> None:
    with pytest.raises(ValueError, match="status of auth_error is 404: it should be 401 or 403"):
        inject("auth_error", "crm", status=404)


def test_a_refusal_of_the_services_own_is_no_witness() -> None:
    met = meet(AuthError())
    assert met.active.fault.witnessed(replace(met.seen, reply=answer({"error": "real"}, 401))) is None
