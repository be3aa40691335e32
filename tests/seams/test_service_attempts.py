"""A request to a service, told by hand what its client saw of the answer: what is noted of it,
and when a fault is met."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest

from chaoslab.base.identity import TrialId
from chaoslab.core import events
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Failure
from chaoslab.core.inject import inject
from chaoslab.core.limits import Limits
from chaoslab.core.memory import TrialMemory
from chaoslab.core.plan import Plan
from chaoslab.core.stream import BodyParts, Streamed
from chaoslab.faults.process.service_paused import ServicePaused
from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.services.aside import UncountedAttempt, make_service_attempt, make_unknown_host_attempt
from chaoslab.seams.services.line import ClientEnd, Iterated
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.seam import ServiceAttempt, ServiceSeam

NOW = datetime(2026, 6, 1, tzinfo=UTC)
JSON = [("Content-Type", "application/json")]
BODY = b'{"price": 30}'
ANSWER = (200, JSON, BODY)
HANG_S = 60.0


@dataclass
class Hand:
    """A clock that is moved by hand, and by those who sleep."""

    now_s: float = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> datetime:
        return NOW + timedelta(seconds=self.now_s)

    def sleep(self, delay_s: float) -> None:
        assert delay_s >= 0
        self.now_s += delay_s

    async def sleep_async(self, delay_s: float) -> None:
        self.sleep(delay_s)


@dataclass
class Whole:
    """An application's answer."""

    status: int = 200
    fields: list[tuple[str, str]] = field(default_factory=lambda: list(JSON))
    body: bytes = BODY

    def iterate_parts(self) -> BodyParts:
        return Iterated(iter((self.body,)))


@dataclass
class Wire:
    """A connection whose client hangs up at a moment, and whose service takes `works_s`."""

    clock: Hand
    hangs_up_s: float = inf
    works_s: float = 0.0
    trip_s: float = 0.25
    user_source_line: str = ""
    answer: Whole = field(default_factory=Whole)
    told: list[Any] = field(default_factory=list)

    async def request_service_answer(self, request: HttpRequest) -> Whole:
        self.told.append(request)
        self.clock.sleep(self.works_s)
        return self.answer

    async def wait_unless_client_left(self, delay_s: float) -> bool:
        left_s = min(delay_s, self.hangs_up_s - self.clock.now_s)
        self.clock.now_s += max(0.0, left_s)
        return self.clock.now_s >= self.hangs_up_s

    def end_exchange_as_hang_up(self) -> None:
        self.told.append("lapse")


class Trial:
    """A seam with one trial, and requests on it."""

    def __init__(self, *faults: Any, limits: tuple[Limits, ...] = ()) -> None:
        self.clock = Hand()
        plan = Plan(1, faults, limits)
        self.seam = ServiceSeam(plan, timeout_s=HANG_S, clock=self.clock)
        self.book = TrialLog(TrialId("run", 1), began=NOW, clock=self.clock)
        self.seam.begin_trial(self.book, TrialMemory(plan, self.book.key, clock=self.clock))

    def ask(
        self, target: str = "/price", *, method: str = "GET", body: bytes = b"", name: str = "crm", **of: Any
    ) -> Any:
        self.wire = Wire(self.clock, **of)
        fields = [(b"Content-Type", b"application/json"), (b"X-Tenant", b"test-a")]
        attempt = make_service_attempt(self.seam, name, HttpRequest(method, target, fields, body), self.wire)
        assert attempt is not None
        return attempt

    def answered(
        self, attempt: ServiceAttempt, *, took_s: float = 0.5, status: str = "200 OK", body: bytes = BODY
    ) -> None:
        """The application answers a request that no fault hits, and the client takes it."""
        started = [(status, list(JSON))]
        assert b"".join(attempt.yield_parts_and_record(started, [body[:3], body[3:]])) == body
        self.clock.sleep(took_s)
        attempt.handle_client_end(ClientEnd(None, (int(status[:3]), started[0][1], body), len(body) + 40))

    def played(self, attempt: ServiceAttempt) -> tuple[int, bytes] | str:
        """The status and the body of what the faults leave, or the kind of the failure."""
        try:
            started, parts = attempt.produce_reply_sync()
            return int(started[0][0]), b"".join(parts)
        except Failure as failure:
            return failure.kind

    def of(self, kind: type[events.Event]) -> list[Any]:
        return list(self.book.find_noted_events(kind))


