"""The claims that several faults share: wrong parameters, drawn ones, witnesses, and what they leave alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.changed_answer import ChangedAnswer
from chaoslab.core.fault import Fault, load_fault
from chaoslab.faults.meaning.confident_wrong import ConfidentWrong
from chaoslab.faults.meaning.contradiction import Contradiction
from chaoslab.faults.meaning.empty import Empty
from chaoslab.faults.meaning.fabricated_data import FabricatedData
from chaoslab.faults.meaning.nonexistent_reference import NonexistentReference
from chaoslab.faults.meaning.outdated_info import OutdatedInfo
from chaoslab.faults.meaning.oversized import Oversized
from chaoslab.faults.meaning.page_lost import PageLost
from chaoslab.faults.meaning.partial_truth import PartialTruth
from chaoslab.faults.meaning.schema_drift import SchemaDrift
from chaoslab.faults.meaning.stale import Stale
from chaoslab.faults.meaning.unit_error import UnitError
from chaoslab.faults.meaning.wrong_entity import WrongEntity
from chaoslab.faults.stream.call_index import CallIndex
from chaoslab.faults.stream.corrupt_chunk import CorruptChunk
from chaoslab.faults.stream.cut import EVENTS, Cut
from chaoslab.faults.stream.disconnect import Disconnect
from chaoslab.faults.stream.error_event import ErrorEvent
from chaoslab.faults.stream.slow_chunks import SlowChunks
from chaoslab.faults.stream.stall import Stall
from tests.faults.answer_parts import FORMATS, TEXT, met
from tests.faults.fault_parts import Target, answer, meet
from tests.faults.meaning_parts import JSON, SEEDS, keeps_the_laws, leaves_others_alone, refuses
from tests.seams.stream_parts import drawn_over


def _id(value: object) -> str:
    return type(value).__name__ if isinstance(value, Fault) else ""


@pytest.mark.parametrize(
    ("name", "parameter", "value", "should_be"),
    [
        ("auth_error", "status", 404, "401 or 403"),
        ("bandwidth", "rate_kb_s", 0, "a whole number from 1 to 1000000000"),
        ("circular_reference", "point", 2.0, "a number from -1 to 1"),
        ("confident_wrong", "severity", 2, "a number from -1 to 1"),
        ("confident_wrong", "confidence", 99, "a number from 0 to 1"),
        ("contradiction", "severity", 2, "a number from -1 to 1"),
        ("drop_context", "part", 1.5, "a number from 0 to 1"),
        ("duplicate_context", "point", 2.0, "a number from -1 to 1"),
        ("empty", "how", "half", "'whole' or 'lists'"),
        ("fabricated_data", "severity", 2, "a number from -1 to 1"),
        ("fabricated_data", "how", "changed", "'' or 'added' or 'replaced'"),
        ("flapping", "down_s", 0, "a number from 0.001 to 86400"),
        ("garble_context", "kind", "x", "'mojibake' or 'replacement'"),
        ("garble_input", "kind", "x", "'typos' or 'cut'"),
        ("jitter", "jitter_s", 0, "a number from 0.005 to 86400"),
        ("nonexistent_reference", "severity", 2, "a number from -1 to 1"),
        ("outdated_info", "severity", 2, "a number from -1 to 1"),
        ("outdated_info", "age_days", -3, "a whole number from 0 to 36500"),
        ("overflow_context", "tokens", 0, "a whole number from 1 to 1000000"),
        ("oversized", "bytes", 10, "a whole number from 1000 to 10000000"),
        ("page_lost", "share", 2, "a number from 0 to 1"),
        ("partial_truth", "severity", 2, "a number from -1 to 1"),
        ("partial_truth", "share", 1.5, "a number from 0 to 1"),
        ("reorder_context", "point", 2.0, "a number from -1 to 1"),
        ("runaway_guard", "repeats", 0, "a whole number from 1 to 1000000"),
        ("schema_drift", "point", 2, "a number from -1 to 1"),
        ("stale", "to", "all", "'any' or 'same'"),
        ("stale_context", "point", 2.0, "a number from -1 to 1"),
        ("unit_error", "factor", -1, "a number from 0 to 1000000000"),
        ("wrong_entity", "severity", 2, "a number from -1 to 1"),
    ],
)
def test_a_wrong_parameter_has_one_clear_line(name: str, parameter: str, value: object, should_be: str) -> None:
    refuses(name, {parameter: value}, f"{parameter} of {name} is {value!r}: it should be {should_be}")


@pytest.mark.parametrize(
    "fault",
    [
        ConfidentWrong(), Contradiction(), FabricatedData(), NonexistentReference(), PartialTruth(), SchemaDrift(),
        UnitError(), WrongEntity(),
    ],
    ids=_id,
)  # fmt: skip
def test_what_is_not_stated_is_drawn(fault: Fault) -> None:
    assert len({fault.draw(Dice(seed)) for seed in range(9)}) > 1


@pytest.mark.parametrize(
    "name", [f"{of}_context" for of in ("drop", "duplicate", "reorder", "stale")] + ["circular_reference"]
)
def test_the_place_is_drawn_unless_it_is_given(name: str) -> None:
    make: Any = load_fault(name)
    drawn = make().draw(Dice(1))
    assert 0 <= drawn.point < 1
    assert drawn == make().draw(Dice(1)) != make().draw(Dice(2))
    assert make(point=0.5).draw(Dice(1)) == make(point=0.5)


@pytest.mark.parametrize("make", [CorruptChunk, Cut, Disconnect, ErrorEvent, Stall])
def test_where_a_stream_is_hit_is_drawn_unless_it_is_said(make: Callable[..., Fault]) -> None:
    assert drawn_over(make()) == {make(n) for n in EVENTS}
    assert make(3).draw(Dice(1)) == make(3)


@pytest.mark.parametrize(
    "fault",
    [CallIndex(), CorruptChunk(2), Cut(2), Disconnect(2), ErrorEvent(2), SlowChunks(0.5), Stall(2, 1.0)],
    ids=_id,
)
def test_a_whole_reply_passes_a_fault_of_streams_unchanged(fault: Fault) -> None:
    met = meet(fault, target := Target())
    assert (met.reply is target.reply, met.injected, met.evidence) == (True, False, None)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "name", ["duplicate_calls", "malformed_arguments", "missing_arguments", "unknown_tool", "wrong_arguments"]
)
def test_an_answer_in_words_has_no_call_to_change(name: str, form: str) -> None:
    fault: Any = load_fault(name)()
    assert isinstance(fault, ChangedAnswer)
    meeting, said = met(fault.draw(Dice(1)), form, calls=False)
    assert (said.text, meeting.injected, meeting.evidence) == (TEXT, False, None)


@pytest.mark.parametrize(
    ("name", "parameters", "around", "status"),
    [
        ("auth_error", {}, {}, 401),
        ("budget", {"calls_max": 1}, {"spent": {"calls": 1}}, 429),
        ("concurrency_limit", {"most": 1}, {"memory": {"under_way": 1}}, 429),
        ("context_length", {}, {}, 400),
        ("empty_response", {}, {}, 200),
        ("error_in_answer", {}, {}, 200),
        ("exception", {}, {}, 500),
        ("html_instead_of_json", {}, {}, 200),
        ("malformed_json", {"part": 0.5}, {}, 200),
        ("not_found", {}, {}, 404),
        ("partial_success", {}, {}, 207),
        ("rate_limit", {}, {}, 429),
        ("server_error", {"status": 500}, {}, 500),
        ("tool_error", {"status": 429}, {}, 429),
    ],
)
def test_an_answer_that_the_fault_did_not_give_is_no_witness(
    name: str, parameters: dict[str, Any], around: dict[str, Any], status: int
) -> None:
    met = meet(load_fault(name)(**parameters), **around)
    assert met.reply is not None
    assert (met.reply.status, bool(met.evidence)) == (status, True)
    fault = met.active.fault
    assert fault.witnessed(replace(met.seen, reply=answer({"error": "real"}, status))) is None
    assert fault.witnessed(replace(met.seen, reply=None, error="timed_out")) is None
    assert fault.witnessed(replace(met.seen, changed_reply=None)) is None


# Faults of meaning.

CHANGED: list[tuple[Fault, Callable[[Any], object]]] = [
    (ConfidentWrong(), json_values.find_leaves),
    (Contradiction(), lambda value: isinstance(value, str) and value),
    (Empty(), lambda value: value not in ([], {}, "", None)),
    (FabricatedData(), lambda value: json_values.find_leaves(value) or json_values.find_lists(value)),
    (NonexistentReference(), lambda value: value in ("ord_17", "https://a.example/b")),
    (OutdatedInfo(), json_values.find_leaves),
    (
        Oversized(bytes=5000),
        lambda value: isinstance(value, dict | list) and value and json_values.measure_json_size(value) < 5000,
    ),
    (PageLost(), lambda value: json_values.find_lists(value, least=2)),
    (PartialTruth(), json_values.find_leaves),
    (SchemaDrift(), lambda value: value not in ([], None, "")),
    (
        UnitError(kind="fahrenheit"),
        lambda value: type(value) is int and not 10**9 <= abs(value) < 10**13 and value != -40,
    ),
    (WrongEntity(), json_values.find_leaves),
]
"""The faults, and the answers that each of them surely changes."""


@pytest.mark.parametrize(("fault", "surely"), CHANGED, ids=_id)
@given(value=JSON, seed=SEEDS)
def test_any_answer_that_is_changed_is_another_one(
    fault: Fault, surely: Callable[[Any], object], value: Any, seed: int
) -> None:
    injected = keeps_the_laws(fault.draw(Dice(seed)), value)
    assert injected or not surely(value)


@pytest.mark.parametrize("fault", [*(fault for fault, _ in CHANGED), Stale()], ids=_id)
def test_errors_models_and_replies_without_a_value_pass_untouched(fault: Fault) -> None:
    leaves_others_alone(fault)
