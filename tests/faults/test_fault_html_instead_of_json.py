"""A page of HTML comes instead of the service's answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

import chaoslab as lab
from chaoslab.faults.tool.html_instead_of_json import PAGE, HtmlInsteadOfJson
from tests.faults.fault_parts import Target, answer, meet


@pytest.mark.parametrize("status", [200, 502])
def test_the_page_reaches_the_caller_and_the_target_is_not_asked(status: int) -> None:
    target = Target()
    met = meet(HtmlInsteadOfJson(status), target)
    assert met.reply is not None
    assert (met.reply.status, met.reply.body, met.reply.unreadable) == (status, PAGE, True)
    assert met.reply.headers["Content-Type"].startswith("text/html")
    assert target.sent == []
    assert met.evidence == f"a page of HTML with status {status} reached the caller"


def test_another_answer_is_no_witness() -> None:
    met = meet(HtmlInsteadOfJson())
    fault = met.active.fault
    assert fault.witnessed(replace(met.seen, reply=answer("<html>"))) is None
    assert fault.witnessed(replace(met.seen, reply=None, error="timed_out")) is None


@pytest.mark.parametrize("status", [199, 204, 304, 600])
def test_a_status_without_a_body_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match=f"status of html_instead_of_json is {status}: it should be one that has a"):
        HtmlInsteadOfJson(status)


def test_a_function_returns_the_page_as_its_text() -> None:
    def look_up(city: str) -> str:
        return f"{city}: 20 degrees"

    def agent(city: str) -> str:
        return look_up(city)

    page = lab.inject("html_instead_of_json", "look_up")
    trial = lab.run(agent, "Oslo", reads=[look_up], faults=[page])
    assert trial.answer == PAGE.decode()
    assert trial.outcome is lab.Outcome.UNKNOWN  # it lacks a value, and has none of its own
