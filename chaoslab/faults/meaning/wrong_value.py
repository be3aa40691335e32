"""The answer looks right but one value in it is wrong (a hallucination)."""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import Enum
from typing import Any, Self

from chaoslab.base.dice import Dice
from chaoslab.core import json_values
from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.untrue import make_untrue_value

BOOKKEEPING = {
    "adult", "backdrop_path", "base", "cod", "code", "confidence", "created", "creator", "displayed_link", "dt",
    "etag", "genre_ids", "google_url", "has_more", "htmlLink", "iCalUID", "icon", "id", "json_endpoint", "kind",
    "lat", "link", "lon", "ok", "organizer", "page", "position", "poster_path", "snippet_highlighted_words", "status",
    "success", "sunrise", "sunset", "timeZone", "timezone", "total_pages", "total_results", "ts", "type", "updated",
    "video",
}  # fmt: skip
"""Keys whose value has no meaning for the question where there are others, or around a list without entries."""

Place = tuple[Any, Any]


@dataclass(frozen=True)
class WrongValue(Fault):
    """Changes one value of a successful reply: scales a number, or replaces a text by an untrue one.

    `point` (0–1) picks the value, `factor` scales a number; both are drawn. `severity` (0–1) in place of `factor` is
    how far off any value is, from its last digit to something else altogether. Fields of dataclasses and of pydantic's
    models are values too. A reply without a value to change passes unchanged, and then no fault is injected.
    """

    point: float = -1.0
    factor: float = 0.0
    severity: float = -1.0
    layer = "meaning"
    corrupts = "reply"
    leaves = "value"
    bounds = {"point": (-1, 1), "severity": (-1, 1)}  # noqa: RUF012 - a trait, which nobody changes
    met_as = "a value that the service did not give reached the caller"
    example = '"wrong_value", "get_order", chance=0.2'
    source = "https://github.com/chubin/wttr.in/issues/1280"

    def __post_init__(self) -> None:
        if self.factor and self.severity >= 0:
            raise ValueError(f"wrong_value has factor {self.factor:g} and severity {self.severity:g}: leave one out")

    def draw(self, dice: Dice) -> Self:
        point = self.point if self.point >= 0 else dice("point").uniform()
        # Not drawn where a severity takes its place.
        factor = 0.0 if self.severity >= 0 else self.factor or dice("factor").pick((0.5, 1.5, 2.0, 3.0))
        return replace(self, point=point, factor=factor)

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        value = reply.value
        # Some services refuse with status 200, as Slack does with {"ok": false}.
        says_no = isinstance(value, dict) and (value.get("ok") is False or bool(value.get("error")))
        if reply.status >= 300 or says_no or not getattr(reply, "ok", True):
            return reply
        every = not any(entry in ([], {}) for entry in _iterate_containers([value]))
        if isinstance(value, dict | list | str | int | float):
            box = [deepcopy(value)]  # so that a value alone has a place too
            if places := list(find_value_places(box)):
                holder, key = self._pick_place(places)
                holder[key] = self._make_wrong_value(holder[key])
                return reply.with_fitted_value(box[0])
        leaves = json_values.find_leaves(value)
        if not (paths := [path for path in leaves if not any(map(_is_bookkeeping_key, path))] or leaves * every):
            return reply
        path = self._pick_place(paths)
        return reply.with_fitted_value(
            json_values.replace_at(value, path, self._make_wrong_value(json_values.get_at(value, path)))
        )

    def _pick_place(self, places: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        return places[min(int(self.point * len(places)), len(places) - 1)]

    def _make_wrong_value(self, value: Any) -> Any:
        if self.severity >= 0:
            return make_untrue_value(value, self.severity, Dice("wrong_value", self.point))
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return self._make_wrong_number(value)
        if not isinstance(value, str):
            return make_untrue_value(value, self.point, Dice("wrong_value", str(value)))
        # Python refuses to read or write an integer of more than 4300 digits.
        if value.isdecimal() and len(value) < 1000:
            return str(self._make_wrong_number(int(value)))
        if shifted := self._shift_date(value):
            return shifted
        text_words = value.split()
        # What reads the same both ways has to change all the same.
        return " ".join(reversed(text_words)) if text_words != text_words[::-1] else value[::-1] + "o"

    def _make_wrong_number(self, value: float) -> float:
        if isinstance(value, int):
            above, below = self.factor.as_integer_ratio()
            wrong: float = value * above // below  # an integer of any size, where a float would overflow
        else:
            wrong = round(value * self.factor, 2)
        # JSON knows no infinity, and 0 stays 0 by any factor.
        if wrong == value or (isinstance(wrong, float) and not math.isfinite(wrong)):
            wrong = 7 if value == 0 else 0
        # An IntEnum takes no number that is no member of it.
        return wrong if isinstance(value, Enum) else type(value)(wrong)

    def _shift_date(self, text: str) -> str | None:
        """A date or a moment some days off; None for any other text."""
        try:
            day = date.fromisoformat(text[:10])
            return (day + timedelta(days=max(1, math.ceil(self.factor)))).isoformat() + text[10:]
        except (ValueError, OverflowError):
            return None


def find_value_places(value: Any, around: tuple[int, ...] = (), *, every: bool = False) -> Iterator[Place]:
    """The places of meaningful values as (holder, key), in the order of the document; of `every` one, bookkeeping too.
    `around`: the containers that hold this one, by their ids; a value that holds itself is gone into once."""
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in entries:
        if _is_bookkeeping_key(key) and not every:
            continue
        if isinstance(entry, dict | list):
            if id(entry) not in around and entry is not value:
                yield from find_value_places(entry, (*around, id(value)), every=every)
        elif isinstance(entry, bool | int | float) or (isinstance(entry, str) and entry):
            yield value, key


def _is_bookkeeping_key(key: Any) -> bool:
    # SerpApi tells of the search itself in search_metadata, search_parameters and search_information.
    return key in BOOKKEEPING or str(key).startswith("search_")


def _iterate_containers(value: Any, around: tuple[int, ...] = ()) -> Iterator[Any]:
    """The lists and objects within a value, each before those in it."""
    for entry in value.values() if isinstance(value, dict) else value:
        if isinstance(entry, dict | list) and id(entry) not in around and entry is not value:
            yield entry
            yield from _iterate_containers(entry, (*around, id(value)))
