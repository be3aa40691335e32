"""A value that has to be there."""

from typing import TypeVar

T = TypeVar("T")


def sure(value: T | None) -> T:
    """The value, which is not None."""
    assert value is not None
    return value
