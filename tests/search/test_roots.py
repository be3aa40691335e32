"""Root causes: failures that went wrong alike at one line of the agent are one, and that line is told."""

import asyncio
import linecache
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.ledger import Finding, FindingKind
from chaoslab.analysis.verdict.table import Outcome, Verdict
from chaoslab.base.user_line import Raised
from chaoslab.record.history import History
from chaoslab.search._danger import Danger, is_unnoticeable_fault, rank_danger
from chaoslab.search.roots import SYMPTOMS, find_root_cause
from chaoslab.search.variation import Made, Site, Variation


def order() -> dict[str, Any]:
    return {"id": 17, "total": 30, "mail": "ana@example.org"}


def refund(number: int, amount: int) -> str:  # noqa: ARG001
    return "ok"


def mail(to: str) -> str:  # noqa: ARG001
    return "ok"


def careless(prompt: str) -> str:  # noqa: ARG001
    found = None
    while found is None:
        try:
            found = order()  # waits
        except ConnectionError:
            continue
    for _ in range(3):
        try:
            refund(17, found["total"])  # repeats
            break
        except TimeoutError:
            continue
    with suppress(Exception):
        mail(found["mail"])  # swallows
    return "Refunded, and a mail is sent."


async def in_a_thread(prompt: str) -> str:  # noqa: ARG001
    for _ in range(2):
        try:
            await asyncio.to_thread(refund, 17, 30)
            break
        except TimeoutError:
            continue
    return "Refunded."


def over_http(prompt: str) -> str:  # noqa: ARG001
    for _ in range(2):
        try:
            httpx.post("http://shop.test/refunds", json={"order": 17}, timeout=5).raise_for_status()  # repeats
            break
        except httpx.TimeoutException:
            continue
    return "Refunded."


def shop(environ: Any, start: Callable[..., Any]) -> list[bytes]:  # noqa: ARG001
    start("200 OK", [("Content-Type", "application/json")])
    return [b'{"ok": true}']


def source_of(place: str) -> str:
    file, _, number = place.rpartition(":")
    return linecache.getline(file, int(number)).strip()


def found_in(agent: Callable[[str], Any], **more: Any) -> dict[str, list[str]]:
    """The symptoms found, worst first, with the source of their lines."""
    found = lab.explore(agent, "Refund 17.", seed=1, by=["singles", "lasting"], **more)
    by_symptom = {each.root.symptom: [source_of(place) for place in each.places] for each in found.failures}
    assert len(by_symptom) == len(found.failures)
    return by_symptom


def test_each_planted_bug_is_one_cause_at_its_line_and_the_worst_comes_first() -> None:
    found = found_in(careless, tools=[refund, mail], reads=[order])
    assert [*found][:1] == ["repeats"]
    assert all(found[symptom][0].endswith(f"# {symptom}") for symptom in ("waits", "repeats", "swallows"))
    assert [*found].index("swallows") < [*found].index("waits") < [*found].index("uncaught")
    assert len(found) <= 6  # and replies that nothing checks, errors that nothing catches, and writes without a key


def repeats_late(prompt: str) -> str:  # noqa: ARG001
    """Repeats only after two failures, so one fault shows that a redelivery is done twice, and two that it repeats."""
    for attempt in range(3):
        try:
            refund(17, 30)
            break
        except TimeoutError:
            if attempt == 1:
                continue
            try:
                order()
            except ConnectionError:
                continue
            return "I could not refund it."
    return "Refunded."


def test_an_effect_that_is_repeated_and_delivered_twice_is_one_cause() -> None:
    found = lab.explore(repeats_late, "Refund 17.", tools=[refund], reads=[order], seed=1)
    harms = [failure for failure in found.failures if failure.outcome == "harm"]
    assert [failure.root.symptom for failure in harms] == ["repeats"]
    assert {tried.root.symptom for tried in harms[0].others if tried.root} == {"repeats", "delivered twice"}


def test_a_call_in_a_thread_is_told_by_the_function_of_the_user_s() -> None:
    assert found_in(in_a_thread, tools=[refund])["repeats"] == [
        "def refund(number: int, amount: int) -> str:  # noqa: ARG001"
    ]


def test_a_request_is_told_by_the_line_that_sends_it() -> None:
    (line,) = found_in(over_http, services={"shop.test": shop})["repeats"]
    assert line.endswith("# repeats")


def test_values_that_nobody_can_tell_from_the_right_ones_are_counted_and_are_no_cause() -> None:
    def agent(prompt: str) -> str:  # noqa: ARG001
        refund(17, order()["total"])
        return "Refunded."

    found = lab.explore(agent, "Refund 17.", tools=[refund], reads=[order], seed=1, by=["singles"])
    assert {each.outcome for each in found.unnoticeable} == {"harm", "false_success"}
    assert not [each for each in found.failures if "wrong_value" in each.cause]
    assert f"{len(found.unnoticeable)} faults that no agent can notice changed an effect or the answer" in str(found)
    asked = lab.explore(
        agent, "Refund 17.", tools=[refund], reads=[order], seed=1, by=["singles"], tries=["outdated_info"]
    )
    assert [each.root.symptom for each in asked.failures] == ["unnoticeable"]
    assert not asked.unnoticeable


@pytest.mark.parametrize(
    ("fault", "acts", "expected"),
    [
        ("lost_reply", True, Danger.UNCLEAR), ("timeout", True, Danger.UNCLEAR), ("redelivery", True, Danger.UNCLEAR),
        ("timeout", False, Danger.ERROR), ("rate_limit", True, Danger.ERROR), ("latency", True, Danger.LATE),
        ("empty", True, Danger.CONTENT), ("prompt_injection", True, Danger.CONTENT),
        ("wrong_value", True, Danger.UNNOTICEABLE), ("unknown_tool", True, Danger.UNNOTICEABLE),
    ],
)  # fmt: skip
def test_the_danger_of_a_fault_decides_when_it_is_tried(fault: str, acts: bool, expected: Danger) -> None:
    assert rank_danger(fault, acts=acts) is expected
    assert is_unnoticeable_fault(fault) is (expected is Danger.UNNOTICEABLE)


def test_with_forty_trials_the_double_refund_is_found() -> None:
    found = lab.explore(careless, "Refund 17.", tools=[refund, mail], reads=[order], seed=1, trials=40)
    assert "repeats" in [each.root.symptom for each in found.failures]


@pytest.mark.parametrize(
    ("outcome", "faults", "findings", "symptom"),
    [
        (Outcome.HARM, (), [], "order"),
        (Outcome.HARM, (), [Finding(FindingKind.PHANTOM, "mail", (("info", 7),))], "order"),
        (Outcome.WRONG, (), [], "order"),
        (Outcome.HARM, ("timeout",), [], "unasked"),
    ],
)
def test_a_failure_of_which_the_log_shows_no_line_has_a_symptom(
    outcome: Outcome, faults: Sequence[str], findings: Sequence[Finding], symptom: str
) -> None:
    variation = Variation(tuple(lab.inject(fault, "mail", calls=[1]) for fault in faults))
    calls = [Made(Site("mail", 1), error="timed out") for _ in faults]
    verdict = Verdict(outcome, "", evidence=tuple(findings))
    assert find_root_cause(variation, verdict, calls, History([]), Raised()).symptom == symptom


def test_each_symptom_has_its_section() -> None:
    with open("docs/how-to/mend.md", encoding="utf-8") as page:
        sections = [line.removeprefix("## ").strip() for line in page if line.startswith("## ")]
    assert sections == [*SYMPTOMS]
