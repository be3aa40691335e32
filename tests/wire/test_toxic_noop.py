"""Noop, and how toxics are found."""

from __future__ import annotations

from dataclasses import fields

import pytest

from chaoslab.base.dice import Dice
from chaoslab.core.pipe import Signal
from chaoslab.wire import toxics
from chaoslab.wire.toxics.noop import Noop
from tests.wire.wire_parts import END, live, play


def test_everything_passes_as_it_came() -> None:
    script: list[tuple[float, bytes | Signal]] = [(0.0, b"a"), (0.5, b"b"), (0.5, END)]
    assert play(live(Noop()), script) == script
    assert live(Noop()).straight


def test_the_eight_toxics_are_found_by_their_files_with_toxiproxys_attributes() -> None:
    assert {name: [field.name for field in fields(toxics.load(name))] for name in toxics.types()} == {
        "bandwidth": ["rate"],
        "latency": ["latency", "jitter"],
        "limit_data": ["bytes"],
        "noop": [],
        "reset_peer": ["timeout"],
        "slicer": ["average_size", "size_variation", "delay"],
        "slow_close": ["delay"],
        "timeout": ["timeout"],
    }


def test_a_typo_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(LookupError, match="did you mean 'latency'"):
        toxics.load("latencey")


def test_a_toxic_without_a_pipe_of_its_own_is_refused_and_not_ignored() -> None:
    with pytest.raises(NotImplementedError):
        toxics.Toxic().pipe(Dice("test"), 0.0)
