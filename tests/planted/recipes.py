"""The trials' recipes: a category of failure, an agent, the faults that it meets, and the outcome that was planted.

The seven categories are those of "Failing Tools" (OpenReview j7YsSnA64D).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import chaoslab as lab
from chaoslab.core.plan import Injection
from tests.planted import agents as a
from tests.planted.jobs import Job
from tests.planted.world import Kind

Faults = Callable[[Job], list[Injection]]
Add = Callable[..., None]
AVAILABILITY, STALENESS, NO_OP = "availability denial", "data staleness", "silent no-op"
CORRUPTED, SCHEMA, ENTITY, COMPOUND = "corrupted state", "schema mismatch", "disambiguation", "compound cascade"
CALM = "no fault met"
CATEGORIES = [AVAILABILITY, STALENESS, NO_OP, CORRUPTED, SCHEMA, ENTITY, COMPOUND]


@dataclass(frozen=True)
class Recipe:
    """`label`: the planted outcome. `by`: how the lab is told what is right: twin, stated or state."""

    category: str
    agent: a.Behaviour
    faults: Faults
    label: str
    reading: bool = False
    keyed: bool = False
    two: bool = False
    by: tuple[str, ...] = ("twin", "twin", "stated", "state")
    domains: tuple[str, ...] = ()
    """Empty: all."""
    weight: int = 1


def once(role: str, *faults: str, call: int = 1, **parameters: Any) -> list[Faults]:
    """Each of these faults at the first attempt of one request."""
    return [lambda job, f=fault: [lab.inject(f, job.target[role], calls=[call], **parameters)] for fault in faults]  # type: ignore[misc]


def always(role: str, *faults: str, **parameters: Any) -> list[Faults]:
    """Each of these faults at all requests."""
    return [lambda job, f=fault: [lab.inject(f, job.target[role], **parameters)] for fault in faults]  # type: ignore[misc]


def both(one: Faults, two: Faults) -> Faults:
    """The faults of both."""
    return lambda job: [*one(job), *two(job)]


DENIED = ("refused", "server_error", "timeout_before_effect", "rate_limit", "auth_error", "exception", "not_found")
NUMBERS = ("refunds", "inventory", "transfers", "shop")
FIGURES = ("weather", "prices", "rates", "tickets", "forecast")
OUTDATED = ("weather", "prices", "deliveries", "forecast")
SCALES = ("weather", "prices", "forecast")
BY_FUNCTION = ("weather", "prices", "rates", "deliveries", "translations", "tickets")
FUNCTIONS = ("refunds", "bookings", "messages", "inventory", "transfers", "calendar")


def recipes() -> list[Recipe]:
    """All of them, in a fixed order."""
    made: list[Recipe] = []

    def of(category: str) -> tuple[Add, Add]:
        """Returns two functions that add recipes to this category: of acting, and of reading."""

        def add(agent: a.Behaviour, faults: list[Faults], label: str, **options: Any) -> None:
            made.extend(Recipe(category, agent, each, label, **options) for each in faults)

        return add, partial(add, reading=True)

    add, read = of(AVAILABILITY)
    add(a.says_on_error(Kind.NOT_DONE), once("act", *DENIED), "degraded", weight=2)
    add(a.says_on_error(Kind.NOT_DONE), once("look", "refused", "server_error"), "degraded", weight=2)
    add(a.says_on_error(Kind.DONE), once("act", *DENIED), "false_success", weight=2)
    add(a.says_on_error(Kind.DONE_RETRY), once("act", *DENIED[:4]), "false_success", weight=3)
    add(a.says_on_error(Kind.MAYBE), once("act", "timeout_before_effect", "server_error"), "degraded", weight=3)
    add(a.says_on_error(Kind.MAYBE), once("act", "lost_reply"), "degraded", weight=7)
    add(a.says_on_error(Kind.NOT_DONE), once("act", "lost_reply"), "wrong", weight=9)
    add(a.says_on_error(Kind.DONE), once("act", "lost_reply"), "correct", weight=4)
    add(a.retries(), once("act", *DENIED), "correct", weight=2)
    add(a.retries(), once("act", "lost_reply"), "correct", keyed=True, weight=5)
    add(a.retries(), once("act", "lost_reply"), "harm", weight=5)
    add(a.retries(told=False), once("act", "lost_reply"), "harm", weight=3)
    add(a.admits_the_double, once("act", "lost_reply"), "harm", weight=3)
    add(a.retries(), always("act", "refused", "server_error", "exception"), "degraded", weight=2)
    add(a.retries(Kind.DONE), always("act", "refused", "rate_limit"), "false_success", weight=2)
    add(a.verifies, once("act", "lost_reply", "server_error"), "correct", weight=3)
    add(a.verifies, always("act", "auth_error", "server_error"), "degraded", weight=2)
    add(a.consoles_everybody(Kind.NOT_DONE), once("act", "refused", "server_error"), "harm", weight=2)
    add(a.consoles_everybody(Kind.DONE), once("act", "exception"), "harm", weight=2)
    add(a.crashes, once("act", "server_error", "refused"), "failed", weight=2)
    add(a.goes_mute, once("act", "server_error", "lost_reply"), "failed", weight=2)
    add(a.loops, always("act", "refused"), "hung", weight=3)
    add(a.waits_for_ever, once("act", "server_error", "lost_reply"), "hung", weight=2)
    add(a.two_steps(Kind.PARTIAL), once("notify", "refused", "server_error"), "degraded", two=True, weight=6)
    add(a.two_steps(None), once("notify", "refused", "server_error"), "false_success", two=True, weight=5)
    add(a.two_steps(Kind.PARTIAL), once("notify", "lost_reply"), "wrong", two=True, weight=4)
    add(a.two_steps_none, once("act", "refused"), "degraded", two=True, weight=4)
    state = {"by": ("state",), "domains": FUNCTIONS}
    add(a.compensates, once("act", "lost_reply"), "correct", weight=6, **state)
    add(a.rolls_back(Kind.NOT_DONE), once("notify", "refused"), "degraded", two=True, weight=6, **state)
    add(a.rolls_back(Kind.DONE), once("notify", "server_error"), "false_success", two=True, weight=4, **state)
    read(a.answers(Kind.UNAVAILABLE), once("get", *DENIED), "degraded", weight=3)
    read(a.answers(Kind.VALUE), once("get", *DENIED[:5]), "wrong", weight=2)
    read(a.answers(Kind.CAVEAT), once("get", "refused", "server_error"), "degraded", weight=6)
    read(a.answers(), once("get", "server_error"), "failed", weight=2)
    read(a.asks_again(), once("get", *DENIED[:5]), "correct", weight=3)
    read(a.asks_again(), always("get", "refused", "exception"), "degraded", weight=2)
    read(a.asks_again(Kind.VALUE_RETRY), always("get", "server_error"), "wrong", weight=4)
    read(a.loops_reading, always("get", "refused"), "hung", weight=2)
    read(
        a.two_readings(True), once("get", "server_error", call=2), "degraded", weight=10, by=("twin",), domains=FIGURES
    )
    read(a.two_readings(False), once("get", "refused", call=2), "wrong", weight=5, by=("twin",), domains=FIGURES)

    add, read = of(STALENESS)
    stale = once("look", "stale", call=2, to="any")
    add(a.looks_at_the_neighbour_first, stale, "harm", weight=6)
    add(a.trusts_the_count, [both(once("act", "lost_reply")[0], once("check", "stale", call=2)[0])], "harm", weight=4)
    add(a.compares_before_acting, once("look", "outdated_info", call=2), "degraded", weight=3, domains=NUMBERS)
    add(a.crashes, once("look", "outdated_info"), "harm", weight=3, domains=NUMBERS)
    read(a.asks_the_neighbour_first, once("get", "stale", call=2, to="any"), "wrong", weight=7, domains=BY_FUNCTION)
    read(a.answers(), once("get", "outdated_info"), "wrong", weight=4, domains=OUTDATED)
    read(a.asks_three_times, once("get", "outdated_info"), "correct", weight=3)
    read(a.distrusts, once("get", "outdated_info"), "degraded", weight=3, domains=OUTDATED[:3])

    add, read = of(NO_OP)
    add(a.says_on_error(Kind.NOT_DONE), once("act", "silent_no_op"), "false_success", weight=12)
    add(a.verifies, once("act", "silent_no_op"), "correct", weight=4)
    add(a.reads_back(Kind.MAYBE), once("act", "silent_no_op"), "degraded", weight=5)
    add(a.two_steps(Kind.PARTIAL), once("notify", "silent_no_op"), "false_success", two=True, weight=4)
    read(a.answers(Kind.UNAVAILABLE), once("get", "empty"), "degraded", weight=3)
    read(a.reads_with_default, once("get", "empty"), "wrong", weight=4, domains=FIGURES)

    add, read = of(CORRUPTED)
    add(a.retries(), once("act", "redelivery"), "harm", weight=4)
    add(a.retries(), once("act", "redelivery"), "correct", keyed=True, weight=4)
    add(a.crashes, once("look", "wrong_value"), "harm", weight=5)
    add(a.crashes, once("look", "unit_error", kind="hundred"), "harm", weight=2, domains=NUMBERS)
    add(
        a.reports_the_receipt, once("receipt", "wrong_value"), "wrong", weight=8, by=("twin", "stated"), domains=NUMBERS
    )
    add(a.compares_before_acting, once("look", "wrong_value", call=2), "degraded", weight=3)
    read(a.answers(), once("get", "wrong_value", "confident_wrong"), "wrong", weight=7)
    read(a.answers(), once("get", "unit_error", kind="hundred"), "wrong", weight=4, domains=SCALES)
    read(a.asks_three_times, once("get", "wrong_value"), "correct", weight=4)
    read(a.distrusts, once("get", "wrong_value"), "degraded", weight=4)

    add, read = of(SCHEMA)
    drift = once("look", "schema_drift", kind="renamed")
    add(a.crashes, drift, "failed", weight=3)
    add(a.says_on_error(Kind.NOT_DONE), drift, "degraded", weight=4)
    add(a.says_on_error(Kind.DONE), drift, "false_success", weight=4)
    add(a.takes_a_default, drift, "harm", weight=4)
    add(a.adapts, [*drift, *once("look", "schema_drift", kind="nested")], "correct", weight=3)
    read(a.answers(), once("get", "schema_drift", kind="renamed"), "failed", weight=3)
    read(a.answers(Kind.UNAVAILABLE), once("get", "schema_drift", kind="renamed"), "degraded", weight=5)
    read(a.reads_with_default, once("get", "schema_drift", kind="renamed"), "wrong", weight=4, domains=FIGURES)
    read(a.digs, once("get", "schema_drift", kind="nested"), "correct", weight=4)

    add, read = of(ENTITY)
    add(a.takes_another_one, once("look", "not_found"), "harm", weight=6)
    add(a.looks_at_the_neighbour_first, once("look", "wrong_entity", call=2), "harm", weight=4)
    add(a.says_on_error(Kind.NOT_DONE), once("look", "not_found"), "degraded", weight=4)
    read(a.answers(Kind.VALUE, "neighbour"), once("get", "not_found"), "wrong", weight=6)
    read(a.asks_the_neighbour_first, once("get", "wrong_entity", call=2), "wrong", weight=6)
    read(a.answers(Kind.NEIGHBOUR, "neighbour"), once("get", "not_found"), "degraded", weight=6)
    read(a.distrusts, once("get", "wrong_entity"), "degraded", weight=2)

    add, read = of(COMPOUND)
    first_down = once("look", "server_error")[0]
    lost = once("act", "lost_reply")[0]
    no_op = once("act", "silent_no_op")[0]
    add(a.retries(), [both(first_down, lost)], "correct", keyed=True, weight=4)
    add(a.retries(), [both(first_down, lost)], "harm", weight=4)
    add(a.retries(), [both(first_down, no_op)], "false_success", weight=6)
    add(a.retries(), [both(first_down, always("act", "rate_limit")[0])], "degraded", weight=3)
    add(
        a.retries(),
        [both(always("look", "wrong_value")[0], once("act", "server_error")[0])],
        "harm",
        weight=2,
        domains=NUMBERS,
    )
    add(a.reads_back(Kind.MAYBE), [both(no_op, once("check", "server_error")[0])], "degraded", weight=5)
    add(a.reads_back(Kind.DONE), [both(no_op, once("check", "server_error")[0])], "false_success", weight=5)
    add(
        a.reads_back(Kind.MAYBE),
        [both(no_op, once("check", "malformed_json")[0])],
        "degraded",
        weight=2,
        domains=("shop",),
    )
    read(a.asks_again(), [lambda job: [
        lab.inject("refused", job.target["get"], calls=[1], attempts=[1]),
        lab.inject("wrong_value", job.target["get"], calls=[1], attempts=[2]),
    ]], "wrong", weight=8)  # fmt: skip
    read(a.asks_again(), [lambda job: [
        lab.inject("server_error", job.target["get"], calls=[1], attempts=[1]),
        lab.inject("schema_drift", job.target["get"], calls=[1], attempts=[2], kind="renamed"),
    ]], "correct", weight=4)  # fmt: skip

    add, read = of(CALM)  # nothing is met, or nothing that a caller can see
    add(a.says_on_error(Kind.NOT_DONE), once("act", "latency", delay_s=2.0), "correct", weight=6)
    read(a.answers(Kind.UNAVAILABLE), once("get", "latency", delay_s=2.0), "correct", weight=6)
    return made
