"""Results of functions of any type: no fault of meaning stumbles over one, and none alters it."""

import collections
import dataclasses
import enum
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pydantic
import pytest

from chaoslab.base.dice import Dice
from chaoslab.base.registry import list_family_plugins
from chaoslab.core import json_values
from chaoslab.core.exchange import PastAttempt
from chaoslab.core.fault import load_fault
from chaoslab.seams.functions.wrapped import Returned
from tests.faults.fault_parts import CALL, Target, meet

FAULTS = list_family_plugins("faults", "meaning")


class Model(pydantic.BaseModel):
    id: str = "a1"
    tags: list[str] = ["x", "y"]
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: int = 1
    b: str = "two words"
    c: tuple[int, ...] = (1, 2)


class Odd:
    """Its own code fails."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError


HOLDS_ITSELF: dict[str, Any] = {"a": 1}
HOLDS_ITSELF["me"] = HOLDS_ITSELF
LIST_OF_ITSELF: list[Any] = [1]
LIST_OF_ITSELF.append(LIST_OF_ITSELF)
RESULTS: list[Any] = [
    Model(), [Model(), Model()], Colour.RED, Level.LOW, Point(1, 2), [Point(1, 2)], Slotted(), {"s": Slotted()},
    {1, 2}, b"bytes", Odd(), [Odd(), 1], {"o": Odd()}, HOLDS_ITSELF, LIST_OF_ITSELF, float("nan"), [float("inf")],
    {"d": Decimal("1.5"), 3: 4, None: 5, (1, 2): 3}, object(), collections.OrderedDict(a=1, b=[1, 2]),
    collections.defaultdict(list, a=[1, 2]), 10**5000, ["9" * 6000], range(3), Model, Slotted, "  ", "\ud800",
    {"\ud800": "\ud800 x"}, date.max, datetime.min, "9999-12-31", "2026-13-45", '{"a": 1}', "[bad", [None, None],
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_no_result_is_one_that_a_fault_stumbles_over(fault: str) -> None:
    for result in RESULTS:
        before = json_values.dump_canonical(result)
        rome, oslo = (replace(CALL, value={"city": city}) for city in ("Rome", "Oslo"))
        earlier = [
            PastAttempt(rome, Returned(result), None, 0.0, 0.1),
            PastAttempt(oslo, Returned([1]), None, 0.2, 0.3),
        ]
        for seed in range(4):
            for past in ([], earlier):
                met = meet(load_fault(fault)().draw(Dice(seed)), Target(Returned(result)), earlier=past)
                assert met.injected == (met.active.reply is not None)
        assert json_values.dump_canonical(result) == before


@pytest.mark.parametrize("one", RESULTS[:10])
def test_a_value_is_spelt_as_itself_alone(one: Any) -> None:
    others = [other for other in RESULTS if other is not one]
    assert json_values.dump_canonical(one) not in [json_values.dump_canonical(other) for other in others]


def test_a_copy_has_another_value_at_the_place_and_shares_the_rest() -> None:
    model = Model()
    cases: list[tuple[Any, json_values.Place, Any]] = [
        (model, ("tags", 1), "z"),
        (Slotted(), ("c", 0), 7),
        ([Point(1, 2)], (0, 1), 3),
        ({"a": (1, [2])}, ("a", 1, 0), 9),
    ]
    for value, place, new in cases:
        made = json_values.replace_at(value, place, new)
        assert (type(made), json_values.get_at(made, place)) == (type(value), new)
        assert json_values.get_at(value, place) != new
    assert model == Model()
