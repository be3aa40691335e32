"""The types of a value that each trial may draw: {from: 1, to: 5} or {choices: [1, 5]} in the value's place."""

from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chaoslab.scenarios._spaces import CHOICES_MAX, OneOf, RangeSpace, Space

T = TypeVar("T")


class Strict(BaseModel):
    """A mapping without other keys, whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class RangeSpec(Strict, Generic[T]):
    """A range: each trial draws a value between two, whole if both are."""

    low: T = Field(alias="from", description="the least value")
    high: T = Field(alias="to", description="the largest value")

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if not self.low < self.high:  # type: ignore[operator]
            raise ValueError("a range from a number to a larger one")
        return self

    @property
    def space(self) -> Space:
        return RangeSpace(self.low, self.high)  # type: ignore[arg-type]


class ChoicesSpec(Strict, Generic[T]):
    """Choices: each trial draws one of the values, each as likely as any other."""

    choices: list[T] = Field(min_length=1, max_length=CHOICES_MAX, description="the values")

    @property
    def space(self) -> Space:
        return OneOf(tuple(self.choices))


def form(value: Any) -> str:
    """The tag of a value, of a range or of choices."""
    if isinstance(value, RangeSpec | ChoicesSpec):
        return "choices" if isinstance(value, ChoicesSpec) else "range"
    return "one" if not isinstance(value, Mapping) else "choices" if "choices" in value else "range"


def one_or_choices(value: Any) -> str:
    """The tag of a value or of choices."""
    return "choices" if isinstance(value, ChoicesSpec) or (isinstance(value, Mapping) and "choices" in value) else "one"
