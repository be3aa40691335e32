"""Retry amplification: attempts for each request that was wanted, by target."""

from __future__ import annotations

import chaoslab as lab
from chaoslab.analysis.measures.amplification import amplification
from chaoslab.record.history import History


def search(text: str) -> str:
    return text


def stock(text: str) -> str:
    return text


def tried(times: int, layers: int) -> str:
    for n in range(times):
        try:
            return tried(times, layers - 1) if layers else search("tea")
        except Exception:
            if n == times - 1:
                raise
    return ""


def stacked(prompt: str) -> str:
    stock("tea")
    try:
        return tried(3, 2)
    except Exception:  # noqa: BLE001 - the agent gives up
        return prompt


def test_three_layers_that_try_three_times_send_27_requests() -> None:
    down = lab.inject("server_error", "search", persistence="for_good")
    trial = lab.run(stacked, "x", reads=[search, stock], faults=[down])
    first, second = amplification(trial.history)
    assert (first.target, first.requests, first.attempts, first.factor) == ("search", 1, 27, 27.0)
    assert (first.most, first.where, first.met_factor) == (27, "p1.r1 search 1", 27.0)
    assert (second.target, second.requests, second.attempts, second.factor) == ("stock", 1, 1, 1.0)
    assert second.met_factor is None


def test_a_fault_of_one_trial_is_told_from_the_calm_ones() -> None:
    once = lab.inject("server_error", "search", chance=0.5, max_times=1)
    trials = list(lab.run_many(stacked, "x", trials=20, reads=[search, stock], faults=[once]))
    whole = History(record for trial in trials for record in trial.history)
    first = amplification(whole)[0]
    assert first.requests == 20
    assert first.attempts == 20 + first.met_requests
    assert 0 < first.met_requests < 20
    assert first.met_factor == 2.0


def test_without_a_call_there_is_nothing() -> None:
    assert amplification(History([])) == []