def ends(trial: Trial) -> list[tuple[Any, ...]]:
    return [
        (e.request, e.attempt, e.ok, e.status, e.error, round(e.duration_s, 3)) for e in trial.of(events.CallFinished)
    ]


HALF = (200, JSON, BODY[:5])
STREAM = Streamed(0.1, 2.0, 1.5, 2, 20, done=False, ended="timed_out")


@pytest.mark.parametrize(
    ("seen", "ok", "status", "error"),
    [
        (ClientEnd(None, ANSWER, 53), True, 200, None),
        (ClientEnd(None, (404, JSON, b'{"error": "no such tea"}'), 53), False, 404, "no such tea"),
        (ClientEnd(None, (302, JSON, b""), 53), True, 302, None),
        (ClientEnd("reset", None, 0), False, None, "reset"), (ClientEnd("closed", HALF, 45), False, 200, "closed"),
        (ClientEnd("garbled", None, 3), False, None, "garbled"),
        (ClientEnd("left", None, 0), False, None, "timed_out"),
        (ClientEnd("left", None, 0, gave_up=False), False, None, "cancelled"),
        (ClientEnd("left", HALF, 45), True, 200, None),
        (ClientEnd("left", HALF, 45, waited=True), False, 200, "timed_out"),
        (ClientEnd("left", HALF, 45, waited=True, gave_up=False), False, 200, "cancelled"),
        (ClientEnd("left", HALF, 45, waited=True, streamed=STREAM), False, 200, "timed_out"),
        (ClientEnd("left", HALF, 45, waited=True, streamed=Streamed(done=True)), True, 200, None),
        (ClientEnd("reset", HALF, 45, streamed=Streamed(done=True)), False, 200, "reset"),
    ],
)  # fmt: skip
def test_the_end_of_an_exchange_is_told_as_its_client_saw_it(
    seen: ClientEnd, ok: bool, status: int, error: str
) -> None:
    trial = Trial()
    attempt = trial.ask()
    trial.clock.sleep(3.0)
    attempt.handle_client_end(seen)
    attempt.handle_client_end(ClientEnd("reset", None, 0))  # what comes after the end is nothing
    trial.seam.end_trial()
    (end,) = trial.of(events.CallFinished)
    assert (end.ok, end.status, end.error, end.duration_s, end.bytes) == (ok, status, error, 3.25, seen.bytes)
    streamed = seen.streamed or Streamed()
    assert (end.first_byte_s, end.last_byte_s) == (streamed.first_byte_s, streamed.last_byte_s)
    assert (end.via, end.target, end.tool, end.rolled) == ("service", "crm", "GET /price", [])
    assert trial.seam.open == {}


def test_a_client_that_kept_its_connection_after_its_timeout_met_that_and_any_other_is_cut() -> None:
    trial = Trial()
    for number in (1, 2, 3):
        attempt = trial.ask(f"/{number}", name="crm")
        trial.clock.sleep(2.0)
        if number != 3:
            attempt.note_client_timeout()
        trial.clock.sleep(4.0)
        if number == 2:
            attempt.handle_client_end(ClientEnd("left", None, 0))
    assert sorted(trial.seam.describe_unanswered()) == [
        "crm has not answered GET /1 (1.1)",
        "crm has not answered GET /3 (3.1)",
    ]
    trial.seam.end_trial()
    assert sorted(ends(trial)) == [
        (1, 1, False, None, "timed_out", 2.25), (2, 1, False, None, "timed_out", 2.25),
        (3, 1, False, None, events.OPEN, 6.25),
    ]  # fmt: skip


def test_the_slower_of_two_equal_requests_was_not_needed_once_the_other_is_answered() -> None:
    trial = Trial()
    slow = trial.ask()
    trial.clock.sleep(1.0)
    trial.answered(trial.ask())
    slow.handle_client_end(ClientEnd("left", None, 0))
    assert ends(trial) == [(1, 2, True, 200, None, 0.75), (1, 1, False, None, "cancelled", 1.75)]
    trial.clock.sleep(1.0)
    trial.answered(trial.ask())
    assert ends(trial)[-1][:2] == (2, 1)


