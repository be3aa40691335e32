"""The line is slow, so a large answer takes its time."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.core.events import CallFinished
from chaoslab.core.exchange import Toxic
from chaoslab.core.inject import inject
from chaoslab.faults.network.bandwidth import Bandwidth
from chaoslab.wire.fault_lifecycle import in_toxiproxys_words
from tests.faults.fault_parts import Target, answer, meet

LARGE = answer("x" * 1000)
TAKES_S = LARGE.wire_bytes / 2000


def test_the_whole_answer_comes_as_late_as_its_bytes_make_it() -> None:
    met = meet(Bandwidth(2), target := Target(reply=LARGE))
    assert (met.reply, target.now_s) == (LARGE, TAKES_S)
    assert 0.5 < TAKES_S < 0.6
    assert met.evidence == f"took {TAKES_S:.3f} s for 1002 bytes, at most 2 kB/s were armed"


def test_one_that_is_too_large_is_not_whole_at_the_deadline() -> None:
    met = meet(Bandwidth(2), Target(reply=LARGE, deadline_s=0.4))
    assert (met.error, met.evidence) == ("timed_out", "the answer was not whole after 0.400 s")


def test_who_had_it_sooner_or_had_nothing_met_no_slow_line() -> None:
    met = meet(Bandwidth(2), Target(reply=LARGE))
    for seen in (
        replace(met.seen, duration_s=0.4),
        replace(met.seen, bytes=0, duration_s=0.005),
        replace(met.seen, status=None),
        replace(met.seen, error="reset"),
    ):
        assert Bandwidth(2).witnessed(seen) is None


def test_an_answer_without_a_body_is_late_by_its_head() -> None:
    seen = replace(meet(Bandwidth(1)).seen, bytes=0, duration_s=0.15)
    assert Bandwidth(1).witnessed(seen) == "took 0.150 s for 0 bytes, at most 1 kB/s were armed"


def test_a_line_so_fast_that_no_watch_could_tell_has_no_witness() -> None:
    met = meet(Bandwidth(10**6), Target(reply=LARGE))
    assert (met.injected, met.evidence) == (True, None)


def test_it_is_the_toxic_of_that_name() -> None:
    assert Bandwidth(2).toxics() == (Toxic("bandwidth", "downstream", {"rate_kb_s": 2}),)
    assert in_toxiproxys_words(Bandwidth(2).toxics()[0]).attributes == {"rate": 2}


def test_a_line_that_lets_nothing_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="rate_kb_s of bandwidth is 0: it should be a whole number from 1 to"):
        inject("bandwidth", "crm", rate_kb_s=0)


def test_a_packed_answer_takes_the_time_of_its_packed_bytes() -> None:
    """It is 25 times as long when it is unpacked."""

    def shop(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        packed = gzip.compress(b"tea and " * 1000)
        start_response("200 OK", [("Content-Encoding", "gzip"), ("Content-Length", str(len(packed)))])
        return [packed]

    def agent(_prompt: str) -> str:
        return str(len(httpx.get("http://shop.test/list", timeout=5).content))

    trial = lab.run(agent, "x", services={"shop.test": shop}, faults=[lab.inject("bandwidth", "shop.test")])
    assert (trial.answer, trial.outcome) == ("8000", lab.Outcome.CORRECT)
    (call,) = (event for _, event in trial.history.of(CallFinished))
    assert call.bytes < 400
    assert call.duration_s == pytest.approx(call.bytes / 1000, abs=0.05)
