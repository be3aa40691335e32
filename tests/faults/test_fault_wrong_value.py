"""The answer looks right and is not: exactly one value that the question was about is another one."""

import dataclasses
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaoslab as lab
from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.exchange import Reply
from chaoslab.faults.meaning.wrong_value import BOOKKEEPING, WrongValue
from chaoslab.seams.functions.wrapped import Returned
from tests.faults.fault_parts import Target, answer, meet

EVENT = {
    "kind": "calendar#event", "etag": '"7"', "id": "seed0001", "status": "confirmed", "htmlLink": "https://example.org/e",
    "created": "2026-06-01T09:00:00Z", "updated": "2026-06-01T09:00:00Z", "summary": "Team sync",
    "creator": {"email": "you@example.org", "self": True}, "organizer": {"email": "you@example.org", "self": True},
    "start": {"dateTime": "2026-06-01T10:00:00Z", "timeZone": "UTC"},
    "end": {"dateTime": "2026-06-01T10:30:00Z", "timeZone": "UTC"}, "iCalUID": "seed0001@example.org",
}  # fmt: skip
SHAPES: dict[str, Any] = {
    "search": {
        "search_metadata": {"id": "48462cab", "status": "Success", "total_time_taken": 0.01},
        "search_parameters": {"engine": "google", "q": "toxiproxy"},
        "search_information": {"query_displayed": "toxiproxy", "total_results": 1},
        "organic_results": [
            {"position": 1, "title": "Toxiproxy", "link": "https://example.org", "displayed_link": "example.org",
             "snippet": "A TCP proxy that simulates bad networks.", "source": "Example Library"}
        ],
    },
    "weather": {
        "coord": {"lon": 10.8, "lat": 59.9},
        "weather": [{"id": 800, "main": "Clear", "description": "clear sky", "icon": "01d"}],
        "base": "stations", "main": {"temp": 10.27, "feels_like": 9.56, "pressure": 1025, "humidity": 48},
        "visibility": 10000,
        "wind": {"speed": 2.38, "deg": 4}, "clouds": {"all": 0}, "dt": 1780304400,
        "sys": {"type": 2, "id": 1000001, "country": "NO", "sunrise": 1780280416, "sunset": 1780344799},
        "timezone": 7200, "id": 1000001, "name": "Oslo", "cod": 200,
    },
    "movies": {
        "page": 1, "total_pages": 1, "total_results": 1,
        "results": [{"adult": False, "backdrop_path": None, "genre_ids": [28, 878], "id": 9, "title": "The Matrix",
                     "overview": "A hacker.", "release_date": "1999-03-31", "video": False, "vote_average": 8.2,
                     "vote_count": 1000}],
    },
    "an event": EVENT,
    "events": {"kind": "calendar#events", "etag": '"p0"', "summary": "you", "timeZone": "UTC", "items": [EVENT, EVENT]},
    "calculator": {"expression": "12*3", "result": 36, "text": "36"},
    "a sent message": {"ok": True, "channel": "ana", "ts": "1780304400.649504",
                       "message": {"type": "message", "user": "U0", "text": "hello there", "ts": "1780304400.649504"}},
    "messages": {"ok": True, "messages": [{"type": "message", "user": "Bob", "text": "It lands at 18:40.",
                                           "ts": "1.2"}],
                 "has_more": False},
    "translator": {"translatedText": "buenos días", "detectedLanguage": {"confidence": 100.0, "language": "en"}},
    "many translations": {"translatedText": ["uno", "dos"]},
}  # fmt: skip
"""Answers of the real services, by their own documents; shortened."""


def wrong(value: Any, **params: float) -> Any:
    """The value as the caller gets it."""
    met = meet(WrongValue(**params).draw(Dice(1)), Target(answer(value)))
    assert met.reply is not None
    return met.reply.value