@pytest.mark.parametrize(
    ("method", "status", "said", "effects"),
    [
        ("POST", "200 OK", None, [("POST /price", {"tea": 2})]),
        ("POST", "299 OK", None, [("POST /price", {"tea": 2})]),
        ("GET", "200 OK", None, []), ("POST", "300 Choices", None, []), ("POST", "404 Not Found", None, []),
        ("POST", "200 OK", "none", []), ("GET", "200 OK", '{"effect": "sold", "n": 1}', [("sold", {"n": 1})]),
        ("POST", "500 Error", '[{"effect": "a"}, {"effect": "b"}]', [("a", {}), ("b", {})]),
        ("POST", "200 OK", "[", [("POST /price", {"tea": 2})]), ("GET", "200 OK", "[", []),
    ],
)  # fmt: skip
def test_what_a_request_did_is_noted_when_its_answer_begins(
    method: str, status: str, said: str | None, effects: list[tuple[str, Any]]
) -> None:
    trial = Trial()
    attempt = trial.ask(method=method, body=b'{"tea": 2}')
    assert attempt.may_still_act == (method == "POST")
    started = [(status, [*JSON, *([("x-lab-EFFECT", said)] if said else [])])]
    parts = attempt.yield_parts_and_record(started, [b"{", b"}"])
    next(parts)
    assert [(each.effect, each.content) for each in trial.of(events.Effect)] == effects
    assert not attempt.may_still_act
    list(parts)
    assert len(trial.of(events.Effect)) == len(effects)
    assert len(trial.of(events.LabWarning)) == (said == "[")
    assert attempt.reads < 4_000_000 if status < "4" else attempt.reads > 4_000_000


def test_a_trial_has_spent_no_token_and_what_its_run_had_before() -> None:
    trial = Trial()
    trial.seam.begin_trial(trial.book, trial.seam.memory, spent_usd=0.5)
    assert (trial.seam.spent.tokens, trial.seam.spent.cost_usd) == (0.0, 0.5)


def test_an_application_that_never_began_did_nothing() -> None:
    trial = Trial()
    assert list(trial.ask(method="POST").yield_parts_and_record([], [])) == []
    assert trial.of(events.Effect) == []


PAUSED = inject("service_paused", "crm", calls=[1], paused_s=4.0)


def test_an_answer_that_is_ready_while_its_service_is_paused_waits_and_meets_the_outage_once() -> None:
    trial = Trial(inject("service_paused", "crm", calls=[2], paused_s=4.0))
    ready, hit = trial.ask("/1"), trial.ask("/2")
    other = trial.ask("/3", name="shop")
    assert (ready.hit, hit.hit) == (False, True)
    trial.seam.outages.begin_outage(
        "crm", ActiveFault("service_paused", "service_paused", ServicePaused(4.0)), hit.asked
    )
    assert trial.seam.memory.guard.others() == 1
    trial.clock.sleep(1.0)
    assert list(other.yield_parts_and_record([("200 OK", [])], [b"a"])) == [b"a"]
    assert trial.clock.now_s == 101.0
    assert list(ready.yield_parts_and_record([("200 OK", [])], [b"a", b"b"])) == [b"a", b"b"]
    assert trial.clock.now_s == 104.0
    ready.handle_client_end(ClientEnd(None, ANSWER, 50))
    met = trial.of(events.FaultWitnessed)
    assert [(each.fault, each.request) for each in met] == [("service_paused", 1)]
    trial.clock.sleep(1.0)
    assert trial.seam.memory.guard.others() == 0


@pytest.mark.parametrize(
    ("hangs_up_s", "found", "ended_s", "lapsed"), [(inf, "timed_out", 159.75, True), (130.0, "timed_out", 130.0, False)]
)
def test_an_answer_that_never_comes_is_waited_for_as_long_as_the_client_does(
    hangs_up_s: float, found: str, ended_s: float, lapsed: bool
) -> None:
    trial = Trial(inject("lost_reply", "crm"))
    attempt = trial.ask(method="POST", hangs_up_s=hangs_up_s)
    assert (trial.played(attempt), trial.clock.now_s) == (found, ended_s)
    assert (trial.wire.told[-1] == "lapse", trial.seam.lapsed == [attempt]) == (lapsed, lapsed)
    assert len(trial.of(events.Effect)) == 1
    attempt.handle_client_end(ClientEnd("left", None, 0))
    (met,) = trial.of(events.FaultWitnessed)
    assert met.fault == "lost_reply"
    assert [each.error for each in trial.of(events.CallFinished)] == ["timed_out"]
    assert trial.seam.describe_unanswered() == (["crm has not answered POST /price (1.1)"] if lapsed else [])
    trial.ask(method="POST")
    assert len(trial.seam.describe_unanswered()) == 1  # it was asked again, which is what waits now


