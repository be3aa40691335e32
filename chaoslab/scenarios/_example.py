"""A support agent that pays orders back. It has no model, so that it costs nothing and always does the same."""

import re
from collections.abc import Callable
from typing import Any

ORDERS: dict[int, dict[str, Any]] = {}
"""The shop's books: what the agent's tools read and change."""
PAYMENTS: dict[str, str] = {}
"""The shop's answers by idempotency key: a request that it knows is not done again."""


def open_shop() -> None:
    ORDERS.clear()
    PAYMENTS.clear()
    ORDERS[17] = {"item": "kettle", "price": 49.0, "refunded": 0.0}


def get_order(order: int) -> dict[str, Any]:
    return dict(ORDERS[order])


def refund(order: int, amount: float, idempotency_key: str = "") -> str:
    if idempotency_key in PAYMENTS:
        return PAYMENTS[idempotency_key]
    ORDERS[order]["refunded"] += amount
    said = f"refunded {amount:.2f}"
    if idempotency_key:
        PAYMENTS[idempotency_key] = said
    return said


def books() -> dict[int, dict[str, Any]]:
    return ORDERS


def naive() -> Callable[[str], str]:
    """An agent that tries again when a tool does not answer, and says that all went well."""
    open_shop()

    def answer(prompt: str) -> str:
        order = int(re.findall(r"\d+", prompt)[0])
        for _ in range(3):
            try:
                found = get_order(order)
                return f"Order {order}: {refund(order, found['price'])}."
            except OSError:
                continue
        return f"Order {order} was refunded."

    return answer


def careful() -> Callable[[str], str]:
    """An agent that sends a key with each payment, so that it may ask again, and says what it does not know."""
    open_shop()

    def answer(prompt: str) -> str:
        order = int(re.findall(r"\d+", prompt)[0])
        found: dict[str, Any] = {}
        for _ in range(3):
            try:
                found = get_order(order)
                break
            except OSError:
                continue
        for _ in range(4 if found else 0):
            try:
                return f"Order {order}: {refund(order, found['price'], idempotency_key=f'refund-{order}')}."
            except OSError:
                continue
        return f"I could not finish the refund of order {order}; it may have been done, please check."

    return answer