def leaves(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Every value that is no container, by its place."""
    if isinstance(value, dict | list):
        entries: Any = value.items() if isinstance(value, dict) else enumerate(value)
        return {place: leaf for key, entry in entries for place, leaf in leaves(entry, (*path, key)).items()}
    return {path: value}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [0.5, 1.5, 2.0, 3.0])
def test_exactly_one_value_changes_and_never_an_id_or_bookkeeping(shape: str, factor: float) -> None:
    before = leaves(SHAPES[shape])
    touched = set()
    for point in range(100):
        after = leaves(wrong(SHAPES[shape], point=point / 100, factor=factor))
        assert after.keys() == before.keys()
        changed = [place for place in before if before[place] != after[place]]
        assert len(changed) == 1
        assert type(before[changed[0]]) is type(after[changed[0]])
        touched.add(changed[0])
    for place in touched:
        assert not any(key in BOOKKEEPING or str(key).startswith("search_") for key in place), place


@pytest.mark.parametrize(
    ("shape", "meant"),
    [
        ("weather", {"temp", "humidity", "description", "name", "speed"}),
        ("an event", {"summary", "dateTime"}),
        ("movies", {"title", "vote_average", "release_date"}),
        ("messages", {"user", "text"}),
        ("search", {"title", "snippet"}),
    ],
)
def test_what_was_asked_for_can_be_met(shape: str, meant: set[str]) -> None:
    before = leaves(SHAPES[shape])
    met = set()
    for point in range(200):
        after = leaves(wrong(SHAPES[shape], point=point / 200, factor=2.0))
        met |= {place[-1] for place in before if before[place] != after[place]}
    assert meant <= met


@given(
    st.one_of(
        st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(min_size=1), st.dates().map(str),
        st.datetimes().map(lambda moment: moment.isoformat() + "Z"), st.integers(0, 10**30).map(str),
    ),
    st.sampled_from([0.5, 1.5, 2.0, 3.0, 1.0, -1.0]),
)  # fmt: skip
def test_a_wrong_value_is_always_another_one_of_the_same_kind(value: object, factor: float) -> None:
    after = wrong({"value": value}, point=0.5, factor=factor)["value"]
    assert after != value
    assert type(after) is type(value)


@pytest.mark.parametrize(
    ("right", "factor", "told"),
    [
        (10, 1.5, 15),
        (0, 2.0, 7),
        (0.01, 1.5, 0.0),  # 0.015 would be rounded to what it was
        (10.27, 2.0, 20.54),
        (2**1023, 3.0, 3 * 2**1023),  # beyond what a float holds
        (1.5e308, 2.0, 0.0),
        ("36", 2.0, "72"),
        ("1" * 999, 2.0, "2" * 999),
        ("9" * 1000, 2.0, "9" * 1000 + "o"),  # a text of digits, and no number that anybody reads
        ("2026-06-01T10:00:00Z", 1.5, "2026-06-03T10:00:00Z"),
        ("1999-12-31", 0.5, "2000-01-01"),
        ("clear sky", 2.0, "sky clear"),
        ("Oslo", 2.0, "olsOo"),
        ("so so", 2.0, "os oso"),  # the same words from behind
        (True, 2.0, False),
    ],
)
def test_it_still_looks_right(right: object, factor: float, told: object) -> None:
    assert wrong({"value": right}, point=0.0, factor=factor) == {"value": told}


@pytest.mark.parametrize(
    ("point", "told"), [(0.0, [20, 20, 30]), (0.34, [10, 40, 30]), (0.99, [10, 20, 60]), (1.0, [10, 20, 60])]
)
def test_the_point_says_which_of_the_values_it_is_and_1_is_the_last(point: float, told: list[int]) -> None:
    assert wrong([10, 20, 30], point=point, factor=2.0) == told


@pytest.mark.parametrize(("right", "told"), [("two words", "words two"), (21, 42), (21.4, 42.8), (True, False)])
def test_a_value_alone_is_one_to_be_wrong_about(right: object, told: object) -> None:
    assert wrong(right, point=0.0, factor=2.0) == told


@pytest.mark.parametrize(
    "reply",
    [
        answer({"cod": "404", "message": "city not found"}, 404),
        answer({"ok": False, "error": "channel_not_found", "channel": "ana"}),
        answer({"search_metadata": {"id": "1"}, "error": "Google hasn't returned any results for this query."}),
        answer({"error": {"code": 500, "message": "Backend Error"}}, 500),
        answer({"temp": 20}, 300),
        answer([]),
        Reply(204, {}, b""),
        Reply(200, {"content-type": "text/html"}, b"<html>temp 20</html>"),
    ],
)
def test_an_error_or_a_reply_without_a_meant_value_passes_untouched(reply: Reply) -> None:
    for point in (0.0, 0.5, 0.999, 1.0):
        met = meet(WrongValue(point, 2.0), Target(reply))
        assert met.reply is reply
        assert (met.injected, met.evidence) == (False, None)


def test_the_lie_has_no_length_of_the_truth_in_its_headers() -> None:
    truth = answer({"temp": 20}, headers={"Content-Type": "application/json", "Content-Length": "12", "ETag": "7"})
    met = meet(WrongValue(0.0, 2.0), Target(truth))
    assert met.reply is not None
    assert (met.reply.headers, met.reply.value) == ({"Content-Type": "application/json", "ETag": "7"}, {"temp": 40})
    assert truth.value == {"temp": 20}


def test_where_and_how_much_are_drawn_and_the_same_dice_draw_the_same() -> None:
    drawn = [WrongValue().draw(Dice(1, n)) for n in range(200)]
    assert drawn == [WrongValue().draw(Dice(1, n)) for n in range(200)]
    assert {fault.factor for fault in drawn} == {0.5, 1.5, 2.0, 3.0}
    assert min(fault.point for fault in drawn) < 0.1 < 0.9 < max(fault.point for fault in drawn) < 1
    assert WrongValue(0.3, 4.0).draw(Dice(1)) == WrongValue(0.3, 4.0)
    assert WrongValue().toxics() == ()


def test_the_witness_is_the_callers_copy_of_the_lie() -> None:
    met = meet(WrongValue(0.0, 2.0))
    assert met.injected
    assert met.evidence == "a value that the service did not give reached the caller"
    fault = met.active.fault
    assert fault.witnessed(replace(met.seen, reply=answer({"temp": 20}))) is None
    assert fault.witnessed(replace(met.seen, reply=None, error="timed_out")) is None
    assert fault.witnessed(replace(met.seen, changed_reply=None)) is None


@dataclasses.dataclass(frozen=True)
class Line:
    id: str
    amount: Decimal


class Receipt(pydantic.BaseModel):
    status: str = "paid"
    lines: tuple[Line, ...] = (Line("a", Decimal("30.50")),)


@pytest.mark.parametrize("right", [Receipt(), [Receipt()], {"receipt": Receipt()}, Receipt().lines])
def test_a_field_of_a_record_is_one_to_be_wrong_about(right: Any) -> None:
    for point in (0.0, 0.5, 1.0):
        met = meet(WrongValue(point, 2.0), Target(Returned(right)))
        assert met.injected
        assert met.reply is not None
        assert type(met.reply.value) is type(right)
        assert repr(met.reply.value).replace(repr(_amount(met.reply.value)), "Decimal('30.50')") == repr(right)
        assert _amount(met.reply.value) != Decimal("30.50")


def _amount(value: Any) -> Decimal:
    (place,) = json_values.find_places(value, lambda held: isinstance(held, Decimal))
    found: Decimal = json_values.get_at(value, place)
    return found


@pytest.mark.parametrize("value", [
    {"status": "shipped"}, {"id": 7}, {"order": {"id": 7, "status": "open"}}, [{"code": "PROMO10"}], {"ok": True},
])  # fmt: skip
def test_an_answer_of_such_keys_alone_means_them(value: Any) -> None:
    before, after = leaves(value), leaves(wrong(value, point=0.0, factor=2.0))
    assert before.keys() == after.keys()
    assert sum(before[place] != after[place] for place in before) == 1


@pytest.mark.parametrize("value", [
    {"ok": True, "messages": [], "has_more": False}, {"page": 1, "results": [], "total_pages": 0, "total_results": 0},
])  # fmt: skip
def test_around_a_list_without_entries_they_mean_nothing(value: Any) -> None:
    assert wrong(value) == value


def test_an_object_of_such_fields_alone_means_them() -> None:
    @dataclasses.dataclass
    class Parcel:
        status: str

    met = meet(WrongValue(point=0.0, factor=2.0), Target(Returned(Parcel("shipped"))))
    assert met.reply is not None
    assert met.reply.value != Parcel("shipped")


@pytest.mark.parametrize(("severity", "off"), [(0.0, (0.009, 0.011)), (0.5, (0.3, 0.33)), (1.0, (9.9, 10.1))])
def test_severity_is_how_far_off_a_number_is(severity: float, off: tuple[float, float]) -> None:
    for point in range(10):
        after = wrong({"total": 10_000}, point=point / 10, severity=severity)["total"]
        assert off[0] <= abs(after - 10_000) / 10_000 <= off[1]


def test_severity_and_factor_exclude_each_other() -> None:
    with pytest.raises(ValueError, match=r"^wrong_value has factor 2 and severity 0.2: leave one out$"):
        lab.inject("wrong_value", "shop", factor=2, severity=0.2)