@pytest.mark.parametrize("delay_s", [2.0, inf])
@pytest.mark.parametrize("ends_s", [inf, 101.0])
def test_a_wait_under_limits_is_over_when_they_are(
    delay_s: float, ends_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(inject("latency", "crm", delay_s=2.0), limits=(Limits(lever="/nowhere"),))
    guard = trial.seam.memory.guard
    attempt = trial.ask()
    monkeypatch.setattr(type(guard), "can_end_faults", property(lambda _: True))
    monkeypatch.setattr(type(guard), "find_fault_end_reason", lambda _: "over" if trial.clock.now_s >= ends_s else "")
    try:
        asyncio.run(attempt.wait(delay_s))
        found = ""
    except Failure as failure:
        found = failure.kind
    if ends_s < inf:
        assert (found, ends_s <= trial.clock.now_s < ends_s + 1) == ("", True)
    else:
        assert (found, round(trial.clock.now_s, 2)) == (("", 102.0) if delay_s < inf else ("timed_out", 159.75))


def test_another_plan_between_two_trials_hits_and_refuses_from_then_on() -> None:
    trial = Trial()
    trial.answered(trial.ask())
    assert trial.seam.refusals.decide_connection_refusal("crm", 0.25) is None
    plan = Plan(2, (inject("tool_error", "crm", status=503), inject("refused", "shop")))
    trial.seam.change_plan(plan)
    trial.seam.begin_trial(trial.book, TrialMemory(plan, trial.book.key, clock=trial.clock))
    attempt = trial.ask("/other")
    assert attempt.hit
    assert trial.played(attempt)[0] == 503
    told = trial.seam.refusals.decide_connection_refusal("shop", 0.25)
    assert told is not None
    told()
    assert trial.of(events.CallFinished)[-1].error == "refused"
    trial.seam.end_trial()
    assert trial.seam.refusals.decide_connection_refusal("shop", 0.25) is None
    assert make_service_attempt(trial.seam, "crm", HttpRequest("GET", "/", [], b""), trial.wire) is None
    assert make_unknown_host_attempt(trial.seam, "crm", HttpRequest("GET", "/", [], b"")) is None


def test_a_request_that_keeps_up_a_session_is_answered_and_not_noted() -> None:
    trial = Trial(PAUSED)
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    for ends_by in ("ended", "cut"):
        attempt = trial.ask("/mcp", method="POST", body=ping)
        assert isinstance(attempt, UncountedAttempt)
        assert (attempt.may_still_act, attempt.request_label, attempt.reads) == (False, "ping", 0)
        assert list(attempt.yield_parts_and_record([("200 OK", [])], [b"{}"])) == [b"{}"]
        assert trial.seam.describe_unanswered() == ["crm has not answered ping"]
        attempt.handle_client_end(ClientEnd(None, ANSWER, 3)) if ends_by == "ended" else trial.seam.end_trial()
        attempt.handle_client_end(ClientEnd(None, ANSWER, 3))
        assert trial.seam.open == {}
    assert trial.of(events.CallStarted) == []
    assert trial.seam.asked_of == {"crm"}


def test_a_model_that_is_asked_without_end_is_told_of_once_and_ended(capsys: pytest.CaptureFixture[str]) -> None:
    seam = ServiceSeam(Plan(1), timeout_s=HANG_S, clock=Hand())
    ended = list[str]()
    seam.runaway, seam.models_max = ended.append, 4
    for _ in range(2):
        seam.models_asked = 0
        for _ in range(5):
            seam.count_model_request("gpt")
    said = "chaoslab: gpt was asked 2 times in one trial: it ends as hung after 4 (model_calls_max)\n"
    assert capsys.readouterr().err == said
    assert ended == ["gpt is asked again and again (4 requests to models in one trial)"] * 2


# Connections, which a fault may refuse before there is a request.


@pytest.mark.parametrize(
    ("fault", "step", "error"),
    [
        ("refused", "connection", "refused"), ("dns_failure", "lookup", "dns"),
        ("tls_failure", "handshake", "untrusted"),
    ],
)  # fmt: skip
def test_a_refused_connection_is_the_first_attempt_of_the_next_new_request(fault: str, step: Any, error: str) -> None:
    trial = Trial(inject(fault, "crm", calls=[2]))
    refused = trial.seam.refusals.decide_connection_refusal
    steps: tuple[Any, ...] = ("lookup", "connection", "handshake")
    assert [refused("crm", 0.25, each) for each in steps] == [None] * 3
    assert refused("shop", 0.25, step) is None
    assert not trial.seam.refusals.will_refuse_next_request("crm")
    first = trial.ask("/1")
    started = [("200 OK", list(JSON))]
    assert list(first.yield_parts_and_record(started, [BODY])) == [BODY]
    assert started[0][1][-1] == ("Connection", "close")  # so that it has to connect for the next
    first.handle_client_end(ClientEnd(None, ANSWER, 50))
    assert trial.seam.refusals.will_refuse_next_request("crm")
    assert [refused("crm", 0.25, each) for each in steps if each != step] == [None] * 2
    assert trial.seam.refusals.get_pending_request("crm") is None
    told = refused("crm", 0.25, step)
    assert told is not None
    assert trial.seam.refusals.get_pending_request("crm") is not None
    trial.clock.sleep(0.25)
    told()
    assert refused("crm", 0.25, step) is None  # the second attempt goes through
    second = trial.ask("/2")
    assert (second.call.request, second.call.attempt, trial.seam.refusals.get_pending_request("crm")) == (2, 2, None)
    trial.answered(second)
    trial.answered(trial.ask("/3"))
    found = [(e.request, e.attempt, e.tool, e.error, e.duration_s) for e in trial.of(events.CallFinished)]
    assert found == [
        (1, 1, "GET /1", None, 0.25), (2, 1, "connect", error, 0.5), (2, 2, "GET /2", None, 0.75),
        (3, 1, "GET /3", None, 0.75),
    ]  # fmt: skip
    (met,) = trial.of(events.FaultWitnessed)
    assert (met.request, met.attempt, met.fault) == (2, 1, fault)
    assert trial.book.calls == 4


def test_the_dice_of_a_connection_are_told_with_the_request_that_came_over_it() -> None:
    trial = Trial(inject("refused", "crm", chance=0.0001), inject("tls_failure", "crm", chance=0.0001))
    first = trial.ask("/1")
    trial.clock.sleep(1.0)
    again = trial.ask("/1")
    assert sorted(first.rolled) == ["refused on crm", "tls_failure on crm"]
    assert again.rolled == []  # it came over the same connection


def test_requests_of_a_service_that_is_down_are_attempts_of_the_one_at_which_it_went() -> None:
    trial = Trial(inject("service_down", "crm", calls=[1], down_s=2.0))
    busy, hit = trial.ask("/0", name="shop"), trial.ask("/1")
    assert (trial.played(hit), busy.hit) == ("reset", False)
    told = trial.seam.refusals.decide_connection_refusal("crm", 0.25)
    assert told is not None
    told()
    assert trial.seam.refusals.decide_connection_refusal("crm", 0.25, "lookup") is None
    assert trial.seam.refusals.decide_connection_refusal("shop", 0.25) is None
    hit.handle_client_end(ClientEnd("reset", None, 0))
    trial.clock.sleep(2.0)
    assert trial.seam.refusals.decide_connection_refusal("crm", 0.25) is None
    found = [(e.request, e.attempt, e.tool, e.error) for e in trial.of(events.CallFinished)]
    assert found == [(1, 2, "connect", "refused"), (1, 1, "GET /1", "reset")]
    assert [(e.attempt, e.evidence) for e in trial.of(events.FaultWitnessed)] == [
        (2, "connection refused"), (1, "connection reset, nothing was done"),
    ]  # fmt: skip
    assert "crm" in trial.seam.asked_of


def test_what_was_under_way_at_a_service_that_dies_met_it() -> None:
    trial = Trial(inject("service_down", "crm", calls=[2]))
    under_way, elsewhere, hit = trial.ask("/1"), trial.ask("/1", name="shop"), trial.ask("/2")
    assert trial.played(hit) == "reset"
    for each in (under_way, elsewhere):
        each.handle_client_end(ClientEnd("closed", None, 0))
    met = [(e.target, e.request, e.fault) for e in trial.of(events.FaultWitnessed)]
    assert met == [("crm", 1, "service_down")]
