"""The reply arrives, late: by how much and which way is drawn once, and the caller's watch is the witness."""

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.events import CallFinished, FaultWitnessed
from chaoslab.core.exchange import Toxic
from chaoslab.faults.network.latency import Latency, Stream
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from tests.event_parts import call_at, fault_at
from tests.faults.fault_parts import Target, meet, saw
from tests.measure_parts import errors


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_the_answer_is_the_same_and_late(stream: Stream) -> None:
    target = Target()
    met = meet(Latency(0.5, stream=stream), target)
    assert (met.reply, target.now_s, met.injected) == (target.reply, 0.5, True)
    assert met.evidence == "took 0.500 s, at least 0.500 s were armed"


def test_upstream_the_request_is_late_and_downstream_the_reply() -> None:
    up, down = Target(deadline_s=0.4), Target(deadline_s=0.4)
    assert meet(Latency(0.5, stream="upstream"), up).error == "timed_out"
    assert meet(Latency(0.5, stream="downstream"), down).error == "timed_out"
    assert (len(up.sent), len(down.sent)) == (0, 1)


def test_a_latency_beyond_the_deadline_is_witnessed_by_the_deadline() -> None:
    met = meet(Latency(5.0, stream="downstream"))
    assert met.error == "timed_out"
    assert met.evidence


def test_a_failed_attempt_that_was_only_late_besides_counts_for_what_failed_it() -> None:
    met = [
        FaultWitnessed(**fault_at(name, "any", "weather", 1, 1, "id"), evidence="seen")
        for name in ("latency", "tool_error")
    ]
    failed = CallFinished(**call_at("weather", "current_weather", 1, 1, "id"), ok=False, duration_s=0.6, status=503)
    history = History(Record("", 1.0, "run", "p1.r1", "info", n, event) for n, event in enumerate([*met, failed]))
    assert errors(history).by_kind == {"weather 503": {"tool_error": 1}}


def test_drawing_decides_all_and_the_same_dice_draw_the_same() -> None:
    drawn = [Latency(0.5, jitter_s=0.2).draw(Dice(1, n)) for n in range(200)]
    assert drawn == [Latency(0.5, jitter_s=0.2).draw(Dice(1, n)) for n in range(200)]
    assert {fault.stream for fault in drawn} == {"upstream", "downstream"}
    assert all(fault.jitter_s == 0 for fault in drawn)
    delays = [fault.delay_s for fault in drawn]
    assert 0.3 <= min(delays) < 0.35 < 0.65 < max(delays) <= 0.7


def test_a_named_stream_is_kept_and_a_delay_is_never_negative() -> None:
    drawn = [Latency(0.1, jitter_s=1.0, stream="upstream").draw(Dice(n)) for n in range(50)]
    assert {fault.stream for fault in drawn} == {"upstream"}
    assert min(fault.delay_s for fault in drawn) == 0.0


def test_the_toxic_carries_the_drawn_delay_and_no_jitter() -> None:
    assert Latency(0.25, stream="upstream").toxics() == (Toxic("latency", "upstream", {"delay_s": 0.25}),)


def test_the_watch_of_another_process_may_run_two_milliseconds_ahead() -> None:
    fault = Latency(0.5, stream="upstream")
    assert fault.witnessed(saw(after_s=0.5 - 0.002))
    assert fault.witnessed(saw(after_s=0.4975)) is None
    assert fault.witnessed(saw(after_s=0.2985, deadline_s=0.3, error="timed_out"))
    assert fault.witnessed(saw(after_s=0.2975, deadline_s=0.3, error="timed_out")) is None


def test_half_a_second_to_the_millisecond_is_what_is_drawn_unless_more_is_said() -> None:
    assert Latency().draw(Dice(1)).delay_s == 0.5
    drawn = [Latency(0.5, jitter_s=0.2).draw(Dice(1, n)).delay_s for n in range(200)]
    assert drawn == [round(delay_s, 3) for delay_s in drawn]
    assert any(delay_s != round(delay_s, 2) for delay_s in drawn)


def test_a_quick_answer_or_another_failure_is_no_witness() -> None:
    fault = Latency(0.5, stream="upstream")
    assert fault.witnessed(saw(after_s=0.51))
    assert fault.witnessed(saw(after_s=0.4)) is None
    assert fault.witnessed(saw(after_s=0.6, error="reset")) is None
