"""A shop with two agents, for scenarios: one that pays twice, and one that does not."""

from collections.abc import Callable
from typing import Any

BOOK: dict[int, int] = {}


def refund(order: int) -> str:
    BOOK[order] = BOOK.get(order, 0) + 1
    return "refunded"


def naive() -> Callable[[str], str]:
    """Tries again after each failure, and then says that all is well."""
    BOOK.clear()

    def agent(prompt: str) -> str:  # noqa: ARG001
        for _ in range(3):
            try:
                return f"Order 17: {refund(17)}."
            except OSError:
                continue
        return "Order 17: refunded."

    return agent


def careful() -> Callable[[str], str]:
    """Tries once, and says what it knows."""
    BOOK.clear()

    def agent(prompt: str) -> str:  # noqa: ARG001
        try:
            return f"Order 17: {refund(17)}."
        except OSError:
            return "I could not make sure that order 17 was refunded; it may have been."

    return agent


def state() -> dict[int, int]:
    return BOOK


def hears(question: Any) -> str:
    """A judge who knows by which words the careful agent admits its doubt."""
    return "admits it" if "could not" in question.answer else "unclear"
