"""The fast way to read a line takes no line that the general way refuses, and makes the same event of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.shapes import DEPTH_MAX
from chaoslab.core.events import Event
from chaoslab.record.lines import _make_typed_lines, _parse_any_line, iterate_records, parse_line
from chaoslab.record.log import encode_event, render_line
from tests.event_parts import sample

LINES = {
    name: render_line("2026-06-01T09:00:00Z", 1.5, "run", "p1.r1", "info", 1, encode_event(sample(kind)))
    for name, kind in Event.kinds.items()
}
VALUES: list[Any] = [
    0, -1, 1, 1.0, 1.5, -0.0, 2**63, 2**63 - 1, 2**64 + 1, 1e15, 1.1e15, 1e300, 1e301, True, None, "", "x", "\ud800",
    "2026-06-01T09:00:00Z", [], ["a"], [1], ["a", 1], [["a"]], {}, {"a": 1}, {"status": 1, "body": "", "headers": {}},
    {"injections": []}, {"injections": [{"name": "x"}]}, float("nan"), float("inf"), [{"a": 1}], [[[]]],
]  # fmt: skip


def fast(line: bytes) -> object:
    return _make_typed_lines(len(Event.kinds)).parse_line(line)


def told(value: object) -> object:
    """The value with the types of all parts, so that 1 is not 1.0, and NaN is NaN."""
    if isinstance(value, dict):
        return {name: told(each) for name, each in value.items()}
    if isinstance(value, list):
        return [told(each) for each in value]
    return (type(value), told(vars(value))) if hasattr(value, "__dict__") else (type(value), repr(value))


@pytest.mark.parametrize("name", LINES)
def test_every_kind_is_read_in_the_fast_way(name: str) -> None:
    assert fast(LINES[name]) is not None
    assert told(fast(LINES[name])) == told(_parse_any_line(LINES[name]))


@pytest.mark.parametrize(("depth", "read"), [(DEPTH_MAX - 2, True), (DEPTH_MAX - 1, False)])
def test_lines_with_deep_values_are_read_as_each_alone(tmp_path: Path, depth: int, read: bool) -> None:
    deep = LINES["effect"].replace(b'"a": ', b'"deep": %b%b, "a": ' % (b"[" * depth, b"]" * depth), 1)
    path, cut = tmp_path / "info.log", list[int]()
    path.write_bytes(LINES["effect"] + deep + LINES["retry"])
    records = list(iterate_records(path, cut=cut.append))
    assert (len(records), cut) == ((3, []) if read else (2, [2]))
    assert (parse_line(deep) is not None) == read


ANY = [
    ("call_started", "arguments", b"%b"),
    ("effect", "content", b'{"a": %b}'),
    ("end_state", "before", b"%b"),
    ("prompt_started", "effects", b'[{"effect": "book", "a": %b}]'),
    ("prompt_started", "state", b"%b"),
    ("run_started", "asked", b"[%b]"),
    ("fault_scheduled", "params", b'{"a": %b}'),
]
"""Fields that hold values of any type, and the text around one."""


@pytest.mark.parametrize(("kind", "field", "around"), ANY, ids=[f"{kind}.{field}" for kind, field, _ in ANY])
def test_a_value_of_any_type_is_refused_if_it_is_too_deep(kind: str, field: str, around: bytes) -> None:
    for depth, read in ((100, True), (DEPTH_MAX + 1, False)):
        fields = {name: value for name, value in json.loads(LINES[kind]).items() if name != field}
        deep = around % (b"[" * depth + b"]" * depth)
        line = json.dumps(fields).encode()[:-1] + b', "%b": %b}' % (field.encode(), deep)
        assert (fast(line) is not None) == read
        assert (_parse_any_line(line) is not None) == read


def check(line: bytes) -> None:
    found = fast(line)
    assert found is None or told(found) == told(_parse_any_line(line))


@given(data=st.data())
def test_a_line_with_another_value_or_without_one_is_read_alike_or_left_to_the_general_way(data: st.DataObject) -> None:
    fields = json.loads(LINES[data.draw(st.sampled_from(sorted(LINES)))])
    name = data.draw(st.sampled_from([*fields, "new"]))
    if data.draw(st.booleans()):
        fields[name] = data.draw(st.sampled_from(VALUES))
    else:
        fields.pop(name, None)
    check(json.dumps(fields, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass") + b"\n")


@given(data=st.data())
def test_so_is_a_line_with_another_byte(data: st.DataObject) -> None:
    line = bytearray(LINES[data.draw(st.sampled_from(sorted(LINES)))])
    line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(line))


@pytest.mark.parametrize(
    "more", [b', "kind": "retry"', b', "seq": "2"', b', "new": "\xff"', b', "t": 1e400', b', "seq": 1.0', b"} x"]
)
def test_what_the_general_way_refuses_or_reads_otherwise_is_left_to_it(more: bytes) -> None:
    line = LINES["call_started"][:-2] + more + b"}\n"
    assert fast(line) is None
