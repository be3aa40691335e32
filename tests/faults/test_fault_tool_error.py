"""The service answers with an error of its own instead of doing the work."""

import importlib
import json
from dataclasses import replace

import pytest

from chaoslab.base.dice import Dice
from chaoslab.config.topology import SERVICES
from chaoslab.core.service_spec import ErrorReply, ServiceSpec
from chaoslab.faults.tool.tool_error import STATUSES, ToolError
from tests.faults.fault_parts import CALL, Target, meet


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("status", STATUSES)
def test_each_service_says_each_status_in_its_own_words(name: str, status: int) -> None:
    service: ServiceSpec = importlib.import_module(f"chaoslab.flask_tools.{name}").SERVICE
    words, target = service.errors[status], Target()
    met = meet(ToolError(status), target, call=replace(CALL, target=name, errors=service.errors))
    assert met.reply is not None
    assert (met.reply.status, json.loads(met.reply.body)) == (words.status, words.body)
    assert met.reply.headers["Content-Type"] == "application/json"
    assert ("Retry-After" in met.reply.headers) is (status == 429)
    assert target.sent == []
    assert met.evidence == f"the service's own error {status} reached the caller"


def test_a_target_without_words_of_its_own_still_says_the_status() -> None:
    met = meet(ToolError(503))
    assert met.reply is not None
    assert (met.reply.status, met.reply.value) == (503, {"error": "status 503"})


def test_the_status_is_drawn_unless_it_is_named() -> None:
    drawn = [ToolError().draw(Dice(1, n)).status for n in range(200)]
    assert drawn == [ToolError().draw(Dice(1, n)).status for n in range(200)]
    assert set(drawn) == {500, 503, 429, 401, 404} == set(STATUSES)
    assert ToolError(404).draw(Dice(1)).status == 404
    assert ToolError(404).toxics() == ()


@pytest.mark.parametrize("status", [399, 600, 200, 1, -1])
def test_a_status_that_is_no_errors_is_refused(status: int) -> None:
    with pytest.raises(
        ValueError, match=f"status of tool_error is {status}: it should be an error's, from 400 to 599, or 0"
    ):
        ToolError(status)
    assert [ToolError(edge).status for edge in (400, 599, 0)] == [400, 599, 0]


def test_the_time_to_wait_stands_in_the_header_and_in_the_words() -> None:
    said = ErrorReply(429, {"error": {"message": "Try again in 1s.", "code": 1, "of": ["11s"]}}, {"retry-after": "1"})
    met = meet(ToolError(429, retry_after_s=30), call=replace(CALL, errors={429: said}))
    assert met.reply is not None
    assert met.reply.value == {"error": {"message": "Try again in 30s.", "code": 1, "of": ["11s"]}}
    assert met.reply.headers == {"Content-Type": "application/json", "Retry-After": "30"}
    without = meet(ToolError(503, retry_after_s=0.5))
    assert without.reply is not None
    assert without.reply.headers["Retry-After"] == "0.5"
