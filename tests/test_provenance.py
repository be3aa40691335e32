"""A run names the versions that made it, and a difference is said by name."""

from __future__ import annotations

from chaoslab.record.provenance import ABSENT, OTHERS, OWN, changed, code


def test_it_names_the_log_python_our_own_code_and_what_it_runs_on() -> None:
    found = code()
    assert set(found) == {"log", "python", *OWN, *OTHERS}
    assert ABSENT not in found.values()
    assert code() == found


def test_a_difference_is_said_by_name() -> None:
    now = code()
    before = {**now, "agent": "0" * 12, "langchain": "1.0"}
    assert changed(before, now) == ["agent has changed", f"langchain is {now['langchain']}, was 1.0"]
    assert changed(now, now) == []


def test_a_container_that_did_not_hold_a_part_says_nothing_about_it() -> None:
    assert changed({**code(), "flask_tools": ABSENT}, code()) == []
